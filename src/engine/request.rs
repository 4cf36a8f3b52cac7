//! The request for a transcript.

use std::collections::HashMap;

use super::repair::repair;
use super::{EngineConfig, Offer, Transcript};
use crate::model::{ModelRequest, RequestMessage};
use crate::protocol::{EntryMessage, Role};

/// Builds a valid request; also gives what had to be repaired, in words.
pub fn build(
    config: &EngineConfig,
    transcript: &Transcript,
    offer: &Offer,
) -> (ModelRequest, Vec<&'static str>) {
    let mut messages = messages(transcript);
    let repairs = repair(&mut messages);
    let request = ModelRequest {
        settings: config.settings.clone(),
        system: system(config.system.as_deref(), offer.notes.as_deref()),
        messages,
        tools: offer.tools.declarations(),
    };
    (request, repairs)
}

fn system(prompt: Option<&str>, notes: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = prompt.into_iter().chain(notes).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The messages of the main conversation; the entries of one answer are one message, at the place
/// of its first entry.
fn messages(transcript: &Transcript) -> Vec<RequestMessage> {
    let mut messages: Vec<RequestMessage> = Vec::new();
    let mut answers: HashMap<&str, usize> = HashMap::new();
    for message in transcript
        .thread()
        .filter_map(|entry| entry.model_message())
    {
        let content = message.content.blocks();
        match answer_id(message) {
            Some(id) if answers.contains_key(id) => messages[answers[id]].content.extend(content),
            id => {
                answers.extend(id.map(|id| (id, messages.len())));
                messages.push(RequestMessage {
                    role: message.role,
                    content,
                });
            }
        }
    }
    messages
}

fn answer_id(message: &EntryMessage) -> Option<&str> {
    message
        .id
        .as_deref()
        .filter(|_| message.role == Role::Assistant)
}
