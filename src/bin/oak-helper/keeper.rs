//! Keeps watch over the tree of the program until nothing of it is left.

use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use crate::ending::Ending;
use crate::line::{Line, say};
use crate::wire::{ExitStatus, Order, Report};

const STACK: usize = 256 << 10;

/// What happens to the tree.
enum Event {
    /// The kernel wants it to end, with this grace.
    Terminate(Duration),
    /// The kernel is gone.
    Abandoned,
    /// A child of this process has ended.
    Ended(Pid, WaitStatus),
    /// This process has no children. All of the tree descends from them, so nothing is left.
    Empty,
}

/// The watch over one tree.
pub struct Keeper {
    program: Pid,
    grace: Duration,
    events: Receiver<Event>,
    ending: Option<Ending>,
}

impl Keeper {
    /// Starts to listen to the kernel and to collect children.
    pub fn new(line: Line, program: Pid, grace: Duration) -> io::Result<Self> {
        let (sender, events) = channel();
        let ends = sender.clone();
        let thread = || thread::Builder::new().stack_size(STACK);
        thread().spawn(move || listen(line, &sender))?;
        thread().spawn(move || collect(&ends))?;
        Ok(Self {
            program,
            grace,
            events,
            ending: None,
        })
    }

    /// Stays until nothing is left, or what is left cannot be ended.
    pub fn run(mut self) -> ExitCode {
        loop {
            match self.next() {
                Some(Event::Terminate(grace)) => self.end(grace),
                Some(Event::Abandoned) => self.end(self.grace),
                Some(Event::Ended(pid, status)) if pid == self.program => {
                    let status = status_of(status);
                    say(&Report::Exited { status });
                    self.end(self.grace);
                }
                Some(Event::Ended(..)) => {}
                Some(Event::Empty) => {
                    end_strangers(self.program);
                    say(&Report::Done);
                    return ExitCode::SUCCESS;
                }
                None => {
                    if !self.ending.as_mut().is_some_and(Ending::look) {
                        return ExitCode::FAILURE;
                    }
                }
            }
        }
    }

    /// The next event. None when it is time to look at the tree.
    fn next(&self) -> Option<Event> {
        let Some(ending) = &self.ending else {
            return self.events.recv().ok();
        };
        let pause = ending.next_look().saturating_duration_since(Instant::now());
        self.events.recv_timeout(pause).ok()
    }

    /// Begins to end the tree, or hurries an end that has begun.
    fn end(&mut self, grace: Duration) {
        match &mut self.ending {
            Some(ending) => ending.hurry(grace),
            None => self.ending = Some(Ending::new(self.program, grace)),
        }
    }
}

/// Passes on what the kernel wants, until it is gone.
fn listen(mut line: Line, events: &Sender<Event>) {
    while let Some(order) = line.hear() {
        if let Order::Terminate { grace_ms } = order {
            let _ = events.send(Event::Terminate(Duration::from_millis(grace_ms)));
        }
    }
    let _ = events.send(Event::Abandoned);
}

/// Passes on the ends of all children, adopted ones too, until there are none.
fn collect(events: &Sender<Event>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let _ = events.send(Event::Ended(pid, status));
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = events.send(Event::Empty);
}

fn status_of(status: WaitStatus) -> ExitStatus {
    let signal = status.terminating_signal().map(ExitStatus::Signal);
    let code = status.exit_status().map(ExitStatus::Code);
    code.or(signal).unwrap_or(ExitStatus::Unknown)
}

/// Where orphans go to PID 1, those of the program's group can still be reached.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn end_strangers(program: Pid) {
    use rustix::process::{Signal, kill_process_group};
    let _ = kill_process_group(program, Signal::KILL);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn end_strangers(_: Pid) {}
