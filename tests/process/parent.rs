//! The process that started children ends, in every way there is.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Mark, eventually, itself};
use crate::tree::{WILD_COUNT, wild};

/// The name of the mark, for a test that is to be the parent.
const PARENT: &str = "OAK_TEST_PARENT";

/// In the parent: starts a tree and waits for its end. Elsewhere nothing.
async fn be_the_parent(then: impl Future<Output = ()>) -> bool {
    let Ok(name) = std::env::var(PARENT) else {
        return false;
    };
    let mark = Mark::named(name);
    let _child = wild(&mark, std::time::Duration::from_millis(200)).await;
    then.await;
    true
}

fn parent(test: &str, mark: &Mark) -> Child {
    let mut command: Command = itself(test);
    command.env(PARENT, mark.name()).stdout(Stdio::null());
    command.spawn().unwrap()
}

async fn tree_ends_with(test: &str, signal: Signal) {
    let mark = Mark::new();
    let mut parent = parent(test, &mark);
    mark.counts(WILD_COUNT).await;
    let helpers = helpers_of(parent.id());
    assert_eq!(helpers.len(), 1);
    kill_process(Pid::from_child(&parent), signal).unwrap();
    assert!(!parent.wait().unwrap().success());
    mark.counts(0).await;
    eventually("the helper has ended", || {
        // PID 1 may be one that does not reap: a zombie runs no more.
        crate::support::stat(helpers[0]).is_none_or(|stat| stat[0] == "Z")
    })
    .await;
}

fn helpers_of(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    let is_child = |pid: &u32| crate::support::stat(*pid).is_some_and(|stat| stat[1] == parent);
    crate::support::pids().filter(is_child).collect()
}

#[tokio::test]
async fn nothing_is_left_when_the_parent_is_killed() {
    if !be_the_parent(std::future::pending()).await {
        tree_ends_with(
            "parent::nothing_is_left_when_the_parent_is_killed",
            Signal::KILL,
        )
        .await;
    }
}

#[tokio::test]
async fn nothing_is_left_when_the_parent_is_terminated() {
    if !be_the_parent(std::future::pending()).await {
        tree_ends_with(
            "parent::nothing_is_left_when_the_parent_is_terminated",
            Signal::TERM,
        )
        .await;
    }
}

#[tokio::test]
async fn nothing_is_left_when_the_parent_aborts() {
    if !be_the_parent(std::future::pending()).await {
        tree_ends_with(
            "parent::nothing_is_left_when_the_parent_aborts",
            Signal::ABORT,
        )
        .await;
    }
}

#[tokio::test]
async fn nothing_is_left_when_the_parent_exits() {
    #[expect(clippy::exit, reason = "an end without any drop")]
    if be_the_parent(async {}).await {
        std::process::exit(7);
    }
    let mark = Mark::new();
    let mut parent = parent("parent::nothing_is_left_when_the_parent_exits", &mark);
    assert_eq!(parent.wait().unwrap().code(), Some(7));
    mark.counts(0).await;
}
