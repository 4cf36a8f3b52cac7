//! Every call by another store object on the same folder: nothing depends on what is remembered.

use std::sync::Arc;

use async_trait::async_trait;
use open_agent_kernel::error::Result;
use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{
    Caps, FileStore, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey,
    SessionRow, SessionStore, SharedSessionStore,
};
use open_agent_kernel::store::state::StateStore;
use tempfile::TempDir;

use super::open;

struct Forgetful(TempDir);

async fn fresh_forgetful() -> (SharedSessionStore, ()) {
    (Arc::new(Forgetful(tempfile::tempdir().unwrap())), ())
}

impl Forgetful {
    fn anew(&self) -> FileStore {
        open(self.0.path())
    }
}

#[async_trait]
impl SessionStore for Forgetful {
    fn caps(&self) -> Caps {
        self.anew().caps()
    }
    async fn append(
        &self,
        key: &SessionKey,
        entries: &[StoredEntry],
        epoch: Option<u64>,
    ) -> Result<u64> {
        self.anew().append(key, entries, epoch).await
    }
    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        self.anew().replace(key, entry).await
    }
    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()> {
        self.anew().fence(project, session, epoch).await
    }
    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        self.anew().head(key).await
    }
    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        self.anew().load(key, after).await
    }
    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        self.anew().tail(key, count).await
    }
    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        self.anew().by_message_ids(key, ids).await
    }
    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        self.anew().index(project, session, before, limit).await
    }
    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()> {
        self.anew().hide_through(project, session, seq).await
    }
    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()> {
        self.anew().register(project, session, registration).await
    }
    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        self.anew().get(project, session).await
    }
    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        self.anew().list(project, user, after, limit).await
    }
    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        self.anew().subkeys(project, session).await
    }
    async fn delete(&self, key: &SessionKey) -> Result<()> {
        self.anew().delete(key).await
    }
    fn state(&self) -> Option<Arc<dyn StateStore>> {
        self.anew().state()
    }
}

session_store_suite!(fresh_forgetful);
