//! Log records, out of `tracing` and into a function.
//!
//! The dispatcher is set for the tasks of one agent only; a subscriber of the host program is never
//! replaced.

use std::fmt;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

use crate::protocol::{Json, JsonMap};

/// Prefix of the kernel's own targets.
const PREFIX: &str = "oak::";

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogRecord {
    /// `debug`, `info`, `warn` or `error`.
    pub level: &'static str,
    /// Part of the kernel that speaks, such as `model`.
    pub tag: String,
    pub message: String,
    pub fields: JsonMap,
}

/// Receives records. Must not block.
pub type Sink = Arc<dyn Fn(&LogRecord) + Send + Sync>;

/// A dispatcher that hands the kernel's records to functions.
pub fn dispatch(sinks: Vec<Sink>) -> Dispatch {
    Dispatch::new(Forward { sinks })
}

/// Writes records to standard error, one a line.
pub fn to_stderr(record: &LogRecord) {
    let mut line = format!("[oak][{}] {}", record.tag, record.message);
    for (key, value) in &record.fields {
        let _ = write!(line, " {key}={value}");
    }
    line.push('\n');
    // Nobody is left to be told when standard error is closed.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

struct Forward {
    sinks: Vec<Sink>,
}

impl Subscriber for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with(PREFIX)
            && *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let record = LogRecord {
            level: level_name(*metadata.level()),
            tag: metadata.target().trim_start_matches(PREFIX).to_owned(),
            message: fields.message,
            fields: fields.others,
        };
        for sink in &self.sinks {
            sink(&record);
        }
    }

    // The kernel opens no spans of `tracing`.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        _ => "debug",
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: JsonMap,
}

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Json>) {
        self.others.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.put(field, format!("{value:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_kernels_records_arrive_and_no_others() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let dispatch = dispatch(vec![Arc::new(move |record: &LogRecord| {
            sink.lock().unwrap().push(record.clone());
        })]);
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::debug!(target: "oak::model", attempts = 2_u64, code = "E_X", "request is repeated");
            tracing::error!(target: "other", "not ours");
        });
        let records = seen.lock().unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(
            serde_json::to_value(&records[0]).unwrap(),
            json!({"level": "debug", "tag": "model", "message": "request is repeated", "fields": {"attempts": 2, "code": "E_X"}})
        );
    }
}
