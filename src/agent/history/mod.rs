//! The history of a session: its transcript as records that a program shows.
//!
//! `source` finds messages in any store, `content` reads what each holds, `marks` knows what the
//! kernel wrote for itself, `aggregate` makes records of them. Messages are read newest first and
//! only until the page is whole, so a page costs the same in a long session as in a short one (with
//! a store that has an index).
//!
//! Order is by sequence, never by time. Records begin at messages that are shown: a message of the
//! user is one record, all that the assistant answered up to the next one is one record. Every page
//! breaks between records, and finds results of its calls behind its end, so that the pages of any
//! size hold what one page of everything holds.

mod aggregate;
mod clear;
mod content;
mod cursor;
mod marks;
mod query;
mod source;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use serde::Serialize;

use self::aggregate::{Aggregator, Bounds};
use self::content::{Message, results_among};
use self::source::Source;
use crate::error::Result;
use crate::protocol::{MessageRecord, OpenCall};
use crate::store::session::{IndexRow, Placed, SessionKey, SessionStore};

pub use clear::{MARKER, clear, marker};
pub use query::HistoryQuery;

/// Rows that are read at once for each record that is wanted; a short turn has about four messages.
const ROWS_PER_RECORD: usize = 4;
/// Fewest and most rows that are read at once.
const CHUNK: (usize, usize) = (32, 512);
/// Rows that are read at once to find a time. Not fewer than a record has messages: a record that
/// begins before the time is then read from its end.
const SEEK_CHUNK: usize = aggregate::MAX_MESSAGES;

/// A part of a history.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    /// Oldest first.
    pub records: Vec<MessageRecord>,
    /// Where the next older page begins; none at the beginning of the history.
    pub next_cursor: Option<String>,
    /// Calls that have no result and are not known to wait.
    #[serde(skip)]
    pub unresolved: Vec<String>,
}

/// The page of a session's history that a query asks for. `open` are the calls of the session that
/// wait for somebody.
///
/// Fails with the errors of the store, and with [`crate::error::ErrorKind::InvalidConfig`] for a
/// cursor that is none. A session that was never written has an empty history.
pub async fn history(
    store: &dyn SessionStore,
    key: &SessionKey,
    query: &HistoryQuery,
    open: &[OpenCall],
) -> Result<HistoryPage> {
    let cursor = query.cursor.as_deref().map(cursor::decode).transpose()?;
    let source = Source::new(store, key).await?;
    let start = match (cursor, query.before_ms) {
        (Some(seq), _) => Some(seq),
        (None, Some(before)) => match seek(&source, before).await? {
            Some(start) => start,
            None => return Ok(HistoryPage::default()),
        },
        (None, None) => None,
    };
    let bounds = Bounds {
        limit: query.limit(),
        // With a cursor the start is chosen already: times may fall along a transcript.
        before_ms: query.before_ms.filter(|_| cursor.is_none()),
        after_ms: query.after_ms,
    };
    let mut reader = Reader {
        source,
        start,
        behind: None,
        aggregator: Aggregator::new(&key.session, bounds, open),
    };
    reader.read().await?;
    Ok(reader.aggregator.page())
}

/// Reads messages, newest first, into an aggregator.
struct Reader<'a> {
    source: Source<'a>,
    /// Only messages below this sequence are shown.
    start: Option<u64>,
    /// The entries from the start on, once they were needed.
    behind: Option<Vec<Placed>>,
    aggregator: Aggregator<'a>,
}

impl Reader<'_> {
    async fn read(&mut self) -> Result<()> {
        let size = self.aggregator.limit().saturating_mul(ROWS_PER_RECORD);
        let size = size.clamp(CHUNK.0, CHUNK.1);
        // The message at the start itself is looked at too: it may hold results.
        let mut before = self.start.map(|start| start.saturating_add(1));
        loop {
            let rows = self.source.rows(before, size).await?;
            before = rows.last().map(|row| row.seq);
            let is_last = rows.len() < size;
            if self.read_chunk(rows).await?.is_break() || is_last {
                return Ok(());
            }
        }
    }

    async fn read_chunk(&mut self, rows: Vec<IndexRow>) -> Result<ControlFlow<()>> {
        let mut messages = self.source.messages(rows).await?;
        if let Some(start) = self.start {
            let shown = messages.partition_point(|message| message.row.seq >= start);
            for message in messages.drain(..shown) {
                self.aggregator.add_results(message.results);
            }
        }
        self.find_late_results(&messages).await?;
        for message in messages {
            if self.aggregator.push(message).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// A call of this page may have been answered behind the start of the page. That is rare: calls
    /// are answered before the next message of the user.
    async fn find_late_results(&mut self, messages: &[Message]) -> Result<()> {
        let Some(start) = self.start else {
            return Ok(());
        };
        let unanswered = self.aggregator.unanswered(messages);
        if unanswered.is_empty() {
            return Ok(());
        }
        let behind = match self.behind.take() {
            Some(behind) => behind,
            None => self.source.behind(start).await?,
        };
        self.aggregator
            .add_results(results_among(&behind, &unanswered));
        self.behind = Some(behind);
        Ok(())
    }
}

/// The sequence to read below, so that no record that begins before a time is cut; the outer none
/// when no message is that old.
async fn seek(source: &Source<'_>, before_ms: u64) -> Result<Option<Option<u64>>> {
    let (mut last, mut bound) = (None, None);
    loop {
        let rows = source.rows(bound, SEEK_CHUNK).await?;
        if rows.iter().any(|row| row.created_at < before_ms) {
            return Ok(Some(last));
        }
        if rows.len() < SEEK_CHUNK {
            return Ok(None);
        }
        last = bound;
        bound = rows.last().map(|row| row.seq);
    }
}
