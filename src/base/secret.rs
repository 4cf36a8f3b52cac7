//! A string that cannot be printed.

use std::fmt;

use super::text::ELLIPSIS;

/// Bytes below which a text is no secret: it would be found everywhere.
const SHORTEST: usize = 4;
const HIDDEN: &str = "***";

/// A credential. `Debug` and `Display` show a placeholder; the text is read only by [`Secret::expose`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the secret in a text that came from outside, also one that the end
    /// of an excerpt cut short.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < SHORTEST {
            return text.to_owned();
        }
        let text = text.replace(&self.0, HIDDEN);
        let mut parts: Vec<_> = text.split(ELLIPSIS).map(str::to_owned).collect();
        if let Some((_, cut)) = parts.split_last_mut() {
            for part in cut {
                self.hide_end(part);
            }
        }
        parts.join(ELLIPSIS)
    }

    /// Hides the beginning of the secret at the end of a text.
    fn hide_end(&self, text: &mut String) {
        let beginnings = self.0.char_indices().map(|(at, _)| &self.0[..at]).rev();
        let mut known = beginnings.take_while(|beginning| beginning.len() >= SHORTEST);
        if let Some(found) = known.find(|beginning| text.ends_with(beginning)) {
            text.truncate(text.len() - found.len());
            text.push_str(HIDDEN);
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("sk-12345678")), "Secret(***)");
    }

    #[test]
    fn an_echoed_secret_is_redacted() {
        let secret = Secret::new("sk-12345678");
        assert_eq!(secret.redact("bad key sk-12345678."), "bad key ***.");
    }

    #[test]
    fn a_secret_that_an_excerpt_cut_is_redacted() {
        let secret = Secret::new("sk-12345678");
        for (text, redacted) in [
            ("bad key sk-12345…", "bad key ***…"),
            ("sk-1… sk-1234567… sk-12", "***… ***… sk-12"),
            ("a sk…", "a sk…"),
        ] {
            assert_eq!(secret.redact(text), redacted);
        }
    }
}
