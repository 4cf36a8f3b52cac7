//! Deleting transcripts and whole sessions. Only what the driver wrote goes.

use super::super::SessionKey;
use super::files::Files;
use super::opened::Opened;
use super::{LINES, SUB, fence, files, meta};
use crate::error::Result;
use crate::store::disk::Folder;

/// Beginnings of the names of a session's files.
const OWN: [&str; 4] = ["entries.", "meta.", "transcript.", ".tmp-"];

/// Deletes a transcript; a main one with its session.
pub fn delete(files: &Files, key: &SessionKey) -> Result<()> {
    delete_session_or_part(files, key).map(|_| ())
}

/// The same; whether there was a folder of the session.
pub fn delete_session_or_part(files: &Files, key: &SessionKey) -> Result<bool> {
    files.change_existing(&key.project, &key.session, |session| {
        if let Some(subpath) = key.subpath.as_deref() {
            delete_part(session, subpath)?;
        } else {
            delete_session(session)?;
            files.remove_folder(&key.project, &key.session)?;
        }
        session.forget();
        Ok(true)
    })
}

fn delete_part(session: &mut Opened, subpath: &str) -> Result<()> {
    let Some(spot) = session.spot(Some(subpath))? else {
        return Ok(());
    };
    spot.folder.remove(&spot.name)?;
    let side = format!("{}.", spot.stem);
    for name in spot.folder.names()? {
        let is_side = name
            .strip_prefix(&side)
            .is_some_and(|rest| rest.starts_with("damaged-") || rest.starts_with("reported-"));
        if is_side && !name.ends_with(LINES) {
            spot.folder.remove(&name)?;
        }
    }
    session.folder.remove_folder(SUB)
}

/// What names the session goes last: a delete that was broken off can be repeated.
fn delete_session(session: &Opened) -> Result<()> {
    if let Some(sub) = session.folder.folder(SUB)? {
        for name in sub.names()? {
            sub.remove(&name)?;
        }
        session.folder.remove_folder(SUB)?;
    }
    for name in session.folder.names()? {
        if OWN.iter().any(|own| name.starts_with(own)) && name != meta::NAME {
            session.folder.remove(&name)?;
        }
    }
    fence::remove(&session.folder)?;
    remove_last(&session.folder)
}

fn remove_last(folder: &Folder) -> Result<()> {
    folder.remove(meta::NAME)?;
    folder.remove(files::LOCK).map(|_| ())
}
