//! The end of a tree: SIGTERM to every process, SIGKILL after the grace, until nothing is found.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

use crate::tree::{self, Process};

/// Pauses between looks at the tree; they grow while there is nothing new.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for processes that SIGKILL does not end: they belong to others, or hang in the
/// system.
const PATIENCE: Duration = Duration::from_secs(3);
/// An `Instant` does not reach further on every system.
const LONGEST_GRACE: Duration = Duration::from_hours(30 * 24);

/// A signal, and who has got it: pid and start of a process.
struct Round {
    signal: Signal,
    reached: HashSet<(Pid, u64)>,
}

/// An end that has begun.
pub struct Ending {
    program: Pid,
    kill_at: Instant,
    next_look: Instant,
    pause: Duration,
    /// When there was a process that had not been signalled before.
    last_news: Instant,
    asked: Round,
    killed: Round,
}

impl Ending {
    pub fn new(program: Pid, grace: Duration) -> Self {
        let now = Instant::now();
        Self {
            program,
            kill_at: now + grace.min(LONGEST_GRACE),
            // Most often the program was all there was, and there is no need to look.
            next_look: now + FIRST_PAUSE,
            pause: FIRST_PAUSE,
            last_news: now,
            asked: Round::new(Signal::TERM),
            killed: Round::new(Signal::KILL),
        }
    }

    /// Shortens the grace.
    pub fn hurry(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace.min(LONGEST_GRACE);
        self.kill_at = self.kill_at.min(kill_at);
        self.next_look = self.next_look.min(self.kill_at);
    }

    /// When to look at the tree.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Signals every process of the tree that has not got the signal yet. False when what is left cannot
    /// be ended.
    pub fn look(&mut self) -> bool {
        let now = Instant::now();
        let is_over = now >= self.kill_at;
        let round = if is_over {
            &mut self.killed
        } else {
            &mut self.asked
        };
        let has_news = match tree::descendants(getpid()) {
            Some(found) => round.signal(&found),
            None => round.signal_group(self.program),
        };
        if has_news {
            self.last_news = now;
            self.pause = FIRST_PAUSE;
        } else {
            self.pause = LONGEST_PAUSE.min(self.pause * 2);
        }
        self.next_look = now + self.pause;
        if !is_over {
            self.next_look = self.next_look.min(self.kill_at);
        }
        now <= self.last_news.max(self.kill_at) + PATIENCE
    }
}

impl Round {
    fn new(signal: Signal) -> Self {
        Self {
            signal,
            reached: HashSet::new(),
        }
    }

    /// Whether there was a process that had not got the signal before. None gets it twice: many programs
    /// take a second SIGTERM for "at once".
    fn signal(&mut self, found: &[Process]) -> bool {
        let mut has_news = false;
        for process in found {
            if self.reached.insert((process.pid, process.start)) {
                has_news = true;
                let _ = kill_process(process.pid, self.signal);
            }
        }
        has_news
    }

    /// Where `/proc` does not tell, the group of the program is all that is known.
    fn signal_group(&mut self, program: Pid) -> bool {
        let is_news = self.reached.insert((program, 0));
        if is_news {
            let _ = kill_process_group(program, self.signal);
        }
        is_news
    }
}
