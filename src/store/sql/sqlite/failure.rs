//! From what SQLite says to errors of the kernel.

use rusqlite::ffi::{self, ErrorCode, code_to_str};

use crate::error::{ErrorKind, KernelError};

/// Why a transaction did not come about.
pub enum Failure {
    Sql(rusqlite::Error),
    Kernel(KernelError),
}

impl Failure {
    /// Whether another writer is in the way.
    pub fn is_busy(&self) -> bool {
        matches!(
            self.code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        )
    }

    /// Whether the connection can be used again.
    pub fn leaves_sound(&self) -> bool {
        self.is_busy() || matches!(self, Self::Kernel(_))
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sql(error) => cause(error).map(|cause| cause.code),
            Self::Kernel(_) => None,
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        Self::Kernel(error)
    }
}

impl From<Failure> for KernelError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Kernel(error) => error,
            Failure::Sql(error) => told(&error),
        }
    }
}

fn cause(error: &rusqlite::Error) -> Option<&ffi::Error> {
    match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error),
        other => other.sqlite_error(),
    }
}

/// The words are those of the result code: texts of SQLite may name the path.
fn told(error: &rusqlite::Error) -> KernelError {
    let Some(cause) = cause(error) else {
        return refused(
            "the database holds values of another type than this version writes",
            false,
        );
    };
    let (what, retryable) = match cause.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            ("another writer held the database for too long", true)
        }
        ErrorCode::NotADatabase => ("the file is not an SQLite database: choose another", false),
        ErrorCode::DatabaseCorrupt => ("the database is damaged: restore it from a backup", false),
        ErrorCode::DiskFull => ("the disk is full: make room", true),
        ErrorCode::ReadOnly => ("the database is read-only: allow writing to it", false),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => (
            "the file cannot be opened: check that it may be read and written",
            false,
        ),
        ErrorCode::SystemIoFailure => ("the file system failed", true),
        _ => (
            "the database refused a statement: its tables may be those of another program",
            false,
        ),
    };
    refused(what, retryable).advise(format!("SQLite: {}", code_to_str(cause.extended_code)))
}

/// An error about the file of the store.
pub fn refused(what: &str, retryable: bool) -> KernelError {
    KernelError::new(ErrorKind::Store, format!("session.path: {what}")).with_retryable(retryable)
}
