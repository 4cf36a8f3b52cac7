//! Identifiers.

use uuid::Uuid;

/// A random UUID, as text.
pub fn random() -> String {
    Uuid::new_v4().to_string()
}

/// A UUID that is the same for the same parts: repeating a write under it is harmless.
pub fn derived(parts: &[&str]) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.join("\0").as_bytes()).to_string()
}
