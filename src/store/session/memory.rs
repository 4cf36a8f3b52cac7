//! Transcripts in the memory of the process.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{
    Caps, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey, SessionRow,
    SessionStore, fenced_out, fold,
};
use crate::base::clock::{SharedClock, parse_timestamp};
use crate::error::Result;
use crate::protocol::StoredEntry;
use crate::store::state::{MemoryState, StateStore};

/// Sessions by project and id.
type Sessions = BTreeMap<(Arc<str>, Arc<str>), Session>;

/// A store that lives as long as the process.
pub struct MemoryStore {
    clock: SharedClock,
    sessions: Mutex<Sessions>,
    state: Arc<MemoryState>,
}

#[derive(Default)]
struct Session {
    row: SessionRow,
    /// Whether the main transcript was written or the session registered.
    is_listed: bool,
    fence: u64,
    hidden_through: u64,
    transcripts: BTreeMap<Option<Arc<str>>, Transcript>,
}

#[derive(Default)]
struct Transcript {
    entries: Vec<Placed>,
    by_uuid: HashMap<String, usize>,
    by_message: HashMap<String, Vec<usize>>,
    index: Vec<IndexRow>,
}

impl MemoryStore {
    pub fn new(clock: SharedClock) -> Self {
        Self {
            state: Arc::new(MemoryState::new(clock.clone())),
            clock,
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // No call panics between two changes that belong together.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a session; the default of `T` when there is none.
    fn read<T: Default>(
        &self,
        project: &str,
        session: &str,
        look: impl FnOnce(&Session) -> T,
    ) -> T {
        let sessions = self.sessions();
        sessions
            .get(&(project.into(), session.into()))
            .map(look)
            .unwrap_or_default()
    }

    fn read_transcript<T: Default>(
        &self,
        key: &SessionKey,
        look: impl FnOnce(&Transcript) -> T,
    ) -> T {
        self.read(&key.project, &key.session, |session| {
            session
                .transcripts
                .get(&key.subpath)
                .map(look)
                .unwrap_or_default()
        })
    }

    fn write<T>(
        &self,
        project: &str,
        session: &str,
        change: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let mut sessions = self.sessions();
        let entry = sessions
            .entry((project.into(), session.into()))
            .or_default();
        if entry.row.session.is_empty() {
            session.clone_into(&mut entry.row.session);
        }
        change(entry)
    }
}

impl Session {
    fn touch(&mut self, now: u64) {
        if !self.is_listed {
            self.is_listed = true;
            self.row.created_at = now;
        }
        self.row.updated_at = now;
    }
}

impl Transcript {
    fn last_seq(&self) -> u64 {
        self.entries.last().map_or(0, |placed| placed.seq)
    }

    fn push(&mut self, entry: &StoredEntry, now: u64) {
        let (seq, position) = (self.last_seq() + 1, self.entries.len());
        if let Some(uuid) = &entry.uuid {
            self.by_uuid.insert(uuid.clone(), position);
        }
        if let Some(message) = &entry.message {
            let of_message = self.by_message.entry(message.id.clone()).or_default();
            if of_message.is_empty() {
                let at = entry.timestamp.as_deref().and_then(parse_timestamp);
                self.index.push(IndexRow {
                    seq,
                    message_id: message.id.clone(),
                    role: message.role,
                    created_at: at.unwrap_or(now),
                });
            }
            of_message.push(position);
        }
        let entry = entry.clone();
        self.entries.push(Placed { seq, entry });
    }

    fn is_new(&self, entry: &StoredEntry) -> bool {
        entry
            .uuid
            .as_ref()
            .is_none_or(|uuid| !self.by_uuid.contains_key(uuid))
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    fn caps(&self) -> Caps {
        Caps::ALL
    }

    async fn append(
        &self,
        key: &SessionKey,
        entries: &[StoredEntry],
        epoch: Option<u64>,
    ) -> Result<u64> {
        if entries.is_empty() {
            return Ok(self.read_transcript(key, Transcript::last_seq));
        }
        let now = self.clock.now_ms();
        self.write(&key.project, &key.session, |session| {
            if epoch.is_some_and(|epoch| epoch < session.fence) {
                return Err(fenced_out());
            }
            let transcript = session.transcripts.entry(key.subpath.clone()).or_default();
            let mut new = Vec::new();
            for entry in entries {
                if transcript.is_new(entry) {
                    transcript.push(entry, now);
                    new.push(entry.clone());
                }
            }
            let last = transcript.last_seq();
            if key.subpath.is_none() && !new.is_empty() {
                fold(&mut session.row.summary, &new);
                session.touch(now);
            }
            Ok(last)
        })
    }

    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        let mut sessions = self.sessions();
        let transcript = sessions
            .get_mut(&(key.project.clone(), key.session.clone()))
            .and_then(|session| session.transcripts.get_mut(&key.subpath));
        let Some((transcript, uuid)) = transcript.zip(entry.uuid.as_ref()) else {
            return Ok(false);
        };
        let Some(&position) = transcript.by_uuid.get(uuid) else {
            return Ok(false);
        };
        transcript.entries[position].entry = entry.clone();
        Ok(true)
    }

    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()> {
        self.write(project, session, |session| {
            if epoch < session.fence {
                return Err(fenced_out());
            }
            session.fence = epoch;
            Ok(())
        })
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        Ok(self.read_transcript(key, |transcript| {
            Some(Head {
                seq: transcript.last_seq(),
                count: transcript.entries.len() as u64,
            })
        }))
    }

    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        Ok(self.read_transcript(key, |transcript| {
            let entries = transcript.entries.iter();
            let behind = entries.filter(|placed| after.is_none_or(|after| placed.seq > after));
            Some(Loaded {
                entries: behind.cloned().collect(),
                damage: None,
            })
        }))
    }

    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        Ok(self.read_transcript(key, |transcript| {
            let start = transcript.entries.len().saturating_sub(count);
            transcript.entries[start..].to_vec()
        }))
    }

    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        Ok(self.read_transcript(key, |transcript| {
            let wanted: HashSet<&String> = ids.iter().collect();
            let positions: BTreeSet<usize> = wanted
                .into_iter()
                .filter_map(|id| transcript.by_message.get(id))
                .flatten()
                .copied()
                .collect();
            positions
                .into_iter()
                .map(|at| transcript.entries[at].clone())
                .collect()
        }))
    }

    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        Ok(self.read(project, session, |session| {
            let Some(main) = session.transcripts.get(&None) else {
                return Vec::new();
            };
            let end = before.map_or(main.index.len(), |before| {
                main.index.partition_point(|row| row.seq < before)
            });
            let rows = main.index[..end].iter().rev();
            rows.take_while(|row| row.seq > session.hidden_through)
                .take(limit)
                .cloned()
                .collect()
        }))
    }

    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()> {
        self.write(project, session, |session| {
            session.hidden_through = session.hidden_through.max(seq);
            Ok(())
        })
    }

    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()> {
        let now = self.clock.now_ms();
        self.write(project, session, |session| {
            let Registration {
                user,
                title,
                metadata,
                parent,
            } = registration.clone();
            let row = &mut session.row;
            row.user = user.or(row.user.take());
            row.title = title.or(row.title.take());
            row.metadata = metadata.or(row.metadata.take());
            row.parent = parent.or(row.parent.take());
            session.touch(now);
            Ok(())
        })
    }

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        Ok(self.read(project, session, |session| {
            session.is_listed.then(|| session.row.clone())
        }))
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let sessions = self.sessions();
        let mut rows: Vec<&SessionRow> = sessions
            .iter()
            .filter(|((of, _), session)| &**of == project && session.is_listed)
            .map(|(_, session)| &session.row)
            .filter(|row| user.is_none_or(|user| row.user.as_deref() == Some(user)))
            .filter(|row| {
                after.is_none_or(|after| {
                    (row.updated_at, &row.session) < (after.updated_at, &after.session)
                })
            })
            .collect();
        rows.sort_unstable_by(|a, b| (b.updated_at, &b.session).cmp(&(a.updated_at, &a.session)));
        Ok(rows.into_iter().take(limit).cloned().collect())
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        Ok(self.read(project, session, |session| {
            let subpaths = session.transcripts.keys().flatten();
            subpaths.map(ToString::to_string).collect()
        }))
    }

    async fn delete(&self, key: &SessionKey) -> Result<()> {
        let mut sessions = self.sessions();
        let id = (key.project.clone(), key.session.clone());
        if key.subpath.is_none() {
            sessions.remove(&id);
        } else if let Some(session) = sessions.get_mut(&id) {
            session.transcripts.remove(&key.subpath);
        }
        Ok(())
    }

    fn state(&self) -> Option<Arc<dyn StateStore>> {
        Some(self.state.clone())
    }
}
