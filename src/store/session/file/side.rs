//! Damaged content that was set aside: kept, and reported once.

use super::super::Damage;
use crate::error::Result;
use crate::store::disk::Folder;

/// The end of a transcript that was cut off. `stem` is the name of the transcript without ending.
pub fn keep_cut(folder: &Folder, stem: &str, content: &[u8], sync: bool) -> Result<()> {
    for n in 1_u64.. {
        let temporary = folder.write_temporary(content, sync)?;
        if folder.publish(&temporary, &format!("{stem}.damaged-{n}"))? {
            break;
        }
    }
    Ok(())
}

/// Gives a damaged file a name of its own, which begins with `prefix`.
pub fn set_aside(folder: &Folder, name: &str, prefix: &str) -> Result<()> {
    let names = folder.names()?;
    // One more than there are names: one of them is free.
    let free = (1..=names.len() + 1)
        .map(|n| format!("{prefix}{n}"))
        .find(|free| !names.contains(free));
    free.map_or(Ok(()), |free| folder.rename(name, &free))
}

/// Whether ends were cut off that nobody was told of.
pub fn has_unreported(folder: &Folder, stem: &str) -> Result<bool> {
    Ok(unreported(folder, stem)?.next().is_some())
}

/// Tells of ends that were cut off since the last report. Under the lock of the session.
pub fn report(folder: &Folder, stem: &str) -> Result<Option<Damage>> {
    let mut lost = 0;
    for name in unreported(folder, stem)? {
        let content = folder.read(&name)?.unwrap_or_default();
        lost += count_lines(&content);
        folder.rename(&name, &name.replacen(".damaged-", ".reported-", 1))?;
    }
    Ok((lost > 0).then(|| Damage {
        what:
            "the end of the transcript was damaged, as by a write that did not finish: it was cut \
               off and kept beside it"
                .to_owned(),
        lost,
    }))
}

fn unreported(folder: &Folder, stem: &str) -> Result<impl Iterator<Item = String>> {
    let prefix = format!("{stem}.damaged-");
    let names = folder.names()?.into_iter();
    Ok(names.filter(move |name| name.starts_with(&prefix)))
}

/// Lines, the last of which may not have ended.
pub fn count_lines(content: &[u8]) -> u64 {
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).count() as u64
}
