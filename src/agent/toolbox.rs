//! The tools of a run: those of the configuration, and those that servers offer at the moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::base::clock::SharedClock;
use crate::base::environment::Environment;
use crate::base::process::Helper;
use crate::engine::{Offer, Toolbox};
use crate::error::{KernelError, Result};
use crate::mcp::{Failure, Offering, Pool, PoolHold, Surroundings};
use crate::tool::ToolSet;

use super::config::AgentConfig;

/// The program that starts children, where its place is not known.
const HELPER: &str = "oak-helper";

/// The servers of an agent.
pub(super) struct Servers {
    pub pool: Pool,
    /// The last set that was made, and what of.
    joined: Mutex<Option<(Arc<Offering>, ToolSet)>>,
}

impl Servers {
    /// Does no I/O.
    pub fn new(config: &AgentConfig, environment: &Environment, clock: SharedClock) -> Self {
        let helper = environment.helper_path.as_deref().unwrap_or(HELPER);
        let surroundings = Surroundings {
            helper: Helper::at(helper),
            env: environment.children.clone(),
            proxy: config.proxy.clone(),
        };
        Self {
            pool: Pool::new(config.servers.clone(), &surroundings, clock),
            joined: Mutex::default(),
        }
    }

    /// The tools of one run.
    pub fn of_run<'a>(&'a self, config: &'a ToolSet) -> RunTools<'a> {
        RunTools {
            servers: self,
            config,
            is_asked: AtomicBool::new(false),
            told: Mutex::default(),
            _hold: self.pool.hold(),
        }
    }

    /// The tools of the configuration with those of the servers.
    fn join(&self, config: &ToolSet, offering: &Arc<Offering>) -> Result<ToolSet> {
        if offering.tools.is_empty() {
            return Ok(config.clone());
        }
        // An option: never half written.
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, tools)) = joined.as_ref()
            && Arc::ptr_eq(of, offering)
        {
            return Ok(tools.clone());
        }
        let all = config.tools().chain(&offering.tools).cloned();
        let tools = ToolSet::new(all.collect())?;
        *joined = Some((offering.clone(), tools.clone()));
        Ok(tools)
    }
}

/// The tools of one run.
pub(super) struct RunTools<'a> {
    servers: &'a Servers,
    config: &'a ToolSet,
    /// Whether the first request was made.
    is_asked: AtomicBool,
    /// What was told of servers that failed.
    told: Mutex<HashMap<Arc<str>, String>>,
    _hold: PoolHold,
}

impl RunTools<'_> {
    /// Failures that this run has not told yet.
    fn untold(&self, failures: Vec<Failure>) -> Vec<KernelError> {
        // A map: whole after every statement.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut untold = Vec::new();
        for Failure { server, error } in failures {
            let message = error.message().to_owned();
            if told.get(&server) != Some(&message) {
                told.insert(server, message);
                untold.push(error);
            }
        }
        untold
    }
}

#[async_trait]
impl Toolbox for RunTools<'_> {
    async fn offer(&self) -> Offer {
        let pool = &self.servers.pool;
        pool.prepare(!self.is_asked.swap(true, Ordering::Relaxed))
            .await;
        let offering = pool.offering();
        let mut failures = self.untold(pool.failures());
        let tools = self
            .servers
            .join(self.config, &offering)
            .unwrap_or_else(|error| {
                failures.push(error);
                self.config.clone()
            });
        Offer {
            tools,
            notes: offering.notes.clone(),
            failures,
        }
    }
}
