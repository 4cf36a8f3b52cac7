//! What the kernel, or the one before it, wrote into transcripts for itself.
//!
//! Older transcripts hold these for ever: results that only say that a call waits, reasons of
//! denials, and prompts in the user's name that made the model go on.

use crate::protocol::{Json, is_sentinel};

/// `type` of the reason why a second call was put off in the same run.
const PUT_OFF: &str = "oak_pending_approval_in_turn";
/// `type` of the reasons why a call was not allowed to run.
const DENIALS: [&str; 5] = [
    "oak_user_denied",
    "oak_user_denied_session",
    "oak_tool_mismatch",
    "oak_approval_expired",
    "oak_internal_error",
];
/// `oak.kind` of an entry that only made the model go on.
const RESUME_NOTICE: &str = "resume_notice";
/// How unmarked prompts of that kind begin. People write texts that begin so, too.
const NOTICE_PREFIX: &str = "[系统通知]";
const GO_ON: &str = "请继续";
/// Longest text behind the prefix that only says to go on, in characters.
const GO_ON_CHARS: usize = 24;
const QUESTION_ANSWERED: &str = "用户已回答了你刚才的提问";
/// What is said about a call, beside its name in back-ticks.
const SUBJECT: &str = "用户";
const CALL: &str = "工具";
const DECIDED: [&str; 3] = ["已批准", "已拒绝", "已允许"];
const RESULT: &str = "结果";

/// What a tool result means for its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The tool ran, or the call was ended otherwise.
    Done,
    /// The call was not allowed to run.
    Denied,
    /// There is no result: the call waits, or was given up.
    PutOff,
}

/// What a result means. `fields` are those of its entry.
pub(super) fn outcome(output: &Json, is_error: bool, fields: &Json) -> Outcome {
    if texts(output).any(|text| is_put_off(text, is_error)) {
        Outcome::PutOff
    } else if is_error && (is_denied_entry(fields) || texts(output).any(is_denial)) {
        Outcome::Denied
    } else {
        Outcome::Done
    }
}

/// The texts of a result: it is one, or blocks.
fn texts(output: &Json) -> impl Iterator<Item = &str> {
    let blocks = output.as_array().into_iter().flatten();
    let of_blocks = blocks.filter_map(|block| block.get("text")?.as_str());
    output.as_str().into_iter().chain(of_blocks)
}

/// The engine may put words around a reason, so that an error is searched. A tool that worked may
/// have read such a text somewhere: only a text that is nothing else counts.
fn is_put_off(text: &str, is_error: bool) -> bool {
    let is_second = text.contains(PUT_OFF) && (is_error || is_second_payload(text));
    is_second || is_sentinel(text, is_error)
}

fn is_second_payload(text: &str) -> bool {
    let payload: Option<Json> = serde_json::from_str(text).ok();
    payload.is_some_and(|payload| payload["type"] == PUT_OFF)
}

fn is_denial(text: &str) -> bool {
    DENIALS.into_iter().any(|reason| text.contains(reason))
}

/// Whether an entry says that its call was refused, in the fields of the Claude Agent SDK.
fn is_denied_entry(fields: &Json) -> bool {
    let has_kind = fields["toolDenialKind"]
        .as_str()
        .is_some_and(|kind| !kind.is_empty());
    let decision = fields["permissionDecision"]["decision"].as_str();
    has_kind || matches!(decision, Some("reject" | "deny"))
}

/// Whether the kernel says that it wrote an entry to make the model go on.
pub(super) fn is_marked_notice(fields: &Json) -> bool {
    fields["oak"]["kind"] == RESUME_NOTICE
}

/// Whether a text of the user is one that the older kernel wrote. Only for entries that carry no mark.
pub(super) fn is_known_notice(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(NOTICE_PREFIX).map(str::trim) else {
        return false;
    };
    let goes_on = rest.contains(GO_ON) && rest.chars().count() <= GO_ON_CHARS;
    goes_on || rest.starts_with(QUESTION_ANSWERED) || is_about_call(rest)
}

/// Names a call in back-ticks, and says what the user decided about it (before the name) or that it
/// has a result (behind it).
fn is_about_call(rest: &str) -> bool {
    let about = rest.strip_prefix(SUBJECT);
    let Some((said, behind)) = about.and_then(|about| about.split_once('`')) else {
        return false;
    };
    let is_decided = DECIDED.iter().any(|word| said.contains(word));
    said.contains(CALL) && (is_decided || behind.contains(RESULT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(output: Json, is_error: bool) -> Outcome {
        outcome(&output, is_error, &json!({}))
    }

    #[test]
    fn sentinels_are_found_in_texts_and_blocks() {
        for key in [
            "__OAK_INTERRUPT__",
            "__OAK_CLIENT_TOOL__",
            "__OAK_ASK_USER__",
        ] {
            let text = json!({key: true, "toolUseId": "t"}).to_string();
            assert_eq!(of(json!(text), true), Outcome::PutOff);
            assert_eq!(of(json!(text), false), Outcome::PutOff);
            let blocks = json!([{"type": "image"}, {"type": "text", "text": text}]);
            assert_eq!(of(blocks, true), Outcome::PutOff);
            let wrapped = json!(format!("Error: {text}"));
            assert_eq!(of(wrapped.clone(), true), Outcome::PutOff);
            assert_eq!(of(wrapped, false), Outcome::Done);
            let quoted = json!({"file": format!("const KEY = '{key}'")}).to_string();
            assert_eq!(of(json!(quoted), false), Outcome::Done);
        }
        let second = json!({"reason": "wait", "type": PUT_OFF}).to_string();
        assert_eq!(of(json!(second), true), Outcome::PutOff);
        assert_eq!(of(json!(second), false), Outcome::PutOff);
        assert_eq!(of(Json::Null, true), Outcome::Done);
    }

    #[test]
    fn denials_are_errors_with_a_reason_or_a_field() {
        for kind in DENIALS {
            let reason = json!({"reason": "no", "type": kind}).to_string();
            assert_eq!(of(json!(reason), true), Outcome::Denied);
            assert_eq!(
                of(json!([{"type": "text", "text": reason}]), true),
                Outcome::Denied
            );
            assert_eq!(of(json!(reason), false), Outcome::Done);
        }
        for fields in [
            json!({"toolDenialKind": "user-rejected"}),
            json!({"permissionDecision": {"decision": "reject", "source": "hook"}}),
        ] {
            assert_eq!(outcome(&json!("no"), true, &fields), Outcome::Denied);
            assert_eq!(outcome(&json!("ok"), false, &fields), Outcome::Done);
        }
        let accepted = json!({"permissionDecision": {"decision": "accept"}});
        assert_eq!(outcome(&json!("failed"), true, &accepted), Outcome::Done);
    }

    #[test]
    fn notices_of_the_older_kernel_are_known_and_texts_of_people_are_not() {
        for notice in [
            "[系统通知] 请继续。",
            "[系统通知] 用户已批准刚才的工具调用 `Bash`。（下文）",
            "[系统通知] 用户已批准刚才的工具调用 `x`：\n{\"a\":1}",
            "[系统通知] 用户已拒绝刚才的工具调用 `mcp__fs__deleteFile`（原因）",
            "[系统通知] 用户为刚才的工具调用 `get_weather` 给了结果",
            "[系统通知] 用户已回答了你刚才的提问（下文）",
        ] {
            assert!(is_known_notice(notice), "{notice}");
        }
        for text in [
            "[系统通知] 今晚停机维护，请大家保存好文件，明天早上请继续使用原来的地址登录系统",
            "[系统通知] 用户小明加入了群聊",
            "[系统通知] 用户说 `x` 是什么意思？",
            "请解释 [系统通知] 用户已批准刚才的工具调用 `x`",
            "[系统通知]",
            "",
        ] {
            assert!(!is_known_notice(text), "{text}");
        }
    }
}
