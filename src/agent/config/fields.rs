//! Reading configuration objects: every refusal names the field and what it must be.
//!
//! Values that JSON cannot say arrive as marks that the binding made: functions, instances of
//! classes, numbers that are not finite.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::LazyLock;

use crate::agent::host::FunctionId;
use crate::base::json::type_name;
use crate::error::{KernelError, Result};
use crate::protocol::{Json, JsonMap};

/// Key of a mark; no configuration has a key that begins with NUL.
const MARK: &str = "\0oak";

/// The fields of one object, with the path to it.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    path: String,
    map: &'a JsonMap,
    seen: Rc<RefCell<Seen<'a>>>,
}

/// What was asked for, of an object and of the objects in it: by path, its fields and the known keys.
type Seen<'a> = BTreeMap<String, (&'a JsonMap, BTreeSet<&'a str>)>;

static NO_FIELDS: LazyLock<JsonMap> = LazyLock::new(JsonMap::new);

impl<'a> Fields<'a> {
    /// The fields of a value that must be an object.
    pub fn of(path: impl Into<String>, value: &'a Json) -> Result<Self> {
        Self::within(path.into(), value, Rc::default())
    }

    /// The same for a value that may be missing.
    pub fn optional(path: impl Into<String>, value: &'a Json) -> Result<Self> {
        if value.is_null() {
            return Ok(Self {
                path: path.into(),
                map: &NO_FIELDS,
                seen: Rc::default(),
            });
        }
        Self::of(path, value)
    }

    fn within(path: String, value: &'a Json, seen: Rc<RefCell<Seen<'a>>>) -> Result<Self> {
        match value.as_object().filter(|_| mark(value).is_none()) {
            Some(map) => {
                seen.borrow_mut()
                    .entry(path.clone())
                    .or_insert_with(|| (map, BTreeSet::new()));
                Ok(Self { path, map, seen })
            }
            None => Err(wrong(&path, "an object", value)),
        }
    }

    /// The fields of an element of an array in this object.
    pub fn element(&self, path: String, value: &'a Json) -> Result<Self> {
        Self::within(path, value, self.seen.clone())
    }

    /// The path of a field.
    pub fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    /// A field that is neither missing nor null.
    pub fn get(&self, key: &'a str) -> Option<&'a Json> {
        self.know(&[key]);
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Says that keys have a meaning, without reading them.
    pub fn know(&self, keys: &[&'a str]) {
        if let Some((_, known)) = self.seen.borrow_mut().get_mut(&self.path) {
            known.extend(keys);
        }
    }

    /// Keys of this object that nobody asked for.
    pub fn unknown(&self) -> Vec<String> {
        self.seen
            .borrow()
            .get(&self.path)
            .map(|seen| unknown(&self.path, seen))
            .unwrap_or_default()
    }

    /// The same for this object and all objects in it that were read.
    pub fn all_unknown(&self) -> Vec<String> {
        self.seen
            .borrow()
            .iter()
            .flat_map(|(path, seen)| unknown(path, seen))
            .collect()
    }

    pub fn string(&self, key: &'a str) -> Result<Option<&'a str>> {
        self.read(key, "a string", Json::as_str)
    }

    /// A string with text in it.
    pub fn text(&self, key: &'a str) -> Result<Option<&'a str>> {
        self.read(key, "a non-empty string", |value| {
            value.as_str().filter(|text| !text.trim().is_empty())
        })
    }

    pub fn boolean(&self, key: &'a str) -> Result<Option<bool>> {
        self.read(key, "true or false", Json::as_bool)
    }

    pub fn integer(&self, key: &'a str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
        let what = format!("a whole number from {} to {}", range.start(), range.end());
        self.read(key, &what, |value| {
            whole(value).filter(|number| range.contains(number))
        })
    }

    pub fn number(&self, key: &'a str, range: RangeInclusive<f64>) -> Result<Option<f64>> {
        let what = format!("a number from {} to {}", range.start(), range.end());
        self.read(key, &what, |value| {
            value.as_f64().filter(|number| range.contains(number))
        })
    }

    /// One of a list of words.
    pub fn choice(&self, key: &'a str, words: &[&str]) -> Result<Option<&'a str>> {
        let what = format!("one of {}", words.join(", "));
        self.read(key, &what, |value| {
            value.as_str().filter(|word| words.contains(word))
        })
    }

    pub fn array(&self, key: &'a str) -> Result<Option<&'a Vec<Json>>> {
        self.read(key, "an array", Json::as_array)
    }

    pub fn function(&self, key: &'a str) -> Result<Option<FunctionId>> {
        self.read(key, "a function", as_function)
    }

    pub fn object(&self, key: &'a str) -> Result<Option<Fields<'a>>> {
        self.get(key)
            .map(|value| Self::within(self.path(key), value, self.seen.clone()))
            .transpose()
    }

    /// Refuses a field whose part of the kernel does not exist yet, unless its value switches
    /// nothing on.
    pub fn not_built(&self, key: &'a str, is_off: impl FnOnce(&Json) -> bool) -> Result<()> {
        match self.get(key) {
            Some(value) if !is_off(value) => Err(KernelError::not_built(self.path(key))),
            _ => Ok(()),
        }
    }

    /// An error about a field.
    pub fn wrong(&self, key: &str, what: &str) -> KernelError {
        wrong(
            &self.path(key),
            what,
            self.map.get(key).unwrap_or(&Json::Null),
        )
    }

    fn read<T>(
        &self,
        key: &'a str,
        what: &str,
        as_type: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        as_type(value)
            .map(Some)
            .ok_or_else(|| wrong(&self.path(key), what, value))
    }
}

fn unknown(path: &str, (map, known): &(&JsonMap, BTreeSet<&str>)) -> Vec<String> {
    let keys = map.keys().filter(|key| !known.contains(key.as_str()));
    keys.map(|key| format!("{path}.{key}")).collect()
}

/// Names of the functions that a value has, as its own or from its class.
pub fn methods(value: &Json) -> Vec<&str> {
    let own = value.as_object().into_iter().flatten();
    let own = own
        .filter(|(_, value)| as_function(value).is_some())
        .map(|(name, _)| name.as_str());
    let inherited = mark(value)
        .and_then(|mark| mark.get("methods")?.as_array())
        .into_iter()
        .flatten();
    own.chain(inherited.filter_map(Json::as_str)).collect()
}

/// Whether a value is an object or an instance of a class, and no function.
pub fn is_object(value: &Json) -> bool {
    value.is_object()
        && mark(value).is_none_or(|mark| mark.get("type") == Some(&Json::from("instance")))
}

/// Refuses a value that holds, at any depth, something that JSON cannot say.
pub fn pure_json(path: &str, value: &Json) -> Result<()> {
    if mark(value).is_some() {
        return Err(wrong(path, "a JSON value", value));
    }
    match value {
        Json::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| pure_json(&format!("{path}[{at}]"), item)),
        Json::Object(fields) => fields
            .iter()
            .try_for_each(|(key, field)| pure_json(&format!("{path}.{key}"), field)),
        _ => Ok(()),
    }
}

pub fn as_function(value: &Json) -> Option<FunctionId> {
    let mark = mark(value).filter(|mark| mark.get("type") == Some(&Json::from("function")))?;
    mark.get("index")?
        .as_u64()
        .and_then(|index| u32::try_from(index).ok())
        .map(FunctionId)
}

/// A whole number; `3.0` is one, as JavaScript knows no difference.
fn whole(value: &Json) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value
            .as_f64()
            .filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        (number < 9e15).then_some(number as u64)
    })
}

fn mark(value: &Json) -> Option<&JsonMap> {
    value.get(MARK)?.as_object()
}

/// An error about the value at a path.
pub fn wrong(path: &str, what: &str, value: &Json) -> KernelError {
    match describe(value).as_str() {
        "missing" => KernelError::invalid(format!("{path} is missing: it must be {what}")),
        found => KernelError::invalid(format!("{path} must be {what}, not {found}")),
    }
}

/// What a value is, shortly and without its content unless it is a short word.
fn describe(value: &Json) -> String {
    if let Some(mark) = mark(value) {
        return mark
            .get("what")
            .and_then(Json::as_str)
            .unwrap_or("something else")
            .to_owned();
    }
    match value {
        Json::String(text) if text.is_empty() => "an empty string".to_owned(),
        // Short words are names, of modes for one; longer texts may hold anything.
        Json::String(text)
            if text.len() <= 24
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
                && !text.chars().any(|c| c.is_ascii_digit()) =>
        {
            format!("'{text}'")
        }
        Json::Null => "missing".to_owned(),
        Json::Number(number) => number.to_string(),
        Json::Bool(value) => value.to_string(),
        other => type_name(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_name_the_path_the_rule_and_what_was_found() {
        let value = json!({
            "text": "", "count": 1.5, "big": 9, "mode": "loud", "call": "x",
            "nan": {MARK: {"type": "number", "what": "NaN"}},
        });
        let fields = Fields::of("config", &value).unwrap();
        for (error, message) in [
            (
                fields.text("text").map(drop),
                "config.text must be a non-empty string, not an empty string",
            ),
            (
                fields.integer("count", 0..=5).map(drop),
                "config.count must be a whole number from 0 to 5, not 1.5",
            ),
            (
                fields.integer("big", 0..=5).map(drop),
                "config.big must be a whole number from 0 to 5, not 9",
            ),
            (
                fields.number("nan", 0.0..=1.0).map(drop),
                "config.nan must be a number from 0 to 1, not NaN",
            ),
            (
                fields.choice("mode", &["a", "b"]).map(drop),
                "config.mode must be one of a, b, not 'loud'",
            ),
            (
                fields.function("call").map(drop),
                "config.call must be a function, not 'x'",
            ),
            (
                fields.object("text").map(drop),
                "config.text must be an object, not an empty string",
            ),
        ] {
            assert_eq!(error.unwrap_err().message(), message);
        }
    }

    #[test]
    fn missing_and_null_are_the_same_and_unknown_keys_are_listed() {
        let value = json!({"a": null, "typo": 1, "inner": {"b": 1, "tipo": 2}});
        let fields = Fields::of("config", &value).unwrap();
        assert_eq!(fields.string("a").unwrap(), None);
        assert_eq!(fields.string("b").unwrap(), None);
        let inner = fields.object("inner").unwrap().unwrap();
        inner.know(&["b"]);
        assert_eq!(fields.unknown(), ["config.typo"]);
        assert_eq!(fields.all_unknown(), ["config.typo", "config.inner.tipo"]);
    }

    #[test]
    fn functions_and_methods_are_found_through_their_marks() {
        let function = json!({MARK: {"type": "function", "what": "a function", "index": 4}});
        let instance = json!({MARK: {"type": "instance", "what": "an instance of Store", "methods": ["load"]}});
        assert_eq!(as_function(&function), Some(FunctionId(4)));
        assert_eq!(methods(&json!({"append": function, "x": 1})), ["append"]);
        assert_eq!(methods(&instance), ["load"]);
        assert!(is_object(&instance) && !is_object(&function));
    }
}
