//! Clearing a history. The transcript stays, and with it what the model knows.

use serde_json::json;

use crate::base::clock::{SharedClock, iso_timestamp};
use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::StoredEntry;
use crate::store::session::{SessionKey, SessionStore};

/// Type of the entry that ends what is hidden, in stores without an index. Messages that began in
/// front of the last one are not shown.
pub const MARKER: &str = "history-cleared";

/// Hides what a session's history holds now, for ever. Messages that come later are shown. Nothing is
/// done for a session that was never written.
pub async fn clear(store: &dyn SessionStore, key: &SessionKey, clock: &SharedClock) -> Result<()> {
    if has_index(store, key) {
        let Some(end) = end(store, key).await? else {
            return Ok(());
        };
        return store.hide_through(&key.project, &key.session, end).await;
    }
    if store.load(key, None).await?.is_none() {
        return Ok(());
    }
    store.append(key, &[marker(clock)?], None).await?;
    Ok(())
}

/// Whether the store knows the messages of a transcript.
pub(super) fn has_index(store: &dyn SessionStore, key: &SessionKey) -> bool {
    store.caps().index && key.subpath.is_none()
}

/// Sequence of the newest entry.
async fn end(store: &dyn SessionStore, key: &SessionKey) -> Result<Option<u64>> {
    if store.caps().head {
        return Ok(store.head(key).await?.map(|head| head.seq));
    }
    let loaded = store.load(key, None).await?;
    Ok(loaded.and_then(|loaded| loaded.entries.last().map(|placed| placed.seq)))
}

/// The entry that ends what is hidden.
pub fn marker(clock: &SharedClock) -> Result<StoredEntry> {
    let entry = json!({
        "type": MARKER,
        "uuid": id::random(),
        "timestamp": iso_timestamp(clock.now_ms()),
    });
    StoredEntry::parse(entry.to_string()).map_err(|error| {
        KernelError::new(ErrorKind::Internal, "clearHistory: the marker is no entry")
            .with_source(error)
    })
}
