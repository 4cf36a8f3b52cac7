//! The program `oak-helper`, by which children are started.

use std::path::PathBuf;

/// Where `oak-helper` is.
#[derive(Clone, Debug)]
pub struct Helper {
    path: PathBuf,
}

impl Helper {
    /// Nothing is checked before the first child is started.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}
