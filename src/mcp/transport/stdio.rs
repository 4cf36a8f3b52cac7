//! A server as a child process: one message a line over its standard streams.
//!
//! Standard error is always read, and its end kept for messages. What the server writes to standard
//! output beside the protocol is kept in the same way and otherwise ignored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::decode::{Content, Incoming, read_line, too_long};
use super::lines::{LONGEST, Line, Lines};
use super::outbox::{Outbox, Put, SendError};
use crate::base::clock::SharedClock;
use crate::base::process::{Child, ExitStatus};
use crate::mcp::diagnosis::Diagnosis;

/// Time in which a server that closed its output tells how it ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Time in which a server whose input was closed may end by itself.
const GOODBYE: Duration = Duration::from_secs(1);

/// The process behind the streams.
#[async_trait]
pub trait Process: Send + Sync + 'static {
    /// Waits until it has ended.
    async fn wait(&self) -> ExitStatus;

    /// Ends it and everything that it started.
    async fn end(self: Box<Self>);
}

#[async_trait]
impl Process for Child {
    async fn wait(&self) -> ExitStatus {
        Child::wait(self).await
    }

    async fn end(self: Box<Self>) {
        Child::end(*self).await;
    }
}

/// The connection to a child.
pub struct Stdio<R> {
    stdout: R,
    lines: Lines,
    ready: VecDeque<Incoming>,
    is_over: bool,
    outbox: Outbox<Vec<u8>>,
    stderr: JoinHandle<()>,
    process: Option<Box<dyn Process>>,
    diagnosis: Arc<Diagnosis>,
    clock: SharedClock,
}

/// The standard streams of a child.
pub struct Streams<R, W, E> {
    pub stdin: W,
    pub stdout: R,
    pub stderr: E,
}

impl<R> Stdio<R> {
    /// Starts to read and write. Needs a tokio runtime.
    pub fn new<W, E>(
        streams: Streams<R, W, E>,
        process: Box<dyn Process>,
        diagnosis: Arc<Diagnosis>,
        clock: SharedClock,
    ) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
        E: AsyncRead + Send + Unpin + 'static,
    {
        let stderr = tokio::spawn(drain(streams.stderr, diagnosis.clone()));
        Self {
            stdout: streams.stdout,
            lines: Lines::new(LONGEST),
            ready: VecDeque::new(),
            is_over: false,
            outbox: Outbox::new(Stdin(streams.stdin), clock.clone()),
            stderr,
            process: Some(process),
            diagnosis,
            clock,
        }
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Whole(line) => match read_line(&line) {
                Content::Messages(messages) => self.ready.extend(messages),
                Content::Noise if line.is_empty() => {}
                Content::Noise => {
                    self.diagnosis.note(&line);
                    self.diagnosis.note(b"\n");
                }
            },
            Line::Skipped(line) => self.ready.extend(too_long(&line)),
        }
    }

    /// Says why nothing more comes.
    async fn explain(&mut self) {
        let status = async {
            let status = match &self.process {
                Some(process) => process.wait().await,
                None => ExitStatus::Unknown,
            };
            // What it wrote before it ended.
            let _ = (&mut self.stderr).await;
            status
        };
        let status = tokio::select! {
            biased;
            status = status => Some(status),
            () = self.clock.sleep(LAST_WORDS) => None,
        };
        self.diagnosis.end(match status {
            Some(ExitStatus::Code(code)) => format!("exited with code {code}"),
            Some(ExitStatus::Signal(signal)) => format!("was ended by signal {signal}"),
            Some(ExitStatus::Unknown) => "ended".to_owned(),
            None => "closed its standard output".to_owned(),
        });
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for Stdio<R> {
    type Error = SendError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let queued = serde_json::to_vec(&message).map(|mut line| {
            line.push(b'\n');
            let weight = line.len();
            self.outbox.send(line, weight)
        });
        async move {
            match queued {
                Ok(written) => written.await,
                Err(error) => Err(SendError(error.to_string())),
            }
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            while self.ready.is_empty() {
                let Some(line) = self.lines.next() else { break };
                self.take(line);
            }
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.is_over {
                self.explain().await;
                return None;
            }
            // Nothing is lost when this wait is given up: what was read is in the buffer.
            let read = self.stdout.read_buf(self.lines.room()).await;
            if !matches!(read, Ok(bytes) if bytes > 0) {
                self.is_over = true;
                if let Some(rest) = self.lines.rest() {
                    self.take(rest);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), SendError> {
        self.outbox.close().await;
        if let Some(process) = self.process.take() {
            tokio::select! {
                biased;
                _ = process.wait() => {}
                () = self.clock.sleep(GOODBYE) => {}
            }
            // Also after its own end: what it started may be left.
            process.end().await;
        }
        self.stderr.abort();
        Ok(())
    }
}

impl<R> Drop for Stdio<R> {
    fn drop(&mut self) {
        self.stderr.abort();
    }
}

async fn drain(mut stderr: impl AsyncRead + Unpin, diagnosis: Arc<Diagnosis>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        diagnosis.note(&buffer[..length]);
    }
}

/// The server's input.
struct Stdin<W>(W);

#[async_trait]
impl<W: AsyncWrite + Send + Unpin + 'static> Put<Vec<u8>> for Stdin<W> {
    async fn put(&mut self, line: Vec<u8>) -> Result<(), SendError> {
        let failed = |error: std::io::Error| SendError(error.to_string());
        self.0.write_all(&line).await.map_err(failed)?;
        self.0.flush().await.map_err(failed)
    }
}
