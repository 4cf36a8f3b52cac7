//! What a store knows of sessions, or what can be told from their transcripts.

use serde_json::json;

use super::HostStore;
use crate::base::clock::parse_timestamp;
use crate::error::{KernelError, Result};
use crate::protocol::StoredEntry;
use crate::store::session::{ListCursor, SessionKey, SessionRow, SessionStore, Summary, fold};

impl HostStore {
    /// A session as the store describes it.
    pub(super) async fn described(
        &self,
        project: &str,
        session: &str,
    ) -> Result<Option<SessionRow>> {
        if !self.caps().list && self.functions.get.is_none() {
            return self.row_of_transcript(project, session).await;
        }
        let listed = || async {
            let rows = self.all_rows(project).await?;
            Ok::<_, KernelError>(rows.into_iter().find(|row| row.session == session))
        };
        let Some(get) = self.functions.get else {
            return listed().await;
        };
        let Some(mut row) = self.calls.session(get, project, session).await? else {
            return Ok(None);
        };
        if self.functions.summaries.is_some()
            && let Some(known) = listed().await?
        {
            row.summary = known.summary;
        }
        Ok(Some(row))
    }

    /// Sessions, newest first, as [`SessionStore::list`] wants them.
    pub(super) async fn listed(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let mut rows = self.all_rows(project).await?;
        rows.sort_unstable_by(|a, b| (b.updated_at, &b.session).cmp(&(a.updated_at, &a.session)));
        rows.dedup_by(|a, b| a.session == b.session);
        rows.retain(|row| {
            after.is_none_or(|after| {
                (row.updated_at, &row.session) < (after.updated_at, &after.session)
            })
        });
        let mut found = Vec::new();
        for mut row in rows {
            if found.len() == limit {
                break;
            }
            let is_wanted = match user {
                Some(user) => self.belongs_to(project, &mut row, user).await?,
                None => true,
            };
            if is_wanted {
                found.push(row);
            }
        }
        Ok(found)
    }

    /// Rows of all sessions of a project, in the order of the store, with their summaries.
    async fn all_rows(&self, project: &str) -> Result<Vec<SessionRow>> {
        let argument = || json!({"projectKey": project});
        let summaries = match self.functions.summaries {
            Some(summaries) => self.calls.summaries(summaries, argument()).await?,
            None => Vec::new(),
        };
        let Some(list) = self.functions.list else {
            return Ok(summaries);
        };
        let mut rows = self.calls.sessions(list, argument()).await?;
        for row in &mut rows {
            if let Some(found) = summaries.iter().find(|known| known.session == row.session) {
                row.summary = found.summary.clone();
                row.created_at = row.created_at.min(found.created_at);
            }
        }
        Ok(rows)
    }

    /// A session that the store cannot describe, from its transcript.
    async fn row_of_transcript(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        let Some(entries) = self.read(&SessionKey::main(project, session)).await? else {
            return Ok(None);
        };
        let mut summary = Summary::default();
        let entries: Vec<StoredEntry> = entries.into_iter().map(|placed| placed.entry).collect();
        fold(&mut summary, &entries);
        let mut times = entries
            .iter()
            .filter_map(|entry| parse_timestamp(entry.timestamp.as_deref()?));
        let created_at = times.next().unwrap_or_else(|| self.calls.now_ms());
        Ok(Some(SessionRow {
            session: session.to_owned(),
            summary,
            created_at,
            updated_at: times.max().unwrap_or(created_at).max(created_at),
            ..SessionRow::default()
        }))
    }

    /// Whether a session belongs to a user; asks for it when the list did not say.
    async fn belongs_to(&self, project: &str, row: &mut SessionRow, user: &str) -> Result<bool> {
        if let (None, Some(get)) = (&row.user, self.functions.get) {
            let known = self.calls.session(get, project, &row.session).await?;
            row.user = known.and_then(|known| known.user);
        }
        Ok(row.user.as_deref() == Some(user))
    }
}
