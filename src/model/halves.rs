//! Characters that a gateway cut in the middle.
//!
//! Gateways written in JavaScript cut text between the two halves of a surrogate pair; each half
//! arrives as an escape that is no character of its own and no valid JSON string for most parsers.
//! The halves are joined again across the pieces of a block; one that never finds its other half
//! becomes U+FFFD.

use std::collections::BTreeMap;

use super::BlockDelta;

/// Two noncharacters that announce a half: the first the upper one, the second the lower one. What
/// follows them is the half, moved into the private use area.
const HIGH_MARK: char = '\u{10fffe}';
const LOW_MARK: char = '\u{10ffff}';
const PRIVATE: u32 = 0xe000;
const LOST: char = '\u{fffd}';

type Make = fn(String) -> BlockDelta;

/// Upper halves that wait for the next piece of their block.
#[derive(Debug, Default)]
pub struct Halves {
    waiting: BTreeMap<u64, (u32, Make)>,
}

impl Halves {
    /// A piece of block `key`, with halves joined across pieces.
    pub fn join(&mut self, key: u64, delta: BlockDelta) -> BlockDelta {
        let (make, text): (Make, String) = match delta {
            BlockDelta::Text(text) => (BlockDelta::Text, text),
            BlockDelta::Thinking(text) => (BlockDelta::Thinking, text),
            BlockDelta::Input(text) => (BlockDelta::Input, text),
            other => return other,
        };
        let waiting = self.waiting.remove(&key).map(|(high, _)| high);
        let (joined, high) = join(waiting, text);
        self.waiting.extend(high.map(|high| (key, (high, make))));
        make(joined)
    }

    /// What is left of block `key` when no further piece comes.
    pub fn end(&mut self, key: u64) -> Option<BlockDelta> {
        self.waiting
            .remove(&key)
            .map(|(_, make)| make(LOST.to_string()))
    }
}

/// A text with its halves joined, the first of them with a half that waits; also the half that is
/// left at the end.
fn join(mut high: Option<u32>, text: String) -> (String, Option<u32>) {
    if high.is_none() && !text.contains([HIGH_MARK, LOW_MARK]) {
        return (text, None);
    }
    let mut joined = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            HIGH_MARK => {
                joined.extend(high.take().map(|_| LOST));
                high = half(&mut chars);
            }
            LOW_MARK => {
                let low = half(&mut chars);
                joined.push(high.take().zip(low).and_then(pair).unwrap_or(LOST));
            }
            char => {
                joined.extend(high.take().map(|_| LOST));
                joined.push(char);
            }
        }
    }
    (joined, high)
}

/// The JSON text with every escape of a half alone replaced by its mark; none when there is none.
pub fn mark(json: &str) -> Option<String> {
    let mut marked = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        let Some(unit) = unit(json, escape) else {
            // Two bytes, so that an escaped backslash does not begin an escape.
            at = (escape + 2).min(json.len());
            while !json.is_char_boundary(at) {
                at += 1;
            }
            continue;
        };
        at = escape + 6;
        if is_high(unit) && unit_is_low(json, at) {
            at += 6;
        } else if is_high(unit) || is_low(unit) {
            marked.push_str(&json[done..escape]);
            marked.push(if is_high(unit) { HIGH_MARK } else { LOW_MARK });
            marked.extend(char::from_u32(PRIVATE + (unit - 0xd800)));
            done = at;
        }
    }
    (done > 0).then(|| marked + &json[done..])
}

/// A text without marks: halves become U+FFFD.
pub fn unmark(text: String) -> String {
    let (mut joined, high) = join(None, text);
    joined.extend(high.map(|_| LOST));
    joined
}

/// The code unit of the escape `\uXXXX` at a position.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

fn unit_is_low(json: &str, at: usize) -> bool {
    unit(json, at).is_some_and(is_low)
}

fn is_high(unit: u32) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u32) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

fn half(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    Some(u32::from(chars.next()?).checked_sub(PRIVATE)? + 0xd800)
}

fn pair((high, low): (u32, u32)) -> Option<char> {
    char::from_u32(0x10000 + (high.checked_sub(0xd800)? << 10) + low.checked_sub(0xdc00)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(halves: &mut Halves, key: u64, json: &str) -> String {
        match halves.join(key, BlockDelta::Text(read(json))) {
            BlockDelta::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn read(json: &str) -> String {
        let marked = mark(json);
        serde_json::from_str(marked.as_deref().unwrap_or(json)).unwrap()
    }

    #[test]
    fn halves_in_two_pieces_are_joined() {
        let mut halves = Halves::default();
        let first = piece(&mut halves, 1, r#""ab\ud83d""#);
        assert_eq!(first, "ab");
        assert_eq!(piece(&mut halves, 2, r#""other""#), "other");
        assert_eq!(piece(&mut halves, 1, r#""\ude00c""#), "😀c");
        assert_eq!(halves.end(1), None);
    }

    #[test]
    fn halves_that_stay_alone_are_lost_alone() {
        let mut halves = Halves::default();
        assert_eq!(
            piece(&mut halves, 1, r#""a\ude00b\ud83d\ud83dc""#),
            "a\u{fffd}b\u{fffd}\u{fffd}c"
        );
        assert_eq!(piece(&mut halves, 1, r#""x\ud83d""#), "x");
        assert_eq!(piece(&mut halves, 1, r#""y""#), "\u{fffd}y");
        piece(&mut halves, 1, r#""\ud83d""#);
        assert_eq!(halves.end(1), Some(BlockDelta::Text("\u{fffd}".into())));
    }

    #[test]
    fn whole_pairs_and_escaped_backslashes_are_left_alone() {
        for json in [
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#""plain 北京""#,
            r#""\u4e2d\n""#,
            r#""\\北""#,
        ] {
            assert_eq!(mark(json), None, "{json}");
        }
        assert_eq!(unmark(read(r#""\\\ud83d!""#)), "\\\u{fffd}!");
    }
}
