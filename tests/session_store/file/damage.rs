//! Files that are torn, truncated, of somebody else, or on a full disk: the good part loads, the damage
//! is reported, nothing is overwritten.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use open_agent_kernel::error::ErrorKind;
use open_agent_kernel::store::session::{FileStore, Loaded, Registration, SessionStore};

use super::{entries_of, folder_of, open};
use crate::suite::{key, message, noted, uuids};

async fn load(store: &FileStore) -> Loaded {
    store.load(&key(), None).await.unwrap().unwrap_or_default()
}

/// A folder with the entries a, b and c.
async fn abc() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path());
    for uuid in ["a", "b", "c"] {
        store.append(&key(), &[noted(uuid, 1)], None).await.unwrap();
    }
    root
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_after_a_torn_one_is_whole() {
    let root = abc().await;
    let path = entries_of(root.path());
    let whole = fs::read(&path).unwrap();
    let start = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for end in start..whole.len() {
        for loads_first in [false, true] {
            fs::remove_dir_all(root.path().join("p")).unwrap();
            fs::create_dir_all(folder_of(root.path())).unwrap();
            fs::write(&path, &whole[..end]).unwrap();
            let mut damages = Vec::new();
            if loads_first {
                let loaded = load(&open(root.path())).await;
                assert_eq!(uuids(&loaded.entries)[..2], ["a", "b"], "cut at {end}");
                damages.extend(loaded.damage);
            }
            let store = open(root.path());
            for uuid in ["d", "e"] {
                store.append(&key(), &[noted(uuid, 1)], None).await.unwrap();
            }
            let store = open(root.path());
            let loaded = load(&store).await;
            // Without its line break alone the last entry is whole.
            let is_whole = end == whole.len() - 1;
            let expected = if is_whole {
                &["a", "b", "c", "d", "e"][..]
            } else {
                &["a", "b", "d", "e"]
            };
            assert_eq!(uuids(&loaded.entries), expected, "cut at {end}");
            damages.extend(loaded.damage);
            damages.extend(load(&store).await.damage);
            damages.extend(load(&open(root.path())).await.damage);
            let is_lost = end > start && !is_whole;
            assert_eq!(damages.len(), usize::from(is_lost), "once: {damages:?}");
            assert!(damages.iter().all(|damage| damage.lost == 1));
            if is_lost {
                let kept = fs::read(path.with_file_name("entries.reported-1")).unwrap();
                assert_eq!(kept, &whole[start..end]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_lines_in_the_middle_are_left_out_and_stay() {
    let deep = "[".repeat(200_000);
    for garbage in [
        &b"{\"seq\":2,\"ent"[..],
        b"\x00\xff\xfe\x80binary",
        b"{\"type\":\"user\",\"uuid\":\"of another program\"}",
        b"null",
        b"{\"seq\":99,\"entry\":{}",
        b"{\"seq\":1.5,\"entry\":{}}",
        format!("{{\"seq\":2,\"entry\":{deep}").as_bytes(),
    ] {
        let root = abc().await;
        let path = entries_of(root.path());
        let whole = fs::read(&path).unwrap();
        let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let damaged = [lines[0], garbage, b"\n", lines[2]].concat();
        fs::write(&path, &damaged).unwrap();
        let store = open(root.path());
        let loaded = load(&store).await;
        assert_eq!(uuids(&loaded.entries), ["a", "c"]);
        let damage = loaded.damage.unwrap();
        assert_eq!(damage.lost, 1);
        assert!(!damage.what.contains('/'));
        store.append(&key(), &[noted("d", 1)], None).await.unwrap();
        assert_eq!(
            uuids(&load(&open(root.path())).await.entries),
            ["a", "c", "d"]
        );
        assert!(fs::read(&path).unwrap().starts_with(&damaged));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_at_the_end_and_nothing_else_are_survived() {
    for (content, left) in [
        (&b"garbage\nmore"[..], 0),
        (b"", 0),
        (b"\n\n", 0),
        (b"\0\0\0\0", 0),
    ] {
        let root = abc().await;
        let path = entries_of(root.path());
        fs::write(&path, content).unwrap();
        let store = open(root.path());
        let loaded = load(&store).await;
        assert_eq!(loaded.entries.len(), left);
        assert_eq!(loaded.damage.is_some(), !content.trim_ascii().is_empty());
        store.append(&key(), &[noted("d", 1)], None).await.unwrap();
        let loaded = load(&open(root.path())).await;
        assert_eq!(
            (uuids(&loaded.entries), loaded.damage),
            (vec!["d".to_owned()], None)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_somebody_else_shortened_is_read_again() {
    let root = abc().await;
    let store = open(root.path());
    assert_eq!(load(&store).await.entries.len(), 3);
    let path = entries_of(root.path());
    let whole = fs::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(&path, &whole[..first]).unwrap();
    assert_eq!(uuids(&load(&store).await.entries), ["a"]);
    store.append(&key(), &[noted("b", 1)], None).await.unwrap();
    assert_eq!(uuids(&load(&store).await.entries), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_meta_file_costs_no_entries() {
    let root = abc().await;
    let meta = folder_of(root.path()).join("meta.json");
    fs::write(&meta, b"{\"id\":\"s").unwrap();
    let store = open(root.path());
    let loaded = load(&store).await;
    assert_eq!(uuids(&loaded.entries), ["a", "b", "c"]);
    assert!(loaded.damage.is_some());
    let registration = Registration {
        title: Some("T".into()),
        ..Registration::default()
    };
    store.register("p", "s", &registration).await.unwrap();
    let kept = fs::read(meta.with_file_name("meta.damaged-1")).unwrap();
    assert_eq!(kept, b"{\"id\":\"s");
    let row = store.get("p", "s").await.unwrap().unwrap();
    assert_eq!(row.title.as_deref(), Some("T"));
    assert_eq!(load(&store).await.damage, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_is_read_and_not_written() {
    let root = abc().await;
    let meta = folder_of(root.path()).join("meta.json");
    let newer = fs::read_to_string(&meta)
        .unwrap()
        .replace("\"version\": 1", "\"version\": 2");
    fs::write(&meta, &newer).unwrap();
    let store = open(root.path());
    let loaded = load(&store).await;
    assert_eq!(loaded.entries.len(), 3);
    assert!(loaded.damage.unwrap().what.contains("newer version"));
    let registration = Registration::default();
    let refused = store.register("p", "s", &registration).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Store);
    assert!(!refused.is_retryable());
    assert_eq!(fs::read_to_string(&meta).unwrap(), newer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_members_of_the_meta_file_are_kept() {
    let root = abc().await;
    let meta = folder_of(root.path()).join("meta.json");
    let mut fields: serde_json::Value = serde_json::from_slice(&fs::read(&meta).unwrap()).unwrap();
    fields["later"] = serde_json::json!({"x": [1]});
    fs::write(&meta, fields.to_string()).unwrap();
    let store = open(root.path());
    store
        .append(&key(), &[message("m", "user")], None)
        .await
        .unwrap();
    let fields: serde_json::Value = serde_json::from_slice(&fs::read(&meta).unwrap()).unwrap();
    assert_eq!(fields["later"]["x"][0], 1);
    assert_eq!(fields["summary"]["firstPrompt"], "text of m");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_another_id_has_is_refused() {
    let root = abc().await;
    let meta = folder_of(root.path()).join("meta.json");
    let other = fs::read_to_string(&meta)
        .unwrap()
        .replace("\"id\": \"s\"", "\"id\": \"S\"");
    fs::write(&meta, other).unwrap();
    let store = open(root.path());
    let refused = store.load(&key(), None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SessionIdConflict);
    let refused = store
        .append(&key(), &[noted("d", 1)], None)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SessionIdConflict);
}

/// A small file system of its own.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"])
            .arg(folder.path());
        let output = mount.output().ok()?;
        output.status.success().then(|| Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: no right to mount a small file system");
        return;
    };
    let root = disk.path().join("sessions");
    let store = open(&root);
    let entry = |n: usize| {
        let text = "x".repeat(20_000);
        crate::suite::entry(
            serde_json::json!({"type": "note", "uuid": n.to_string(), "text": text}),
        )
    };
    let mut stored = 0;
    let refused = loop {
        match store
            .append(&key(), &[entry(2 * stored), entry(2 * stored + 1)], None)
            .await
        {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 20, "the disk is never full");
    };
    assert!(stored > 0);
    assert_eq!(refused.kind(), ErrorKind::Io);
    assert!(!refused.message().contains('/'), "{refused}");
    for store in [&store, &open(&root)] {
        let loaded = load(store).await;
        assert_eq!(
            (loaded.entries.len(), loaded.damage),
            (2 * stored, None),
            "all or none"
        );
    }
    let mut ballast = fs::File::create(disk.path().join("ballast")).unwrap();
    while ballast.write_all(&[0; 512]).is_ok() {}
    let refused = store.register("p", "s", &Registration::default()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Io);
    assert!(store.get("p", "s").await.unwrap().is_some());
    fs::remove_file(disk.path().join("ballast")).unwrap();
    fs::write(folder_of(&root).join(".tmp-left"), b"").unwrap();
    store
        .append(&key(), &[noted("after", 1)], None)
        .await
        .unwrap();
    assert_eq!(load(&open(&root)).await.entries.len(), 2 * stored + 1);
}
