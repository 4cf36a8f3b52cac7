//! Results of the older kernel that only say that a call waits.
//!
//! It gave every call a result at once, and its transcripts hold these for ever. Custom stream
//! adapters that were written for it look for them, so they are made for those still.

use serde_json::json;

use super::{ContentBlock, Json, OpenCall, OpenKind, ResultContent};

const APPROVAL: &str = "__OAK_INTERRUPT__";
const CLIENT_TOOL: &str = "__OAK_CLIENT_TOOL__";
/// Keys, with the value `true`, of such results.
const SENTINELS: [&str; 3] = [APPROVAL, CLIENT_TOOL, "__OAK_ASK_USER__"];

/// Whether the text of a result is a sentinel. The engine may have put words around that of an error; a
/// tool that worked may have read such a text somewhere: only one that is nothing else counts.
pub fn is_sentinel(text: &str, is_error: bool) -> bool {
    SENTINELS.into_iter().any(|key| text.contains(key)) && (is_error || is_payload(text))
}

fn is_payload(text: &str) -> bool {
    let payload: Option<Json> = serde_json::from_str(text).ok();
    payload.is_some_and(|payload| SENTINELS.into_iter().any(|key| payload[key] == true))
}

/// Whether a block is a result that only says that its call waits.
pub fn puts_off(block: &ContentBlock) -> bool {
    let ContentBlock::ToolResult {
        content, is_error, ..
    } = block
    else {
        return false;
    };
    match content {
        ResultContent::Text(text) => is_sentinel(text, *is_error),
        ResultContent::Blocks(blocks) => blocks.iter().any(|block| match block {
            ContentBlock::Text { text, .. } => is_sentinel(text, *is_error),
            _ => false,
        }),
    }
}

/// The text of the result that the older kernel would have written for an open call.
pub fn sentinel(call: &OpenCall, conversation: &str) -> String {
    let key = match call.kind {
        OpenKind::Approval => APPROVAL,
        OpenKind::ClientTool | OpenKind::Question => CLIENT_TOOL,
    };
    json!({
        key: true,
        "conversationId": conversation,
        "toolUseId": call.tool_use_id,
        "toolName": call.tool_name,
        "toolInput": call.input,
        "message": "The call waits for its answer. Do not repeat it.",
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_are_found_in_texts_and_blocks() {
        for key in SENTINELS {
            let text = json!({key: true, "toolUseId": "t"}).to_string();
            assert!(puts_off(&ContentBlock::result_text("t", &*text, true)));
            assert!(puts_off(&ContentBlock::result_text("t", &*text, false)));
            let wrapped = format!("Error: {text}");
            assert!(puts_off(&ContentBlock::result_text("t", &*wrapped, true)));
            assert!(!puts_off(&ContentBlock::result_text("t", wrapped, false)));
            let blocks = ContentBlock::ToolResult {
                tool_use_id: "t".into(),
                content: ResultContent::Blocks(vec![ContentBlock::text(text)]),
                is_error: false,
            };
            assert!(puts_off(&blocks));
        }
        assert!(!puts_off(&ContentBlock::result_text("t", "done", true)));
        assert!(!is_sentinel(r#"{"file":"__OAK_INTERRUPT__"}"#, false));
    }

    #[test]
    fn what_is_made_is_found() {
        for kind in [OpenKind::Approval, OpenKind::ClientTool, OpenKind::Question] {
            let call = OpenCall {
                tool_use_id: "t".into(),
                tool_name: "n".into(),
                input: json!({}),
                kind,
            };
            assert!(is_sentinel(&sentinel(&call, "c"), false));
        }
    }
}
