//! Many children, and what stays behind of them.

use std::sync::Arc;

use futures_util::future::join_all;
use open_agent_kernel::base::process::ExitStatus;

use crate::support::{Mark, alone, children, eventually, helper, output, shell, spec, start};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn two_hundred_children_at_once() {
    alone("load::two_hundred_children_at_once", async {
        let mark = Arc::new(Mark::new());
        let starts = (0..200).map(|number| {
            let spec = mark.on(shell(&format!(
                "echo {number}; read _; exit {}",
                number % 256
            )));
            tokio::spawn(async move { helper().start(spec).await.unwrap() })
        });
        let mut running: Vec<_> = join_all(starts)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        for (number, child) in running.iter_mut().enumerate() {
            assert_eq!(crate::support::line(child).await, number.to_string());
        }
        assert_eq!(mark.processes().len(), 200);
        for (number, mut child) in running.into_iter().enumerate() {
            child.stdin = None;
            let code = i32::try_from(number % 256).unwrap();
            assert_eq!(child.wait().await, ExitStatus::Code(code));
        }
        eventually("no child is left, nor a zombie", || children().is_empty()).await;
        mark.is_gone();
    });
}

#[test]
fn no_descriptor_stays_open() {
    alone("load::no_descriptor_stays_open", async {
        // What the runtime opens at first use.
        start(spec("true", &[])).await.end().await;
        eventually("no child is left", || children().is_empty()).await;
        let before = descriptors();
        for round in 0..10 {
            let mut child = start(shell("echo hi; sleep 300 & exit 1")).await;
            assert_eq!(output(&mut child).await, "hi\n");
            if round % 2 == 0 {
                child.end().await;
            } else {
                drop(child);
            }
            helper()
                .start(spec("no-such-program", &[]))
                .await
                .unwrap_err();
        }
        eventually("no child is left", || children().is_empty()).await;
        eventually("no descriptor is left", || descriptors() == before).await;
    });
}

#[test]
fn starts_from_many_tasks_under_load() {
    alone("load::starts_from_many_tasks_under_load", async {
        let work = (0..4).map(|_| {
            tokio::spawn(async {
                for number in 0_u32.. {
                    std::hint::black_box(number);
                    if number % 100_000 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        });
        let work: Vec<_> = work.collect();
        let starts = (0..8).map(|_| {
            tokio::spawn(async {
                for code in 0..8 {
                    let mut child = start(shell(&format!("cat; exit {code}"))).await;
                    let mut stdin = child.stdin.take().unwrap();
                    tokio::io::AsyncWriteExt::write_all(&mut stdin, b"text")
                        .await
                        .unwrap();
                    drop(stdin);
                    assert_eq!(output(&mut child).await, "text");
                    assert_eq!(child.wait().await, ExitStatus::Code(code));
                }
            })
        });
        for done in join_all(starts).await {
            done.unwrap();
        }
        for task in work {
            task.abort();
        }
        eventually("no child is left", || children().is_empty()).await;
    });
}
