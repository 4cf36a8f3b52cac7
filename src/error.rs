//! The one error type of the kernel.
//!
//! An error is made once, where the cause is known, with a message that names the field or the
//! service and says what to do. Upper floors add context, they never replace it. `docs/errors.md`
//! lists every kind; a test compares that table with [`ErrorKind::ALL`].

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

pub type Result<T, E = KernelError> = std::result::Result<T, E>;

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $class:literal, retryable: $retryable:literal;)+) => {
        /// What went wrong, as a closed list that programs can branch on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)+
        }

        impl ErrorKind {
            /// Every kind, in the order of `docs/errors.md`.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// The stable `code` that JavaScript sees.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$kind => $code,)+ }
            }

            /// The JavaScript class of the error.
            pub const fn class(self) -> &'static str {
                match self { $(Self::$kind => $class,)+ }
            }

            /// Whether the same call may succeed later without a change by the user.
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$kind => $retryable,)+ }
            }
        }
    };
}

error_kinds! {
    /// A configuration value or an argument has a wrong type, form or value.
    InvalidConfig = "E_INVALID_CONFIG", "InvalidConfigError", retryable: false;
    /// Two configuration values contradict each other.
    Config = "E_CONFIG", "ConfigError", retryable: false;
    /// An option or method that is documented but not built yet.
    NotImplemented = "E_NOT_IMPLEMENTED", "NotImplementedError", retryable: false;
    /// Something that the call needs does not exist: a key, a session, a record.
    Resource = "E_RESOURCE", "ResourceError", retryable: false;
    /// The session has a run in progress.
    SessionBusy = "E_SESSION_BUSY", "SessionError", retryable: true;
    /// The session or its agent was closed.
    SessionClosed = "E_SESSION_CLOSED", "SessionError", retryable: false;
    /// The conversation belongs to another user.
    SessionOwner = "E_SESSION_OWNER", "SessionError", retryable: false;
    /// The lease of the session has passed to another process; the run was ended.
    SessionLeaseLost = "E_SESSION_LEASE_LOST", "SessionError", retryable: true;
    /// `resumeAt` names no message of the conversation, and `strictResume` is set.
    ResumePoint = "E_RESUME_POINT_NOT_FOUND", "SessionError", retryable: false;
    /// Entries could not be stored in time; the run was ended, they are offered again.
    StoreUnavailable = "E_STORE_UNAVAILABLE", "SessionStoreError", retryable: true;
    /// A session store or its database refused or failed a call.
    Store = "E_STORE", "SessionStoreError", retryable: true;
    /// A session id that the store cannot keep.
    InvalidSessionId = "E_INVALID_SESSION_ID", "SessionStoreError", retryable: false;
    /// An argument of a store method has a wrong type or value.
    InvalidArgument = "E_INVALID_ARGUMENT", "SessionStoreError", retryable: false;
    /// A fork would overwrite a session.
    SessionExists = "E_SESSION_EXISTS", "SessionStoreError", retryable: false;
    /// The place of a session is taken by one whose id differs.
    SessionIdConflict = "E_SESSION_ID_CONFLICT", "SessionStoreError", retryable: false;
    /// Another process holds the files of a session.
    SessionLocked = "E_SESSION_LOCKED", "SessionStoreError", retryable: true;
    /// The transcript of a session is larger than the store may read.
    SessionTooLarge = "E_SESSION_TOO_LARGE", "SessionStoreError", retryable: false;
    /// A file or folder of a store is a link, or belongs to another user.
    UnsafeFile = "E_UNSAFE_FILE", "SessionStoreError", retryable: false;
    /// A message cannot be written as JSON.
    SerializeFailed = "E_SERIALIZE_FAILED", "SessionStoreError", retryable: false;
    /// The file system failed a call.
    Io = "E_IO_ERROR", "SessionStoreError", retryable: true;
    /// The gateway refused the credential (401, 403).
    ModelAuth = "E_MODEL_AUTH", "ModelError", retryable: false;
    /// The gateway does not know the model or the path (404).
    ModelNotFound = "E_MODEL_NOT_FOUND", "ModelError", retryable: false;
    /// The gateway refused the request as invalid (400, 413, 422 and other 4xx).
    ModelRequest = "E_MODEL_REQUEST", "ModelError", retryable: false;
    /// The conversation does not fit the context window of the model.
    ModelContext = "E_MODEL_CONTEXT", "ModelError", retryable: false;
    /// The gateway limits the rate (429).
    ModelRateLimit = "E_MODEL_RATE_LIMIT", "ModelError", retryable: true;
    /// The gateway is overloaded (529, or `overloaded_error` in a stream).
    ModelOverloaded = "E_MODEL_OVERLOADED", "ModelError", retryable: true;
    /// The gateway failed (5xx).
    ModelServer = "E_MODEL_SERVER", "ModelError", retryable: true;
    /// The gateway cannot be reached or the connection broke.
    ModelNetwork = "E_MODEL_NETWORK", "ModelError", retryable: true;
    /// The gateway stayed silent longer than a limit allows.
    ModelTimeout = "E_MODEL_TIMEOUT", "ModelError", retryable: true;
    /// The stream ended before the message was complete.
    ModelTruncated = "E_MODEL_TRUNCATED", "ModelError", retryable: true;
    /// The gateway answered with something that is not the protocol.
    ModelProtocol = "E_MODEL_PROTOCOL", "ModelError", retryable: true;
    /// A hook threw, rejected or returned a wrong shape.
    Hook = "E_HOOK", "HookError", retryable: false;
    /// A hook did not settle in time.
    HookTimeout = "E_HOOK_TIMEOUT", "HookError", retryable: false;
    /// A server of the Model Context Protocol could not be started, reached or understood.
    McpServer = "E_MCP_SERVER", "McpError", retryable: true;
    /// The call that an answer is for was answered before, or is being answered.
    AlreadyResolved = "E_ALREADY_RESOLVED", "ResourceError", retryable: false;
    /// The rules of a sandbox refuse a path or a command.
    SandboxDenied = "E_SANDBOX_DENIED", "SandboxDeniedError", retryable: false;
    /// The program `oak-helper`, which starts children, is missing or does not work.
    Helper = "E_HELPER", "KernelError", retryable: false;
    /// A fault of the kernel itself.
    Internal = "E_INTERNAL", "KernelError", retryable: false;
}

/// An error of the kernel: kind, a message for people, and what programs may want to know.
///
/// The message never holds a secret. `Display` prints one line.
#[derive(Clone, Debug)]
pub struct KernelError(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    retryable: bool,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after_ms: Option<u64>,
    details: Map<String, Json>,
    thrown: Option<u64>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl KernelError {
    /// A new error; `message` names the field or service and the remedy.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            retryable: kind.is_retryable(),
            status: None,
            request_id: None,
            retry_after_ms: None,
            details: Map::new(),
            thrown: None,
            source: None,
        }))
    }

    /// An [`ErrorKind::InvalidConfig`] error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidConfig, message)
    }

    /// An [`ErrorKind::NotImplemented`] error that names the option.
    pub fn not_built(what: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::NotImplemented,
            format!("{what} is not built yet in this version"),
        )
    }

    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    #[must_use]
    pub fn with_request_id(mut self, id: Option<String>) -> Self {
        self.0.request_id = id;
        self
    }

    /// The id of the request, unless the error carries one already.
    #[must_use]
    pub fn or_request_id(mut self, id: Option<&String>) -> Self {
        self.0.request_id = self.0.request_id.or_else(|| id.cloned());
        self
    }

    /// The wait that the gateway asked for before the next attempt.
    #[must_use]
    pub fn with_retry_after_ms(mut self, ms: Option<u64>) -> Self {
        self.0.retry_after_ms = ms;
        self
    }

    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    #[must_use]
    pub fn with_detail(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.0.details.insert(key.to_owned(), value.into());
        self
    }

    /// Remembers the number under which the JavaScript side keeps the value a callback threw.
    #[must_use]
    pub fn with_thrown(mut self, number: Option<u64>) -> Self {
        self.0.thrown = number;
        self
    }

    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Replaces secrets in every text that may quote the other side.
    #[must_use]
    pub fn redact(mut self, redact: impl Fn(&str) -> String) -> Self {
        self.0.message = redact(&self.0.message);
        for value in self.0.details.values_mut() {
            if let Json::String(text) = value {
                *text = redact(text);
            }
        }
        self
    }

    /// Adds what to do to the message.
    #[must_use]
    pub fn advise(mut self, remedy: impl fmt::Display) -> Self {
        self.0.message = format!("{} ({remedy})", self.0.message);
        self
    }

    /// Puts `prefix: ` before the message.
    #[must_use]
    pub fn within(mut self, prefix: impl fmt::Display) -> Self {
        self.0.message = format!("{prefix}: {}", self.0.message);
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    pub fn retry_after_ms(&self) -> Option<u64> {
        self.0.retry_after_ms
    }

    pub fn details(&self) -> &Map<String, Json> {
        &self.0.details
    }

    pub fn thrown(&self) -> Option<u64> {
        self.0.thrown
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.message, self.code())
    }
}

impl StdError for KernelError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_prefixed() {
        let codes: HashSet<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
        assert!(codes.iter().all(|code| code.starts_with("E_")));
    }

    #[test]
    fn context_is_added_in_front() {
        let error = KernelError::invalid("must be a string").within("config.envId");
        assert_eq!(error.message(), "config.envId: must be a string");
        assert_eq!(
            error.to_string(),
            "config.envId: must be a string (E_INVALID_CONFIG)"
        );
    }
}
