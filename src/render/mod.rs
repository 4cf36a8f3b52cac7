//! From neutral updates to the stream elements that consumers read, as JSON text.
//!
//! One file a format. A renderer knows nothing of how updates come about.

pub mod acp;
pub mod events;
mod jsonrpc;
mod sdk;

use std::sync::Arc;

use serde::Serialize;

use crate::protocol::Update;

/// Formats of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Flat objects with the field names of both generations of consumers.
    #[default]
    Acp,
    /// Flat objects with the field names of ACP 1.0.
    AcpV1,
    /// The same in JSON-RPC envelopes, ready for server-sent events.
    AcpJsonRpc,
    /// Objects told apart by `type`.
    Events,
    /// Messages of the Claude Agent SDK, for a custom stream adapter.
    Sdk,
}

impl Format {
    /// The names that users know.
    pub const NAMES: [&str; 4] = ["acp", "acp-v1", "acp-jsonrpc", "events"];

    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "acp" => Self::Acp,
            "acp-v1" => Self::AcpV1,
            "acp-jsonrpc" => Self::AcpJsonRpc,
            "events" => Self::Events,
            _ => return None,
        })
    }
}

/// How a stream is rendered.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenderOptions {
    pub format: Format,
    /// Whether thinking and usage are shown.
    pub extras: bool,
}

/// Renders the updates of one session.
#[derive(Clone, Debug)]
pub struct Renderer {
    options: RenderOptions,
    session_id: Arc<str>,
}

impl Renderer {
    pub fn new(options: RenderOptions, session_id: Arc<str>) -> Self {
        Self {
            options,
            session_id,
        }
    }

    /// A batch as the text of a JSON array; updates that have no element are left out.
    ///
    /// A stream is mostly pieces of one text. In the flat formats pieces in a row are written as one
    /// array `[sessionUpdate, messageId, text, …]`, which `js/chunks.js` takes apart: writing and
    /// reading each as an object would cost more than everything else.
    pub fn batch(&self, updates: &[Update]) -> String {
        let mut list = List(Vec::with_capacity(64 * updates.len() + 2));
        let mut rest = updates;
        while let [first, others @ ..] = rest {
            if let Some(pieces) = self.pieces(rest) {
                list.push(Some(&pieces));
                rest = &rest[pieces.texts.len()..];
            } else {
                self.render(first, &mut list);
                rest = others;
            }
        }
        list.finish()
    }

    /// The pieces of one text at the front, in a format that has them.
    fn pieces<'a>(&self, updates: &'a [Update]) -> Option<acp::Pieces<'a>> {
        match self.options.format {
            Format::Acp | Format::AcpV1 => acp::Pieces::at_front(updates, self.options.extras),
            _ => None,
        }
    }

    fn render(&self, update: &Update, list: &mut List) {
        let extras = self.options.extras;
        let flat = |spelling| acp::render(update, &self.session_id, spelling, extras);
        match self.options.format {
            Format::Acp => list.push(flat(acp::Spelling::Both)),
            Format::AcpV1 => list.push(flat(acp::Spelling::Raw)),
            Format::AcpJsonRpc => list.push(jsonrpc::render(update, &self.session_id, extras)),
            Format::Events => list.push(events::render(update)),
            Format::Sdk => list.push(sdk::render(update, &self.session_id)),
        }
    }
}

/// The text of a JSON array that grows.
struct List(Vec<u8>);

impl List {
    fn push(&mut self, element: Option<impl Serialize>) {
        let Some(element) = element else { return };
        let start = self.0.len();
        self.0.push(if start == 0 { b'[' } else { b',' });
        if serde_json::to_writer(&mut self.0, &element).is_err() {
            // Only maps with keys that are no strings fail: elements have none.
            self.0.truncate(start);
        }
    }

    fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push(b'[');
        }
        self.0.push(b']');
        String::from_utf8(self.0).unwrap_or_default()
    }
}
