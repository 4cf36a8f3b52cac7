//! Whether a path lies in the allowed folders.

use serde::Serialize;

use super::environment::{CheckerEnv, Platform};
use super::normalize::{Unresolved, normalize};
use super::settings::SandboxSettings;

/// What is done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Read,
    Write,
}

/// Why a path is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// Under a denied folder.
    Denied,
    /// Under none of the allowed folders.
    NotAllowed,
    /// Where it leads cannot be said.
    Unresolved,
}

impl From<Unresolved> for Outside {
    fn from(_: Unresolved) -> Self {
        Self::Unresolved
    }
}

/// The path lists, resolved.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about the lists"
)]
pub(super) struct Scope {
    env: CheckerEnv,
    read: Vec<String>,
    write: Vec<String>,
    pub(super) denied: Vec<String>,
    /// Lists as they were given: an entry that cannot be resolved limits all the same.
    has_read: bool,
    has_write: bool,
    broken: bool,
    active: bool,
}

impl Scope {
    pub(super) fn new(settings: &SandboxSettings, env: &CheckerEnv) -> Self {
        let mut scope = Self {
            env: env.clone(),
            read: Vec::new(),
            write: Vec::new(),
            denied: Vec::new(),
            has_read: !settings.allowed_read_paths.is_empty(),
            has_write: !settings.allowed_write_paths.is_empty(),
            broken: false,
            active: settings.has_path_rules(),
        };
        scope.read = scope.entries(&settings.allowed_read_paths);
        scope.write = scope.entries(&settings.allowed_write_paths);
        scope.denied = scope.entries(&settings.denied_paths);
        scope.broken = scope.denied.len() != settings.denied_paths.len();
        scope
    }

    fn entries(&self, paths: &[String]) -> Vec<String> {
        let resolved = paths
            .iter()
            .filter_map(|path| normalize(path, &self.env).ok());
        resolved.map(|path| self.folded(&path)).collect()
    }

    fn folded(&self, path: &str) -> String {
        fold(path, self.env.platform)
    }

    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// Whether a list limits reading.
    pub(super) fn limits_reading(&self) -> bool {
        self.has_read
    }

    /// Checks a path against the lists.
    pub(super) fn check(&self, path: &str, operation: Operation) -> Result<(), Outside> {
        if !self.active {
            return Ok(());
        }
        let path = self.folded(&normalize(path, &self.env)?);
        self.check_denied(&path)?;
        let (limited, roots) = match operation {
            Operation::Read => (self.has_read, &self.read),
            Operation::Write => (self.has_write, &self.write),
        };
        if !limited || roots.iter().any(|root| is_under(&path, root)) {
            return Ok(());
        }
        Err(Outside::NotAllowed)
    }

    /// Checks an operand of a command: what may be written may also be read.
    pub(super) fn check_operand(
        &self,
        path: &str,
        base: &str,
        operation: Operation,
    ) -> Result<(), Outside> {
        let env = CheckerEnv {
            cwd: base.to_owned(),
            ..self.env.clone()
        };
        let path = self.folded(&normalize(path, &env)?);
        self.check_denied(&path)?;
        let allowed = match operation {
            Operation::Read if self.has_read => {
                let mut roots = self.read.iter().chain(&self.write);
                roots.any(|root| is_under(&path, root))
            }
            Operation::Write if self.has_write => {
                self.write.iter().any(|root| is_under(&path, root))
            }
            Operation::Read | Operation::Write => true,
        };
        if allowed {
            Ok(())
        } else {
            Err(Outside::NotAllowed)
        }
    }

    fn check_denied(&self, path: &str) -> Result<(), Outside> {
        let is_denied = self.denied.iter().any(|entry| is_under(path, entry));
        if self.broken || is_denied {
            return Err(Outside::Denied);
        }
        Ok(())
    }

    /// Whether a denied folder lies below the path.
    pub(super) fn contains_denied(&self, path: &str, base: &str) -> bool {
        let env = CheckerEnv {
            cwd: base.to_owned(),
            ..self.env.clone()
        };
        normalize(path, &env).is_ok_and(|path| {
            let path = self.folded(&path);
            self.denied.iter().any(|entry| is_under(entry, &path))
        })
    }

    /// Whether a denied entry is exactly this path.
    pub(super) fn names(&self, path: &str) -> bool {
        self.denied.iter().any(|entry| entry == path)
    }
}

/// Whether `path` is `root` or below it, by whole components.
pub(super) fn is_under(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The spelling under which a file system compares: macOS and Windows fold case and composition.
pub(super) fn fold(text: &str, platform: Platform) -> String {
    use unicode_normalization::UnicodeNormalization;
    if !platform.folds_case() || text.is_ascii() {
        let keep = !platform.folds_case();
        return if keep {
            text.to_owned()
        } else {
            text.to_ascii_lowercase()
        };
    }
    text.nfd().flat_map(char::to_lowercase).nfc().collect()
}
