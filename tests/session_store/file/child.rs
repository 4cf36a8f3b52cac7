//! Other processes: the test binary, started again to do one job.

use std::path::Path;
use std::process::{Command, Output};

use open_agent_kernel::store::session::SessionStore;

use super::open;
use crate::suite::{key, noted};

const JOB: &str = "OAK_TEST_JOB";
const ROOT: &str = "OAK_TEST_ROOT";

/// A process that does a job on a folder.
pub fn command(job: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "file::child::job", "--ignored", "--nocapture"])
        .env(JOB, job)
        .env(ROOT, root);
    command
}

pub fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Its standard output, when it went well.
pub fn text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    text
}

/// What the other process does.
#[tokio::test]
#[ignore = "runs in processes that other tests start"]
async fn job() {
    let Ok(job) = std::env::var(JOB) else {
        return;
    };
    let root = std::env::var(ROOT).unwrap();
    let store = open(Path::new(&root));
    let (what, name) = job.split_once(' ').unwrap();
    match what {
        // One append at a time, up to 200 KB each.
        "write" => {
            for n in 0..1000_usize {
                let size = if n % 10 == 0 { 200_000 } else { n };
                let text = "x".repeat(size);
                let value = serde_json::json!({"type": "note", "uuid": format!("{name}-{n}"), "text": text});
                store
                    .append(&key(), &[crate::suite::entry(value)], None)
                    .await
                    .unwrap();
            }
        }
        // Batches of two, which a crash point may end.
        "batches" => {
            for n in 0..10 {
                let batch = [
                    noted(&format!("{name}-{n}-0"), n),
                    noted(&format!("{name}-{n}-1"), n),
                ];
                store.append(&key(), &batch, None).await.unwrap();
            }
        }
        "append" => match store.append(&key(), &[noted(name, 1)], None).await {
            Ok(_) => println!("stored"),
            Err(error) => println!("{} {}", error.code(), error.message()),
        },
        "load" => match store.load(&key(), None).await {
            Ok(loaded) => println!("loaded {}", loaded.unwrap_or_default().entries.len()),
            Err(error) => println!("{} {}", error.code(), error.message()),
        },
        other => panic!("no such job: {other}"),
    }
}
