//! Schemas as the structured output of model APIs takes them: a subset of JSON Schema that a grammar can keep to.
//!
//! What such a schema leaves out, the engine still checks against the real one.

use serde_json::{Map, Value};

/// Deepest nesting that is written.
const MAX_DEPTH: usize = 16;

/// Rewrites a schema so that every value it allows has the right shape: objects are closed, and bounds of numbers,
/// texts and arrays are left out. With `all_required` every property must be required.
///
/// `None` if the schema says what the subset cannot.
pub(crate) fn closed(schema: &Value, all_required: bool) -> Option<Value> {
    rewrite(schema, all_required, MAX_DEPTH)
}

fn rewrite(schema: &Value, all_required: bool, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let fields = schema.as_object()?;
    let mut out = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "type" | "enum" | "const" | "description" | "required" => value.clone(),
            "anyOf" | "oneOf" => {
                let branches = value.as_array()?.iter();
                let branches = branches.map(|branch| rewrite(branch, all_required, depth));
                // A value of two branches is rejected by the engine.
                out.insert("anyOf".into(), Value::Array(branches.collect::<Option<_>>()?));
                continue;
            }
            "items" => rewrite(value, all_required, depth)?,
            "properties" => {
                let properties = value.as_object()?.iter();
                let properties = properties
                    .map(|(name, schema)| Some((name.clone(), rewrite(schema, all_required, depth)?)));
                Value::Object(properties.collect::<Option<_>>()?)
            }
            // An object that may have more has this much.
            "additionalProperties" if value.is_boolean() => continue,
            // Bounds and notes: checked afterwards, or for people.
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minLength"
            | "maxLength" | "pattern" | "format" | "minItems" | "maxItems" | "uniqueItems"
            | "minProperties" | "maxProperties" | "title" | "default" | "examples" | "deprecated"
            | "readOnly" | "writeOnly" | "$schema" | "$id" | "$comment" => continue,
            _ => return None,
        };
        out.insert(name.clone(), value);
    }
    if out.contains_key("properties") || may_be(&out, "object") {
        close(&mut out, all_required)?;
    }
    if may_be(&out, "array") && !out.contains_key("items") {
        return None;
    }
    // A schema that allows anything is none that a grammar is made of.
    let says_something = ["type", "enum", "const", "anyOf"].iter().any(|name| out.contains_key(*name));
    says_something.then_some(Value::Object(out))
}

/// Closes an object. One without properties may have any, which a closed one cannot.
fn close(object: &mut Map<String, Value>, all_required: bool) -> Option<()> {
    let names: Vec<_> = object.get("properties")?.as_object()?.keys().cloned().collect();
    let required = object.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|required| required.iter().any(|r| r == name));
    let required_is_known = required.is_none_or(|required| {
        required.iter().all(|name| name.as_str().is_some_and(|name| names.iter().any(|n| n == name)))
    });
    if names.is_empty() || !required_is_known || (all_required && !names.iter().all(is_required)) {
        return None;
    }
    object.insert("additionalProperties".into(), Value::Bool(false));
    Some(())
}

fn may_be(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|known| known == kind),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shapes_stay_and_bounds_go() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1, "description": "how many"},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 3},
                "who": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"id": {"const": 1}}, "required": ["id"]}]},
            },
            "required": ["n", "tags", "who"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "description": "how many"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "who": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"id": {"const": 1}}, "required": ["id"], "additionalProperties": false}]},
            },
            "required": ["n", "tags", "who"],
            "additionalProperties": false,
        });
        assert_eq!(closed(&schema, true), Some(expected));
    }

    #[test]
    fn what_may_be_absent_is_up_to_the_api() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]});
        assert_eq!(closed(&schema, true), None);
        assert!(closed(&schema, false).is_some());
    }

    #[test]
    fn what_a_grammar_cannot_keep_to_is_not_rewritten() {
        let deep =
            (0..20).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
        for property in [
            json!(true),
            json!({}),
            json!({"description": "anything"}),
            json!({"$ref": "#/$defs/a"}),
            json!({"not": {"type": "string"}}),
            json!({"allOf": [{"type": "string"}]}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}),
            json!({"type": "array"}),
            json!({"type": ["array", "null"]}),
            json!({"type": "array", "items": true}),
            deep,
        ] {
            let schema = json!({"type": "object", "properties": {"p": property}, "required": ["p"]});
            assert_eq!(closed(&schema, false), None, "{schema}");
        }
    }
}
