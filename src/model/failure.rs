//! Failures of the gateway as typed errors.

use std::time::SystemTime;

use reqwest::header::HeaderMap;

use crate::base::text::excerpt;
use crate::error::{ErrorKind, KernelError};
use crate::protocol::Json;

/// Characters of a foreign message that are passed on.
const MESSAGE_KEPT: usize = 2_000;
/// The status that the API gives `overloaded_error`.
const OVERLOADED: u16 = 529;

/// The error for an HTTP answer that is no success.
pub fn from_response(status: u16, headers: &HeaderMap, body: &str) -> KernelError {
    let json: Json = serde_json::from_str(body).unwrap_or(Json::Null);
    let kind_name = json["error"]["type"].as_str();
    let said = json["error"]["message"]
        .as_str()
        .or_else(|| json["message"].as_str());
    let text = said.map_or_else(|| plain_text(body), |text| excerpt(text, MESSAGE_KEPT));
    let is_too_long = is_context_overflow(&text) || is_context_code(&json["error"]);
    let kind = if is_too_long && (400..500).contains(&status) {
        ErrorKind::ModelContext
    } else {
        kind_of_status(status)
    };
    let request_id = header(headers, "request-id")
        .or_else(|| header(headers, "x-request-id"))
        .or_else(|| json["request_id"].as_str().map(str::to_owned));
    // A redirect leads to the same place every time.
    let retryable =
        (kind.is_retryable() && !(300..400).contains(&status)) || matches!(status, 408 | 409 | 425);
    let forbidden = header(headers, "x-should-retry").as_deref() == Some("false");
    let mut error = KernelError::new(
        kind,
        format!("the gateway answered {status}{}", said_so(&text)),
    )
    .with_status(status)
    .with_request_id(request_id)
    .with_retryable(retryable && !forbidden)
    .with_retry_after_ms(retry_after_ms(headers));
    if let Some(name) = kind_name {
        error = error.with_detail("type", name);
    }
    error
}

/// The error for an `error` event inside a stream.
pub fn from_event(error: &Json) -> KernelError {
    let name = error["type"]
        .as_str()
        .or_else(|| error["code"].as_str())
        .unwrap_or("error");
    let text = excerpt(error["message"].as_str().unwrap_or_default(), MESSAGE_KEPT);
    let (kind, status) = match name {
        "overloaded_error" => (ErrorKind::ModelOverloaded, Some(OVERLOADED)),
        "rate_limit_error" | "rate_limit_exceeded" => (ErrorKind::ModelRateLimit, Some(429)),
        "authentication_error" => (ErrorKind::ModelAuth, Some(401)),
        "permission_error" => (ErrorKind::ModelAuth, Some(403)),
        "not_found_error" => (ErrorKind::ModelNotFound, Some(404)),
        "request_too_large" => (ErrorKind::ModelRequest, Some(413)),
        _ if is_context_overflow(&text) || is_context_code(error) => {
            (ErrorKind::ModelContext, Some(400))
        }
        "invalid_request_error" => (ErrorKind::ModelRequest, Some(400)),
        "timeout_error" => (ErrorKind::ModelServer, Some(504)),
        _ => (ErrorKind::ModelServer, None),
    };
    let made = KernelError::new(
        kind,
        format!(
            "the gateway reported {name} in the stream{}",
            said_so(&text)
        ),
    )
    .with_detail("type", name);
    match status {
        Some(status) => made.with_status(status),
        None => made,
    }
}

/// A smaller number of output tokens that the gateway would accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub max_tokens: u32,
    /// Whether it is a limit of the model; otherwise it is what this prompt leaves room for.
    pub is_lasting: bool,
}

/// Smaller numbers are statuses, positions or counts, and no use as a limit.
const LEAST_TOKENS: u32 = 512;

/// What the gateway would accept, when it refuses `max_tokens` as too high and says why.
pub fn accepted_max_tokens(error: &KernelError, asked: u32) -> Option<Accepted> {
    if !matches!(
        error.kind(),
        ErrorKind::ModelRequest | ErrorKind::ModelContext
    ) {
        return None;
    }
    let text = error.message();
    let (max_tokens, is_lasting) = match room_in_context(text, asked) {
        Some(room) => (room, false),
        None if error.kind() == ErrorKind::ModelRequest && text.contains("max_tokens") => {
            (numbers(text).filter(|&number| number < asked).max()?, true)
        }
        None => return None,
    };
    (LEAST_TOKENS..asked)
        .contains(&max_tokens)
        .then_some(Accepted {
            max_tokens,
            is_lasting,
        })
}

/// The context less the prompt, where the refusal names both: `PROMPT + ASKED > CONTEXT`, or a
/// context of so many tokens of which the messages take so many.
fn room_in_context(text: &str, asked: u32) -> Option<u32> {
    let sum: Vec<&str> = text.split(['+', '>']).collect();
    if let [prompt, tokens, context] = sum.as_slice()
        && numbers(tokens).next() == Some(asked)
    {
        return numbers(context)
            .next()?
            .checked_sub(numbers(prompt).last()?);
    }
    let context = numbers(text.split_once("context length is")?.1).next()?;
    let before = text.split_once(" in the messages")?.0;
    context.checked_sub(numbers(before).last()?)
}

/// The whole numbers in a text.
fn numbers(text: &str) -> impl DoubleEndedIterator<Item = u32> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
}

fn kind_of_status(status: u16) -> ErrorKind {
    match status {
        401 | 403 => ErrorKind::ModelAuth,
        404 => ErrorKind::ModelNotFound,
        429 => ErrorKind::ModelRateLimit,
        OVERLOADED => ErrorKind::ModelOverloaded,
        300..=399 => ErrorKind::ModelProtocol,
        500..=599 => ErrorKind::ModelServer,
        _ => ErrorKind::ModelRequest,
    }
}

/// The code of the chat completions protocol for the same.
fn is_context_code(error: &Json) -> bool {
    error["code"] == "context_length_exceeded"
}

/// How gateways say that the conversation is too long.
fn is_context_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "prompt is too long",
        "context length",
        "context window",
        "context_length_exceeded",
    ]
    .iter()
    .any(|phrase| text.contains(phrase))
}

fn said_so(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

/// Something to show of a body that is no JSON: its first words, without markup.
fn plain_text(body: &str) -> String {
    let body = body.trim();
    if body.starts_with('<') {
        "an HTML page".to_owned()
    } else {
        excerpt(body, 300)
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    if let Some(ms) = header(headers, "retry-after-ms").and_then(|text| text.trim().parse().ok()) {
        return Some(ms);
    }
    let text = header(headers, "retry-after")?;
    if let Ok(seconds) = text.trim().parse::<u64>() {
        return Some(seconds.saturating_mul(1_000));
    }
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    let wait = date.duration_since(SystemTime::now()).unwrap_or_default();
    u64::try_from(wait.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn error(status: u16, body: &str) -> KernelError {
        from_response(status, &HeaderMap::new(), body)
    }

    #[test]
    fn each_status_has_a_kind_and_only_some_are_retried() {
        use ErrorKind::{
            ModelAuth, ModelNotFound, ModelOverloaded, ModelProtocol, ModelRateLimit, ModelRequest,
            ModelServer,
        };
        for (status, kind, retried) in [
            (302, ModelProtocol, false),
            (400, ModelRequest, false),
            (401, ModelAuth, false),
            (403, ModelAuth, false),
            (404, ModelNotFound, false),
            (408, ModelRequest, true),
            (409, ModelRequest, true),
            (413, ModelRequest, false),
            (425, ModelRequest, true),
            (429, ModelRateLimit, true),
            (500, ModelServer, true),
            (503, ModelServer, true),
            (529, ModelOverloaded, true),
        ] {
            let error = error(status, "");
            assert_eq!(
                (error.kind(), error.is_retryable()),
                (kind, retried),
                "{status}"
            );
            assert_eq!(error.status(), Some(status));
        }
    }

    #[test]
    fn the_gateway_may_forbid_a_retry_and_ask_for_a_wait() {
        let forbidden = from_response(503, &headers(&[("x-should-retry", "false")]), "");
        assert!(!forbidden.is_retryable());
        let seconds = from_response(429, &headers(&[("retry-after", "3")]), "");
        assert_eq!(seconds.retry_after_ms(), Some(3_000));
        let both = from_response(
            429,
            &headers(&[("retry-after", "3"), ("retry-after-ms", "40")]),
            "",
        );
        assert_eq!(both.retry_after_ms(), Some(40));
        let date = httpdate::fmt_http_date(SystemTime::now() + std::time::Duration::from_secs(30));
        let later = from_response(429, &headers(&[("retry-after", &date)]), "").retry_after_ms();
        assert!((25_000..=30_000).contains(&later.unwrap()));
    }

    #[test]
    fn a_body_that_is_no_json_is_told_briefly() {
        assert!(
            error(502, "<html><body>Bad</body></html>")
                .message()
                .ends_with("502: an HTML page")
        );
        assert!(error(500, "oops").message().ends_with("500: oops"));
    }

    #[test]
    fn a_prompt_that_is_too_long_has_its_own_kind() {
        let body =
            r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#;
        assert_eq!(error(400, body).kind(), ErrorKind::ModelContext);
    }

    #[test]
    fn the_accepted_output_limit_is_read_from_the_refusal() {
        let accepted = |body: &str| {
            let accepted = accepted_max_tokens(&error(400, body), 32_000);
            accepted.map(|accepted| (accepted.max_tokens, accepted.is_lasting))
        };
        for (body, limit) in [
            (
                "max_tokens: 32000 > 8192, which is the maximum for glm-4",
                Some((8_192, true)),
            ),
            (
                "max_tokens is too large: 32000. This model supports at most 16384",
                Some((16_384, true)),
            ),
            (
                "input length and max_tokens exceed context limit: 20000 + 32000 > 32768",
                Some((12_768, false)),
            ),
            (
                "This model's maximum context length is 16384 tokens. However, you requested 32010 \
                 tokens (10 in the messages, 32000 in the completion).",
                Some((16_374, false)),
            ),
            ("max_tokens is wrong", None),
            ("temperature 8192", None),
            ("prompt is too long: 250000 tokens > 200000 maximum", None),
        ] {
            assert_eq!(accepted(body), limit, "{body}");
        }
    }
}
