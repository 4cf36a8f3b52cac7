//! The walk over the tree of the parser. Every construct is named; what is not is a finding.

use brush_parser::ast;
use brush_parser::{ParserOptions, Token, parse_tokens, uncached_tokenize_str};

use super::guard;
use super::{Assignment, Base, Finding, MAX_DEPTH, ParsedCommand, Word};

/// Folders that a command may run in; more are not told apart.
const MAX_BASES: usize = 8;
/// Findings that are kept; one is enough to refuse.
const MAX_FINDINGS: usize = 16;

/// Where in the script the walk is.
#[derive(Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about a place"
)]
pub(in crate::sandbox::checker) struct Place {
    pub via: Vec<String>,
    pub depth: usize,
    /// The text is for a POSIX shell, which reads some constructs of bash differently.
    pub posix: bool,
    /// The text was given to a shell with `-c`.
    pub in_shell: bool,
    /// Words that are known only at run time are appended to the command.
    pub appended: bool,
    /// Texts that are replaced at run time, such as `{}`.
    pub replaced: Vec<String>,
    /// The command is looked up as the shell does it: functions and `cd` count.
    pub direct: bool,
    /// Every command here runs, in this shell.
    pub certain: bool,
    pub bases: Vec<usize>,
}

impl Place {
    /// One level further inside.
    pub fn inside(&self, via: impl Into<String>) -> Self {
        let mut inner = self.clone();
        inner.via.push(via.into());
        inner.depth += 1;
        inner
    }

    fn uncertain(&self) -> Self {
        Self {
            certain: false,
            depth: self.depth + 1,
            ..self.clone()
        }
    }
}

/// Reads scripts into one [`ParsedCommand`].
pub(in crate::sandbox::checker) struct Reader {
    pub out: ParsedCommand,
    pub(super) options: ParserOptions,
    pub(super) cost: u64,
    /// The script that is being read.
    source: Vec<char>,
    pub(super) functions: Vec<String>,
    pub(super) full: bool,
}

impl Reader {
    /// Reads a whole command.
    pub fn read(text: &str) -> ParsedCommand {
        let mut reader = Self {
            out: ParsedCommand {
                bases: vec![Base::Start],
                ..ParsedCommand::default()
            },
            options: ParserOptions {
                // As in `bash -c`, where patterns such as `@(a|b)` are off.
                enable_extended_globbing: false,
                ..ParserOptions::default()
            },
            cost: 0,
            source: Vec::new(),
            functions: Vec::new(),
            full: false,
        };
        let mut place = Place {
            via: Vec::new(),
            depth: 0,
            posix: false,
            in_shell: false,
            appended: false,
            replaced: Vec::new(),
            direct: true,
            certain: true,
            bases: vec![0],
        };
        match guard::check_text(text) {
            Ok(()) => reader.script(text, &mut place),
            Err(finding) => reader.report(finding),
        }
        reader.out
    }

    pub fn report(&mut self, finding: Finding) {
        if self.out.findings.len() < MAX_FINDINGS {
            self.out.findings.push(finding);
        }
    }

    pub fn refuse(&mut self, code: &'static str, reason: impl Into<String>) {
        self.report(Finding {
            code,
            reason: reason.into(),
        });
    }

    pub fn unparseable(&mut self) {
        self.refuse(
            "unparseable",
            "command contains unparseable shell metacharacters",
        );
    }

    /// Reads text as a script that runs in `place`.
    pub fn script(&mut self, text: &str, place: &mut Place) {
        if self.full {
            return;
        }
        if place.depth > MAX_DEPTH {
            self.stop("too_complex", "command is nested too deeply");
            return;
        }
        match self.parse(text) {
            Ok(program) => {
                let outer = std::mem::replace(&mut self.source, text.chars().collect());
                for list in &program.complete_commands {
                    self.list(list, place);
                }
                self.source = outer;
            }
            Err(Some(finding)) => self.report(finding),
            Err(None) => self.unparseable(),
        }
    }

    fn parse(&self, text: &str) -> Result<ast::Program, Option<Finding>> {
        guard::check_text(text)?;
        guard::check_structure(text)?;
        let tokens = self.tokens(text)?;
        guard::check_tokens(&tokens)?;
        parse_tokens(&tokens, &self.options).map_err(|_| None)
    }

    fn tokens(&self, text: &str) -> Result<Vec<Token>, Option<Finding>> {
        uncached_tokenize_str(text, &self.options.tokenizer_options()).map_err(|_| None)
    }

    /// Ends the walk: what is left is not looked at, and the command is refused.
    pub(super) fn stop(&mut self, code: &'static str, reason: &str) {
        self.full = true;
        self.refuse(code, reason);
    }

    fn list(&mut self, list: &ast::CompoundList, place: &mut Place) {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            let runs_here = matches!(separator, ast::SeparatorOperator::Sequence);
            let mut own = place.clone();
            self.and_or(and_or, &mut own);
            if runs_here {
                self.join(place, &own, and_or.additional.is_empty());
            }
        }
    }

    /// After a part that may have changed the folder: for certain, or perhaps.
    fn join(&mut self, place: &mut Place, after: &Place, certain: bool) {
        if certain {
            place.bases.clone_from(&after.bases);
            return;
        }
        for base in &after.bases {
            if !place.bases.contains(base) {
                place.bases.push(*base);
            }
        }
        if place.bases.len() > MAX_BASES {
            place.bases = vec![self.base(Base::Unknown)];
        }
    }

    pub(super) fn base(&mut self, base: Base) -> usize {
        self.out.bases.push(base);
        self.out.bases.len() - 1
    }

    fn and_or(&mut self, list: &ast::AndOrList, place: &mut Place) {
        self.pipeline(&list.first, place);
        let certain = place.certain;
        place.certain = false;
        for next in &list.additional {
            match next {
                ast::AndOr::And(pipeline) => self.pipeline(pipeline, place),
                ast::AndOr::Or(pipeline) => {
                    let mut other = place.clone();
                    self.pipeline(pipeline, &mut other);
                    self.join(place, &other, false);
                }
            }
        }
        place.certain = certain;
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, place: &mut Place) {
        if let [command] = pipeline.seq.as_slice() {
            return self.command(command, place);
        }
        for command in &pipeline.seq {
            let mut own = place.clone();
            own.certain = false;
            self.command(command, &mut own);
        }
    }

    fn command(&mut self, command: &ast::Command, place: &mut Place) {
        match command {
            ast::Command::Simple(simple) => self.simple(simple, place),
            ast::Command::Compound(compound, redirects) => {
                self.redirects_of(redirects.as_ref(), place);
                self.compound(compound, place);
            }
            ast::Command::Function(function) => self.function(function, place),
            ast::Command::ExtendedTest(test, redirects) => {
                self.redirects_of(redirects.as_ref(), place);
                self.not_posix(place);
                self.test(&test.expr, place);
            }
        }
    }

    /// `( (…) )` is a subshell in a subshell. The parser takes it for arithmetic all the same.
    fn check_parentheses(&mut self, span: &brush_parser::SourceSpan) {
        let text = self.source.get(span.start.index..span.end.index);
        let is_closed =
            text.is_some_and(|text| text.starts_with(&['(', '(']) && text.ends_with(&[')', ')']));
        if !is_closed {
            self.unparseable();
        }
    }

    /// A construct that a POSIX shell reads as something else.
    pub(super) fn not_posix(&mut self, place: &Place) {
        if place.posix {
            self.refuse(
                "unparseable",
                "command uses a construct of bash in a POSIX shell",
            );
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, place: &mut Place) {
        if place.depth > MAX_DEPTH {
            return self.stop("too_complex", "command is nested too deeply");
        }
        let mut own = place.uncertain();
        match compound {
            ast::CompoundCommand::Arithmetic(arithmetic) => {
                self.not_posix(place);
                self.check_parentheses(&arithmetic.loc);
                self.arithmetic(&arithmetic.expr.value, place);
            }
            ast::CompoundCommand::ArithmeticForClause(clause) => {
                self.not_posix(place);
                let parts = [&clause.initializer, &clause.condition, &clause.updater];
                for part in parts.into_iter().flatten() {
                    self.arithmetic(&part.value, place);
                }
                self.repeated(&clause.body.list, place);
            }
            ast::CompoundCommand::BraceGroup(group) => {
                own.certain = place.certain;
                self.list(&group.list, &mut own);
                self.join(place, &own, true);
            }
            ast::CompoundCommand::Subshell(subshell) => self.list(&subshell.list, &mut own),
            ast::CompoundCommand::ForClause(clause) => self.for_clause(clause, place),
            ast::CompoundCommand::CaseClause(clause) => self.case_clause(clause, place),
            ast::CompoundCommand::IfClause(clause) => self.if_clause(clause, place),
            ast::CompoundCommand::WhileClause(clause)
            | ast::CompoundCommand::UntilClause(clause) => {
                let ast::WhileOrUntilClauseCommand(condition, body, _) = clause;
                self.repeated(condition, place);
                self.repeated(&body.list, place);
            }
            ast::CompoundCommand::Coprocess(coprocess) => {
                self.not_posix(place);
                if let Some(name) = &coprocess.name {
                    self.lost(&name.value);
                }
                self.command(&coprocess.body, &mut own);
            }
        }
    }

    fn if_clause(&mut self, clause: &ast::IfClauseCommand, place: &mut Place) {
        let mut own = place.uncertain();
        self.list(&clause.condition, &mut own);
        let mut branches = vec![own.clone()];
        let mut then = own.clone();
        self.list(&clause.then, &mut then);
        branches.push(then);
        for part in clause.elses.iter().flatten() {
            let mut other = own.clone();
            if let Some(condition) = &part.condition {
                self.list(condition, &mut other);
                own.bases.clone_from(&other.bases);
            }
            self.list(&part.body, &mut other);
            branches.push(other);
        }
        for branch in branches {
            self.join(place, &branch, false);
        }
    }

    fn for_clause(&mut self, clause: &ast::ForClauseCommand, place: &mut Place) {
        match &clause.values {
            Some(values) => {
                for value in values {
                    for word in self.words(&value.value, place) {
                        self.assigned(&clause.variable_name, word, "for");
                    }
                }
            }
            None => self.lost(&clause.variable_name),
        }
        self.repeated(&clause.body.list, place);
    }

    fn case_clause(&mut self, clause: &ast::CaseClauseCommand, place: &mut Place) {
        self.word(&clause.value.value, place);
        for item in &clause.cases {
            for pattern in &item.patterns {
                self.word(&pattern.value, place);
            }
            let mut own = place.uncertain();
            if let Some(list) = &item.cmd {
                self.list(list, &mut own);
            }
            self.join(place, &own, false);
        }
    }

    /// A body that may run any number of times. A `cd` in it moves it further each time.
    fn repeated(&mut self, list: &ast::CompoundList, place: &mut Place) {
        let first = self.out.commands.len();
        let mut own = place.uncertain();
        self.list(list, &mut own);
        if own.bases != place.bases {
            let unknown = self.base(Base::Unknown);
            for command in &mut self.out.commands[first..] {
                command.bases.push(unknown);
            }
            place.bases.push(unknown);
        }
    }

    fn function(&mut self, function: &ast::FunctionDefinition, place: &mut Place) {
        let name = &function.fname.value;
        let ast::FunctionBody(body, redirects) = &function.body;
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:+".contains(&byte))
        {
            self.unparseable();
        }
        let mut own = place.inside(format!("{name}()"));
        self.redirects_of(redirects.as_ref(), &own);
        let before = own.bases.clone();
        self.compound(body, &mut own);
        if own.bases != before {
            // The folder moves where the function is called, which is not followed.
            place.bases = vec![self.base(Base::Unknown)];
        }
        if place.certain && place.via.is_empty() {
            self.functions.push(name.clone());
        }
    }

    fn test(&mut self, test: &ast::ExtendedTestExpr, place: &Place) {
        match test {
            ast::ExtendedTestExpr::And(left, right) | ast::ExtendedTestExpr::Or(left, right) => {
                self.test(left, place);
                self.test(right, place);
            }
            ast::ExtendedTestExpr::Not(inner) | ast::ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, place);
            }
            ast::ExtendedTestExpr::UnaryTest(predicate, word) => {
                let word = self.word(&word.value, place);
                let names_a_variable = matches!(
                    predicate,
                    ast::UnaryPredicate::ShellVariableIsSetAndAssigned
                        | ast::UnaryPredicate::ShellVariableIsSetAndNameRef
                );
                if names_a_variable {
                    self.variable_operand(&word);
                }
            }
            ast::ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.word(&left.value, place);
                self.word(&right.value, place);
            }
        }
    }

    /// A word that the shell evaluates as the name of a variable, with its subscript.
    pub fn variable_operand(&mut self, word: &Word) {
        match word.literal() {
            Some(name) if !name.contains(['[', '$', '`', '(']) => {
                self.lost(&name);
            }
            _ => self.refuse(
                "unsafe_construct",
                "command evaluates a variable name that is not plain",
            ),
        }
    }

    /// A variable gets a value that is not known.
    pub fn lost(&mut self, name: &str) {
        self.out.variables.forget(name);
        self.out.assignments.push(Assignment {
            name: name.to_owned(),
            value: Word::dynamic(),
            command: String::new(),
        });
    }

    /// Text that would run a command if a variable that holds it were used in arithmetic.
    pub fn check_literal(&mut self, word: &Word) {
        let Some(text) = word.text() else { return };
        if text.contains("/dev/tcp") || text.contains("/dev/udp") {
            self.refuse("unsafe_construct", "command opens a network redirection");
        }
        if text.contains('[') && (text.contains("$(") || text.contains('`') || text.contains("${"))
        {
            self.refuse(
                "unsafe_construct",
                "command assigns a value that arithmetic would execute",
            );
        }
    }

    /// A variable gets a value; `command` is the command that sees it, or empty.
    pub fn assigned(&mut self, name: &str, value: Word, command: &str) {
        self.check_literal(&value);
        self.out.variables.assign(name, value.clone());
        self.out.assignments.push(Assignment {
            name: name.to_owned(),
            value,
            command: command.to_owned(),
        });
    }

    pub(super) fn process_substitution(&mut self, subshell: &ast::SubshellCommand, place: &Place) {
        self.not_posix(place);
        let mut own = place.inside("<(…)");
        own.certain = false;
        self.list(&subshell.list, &mut own);
    }

    /// Forgets functions: a call after it may be of a program with the same name.
    pub fn forget_functions(&mut self) {
        self.functions.clear();
    }
}
