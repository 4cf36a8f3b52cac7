//! What the stores in SQL databases share: tables, statements, columns and the connections.
//!
//! The statements are those of both databases; a driver adds only what one of them can do better.
//! Drivers of the stores themselves live in the rooms of their traits.

#[cfg(feature = "pgsql")]
pub mod pgsql;
pub mod rows;
pub mod schema;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod statements;

use crate::error::{KernelError, Result};

/// Longest prefix: names of indexes must stay within the 63 bytes of PostgreSQL.
const PREFIX_MOST: usize = 32;

/// The tables of one prefix.
#[derive(Clone, Debug)]
pub struct Tables {
    prefix: String,
}

impl Tables {
    /// Tables whose names begin with `prefix`: letters, digits and `_`, at most 32, not a digit first.
    pub fn new(prefix: &str) -> Result<Self> {
        let mut letters = prefix.bytes();
        let first = letters.next();
        let is_word = first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        // Names that begin so are SQLite's own.
        let is_reserved = prefix.to_ascii_lowercase().starts_with("sqlite_");
        if !is_word || is_reserved || prefix.len() > PREFIX_MOST {
            return Err(KernelError::invalid(format!(
                "session.tablePrefix must be letters, digits and '_', not a digit first, at most \
                 {PREFIX_MOST} characters, and not begin with 'sqlite_'"
            )));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
        })
    }

    /// A statement with the prefix in the place of `{p}`.
    pub fn sql(&self, template: &str) -> String {
        template.replace("{p}", &self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_word() {
        let tables = Tables::new("oak_").unwrap();
        assert_eq!(tables.sql("\"{p}a\" \"{p}b\""), "\"oak_a\" \"oak_b\"");
        let long = "a".repeat(33);
        for prefix in ["", "1a", "a-b", "a\"b", "a b", "ü", "SQLite_x", &long] {
            let error = Tables::new(prefix).err().unwrap();
            assert!(error.message().contains("session.tablePrefix"), "{prefix}");
        }
    }
}
