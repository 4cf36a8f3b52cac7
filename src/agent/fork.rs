//! Copying a stored session, or its beginning.

use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Entry, Json, JsonMap, Role, StoredEntry, Thread};
use crate::store::session::{Registration, SessionKey};

use super::config::Fields;
use super::core::{Agent, AgentCore, check_id, identifier};
use super::sessions::{exists, refuse_unknown};
use super::storage::Storage;

/// Entries that a fork copies at once.
const COPY_BATCH: usize = 500;

/// How much of a session a fork copies, and to where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkOptions {
    /// The last message to copy, by its uuid or id.
    pub up_to_message_id: Option<String>,
    /// How many messages to copy.
    pub up_to_message_index: Option<u64>,
    /// Id of the copy; none: a random one.
    pub conversation_id: Option<String>,
}

impl ForkOptions {
    /// Checks the options of `agent.sessions.fork`.
    pub fn parse(options: &Json) -> Result<Self> {
        let fields = Fields::optional("sessions.fork options", options)?;
        let parsed = Self::read(&fields)?;
        refuse_unknown(&fields, "sessions.fork")?;
        Ok(parsed)
    }

    /// Reads the options that say how much is copied.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self> {
        let parsed = Self {
            up_to_message_id: fields.text("upToMessageId")?.map(str::to_owned),
            up_to_message_index: fields.integer("upToMessageIndex", 0..=u64::from(u32::MAX))?,
            conversation_id: identifier(fields, "conversationId")?,
        };
        if parsed.up_to_message_id.is_some() && parsed.up_to_message_index.is_some() {
            let (one, other) = (
                fields.path("upToMessageId"),
                fields.path("upToMessageIndex"),
            );
            return Err(KernelError::invalid(format!(
                "{one} and {other} exclude each other: give one of them"
            )));
        }
        Ok(parsed)
    }
}

impl Agent {
    /// Copies a stored session, or its beginning; gives the id of the copy.
    pub async fn fork_session(&self, id: &str, options: &ForkOptions) -> Result<String> {
        check_id("sessions.fork: the conversation id", id)?;
        let storage = self.storage("sessions.fork")?;
        self.core().fork(storage, id, options).await
    }
}

impl AgentCore {
    /// Copies a session; gives the id of the copy.
    pub(super) async fn fork(
        &self,
        storage: &Storage,
        from: &str,
        options: &ForkOptions,
    ) -> Result<String> {
        let store = storage.store();
        let target = options.conversation_id.clone().unwrap_or_else(id::random);
        if exists(storage, &target).await? {
            return Err(KernelError::new(
                ErrorKind::SessionExists,
                "fork: a session with the id of the copy exists; choose another conversationId",
            ));
        }
        let Some(loaded) = store.load(&storage.key(from), None).await? else {
            return Err(KernelError::new(
                ErrorKind::Resource,
                "fork: no stored session has the id of the source",
            ));
        };
        let entries: Vec<StoredEntry> = loaded
            .entries
            .into_iter()
            .map(|placed| placed.entry)
            .collect();
        let kept = selected(entries, options)?;
        self.copy(storage, &kept, &storage.key(&target)).await?;
        if options.up_to_message_id.is_none() && options.up_to_message_index.is_none() {
            for subpath in store.subkeys(storage.project(), from).await? {
                let key = storage.key(from).with_subpath(&subpath);
                let sub = store.load(&key, None).await?.unwrap_or_default();
                let sub: Vec<_> = sub.entries.into_iter().map(|placed| placed.entry).collect();
                let to = storage.key(&target).with_subpath(&subpath);
                self.copy(storage, &sub, &to).await?;
            }
        }
        let source = store.get(storage.project(), from).await?;
        let registration = Registration {
            user: source.as_ref().and_then(|row| row.user.clone()),
            title: source
                .as_ref()
                .and_then(|row| row.shown_title().map(str::to_owned)),
            metadata: source.and_then(|row| row.metadata),
            parent: Some(from.to_owned()),
        };
        store
            .register(storage.project(), &target, &registration)
            .await?;
        Ok(target)
    }

    /// Appends entries to a transcript of another session, under its id.
    async fn copy(
        &self,
        storage: &Storage,
        entries: &[StoredEntry],
        to: &SessionKey,
    ) -> Result<()> {
        let renamed = entries.iter().map(|entry| with_session(entry, &to.session));
        let renamed: Vec<StoredEntry> = renamed.collect::<Result<_>>()?;
        for batch in renamed.chunks(COPY_BATCH) {
            storage.store().append(to, batch, None).await?;
        }
        Ok(())
    }
}

fn with_session(entry: &StoredEntry, session: &str) -> Result<StoredEntry> {
    let failed = |error: serde_json::Error| {
        KernelError::new(ErrorKind::SerializeFailed, format!("fork: {error}"))
    };
    let mut fields: JsonMap = serde_json::from_str(entry.text()).map_err(failed)?;
    if fields.contains_key("sessionId") {
        fields.insert("sessionId".to_owned(), session.into());
    }
    StoredEntry::parse(Json::from(fields).to_string()).map_err(failed)
}

/// The entries that a fork copies: all of them, or the main conversation up to a message.
fn selected(entries: Vec<StoredEntry>, options: &ForkOptions) -> Result<Vec<StoredEntry>> {
    let ForkOptions {
        up_to_message_id,
        up_to_message_index,
        ..
    } = options;
    if up_to_message_id.is_none() && up_to_message_index.is_none() {
        return Ok(entries);
    }
    let parsed: Vec<(usize, Entry)> = entries
        .iter()
        .enumerate()
        .filter_map(|(at, entry)| Some((at, entry.entry()?)))
        .collect();
    let (places, messages): (Vec<usize>, Vec<Entry>) = parsed.into_iter().unzip();
    let thread: Vec<usize> = Thread::positions(&messages)
        .into_iter()
        .filter(|&at| messages[at].message.is_some())
        .collect();
    let ends = message_ends(&messages, &thread);
    let kept = match (up_to_message_id, up_to_message_index) {
        (Some(id), _) => ends
            .iter()
            .copied()
            .find(|&end| {
                let start = ends
                    .iter()
                    .rev()
                    .find(|&&other| other < end)
                    .map_or(0, |&end| end);
                thread[start..end]
                    .iter()
                    .any(|&at| is_named(&messages[at], id))
            })
            .ok_or_else(|| {
                KernelError::new(
                    ErrorKind::Resource,
                    "fork: upToMessageId names no message of the conversation",
                )
            })?,
        (None, Some(count)) => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            if count > ends.len() {
                return Err(KernelError::invalid(format!(
                    "fork: upToMessageIndex {count} is out of range (0..={})",
                    ends.len()
                )));
            }
            count.checked_sub(1).map_or(0, |last| ends[last])
        }
        (None, None) => thread.len(),
    };
    let kept: Vec<usize> = thread[..kept].iter().map(|&at| places[at]).collect();
    Ok(kept.into_iter().map(|at| entries[at].clone()).collect())
}

/// Where each message of a thread ends: the entries of one answer are one message, and so are those
/// of the user between two answers that hold nothing but tool results.
fn message_ends(messages: &[Entry], thread: &[usize]) -> Vec<usize> {
    let mut ends = Vec::new();
    for (place, &at) in thread.iter().enumerate() {
        let next = thread.get(place + 1).map(|&next| &messages[next]);
        if !next.is_some_and(|next| is_one_message(&messages[at], next)) {
            ends.push(place + 1);
        }
    }
    ends
}

fn is_one_message(entry: &Entry, next: &Entry) -> bool {
    let (Some(one), Some(other)) = (&entry.message, &next.message) else {
        return false;
    };
    let holds_results = |entry: &Entry| {
        let blocks = entry
            .message
            .as_ref()
            .map_or(&[][..], |message| message.content.as_blocks());
        !blocks.is_empty() && blocks.iter().all(|block| block.answers().is_some())
    };
    match (one.role, other.role) {
        (Role::Assistant, Role::Assistant) => one.id.is_some() && one.id == other.id,
        (Role::User, Role::User) => holds_results(entry) && holds_results(next),
        _ => false,
    }
}

fn is_named(entry: &Entry, name: &str) -> bool {
    let id = entry
        .message
        .as_ref()
        .and_then(|message| message.id.as_deref());
    entry.uuid.as_deref() == Some(name) || id == Some(name)
}
