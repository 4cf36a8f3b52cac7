//! What `send` is given.

use crate::base::json::type_name;
use crate::base::telemetry::TraceParent;
use crate::engine::{CallReply, ReplyTo};
use crate::error::{KernelError, Result};
use crate::protocol::Json;

use super::config::model::{self, ModelSettings};
use super::config::{AgentConfig, Fields, Limits};

/// What a run begins with, checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message of the user.
    Message(String),
    /// The answer to a call.
    Reply(CallReply),
}

/// The methods that answer a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Respond {
    /// `respondToolUse({toolUseId, output, isError?})`
    ToolUse,
    /// `respondAskUser({toolUseId, answer})`
    AskUser,
}

/// Options of one `send`.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Models in the place of those of the agent.
    pub models: Option<Vec<ModelSettings>>,
    /// Most tokens of an answer, in the place of those of the model.
    pub max_tokens: Option<u32>,
    pub limits: Limits,
    /// The trace that this run belongs to.
    pub trace_parent: Option<TraceParent>,
}

impl SendOptions {
    /// Checks the options. `signal` and `throwOnError` are the business of the binding.
    pub fn parse(options: &Json, config: &AgentConfig) -> Result<Self> {
        let fields = Fields::optional("send options", options)?;
        fields.not_built("runtime", |value| value == "native")?;
        let trace_parent = trace_parent(&fields)?;
        let limits = config.limits.changed_by(&fields)?;
        let max_tokens = model::max_tokens(&fields)?;
        let mut models = models(&fields, config)?;
        if let Some(max_tokens) = max_tokens {
            // Each of several models has its own: the override is for all of them.
            let several = models.is_some() || config.models.len() > 1;
            let changed = several.then(|| models.take().unwrap_or_else(|| config.models.clone()));
            models = changed.map(|mut changed| {
                for model in &mut changed {
                    model.request.max_tokens = max_tokens;
                }
                changed
            });
        }
        match fields.unknown().first() {
            None => Ok(Self {
                models,
                max_tokens,
                limits,
                trace_parent,
            }),
            Some(unknown) => Err(KernelError::invalid(format!(
                "{unknown} is not an option of send"
            ))),
        }
    }
}

fn trace_parent(fields: &Fields<'_>) -> Result<Option<TraceParent>> {
    let Some(text) = fields.string("traceparent")? else {
        return Ok(None);
    };
    let parsed = TraceParent::parse(text);
    let what = "a traceparent header of W3C trace context";
    parsed
        .map(Some)
        .ok_or_else(|| fields.wrong("traceparent", what))
}

/// The models that the options name. An id alone keeps the other settings of the agent's model.
fn models(fields: &Fields<'_>, config: &AgentConfig) -> Result<Option<Vec<ModelSettings>>> {
    match fields.get("model") {
        None => Ok(None),
        Some(Json::String(id)) if !id.trim().is_empty() => {
            let mut model = config.models[0].clone();
            model.request.model.clone_from(id);
            Ok(Some(vec![model]))
        }
        Some(value) => {
            model::models(&fields.path("model"), value, &config.model_defaults).map(Some)
        }
    }
}

impl Input {
    /// A string, `{type: 'message', content, attachments?}`, or `{type: 'tool_result', toolUseId, output,
    /// isError?}`. Empty text is refused: the gateway would refuse it, and every later request with it.
    pub fn parse(input: &Json) -> Result<Self> {
        let text = match input {
            Json::String(text) => text.as_str(),
            Json::Object(fields) => match fields.get("type").and_then(Json::as_str) {
                Some("message") => message_text(input)?,
                Some("tool_result") => {
                    return reply("send", input, "output", ReplyTo::Any).map(Self::Reply);
                }
                _ => return Err(wrong_shape("an object with another type")),
            },
            other => return Err(wrong_shape(type_name(other))),
        };
        if text.trim().is_empty() {
            return Err(KernelError::invalid(
                "send: the message is empty; give it some text",
            ));
        }
        Ok(Self::Message(text.to_owned()))
    }
}

impl Respond {
    /// Checks what the method was given.
    pub fn parse(self, answer: &Json) -> Result<CallReply> {
        match self {
            Self::ToolUse => reply("respondToolUse", answer, "output", ReplyTo::Any),
            Self::AskUser => reply("respondAskUser", answer, "answer", ReplyTo::Question),
        }
    }
}

/// The answer in an object; `value` names the field that holds it. A missing one is an answer too:
/// JavaScript leaves out what is undefined.
fn reply(call: &str, answer: &Json, value: &str, to: ReplyTo) -> Result<CallReply> {
    if !answer.is_object() {
        let found = type_name(answer);
        return Err(KernelError::invalid(format!(
            "{call}: give an object {{toolUseId, {value}}}, not {found}"
        )));
    }
    let id = answer["toolUseId"].as_str().filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| {
        KernelError::invalid(format!("{call}: toolUseId must be a non-empty string"))
    })?;
    let is_error = match &answer["isError"] {
        Json::Null => false,
        Json::Bool(is_error) => *is_error,
        _ => {
            let message = format!("{call}: isError must be true or false");
            return Err(KernelError::invalid(message));
        }
    };
    Ok(CallReply {
        tool_use_id: id.to_owned(),
        to,
        output: answer[value].clone(),
        is_error,
    })
}

fn message_text(input: &Json) -> Result<&str> {
    let has_attachments = match &input["attachments"] {
        Json::Null => false,
        Json::Array(list) => !list.is_empty(),
        _ => return Err(KernelError::invalid("send: attachments must be an array")),
    };
    if has_attachments {
        return Err(KernelError::invalid(
            "send: attachments need a storage, and config.storage is not set (attachment storage \
             is not built yet in this version)",
        ));
    }
    input["content"]
        .as_str()
        .ok_or_else(|| KernelError::invalid("send: content of a message must be a string"))
}

fn wrong_shape(found: &str) -> KernelError {
    KernelError::invalid(format!(
        "send: the input must be a string, {{type: 'message', content}} or {{type: 'tool_result', \
         toolUseId, output}}, not {found}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn text_and_messages_are_accepted() {
        for input in [
            json!("hi"),
            json!({"type": "message", "content": "hi", "attachments": []}),
        ] {
            assert_eq!(Input::parse(&input).unwrap(), Input::Message("hi".into()));
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_field() {
        for (input, words) in [
            (json!(""), "empty"),
            (json!("  \n"), "empty"),
            (json!(3), "a number"),
            (json!(null), "null"),
            (json!({"type": "other"}), "another type"),
            (json!({"type": "message"}), "content"),
            (
                json!({"type": "message", "content": "x", "attachments": 1}),
                "attachments",
            ),
            (
                json!({"type": "message", "content": "x", "attachments": [{}]}),
                "storage",
            ),
            (json!({"type": "tool_result"}), "toolUseId"),
        ] {
            let error = Input::parse(&input).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
            assert!(error.message().contains(words), "{error}");
        }
    }

    #[test]
    fn answers_are_read_from_every_method() {
        let reply = |to, output: Json, is_error| CallReply {
            tool_use_id: "t".to_owned(),
            to,
            output,
            is_error,
        };
        let sent = json!({"type": "tool_result", "toolUseId": "t", "output": [1], "isError": true});
        let expected = reply(ReplyTo::Any, json!([1]), true);
        assert_eq!(Input::parse(&sent).unwrap(), Input::Reply(expected.clone()));
        assert_eq!(Respond::ToolUse.parse(&sent).unwrap(), expected);
        let nothing = json!({"toolUseId": "t", "isError": null});
        assert_eq!(
            Respond::ToolUse.parse(&nothing).unwrap(),
            reply(ReplyTo::Any, Json::Null, false)
        );
        let answer = json!({"toolUseId": "t", "answer": "Red"});
        assert_eq!(
            Respond::AskUser.parse(&answer).unwrap(),
            reply(ReplyTo::Question, json!("Red"), false)
        );
    }

    #[test]
    fn answers_of_a_wrong_shape_are_refused_with_the_field() {
        for (answer, words) in [
            (json!(null), "respondToolUse: give an object"),
            (json!("t"), "respondToolUse: give an object"),
            (json!({"output": 1}), "toolUseId"),
            (json!({"toolUseId": ""}), "toolUseId"),
            (json!({"toolUseId": 5}), "toolUseId"),
            (json!({"toolUseId": "t", "isError": "no"}), "isError"),
        ] {
            let error = Respond::ToolUse.parse(&answer).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
            assert!(error.message().contains(words), "{error}");
        }
    }
}
