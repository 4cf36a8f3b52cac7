//! Questions of the model to the user.

use serde::Serialize;
use ts_rs::TS;

use super::Json;

/// The tool that asks the user.
pub const ASK_USER: &str = "AskUserQuestion";
/// Stands for a header that the model did not give.
const HEADER: &str = "Agent asks a question";

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AskUserItem")]
pub struct Question {
    pub question: String,
    /// A label of at most 12 characters.
    pub header: String,
    pub options: Vec<Choice>,
    /// Whether several options may be chosen.
    pub multi_select: bool,
}

/// One answer that the model suggests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AskUserOption", optional_fields)]
pub struct Choice {
    pub label: String,
    pub description: String,
    /// Text that shows what the option would mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// The questions in the input of a call. Older kernels had one question with texts as options.
pub fn questions(input: &Json) -> Vec<Question> {
    match input["questions"].as_array() {
        Some(list) => list.iter().map(question).collect(),
        None => vec![question(input)],
    }
}

fn question(fields: &Json) -> Question {
    let options = fields["options"].as_array();
    Question {
        question: text(&fields["question"]),
        header: fields["header"].as_str().unwrap_or(HEADER).to_owned(),
        options: options.into_iter().flatten().map(choice).collect(),
        multi_select: fields["multiSelect"] == true,
    }
}

fn choice(option: &Json) -> Choice {
    let label = option
        .as_str()
        .map_or_else(|| text(&option["label"]), str::to_owned);
    Choice {
        label,
        description: text(&option["description"]),
        preview: option["preview"].as_str().map(str::to_owned),
    }
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_input_are_read() {
        let new = json!({"questions": [{"question": "Which?", "header": "Colour", "multiSelect": true,
            "options": [{"label": "Red", "description": "warm", "preview": "#f00"}]}]});
        let read = questions(&new);
        assert_eq!(serde_json::to_value(&read).unwrap(), new["questions"]);
        let old = questions(&json!({"question": "Which?", "options": ["Red"]}));
        assert_eq!(old[0].header, HEADER);
        assert_eq!(old[0].options[0].label, "Red");
        assert_eq!(questions(&json!("nonsense"))[0].question, "");
    }
}
