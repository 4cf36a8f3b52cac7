//! Spans: what took how long, and inside of what.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;

use crate::base::clock::SharedClock;
use crate::protocol::{Json, JsonMap};

use super::{Metric, Observer};

/// A finished span. Ids are those of W3C trace context.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpanRecord {
    pub trace_id: String,
    pub span_id: String,
    pub parent_span_id: Option<String>,
    pub name: String,
    pub kind: SpanKind,
    /// Milliseconds since the epoch.
    pub start_time_ms: u64,
    /// Milliseconds since the epoch.
    pub end_time_ms: u64,
    /// Names are those of the OpenTelemetry GenAI conventions where there is one.
    pub attributes: JsonMap,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// Which side of a call a span stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    Internal,
    Client,
}

/// Where a trace comes from: the header `traceparent` of W3C trace context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace_id: String,
    span_id: String,
}

impl TraceParent {
    /// Reads `00-<32 hex>-<16 hex>-<2 hex>`; ids of zeros are invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.trim().split('-').collect();
        let [version, trace_id, span_id, flags] = parts.as_slice() else {
            return None;
        };
        let is_hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_id = |text: &str, length| is_hex(text, length) && text.bytes().any(|b| b != b'0');
        let valid = is_hex(version, 2)
            && *version != "ff"
            && is_id(trace_id, 32)
            && is_id(span_id, 16)
            && is_hex(flags, 2);
        valid.then(|| Self {
            trace_id: (*trace_id).to_owned(),
            span_id: (*span_id).to_owned(),
        })
    }
}

/// The trace of one run.
#[derive(Clone)]
pub struct Trace {
    observer: Option<Arc<dyn Observer>>,
    clock: SharedClock,
    id: Arc<str>,
    parent: Option<Arc<str>>,
}

impl Trace {
    /// A trace that nobody watches when there is no observer.
    pub fn new(
        observer: Option<Arc<dyn Observer>>,
        clock: SharedClock,
        parent: Option<TraceParent>,
    ) -> Self {
        let (id, parent) = match parent {
            Some(parent) => (parent.trace_id, Some(parent.span_id.into())),
            None => (Uuid::new_v4().simple().to_string(), None),
        };
        Self {
            observer,
            clock,
            id: id.into(),
            parent,
        }
    }

    /// Begins a span under the parent of this trace.
    pub fn span(&self, name: impl FnOnce() -> String, kind: SpanKind) -> OpenSpan {
        let Some(observer) = self.observer.clone() else {
            return OpenSpan(None);
        };
        let now = self.clock.now_ms();
        let span_id = Uuid::new_v4().simple().to_string()[..16].to_owned();
        let record = SpanRecord {
            trace_id: self.id.to_string(),
            span_id,
            parent_span_id: self.parent.as_deref().map(str::to_owned),
            name: name(),
            kind,
            start_time_ms: now,
            end_time_ms: now,
            attributes: JsonMap::new(),
            error: None,
        };
        OpenSpan(Some(Box::new(Watched {
            observer,
            clock: self.clock.clone(),
            record,
        })))
    }

    /// The trace for what happens inside a span.
    #[must_use]
    pub fn within(&self, span: &OpenSpan) -> Self {
        let inner = span
            .0
            .as_ref()
            .map(|watched| watched.record.span_id.as_str().into());
        Self {
            parent: inner.or_else(|| self.parent.clone()),
            ..self.clone()
        }
    }

    /// Reports a measured value.
    pub fn metric(&self, metric: impl FnOnce() -> Metric) {
        if let Some(observer) = &self.observer {
            observer.metric(&metric());
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A span that has not ended. Ends when dropped, so that interrupted work is told as well.
pub struct OpenSpan(Option<Box<Watched>>);

struct Watched {
    observer: Arc<dyn Observer>,
    clock: SharedClock,
    record: SpanRecord,
}

impl OpenSpan {
    /// Sets an attribute; `value` is made only when somebody watches.
    pub fn set<V: Into<Json>>(&mut self, name: &str, value: impl FnOnce() -> V) {
        if let Some(watched) = &mut self.0 {
            watched
                .record
                .attributes
                .insert(name.to_owned(), value().into());
        }
    }

    /// Marks the span as failed; `kind` is a short stable word.
    pub fn fail(&mut self, kind: &str) {
        if let Some(watched) = &mut self.0 {
            watched
                .record
                .attributes
                .insert("error.type".to_owned(), kind.into());
            watched.record.error = Some(kind.to_owned());
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(watched) = &mut self.0 {
            watched.record.end_time_ms = watched.clock.now_ms();
            watched.observer.span(&watched.record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::base::clock::SystemClock;

    #[derive(Default)]
    struct Seen(Mutex<Vec<SpanRecord>>);

    impl Observer for Seen {
        fn metric(&self, _: &Metric) {}

        fn span(&self, span: &SpanRecord) {
            self.0.lock().unwrap().push(span.clone());
        }
    }

    #[test]
    fn spans_nest_under_the_given_parent() {
        let seen = Arc::new(Seen::default());
        let parent = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let trace = Trace::new(Some(seen.clone()), Arc::new(SystemClock), parent);
        let mut outer = trace.span(|| "outer".into(), SpanKind::Internal);
        outer.set("n", || 1);
        let mut inner = trace
            .within(&outer)
            .span(|| "inner".into(), SpanKind::Client);
        inner.fail("E_X");
        drop(inner);
        drop(outer);
        let spans = seen.0.lock().unwrap();
        assert_eq!(spans[1].parent_span_id.as_deref(), Some("b7ad6b7169203331"));
        assert_eq!(spans[0].parent_span_id.as_ref(), Some(&spans[1].span_id));
        assert!(
            spans
                .iter()
                .all(|span| span.trace_id == "0af7651916cd43dd8448eb211c80319c")
        );
        assert_eq!(spans[0].error.as_deref(), Some("E_X"));
        assert_eq!(spans[1].attributes["n"], 1);
    }

    #[test]
    fn malformed_parents_are_refused() {
        for text in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }
}
