//! Cutting text without breaking it.

/// Ends a text that was cut.
pub const ELLIPSIS: &str = "…";

/// What was left out of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Characters before the cut.
    pub original: usize,
    /// Characters that were left out.
    pub removed: usize,
}

/// Keeps the first and the last half of `limit` characters, with a line between them that says what
/// is missing. Never cuts a code point. `None` when the text fits.
pub fn keep_ends(text: &str, limit: usize) -> Option<(String, Cut)> {
    // Bytes are an upper bound of characters: most texts need no count.
    if text.len() <= limit {
        return None;
    }
    let original = text.chars().count();
    if original <= limit {
        return None;
    }
    let tail = limit / 2;
    let head_end = byte_of_char(text, limit - tail);
    let tail_start = byte_of_char(text, original - tail);
    let removed = original - limit;
    let (head, end) = (&text[..head_end], &text[tail_start..]);
    let marked = format!("{head}\n[... {removed} of {original} characters left out ...]\n{end}");
    Some((marked, Cut { original, removed }))
}

/// The first `limit` characters, with an ellipsis when something was cut.
pub fn excerpt(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}{ELLIPSIS}", &text[..end]),
    }
}

fn byte_of_char(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_within_the_limit_is_untouched() {
        assert_eq!(keep_ends("北京😀", 3), None);
    }

    #[test]
    fn both_ends_are_kept_and_the_size_is_stated() {
        let (text, cut) = keep_ends(&format!("A{}Z", "😀".repeat(98)), 10).unwrap();
        assert!(text.starts_with("A😀😀😀😀\n"));
        assert!(text.ends_with("\n😀😀😀😀Z"));
        assert!(text.contains("90 of 100 characters"));
        assert_eq!(
            cut,
            Cut {
                original: 100,
                removed: 90
            }
        );
    }

    #[test]
    fn excerpts_end_with_an_ellipsis() {
        assert_eq!(excerpt("short", 10), "short");
        assert_eq!(excerpt("北京天气", 2), "北京…");
    }
}
