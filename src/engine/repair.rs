//! Making a conversation valid for the gateway, on the outgoing copy only.
//!
//! A list of small passes. Each gives what it changed in words, for the log; the transcript itself
//! is never edited.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::model::RequestMessage;
use crate::protocol::{ContentBlock, ImageSource, ResultContent, Role, puts_off};
use crate::tool::{NAME_LENGTH, NO_OUTPUT, is_valid_name};

/// What the model reads for a call whose result was never recorded.
pub const UNKNOWN_OUTCOME: &str = "The session ended before the result of this call was recorded. \
    Its outcome is unknown: it may or may not have taken effect.";

/// Most images that a request may carry.
const MAX_IMAGES: usize = 100;
/// Largest image, in bytes of base64.
const MAX_IMAGE_BYTES: usize = 5 << 20;

type Pass = fn(&mut Vec<RequestMessage>) -> Option<&'static str>;

const PASSES: &[Pass] = &[
    |messages| drop_unsigned_thinking(messages),
    |messages| drop_blank_text(messages),
    |messages| prefer_real_results(messages),
    merge_neighbours,
    |messages| drop_bare_thinking(messages),
    pair_from_the_first_prompt,
    |messages| clean_tool_names(messages),
    |messages| drop_large_images(messages),
    |messages| drop_old_images(messages),
];

/// Runs all passes; gives what they changed.
pub fn repair(messages: &mut Vec<RequestMessage>) -> Vec<&'static str> {
    PASSES.iter().filter_map(|pass| pass(messages)).collect()
}

/// Thinking is accepted only as the gateway signed it.
fn drop_unsigned_thinking(messages: &mut [RequestMessage]) -> Option<&'static str> {
    let unsigned = |block: &ContentBlock| matches!(block, ContentBlock::Thinking { signature, .. } if signature.is_empty());
    retain_blocks(messages, |block| !unsigned(block))
        .then_some("thinking without signature left out")
}

/// The API returns empty text blocks but refuses them.
fn drop_blank_text(messages: &mut [RequestMessage]) -> Option<&'static str> {
    let mut changed = retain_blocks(messages, |block| !block.is_blank_text());
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        if let Some(filled) = filled_result(block) {
            *block = Arc::new(filled);
            changed = true;
        }
    }
    changed.then_some("empty text left out")
}

/// A tool result without the blank texts in it; none when it has no blank text.
fn filled_result(block: &ContentBlock) -> Option<ContentBlock> {
    let ContentBlock::ToolResult {
        tool_use_id,
        content,
        is_error,
    } = block
    else {
        return None;
    };
    let content = match content {
        ResultContent::Text(text) if text.trim().is_empty() => {
            ResultContent::Text(NO_OUTPUT.into())
        }
        ResultContent::Blocks(blocks)
            if blocks.is_empty() || blocks.iter().any(ContentBlock::is_blank_text) =>
        {
            let kept: Vec<_> = blocks
                .iter()
                .filter(|block| !block.is_blank_text())
                .cloned()
                .collect();
            if kept.is_empty() {
                ResultContent::Text(NO_OUTPUT.into())
            } else {
                ResultContent::Blocks(kept)
            }
        }
        _ => return None,
    };
    Some(ContentBlock::ToolResult {
        tool_use_id: tool_use_id.clone(),
        content,
        is_error: *is_error,
    })
}

/// A result of an older kernel that only says that its call waits gives its place to the real one.
fn prefer_real_results(messages: &mut [RequestMessage]) -> Option<&'static str> {
    let blocks = || messages.iter().flat_map(|message| &message.content);
    let waiting: HashSet<String> = blocks()
        .filter(|block| puts_off(block))
        .filter_map(|block| block.answers().map(str::to_owned))
        .collect();
    let mut real: HashMap<String, Arc<ContentBlock>> = HashMap::new();
    for block in blocks().filter(|block| !puts_off(block)) {
        if let Some(id) = block.answers().filter(|&id| waiting.contains(id)) {
            real.entry(id.to_owned()).or_insert_with(|| block.clone());
        }
    }
    if real.is_empty() {
        return None;
    }
    let mut placed = HashSet::new();
    for message in messages {
        message.content.retain_mut(|block| {
            let Some(result) = block.answers().and_then(|id| real.get(id)) else {
                return true;
            };
            *block = result.clone();
            placed.insert(block.answers().map(str::to_owned))
        });
    }
    Some("results put in the place of those that only said that a call waits")
}

/// Roles alternate: messages of one role in a row are one message.
fn merge_neighbours(messages: &mut Vec<RequestMessage>) -> Option<&'static str> {
    let before = messages.len();
    let mut merged: Vec<RequestMessage> = Vec::with_capacity(before);
    for message in messages.drain(..) {
        match merged.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(message.content),
            _ => merged.push(message),
        }
    }
    *messages = merged;
    // Merging is how prompts and results are put together: nothing to report.
    None
}

/// Begins with a user message and pairs calls with results; what one step leaves out may be what the
/// other needed, so both are repeated until nothing changes.
fn pair_from_the_first_prompt(messages: &mut Vec<RequestMessage>) -> Option<&'static str> {
    let mut changed = None;
    loop {
        let steps = [start_with_a_prompt, pair_results, drop_empty_messages];
        let done: Vec<_> = steps.iter().filter_map(|step| step(messages)).collect();
        merge_neighbours(messages);
        match done.last() {
            Some(what) => changed = Some(*what),
            None => return changed,
        }
    }
}

/// Each call is answered exactly once, in the next user message, in call order and before anything
/// else; results of other calls are left out.
fn pair_results(messages: &mut Vec<RequestMessage>) -> Option<&'static str> {
    let mut changed = false;
    let mut at = 0;
    let mut calls: Vec<Arc<str>> = Vec::new();
    while at < messages.len() {
        if messages[at].role == Role::Assistant {
            calls = call_ids(&messages[at]);
            let answered = messages
                .get(at + 1)
                .is_some_and(|next| next.role == Role::User);
            if !calls.is_empty() && !answered {
                messages.insert(
                    at + 1,
                    RequestMessage {
                        role: Role::User,
                        content: Vec::new(),
                    },
                );
            }
        } else {
            changed |= answer_calls(&mut messages[at].content, &std::mem::take(&mut calls));
        }
        at += 1;
    }
    changed.then_some("calls and results paired")
}

fn call_ids(message: &RequestMessage) -> Vec<Arc<str>> {
    let mut seen = HashSet::new();
    let ids = message.content.iter().filter_map(|block| block.call_id());
    ids.filter(|id| seen.insert(*id)).map(Arc::from).collect()
}

fn answer_calls(content: &mut Vec<Arc<ContentBlock>>, calls: &[Arc<str>]) -> bool {
    let mut results: HashMap<Arc<str>, Arc<ContentBlock>> = HashMap::new();
    let mut rest = Vec::new();
    let mut changed = false;
    for block in content.drain(..) {
        match block.answers().map(Arc::<str>::from) {
            Some(id) if calls.contains(&id) && !results.contains_key(&id) => {
                results.insert(id, block);
            }
            Some(_) => changed = true,
            None => rest.push(block),
        }
    }
    for id in calls {
        content.push(results.remove(id).unwrap_or_else(|| {
            changed = true;
            Arc::new(ContentBlock::result_text(id, UNKNOWN_OUTCOME, true))
        }));
    }
    content.extend(rest);
    changed
}

/// The model may have called a tool by a name that no request may carry; it was told that there is no
/// such tool, under the name that it wrote.
fn clean_tool_names(messages: &mut [RequestMessage]) -> Option<&'static str> {
    let mut changed = false;
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        if let ContentBlock::ToolUse { id, name, input } = block.as_ref()
            && !is_valid_name(name)
        {
            let (id, input, name) = (id.clone(), input.clone(), clean_name(name));
            *block = Arc::new(ContentBlock::ToolUse { id, name, input });
            changed = true;
        }
    }
    changed.then_some("impossible tool names cleaned")
}

fn clean_name(name: &str) -> String {
    let accepted = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let cleaned: String = name
        .chars()
        .take(NAME_LENGTH)
        .map(|c| if accepted(c) { c } else { '_' })
        .collect();
    if cleaned.is_empty() {
        "unnamed".to_owned()
    } else {
        cleaned
    }
}

/// An answer of nothing but thinking says nothing, and the API refuses it as a last message.
fn drop_bare_thinking(messages: &mut [RequestMessage]) -> Option<&'static str> {
    let is_thinking = |block: &Arc<ContentBlock>| {
        matches!(
            **block,
            ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. }
        )
    };
    let mut changed = false;
    for message in messages {
        if !message.content.is_empty() && message.content.iter().all(is_thinking) {
            message.content.clear();
            changed = true;
        }
    }
    changed.then_some("answers of thinking alone left out")
}

fn drop_empty_messages(messages: &mut Vec<RequestMessage>) -> Option<&'static str> {
    let before = messages.len();
    messages.retain(|message| !message.content.is_empty());
    (messages.len() != before).then_some("empty messages left out")
}

/// A conversation begins with a user message.
fn start_with_a_prompt(messages: &mut Vec<RequestMessage>) -> Option<&'static str> {
    let first = messages
        .iter()
        .position(|message| message.role == Role::User);
    let skipped = first.unwrap_or(messages.len());
    messages.drain(..skipped);
    (skipped > 0).then_some("messages before the first prompt left out")
}

fn drop_large_images(messages: &mut [RequestMessage]) -> Option<&'static str> {
    let large = |source: &ImageSource| matches!(source, ImageSource::Base64 { data, .. } if data.len() > MAX_IMAGE_BYTES);
    replace_images(
        messages,
        "[image left out: it is larger than the model accepts]",
        large,
    )
    .then_some("large images left out")
}

fn drop_old_images(messages: &mut [RequestMessage]) -> Option<&'static str> {
    let mut surplus: usize = 0;
    replace_images(messages, "", |_| {
        surplus += 1;
        false
    });
    let mut surplus = surplus.saturating_sub(MAX_IMAGES);
    replace_images(
        messages,
        "[image left out: the conversation has more images than the model accepts]",
        |_| {
            let drop = surplus > 0;
            surplus = surplus.saturating_sub(1);
            drop
        },
    )
    .then_some("oldest images left out")
}

/// Puts a note in the place of each image that `drop` chooses, oldest first.
fn replace_images(
    messages: &mut [RequestMessage],
    note: &str,
    mut drop: impl FnMut(&ImageSource) -> bool,
) -> bool {
    let mut changed = false;
    let mut replaced = |block: &ContentBlock| match block {
        ContentBlock::Image { source } if drop(source) => Some(ContentBlock::text(note)),
        _ => None,
    };
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        let new = match block.as_ref() {
            ContentBlock::ToolResult {
                tool_use_id,
                content: ResultContent::Blocks(blocks),
                is_error,
            } => {
                let new: Vec<_> = blocks.iter().map(&mut replaced).collect();
                new.iter()
                    .any(Option::is_some)
                    .then(|| ContentBlock::ToolResult {
                        tool_use_id: tool_use_id.clone(),
                        content: ResultContent::Blocks(
                            new.into_iter()
                                .zip(blocks)
                                .map(|(new, old)| new.unwrap_or_else(|| old.clone()))
                                .collect(),
                        ),
                        is_error: *is_error,
                    })
            }
            block => replaced(block),
        };
        if let Some(new) = new {
            *block = Arc::new(new);
            changed = true;
        }
    }
    changed
}

fn retain_blocks(messages: &mut [RequestMessage], keep: impl Fn(&ContentBlock) -> bool) -> bool {
    let count =
        |messages: &[RequestMessage]| messages.iter().map(|m| m.content.len()).sum::<usize>();
    let before = count(messages);
    for message in messages.iter_mut() {
        message.content.retain(|block| keep(block));
    }
    count(messages) != before
}
