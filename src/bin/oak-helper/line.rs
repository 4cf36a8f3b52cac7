//! The helper's end of the socket to the kernel: its standard input.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};

use crate::wire::{Order, Report, STREAMS, encode, take};

const CHUNK: usize = 64 << 10;

/// What has arrived and was not read yet.
#[derive(Default)]
pub struct Line {
    arrived: Vec<u8>,
    streams: Vec<OwnedFd>,
}

impl Line {
    /// The next order; None when the kernel is gone, or says what is no order.
    pub fn hear(&mut self) -> Option<Order> {
        loop {
            if let Some(order) = take(&mut self.arrived).ok()? {
                return Some(order);
            }
            if self.receive().ok()? == 0 {
                return None;
            }
        }
    }

    /// The streams that came with the first order.
    pub fn take_streams(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.streams)
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut chunk = vec![0; CHUNK];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let message = rustix::io::retry_on_intr(|| {
            let mut data = [IoSliceMut::new(&mut chunk)];
            recvmsg(
                io::stdin().as_fd(),
                &mut data,
                &mut rights,
                RecvFlags::empty(),
            )
        })?;
        for part in rights.drain() {
            if let RecvAncillaryMessage::ScmRights(streams) = part {
                self.streams.extend(streams);
            }
        }
        for stream in &self.streams {
            // Not every system can do this when it receives them. Nothing is started in between.
            fcntl_setfd(stream, FdFlags::CLOEXEC)?;
        }
        self.arrived.extend_from_slice(&chunk[..message.bytes]);
        Ok(message.bytes)
    }
}

/// Sends a report. A kernel that is gone, or does not read, must not hold up the end of the tree.
pub fn say(report: &Report) {
    if let Ok(message) = encode(report) {
        let _ = send(io::stdin().as_fd(), &message, SendFlags::DONTWAIT);
    }
}
