//! The whole tree ends with the program, with its child handle, and on demand.

use std::time::{Duration, Instant};

use open_agent_kernel::base::process::{Child, ExitStatus, Helper};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Mark, eventually, exists, helper_of, line, output, script, shell, spec, start,
};

/// Far beyond what a test takes: an end that waits for it is noticed.
const LONG: Duration = Duration::from_mins(5);
const SHORT: Duration = Duration::from_millis(200);

/// A launcher with a child that ignores SIGTERM, one with a session of its own, one that has forked twice
/// into a session of its own and ignores SIGTERM, and one that is stopped.
const WILD: &str = "
    (trap '' TERM; exec sleep 300) &
    setsid sleep 300 &
    (setsid sh -c 'trap \"\" TERM; (sleep 300; :) & exec sleep 300' &) &
    sleep 300 & kill -STOP $!
    echo ready
    wait
    sleep 300
";
/// The launcher, and what it starts.
pub const WILD_COUNT: usize = 7;

pub async fn wild(mark: &Mark, grace: Duration) -> Child {
    let mut spec = mark.on(shell(WILD));
    spec.grace = grace;
    let mut child = start(spec).await;
    assert_eq!(line(&mut child).await, "ready");
    mark.counts(WILD_COUNT).await;
    child
}

#[tokio::test]
async fn fc_f5_a_background_grandchild_does_not_hold_up_the_end() {
    let mark = Mark::new();
    let mut spec = mark.on(shell("sleep 300 & echo hi"));
    spec.grace = LONG;
    let begin = Instant::now();
    let mut child = start(spec).await;
    assert_eq!(output(&mut child).await, "hi\n");
    assert_eq!(child.wait().await, ExitStatus::Code(0));
    assert_eq!(child.end().await, ExitStatus::Code(0));
    mark.is_gone();
    assert!(begin.elapsed() < LONG);
}

#[tokio::test]
async fn fc_f5_a_background_grandchild_that_ignores_signals_is_killed_after_the_grace() {
    let mark = Mark::new();
    let mut spec = mark.on(shell("(trap '' TERM; exec sleep 300) & echo hi"));
    spec.grace = SHORT;
    let mut child = start(spec).await;
    assert_eq!(child.wait().await, ExitStatus::Code(0));
    assert_eq!(output(&mut child).await, "hi\n");
    child.end().await;
    mark.is_gone();
}

#[tokio::test]
async fn fc_f5_a_command_that_waits_for_a_flooding_child_ends_on_demand() {
    let mark = Mark::new();
    let script = "(while true; do echo x; done) & wait";
    let mut child = start(mark.on(shell(script))).await;
    assert_eq!(line(&mut child).await, "x");
    // By the signal, or by itself when the flood has met a closed pipe.
    assert_ne!(child.end().await, ExitStatus::Unknown);
    mark.is_gone();
}

#[tokio::test]
async fn nothing_is_left_after_the_end() {
    let mark = Mark::new();
    let child = wild(&mark, SHORT).await;
    let helper = helper_of(&child);
    assert_eq!(child.end().await, ExitStatus::Signal(15));
    mark.is_gone();
    assert!(!exists(helper), "no zombie of the helper");
}

#[tokio::test]
async fn a_kill_does_not_wait_for_the_grace() {
    let mark = Mark::new();
    let child = wild(&mark, LONG).await;
    let helper = helper_of(&child);
    assert_eq!(child.kill().await, ExitStatus::Signal(9));
    mark.is_gone();
    assert!(!exists(helper));
}

#[tokio::test]
async fn nothing_is_left_after_a_drop() {
    let mark = Mark::new();
    let child = wild(&mark, SHORT).await;
    let helper = helper_of(&child);
    drop(child);
    mark.counts(0).await;
    eventually("the helper is reaped", || !exists(helper)).await;
}

#[tokio::test]
async fn an_end_that_nobody_waits_for_goes_on() {
    let mark = Mark::new();
    let child = wild(&mark, SHORT).await;
    let helper = helper_of(&child);
    let _ = tokio::time::timeout(Duration::from_millis(1), child.end()).await;
    mark.counts(0).await;
    eventually("the helper is reaped", || !exists(helper)).await;
}

#[tokio::test]
async fn the_grace_lets_programs_end_in_their_way() {
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 300 & wait $!; done";
    let mut spec = shell(script);
    spec.grace = LONG;
    let mut child = start(spec).await;
    assert_eq!(line(&mut child).await, "ready");
    let mut stdout = child.stdout.take().unwrap();
    assert_eq!(child.end().await, ExitStatus::Code(3));
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut text)
        .await
        .unwrap();
    assert_eq!(text, "bye\n");
}

#[tokio::test]
async fn a_program_may_say_much_at_its_end() {
    let script = "trap 'head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3' TERM
        echo ready; while :; do sleep 300 & wait $!; done";
    let mut spec = shell(script);
    spec.grace = LONG;
    let mut child = start(spec).await;
    assert_eq!(line(&mut child).await, "ready");
    assert_eq!(child.end().await, ExitStatus::Code(3));
}

#[tokio::test]
async fn a_tree_that_keeps_starting_processes_is_ended() {
    let mark = Mark::new();
    // Each of them outlives its parent, ignores SIGTERM and starts the next one at once.
    let script = "trap '' TERM; hop() { (hop) & exit; }; echo ready; (hop) & sleep 300";
    let mut spec = mark.on(shell(script));
    spec.grace = SHORT;
    let mut child = start(spec).await;
    assert_eq!(line(&mut child).await, "ready");
    let helper = helper_of(&child);
    child.end().await;
    eventually("the helper is reaped", || !exists(helper)).await;
    mark.counts(0).await;
}

#[tokio::test]
async fn a_helper_that_is_killed_is_noticed() {
    let mark = Mark::new();
    let child = start(mark.on(shell("sleep 300 & echo ready; wait"))).await;
    mark.counts(2).await;
    let helper = helper_of(&child);
    let pid = Pid::from_raw(helper.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(child.wait().await, ExitStatus::Unknown);
    assert_eq!(child.end().await, ExitStatus::Unknown);
    assert!(!exists(helper), "no zombie of the helper");
    mark.is_gone();
}

#[tokio::test]
async fn a_helper_that_hangs_is_replaced() {
    let mark = Mark::new();
    let mut spec = mark.on(spec("sleep", &["300"]));
    spec.grace = Duration::ZERO;
    let child = start(spec).await;
    let helper = helper_of(&child);
    let pid = Pid::from_raw(helper.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    eventually("the helper is stopped", || {
        crate::support::stat(helper).is_some_and(|stat| stat[0] == "T")
    })
    .await;
    // Real processes on real time; what is waited for is the patience of the kernel alone.
    tokio::time::pause();
    assert_eq!(child.end().await, ExitStatus::Unknown);
    tokio::time::resume();
    mark.counts(0).await;
}

#[tokio::test]
async fn signals_do_not_end_a_helper_before_its_tree() {
    let mark = Mark::new();
    let child = start(mark.on(spec("sleep", &["300"]))).await;
    let helper = helper_of(&child);
    let pid = Pid::from_raw(helper.try_into().unwrap()).unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1] {
        kill_process(pid, signal).unwrap();
    }
    assert_eq!(child.end().await, ExitStatus::Signal(15));
    mark.is_gone();
}

/// Where a helper cannot see processes, and the shell that runs it there.
async fn ends_without_sight(folder: &tempfile::TempDir, place: &str) {
    let real = env!("CARGO_BIN_EXE_oak-helper");
    let text = format!("#!/bin/sh\nPATH=/bin:/usr/bin:/sbin:/usr/sbin\n{place} {real}\n");
    let helper = Helper::at(script(folder, &text, 0o755));
    let mark = Mark::new();
    let command = "(trap '' TERM; exec sleep 300) & sleep 300 & echo ready; wait";
    let mut spec = mark.on(shell(command));
    spec.grace = SHORT;
    let mut child = helper.start(spec).await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    child.end().await;
    mark.is_gone();
}

#[tokio::test]
async fn without_sight_of_processes_the_group_is_ended() {
    let mut unshare = std::process::Command::new("unshare");
    // Not everywhere may a test make namespaces.
    if !unshare
        .args(["-m", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    ends_without_sight(
        &folder,
        "exec unshare -m sh -c 'umount -l /proc && exec \"$0\"'",
    )
    .await;
    ends_without_sight(&folder, "exec unshare -p -f").await;
}
