//! A program whose store does what it is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::host::{FunctionId, Host, HostFailure};
use crate::agent::host_store::HostStore;
use crate::base::clock::SystemClock;
use crate::protocol::Json;

/// What a function of the store does.
#[derive(Clone)]
pub enum Act {
    Give(Json),
    Throw(&'static str),
    Hang,
    /// Stores the entries of the argument.
    Store,
    /// Stores them and throws all the same.
    StoreAndThrow,
    /// The same, then never settles.
    StoreAndHang,
    /// Gives what is stored.
    Load,
}

pub const NAMES: [&str; 10] = [
    "append",
    "load",
    "listSessions",
    "listSessionSummaries",
    "delete",
    "listSubkeys",
    "registerSession",
    "getSession",
    "querySessionMessages",
    "deleteSessionMessages",
];

#[derive(Default)]
pub struct Program {
    acts: Mutex<HashMap<&'static str, Act>>,
    pub stored: Mutex<Vec<Json>>,
    calls: Mutex<Vec<(&'static str, Json)>>,
    pub cancelled: Mutex<Vec<CancellationToken>>,
}

impl Program {
    pub fn with(acts: &[(&'static str, Act)]) -> Arc<Self> {
        let program = Self::default();
        program.acts.lock().unwrap().extend(acts.iter().cloned());
        Arc::new(program)
    }

    pub fn appending() -> Arc<Self> {
        Self::with(&[("append", Act::Store), ("load", Act::Load)])
    }

    pub fn set(&self, name: &'static str, act: Act) {
        self.acts.lock().unwrap().insert(name, act);
    }

    pub fn stored(&self) -> Vec<Json> {
        self.stored.lock().unwrap().clone()
    }

    pub fn calls_of(&self, name: &str) -> Vec<Json> {
        let calls = self.calls.lock().unwrap();
        let of_name = calls.iter().filter(|(called, _)| *called == name);
        of_name.map(|(_, argument)| argument.clone()).collect()
    }

    pub fn store(self: &Arc<Self>) -> HostStore {
        let mut value = json!({"replaces": false});
        for name in self.acts.lock().unwrap().keys() {
            value[*name] = mark(name);
        }
        HostStore::from_fields("session.store", &value, self.clone(), Arc::new(SystemClock))
            .unwrap()
    }

    fn keep(&self, argument: &Json) {
        let entries = argument["entries"].as_array().unwrap();
        self.stored.lock().unwrap().extend(entries.iter().cloned());
    }
}

pub fn mark(name: &str) -> Json {
    let index = NAMES.iter().position(|known| *known == name).unwrap();
    json!({"\0oak": {"type": "function", "what": "a function", "index": index}})
}

#[async_trait]
impl Host for Program {
    async fn call(
        &self,
        function: FunctionId,
        argument: Json,
        cancel: CancellationToken,
    ) -> Result<Json, HostFailure> {
        let name = NAMES[function.0 as usize];
        self.cancelled.lock().unwrap().push(cancel);
        self.calls.lock().unwrap().push((name, argument.clone()));
        let act = self.acts.lock().unwrap()[name].clone();
        let failure = |message: &str| HostFailure {
            message: message.to_owned(),
            ..HostFailure::default()
        };
        match act {
            Act::Give(value) => Ok(value),
            Act::Throw(message) => Err(failure(message)),
            Act::Hang => std::future::pending().await,
            Act::Store => {
                self.keep(&argument);
                Ok(Json::Null)
            }
            Act::StoreAndThrow => {
                self.keep(&argument);
                Err(failure("connection reset"))
            }
            Act::StoreAndHang => {
                self.keep(&argument);
                std::future::pending().await
            }
            Act::Load => Ok(match self.stored() {
                stored if stored.is_empty() => Json::Null,
                stored => Json::from(stored),
            }),
        }
    }

    fn notify(&self, _function: FunctionId, _argument: Json) {}
}
