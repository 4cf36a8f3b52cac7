//! Descriptions of sessions and messages, as stores give them. None: it has not the form.

use crate::protocol::Json;
use crate::store::session::{SessionRow, Summary};

/// `{sessionId, mtime, userId?, title?, metadata?, createdAt?}`.
pub fn session(value: &Json) -> Option<SessionRow> {
    let updated_at = milliseconds(&value["mtime"])?;
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Some(SessionRow {
        session: text("sessionId")?,
        user: text("userId"),
        title: text("title"),
        metadata: Some(value["metadata"].clone()).filter(|metadata| !metadata.is_null()),
        created_at: milliseconds(&value["createdAt"]).unwrap_or(updated_at),
        updated_at,
        ..SessionRow::default()
    })
}

/// `{sessionId, mtime, data}`.
pub fn summary(value: &Json) -> Option<SessionRow> {
    let mut row = session(value)?;
    let summary = Summary(value["data"].as_object().cloned().unwrap_or_default());
    if let Some(created_at) = summary.0.get("createdAt").and_then(milliseconds) {
        row.created_at = created_at;
    }
    row.summary = summary;
    Some(row)
}

/// `{messageId, createdAt}`.
pub fn message(value: &Json) -> Option<(String, u64)> {
    let id = value["messageId"].as_str()?;
    Some((id.to_owned(), milliseconds(&value["createdAt"])?))
}

/// JavaScript has one kind of number: milliseconds may come with a fraction.
fn milliseconds(value: &Json) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value
            .as_f64()
            .filter(|number| (0.0..9e15).contains(number))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        Some(number as u64)
    })
}
