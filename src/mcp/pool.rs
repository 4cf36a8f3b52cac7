//! The servers of an agent.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::listing::Listing;
use super::names::{self, Prefix};
use super::server::{Hold, Server};
use super::settings::{ServerSettings, ToolPolicy};
use super::tool::McpTool;
use super::transport::{Configured, Dial, Surroundings};
use crate::base::clock::SharedClock;
use crate::error::KernelError;
use crate::tool::Tool;

/// How long the first request of a run waits for servers that are still starting.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// How long a request waits for lists of tools that are being made again.
const LIST_WAIT: Duration = Duration::from_secs(2);
/// How long closing waits for connections and children.
const CLOSE_WAIT: Duration = Duration::from_secs(15);
/// Most characters of the instructions of all servers.
const NOTES_LENGTH: usize = 32 * 1024;

/// The servers of an agent. When it is dropped, connections and children are ended.
pub struct Pool {
    members: Vec<Member>,
    clock: SharedClock,
    open: watch::Sender<usize>,
    offering: Mutex<Option<Made>>,
    stop: CancellationToken,
    _stop_at_drop: DropGuard,
}

struct Member {
    server: Arc<Server>,
    prefix: Prefix,
}

/// An offering and what it was made of.
struct Made {
    listings: Vec<Option<Arc<Listing>>>,
    offering: Arc<Offering>,
}

/// What the servers offer at the moment.
#[derive(Default)]
pub struct Offering {
    pub tools: Vec<Arc<dyn Tool>>,
    /// What servers say about the use of their tools.
    pub notes: Option<Arc<str>>,
}

/// A server that cannot be used, and why.
#[derive(Clone, Debug)]
pub struct Failure {
    pub server: Arc<str>,
    pub error: KernelError,
}

/// Keeps servers from being ended as unused, until it is dropped.
#[derive(Debug)]
pub struct PoolHold {
    _holds: Vec<Hold>,
}

impl Pool {
    /// Does no I/O: servers are connected when they are needed.
    pub fn new(
        servers: Vec<ServerSettings>,
        surroundings: &Surroundings,
        clock: SharedClock,
    ) -> Self {
        let configured = |settings: &ServerSettings| -> Box<dyn Dial> {
            Box::new(Configured {
                target: settings.target.clone(),
                surroundings: surroundings.clone(),
            })
        };
        Self::with(servers, configured, clock)
    }

    /// The same with other ways to the servers.
    pub(super) fn with(
        servers: Vec<ServerSettings>,
        dial: impl Fn(&ServerSettings) -> Box<dyn Dial>,
        clock: SharedClock,
    ) -> Self {
        let stop = CancellationToken::new();
        let open = watch::Sender::new(0);
        let keys: Vec<_> = servers.iter().map(|server| server.name.clone()).collect();
        let keys: Vec<_> = keys.iter().map(AsRef::as_ref).collect();
        let prefixes = names::prefixes(&keys);
        let members = servers
            .into_iter()
            .zip(prefixes)
            .map(|(settings, prefix)| {
                let dial = dial(&settings);
                let (clock, open, stop) = (clock.clone(), open.clone(), stop.clone());
                Member {
                    server: Server::new(settings, dial, clock, open, stop),
                    prefix,
                }
            })
            .collect();
        Self {
            members,
            clock,
            open,
            offering: Mutex::default(),
            _stop_at_drop: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Keeps the servers while a run needs them.
    pub fn hold(&self) -> PoolHold {
        let holds = self.members.iter().map(|member| member.server.hold());
        PoolHold {
            _holds: holds.collect(),
        }
    }

    /// Connects to the servers, and waits for them before the first request of a run. Later requests
    /// wait only for lists of tools that have changed. Needs a tokio runtime.
    pub async fn prepare(&self, is_first: bool) {
        let waits = self.members.iter().map(|Member { server, .. }| {
            server.wake();
            let settings = server.settings();
            let limit = if !is_first {
                LIST_WAIT
            } else if settings.always_load || settings.target.is_in_process() {
                settings.handshake.saturating_add(LIST_WAIT)
            } else {
                FIRST_WAIT
            };
            // What is still starting may be there for the next request.
            let is_needed = is_first || server.is_connected();
            async move {
                if is_needed {
                    tokio::select! {
                        biased;
                        () = server.settled() => {}
                        () = self.clock.sleep(limit) => {}
                    }
                }
            }
        });
        join_all(waits.collect::<Vec<_>>()).await;
    }

    /// What the servers offer now; the same object until something changes.
    pub fn offering(&self) -> Arc<Offering> {
        let members = self.members.iter();
        let listings: Vec<_> = members.map(|member| member.server.listing()).collect();
        // An option: never half written.
        let mut made = self.offering.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.as_ref()
            && is_same(&known.listings, &listings)
        {
            return known.offering.clone();
        }
        let offering = Arc::new(self.make(&listings));
        *made = Some(Made {
            listings,
            offering: offering.clone(),
        });
        offering
    }

    /// The servers that cannot be used at the moment.
    pub fn failures(&self) -> Vec<Failure> {
        let failure = |member: &Member| {
            let error = member.server.failure()?;
            let server = member.server.settings().name.clone();
            Some(Failure { server, error })
        };
        self.members.iter().filter_map(failure).collect()
    }

    /// Ends connections and children without waiting.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends connections and children and waits for it, for some seconds at most.
    pub async fn close(&self) {
        self.stop();
        let mut open = self.open.subscribe();
        tokio::select! {
            biased;
            _ = open.wait_for(|open| *open == 0) => {}
            () = self.clock.sleep(CLOSE_WAIT) => {}
        }
    }

    fn make(&self, listings: &[Option<Arc<Listing>>]) -> Offering {
        let mut offering = Offering::default();
        let mut names = HashSet::new();
        let mut notes = String::new();
        for (member, listing) in self.members.iter().zip(listings) {
            let Some(listing) = listing else { continue };
            let own: Vec<_> = listing.tools.iter().map(|tool| &*tool.name).collect();
            let settings = member.server.settings();
            for (shown, tool) in member.prefix.names(&own).into_iter().zip(&listing.tools) {
                let is_denied = settings.policies.get(&tool.name) == Some(&ToolPolicy::Deny);
                // A server can choose names on purpose that equal mapped ones.
                if !is_denied && names.insert(shown.clone()) {
                    let tool = McpTool::new(shown, tool, member.server.clone());
                    offering.tools.push(Arc::new(tool));
                }
            }
            if let Some(instructions) = &listing.instructions {
                let note = format!("\n\n## {}\n{instructions}", settings.name);
                if notes.len() + note.len() <= NOTES_LENGTH {
                    notes.push_str(&note);
                }
            }
        }
        if !notes.is_empty() {
            offering.notes = Some(format!("# Instructions of MCP servers{notes}").into());
        }
        offering
    }
}

fn is_same(a: &[Option<Arc<Listing>>], b: &[Option<Arc<Listing>>]) -> bool {
    a.iter().zip(b).all(|pair| match pair {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    })
}
