//! What is refused before the parser sees it: text that deceives the eye, and text that would make
//! the parser recurse or backtrack without end.

use brush_parser::{Token, unquote_str};

use super::{Finding, MAX_BYTES};

/// Openers of nested constructs that one text may hold; bounds the recursion of the tokenizer.
const MAX_OPENERS: usize = 128;
/// Compound commands that one text may open; bounds the recursion of the parser.
const MAX_COMPOUNDS: usize = 64;
/// Openers in one word that the parser may have to try twice each.
const MAX_RETRIES: usize = 14;
/// Subscripts that one word may hold.
const MAX_SUBSCRIPTS: usize = 24;
/// Sum of what all words of a command may cost, in steps of the worst case.
pub(super) const MAX_COST: u64 = 1 << 16;
/// Longest run of digits where the parser reads a number.
const MAX_DIGITS: usize = 9;

fn unparseable(reason: impl Into<String>) -> Finding {
    Finding {
        code: "unparseable",
        reason: reason.into(),
    }
}

fn too_complex(what: &str) -> Finding {
    Finding {
        code: "too_complex",
        reason: format!("command has too many {what}"),
    }
}

/// Refuses what no command may contain, whatever its structure is.
pub(super) fn check_text(text: &str) -> Result<(), Finding> {
    if text.len() > MAX_BYTES {
        return Err(Finding {
            code: "too_long",
            reason: format!("command is longer than {MAX_BYTES} bytes"),
        });
    }
    match text.chars().find(|&c| is_forbidden(c)) {
        Some(c) => Err(unparseable(format!(
            "command contains the control character U+{:04X}",
            u32::from(c)
        ))),
        None => Ok(()),
    }
}

fn is_forbidden(c: char) -> bool {
    let is_bidirectional = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_bidirectional || (c.is_control() && c != '\t' && c != '\n')
}

/// Characters that look like nothing or like a blank, and are neither to the shell.
pub(super) fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{2028}' | '\u{2029}'
    ) || (c.is_whitespace() && !c.is_ascii())
}

/// Bounds what the tokenizer does with a script.
pub(super) fn check_structure(text: &str) -> Result<(), Finding> {
    // As the tokenizer reads it: continued lines are one.
    let text = text.replace("\\\n", "");
    if openers(&text) > MAX_OPENERS {
        return Err(too_complex("substitutions"));
    }
    check_numbers(&text)
}

/// Constructs that may nest, whether they do or not. A plain `${name}` cannot.
fn openers(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut count = 0;
    for (at, pair) in bytes.windows(2).enumerate() {
        count += usize::from(match pair {
            b"$(" | b"$[" | b"<(" | b">(" => true,
            b"${" => !is_plain_parameter(&bytes[at + 2..]),
            _ => false,
        });
    }
    count + text.matches('`').count() / 2
}

fn is_plain_parameter(rest: &[u8]) -> bool {
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    end.is_some_and(|end| end > 0 && rest[end] == b'}')
}

/// The parser reads numbers after `~`, `{`, `.`, in parameters and before redirections without a limit
/// of their size.
fn check_numbers(text: &str) -> Result<(), Finding> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let run = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
        let length = run.count();
        let before = bytes[..at]
            .iter()
            .rev()
            .find(|byte| !b"+-#!".contains(byte));
        let after = bytes.get(at + length);
        let is_read = before.is_some_and(|byte| b"~{.".contains(byte))
            || after.is_some_and(|byte| b"<>".contains(byte));
        if length > MAX_DIGITS && is_read {
            return Err(unparseable("command contains a number that is too large"));
        }
        at += length;
    }
    Ok(())
}

/// Bounds what the parser does with the tokens of a script.
pub(super) fn check_tokens(tokens: &[Token]) -> Result<(), Finding> {
    let mut compounds = 0;
    let mut cases = 0;
    let mut parens = 0;
    let mut doubled = false;
    let mut previous = "";
    check_documents(tokens)?;
    for token in tokens {
        let text = token.to_str();
        match text {
            "(" => {
                parens += 1;
                doubled |= previous == "(";
            }
            "case" => cases += 1,
            "{" | "if" | "while" | "until" | "for" | "coproc" | "function" => compounds += 1,
            _ => {}
        }
        previous = text;
        if subscripts(text) > MAX_SUBSCRIPTS {
            return Err(too_complex("subscripts in one word"));
        }
    }
    if compounds + cases + parens > MAX_COMPOUNDS || cases > MAX_RETRIES {
        return Err(too_complex("compound commands"));
    }
    if doubled && parens > MAX_RETRIES {
        return Err(too_complex("parentheses"));
    }
    Ok(())
}

/// After `((` the tokenizer takes `<<` for a shift, and the parser for a here-document whose body and
/// end are the next two tokens, whatever these are: such a script is refused.
fn check_documents(tokens: &[Token]) -> Result<(), Finding> {
    let misread = || unparseable("command has a here-document that cannot be told from a shift");
    let has_double = tokens.windows(2).any(|pair| {
        let adjacent = pair[0].location().end.index == pair[1].location().start.index;
        adjacent && is_operator(&pair[0], "(") && is_operator(&pair[1], "(")
    });
    for (at, token) in tokens.iter().enumerate() {
        if !is_operator(token, "<<") && !is_operator(token, "<<-") {
            continue;
        }
        let tag = tokens.get(at + 1).map(|tag| unquote_str(tag.to_str()));
        let end = tokens.get(at + 3).map(|end| end.to_str().to_owned());
        if has_double || tag.is_none() || tag != end {
            return Err(misread());
        }
    }
    Ok(())
}

fn is_operator(token: &Token, operator: &str) -> bool {
    matches!(token, Token::Operator(text, _) if text == operator)
}

/// Subscripts that the parser may try to read, and to read again.
fn subscripts(word: &str) -> usize {
    let bytes = word.as_bytes();
    let name = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    let is_assignment = bytes.get(name.count()) == Some(&b'[');
    if !is_assignment && !word.contains('$') {
        return 0;
    }
    let opens =
        |pair: &&[u8]| pair[1] == b'[' && (pair[0].is_ascii_alphanumeric() || pair[0] == b'_');
    bytes.windows(2).filter(opens).count()
}

/// What the parser may need for a word, in steps of the worst case.
pub(super) fn word_cost(word: &str) -> Result<u64, Finding> {
    let parens = word.bytes().filter(|&byte| byte == b'(').count();
    let parameters = word.match_indices("${");
    let arithmetic = word.contains("$((") || word.contains("$[") || word.contains("${");
    let retries = parens
        + if arithmetic { subscripts(word) } else { 0 }
        + parameters
            .filter(|(at, _)| !is_plain_parameter(&word.as_bytes()[at + 2..]))
            .count();
    if retries > MAX_RETRIES {
        return Err(too_complex("nested substitutions in one word"));
    }
    Ok(1 << retries)
}

/// Whether the brace lists of a word may be expanded.
pub(super) fn check_braces(word: &str) -> Result<(), Finding> {
    if word.bytes().filter(|&byte| byte == b'{').count() > MAX_RETRIES / 2 {
        return Err(too_complex("brace lists in one word"));
    }
    word_cost(word).map(|_| ())
}

/// Whether text may be an arithmetic expression: two operands never stand side by side in one, and a
/// shell that finds them there may take the text for commands.
pub(super) fn is_arithmetic(text: &str) -> bool {
    let ends = |c: char| c.is_alphanumeric() || "_'\"})]".contains(c);
    let starts = |c: char| c.is_alphanumeric() || "_'\"$`\\{".contains(c);
    let words: Vec<&str> = text.split_whitespace().collect();
    let side_by_side = words
        .windows(2)
        .any(|pair| pair[0].ends_with(ends) && pair[1].starts_with(starts));
    let shifts = text.contains("<<") && (text.contains("$(") || text.contains('`'));
    !side_by_side && !shifts && !text.contains(';')
}
