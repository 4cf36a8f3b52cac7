//! Names, modes, links and rights of files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use open_agent_kernel::error::ErrorKind;
use open_agent_kernel::store::session::{Registration, SessionKey, SessionStore};
use open_agent_kernel::store::state::{StateKey, StateKind, StateRecord};

use super::{child, entries_of, folder_of, open};
use crate::suite::{key, noted};

/// Every file and folder below one.
fn below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found
}

async fn write_everything(root: &Path) {
    let store = open(root);
    store
        .append(&key(), &[noted("a", 1)], Some(1))
        .await
        .unwrap();
    let sub = key().with_subpath("subagents/x");
    store.append(&sub, &[noted("a", 1)], None).await.unwrap();
    store.fence("p", "s", 1).await.unwrap();
    store
        .register("p", "s", &Registration::default())
        .await
        .unwrap();
    store.fold(&key()).await.unwrap();
    let record = StateRecord {
        key: StateKey {
            project: "p".into(),
            kind: StateKind::Lease,
            key: "k".into(),
        },
        conversation: None,
        user: None,
        version: 0,
        data: serde_json::json!(1),
        expires_at: None,
    };
    let state = store.state().unwrap();
    state.insert(&record).await.unwrap();
    state.swap(&record, 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_of_this_user_alone() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("made").join("sessions");
    write_everything(&root).await;
    let check = || {
        for path in below(outer.path()) {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{}", path.display());
        }
    };
    check();
    for name in ["entries.jsonl", "meta.json", "transcript.json", ".lock"] {
        assert!(folder_of(&root).join(name).is_file(), "{name}");
    }
    // Looser ones are closed when they are next used.
    for path in [folder_of(&root), entries_of(&root)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    write_everything(&root).await;
    check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modes_do_not_depend_on_the_umask() {
    for mask in ["000", "777"] {
        let root = tempfile::tempdir().unwrap();
        let job = child::command("append a", root.path());
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("umask {mask}; exec \"$0\" \"$@\""));
        shell.arg(job.get_program()).args(job.get_args());
        for (name, value) in job.get_envs() {
            shell.env(name, value.unwrap());
        }
        assert!(child::text(&child::run(&mut shell)).contains("stored"));
        for path in below(root.path()) {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "umask {mask}: {}", path.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_are_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("target");
    for (place, is_folder) in [
        ("p", true),
        ("p/s", true),
        ("p/s/sub", true),
        ("p/s/entries.jsonl", false),
        ("p/s/meta.json", false),
        ("p/s/.lock", false),
        ("p/s/.fence", false),
    ] {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path());
        let sub = key().with_subpath("x");
        for key in [&key(), &sub] {
            store.append(key, &[noted("a", 1)], None).await.unwrap();
        }
        store.fence("p", "s", 1).await.unwrap();
        let place = root.path().join(place);
        let _ = fs::remove_dir_all(&target);
        let _ = fs::remove_file(&target);
        fs::rename(&place, &target).unwrap();
        symlink(&target, &place).unwrap();
        let before = below(elsewhere.path());
        for store in [&store, &open(root.path())] {
            let key = if place.ends_with("sub") { &sub } else { &key() };
            let refused = store
                .append(key, &[noted("b", 1)], Some(1))
                .await
                .unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UnsafeFile, "{}", place.display());
            assert!(!refused.message().contains('/'));
        }
        assert_eq!(below(elsewhere.path()), before);
        if !is_folder {
            // Deleting takes the link, not what it leads to.
            let _ = store.delete(&key()).await;
            assert!(target.exists());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_plain_file_is_refused() {
    for make in ["mkdir", "mkfifo"] {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path());
        store.append(&key(), &[noted("a", 1)], None).await.unwrap();
        let path = entries_of(root.path());
        fs::remove_file(&path).unwrap();
        assert!(Command::new(make).arg(&path).status().unwrap().success());
        let refused = store
            .append(&key(), &[noted("b", 1)], None)
            .await
            .unwrap_err();
        let expected = [ErrorKind::UnsafeFile, ErrorKind::Io];
        assert!(expected.contains(&refused.kind()), "{make}: {refused}");
        let refused = store.load(&key(), None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnsafeFile, "{make}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_may_be_a_link() {
    let outer = tempfile::tempdir().unwrap();
    let (real, link) = (outer.path().join("real"), outer.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    open(&link)
        .append(&key(), &[noted("a", 1)], None)
        .await
        .unwrap();
    assert!(entries_of(&real).is_file());
}

/// A process of this test that runs as a user without rights; none when that cannot be had.
fn as_nobody(job: &str, root: &Path) -> Option<Command> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|facts| {
        use std::os::unix::fs::MetadataExt;
        facts.uid() == 0
    });
    let job = child::command(job, root);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(job.get_program()).args(job.get_args());
    for (name, value) in job.get_envs() {
        command.env(name, value.unwrap());
    }
    let can_run = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .arg("--list")
        .output()
        .is_ok_and(|output| output.status.success());
    (is_root && can_run).then_some(command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rights_calls_fail_with_a_typed_error() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path());
    store.append(&key(), &[noted("a", 1)], None).await.unwrap();
    let before = fs::read(entries_of(root.path())).unwrap();
    for job in ["append b", "load x"] {
        let Some(mut command) = as_nobody(job, root.path()) else {
            println!("skipped: cannot run as another user");
            return;
        };
        let open_to_all = fs::Permissions::from_mode(0o777);
        // The folder of another user cannot even be looked at.
        let text = child::text(&child::run(&mut command));
        assert!(
            text.contains("E_IO_ERROR") && text.contains("permission denied"),
            "{text}"
        );
        // One that others may use is refused all the same.
        for path in [root.path(), &root.path().join("p"), &folder_of(root.path())] {
            fs::set_permissions(path, open_to_all.clone()).unwrap();
        }
        let text = child::text(&child::run(&mut command));
        assert!(text.contains("E_UNSAFE_FILE"), "{text}");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(fs::read(entries_of(root.path())).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_folders_are_plain_ids_or_digests() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path());
    for session in ["plain-1.a_b", "../../x", "A", "sub", "entries.jsonl"] {
        let key = SessionKey::main("p", session);
        store.append(&key, &[noted("a", 1)], None).await.unwrap();
    }
    let names = fs::read_dir(root.path().join("p")).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names[0], "plain-1.a_b");
    assert_eq!(names.len(), 5);
    for name in &names[1..] {
        assert!(name.starts_with('~') && name.len() == 33, "{name}");
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delete_leaves_nothing_and_touches_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    write_everything(root.path()).await;
    let store = open(root.path());
    // A session of a string id may share its folder with a project of the same name.
    let alone = SessionKey::main("", "p");
    store.append(&alone, &[noted("a", 1)], None).await.unwrap();
    store.delete(&alone).await.unwrap();
    assert_eq!(
        store
            .load(&key(), None)
            .await
            .unwrap()
            .unwrap()
            .entries
            .len(),
        1
    );
    store.delete(&key()).await.unwrap();
    assert!(!root.path().join("p").exists());
    assert!(store.state().is_some() && root.path().join(".state").exists());
}
