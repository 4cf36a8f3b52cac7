//! From the text of a word to its parts, and the scripts inside it.

use brush_parser::ast::UnexpandedArithmeticExpr;
use brush_parser::word::{
    self, BraceExpression, BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr,
    ParameterTransformOp, TildeExpr, WordPiece, WordPieceWithSource,
};

use super::guard;
use super::output;
use super::read::{Place, Reader};
use super::word::decode_ansi;
use super::{Part, Word};

/// Words that one brace list may make.
const MAX_BRACE_WORDS: usize = 128;

impl Reader {
    /// The words that a raw word becomes by brace expansion.
    pub fn words(&mut self, raw: &str, place: &Place) -> Vec<Word> {
        if let Some(body) = commit_idiom(raw) {
            return vec![self.idiom(body, place)];
        }
        match self.braces(raw) {
            None => vec![self.word(raw, place)],
            Some(expanded) => {
                self.not_posix(place);
                expanded.iter().map(|raw| self.word(raw, place)).collect()
            }
        }
    }

    /// `"$(cat <<'EOF' … EOF)"`: the text is literal and may be long, so the parser is spared.
    fn idiom(&mut self, body: &str, place: &Place) -> Word {
        let mut own = place.inside("$(…)");
        own.certain = false;
        self.script("cat", &mut own);
        Word::fixed(body.trim_end_matches('\n'))
    }

    fn braces(&mut self, raw: &str) -> Option<Vec<String>> {
        if !raw.contains('{') || !(raw.contains(',') || raw.contains("..")) {
            return None;
        }
        if let Err(finding) = guard::check_braces(raw) {
            self.report(finding);
            return None;
        }
        let Ok(pieces) = word::parse_brace_expansions(raw, &self.options) else {
            self.unparseable();
            return None;
        };
        let pieces = pieces?;
        let has_list =
            |piece: &BraceExpressionOrText| matches!(piece, BraceExpressionOrText::Expr(_));
        if !pieces.iter().any(has_list) {
            return None;
        }
        let expanded = expand(&pieces);
        if expanded.is_none() {
            self.refuse("too_complex", "command has a brace list that is too long");
        }
        expanded
    }

    /// The parts of a raw word; the scripts in it are read.
    pub fn word(&mut self, raw: &str, place: &Place) -> Word {
        if let Some(body) = commit_idiom(raw) {
            return self.idiom(body, place);
        }
        if !self.may_parse(raw) {
            return Word::dynamic();
        }
        if let Ok(pieces) = word::parse(raw, &self.options) {
            return self.pieces(raw, &pieces, false, place);
        }
        self.unparseable();
        Word::dynamic()
    }

    /// The body of a here-document that is expanded.
    pub(super) fn here_document(&mut self, raw: &str, place: &Place) -> Word {
        if !self.may_parse(raw) {
            return Word::dynamic();
        }
        if let Ok(pieces) = word::parse_heredoc(raw, &self.options) {
            return self.pieces(raw, &pieces, true, place);
        }
        self.unparseable();
        Word::dynamic()
    }

    fn may_parse(&mut self, raw: &str) -> bool {
        match guard::word_cost(raw) {
            Ok(cost) => self.cost += cost,
            Err(finding) => {
                self.report(finding);
                return false;
            }
        }
        if self.cost > guard::MAX_COST {
            self.refuse("too_complex", "command has too many nested substitutions");
            return false;
        }
        true
    }

    /// An arithmetic expression: only what it runs matters.
    pub fn arithmetic(&mut self, raw: &str, place: &Place) {
        if !guard::is_arithmetic(raw) {
            self.unparseable();
        }
        if raw.contains('$') || raw.contains('`') || raw.contains(['\'', '"', '\\']) {
            self.word(raw, place);
        }
    }

    fn pieces(
        &mut self,
        raw: &str,
        pieces: &[WordPieceWithSource],
        quoted: bool,
        place: &Place,
    ) -> Word {
        let mut word = Word::default();
        for piece in pieces {
            self.piece(raw, piece, quoted, place, &mut word);
        }
        word
    }

    fn piece(
        &mut self,
        raw: &str,
        piece: &WordPieceWithSource,
        quoted: bool,
        place: &Place,
        word: &mut Word,
    ) {
        let part = match &piece.piece {
            WordPiece::Text(text) => {
                self.check_plain(text, raw.get(piece.end_index..).unwrap_or("$("), quoted);
                text_part(text, quoted)
            }
            WordPiece::SingleQuotedText(text) => text_part(text, true),
            WordPiece::AnsiCQuotedText(text) => {
                self.not_posix(place);
                match decode_ansi(text) {
                    Some(text) => text_part(&text, true),
                    None => Part::Dynamic,
                }
            }
            WordPiece::DoubleQuotedSequence(inner) => {
                let inside = self.pieces(raw, inner, true, place);
                // An empty pair of quotes is still a word.
                word.parts.push(text_part("", true));
                return word.parts.extend(inside.parts);
            }
            WordPiece::GettextDoubleQuotedSequence(inner) => {
                self.not_posix(place);
                self.pieces(raw, inner, true, place);
                Part::Dynamic
            }
            WordPiece::TildeExpansion(tilde) => tilde_part(tilde),
            WordPiece::ParameterExpansion(parameter) => self.parameter(parameter, quoted, place),
            WordPiece::CommandSubstitution(text) => {
                if !quoted && has_expanded_here_document(text) {
                    self.unparseable();
                }
                self.substitution(text, place)
            }
            WordPiece::BackquotedCommandSubstitution(_) => self.backquotes(raw, piece, place),
            WordPiece::EscapeSequence(text) => {
                text_part(text.strip_prefix('\\').unwrap_or(text), true)
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.arithmetic(&expression.value, place);
                Part::Dynamic
            }
        };
        word.parts.push(part);
    }

    fn substitution(&mut self, text: &str, place: &Place) -> Part {
        let mut own = place.inside("$(…)");
        own.certain = false;
        own.direct = true;
        let first = self.out.commands.len();
        self.script(text, &mut own);
        match &self.out.commands[first..] {
            [command] if output::is_tame(command) => Part::Output,
            _ => Part::Dynamic,
        }
    }

    /// Inside backquotes a backslash is removed before some characters. The parser does not do that
    /// for all of them, so such text is not read.
    fn backquotes(&mut self, raw: &str, piece: &WordPieceWithSource, place: &Place) -> Part {
        let inner = raw.get(piece.start_index + 1..piece.end_index.saturating_sub(1));
        match inner {
            Some(text) if !text.contains('\\') => self.substitution(text, place),
            _ => {
                self.unparseable();
                Part::Dynamic
            }
        }
    }

    /// Text that the parser took as it stands must not be the start of something it gave up on.
    fn check_plain(&mut self, text: &str, after: &str, quoted: bool) {
        if !quoted && text.chars().any(guard::is_deceptive) {
            self.refuse(
                "unparseable",
                "command contains an invisible character or a blank beyond ASCII",
            );
        }
        let gave_up = text.match_indices('$').any(|(at, _)| {
            let rest = &text[at + 1..];
            let next = rest.chars().next().or_else(|| after.chars().next());
            next.is_some_and(|c| c.is_alphanumeric() || "_({[@*#?-$!\\`".contains(c))
        });
        if gave_up || text.contains('`') {
            self.unparseable();
        }
    }

    /// Reads everything inside a parameter expansion. Each form is named: a new one does not compile.
    #[allow(clippy::too_many_lines, reason = "one flat list of forms")]
    fn parameter(&mut self, expression: &ParameterExpr, quoted: bool, place: &Place) -> Part {
        match expression {
            ParameterExpr::Parameter {
                parameter,
                indirect,
            } => {
                self.named(parameter, *indirect, place);
                if let Parameter::Named(name) = parameter {
                    let name = name.clone();
                    return Part::Variable { name, quoted };
                }
            }
            ParameterExpr::UseDefaultValues {
                parameter,
                indirect,
                default_value: text,
                ..
            }
            | ParameterExpr::IndicateErrorIfNullOrUnset {
                parameter,
                indirect,
                error_message: text,
                ..
            }
            | ParameterExpr::UseAlternativeValue {
                parameter,
                indirect,
                alternative_value: text,
                ..
            }
            | ParameterExpr::RemoveSmallestSuffixPattern {
                parameter,
                indirect,
                pattern: text,
            }
            | ParameterExpr::RemoveLargestSuffixPattern {
                parameter,
                indirect,
                pattern: text,
            }
            | ParameterExpr::RemoveSmallestPrefixPattern {
                parameter,
                indirect,
                pattern: text,
            }
            | ParameterExpr::RemoveLargestPrefixPattern {
                parameter,
                indirect,
                pattern: text,
            }
            | ParameterExpr::UppercaseFirstChar {
                parameter,
                indirect,
                pattern: text,
            }
            | ParameterExpr::UppercasePattern {
                parameter,
                indirect,
                pattern: text,
            }
            | ParameterExpr::LowercaseFirstChar {
                parameter,
                indirect,
                pattern: text,
            }
            | ParameterExpr::LowercasePattern {
                parameter,
                indirect,
                pattern: text,
            } => {
                self.named(parameter, *indirect, place);
                self.optional(text.as_deref(), place);
            }
            ParameterExpr::AssignDefaultValues {
                parameter,
                indirect,
                default_value,
                ..
            } => {
                self.named(parameter, *indirect, place);
                if let Some(text) = default_value {
                    let value = self.word(text, place);
                    self.check_literal(&value);
                }
                if let Parameter::Named(name) = parameter {
                    let name = name.clone();
                    self.lost(&name);
                }
            }
            ParameterExpr::ParameterLength {
                parameter,
                indirect,
            } => {
                self.named(parameter, *indirect, place);
            }
            ParameterExpr::Substring {
                parameter,
                indirect,
                offset,
                length,
            } => {
                self.named(parameter, *indirect, place);
                self.expression(offset, place);
                if let Some(length) = length {
                    self.expression(length, place);
                }
            }
            ParameterExpr::Transform {
                parameter,
                indirect,
                op,
            } => {
                self.named(parameter, *indirect, place);
                self.transform(op);
            }
            ParameterExpr::ReplaceSubstring {
                parameter,
                indirect,
                pattern,
                replacement,
                ..
            } => {
                self.named(parameter, *indirect, place);
                self.optional(Some(pattern), place);
                self.optional(replacement.as_deref(), place);
            }
            ParameterExpr::VariableNames { .. } | ParameterExpr::MemberKeys { .. } => {}
        }
        Part::Dynamic
    }

    fn transform(&mut self, op: &ParameterTransformOp) {
        match op {
            ParameterTransformOp::PromptExpand => {
                self.refuse("unsafe_construct", "command expands a value as a prompt");
            }
            ParameterTransformOp::CapitalizeInitial
            | ParameterTransformOp::ExpandEscapeSequences
            | ParameterTransformOp::PossiblyQuoteWithArraysExpanded { .. }
            | ParameterTransformOp::Quoted
            | ParameterTransformOp::ToAssignmentLogic
            | ParameterTransformOp::ToAttributeFlags
            | ParameterTransformOp::ToLowerCase
            | ParameterTransformOp::ToUpperCase => {}
        }
    }

    fn optional(&mut self, text: Option<&str>, place: &Place) {
        if let Some(text) = text {
            self.word(text, place);
        }
    }

    fn expression(&mut self, expression: &UnexpandedArithmeticExpr, place: &Place) {
        self.arithmetic(&expression.value, place);
    }

    fn named(&mut self, parameter: &Parameter, indirect: bool, place: &Place) {
        if indirect {
            // The value is evaluated as a name, with its subscript.
            self.refuse(
                "unsafe_construct",
                "command expands a variable by a computed name",
            );
        }
        match parameter {
            Parameter::NamedWithIndex { index, .. } => self.arithmetic(index, place),
            Parameter::Positional(_)
            | Parameter::Special(_)
            | Parameter::Named(_)
            | Parameter::NamedWithAllIndices { .. } => {}
        }
    }
}

fn text_part(text: &str, quoted: bool) -> Part {
    Part::Text {
        text: text.to_owned(),
        quoted,
    }
}

fn tilde_part(tilde: &TildeExpr) -> Part {
    match tilde {
        TildeExpr::Home => Part::Tilde(String::new()),
        TildeExpr::UserHome(user) => Part::Tilde(user.clone()),
        TildeExpr::WorkingDir
        | TildeExpr::OldWorkingDir
        | TildeExpr::NthDirFromTopOfDirStack { .. }
        | TildeExpr::NthDirFromBottomOfDirStack { .. } => Part::Dynamic,
    }
}

/// The body of exactly `"$(cat <<'TAG'⏎…⏎TAG⏎)"`, where the first line that is TAG is the last.
fn commit_idiom(raw: &str) -> Option<&str> {
    let rest = raw.strip_prefix("\"$(cat <<'")?;
    let (tag, rest) = rest.split_once("'\n")?;
    if tag.is_empty()
        || !tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return None;
    }
    let body = rest.strip_suffix("\n)\"")?.strip_suffix(tag)?;
    let is_last_line = body.is_empty() || body.ends_with('\n');
    let has_tag = body.lines().any(|line| line == tag);
    (is_last_line && !has_tag).then_some(body)
}

/// The parser cuts the word around such a document short when no quotes surround it.
fn has_expanded_here_document(text: &str) -> bool {
    text.match_indices("<<").any(|(at, _)| {
        let rest = text[at + 2..].trim_start_matches('-').trim_start();
        !rest.starts_with(['\'', '"', '\\', '<'])
    })
}

/// Every text that brace lists make; none when there are too many.
fn expand(pieces: &[BraceExpressionOrText]) -> Option<Vec<String>> {
    let mut made = vec![String::new()];
    for piece in pieces {
        let choices = match piece {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(list) => expand_list(list)?,
        };
        if made.len() * choices.len() > MAX_BRACE_WORDS {
            return None;
        }
        made = made
            .iter()
            .flat_map(|start| choices.iter().map(move |choice| format!("{start}{choice}")))
            .collect();
    }
    Some(made)
}

fn expand_list(list: &BraceExpression) -> Option<Vec<String>> {
    let mut choices = Vec::new();
    for member in list {
        match member {
            BraceExpressionMember::NumberSequence { start, end, .. } => {
                let (low, high) = (*start.min(end), *start.max(end));
                if low.abs_diff(high) >= MAX_BRACE_WORDS as u64 {
                    // A number is neither a command nor an option: its bounds stand for all.
                    choices.extend([low.to_string(), high.to_string()]);
                } else {
                    choices.extend((low..=high).map(|number| number.to_string()));
                }
            }
            BraceExpressionMember::CharSequence { start, end, .. } => {
                let (low, high) = (*start.min(end), *start.max(end));
                choices.extend((low..=high).map(|c| c.to_string()));
            }
            BraceExpressionMember::Child(pieces) => choices.extend(expand(pieces)?),
        }
        if choices.len() > MAX_BRACE_WORDS {
            return None;
        }
    }
    Some(choices)
}
