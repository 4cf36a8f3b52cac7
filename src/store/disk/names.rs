//! Names of files for ids that may hold anything.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Longest id that is a name by itself, in bytes.
const LONGEST: usize = 100;
/// Bytes of the digest in a name.
const DIGEST: usize = 16;
/// Beginnings of the names that a session's folder uses for its own files.
const RESERVED: [&str; 3] = ["entries.", "meta.", "transcript."];

/// The name for an id: the id itself when it is plain, otherwise `~` and the beginning of its SHA-256.
/// No two ids share a name, also where the file system folds case.
pub fn file_name(id: &str) -> String {
    if is_plain(id) {
        return id.to_owned();
    }
    let digest = Sha256::digest(id.as_bytes());
    let mut name = String::from("~");
    for byte in digest.iter().take(DIGEST) {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn is_plain(id: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let starts_plain =
        id.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    starts_plain
        && id.len() <= LONGEST
        && id.bytes().all(is_inner)
        && !id.contains("..")
        && id != "sub"
        && !RESERVED.iter().any(|reserved| id.starts_with(reserved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_are_names_and_all_others_digests() {
        for id in ["a", "0", "a.b_c-d", "3f2b8a1e-0000-4000-8000-000000000000"] {
            assert_eq!(file_name(id), id);
        }
        for id in [
            "",
            "A",
            ".",
            "..",
            "a..b",
            "a/b",
            "a\\b",
            "-a",
            "_a",
            "~a",
            "é",
            "a b",
            "a\u{0}",
            "sub",
            "meta.json",
            "entries.jsonl",
            "transcript.json",
            ".lock",
            &"a".repeat(101),
        ] {
            let name = file_name(id);
            assert_eq!((name.len(), name.as_bytes()[0]), (33, b'~'), "{id:?}");
        }
        assert_eq!(file_name("A"), "~559aead08264d5795d3909718cdd05ab");
    }
}
