//! What the kernel and `oak-helper` say to each other: JSON behind its length, over a socket.
//!
//! Compiled into both programs, so it knows nothing of either.

use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Changes when the messages do.
pub const PROTOCOL: u32 = 1;
/// A helper works with the kernel of its own package only.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longest message, in bytes: more than a system takes as arguments and environment.
pub const MAX_MESSAGE: usize = 16 << 20;
/// Standard input, output and error of the program travel with [`Order::Start`].
pub const STREAMS: usize = 3;

const PREFIX: usize = size_of::<u32>();

/// What the kernel says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Order {
    /// The first order, and the only one of its kind.
    Start(Launch),
    /// SIGTERM to the tree, SIGKILL after the grace.
    #[serde(rename_all = "camelCase")]
    Terminate { grace_ms: u64 },
}

/// What to run.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    pub program: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
    pub limits: Limits,
    /// Grace of an end that nobody orders: of the program itself or of the kernel.
    pub grace_ms: u64,
}

/// Arguments and environment may hold secrets.
impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// Limits on each process of the child's tree; none: no limit of our own. A limit above that of this
/// process has no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Address space.
    pub memory_bytes: Option<u64>,
    /// Time on a processor: SIGXCPU at the limit, SIGKILL a second later.
    pub cpu_seconds: Option<u64>,
    /// One more than the highest number of a descriptor.
    pub open_files: Option<u64>,
    /// Size to which a file can be written: SIGXFSZ, or `EFBIG` when that is ignored.
    pub file_bytes: Option<u64>,
    /// Processes and threads of the user; no limit for root.
    pub processes: Option<u64>,
}

/// What the helper says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Report {
    /// The first message. Its form is the same in every version.
    Hello { protocol: u32, version: String },
    /// The program runs.
    Started { pid: u32 },
    /// The program does not run; the helper ends.
    Refused { step: Step, errno: i32 },
    /// The program has ended. What it left running is being ended.
    Exited { status: ExitStatus },
    /// Nothing is left; the helper ends.
    Done,
}

/// Where the start of a program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Entering its working directory.
    Folder,
    /// Running the program.
    Program,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
    /// Nobody saw it end.
    Unknown,
}

/// A message as bytes.
pub fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - PREFIX;
    if length > MAX_MESSAGE {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let prefix = u32::try_from(length).map_err(io::Error::other)?;
    bytes[..PREFIX].copy_from_slice(&prefix.to_le_bytes());
    Ok(bytes)
}

/// Takes the first message out of what has arrived. None when it is not complete.
pub fn take<T: DeserializeOwned>(arrived: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some(&prefix) = arrived.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_le_bytes(prefix)).map_err(io::Error::other)?;
    if length > MAX_MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let end = PREFIX + length;
    if arrived.len() < end {
        return Ok(None);
    }
    let message = serde_json::from_slice(&arrived[PREFIX..end])?;
    arrived.drain(..end);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_out_one_by_one() {
        let exited = Report::Exited {
            status: ExitStatus::Signal(9),
        };
        let mut bytes = encode(&exited).unwrap();
        bytes.extend(encode(&Report::Done).unwrap());
        let last = bytes.pop().unwrap();
        assert_eq!(take(&mut bytes).unwrap(), Some(exited));
        assert_eq!(take::<Report>(&mut bytes).unwrap(), None);
        bytes.push(last);
        assert_eq!(take(&mut bytes).unwrap(), Some(Report::Done));
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_length_without_reason_is_refused() {
        let mut bytes = vec![0xff; 8];
        assert!(take::<Report>(&mut bytes).is_err());
        let arguments = "x".repeat(MAX_MESSAGE);
        assert!(encode(&arguments).is_err());
    }
}
