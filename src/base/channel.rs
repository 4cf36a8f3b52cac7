//! A channel bounded in elements and in bytes, read in batches.
//!
//! A slow reader slows the writer; memory never grows past the bounds. One writer element is always
//! accepted into an empty channel, however large it is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What an element weighs against the byte bound.
pub trait Weigh {
    /// Approximate size in bytes.
    fn weight(&self) -> usize;
}

/// Bounds of a channel, or of one batch.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub elements: usize,
    pub bytes: usize,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    readable: Notify,
    writable: Notify,
    bounds: Bounds,
}

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    bytes: usize,
    reader_gone: bool,
    writer_gone: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // The state is a plain queue: it is whole after every statement, a panic elsewhere or not.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing end; dropping it ends the stream.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// The reading end; dropping it makes writes vanish without waiting.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

/// What a look into the channel gave.
enum Taken<T> {
    Batch(Vec<T>),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

/// A new channel.
pub fn bounded<T: Weigh>(bounds: Bounds) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            queue: VecDeque::new(),
            bytes: 0,
            reader_gone: false,
            writer_gone: false,
        }),
        readable: Notify::new(),
        writable: Notify::new(),
        bounds,
    });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T: Weigh> Sender<T> {
    /// Writes an element, waiting while the channel is full. Without a reader the element vanishes.
    pub async fn send(&self, element: T) {
        let weight = element.weight();
        let mut element = Some(element);
        self.send_with(weight, || element.take()).await;
    }

    /// Waits until an element of `weight` has room and writes what `make` gives then; nothing is
    /// locked while it waits. `make` is called at most once, and not at all without a reader.
    pub async fn send_with(&self, weight: usize, mut make: impl FnMut() -> Option<T>) {
        loop {
            let room = self.0.writable.notified();
            let mut room = std::pin::pin!(room);
            // Registered before the look: room that is made in between is not missed.
            room.as_mut().enable();
            if self.try_put(weight, false, &mut make) {
                return;
            }
            room.await;
        }
    }

    /// Writes what `make` gives at once, past the bounds: for the few that must not wait.
    pub fn send_now_with(&self, make: impl FnMut() -> Option<T>) {
        let mut make = make;
        self.try_put(0, true, &mut make);
    }

    fn try_put(&self, weight: usize, force: bool, make: &mut impl FnMut() -> Option<T>) -> bool {
        let mut state = self.0.lock();
        if state.reader_gone {
            return true;
        }
        let fits = state.queue.len() < self.0.bounds.elements
            && state.bytes.saturating_add(weight) <= self.0.bounds.bytes;
        if !(fits || force || state.queue.is_empty()) {
            return false;
        }
        let Some(element) = make() else { return true };
        state.bytes += element.weight();
        state.queue.push_back(element);
        drop(state);
        self.0.readable.notify_one();
        true
    }
}

impl<T: Weigh> Receiver<T> {
    /// Everything that is ready, within `bounds` but at least one element; waits for the first.
    /// `None` when the writer is gone and everything was read.
    pub async fn batch(&self, bounds: Bounds) -> Option<Vec<T>> {
        loop {
            let more = self.0.readable.notified();
            match self.take(bounds) {
                Taken::Batch(batch) => return Some(batch),
                Taken::End => return None,
                Taken::Nothing => {}
            }
            more.await;
        }
    }

    fn take(&self, bounds: Bounds) -> Taken<T> {
        let mut state = self.0.lock();
        if state.queue.is_empty() {
            return if state.writer_gone {
                Taken::End
            } else {
                Taken::Nothing
            };
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < bounds.elements {
            let Some(weight) = state.queue.front().map(Weigh::weight) else {
                break;
            };
            if !batch.is_empty() && bytes + weight > bounds.bytes {
                break;
            }
            bytes += weight;
            batch.extend(state.queue.pop_front());
        }
        state.bytes -= bytes;
        drop(state);
        self.0.writable.notify_waiters();
        Taken::Batch(batch)
    }

    /// Throws away what was not read and makes later writes vanish.
    pub fn close(&self) {
        let mut state = self.0.lock();
        state.reader_gone = true;
        state.queue.clear();
        state.bytes = 0;
        drop(state);
        self.0.writable.notify_waiters();
        self.0.readable.notify_one();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.lock().writer_gone = true;
        self.0.readable.notify_one();
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.lock().reader_gone = true;
        self.0.writable.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    impl Weigh for &'static str {
        fn weight(&self) -> usize {
            self.len()
        }
    }

    const BOUNDS: Bounds = Bounds {
        elements: 3,
        bytes: 10,
    };

    #[tokio::test]
    async fn a_batch_takes_what_is_ready() {
        let (sender, receiver) = bounded(BOUNDS);
        sender.send("a").await;
        sender.send("b").await;
        assert_eq!(receiver.batch(BOUNDS).await, Some(vec!["a", "b"]));
        drop(sender);
        assert_eq!(receiver.batch(BOUNDS).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_channel_holds_the_writer() {
        for (first, second) in [(vec!["a", "b", "c"], "d"), (vec!["12345678"], "9ab")] {
            let (sender, receiver) = bounded(BOUNDS);
            for element in first {
                sender.send(element).await;
            }
            let held = tokio::time::timeout(Duration::from_secs(1), sender.send(second)).await;
            assert!(held.is_err());
            receiver.batch(BOUNDS).await;
            sender.send(second).await;
            assert_eq!(receiver.batch(BOUNDS).await, Some(vec![second]));
        }
    }

    #[tokio::test]
    async fn an_element_larger_than_the_channel_passes_alone() {
        let (sender, receiver) = bounded(BOUNDS);
        sender.send("longer than ten bytes").await;
        assert_eq!(
            receiver.batch(BOUNDS).await,
            Some(vec!["longer than ten bytes"])
        );
    }

    #[tokio::test]
    async fn without_a_reader_writes_do_not_wait() {
        let (sender, receiver) = bounded(BOUNDS);
        drop(receiver);
        for _ in 0..10 {
            sender.send("gone").await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_writer_holds_nobody_else() {
        let (sender, receiver) = bounded(BOUNDS);
        for element in ["a", "b", "c"] {
            sender.send(element).await;
        }
        let sender = Arc::new(sender);
        let waiting: Vec<_> = ["d", "e"]
            .map(|element| {
                let sender = sender.clone();
                tokio::spawn(async move { sender.send(element).await })
            })
            .into();
        tokio::task::yield_now().await;
        sender.send_now_with(|| Some("now"));
        assert_eq!(
            receiver
                .batch(Bounds {
                    elements: 4,
                    bytes: 100
                })
                .await
                .unwrap()
                .len(),
            4
        );
        for writer in waiting {
            tokio::time::timeout(Duration::from_secs(1), writer)
                .await
                .unwrap()
                .unwrap();
        }
        assert_eq!(receiver.batch(BOUNDS).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn closing_wakes_both_ends() {
        let (sender, receiver) = bounded(BOUNDS);
        for element in ["a", "b", "c"] {
            sender.send(element).await;
        }
        let blocked = tokio::spawn(async move { sender.send("d").await });
        tokio::task::yield_now().await;
        receiver.close();
        blocked.await.unwrap();
        assert_eq!(receiver.batch(BOUNDS).await, None);
    }
}
