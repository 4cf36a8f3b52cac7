//! Identifiers.

use uuid::Uuid;

/// A random UUID, as text.
pub fn random() -> String {
    Uuid::new_v4().to_string()
}
