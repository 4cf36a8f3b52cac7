//! From neutral updates to the stream elements that consumers read, as JSON text.
//!
//! One file a format. A renderer knows nothing of how updates come about.

pub mod acp;

use crate::protocol::Update;

/// What a renderer may need to know of the stream.
#[derive(Clone, Copy, Debug)]
pub struct RenderOptions {
    /// Whether thinking and usage are shown.
    pub extras: bool,
}

/// Renders a batch as the text of a JSON array; elements that the options hide are left out.
pub fn batch(updates: &[Update], options: RenderOptions) -> String {
    let mut text = Vec::with_capacity(128 * updates.len() + 2);
    text.push(b'[');
    for update in updates {
        let Some(element) = acp::render(update, options) else {
            continue;
        };
        let start = text.len();
        if start > 1 {
            text.push(b',');
        }
        if serde_json::to_writer(&mut text, &element).is_err() {
            // The only failing values are maps with keys that are no strings: elements have none.
            text.truncate(start);
        }
    }
    text.push(b']');
    String::from_utf8(text).unwrap_or_default()
}
