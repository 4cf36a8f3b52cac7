//! Identifiers.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A random UUID, as text.
pub fn random() -> String {
    Uuid::new_v4().to_string()
}

/// A UUID that is the same for the same parts, as text (version 8 of RFC 9562, from a SHA-256).
pub fn derived(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length: the border between two parts counts.
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes)
        .into_uuid()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_depend_on_every_part_and_its_borders() {
        assert_eq!(derived(&["a", "bc"]), derived(&["a", "bc"]));
        assert_ne!(derived(&["a", "bc"]), derived(&["ab", "c"]));
        assert_eq!(derived(&["a"]).as_bytes()[14], b'8');
    }
}
