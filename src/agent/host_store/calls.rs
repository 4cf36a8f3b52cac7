//! Calls of the functions of a store, and what may come back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::rows;
use crate::agent::host::{FunctionId, Host};
use crate::base::clock::SharedClock;
use crate::base::json::type_name;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, StoredEntry};
use crate::store::session::SessionRow;

/// Time that a call may take.
const CALL_TIME: Duration = Duration::from_mins(1);

/// Calls one store.
pub struct Calls {
    /// Name of the store in messages.
    path: String,
    host: Arc<dyn Host>,
    clock: SharedClock,
}

impl Calls {
    pub fn new(path: &str, host: Arc<dyn Host>, clock: SharedClock) -> Self {
        Self {
            path: path.to_owned(),
            host,
            clock,
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Calls a function of the store and waits for what it gives.
    pub async fn call(&self, function: FunctionId, method: &str, argument: Json) -> Result<Json> {
        let cancel = CancellationToken::new();
        let _stop_when_dropped = cancel.clone().drop_guard();
        tokio::select! {
            biased;
            result = self.host.call(function, argument, cancel) => result.map_err(|failure| {
                failure.into_error(ErrorKind::Store, &self.name(method))
            }),
            () = self.clock.sleep(CALL_TIME) => Err(self.error(
                method,
                format!("did not settle within {} s", CALL_TIME.as_secs()),
            )),
        }
    }

    /// The entries that `load` gives; none for a transcript that was never written.
    pub async fn entries(&self, load: FunctionId, argument: Json) -> Result<Vec<StoredEntry>> {
        let entries = match self.call(load, "load", argument).await? {
            Json::Null => return Ok(Vec::new()),
            Json::Array(entries) => entries,
            other => return Err(self.wrong("load", "an array of entries or null", &other)),
        };
        let entry = |value: Json| {
            StoredEntry::parse(value.to_string())
                .map_err(|_| self.wrong("load", "an array of objects", &value))
        };
        entries.into_iter().map(entry).collect()
    }

    /// Rows of the message index: id and time of each.
    pub async fn messages(&self, query: FunctionId, argument: Json) -> Result<Vec<(String, u64)>> {
        self.rows(query, "querySessionMessages", argument, rows::message)
            .await
    }

    pub async fn sessions(&self, list: FunctionId, argument: Json) -> Result<Vec<SessionRow>> {
        self.rows(list, "listSessions", argument, rows::session)
            .await
    }

    pub async fn summaries(&self, list: FunctionId, argument: Json) -> Result<Vec<SessionRow>> {
        self.rows(list, "listSessionSummaries", argument, rows::summary)
            .await
    }

    pub async fn subkeys(&self, list: FunctionId, argument: Json) -> Result<Vec<String>> {
        let word = |value: &Json| value.as_str().map(str::to_owned);
        self.rows(list, "listSubkeys", argument, word).await
    }

    /// What is known of a session.
    pub async fn session(
        &self,
        get: FunctionId,
        project: &str,
        session: &str,
    ) -> Result<Option<SessionRow>> {
        let argument = json!({"projectKey": project, "sessionId": session});
        let value = self.call(get, "getSession", argument).await?;
        if value.is_null() {
            return Ok(None);
        }
        rows::session(&value)
            .map(Some)
            .ok_or_else(|| self.wrong("getSession", "{sessionId, mtime} or null", &value))
    }

    /// Entries as values, to be sent.
    pub fn values(&self, entries: &[StoredEntry]) -> Result<Vec<Json>> {
        let value = |entry: &StoredEntry| {
            serde_json::from_str(entry.text()).map_err(|error| {
                let message = format!("an entry cannot be sent to {}: {error}", self.path);
                KernelError::new(ErrorKind::SerializeFailed, message)
            })
        };
        entries.iter().map(value).collect()
    }

    /// The error of a call that this store can never serve.
    pub fn refused(&self, method: &str, what: &str) -> KernelError {
        self.error(method, what).with_retryable(false)
    }

    async fn rows<T>(
        &self,
        function: FunctionId,
        method: &str,
        argument: Json,
        row: impl Fn(&Json) -> Option<T> + Send,
    ) -> Result<Vec<T>> {
        let value = self.call(function, method, argument).await?;
        let values = match &value {
            // Nothing found, as some write it.
            Json::Null => return Ok(Vec::new()),
            Json::Array(values) => values,
            other => return Err(self.wrong(method, "an array", other)),
        };
        let rows: Option<Vec<T>> = values.iter().map(row).collect();
        rows.ok_or_else(|| self.error(method, "gave an element of a wrong form"))
    }

    fn wrong(&self, method: &str, what: &str, found: &Json) -> KernelError {
        self.error(
            method,
            format!("must give {what}, not {}", type_name(found)),
        )
    }

    fn error(&self, method: &str, what: impl std::fmt::Display) -> KernelError {
        KernelError::new(ErrorKind::Store, format!("{} {what}", self.name(method)))
    }

    fn name(&self, method: &str) -> String {
        format!("{}.{method}", self.path)
    }
}
