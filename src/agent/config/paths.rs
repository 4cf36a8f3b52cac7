//! Which directories an agent may be given.

use std::path::{Component, Path, PathBuf};

use crate::error::{KernelError, Result};

/// Refuses the host's own `~/.claude`, or anything below it, also through links.
pub fn refuse_claude_home(cwd: &str, home: Option<&str>) -> Result<()> {
    let Some(home) = home else { return Ok(()) };
    let forbidden = real(&Path::new(home).join(".claude"));
    if real(Path::new(cwd)).starts_with(&forbidden) {
        return Err(KernelError::invalid(
            "config.cwd cannot point at host ~/.claude or below: choose a directory of your own",
        ));
    }
    Ok(())
}

/// Whether two paths name one directory.
pub fn is_same(a: &str, b: &str) -> bool {
    real(Path::new(a)) == real(Path::new(b))
}

/// The path without links and dots, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => {
                result.push(other);
                result = result.canonicalize().unwrap_or(result);
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claude_home_is_refused_through_links_and_dots() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir_all(path(".claude/skills")).unwrap();
        std::os::unix::fs::symlink(path(".claude"), path("link")).unwrap();
        let check = |cwd: &str| refuse_claude_home(&path(cwd), home.path().to_str());
        for cwd in [
            ".claude",
            ".claude/skills",
            "link",
            "link/new",
            "x/../.claude",
            "./.claude/",
        ] {
            assert!(
                check(cwd)
                    .unwrap_err()
                    .message()
                    .contains("cannot point at host"),
                "{cwd}"
            );
        }
        for cwd in ["", "project", ".claude2"] {
            assert!(check(cwd).is_ok(), "{cwd}");
        }
    }

    #[test]
    fn directories_are_compared_after_resolving() {
        assert!(is_same("/tmp/a/../b", "/tmp/b/"));
        assert!(!is_same("/tmp/a", "/tmp/b"));
    }
}
