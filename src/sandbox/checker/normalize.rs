//! `SandboxPathNormalizer`: the absolute path that the kernel would open, found component by component.

use std::path::{Path, PathBuf};

use super::environment::{CheckerEnv, Platform};

/// Links that one path may pass.
const MAX_LINKS: usize = 40;
/// Longest path, in bytes.
pub(super) const MAX_PATH: usize = 4_096;
/// Names below `/proc/<pid>` that lead to places the path does not say.
const MAGIC: [&str; 6] = ["root", "cwd", "exe", "fd", "map_files", "task"];

/// Why a path has no certain target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    Empty,
    TooLong,
    Nul,
    UnknownHome,
    TooManyLinks,
    /// `..` after a component that does not exist.
    ParentOfMissing,
    /// A link of `/proc` or `/dev/fd`, or a form of Windows that names no plain file.
    Magic,
    Unreadable,
}

/// The absolute path that `path` leads to, links resolved. Components that do not exist are kept.
pub fn normalize(path: &str, env: &CheckerEnv) -> Result<String, Unresolved> {
    if path.is_empty() {
        return Err(Unresolved::Empty);
    }
    if path.contains('\0') {
        return Err(Unresolved::Nul);
    }
    if path.len() > MAX_PATH {
        return Err(Unresolved::TooLong);
    }
    if env.platform == Platform::Windows {
        check_windows(path)?;
    }
    let mut walk = Walk {
        resolved: Vec::new(),
        pending: Vec::new(),
        links: 0,
        missing: None,
    };
    walk.push(&absolute(path, env)?);
    walk.run()?;
    Ok(walk.path())
}

fn check_windows(path: &str) -> Result<(), Unresolved> {
    let is_device = path.starts_with(r"\\") || path.starts_with("//");
    let after_drive = path.get(2..).unwrap_or_default();
    let has_stream = after_drive.contains(':');
    let has_short_name = path.contains('~') && !path.starts_with('~');
    if is_device || has_stream || has_short_name {
        return Err(Unresolved::Magic);
    }
    Ok(())
}

/// The text of the path made absolute; `~` only as its first component.
fn absolute(path: &str, env: &CheckerEnv) -> Result<String, Unresolved> {
    if let Some(rest) = path.strip_prefix('~') {
        let end = rest.find('/').unwrap_or(rest.len());
        let home = home_of(&rest[..end], env).ok_or(Unresolved::UnknownHome)?;
        return Ok(format!("{home}{}", &rest[end..]));
    }
    if path.starts_with('/') {
        return Ok(path.to_owned());
    }
    if env.platform == Platform::Windows && path.get(1..2) == Some(":") {
        return Ok(format!("/{}", path.replace('\\', "/")));
    }
    Ok(format!("{}/{path}", env.cwd))
}

fn home_of(user: &str, env: &CheckerEnv) -> Option<String> {
    if user.is_empty() {
        return Some(env.home.clone()).filter(|home| home.starts_with('/'));
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let home = (fields.next() == Some(user)).then(|| fields.nth(4))?;
        home.filter(|home| home.starts_with('/')).map(str::to_owned)
    })
}

struct Walk {
    resolved: Vec<String>,
    /// Components still to pass, the next one last.
    pending: Vec<String>,
    links: usize,
    /// How many components there were with the first that does not exist.
    missing: Option<usize>,
}

impl Walk {
    fn push(&mut self, path: &str) {
        let parts = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".");
        self.pending.extend(parts.rev().map(str::to_owned));
    }

    fn path(&self) -> String {
        format!("/{}", self.resolved.join("/"))
    }

    fn run(&mut self) -> Result<(), Unresolved> {
        while let Some(part) = self.pending.pop() {
            if part == ".." {
                self.climb()?;
                continue;
            }
            self.resolved.push(part);
            self.check_magic()?;
            if self.missing.is_none() {
                self.follow()?;
            }
        }
        Ok(())
    }

    /// `..` leads to the parent of what was resolved. It may take back a missing component, but not
    /// the first one: what comes into being there may be a link.
    fn climb(&mut self) -> Result<(), Unresolved> {
        if self
            .missing
            .is_some_and(|first| self.resolved.len() <= first)
        {
            return Err(Unresolved::ParentOfMissing);
        }
        self.resolved.pop();
        Ok(())
    }

    fn check_magic(&self) -> Result<(), Unresolved> {
        let parts: Vec<&str> = self.resolved.iter().map(String::as_str).collect();
        let is_magic = match parts.as_slice() {
            ["proc", process, rest @ ..] => {
                let is_process = matches!(*process, "self" | "thread-self")
                    || process.bytes().all(|byte| byte.is_ascii_digit());
                is_process && rest.iter().any(|part| MAGIC.contains(part))
            }
            ["dev", "fd", ..] => parts.len() > 2,
            _ => false,
        };
        if is_magic {
            Err(Unresolved::Magic)
        } else {
            Ok(())
        }
    }

    /// Replaces the last component by what it links to.
    fn follow(&mut self) -> Result<(), Unresolved> {
        let path = PathBuf::from(self.path());
        if is_own_process(&self.resolved) {
            // The process of the command, not this one: the name stays as it is.
            return Ok(());
        }
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.file_type().is_symlink() => self.splice(&path),
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                    self.missing = Some(self.resolved.len());
                    Ok(())
                }
                _ => Err(Unresolved::Unreadable),
            },
        }
    }

    fn splice(&mut self, link: &Path) -> Result<(), Unresolved> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Unresolved::TooManyLinks);
        }
        let target = std::fs::read_link(link).map_err(|_| Unresolved::Unreadable)?;
        let target = target.to_str().ok_or(Unresolved::Unreadable)?;
        self.resolved.pop();
        if target.starts_with('/') {
            self.resolved.clear();
        }
        self.push(target);
        Ok(())
    }
}

fn is_own_process(resolved: &[String]) -> bool {
    matches!(resolved, [proc, process] if proc == "proc" && (process == "self" || process == "thread-self"))
}
