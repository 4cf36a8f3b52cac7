//! Pieces of one text in a row, written without repeating what they share.

use serde::{Serialize, Serializer};

use crate::protocol::{Body, Update};

/// `[sessionUpdate, messageId, text, …]`.
#[derive(Debug)]
pub struct Pieces<'a> {
    element: &'static str,
    message_id: &'a str,
    pub texts: Vec<&'a str>,
}

impl<'a> Pieces<'a> {
    /// The pieces at the front of `updates`; none when there is something else.
    pub fn at_front(updates: &'a [Update], extras: bool) -> Option<Self> {
        let (element, message_id, _) = piece(updates.first()?, extras)?;
        let texts = updates
            .iter()
            .map_while(|update| piece(update, extras))
            .take_while(|(kind, id, _)| *kind == element && *id == message_id)
            .map(|(_, _, text)| text)
            .collect();
        Some(Self {
            element,
            message_id,
            texts,
        })
    }
}

fn piece(update: &Update, extras: bool) -> Option<(&'static str, &str, &str)> {
    match &update.body {
        Body::Text { message_id, delta } => Some(("agent_message_chunk", message_id, delta)),
        Body::Thinking { message_id, delta } if extras => {
            Some(("agent_thought_chunk", message_id, delta))
        }
        _ => None,
    }
}

impl Serialize for Pieces<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let head = [self.element, self.message_id];
        serializer.collect_seq(head.iter().chain(&self.texts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(body: Body) -> Update {
        Update {
            turn_id: "turn".into(),
            seq: 0,
            parent: None,
            at_ms: 0,
            body,
        }
    }

    fn text(id: &str, delta: &str) -> Update {
        update(Body::Text {
            message_id: id.into(),
            delta: delta.into(),
        })
    }

    #[test]
    fn pieces_of_one_text_are_one_array() {
        let thought = update(Body::Thinking {
            message_id: "m".into(),
            delta: "hm".into(),
        });
        let updates = [text("m", "a"), text("m", "b"), thought, text("m", "c")];
        let pieces = Pieces::at_front(&updates, true).unwrap();
        let json = serde_json::to_string(&pieces).unwrap();
        assert_eq!(json, r#"["agent_message_chunk","m","a","b"]"#);
        assert_eq!(Pieces::at_front(&updates[2..], true).unwrap().texts, ["hm"]);
        assert!(Pieces::at_front(&updates[2..], false).is_none());
    }

    #[test]
    fn another_answer_begins_another_array() {
        let updates = [text("m1", "a"), text("m2", "b")];
        assert_eq!(Pieces::at_front(&updates, true).unwrap().texts, ["a"]);
    }
}
