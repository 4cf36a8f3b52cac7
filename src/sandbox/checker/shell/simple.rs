//! Simple commands: words, assignments and redirections, and what is inside them.

use brush_parser::ast;

use super::read::{Place, Reader};
use super::{Base, MAX_COMMANDS, MAX_DEPTH, Part, Redirect, SimpleCommand, Stdin, Word};
use crate::sandbox::checker::inner;

impl Reader {
    pub(super) fn simple(&mut self, simple: &ast::SimpleCommand, place: &mut Place) {
        if self.full {
            return;
        }
        let mut collected = Collected::default();
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        for item in prefix {
            self.item(item, place, true, &mut collected);
        }
        if let Some(word) = &simple.word_or_name {
            collected.last_is_descriptor = is_descriptor(&word.value);
            collected.argv.extend(self.words(&word.value, place));
            if collected.argv.len() != 1 {
                self.refuse("dynamic_command", "command word is a brace list");
            }
        }
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        for item in suffix {
            self.item(item, place, false, &mut collected);
        }
        self.finish(collected, place);
    }

    fn finish(&mut self, collected: Collected, place: &mut Place) {
        let name = collected
            .argv
            .first()
            .and_then(Word::text)
            .unwrap_or_default();
        for (name_of_variable, value) in collected.assignments {
            self.assigned(&name_of_variable, value, &name);
        }
        self.emit(
            SimpleCommand {
                argv: collected.argv,
                redirects: collected.redirects,
                stdin: collected.stdin.unwrap_or(Stdin::Inherited),
                via: Vec::new(),
                is_maybe: false,
                is_script: false,
                is_function: false,
                programs: Vec::new(),
                writes: Vec::new(),
                bases: Vec::new(),
            },
            place,
        );
    }

    fn item(
        &mut self,
        item: &ast::CommandPrefixOrSuffixItem,
        place: &Place,
        is_prefix: bool,
        collected: &mut Collected,
    ) {
        let after_descriptor = std::mem::take(&mut collected.last_is_descriptor);
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                if after_descriptor {
                    // `{name}>file`: bash takes the word for a descriptor, the parser for a word.
                    self.unparseable();
                }
                let found = self.redirect(redirect, place);
                collected.redirects.extend(found.0);
                collected.stdin = found.1.or(collected.stdin.take());
            }
            ast::CommandPrefixOrSuffixItem::Word(word) => {
                collected.last_is_descriptor = is_descriptor(&word.value);
                collected.argv.extend(self.words(&word.value, place));
            }
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                self.assignment(assignment, word, place, is_prefix, collected);
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.process_substitution(subshell, place);
                collected.argv.push(Word::process());
            }
        }
    }

    fn assignment(
        &mut self,
        assignment: &ast::Assignment,
        word: &ast::Word,
        place: &Place,
        is_prefix: bool,
        collected: &mut Collected,
    ) {
        let name = match &assignment.name {
            ast::AssignmentName::VariableName(name) => name.clone(),
            ast::AssignmentName::ArrayElementName(name, index) => {
                self.arithmetic(index, place);
                name.clone()
            }
        };
        let value = match &assignment.value {
            ast::AssignmentValue::Scalar(_) if !is_prefix => {
                return collected.argv.extend(self.words(&word.value, place));
            }
            ast::AssignmentValue::Scalar(value) => self.word(&value.value, place),
            ast::AssignmentValue::Array(elements) => {
                self.not_posix(place);
                for (key, element) in elements {
                    if let Some(key) = key {
                        self.arithmetic(&key.value, place);
                    }
                    for word in self.words(&element.value, place) {
                        self.check_literal(&word);
                    }
                }
                Word::dynamic()
            }
        };
        if is_prefix {
            let value = if assignment.append {
                Word::dynamic()
            } else {
                value
            };
            collected.assignments.push((name, value));
        } else {
            self.lost(&name);
            collected.argv.push(Word::fixed(name));
        }
    }

    /// Adds a command, and what is inside it.
    pub fn emit(&mut self, mut command: SimpleCommand, place: &mut Place) {
        if self.full {
            return;
        }
        if self.out.commands.len() >= MAX_COMMANDS {
            return self.stop("too_complex", "command runs too many commands");
        }
        if place.depth > MAX_DEPTH {
            return self.stop("too_complex", "command is nested too deeply");
        }
        command.via.clone_from(&place.via);
        command.bases.clone_from(&place.bases);
        let literal = command.argv.first().and_then(Word::literal);
        if !command.argv.is_empty() {
            self.check_command_word(literal.as_deref(), place);
        }
        command.is_function = place.direct
            && literal
                .as_ref()
                .is_some_and(|name| self.functions.contains(name));
        self.change_folder(&command, place);
        let at = self.out.commands.len();
        self.out.commands.push(command.clone());
        let found = inner::look(self, &command, place);
        let stored = &mut self.out.commands[at];
        stored.programs = found.programs;
        stored.writes = found.writes;
    }

    fn check_command_word(&mut self, word: Option<&str>, place: &Place) {
        match word {
            None => self.refuse("dynamic_command", "command word is known only at run time"),
            Some(word) if !word.is_ascii() => {
                self.refuse("unparseable", "command word has characters beyond ASCII");
            }
            Some(word) if word.contains(['{', '}']) && word != "{" && word != "}" => {
                self.refuse("dynamic_command", "command word has braces");
            }
            Some(word) if word.contains('=') && !place.direct => {
                self.refuse(
                    "dynamic_command",
                    "an assignment stands where a command runs",
                );
            }
            Some(_) => {}
        }
    }

    fn change_folder(&mut self, command: &SimpleCommand, place: &mut Place) {
        if !place.direct {
            return;
        }
        let operands: Vec<&Word> = command.argv.iter().skip(1).collect();
        let moved = match command.word().as_deref() {
            Some("cd") => cd_operand(&operands),
            Some("pushd") if operands.len() == 1 => cd_operand(&operands),
            Some("pushd" | "popd") => None,
            _ => return,
        };
        let bases = place.bases.clone();
        place.bases = match moved {
            Some(to) => bases
                .into_iter()
                .map(|from| {
                    self.base(Base::Moved {
                        from,
                        to: to.clone(),
                    })
                })
                .collect(),
            None => vec![self.base(Base::Unknown)],
        };
    }
}

/// What the words and redirections of a simple command add up to.
#[derive(Default)]
struct Collected {
    argv: Vec<Word>,
    assignments: Vec<(String, Word)>,
    redirects: Vec<Redirect>,
    stdin: Option<Stdin>,
    last_is_descriptor: bool,
}

/// `{name}`, which bash takes for a descriptor when a redirection follows.
fn is_descriptor(raw: &str) -> bool {
    let inner = raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}'));
    inner.is_some_and(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_[]".contains(&byte))
    })
}

/// The folder that `cd` goes to; none when it is not known.
fn cd_operand(operands: &[&Word]) -> Option<Word> {
    let mut rest = operands;
    while let [first, more @ ..] = rest {
        match first.literal().as_deref() {
            Some("-L" | "-P" | "-e" | "--") => rest = more,
            Some("-") => return None,
            _ => break,
        }
    }
    match rest {
        [] => Some(Word {
            parts: vec![Part::Tilde(String::new())],
            is_process: false,
        }),
        [folder] => Some((*folder).clone()),
        _ => None,
    }
}
