//! Session stores of the core, for programs that read or write them without an agent.

use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use std::sync::Arc;

use crate::agent::config::{Fields, store};
use crate::base::clock::SystemClock;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::StoredEntry;
use crate::store::session::{
    ListCursor, Loaded, OpenStore, SessionKey, SessionRow, SharedSessionStore, open,
};

use super::error::{promise, to_js};
use super::session::json;

/// Rows that are read at once.
const PAGE: usize = 500;

/// A store with one of the kernel's own drivers.
#[napi]
pub struct NativeStore {
    open: OpenStore,
}

impl NativeStore {
    /// Agents keep their sessions under the project, or each under its own.
    pub fn new(store: SharedSessionStore, project: Option<&str>) -> Self {
        let project = project.map(Into::into);
        Self {
            open: OpenStore { store, project },
        }
    }

    /// The store, for an agent that uses it.
    pub fn open(&self) -> OpenStore {
        self.open.clone()
    }

    fn shared(&self) -> SharedSessionStore {
        self.open.store.clone()
    }
}

/// Opens a store. `settings` is JSON text; `home` is the home directory of the user.
#[napi(catch_unwind)]
pub fn open_store(env: &Env, settings: String, home: Option<String>) -> napi::Result<NativeStore> {
    let opened = || {
        let settings = json(&settings)?;
        let fields = Fields::of("openSessionStore settings", &settings)?;
        open(
            &store::spec(&fields, home.as_deref())?,
            Arc::new(SystemClock),
        )
    };
    let store = opened().map_err(|error| to_js(env, &error))?;
    Ok(NativeStore::new(store, None))
}

/// A key as JavaScript writes it.
#[derive(Deserialize)]
struct Key {
    #[serde(rename = "projectKey")]
    project: Arc<str>,
    #[serde(rename = "sessionId")]
    session: Arc<str>,
    subpath: Option<Arc<str>>,
}

#[napi]
impl NativeStore {
    /// Appends entries, each a JSON text.
    #[napi(catch_unwind)]
    pub fn append<'env>(
        &self,
        env: &'env Env,
        key: String,
        entries: Vec<String>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let store = self.shared();
        let work = async move {
            let entries: Result<Vec<_>> = entries.into_iter().map(entry).collect();
            store.append(&read_key(&key)?, &entries?, None).await
        };
        promise(env, work, drop)
    }

    /// Resolves to the JSON text of `{entries, damage}`; `entries` is null when the transcript was
    /// never written.
    #[napi(catch_unwind)]
    pub fn load<'env>(
        &self,
        env: &'env Env,
        key: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let store = self.shared();
        let work = async move { describe(store.load(&read_key(&key)?, None).await?) };
        promise(env, work, |text| text)
    }

    /// Resolves to the JSON text of `[{sessionId, mtime, data}]`.
    #[napi(catch_unwind)]
    pub fn list_sessions<'env>(
        &self,
        env: &'env Env,
        project: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let store = self.shared();
        let work = async move {
            let rows = all_sessions(&store, &project).await?;
            let shown = rows.iter().map(|row| {
                json!({"sessionId": row.session, "mtime": row.updated_at, "data": row.summary.0})
            });
            Ok(json!(shown.collect::<Vec<_>>()).to_string())
        };
        promise(env, work, |text| text)
    }

    #[napi(catch_unwind)]
    pub fn delete<'env>(&self, env: &'env Env, key: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let store = self.shared();
        let work = async move { store.delete(&read_key(&key)?).await };
        promise(env, work, |()| ())
    }

    /// Resolves to the JSON text of a list of sub-paths.
    #[napi(catch_unwind)]
    pub fn list_subkeys<'env>(
        &self,
        env: &'env Env,
        key: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let store = self.shared();
        let work = async move {
            let key = read_key(&key)?;
            let subpaths = store.subkeys(&key.project, &key.session).await?;
            Ok(json!(subpaths).to_string())
        };
        promise(env, work, |text| text)
    }
}

fn read_key(text: &str) -> Result<SessionKey> {
    let key: Key = serde_json::from_str(text)
        .map_err(|error| KernelError::invalid(format!("the key cannot be read: {error}")))?;
    Ok(SessionKey {
        project: key.project,
        session: key.session,
        subpath: key.subpath,
    })
}

fn entry(text: String) -> Result<StoredEntry> {
    StoredEntry::parse(text).map_err(|error| {
        KernelError::new(
            ErrorKind::SerializeFailed,
            format!("an entry cannot be stored: {error}"),
        )
    })
}

/// Entries cross as the text that is stored.
fn describe(loaded: Option<Loaded>) -> Result<String> {
    let damage = loaded.as_ref().and_then(|loaded| loaded.damage.as_ref());
    let damage = damage.map(|damage| damage.what.clone());
    let entries = loaded.map(|loaded| {
        let entries = loaded.entries.into_iter();
        entries
            .map(|placed| RawValue::from_string(placed.entry.text().to_owned()))
            .collect::<serde_json::Result<Vec<_>>>()
    });
    let unreadable = |error: serde_json::Error| {
        KernelError::new(
            ErrorKind::Store,
            format!("a stored entry cannot be read: {error}"),
        )
    };
    let entries = entries.transpose().map_err(unreadable)?;
    serde_json::to_string(&Description { entries, damage }).map_err(unreadable)
}

#[derive(serde::Serialize)]
struct Description {
    entries: Option<Vec<Box<RawValue>>>,
    damage: Option<String>,
}

async fn all_sessions(store: &SharedSessionStore, project: &str) -> Result<Vec<SessionRow>> {
    let mut rows: Vec<SessionRow> = Vec::new();
    loop {
        let after = rows.last().map(|row| ListCursor {
            updated_at: row.updated_at,
            session: row.session.clone(),
        });
        let page = store.list(project, None, after.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}
