//! What a server says of its tools.

use std::collections::HashSet;

use crate::base::json::fits;
use crate::base::text::excerpt;
use crate::protocol::{Json, JsonMap};

/// Most pages of a list.
const MAX_PAGES: usize = 100;
/// Most tools of a server.
const MAX_TOOLS: usize = 1_000;
/// Longest name of a tool, in bytes.
const NAME_LENGTH: usize = 1_024;
/// Most characters of a description.
const DESCRIPTION_LENGTH: usize = 16 * 1024;
/// Most bytes of a schema, as JSON.
const SCHEMA_BYTES: usize = 256 * 1024;

/// The pages of a list, as they come.
#[derive(Debug, Default)]
pub struct Pages {
    tools: Vec<Json>,
    cursors: HashSet<String>,
    cursor: Option<String>,
    count: usize,
}

impl Pages {
    /// Where the next page begins; none for the first one.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Adds a page; tells whether another one follows. A cursor that was seen before ends the list.
    pub fn add(&mut self, mut page: Json) -> bool {
        if let Some(Json::Array(tools)) = page.get_mut("tools").map(Json::take) {
            let room = MAX_TOOLS - self.tools.len();
            self.tools.extend(tools.into_iter().take(room));
        }
        self.count += 1;
        let cursor = page.get("nextCursor").and_then(Json::as_str);
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
            return false;
        };
        self.cursor = Some(cursor.to_owned());
        let is_new = self.cursors.insert(cursor.to_owned());
        is_new && self.count < MAX_PAGES && self.tools.len() < MAX_TOOLS
    }

    pub fn into_tools(self) -> Vec<Json> {
        self.tools
    }
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub tools: Vec<ListedTool>,
    /// What the model should know about them.
    pub instructions: Option<String>,
}

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedTool {
    pub name: String,
    pub description: String,
    /// As it came, with its type spelled out.
    pub schema: Json,
    pub read_only: bool,
    pub idempotent: bool,
}

impl Listing {
    /// Leaves out what is no tool that the model could be told of.
    pub fn new(tools: Vec<Json>, instructions: Option<String>) -> Self {
        let mut names = HashSet::new();
        let tools = tools
            .into_iter()
            .filter_map(ListedTool::read)
            .filter(|tool| names.insert(tool.name.clone()))
            .collect();
        Self {
            tools,
            instructions,
        }
    }
}

impl ListedTool {
    fn read(tool: Json) -> Option<Self> {
        let Json::Object(mut fields) = tool else {
            return None;
        };
        let name = fields.get("name")?.as_str()?.to_owned();
        if name.trim().is_empty() || name.len() > NAME_LENGTH {
            return None;
        }
        let schema = schema(fields.swap_remove("inputSchema"))?;
        let hint = |name| {
            let hint = fields.get("annotations").and_then(|hints| hints.get(name));
            hint == Some(&Json::Bool(true))
        };
        let (read_only, idempotent) = (hint("readOnlyHint"), hint("idempotentHint"));
        let text = |key| fields.get(key).and_then(Json::as_str);
        let description = text("description").or_else(|| text("title"));
        Some(Self {
            description: excerpt(description.unwrap_or_default(), DESCRIPTION_LENGTH),
            name,
            schema,
            read_only,
            idempotent,
        })
    }
}

/// The schema, unless a gateway would refuse every request because of it.
fn schema(schema: Option<Json>) -> Option<Json> {
    let mut fields = match schema {
        None | Some(Json::Null) => JsonMap::new(),
        Some(Json::Object(fields)) => fields,
        Some(_) => return None,
    };
    let kind = fields.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        return None;
    }
    let schema = Json::Object(fields);
    fits(&schema, SCHEMA_BYTES).then_some(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_bad_tool_does_not_cost_the_others() {
        let object = json!({"type": "object"});
        let huge = json!({"type": "object", "description": "x".repeat(SCHEMA_BYTES)});
        let listing = Listing::new(
            vec![
                json!({"name": "good", "description": "d", "inputSchema": object}),
                json!(5),
                json!({"description": "no name", "inputSchema": object}),
                json!({"name": "  ", "inputSchema": object}),
                json!({"name": 7, "inputSchema": object}),
                json!({"name": "array", "inputSchema": []}),
                json!({"name": "string", "inputSchema": {"type": "string"}}),
                json!({"name": "huge", "inputSchema": huge}),
                json!({"name": "good", "description": "again", "inputSchema": object}),
                json!({"name": "bare", "title": "Bare", "description": 5, "annotations": "x"}),
            ],
            None,
        );
        let names: Vec<_> = listing.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good", "bare"]);
        assert_eq!(listing.tools[0].description, "d");
        assert_eq!(listing.tools[1].schema, object);
    }

    #[test]
    fn only_true_is_a_hint() {
        let read = |annotations: Json| {
            ListedTool::read(json!({"name": "a", "annotations": annotations})).unwrap()
        };
        let tool = read(json!({"readOnlyHint": true, "idempotentHint": true}));
        assert!(tool.read_only && tool.idempotent);
        for other in [json!("true"), json!(1), json!(null), json!(false)] {
            let tool = read(json!({"readOnlyHint": other, "idempotentHint": other}));
            assert!(!tool.read_only && !tool.idempotent);
        }
    }

    #[test]
    fn schemas_pass_unchanged() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
            "city": {"type": "string"},
        });
        let tool = ListedTool::read(json!({"name": "a", "inputSchema": schema})).unwrap();
        assert_eq!(tool.schema, schema);
    }

    #[test]
    fn a_cursor_that_repeats_ends_the_list() {
        let mut pages = Pages::default();
        assert!(pages.add(json!({"tools": [1], "nextCursor": "a"})));
        assert!(pages.add(json!({"tools": [2], "nextCursor": "b"})));
        assert!(!pages.add(json!({"tools": [3], "nextCursor": "a"})));
        assert_eq!(pages.into_tools(), [1, 2, 3]);
    }

    #[test]
    fn pages_and_tools_are_bounded() {
        let mut pages = Pages::default();
        let count = (0..10 * MAX_PAGES)
            .take_while(|at| pages.add(json!({"tools": [at], "nextCursor": at.to_string()})))
            .count();
        assert_eq!(count, MAX_PAGES - 1);
        let mut pages = Pages::default();
        assert!(!pages.add(json!({"tools": vec![0; 5_000], "nextCursor": "a"})));
        assert_eq!(pages.into_tools().len(), MAX_TOOLS);
    }
}
