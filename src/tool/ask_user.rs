//! The tool by which the model asks the user.

use async_trait::async_trait;
use serde_json::json;

use super::{Origin, SchemaCheck, Tool, ToolContext, ToolOutput, ToolSpec};
use crate::error::Result;
use crate::protocol::{ASK_USER, Json, JsonMap, ToolKind, questions};

/// What the model is told beside the description.
pub const HINT: &str = "When the request is ambiguous, or a decision is the user's to make, ask them \
    with the AskUserQuestion tool instead of guessing.";

const DESCRIPTION: &str = "Asks the user one to four questions, each with two to four options, and \
    waits for the answers. The user may also answer in their own words. Use it when you need a \
    decision, a preference or a missing detail before you can go on.";
/// The answer to a question that has no text.
const UNNAMED: &str = "answer";

/// The tool `AskUserQuestion`. Its calls are answered by the program that reads the stream.
#[derive(Debug)]
pub struct AskUser {
    spec: ToolSpec,
}

impl AskUser {
    pub fn new() -> Result<Self> {
        let schema = schema();
        let check = SchemaCheck::compile(&schema, "config.askUser")?;
        Ok(Self {
            spec: ToolSpec {
                name: ASK_USER.into(),
                description: DESCRIPTION.to_owned(),
                schema,
                source: "config.askUser".to_owned(),
                origin: Origin::User,
                kind: ToolKind::Other,
                read_only: true,
                idempotent: false,
                timeout: None,
                check: Some(check),
            },
        })
    }
}

#[async_trait]
impl Tool for AskUser {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _input: Json, _ctx: ToolContext) -> Result<ToolOutput> {
        Ok(ToolOutput::error("The user was not asked."))
    }
}

fn schema() -> Json {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": {
                    "type": "object",
                    "properties": {
                        "question": text("The whole question."),
                        "header": {
                            "type": "string",
                            "maxLength": 12,
                            "description": "A label of at most 12 characters.",
                        },
                        "options": {
                            "type": "array",
                            "minItems": 2,
                            "maxItems": 4,
                            "items": {
                                "type": "object",
                                "properties": {
                                    "label": text("What the user chooses, in a few words."),
                                    "description": text("What choosing it means."),
                                    "preview": text("Text that shows what it would look like."),
                                },
                                "required": ["label", "description"],
                            },
                        },
                        "multiSelect": {
                            "type": "boolean",
                            "description": "Whether several options may be chosen. Default: false.",
                        },
                    },
                    "required": ["question", "header", "options"],
                },
            },
        },
        "required": ["questions"],
    })
}

/// The output of a call from what a program answered: `{answers}` by question, `{answer}` or a text for
/// the first question, anything else as JSON for the first question.
pub fn answered(input: &Json, answer: &Json) -> Json {
    let answers = match answer {
        Json::Object(fields) if fields.get("answers").is_some_and(Json::is_object) => {
            named(&fields["answers"])
        }
        Json::Object(fields) if fields.get("answer").is_some_and(Json::is_string) => {
            single(input, &fields["answer"])
        }
        other => single(input, other),
    };
    json!({ "answers": answers })
}

fn named(answers: &Json) -> JsonMap {
    let answers = answers.as_object().into_iter().flatten();
    answers
        .map(|(question, answer)| (question.clone(), text(answer).into()))
        .collect()
}

fn single(input: &Json, answer: &Json) -> JsonMap {
    let first = questions(input).into_iter().next();
    let question = first
        .map(|first| first.question)
        .filter(|question| !question.is_empty());
    let question = question.unwrap_or_else(|| UNNAMED.to_owned());
    JsonMap::from_iter([(question, text(answer).into())])
}

/// An answer as one text.
fn text(answer: &Json) -> String {
    match answer {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(count: usize) -> Json {
        let question = |at| {
            json!({"question": format!("Q{at}?"), "header": "Colour", "multiSelect": false,
                "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]})
        };
        json!({"questions": (0..count).map(question).collect::<Vec<_>>()})
    }

    #[test]
    fn inputs_outside_the_limits_are_refused() {
        let tool = AskUser::new().unwrap();
        let check = tool.spec.check.as_ref().unwrap();
        for count in [1, 4] {
            assert_eq!(check.faults(&input(count)), None);
        }
        let with = |change: fn(&mut Json)| {
            let mut input = input(1);
            change(&mut input["questions"][0]);
            input
        };
        for faulty in [
            input(0),
            input(5),
            json!({}),
            with(|question| question["header"] = "thirteen char".into()),
            with(|question| question["options"] = json!([{"label": "a", "description": "b"}])),
            with(|question| question["multiSelect"] = "yes".into()),
            with(|question| question["question"] = Json::Null),
        ] {
            assert!(check.faults(&faulty).is_some(), "{faulty}");
        }
    }

    #[test]
    fn every_form_of_answer_is_understood() {
        let two = input(2);
        for (answer, expected) in [
            (
                json!({"answers": {"Q0?": "Red", "Q1?": ["Red", "Blue"]}}),
                json!({"Q0?": "Red", "Q1?": "Red, Blue"}),
            ),
            (
                json!({"answers": {"Q0?": null, "other": 5}}),
                json!({"Q0?": "", "other": "5"}),
            ),
            (json!({"answer": "Blue"}), json!({"Q0?": "Blue"})),
            (json!("Blue"), json!({"Q0?": "Blue"})),
            (json!({"picked": 2}), json!({"Q0?": r#"{"picked":2}"#})),
            (json!(null), json!({"Q0?": ""})),
        ] {
            assert_eq!(
                answered(&two, &answer),
                json!({"answers": expected}),
                "{answer}"
            );
        }
        assert_eq!(
            answered(&json!({}), &json!("x")),
            json!({"answers": {"answer": "x"}})
        );
    }
}
