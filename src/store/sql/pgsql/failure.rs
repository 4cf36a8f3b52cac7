//! From what the server says to errors of the kernel. The url and what it holds are never told.

use tokio_postgres::error::DbError;

use crate::error::{ErrorKind, KernelError};

/// Classes of SQLSTATE that a later call may not meet: connection, resources, operator, conflict
/// between transactions, system.
const PASSING: [&str; 5] = ["08", "53", "57", "40", "58"];
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The server cannot be used now.
pub fn unavailable(what: &str) -> KernelError {
    KernelError::new(ErrorKind::Store, format!("session.url: {what}"))
}

/// The server will refuse the next call as well.
pub fn refused(what: &str) -> KernelError {
    unavailable(what).with_retryable(false)
}

/// The error for a failed call.
pub fn told(error: &tokio_postgres::Error) -> KernelError {
    match error.as_db_error() {
        Some(answer) => of_server(answer),
        None if error.is_closed() => unavailable("the server closed the connection"),
        // Its text, without its source: that one may name the host.
        None => unavailable(&format!("the server cannot be used: {error}")),
    }
}

fn of_server(answer: &DbError) -> KernelError {
    let code = answer.code().code();
    let class = code.get(..2).unwrap_or_default();
    let error = match class {
        "28" => refused("the server refused the user or the password"),
        "3D" => refused("the server has no database of this name"),
        _ if PASSING.contains(&class) || code == LOCK_NOT_AVAILABLE => {
            unavailable("the server could not do a statement now")
        }
        _ => refused("the server refused a statement"),
    };
    // What the server says of a user names it.
    match class {
        "28" | "3D" => error.advise(format!("SQLSTATE {code}")),
        _ => error.advise(format!("SQLSTATE {code}: {}", answer.message())),
    }
}
