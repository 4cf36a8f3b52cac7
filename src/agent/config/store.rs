//! `session.database` and what belongs to it: which of the kernel's own drivers keeps the sessions.

use std::path::{Path, PathBuf};

use super::Fields;
use crate::error::{KernelError, Result};
use crate::store::session::{Durability, StoreSpec};

/// Where sessions lie when no path is given, below the home directory.
const DEFAULT_FOLDER: &str = ".open-agent-sdk/sessions";
/// Largest transcript that a store of whole sessions reads, unless another is set: 64 MiB.
const MAX_BYTES: u64 = 64 << 20;
/// Largest whole number that JavaScript counts exactly.
const MOST_BYTES: u64 = (1 << 53) - 1;
const DEFAULT_PREFIX: &str = "oak_";
const LONGEST_PREFIX: usize = 32;

/// The store that `database`, `path`, `url`, `tablePrefix` and `durability` describe. `home` is needed
/// for a `file` database without a path.
pub fn spec(fields: &Fields<'_>, home: Option<&str>) -> Result<StoreSpec> {
    let Settings {
        path,
        url,
        prefix,
        durability,
    } = settings(fields)?;
    match fields.string("database")?.unwrap_or_default() {
        "memory" => Ok(StoreSpec::Memory),
        "file" => Ok(StoreSpec::File {
            root: path.map_or_else(|| default_folder(fields, "path", home), Ok)?,
            durability,
        }),
        "sqlite" => Ok(StoreSpec::Sqlite {
            path: path.ok_or_else(|| fields.wrong("path", "given for the database sqlite"))?,
            prefix,
            durability,
        }),
        "pgsql" => Ok(StoreSpec::Pgsql {
            url: url.ok_or_else(|| fields.wrong("url", "given for the database pgsql"))?,
            prefix,
        }),
        other => Err(no_driver(fields, other)),
    }
}

/// Whether the word names a database, one of later versions included.
pub fn is_known(database: &str) -> bool {
    matches!(database, "flexdb" | "memory" | "file" | "sqlite" | "pgsql")
}

/// What databases take, whichever it is.
pub struct Settings {
    path: Option<PathBuf>,
    url: Option<String>,
    prefix: String,
    durability: Durability,
}

/// Checks the settings of a database, also when none is named.
pub fn settings(fields: &Fields<'_>) -> Result<Settings> {
    Ok(Settings {
        path: fields.text("path")?.map(PathBuf::from),
        url: fields.text("url")?.map(str::to_owned),
        prefix: prefix(fields)?,
        durability: match fields.choice("durability", &["process", "fsync"])? {
            Some("fsync") => Durability::Fsync,
            _ => Durability::Process,
        },
    })
}

/// The files of a store of whole sessions.
pub struct FileSettings {
    pub root: PathBuf,
    pub durability: Durability,
    /// Largest transcript that is read, in bytes.
    pub max_bytes: u64,
}

/// What `dir`, `durability` and `maxBytes` describe. `home` is needed when there is no `dir`.
pub fn files(fields: &Fields<'_>, home: Option<&str>) -> Result<FileSettings> {
    let folder = fields.text("dir")?.map(PathBuf::from);
    let durability = match fields.choice("durability", &["process", "fsync", "rename"])? {
        Some("fsync") | None => Durability::Fsync,
        Some(_) => Durability::Process,
    };
    Ok(FileSettings {
        root: folder.map_or_else(|| default_folder(fields, "dir", home), Ok)?,
        durability,
        max_bytes: fields
            .integer("maxBytes", 1..=MOST_BYTES)?
            .unwrap_or(MAX_BYTES),
    })
}

/// A prefix becomes a part of names in SQL.
fn prefix(fields: &Fields<'_>) -> Result<String> {
    let prefix = fields.text("tablePrefix")?.unwrap_or(DEFAULT_PREFIX);
    let mut characters = prefix.chars();
    let is_word = characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|other| other.is_ascii_alphanumeric() || other == '_');
    if is_word && prefix.len() <= LONGEST_PREFIX {
        return Ok(prefix.to_owned());
    }
    Err(KernelError::invalid(format!(
        "{} must be letters, digits and _, not begin with a digit, and be no longer than \
         {LONGEST_PREFIX} characters",
        fields.path("tablePrefix")
    )))
}

fn default_folder(fields: &Fields<'_>, key: &str, home: Option<&str>) -> Result<PathBuf> {
    home.map(|home| Path::new(home).join(DEFAULT_FOLDER))
        .ok_or_else(|| {
            KernelError::invalid(format!(
                "{} is missing and the user has no home directory: give a path",
                fields.path(key)
            ))
        })
}

fn no_driver(fields: &Fields<'_>, database: &str) -> KernelError {
    let path = fields.path("database");
    match database {
        "flexdb" => KernelError::not_built(format!("{path} 'flexdb'")),
        "mongo" | "mysql" => KernelError::invalid(format!(
            "{path} '{database}' is reserved for future use and not supported yet"
        )),
        _ => fields.wrong("database", "one of flexdb, memory, file, sqlite, pgsql"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::Json;

    fn read(value: &Json) -> Result<StoreSpec> {
        spec(&Fields::of("session", value).unwrap(), Some("/home/ann"))
    }

    #[test]
    fn every_database_takes_what_it_needs() {
        assert_eq!(
            read(&json!({"database": "memory", "flush": "eager"})).unwrap(),
            StoreSpec::Memory
        );
        assert_eq!(
            read(&json!({"database": "file"})).unwrap(),
            StoreSpec::File {
                root: "/home/ann/.open-agent-sdk/sessions".into(),
                durability: Durability::Process
            }
        );
        assert_eq!(
            read(&json!({"database": "sqlite", "path": "a.db", "durability": "fsync"})).unwrap(),
            StoreSpec::Sqlite {
                path: "a.db".into(),
                prefix: "oak_".into(),
                durability: Durability::Fsync
            }
        );
        assert_eq!(
            read(&json!({"database": "pgsql", "url": "postgres:///x", "tablePrefix": "t1_"}))
                .unwrap(),
            StoreSpec::Pgsql {
                url: "postgres:///x".into(),
                prefix: "t1_".into()
            }
        );
    }

    #[test]
    fn refusals_name_the_field() {
        let without_home = json!({"database": "file"});
        let fields = Fields::of("session", &without_home).unwrap();
        let error = spec(&fields, None).unwrap_err();
        assert!(error.message().contains("session.path is missing"));
        for (value, text) in [
            (json!({}), "session.database is missing"),
            (
                json!({"database": "oracle"}),
                "session.database must be one of",
            ),
            (
                json!({"database": "mysql"}),
                "reserved for future use and not supported yet",
            ),
            (
                json!({"database": "flexdb"}),
                "session.database 'flexdb' is not built",
            ),
            (json!({"database": "sqlite"}), "session.path is missing"),
            (json!({"database": "pgsql"}), "session.url is missing"),
            (
                json!({"database": "memory", "tablePrefix": "a-b"}),
                "session.tablePrefix must be",
            ),
            (
                json!({"database": "memory", "tablePrefix": "1"}),
                "session.tablePrefix must be",
            ),
            (
                json!({"database": "file", "path": 7}),
                "session.path must be",
            ),
            (
                json!({"database": "file", "durability": "maybe"}),
                "session.durability must be",
            ),
        ] {
            let error = read(&value).unwrap_err();
            assert!(
                error.message().contains(text),
                "{value}: {}",
                error.message()
            );
        }
    }
}
