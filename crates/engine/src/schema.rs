//! JSON Schemas that scripts give: what can be enforced, and enforcing it.

use fanfold_types::{ErrorCode, WorkflowError};
use jsonschema::PatternOptions;
use serde_json::Value;

/// How many violations are told.
const MAX_VIOLATIONS: usize = 10;

/// A JSON Schema (2020-12 unless it names another draft) with an object at its root, ready to check values.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Reads a schema.
    ///
    /// # Errors
    /// `UNSUPPORTED_SCHEMA` for what cannot be enforced: a root that is not an object, references that leave
    /// the schema, patterns that cannot be matched in linear time.
    pub fn new(schema: &Value) -> Result<Self, WorkflowError> {
        let Some(fields) = schema.as_object() else {
            return Err(unsupported("schema must be a JSON Schema object", "schema"));
        };
        if fields.get("type").and_then(Value::as_str) != Some("object") {
            let message = "schema must describe an object: give its root {type: \"object\", …} and put other \
                           values in a property";
            return Err(unsupported(message, "schema.type"));
        }
        if let Some(reference) = remote_reference(schema) {
            let message = format!("schema must not refer to other documents, got {reference:?}; use \"#/$defs/…\"");
            return Err(unsupported(&message, "schema"));
        }
        jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .build(schema)
            .map(Self)
            .map_err(|error| unsupported(&format!("schema cannot be enforced: {error}"), "schema"))
    }

    /// What is wrong with a value, each violation with the JSON pointer of its place; empty if nothing is.
    pub fn violations(&self, value: &Value) -> Vec<String> {
        let shown = self.0.iter_errors(value).take(MAX_VIOLATIONS);
        shown.map(|error| format!("at {:?}: {error}", error.instance_path().to_string())).collect()
    }
}

/// The first `$ref` or `$dynamicRef` that does not start with `#`.
fn remote_reference(schema: &Value) -> Option<&str> {
    let own = |key: &str, value| match (key, value) {
        ("$ref" | "$dynamicRef", Value::String(reference)) if !reference.starts_with('#') => Some(reference.as_str()),
        _ => None,
    };
    match schema {
        Value::Array(items) => items.iter().find_map(remote_reference),
        Value::Object(fields) => {
            fields.iter().find_map(|(key, value)| own(key, value).or_else(|| remote_reference(value)))
        }
        _ => None,
    }
}

fn unsupported(message: &str, path: &str) -> WorkflowError {
    ErrorCode::UnsupportedSchema.error(format!("agent() option {message}")).on(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        for schema in [
            json!("object"),
            json!(null),
            json!(true),
            json!({}),
            json!({"type": "array"}),
            json!({"type": ["object", "null"]}),
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "other.json#/x"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}),
            json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
            json!({"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}),
            json!({"type": "object", "required": "a"}),
        ] {
            let error = Validator::new(&schema).expect_err(&schema.to_string());
            assert_eq!(error.code, Some(ErrorCode::UnsupportedSchema));
        }
    }

    #[test]
    fn violations_name_their_place() {
        let schema = json!({
            "type": "object", "required": ["items"], "additionalProperties": false,
            "properties": {"items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}}},
            "$defs": {"item": {"type": "object", "properties": {"n": {"type": ["integer", "null"], "maximum": 9}}}},
        });
        let validator = Validator::new(&schema).unwrap();
        assert_eq!(validator.violations(&json!({"items": [{"n": 3}, {"n": null}, {"x": 1}]})), [""; 0]);
        for (value, place) in [
            (json!([]), ""),
            (json!({}), ""),
            (json!({"items": []}), "/items"),
            (json!({"items": [{"n": 10}]}), "/items/0/n"),
            (json!({"items": [{}], "more": 1}), ""),
        ] {
            let violations = validator.violations(&value);
            assert!(violations.iter().any(|v| v.starts_with(&format!("at {place:?}: "))), "{violations:?}");
        }
    }

    #[test]
    fn a_pattern_takes_linear_time() {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}});
        let validator = Validator::new(&schema).unwrap();
        assert_eq!(validator.violations(&json!({"a": "a".repeat(100_000) + "!"})).len(), 1);
    }
}
