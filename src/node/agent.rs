//! Agents.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::{Function, Promise, PromiseRaw};
use napi_derive::napi;

use crate::agent::{Agent, ForkOptions, ListOptions, PromptRequest, ResumeOptions, StartOptions};
use crate::base::environment::Environment;

use super::error::{promise, to_js};
use super::host::JsHost;
use super::session::{NativeSession, describe, json, to_text};
use super::stopper::Stopper;
use super::store::NativeStore;

/// An agent.
#[napi]
pub struct NativeAgent {
    agent: Arc<Agent>,
}

/// Checks a configuration and makes an agent. `config` is JSON text with marks in place of
/// functions; `dispatch` calls them by number. `store` is the driver behind a session store that this
/// package made.
#[napi(catch_unwind)]
pub fn create_agent(
    env: &Env,
    config: String,
    environment: HashMap<String, String>,
    dispatch: Function<'_, String, Promise<String>>,
    store: Option<&NativeStore>,
) -> napi::Result<NativeAgent> {
    let host = Arc::new(JsHost::new(&dispatch)?);
    let store = store.map(NativeStore::open);
    let made = json(&config)
        .and_then(|config| Agent::create(&config, &Environment::read(&environment), host, store));
    let agent = Arc::new(made.map_err(|error| to_js(env, &error))?);
    stop_with_environment(env, &agent)?;
    Ok(NativeAgent { agent })
}

thread_local! {
    /// The agents of this JavaScript environment; none until the first one is made.
    static AGENTS: RefCell<Option<Vec<Weak<Agent>>>> = const { RefCell::new(None) };
}

/// Stops the runs of an agent when its JavaScript environment ends: their callbacks would never
/// return.
fn stop_with_environment(env: &Env, agent: &Arc<Agent>) -> napi::Result<()> {
    let is_first = AGENTS.with_borrow_mut(|agents| {
        let is_first = agents.is_none();
        let agents = agents.get_or_insert_default();
        agents.retain(|agent| agent.strong_count() > 0);
        agents.push(Arc::downgrade(agent));
        is_first
    });
    if is_first {
        env.add_env_cleanup_hook((), |()| {
            let agents = AGENTS.with_borrow_mut(Option::take).unwrap_or_default();
            for agent in agents.iter().filter_map(Weak::upgrade) {
                agent.interrupt();
            }
        })?;
    }
    Ok(())
}

#[napi]
impl NativeAgent {
    #[napi(getter)]
    pub fn id(&self) -> String {
        self.agent.id().to_owned()
    }

    #[napi(getter)]
    pub fn name(&self) -> Option<String> {
        self.agent.name().map(str::to_owned)
    }

    /// Keys of the configuration that have no meaning.
    #[napi(getter)]
    pub fn unknown_keys(&self) -> Vec<String> {
        self.agent.unknown_keys().to_vec()
    }

    /// Whether requests go to an emulator that the environment names.
    #[napi(getter)]
    pub fn uses_emulator(&self) -> bool {
        self.agent.uses_emulator()
    }

    #[napi(catch_unwind)]
    pub fn start_session<'env>(
        &self,
        env: &'env Env,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, NativeSession>> {
        let agent = self.agent.clone();
        let render = self.agent.render();
        let work = async move {
            let options = StartOptions::parse(&json(&options)?)?;
            agent.start_session(options).await
        };
        promise(env, work, move |session| {
            NativeSession::new(session, render)
        })
    }

    #[napi(catch_unwind)]
    pub fn resume_session<'env>(
        &self,
        env: &'env Env,
        reference: String,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, NativeSession>> {
        let agent = self.agent.clone();
        let render = self.agent.render();
        let work = async move {
            let options = ResumeOptions::parse(&json(&options)?)?;
            agent.resume_session(&reference, options).await
        };
        promise(env, work, move |session| {
            NativeSession::new(session, render)
        })
    }

    /// One message to the end; resolves to JSON text.
    #[napi(catch_unwind)]
    pub fn prompt<'env>(
        &self,
        env: &'env Env,
        input: String,
        options: String,
        stopper: &Stopper,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let (agent, interrupter) = (self.agent.clone(), stopper.interrupter());
        let work = async move {
            let (input, options) = (json(&input)?, json(&options)?);
            agent
                .prompt(PromptRequest {
                    input,
                    options,
                    interrupter,
                })
                .await
        };
        promise(env, work, |result| describe(&result))
    }

    #[napi(catch_unwind)]
    pub fn close<'env>(
        &self,
        env: &'env Env,
        deadline_ms: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let agent = self.agent.clone();
        let deadline = deadline_ms.map(|ms| Duration::from_millis(ms.into()));
        let work = async move { agent.close(deadline).await };
        promise(env, work, |()| ())
    }

    /// A page of stored sessions, as JSON text.
    #[napi(catch_unwind)]
    pub fn list_sessions<'env>(
        &self,
        env: &'env Env,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let agent = self.agent.clone();
        let work = async move {
            let options = ListOptions::parse(&json(&options)?)?;
            to_text(&agent.list_sessions(&options).await?)
        };
        promise(env, work, |text| text)
    }

    /// One stored session as JSON text; `null` when there is no such one.
    #[napi(catch_unwind)]
    pub fn get_session<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let agent = self.agent.clone();
        let work = async move { to_text(&agent.get_session(&id).await?) };
        promise(env, work, |text| text)
    }

    #[napi(catch_unwind)]
    pub fn delete_session<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let agent = self.agent.clone();
        let work = async move { agent.delete_session(&id).await };
        promise(env, work, |()| ())
    }

    #[napi(catch_unwind)]
    pub fn rename_session<'env>(
        &self,
        env: &'env Env,
        id: String,
        title: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let agent = self.agent.clone();
        let work = async move { agent.rename_session(&id, &title).await };
        promise(env, work, |()| ())
    }

    #[napi(catch_unwind)]
    pub fn tag_session<'env>(
        &self,
        env: &'env Env,
        id: String,
        tag: Option<String>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let agent = self.agent.clone();
        let work = async move { agent.tag_session(&id, tag.as_deref()).await };
        promise(env, work, |()| ())
    }

    /// Resolves to the id of the copy.
    #[napi(catch_unwind)]
    pub fn fork_session<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let agent = self.agent.clone();
        let work = async move {
            let options = ForkOptions::parse(&json(&options)?)?;
            agent.fork_session(&id, &options).await
        };
        promise(env, work, |id| id)
    }
}
