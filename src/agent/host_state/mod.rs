//! A store of state records over an object of the host program with `put`, `get` and `delete`:
//! `permissions.store`, `toolStore`.
//!
//! The object cannot compare and set: changes are made one after the other, so compare-and-set holds
//! within this process only. It cannot list either: records that this process wrote are known.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::config::Fields;
use super::host::{FunctionId, Host};
use crate::base::clock::SharedClock;
use crate::base::json::type_name;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, JsonMap};
use crate::store::state::{
    Atomic, Inserted, StateCaps, StateKey, StateKind, StateQuery, StateRecord, StateStore,
    StoreClock, Swapped,
};

/// Time that a call may take.
const CALL_TIME: Duration = Duration::from_mins(1);
/// Member under which a record keeps what such stores have no place for.
const OWN: &str = "oak";

/// A state store of the host program. What it keeps has the fields of `data` (those of a pending
/// approval, for one), `conversationId` and `toolUseId`; the record itself is under `oak`.
pub struct HostState {
    /// Name of the store in messages.
    path: String,
    host: Arc<dyn Host>,
    clock: SharedClock,
    put: FunctionId,
    get: FunctionId,
    delete: FunctionId,
    /// Conversations of the records that this process wrote. Its lock is held for a whole change.
    known: Mutex<Known>,
}

type Known = BTreeMap<StateKey, Option<String>>;

impl HostState {
    /// A store from the functions that the host program prepared. `path` names the store in messages,
    /// such as `config.permissions.store`.
    ///
    /// Fails with an `InvalidConfig` error when one of `put`, `get`, `delete` is missing.
    pub fn from_fields(
        path: &str,
        value: &Json,
        host: Arc<dyn Host>,
        clock: SharedClock,
    ) -> Result<Self> {
        let fields = Fields::of(path, value)?;
        let needed = |name: &'static str| {
            fields.function(name)?.ok_or_else(|| {
                KernelError::invalid(format!(
                    "{path} has no method {name}: such a store has put, get and delete"
                ))
            })
        };
        let (put, get, delete) = (needed("put")?, needed("get")?, needed("delete")?);
        Ok(Self {
            path: path.to_owned(),
            host,
            clock,
            put,
            get,
            delete,
            known: Mutex::default(),
        })
    }

    async fn read(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        let value = self.call(self.get, "get", names(key)).await?;
        match value {
            Json::Null => Ok(None),
            Json::Object(fields) => record(key, fields).map_err(|what| self.lie("get", what)),
            other => Err(self.lie(
                "get",
                format!("must give an object or null, not {}", type_name(&other)),
            )),
        }
    }

    async fn write(&self, known: &mut Known, record: StateRecord) -> Result<()> {
        let value = value(&record);
        self.call(self.put, "put", value).await?;
        known.insert(record.key, record.conversation);
        Ok(())
    }

    async fn call(&self, function: FunctionId, method: &str, argument: Json) -> Result<Json> {
        let cancel = CancellationToken::new();
        let _stop_when_dropped = cancel.clone().drop_guard();
        tokio::select! {
            biased;
            result = self.host.call(function, argument, cancel) => result.map_err(|failure| {
                failure.into_error(ErrorKind::Store, &format!("{}.{method}", self.path))
            }),
            () = self.clock.sleep(CALL_TIME) => Err(self.error(
                method,
                format!("did not settle within {} s", CALL_TIME.as_secs()),
            )),
        }
    }

    /// What a store gives against the rules it will give again.
    fn lie(&self, method: &str, what: impl std::fmt::Display) -> KernelError {
        self.error(method, what).with_retryable(false)
    }

    fn error(&self, method: &str, what: impl std::fmt::Display) -> KernelError {
        KernelError::new(ErrorKind::Store, format!("{}.{method} {what}", self.path))
    }
}

#[async_trait]
impl StateStore for HostState {
    fn caps(&self) -> StateCaps {
        StateCaps {
            atomic: Atomic::Process,
            clock: StoreClock::Own,
        }
    }

    async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        let _known = self.known.lock().await;
        self.read(key).await
    }

    async fn insert(&self, record: &StateRecord) -> Result<Inserted> {
        let mut known = self.known.lock().await;
        if let Some(existing) = self.read(&record.key).await? {
            return Ok(Inserted::Exists(existing));
        }
        let mut record = record.clone();
        record.version = 1;
        self.write(&mut known, record).await?;
        Ok(Inserted::Done)
    }

    async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
        let mut known = self.known.lock().await;
        let stored = self.read(&record.key).await?;
        if stored.as_ref().map(|stored| stored.version) != Some(expected) {
            return Ok(Swapped::Conflict(stored));
        }
        let mut record = record.clone();
        record.version = expected + 1;
        self.write(&mut known, record).await?;
        Ok(Swapped::Done(expected + 1))
    }

    async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
        let mut known = self.known.lock().await;
        let stored = self.read(key).await?;
        let is_expected =
            |stored: &&StateRecord| expected.is_none_or(|expected| stored.version == expected);
        let Some(version) = stored
            .as_ref()
            .filter(is_expected)
            .map(|found| found.version)
        else {
            return Ok(Swapped::Conflict(stored));
        };
        self.call(self.delete, "delete", names(key)).await?;
        known.remove(key);
        Ok(Swapped::Done(version))
    }

    async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
        let known = self.known.lock().await;
        let keys = known.iter().filter(|(key, conversation)| {
            key.project == query.project
                && key.kind == query.kind
                && query.after.as_ref().is_none_or(|after| key.key > *after)
                && (query.conversation.is_none() || **conversation == query.conversation)
        });
        let mut found = Vec::new();
        for (key, _) in keys {
            if found.len() == query.limit {
                break;
            }
            found.extend(self.read(key).await?);
        }
        Ok(found)
    }

    async fn forget(&self, project: &str, conversation: &str) -> Result<()> {
        let mut known = self.known.lock().await;
        let of_conversation = |(key, of): &(&StateKey, &Option<String>)| {
            &*key.project == project && of.as_deref() == Some(conversation)
        };
        let keys: Vec<StateKey> = known
            .iter()
            .filter(of_conversation)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.call(self.delete, "delete", names(&key)).await?;
            known.remove(&key);
        }
        Ok(())
    }

    async fn now(&self) -> Result<u64> {
        Ok(self.clock.now_ms())
    }
}

/// A key as such stores know it: a key of the kernel is `conversation|call`, with `%` and `|` escaped
/// inside its parts. What waits for a call has its bare id: a call waits for one thing at most.
fn names(key: &StateKey) -> Json {
    let (conversation, call) = key.key.split_once('|').unwrap_or(("", &key.key));
    let plain = |part: &str| part.replace("%7C", "|").replace("%25", "%");
    let call = match key.kind {
        StateKind::Approval | StateKind::ClientTool | StateKind::Question => plain(call),
        other => format!("{}:{}", other.as_str(), plain(call)),
    };
    json!({"conversationId": plain(conversation), "toolUseId": call})
}

fn value(record: &StateRecord) -> Json {
    let StateKey { project, kind, key } = &record.key;
    let own = json!({
        "project": &**project, "kind": kind.as_str(), "key": key,
        "conversation": record.conversation, "user": record.user,
        "version": record.version, "expiresAt": record.expires_at, "data": record.data,
    });
    let mut value = record.data.as_object().cloned().unwrap_or_default();
    if let Json::Object(names) = names(&record.key) {
        value.extend(names);
    }
    value.insert(OWN.to_owned(), own);
    Json::Object(value)
}

/// The record in what a store gave; none when it is of another kind. One without a record of ours was
/// written by an older kernel.
fn record(key: &StateKey, fields: JsonMap) -> Result<Option<StateRecord>, &'static str> {
    let Some(own) = fields.get(OWN) else {
        let conversation = fields.get("conversationId").and_then(Json::as_str);
        return Ok(Some(StateRecord {
            key: key.clone(),
            conversation: conversation.map(str::to_owned),
            user: None,
            version: 1,
            data: Json::Object(fields),
            expires_at: None,
        }));
    };
    if own["project"] != *key.project || own["key"] != *key.key {
        // Such stores know no projects: nothing of another may be overwritten.
        return Err("gave the record of another project");
    }
    if own["kind"] != key.kind.as_str() {
        return Ok(None);
    }
    let version = own["version"].as_u64();
    Ok(Some(StateRecord {
        key: key.clone(),
        conversation: own["conversation"].as_str().map(str::to_owned),
        user: own["user"].as_str().map(str::to_owned),
        version: version.ok_or("gave a record without its version")?,
        data: own["data"].clone(),
        expires_at: own["expiresAt"].as_u64(),
    }))
}
