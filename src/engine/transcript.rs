//! The transcript of a session: its entries, and writing new ones.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;

use crate::base::clock::{SharedClock, iso_timestamp};
use crate::base::id;
use crate::model::Answer;
use crate::protocol::{
    ContentBlock, Entry, EntryMessage, Json, JsonMap, MessageContent, Role, Thread, puts_off,
};

use super::journal::Journal;

/// `oak.kind` of a result that came from outside of the run.
const ANSWER: &str = "tool_answer";

/// The entries of one session, in append order.
#[derive(Debug)]
pub struct Transcript {
    session_id: Arc<str>,
    clock: SharedClock,
    entries: Vec<Entry>,
    /// Message and call ids in use.
    taken: HashSet<String>,
    leaf: Option<String>,
    /// Entries up to here were handed to the journal.
    journaled: usize,
    journal: Option<Arc<Journal>>,
}

/// A call of the model, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCall {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub input: Json,
    /// The entry that holds it.
    pub entry: Option<String>,
    /// Whether an older kernel wrote a result that only says that it waits.
    pub put_off: bool,
}

/// Whether a call has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    No,
    /// In the run that made it, or in the place of an answer from outside.
    Yes,
    /// From outside of the run.
    Outside,
}

impl Transcript {
    pub fn new(session_id: Arc<str>, clock: SharedClock) -> Self {
        Self {
            session_id,
            clock,
            entries: Vec::new(),
            taken: HashSet::new(),
            leaf: None,
            journaled: 0,
            journal: None,
        }
    }

    /// Hands every new entry to a journal.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Where new entries go.
    pub fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.as_ref()
    }

    /// Puts stored entries in the place of what is here.
    pub fn reload(&mut self, entries: Vec<Entry>) {
        let (session_id, clock) = (self.session_id.clone(), self.clock.clone());
        let journal = self.journal.take();
        *self = Self::from_entries(session_id, clock, entries);
        self.journal = journal;
    }

    /// Goes on behind a message, which its uuid or its id names; whether there is one. What came after
    /// it stays in the store, on a branch of its own.
    pub fn rewind(&mut self, message: &str) -> bool {
        let names = |entry: &Entry| {
            let id = entry
                .message
                .as_ref()
                .and_then(|message| message.id.as_deref());
            entry.uuid.as_deref() == Some(message) || id == Some(message)
        };
        let Some(last) = self.entries.iter().rposition(names) else {
            return false;
        };
        let behind = self.entries.split_off(last + 1);
        let calls: HashSet<&str> = call_ids(&self.entries).collect();
        let answers = |entry: &Entry| answers_one_of(entry, &calls);
        let results: Vec<Entry> = behind.into_iter().filter(answers).collect();
        self.entries.extend(results);
        self.leaf = self.entries.last().and_then(|entry| entry.uuid.clone());
        self.journaled = self.entries.len();
        true
    }

    /// A transcript that goes on from stored entries.
    pub fn from_entries(session_id: Arc<str>, clock: SharedClock, entries: Vec<Entry>) -> Self {
        let mut taken: HashSet<String> = call_ids(&entries).map(str::to_owned).collect();
        let messages = entries.iter().filter_map(|entry| entry.message.as_ref());
        taken.extend(messages.filter_map(|message| message.id.clone()));
        let leaf = Thread::positions(&entries)
            .last()
            .and_then(|&at| entries[at].uuid.clone());
        Self {
            session_id,
            clock,
            journaled: entries.len(),
            entries,
            taken,
            leaf,
            journal: None,
        }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Ids that the conversation has used.
    pub fn taken_ids(&self) -> &HashSet<String> {
        &self.taken
    }

    /// The entries of the main conversation, oldest first.
    pub fn thread(&self) -> impl Iterator<Item = &Entry> {
        Thread::positions(&self.entries)
            .into_iter()
            .map(|at| &self.entries[at])
    }

    /// Appends what the user said.
    pub fn append_prompt(&mut self, text: &str) {
        self.append_user(MessageContent::Text(text.to_owned()), |_| {});
    }

    /// Appends what the kernel says in the user's name; histories hide it.
    pub fn append_note(&mut self, text: &str) {
        self.append_user(MessageContent::Text(text.to_owned()), |entry| {
            entry.is_meta = true;
        });
    }

    /// Appends an answer, one entry a block, and gives its calls.
    pub fn append_answer(&mut self, answer: Answer) -> Vec<StoredCall> {
        let Answer {
            id,
            model,
            request_id,
            blocks,
            stop_reason,
            usage,
            ..
        } = answer;
        let mut calls = Vec::new();
        self.taken.insert(id.clone());
        for block in blocks {
            let block = Arc::new(block);
            let message = EntryMessage {
                role: Role::Assistant,
                content: MessageContent::Blocks(vec![block.clone()]),
                id: Some(id.clone()),
                model: Some(model.clone()),
                stop_reason: stop_reason.clone(),
                usage: Some(usage),
                extra: JsonMap::new(),
            };
            let mut entry = self.entry("assistant", message);
            entry.request_id.clone_from(&request_id);
            let uuid = entry.uuid.clone();
            self.append(entry);
            if let ContentBlock::ToolUse { id, name, input } = block.as_ref() {
                self.taken.insert(id.clone());
                calls.push(StoredCall {
                    id: id.as_str().into(),
                    name: name.as_str().into(),
                    input: input.clone(),
                    entry: uuid,
                    put_off: false,
                });
            }
        }
        self.hand_over();
        calls
    }

    /// Appends the result of a call; `raw` is the output in the tool's own form.
    pub fn append_result(&mut self, call: &StoredCall, result: ContentBlock, raw: Option<Json>) {
        self.append_result_entry(call, result, raw, false);
    }

    /// The same for a result that came from outside of the run.
    pub fn append_answer_of(&mut self, call: &StoredCall, result: ContentBlock, raw: Option<Json>) {
        self.append_result_entry(call, result, raw, true);
    }

    fn append_result_entry(
        &mut self,
        call: &StoredCall,
        result: ContentBlock,
        raw: Option<Json>,
        is_answer: bool,
    ) {
        let source = call.entry.clone();
        let uuid = id::derived(&["tool_result", &self.session_id, &call.id]);
        self.append_user(MessageContent::Blocks(vec![Arc::new(result)]), |entry| {
            // The result hangs on the entry that made the call, unless the conversation went on since.
            if source.is_some() && !call.put_off {
                entry.parent_uuid.clone_from(&source);
            }
            entry.source_tool_assistant_uuid = source;
            entry.tool_use_result = raw;
            // The same for every writer: a result that is stored twice is stored once.
            entry.uuid = Some(uuid);
            if is_answer {
                let mark = json!({ "kind": ANSWER });
                entry.extra.insert("oak".to_owned(), mark);
            }
        });
    }

    /// The calls of the main conversation that have no result. Of those that an older kernel put off
    /// only the ones behind the last prompt: the others were given up.
    pub fn open_calls(&self) -> Vec<StoredCall> {
        let mut open: Vec<StoredCall> = Vec::new();
        let mut settled: HashSet<&str> = HashSet::new();
        let mut put_off: HashSet<&str> = HashSet::new();
        for entry in self.thread() {
            let Some(message) = entry.model_message() else {
                continue;
            };
            if message.role == Role::User && !entry.is_meta && has_text(&message.content) {
                settled.extend(put_off.drain());
            }
            for block in message.content.as_blocks() {
                if let Some(call) = stored_call(block, entry) {
                    settled.remove(&*call.id);
                    open.push(call);
                } else if puts_off(block) {
                    put_off.extend(block.answers());
                } else if let Some(id) = block.answers() {
                    put_off.remove(id);
                    settled.insert(id);
                }
            }
        }
        open.retain(|call| !settled.contains(&*call.id));
        for call in &mut open {
            call.put_off = put_off.contains(&*call.id);
        }
        open
    }

    /// A call of the main conversation, and whether it has a result.
    pub fn find_call(&self, tool_use_id: &str) -> Option<(StoredCall, Answered)> {
        let mut found: Option<(StoredCall, Answered)> = None;
        for entry in self.thread() {
            let blocks = entry
                .model_message()
                .map(|message| message.content.as_blocks());
            for block in blocks.unwrap_or_default() {
                if block.call_id() == Some(tool_use_id) {
                    found = stored_call(block, entry).map(|call| (call, Answered::No));
                } else if let Some((call, answered)) = &mut found
                    && block.answers() == Some(tool_use_id)
                {
                    if puts_off(block) {
                        call.put_off = true;
                    } else {
                        *answered = answered_by(entry);
                    }
                }
            }
        }
        found
    }

    fn append_user(&mut self, content: MessageContent, change: impl FnOnce(&mut Entry)) {
        let message = EntryMessage {
            role: Role::User,
            content,
            id: None,
            model: None,
            stop_reason: None,
            usage: None,
            extra: JsonMap::new(),
        };
        let mut entry = self.entry("user", message);
        change(&mut entry);
        self.append(entry);
        self.hand_over();
    }

    fn entry(&self, kind: &str, message: EntryMessage) -> Entry {
        Entry {
            kind: kind.to_owned(),
            uuid: Some(id::random()),
            parent_uuid: self.leaf.clone(),
            session_id: Some(self.session_id.to_string()),
            timestamp: Some(iso_timestamp(self.clock.now_ms())),
            is_sidechain: false,
            is_meta: false,
            is_api_error_message: false,
            subtype: None,
            request_id: None,
            source_tool_assistant_uuid: None,
            tool_use_result: None,
            message: Some(message),
            extra: JsonMap::new(),
        }
    }

    fn append(&mut self, entry: Entry) {
        self.leaf.clone_from(&entry.uuid);
        self.entries.push(entry);
    }

    fn hand_over(&mut self) {
        if let Some(journal) = &self.journal {
            journal.push(&self.entries[self.journaled..]);
        }
        self.journaled = self.entries.len();
    }
}

fn stored_call(block: &ContentBlock, entry: &Entry) -> Option<StoredCall> {
    let ContentBlock::ToolUse { id, name, input } = block else {
        return None;
    };
    Some(StoredCall {
        id: id.as_str().into(),
        name: name.as_str().into(),
        input: input.clone(),
        entry: entry.uuid.clone(),
        put_off: false,
    })
}

fn answered_by(entry: &Entry) -> Answered {
    let mark = entry.extra.get("oak").map(|oak| &oak["kind"]);
    if mark.is_some_and(|kind| kind == ANSWER) {
        Answered::Outside
    } else {
        Answered::Yes
    }
}

/// Whether a message holds something that a person wrote.
fn has_text(content: &MessageContent) -> bool {
    match content {
        MessageContent::Text(_) => true,
        MessageContent::Blocks(blocks) => blocks
            .iter()
            .any(|block| matches!(**block, ContentBlock::Text { .. })),
    }
}

/// Ids of the calls in entries.
fn call_ids(entries: &[Entry]) -> impl Iterator<Item = &str> {
    let messages = entries.iter().filter_map(|entry| entry.message.as_ref());
    messages
        .flat_map(|message| message.content.as_blocks())
        .filter_map(|block| block.call_id())
}

/// Whether an entry holds results of calls and nothing else.
fn answers_one_of(entry: &Entry, calls: &HashSet<&str>) -> bool {
    let blocks = entry
        .message
        .as_ref()
        .map_or(&[][..], |message| message.content.as_blocks());
    let is_answer =
        |block: &Arc<ContentBlock>| block.answers().is_some_and(|id| calls.contains(id));
    !blocks.is_empty() && blocks.iter().all(is_answer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::clock::SystemClock;

    fn transcript() -> Transcript {
        Transcript::new("s".into(), Arc::new(SystemClock))
    }

    fn call(id: &str) -> ContentBlock {
        ContentBlock::ToolUse {
            id: id.into(),
            name: "n".into(),
            input: json!({}),
        }
    }

    #[test]
    fn an_answer_has_one_entry_a_block_and_results_hang_on_their_call() {
        let mut transcript = transcript();
        transcript.append_prompt("go");
        let blocks = vec![ContentBlock::text("ok"), call("t1"), call("t2")];
        let calls = transcript.append_answer(Answer {
            id: "m1".into(),
            blocks,
            ..Answer::default()
        });
        transcript.append_result(
            &calls[0],
            ContentBlock::result_text("t1", "one", false),
            None,
        );
        assert_eq!(transcript.entries().len(), 5);
        let result = &transcript.entries()[4];
        assert_eq!(result.parent_uuid, transcript.entries()[2].uuid);
        assert_eq!(result.source_tool_assistant_uuid, result.parent_uuid);
        let open = transcript.open_calls();
        assert_eq!(open.len(), 1);
        assert_eq!(&*open[0].id, "t2");
        assert_eq!(transcript.thread().count(), 5);
    }

    fn sentinel(id: &str) -> ContentBlock {
        ContentBlock::result_text(id, r#"{"__OAK_CLIENT_TOOL__":true}"#, true)
    }

    #[test]
    fn calls_that_an_older_kernel_put_off_are_open_until_the_next_prompt() {
        let mut transcript = transcript();
        transcript.append_prompt("go");
        let calls = transcript.append_answer(Answer {
            id: "m1".into(),
            blocks: vec![call("t1"), call("t2")],
            ..Answer::default()
        });
        transcript.append_result(&calls[0], sentinel("t1"), None);
        transcript.append_result(&calls[1], sentinel("t2"), None);
        let open = transcript.open_calls();
        assert_eq!(open.len(), 2);
        assert!(open.iter().all(|call| call.put_off));
        let real = ContentBlock::result_text("t1", "real", false);
        transcript.append_answer_of(&open[0], real, None);
        assert_eq!(transcript.open_calls().len(), 1);
        assert_eq!(transcript.find_call("t1").unwrap().1, Answered::Outside);
        transcript.append_prompt("never mind");
        assert!(transcript.open_calls().is_empty());
        let (call, answered) = transcript.find_call("t2").unwrap();
        assert!(call.put_off && answered == Answered::No);
        assert!(transcript.find_call("t3").is_none());
    }

    #[test]
    fn stored_entries_go_on_where_they_ended() {
        let mut first = transcript();
        first.append_prompt("one");
        first.append_answer(Answer {
            id: "m1".into(),
            blocks: vec![call("t1")],
            ..Answer::default()
        });
        let entries = first.entries().to_vec();
        let mut second = Transcript::from_entries("s".into(), Arc::new(SystemClock), entries);
        assert!(second.taken_ids().contains("m1") && second.taken_ids().contains("t1"));
        let call = second.open_calls().remove(0);
        second.append_result(&call, ContentBlock::result_text("t1", "late", true), None);
        assert!(second.open_calls().is_empty());
    }
}
