//! Records of calls that are answered outside of the run that made them.
//!
//! `open -> answered -> gone`, each step by compare-and-set. A record is written before anybody is told
//! of its call. The answer is written into it before it goes into the transcript, and it is removed
//! when the transcript has it: whatever a process leaves behind, the next one can finish.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::{
    Inserted, SharedStateStore, StateKey, StateKind, StateQuery, StateRecord, StateStore, Swapped,
};
use crate::base::clock::SharedClock;
use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{ASK_USER, Json, OpenCall, OpenKind, bare_name};

/// Waits between the attempts at a change.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(800),
    Duration::from_secs(2),
];
/// The kinds of records.
const KINDS: [StateKind; 2] = [StateKind::ClientTool, StateKind::Question];
/// Records that are listed at once.
const PAGE: usize = 500;
/// Most records that are listed.
const MOST: usize = 20_000;

/// The records of one conversation.
#[derive(Clone)]
pub struct CallRecords {
    pub store: SharedStateStore,
    pub project: Arc<str>,
    pub conversation: Arc<str>,
    pub user: Arc<str>,
    /// How long a change, with all its attempts, may take.
    pub timeout: Duration,
    pub clock: SharedClock,
    /// What should be said once when a call is opened; none when nothing should, or was.
    pub hint: Arc<Mutex<Option<&'static str>>>,
}

/// The record of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    pub kind: OpenKind,
    /// The turn that made the call; none when an older kernel wrote the record.
    pub turn_id: Option<String>,
    /// None while the call is open.
    pub answer: Option<CallAnswer>,
    stored: StateRecord,
}

/// What answers a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallAnswer {
    pub output: Json,
    pub is_error: bool,
    /// Whether it only says that nobody waits for another one.
    pub is_superseded: bool,
}

impl CallRecord {
    /// The record that a store keeps.
    fn read(stored: StateRecord) -> Self {
        let data = &stored.data;
        // An older kernel kept questions with the client tools.
        let is_question = stored.key.kind == StateKind::Question || is_question(data);
        let result = &data["result"];
        let answer = (!result.is_null()).then(|| CallAnswer {
            output: result["output"].clone(),
            is_error: result["isError"] == true,
            is_superseded: data["superseded"] == true,
        });
        Self {
            kind: if is_question {
                OpenKind::Question
            } else {
                OpenKind::ClientTool
            },
            turn_id: data["turnId"].as_str().map(str::to_owned),
            answer,
            stored,
        }
    }
}

fn is_question(data: &Json) -> bool {
    let name = data["toolName"].as_str().unwrap_or_default();
    bare_name(name) == ASK_USER
}

impl CallRecords {
    /// Writes that a call waits. Repeating it is harmless.
    pub async fn open(&self, call: &OpenCall, turn_id: &str) -> Result<()> {
        let record = StateRecord {
            key: self.key(state_kind(call.kind), &call.tool_use_id),
            conversation: Some(self.conversation.to_string()),
            user: Some(self.user.to_string()),
            version: 1,
            data: json!({
                "conversationId": &*self.conversation,
                "toolUseId": call.tool_use_id,
                "toolName": call.tool_name,
                "toolInput": call.input,
                "createdAt": self.clock.now_ms(),
                "turnId": turn_id,
            }),
            expires_at: None,
        };
        let record = &record;
        self.patiently(|| async move {
            match self.store.insert(record).await? {
                Inserted::Done => Ok(()),
                // An insert that reported an error may have landed all the same.
                Inserted::Exists(found) if found.data["turnId"] == record.data["turnId"] => Ok(()),
                // The transcript knows nothing of it: whoever wrote it is gone.
                Inserted::Exists(found) => match self.store.swap(record, found.version).await? {
                    Swapped::Done(_) => Ok(()),
                    Swapped::Conflict(_) => Err(contended()),
                },
            }
        })
        .await
    }

    /// What should be said now that a call is open.
    pub fn hint(&self) -> Option<&'static str> {
        lock(&self.hint).take()
    }

    /// The record of a call, open or answered.
    pub async fn find(&self, tool_use_id: &str) -> Result<Option<CallRecord>> {
        for kind in KINDS {
            let key = self.key(kind, tool_use_id);
            let key = &key;
            let found = self.patiently(|| self.store.get(key)).await?;
            if let Some(found) = found {
                return Ok(Some(CallRecord::read(found)));
            }
        }
        Ok(None)
    }

    /// An open call.
    pub async fn find_open(&self, tool_use_id: &str) -> Result<Option<OpenCall>> {
        let found = self.find(tool_use_id).await?;
        let open = found.filter(|record| record.answer.is_none());
        Ok(open.map(|record| {
            let data = &record.stored.data;
            let name = data["toolName"].as_str().unwrap_or_default();
            OpenCall {
                tool_use_id: tool_use_id.to_owned(),
                tool_name: bare_name(name).to_owned(),
                input: data["toolInput"].clone(),
                kind: record.kind,
            }
        }))
    }

    /// Writes the answer of an open call; gives the record with it. None when somebody was faster.
    pub async fn claim(
        &self,
        record: CallRecord,
        answer: CallAnswer,
    ) -> Result<Option<CallRecord>> {
        let claim = id::random();
        let mut stored = record.stored;
        let expected = stored.version;
        stored.data["result"] = json!({ "output": answer.output, "isError": answer.is_error });
        stored.data["claim"] = Json::from(claim.as_str());
        if answer.is_superseded {
            stored.data["superseded"] = true.into();
        }
        let changed = &stored;
        let swapped = self
            .patiently(|| self.store.swap(changed, expected))
            .await?;
        Ok(match swapped {
            Swapped::Done(version) => {
                stored.version = version;
                Some(CallRecord::read(stored))
            }
            // A change that reported an error may have landed all the same.
            Swapped::Conflict(Some(found)) if found.data["claim"] == *claim => {
                Some(CallRecord::read(found))
            }
            Swapped::Conflict(_) => None,
        })
    }

    /// Removes a record whose call has its result.
    pub async fn remove(&self, record: &CallRecord) -> Result<()> {
        let key = &record.stored.key;
        self.patiently(|| self.store.remove(key, None))
            .await
            .map(drop)
    }

    /// All records of the conversation.
    pub async fn all(&self) -> Result<Vec<CallRecord>> {
        let mut found = Vec::new();
        for kind in KINDS {
            let (store, project) = (self.store.as_ref(), &self.project);
            let conversation = Some(&*self.conversation);
            let listed = self
                .patiently(|| list(store, project, kind, conversation))
                .await?;
            found.extend(listed.into_iter().map(CallRecord::read));
        }
        Ok(found)
    }

    /// A key that older kernels use too: conversation and call, with `%` and `|` escaped.
    fn key(&self, kind: StateKind, tool_use_id: &str) -> StateKey {
        let escaped = |part: &str| part.replace('%', "%25").replace('|', "%7C");
        StateKey {
            project: self.project.clone(),
            kind,
            key: format!("{}|{}", escaped(&self.conversation), escaped(tool_use_id)),
        }
    }

    /// Tries again what may pass, as long as a change may take.
    async fn patiently<T, W>(&self, mut work: impl FnMut() -> W) -> Result<T>
    where
        W: Future<Output = Result<T>>,
    {
        let failure = Mutex::new(None);
        let attempts = async {
            let mut pauses = PAUSES.iter();
            loop {
                let error = match work().await {
                    Ok(done) => return Ok(done),
                    Err(error) => error,
                };
                let Some(pause) = pauses.next().filter(|_| error.is_retryable()) else {
                    return Err(error);
                };
                *lock(&failure) = Some(error);
                self.clock.sleep(*pause).await;
            }
        };
        let result = tokio::select! {
            biased;
            result = attempts => result,
            () = self.clock.sleep(self.timeout) => {
                Err(lock(&failure).take().unwrap_or_else(|| self.late()))
            }
        };
        result.map_err(|error| unavailable(&error))
    }

    fn late(&self) -> KernelError {
        let ms = self.timeout.as_millis();
        KernelError::new(ErrorKind::Store, format!("no answer within {ms} ms"))
    }
}

/// The value behind a lock whose holders cannot panic.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Conversations of a project, or this one, that have an open call.
pub async fn waiting(
    store: &dyn StateStore,
    project: &Arc<str>,
    conversation: Option<&str>,
) -> Result<HashSet<String>> {
    let mut waiting = HashSet::new();
    for kind in KINDS {
        let listed = list(store, project, kind, conversation).await?;
        let open = listed
            .into_iter()
            .filter(|record| record.data["result"].is_null());
        waiting.extend(open.filter_map(|record| record.conversation));
    }
    Ok(waiting)
}

async fn list(
    store: &dyn StateStore,
    project: &Arc<str>,
    kind: StateKind,
    conversation: Option<&str>,
) -> Result<Vec<StateRecord>> {
    let mut found: Vec<StateRecord> = Vec::new();
    loop {
        let page = store
            .list(&StateQuery {
                project: project.clone(),
                kind,
                conversation: conversation.map(str::to_owned),
                after: found.last().map(|record| record.key.key.clone()),
                limit: PAGE,
            })
            .await?;
        let is_last = page.len() < PAGE;
        found.extend(page);
        if is_last || found.len() >= MOST {
            return Ok(found);
        }
    }
}

fn state_kind(kind: OpenKind) -> StateKind {
    match kind {
        OpenKind::Approval => StateKind::Approval,
        OpenKind::ClientTool => StateKind::ClientTool,
        OpenKind::Question => StateKind::Question,
    }
}

fn contended() -> KernelError {
    KernelError::new(ErrorKind::Store, "others keep changing the record")
}

fn unavailable(error: &KernelError) -> KernelError {
    let message = format!(
        "the store of calls that wait for an answer fails ({}); try again later",
        error.message()
    );
    KernelError::new(ErrorKind::StoreUnavailable, message).with_detail("cause", error.code())
}

#[cfg(test)]
mod tests;
