//! Records from messages, taken newest first.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::content::{Call, CallResult, Message, Piece};
use super::marks::Outcome;
use super::{HistoryPage, cursor};
use crate::protocol::{
    CallStatus, MessagePart, MessageRecord, MessageStatus, OpenCall, Role, bare_name,
};
use crate::store::session::IndexRow;

/// Messages after which a record of the assistant ends at the next answer, counted from its end. The
/// answers in front of it are a record of their own, so that no record needs a whole long session.
pub(super) const MAX_MESSAGES: usize = 1_000;

/// Which records belong to the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub limit: usize,
    /// Skips records until one was created before this.
    pub before_ms: Option<u64>,
    /// Ends at the first record that was not created after this.
    pub after_ms: Option<u64>,
}

/// Makes records of messages.
pub(super) struct Aggregator<'a> {
    conversation: &'a str,
    bounds: Bounds,
    open: HashMap<&'a str, &'a OpenCall>,
    /// Of the calls in older messages.
    results: HashMap<String, CallResult>,
    /// Newest first.
    records: Vec<MessageRecord>,
    draft: Option<Draft>,
    /// Whether there are older records.
    has_more: bool,
    /// Whether the older records are too old.
    is_ended: bool,
    /// Calls that neither wait nor have a result.
    unresolved: Vec<String>,
}

/// A record that may still get older messages.
struct Draft {
    /// The oldest message that is shown.
    first: IndexRow,
    /// Parts of messages, newest message first.
    parts: Vec<Vec<MessagePart>>,
    status: MessageStatus,
    /// All messages it spans, also those that are not shown.
    messages: usize,
}

impl<'a> Aggregator<'a> {
    pub fn new(conversation: &'a str, bounds: Bounds, open: &'a [OpenCall]) -> Self {
        let open = open.iter().map(|call| (call.tool_use_id.as_str(), call));
        Self {
            conversation,
            bounds,
            open: open.collect(),
            results: HashMap::new(),
            records: Vec::new(),
            draft: None,
            has_more: false,
            is_ended: false,
            unresolved: Vec::new(),
        }
    }

    pub fn limit(&self) -> usize {
        self.bounds.limit
    }

    /// Takes results, in order, that come after all messages still to come. The result nearest to its
    /// call counts: the model saw that one. One that says that the call was put off counts least.
    pub fn add_results(&mut self, results: Vec<CallResult>) {
        for result in results.into_iter().rev() {
            let known = self.results.get(&result.call);
            if result.outcome != Outcome::PutOff || known.is_none() {
                self.results.insert(result.call.clone(), result);
            }
        }
    }

    /// Calls in messages (newest first) that neither wait nor have a result so far.
    pub fn unanswered(&self, messages: &[Message]) -> HashSet<String> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut unanswered = HashSet::new();
        for message in messages {
            seen.extend(message.results.iter().map(|result| result.call.as_str()));
            let open = message.calls().map(|call| call.id.as_str()).filter(|id| {
                !seen.contains(id) && !self.results.contains_key(*id) && !self.open.contains_key(id)
            });
            unanswered.extend(open.map(str::to_owned));
        }
        unanswered
    }

    /// Takes the next older message. Breaks when no older one is needed.
    pub fn push(&mut self, message: Message) -> ControlFlow<()> {
        let Message {
            row,
            pieces,
            results,
            is_failure,
        } = message;
        self.add_results(results);
        let parts: Vec<_> = pieces
            .into_iter()
            .flat_map(|piece| self.parts(piece))
            .collect();
        if parts.is_empty() && !is_failure {
            if let Some(draft) = &mut self.draft {
                draft.messages += 1;
            }
            return ControlFlow::Continue(());
        }
        if let Some(draft) = self.draft.as_mut().filter(|draft| draft.takes(&row)) {
            draft.add(row, parts);
            return ControlFlow::Continue(());
        }
        self.close();
        self.has_more = self.records.len() == self.bounds.limit;
        if self.has_more || self.is_ended {
            return ControlFlow::Break(());
        }
        self.draft = Some(Draft::new(row, parts, is_failure));
        ControlFlow::Continue(())
    }

    /// The page, when no older message is there or needed.
    pub fn page(mut self) -> HistoryPage {
        self.close();
        let oldest = self.records.last().filter(|_| self.has_more);
        let next_cursor = oldest.map(|record| record.cursor.clone());
        self.records.reverse();
        HistoryPage {
            records: self.records,
            next_cursor,
            unresolved: self.unresolved,
        }
    }

    /// Ends the record that is being made.
    fn close(&mut self) {
        let Some(draft) = self.draft.take() else {
            return;
        };
        let created = draft.first.created_at;
        if self
            .bounds
            .before_ms
            .is_some_and(|before| created >= before)
        {
            return;
        }
        self.bounds.before_ms = None;
        if self.bounds.after_ms.is_some_and(|after| created <= after) {
            self.is_ended = true;
            return;
        }
        self.records.push(draft.record(self.conversation));
    }

    fn parts(&mut self, piece: Piece) -> Vec<MessagePart> {
        let call = match piece {
            Piece::Part(part) => return vec![part],
            Piece::Call(call) => call,
        };
        let result = self.results.get(&call.id);
        let result = result.filter(|result| result.outcome != Outcome::PutOff);
        match (result, self.open.get(call.id.as_str())) {
            (Some(result), _) => with_result(call, result),
            (None, Some(open)) => waiting(call, open),
            (None, None) => {
                self.unresolved.push(call.id.clone());
                // One that was put off, and nobody waits for any more, is hidden.
                let is_hidden = self.results.contains_key(&call.id);
                let shown = (!is_hidden).then(|| tool_call(call, CallStatus::Executing));
                shown.into_iter().collect()
            }
        }
    }
}

fn with_result(call: Call, result: &CallResult) -> Vec<MessagePart> {
    let status = match result.outcome {
        Outcome::Denied => CallStatus::Denied,
        Outcome::Done | Outcome::PutOff => CallStatus::Done,
    };
    let result = MessagePart::ToolResult {
        tool_use_id: call.id.clone(),
        output: result.output.clone(),
        is_error: result.is_error,
        status,
    };
    vec![tool_call(call, status), result]
}

fn waiting(call: Call, open: &OpenCall) -> Vec<MessagePart> {
    let required = MessagePart::ToolApprovalRequired {
        tool_use_id: call.id.clone(),
        tool_name: bare_name(&open.tool_name).to_owned(),
        input: open.input.clone(),
    };
    vec![tool_call(call, CallStatus::AwaitingApproval), required]
}

fn tool_call(call: Call, status: CallStatus) -> MessagePart {
    let Call { id, name, input } = call;
    MessagePart::ToolCall {
        tool_use_id: id,
        tool_name: name,
        input,
        status,
    }
}

impl Draft {
    fn new(first: IndexRow, parts: Vec<MessagePart>, is_failure: bool) -> Self {
        // The newest message says how it ended.
        let status = if is_failure {
            MessageStatus::Error
        } else {
            MessageStatus::Done
        };
        Self {
            first,
            parts: vec![parts],
            status,
            messages: 1,
        }
    }

    /// Whether an older message belongs to this record.
    fn takes(&self, row: &IndexRow) -> bool {
        self.first.role == Role::Assistant
            && row.role == Role::Assistant
            && self.messages < MAX_MESSAGES
    }

    fn add(&mut self, first: IndexRow, parts: Vec<MessagePart>) {
        self.first = first;
        self.parts.push(parts);
        self.messages += 1;
    }

    fn record(self, conversation: &str) -> MessageRecord {
        MessageRecord {
            id: self.first.message_id,
            conversation_id: conversation.to_owned(),
            role: self.first.role,
            parts: self.parts.into_iter().rev().flatten().collect(),
            status: self.status,
            created_at: self.first.created_at,
            cursor: cursor::encode(self.first.seq),
        }
    }
}
