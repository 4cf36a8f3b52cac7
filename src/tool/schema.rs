//! Checking a call's input against the tool's JSON Schema.

use std::fmt;

use jsonschema::Validator;

use crate::base::json::type_name;
use crate::base::text::excerpt;
use crate::error::{KernelError, Result};
use crate::protocol::Json;

/// Keywords whose value is a schema.
const HOLDS_SCHEMA: [&str; 9] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedProperties",
];
/// Faults that are told to the model.
const FAULTS_TOLD: usize = 8;

/// A compiled schema.
pub struct SchemaCheck(Validator);

impl SchemaCheck {
    /// Compiles a schema, which must describe an object. References outside the schema are refused:
    /// nothing is fetched. `path` names the schema in the error.
    pub fn compile(schema: &Json, path: &str) -> Result<Self> {
        describes_object(schema, path)?;
        let validator = jsonschema::validator_for(schema).map_err(|error| {
            KernelError::invalid(format!("{path} is not a valid JSON Schema: {error}"))
        })?;
        Ok(Self(validator))
    }

    /// Compiles a schema that somebody else wrote; none when it cannot be checked here.
    pub fn lenient(schema: &Json) -> Option<Self> {
        jsonschema::validator_for(schema).ok().map(Self)
    }

    /// What is wrong with an input, in words that the model can act on.
    pub fn faults(&self, input: &Json) -> Option<String> {
        let mut errors = self.0.iter_errors(input).map(|error| {
            let at = error.instance_path().to_string();
            let place = if at.is_empty() {
                "input"
            } else {
                at.trim_start_matches('/')
            };
            format!(
                "- {}: {}",
                excerpt(place, 120),
                excerpt(&error.to_string(), 300)
            )
        });
        let told: Vec<_> = errors.by_ref().take(FAULTS_TOLD).collect();
        let more = errors.count();
        let rest = if more == 0 {
            String::new()
        } else {
            format!("\n- and {more} more")
        };
        (!told.is_empty()).then(|| told.join("\n") + &rest)
    }
}

/// Refuses a schema that does not describe an object, or whose fields stand beside its keywords.
pub fn describes_object(schema: &Json, path: &str) -> Result<()> {
    let Some(fields) = schema.as_object() else {
        let found = type_name(schema);
        return Err(KernelError::invalid(format!(
            "{path} must be a JSON Schema object, not {found}"
        )));
    };
    if fields.get("type").is_some_and(|kind| kind != "object") {
        return Err(KernelError::invalid(format!(
            "{path}.type must be \"object\": the input of a tool is an object"
        )));
    }
    match fields.iter().find(|(key, value)| is_stray(key, value)) {
        Some((key, _)) if !fields.contains_key("properties") => {
            let key = excerpt(key, 80);
            Err(KernelError::invalid(format!(
                "{path}.{key} is no keyword of JSON Schema: describe the fields of the input in {path}.properties"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether this is the schema of a field where only keywords may stand. Without this check the model
/// would be told of no fields at all: JSON Schema ignores what it does not know.
fn is_stray(key: &str, value: &Json) -> bool {
    !key.starts_with("x-") && !HOLDS_SCHEMA.contains(&key) && value.get("type").is_some()
}

impl fmt::Debug for SchemaCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemaCheck")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Json) -> SchemaCheck {
        SchemaCheck::compile(schema, "config.tools[0].parameters").unwrap()
    }

    #[test]
    fn fields_beside_keywords_are_refused() {
        let refused = |schema: Json| {
            let checked = describes_object(&schema, "config.tools[0].parameters");
            checked.map_err(|error| error.message().to_owned())
        };
        for stray in [
            json!({"city": {"type": "string"}}),
            json!({"type": "object", "city": {"type": "string"}}),
        ] {
            let message = refused(stray).unwrap_err();
            assert!(message.starts_with("config.tools[0].parameters.city is no keyword"));
        }
        for fine in [
            json!({}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"properties": {"type": {"type": "string"}}, "$defs": {"type": {"type": "string"}}}),
        ] {
            assert_eq!(refused(fine), Ok(()));
        }
    }

    #[test]
    fn faults_name_the_place_and_the_rule() {
        let check = check(&json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
            "required": ["city"],
        }));
        assert_eq!(check.faults(&json!({"city": "Beijing", "days": 2})), None);
        let faults = check.faults(&json!({"days": 0})).unwrap();
        assert!(
            faults.contains("- days: 0 is less than the minimum of 1"),
            "{faults}"
        );
        assert!(
            faults.contains("- input: \"city\" is a required property"),
            "{faults}"
        );
    }

    #[test]
    fn a_schema_that_describes_no_object_is_refused() {
        for schema in [
            json!(true),
            json!({"type": "string"}),
            json!({"type": 3}),
            json!({"required": 1}),
        ] {
            let error = SchemaCheck::compile(&schema, "config.tools[0].parameters").unwrap_err();
            assert!(
                error.message().contains("config.tools[0].parameters"),
                "{error}"
            );
        }
    }

    #[test]
    fn references_that_go_in_circles_end() {
        let tree = json!({
            "type": "object",
            "properties": {"next": {"$ref": "#"}, "name": {"type": "string"}},
        });
        let check = SchemaCheck::lenient(&tree).unwrap();
        assert_eq!(
            check.faults(&json!({"next": {"next": {"name": "a"}}})),
            None
        );
        assert!(
            check
                .faults(&json!({"next": {"next": {"name": 5}}}))
                .is_some()
        );
        let circle = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        });
        let faults = SchemaCheck::lenient(&circle).and_then(|check| check.faults(&json!({"a": 5})));
        assert_eq!(faults, None);
    }

    #[test]
    fn nothing_is_fetched() {
        let schema =
            json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}});
        assert!(SchemaCheck::compile(&schema, "s").is_err());
    }
}
