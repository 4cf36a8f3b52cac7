//! The passes, one by one and together.

use serde_json::{Value as Json, json};

use super::*;

fn conversation(messages: &Json) -> Vec<RequestMessage> {
    let read = |message: &Json| RequestMessage {
        role: serde_json::from_value(message["role"].clone()).unwrap(),
        content: serde_json::from_value(message["content"].clone()).unwrap(),
    };
    messages.as_array().unwrap().iter().map(read).collect()
}

fn repaired(messages: &Json) -> Json {
    let mut conversation = conversation(messages);
    repair(&mut conversation);
    let write =
        |message: &RequestMessage| json!({"role": message.role, "content": message.content});
    conversation.iter().map(write).collect()
}

fn user(content: Json) -> Json {
    json!({"role": "user", "content": content})
}

fn assistant(content: Json) -> Json {
    json!({"role": "assistant", "content": content})
}

fn text(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Json {
    json!({"type": "tool_use", "id": id, "name": "n", "input": {}})
}

fn result(id: &str, content: &str) -> Json {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

fn unknown(id: &str) -> Json {
    json!({"type": "tool_result", "tool_use_id": id, "content": UNKNOWN_OUTCOME, "is_error": true})
}

#[test]
fn a_valid_conversation_is_untouched() {
    let messages = json!([
        user(json!([text("go")])),
        assistant(
            json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, call("t1"), call("t2")])
        ),
        user(json!([result("t1", "1"), result("t2", "2"), text("and")])),
        assistant(json!([text("done")])),
    ]);
    assert_eq!(repaired(&messages), messages);
    assert!(repair(&mut conversation(&messages)).is_empty());
}

#[test]
fn results_are_put_in_call_order_and_missing_ones_added() {
    let messages = json!([
        user(json!([text("go")])),
        assistant(json!([call("t1"), call("t2"), call("t3")])),
        user(json!([
            text("next"),
            result("t3", "3"),
            result("t1", "1"),
            result("t1", "again")
        ])),
    ]);
    let expected = user(json!([
        result("t1", "1"),
        unknown("t2"),
        result("t3", "3"),
        text("next")
    ]));
    assert_eq!(repaired(&messages)[2], expected);
}

#[test]
fn a_real_result_takes_the_place_of_one_that_says_that_the_call_waits() {
    let waiting = json!({"__OAK_CLIENT_TOOL__": true}).to_string();
    let as_blocks =
        json!({"type": "tool_result", "tool_use_id": "t2", "content": [text(&waiting)]});
    let messages = json!([
        user(json!([text("go")])),
        assistant(json!([call("t1"), call("t2"), call("t3")])),
        user(json!([
            result("t1", &waiting),
            as_blocks,
            result("t3", &waiting)
        ])),
        assistant(json!([text("I wait.")])),
        user(json!([result("t2", "2"), result("t1", "1"), text("go on")])),
    ]);
    let repaired = repaired(&messages);
    let expected = json!([result("t1", "1"), result("t2", "2"), result("t3", &waiting)]);
    assert_eq!(repaired[2], user(expected));
    assert_eq!(repaired[4], user(json!([text("go on")])));
}

#[test]
fn a_call_at_the_end_is_answered() {
    let messages = json!([user(json!([text("go")])), assistant(json!([call("t1")]))]);
    assert_eq!(repaired(&messages)[2], user(json!([unknown("t1")])));
}

#[test]
fn results_without_a_call_are_left_out() {
    let messages = json!([
        user(json!([result("lost", "x")])),
        user(json!([text("hi")])),
        assistant(json!([text("yes")])),
        user(json!([result("lost", "x")])),
        user(json!([text("more")])),
    ]);
    let expected = json!([
        user(json!([text("hi")])),
        assistant(json!([text("yes")])),
        user(json!([text("more")]))
    ]);
    assert_eq!(repaired(&messages), expected);
}

#[test]
fn a_conversation_does_not_begin_with_results() {
    let messages = json!([
        assistant(json!([call("t1")])),
        user(json!([result("t1", "1")])),
        assistant(json!([call("t2")])),
        user(json!([result("t2", "2"), text("hi")])),
    ]);
    assert_eq!(repaired(&messages), json!([user(json!([text("hi")]))]));
}

#[test]
fn empty_answers_do_not_break_the_alternation() {
    let messages = json!([
        user(json!([text("one")])),
        assistant(json!([text("")])),
        user(json!([text("two"), text("  ")])),
        assistant(json!([text(""), call("t")])),
        user(json!([result("t", "")])),
    ]);
    let expected = json!([
        user(json!([text("one"), text("two")])),
        assistant(json!([call("t")])),
        user(json!([result("t", NO_OUTPUT)])),
    ]);
    assert_eq!(repaired(&messages), expected);
}

#[test]
fn thinking_without_signature_and_answers_of_thinking_alone_are_left_out() {
    let messages = json!([
        user(json!([text("one")])),
        assistant(json!([{"type": "thinking", "thinking": "a", "signature": ""}, text("x")])),
        user(json!([text("two")])),
        assistant(json!([{"type": "thinking", "thinking": "b", "signature": "s"}])),
        user(json!([text("three")])),
    ]);
    let expected = json!([
        user(json!([text("one")])),
        assistant(json!([text("x")])),
        user(json!([text("two"), text("three")])),
    ]);
    assert_eq!(repaired(&messages), expected);
}

#[test]
fn names_that_no_request_may_carry_are_cleaned() {
    for (name, cleaned) in [("no way!", "no_way_"), ("", "unnamed"), ("工具", "__")] {
        let mut odd = call("t");
        odd["name"] = name.into();
        let messages = json!([user(json!([text("go")])), assistant(json!([odd]))]);
        assert_eq!(repaired(&messages)[1]["content"][0]["name"], cleaned);
    }
    let mut long = call("t");
    long["name"] = "n".repeat(200).into();
    let messages = json!([user(json!([text("go")])), assistant(json!([long]))]);
    assert_eq!(
        repaired(&messages)[1]["content"][0]["name"]
            .as_str()
            .unwrap()
            .len(),
        64
    );
}

#[test]
fn too_many_and_too_large_images_become_notes() {
    let image = |data: String| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let mut blocks = vec![image("x".repeat(MAX_IMAGE_BYTES + 1))];
    blocks.extend((0..=MAX_IMAGES).map(|at| image(at.to_string())));
    let repaired = repaired(&json!([
        user(json!(blocks)),
        assistant(json!([text("ok")])),
        user(json!([text("hi")]))
    ]));
    let content = repaired[0]["content"].as_array().unwrap();
    assert!(content[0]["text"].as_str().unwrap().contains("larger"));
    assert!(content[1]["text"].as_str().unwrap().contains("more images"));
    assert_eq!(
        content[2..]
            .iter()
            .filter(|block| block["type"] == "image")
            .count(),
        MAX_IMAGES
    );
}
