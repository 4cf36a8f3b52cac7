//! The kernel's end of the socket to a helper.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use super::wire::{Order, Report, STREAMS, encode, take};

/// Longest that the helper has to say, in bytes, with a margin.
const MAX_ARRIVED: usize = 4_096;

/// A socket that carries orders and reports.
#[derive(Debug)]
pub(super) struct Link {
    socket: UnixStream,
    arrived: Vec<u8>,
}

impl Link {
    /// A link, and the end of it that becomes the standard input of the helper. Needs a tokio runtime.
    pub(super) fn new() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let link = Self {
            socket: UnixStream::from_std(ours)?,
            arrived: Vec::new(),
        };
        Ok((link, theirs.into()))
    }

    /// The next report; None when the helper has closed its end. May be cancelled and called again.
    pub(super) async fn report(&mut self) -> io::Result<Option<Report>> {
        loop {
            if let Some(report) = take(&mut self.arrived)? {
                return Ok(Some(report));
            }
            if self.arrived.len() > MAX_ARRIVED {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.socket.read_buf(&mut self.arrived).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Sends the first order, and the standard streams of the program with it.
    pub(super) async fn start(&mut self, order: &Order, streams: &[OwnedFd]) -> io::Result<()> {
        let message = encode(order)?;
        let fds: Vec<_> = streams.iter().map(AsFd::as_fd).collect();
        let sent = self
            .socket
            .async_io(Interest::WRITABLE, || {
                send(self.socket.as_fd(), &message, &fds)
            })
            .await?;
        // Streams travel with the first byte: what is left of the message may follow in any pieces.
        self.socket.write_all(&message[sent..]).await
    }

    /// Sends an order without waiting. A helper that is gone or does not read any more needs none.
    pub(super) fn order(&self, order: &Order) {
        if let Ok(message) = encode(order) {
            let _ = self.socket.try_write(&message);
        }
    }
}

fn send(socket: BorrowedFd<'_>, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let data = [IoSlice::new(message)];
    Ok(sendmsg(socket, &data, &mut rights, SendFlags::empty())?)
}
