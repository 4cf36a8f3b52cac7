//! Lists of sessions, from what stands beside their entries.

use super::super::{ListCursor, SessionRow};
use super::files::Files;
use super::meta::Meta;
use super::opened::complete;
use super::{DOCUMENT, ENTRIES, document};
use crate::error::Result;
use crate::store::disk::{Folder, file_name};

/// Sessions of a project, newest first. A session that cannot be read is left out.
pub fn list(
    files: &Files,
    project: &str,
    user: Option<&str>,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<Vec<SessionRow>> {
    let mut rows = Vec::new();
    for (name, folder) in files.all(project)? {
        if let Ok(Some(row)) = row(&name, &folder, project) {
            rows.push(row);
        }
    }
    rows.retain(|row| user.is_none_or(|user| row.user.as_deref() == Some(user)));
    rows.retain(|row| {
        after
            .is_none_or(|after| (row.updated_at, &row.session) < (after.updated_at, &after.session))
    });
    rows.sort_unstable_by(|a, b| (b.updated_at, &b.session).cmp(&(a.updated_at, &a.session)));
    rows.truncate(limit);
    Ok(rows)
}

/// The row of a folder; none when it is not that of a session of the project.
fn row(name: &str, folder: &Folder, project: &str) -> Result<Option<SessionRow>> {
    let mut meta = Meta::read_any(folder)?;
    // Without what stands beside the entries, the name of the folder is the id, if it can be one.
    let session = meta.id().unwrap_or(name).to_owned();
    let is_here = file_name(&session) == name && meta.project().is_none_or(|of| of == project);
    let entries = folder.look(ENTRIES)?.filter(|entries| entries.length > 0);
    let written = match entries {
        Some(entries) => Some(entries.modified_ms()),
        None => adopt_document(folder, &mut meta)?,
    };
    let is_listed = is_here && (written.is_some() || meta.is_registered());
    Ok(is_listed.then(|| {
        let mut row = meta.row(&session);
        complete(&mut row, written);
        row
    }))
}

/// What the document of a session says that has nothing else; when it was written.
fn adopt_document(folder: &Folder, meta: &mut Meta) -> Result<Option<u64>> {
    let Some(text) = folder.read(DOCUMENT)? else {
        return Ok(None);
    };
    let Some(document) = document::parse(&text) else {
        return Ok(None);
    };
    meta.adopt(&document.metadata);
    Ok(meta.updated_at().or(Some(0)))
}
