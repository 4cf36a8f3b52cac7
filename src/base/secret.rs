//! A string that cannot be printed.

use std::fmt;

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

    /// Replaces every occurrence of the secret in a text that came from outside.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < 4 {
            text.to_owned()
        } else {
            text.replace(&self.0, "***")
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
}
