//! Sessions as whole documents in files, behind the class `FileSessionStore`.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use serde_json::json;

use crate::agent::config::{Fields, store};
use crate::base::clock::SystemClock;
use crate::error::Result;
use crate::protocol::{Json, JsonMap};
use crate::store::session::{
    Documents, FileStore, ForkOptions, ListOptions, LoadOptions, SharedSessionStore,
};

use super::error::{promise, to_js};
use super::session::json;
use super::store::NativeStore;

/// Sessions lie in the folder itself, not in one of a project.
const NO_PROJECT: &str = "";

/// A folder of sessions.
#[napi]
pub struct NativeDocuments {
    documents: Documents,
    store: SharedSessionStore,
}

/// Opens a folder of sessions; no I/O. `settings` is JSON text; `home` is the home directory of the
/// user.
#[napi(catch_unwind)]
pub fn open_documents(
    env: &Env,
    settings: String,
    home: Option<String>,
) -> napi::Result<NativeDocuments> {
    let opened = || {
        let settings = json(&settings)?;
        let fields = Fields::of("FileSessionStore options", &settings)?;
        store::files(&fields, home.as_deref())
    };
    let settings = opened().map_err(|error| to_js(env, &error))?;
    let store = FileStore::with_max_bytes(
        settings.root,
        settings.durability,
        Arc::new(SystemClock),
        settings.max_bytes,
    );
    Ok(NativeDocuments {
        documents: store.documents(),
        store: Arc::new(store),
    })
}

/// Arguments and results are JSON texts; `js/` has checked the types of the arguments.
#[napi]
impl NativeDocuments {
    /// The store of entries in the same folder.
    #[napi]
    pub fn store(&self) -> NativeStore {
        // As the methods with a string id: what an agent stores is found by them.
        NativeStore::new(self.store.clone(), Some(NO_PROJECT))
    }

    #[napi(catch_unwind)]
    pub fn save<'env>(
        &self,
        env: &'env Env,
        id: String,
        messages: String,
        metadata: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let documents = self.documents.clone();
        let work = async move {
            let (messages, metadata) = (list(&messages)?, object(&metadata)?);
            documents.save(&id, messages, metadata).await
        };
        promise(env, work, |()| ())
    }

    /// Resolves to `{metadata, messages}`, or null.
    #[napi(catch_unwind)]
    pub fn load<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let documents = self.documents.clone();
        let work = async move {
            let options = json(&options)?;
            let number = |key: &str| options[key].as_i64();
            let options = LoadOptions {
                limit: number("limit"),
                offset: number("offset"),
                tail: number("tail"),
            };
            documents.load(&id, options).await
        };
        promise(env, work, |loaded| json!(loaded).to_string())
    }

    /// Resolves to a list of metadata.
    #[napi(catch_unwind)]
    pub fn list<'env>(
        &self,
        env: &'env Env,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let documents = self.documents.clone();
        let work = async move {
            let options = json(&options)?;
            let options = ListOptions {
                limit: options["limit"].as_i64(),
                include_worktrees: options["includeWorktrees"] == true,
            };
            documents.list(options).await
        };
        promise(env, work, |listed| Json::from(listed).to_string())
    }

    #[napi(catch_unwind)]
    pub fn fork<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, Option<String>>> {
        let documents = self.documents.clone();
        let work = async move {
            let options = json(&options)?;
            let text = |key: &str| options[key].as_str().map(str::to_owned);
            let options = ForkOptions {
                new_session_id: text("newSessionId"),
                up_to_message_index: options["upToMessageIndex"].as_i64(),
                up_to_message_id: text("upToMessageId"),
                overwrite: options["overwrite"] == true,
            };
            documents.fork(&id, options).await
        };
        promise(env, work, |forked| forked)
    }

    #[napi(catch_unwind)]
    pub fn delete<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, bool>> {
        let documents = self.documents.clone();
        promise(env, async move { documents.delete(&id).await }, |done| done)
    }

    #[napi(catch_unwind)]
    pub fn rename<'env>(
        &self,
        env: &'env Env,
        id: String,
        title: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let documents = self.documents.clone();
        let work = async move { documents.rename(&id, &title).await };
        promise(env, work, |()| ())
    }

    #[napi(catch_unwind)]
    pub fn tag<'env>(
        &self,
        env: &'env Env,
        id: String,
        tag: Option<String>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let documents = self.documents.clone();
        let work = async move { documents.tag(&id, tag.as_deref()).await };
        promise(env, work, |()| ())
    }

    #[napi(catch_unwind)]
    pub fn exists<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, bool>> {
        let documents = self.documents.clone();
        promise(env, async move { documents.exists(&id).await }, |is| is)
    }

    /// Resolves to the new number of messages.
    #[napi(catch_unwind)]
    pub fn append<'env>(
        &self,
        env: &'env Env,
        id: String,
        messages: String,
    ) -> napi::Result<PromiseRaw<'env, f64>> {
        let documents = self.documents.clone();
        let work = async move { documents.append(&id, list(&messages)?).await };
        #[expect(clippy::cast_precision_loss, reason = "a number of messages")]
        promise(env, work, |count| count as f64)
    }
}

fn list(text: &str) -> Result<Vec<Json>> {
    match json(text)? {
        Json::Array(values) => Ok(values),
        other => Ok(vec![other]),
    }
}

fn object(text: &str) -> Result<JsonMap> {
    match json(text)? {
        Json::Object(fields) => Ok(fields),
        _ => Ok(JsonMap::new()),
    }
}
