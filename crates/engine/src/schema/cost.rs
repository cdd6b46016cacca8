//! How much work a schema is, before anybody does it.
//!
//! A validator does what a schema says, and a small schema can say a lot: definitions that refer to one another
//! twice double the work with every level, whether of definitions or of the value, and long chains of references
//! use up the stack. Neither time nor stack of a validator can be bounded from outside, so its steps are counted
//! first, by a walk that stops when there are too many.

use serde_json::Value;

/// The most subschemas that may look at one value in one place, its parts left aside.
const MAX_AT_ONE_PLACE: u32 = 2000;

/// The most steps that checking one value may take. Some millions a second are possible.
const MAX_STEPS: u32 = 5_000_000;

/// The most subschemas within each other. A step of the validator takes some 250 bytes of stack when optimised, and
/// threads have 2 MiB.
const MAX_NESTING: u32 = 500;

/// Keywords whose content is data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Whether no value, be it ever so small, makes this schema look at itself too often.
pub(super) fn is_bounded(schema: &Value) -> bool {
    // Whatever could be a subschema; what is none does no harm.
    fn all<'a>(walk: &mut Walk<'a>, part: &'a Value) -> bool {
        walk.steps_left = MAX_AT_ONE_PLACE;
        match part {
            Value::Object(fields) => {
                walk.step(part, &Value::Null, 0).is_some()
                    && fields.iter().all(|(name, part)| DATA.contains(&name.as_str()) || all(walk, part))
            }
            Value::Array(items) => items.iter().all(|part| all(walk, part)),
            _ => true,
        }
    }
    all(&mut Walk { root: schema, steps_left: 0 }, schema)
}

/// Whether checking this value takes no more time and stack than there is.
pub(super) fn is_affordable(schema: &Value, value: &Value) -> bool {
    Walk { root: schema, steps_left: MAX_STEPS }.step(schema, value, 0).is_some()
}

/// A validator that never finds anything wrong and so leaves nothing out.
struct Walk<'a> {
    root: &'a Value,
    steps_left: u32,
}

impl<'a> Walk<'a> {
    /// Counts the steps of a schema on a value; `None` when there are too many.
    fn step(&mut self, schema: &'a Value, value: &Value, nesting: u32) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let Value::Object(keywords) = schema else { return Some(()) };
        let nesting = Some(nesting + 1).filter(|nesting| *nesting <= MAX_NESTING)?;
        // To know what was evaluated, a validator evaluates it again.
        let again =
            ["unevaluatedProperties", "unevaluatedItems"].iter().any(|name| keywords.contains_key(*name));
        for (name, content) in keywords {
            for _ in 0..=u8::from(again) {
                self.keyword(name, content, value, nesting)?;
            }
        }
        Some(())
    }

    fn keyword(&mut self, name: &str, content: &'a Value, value: &Value, nesting: u32) -> Option<()> {
        match (name, content, value) {
            ("$ref", Value::String(reference), _) => {
                // What refers to nothing was refused; what is resolved in another way than here is, too.
                let target = self.root.pointer(&pointer(reference))?;
                self.step(target, value, nesting)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas), _) => {
                schemas.iter().try_for_each(|schema| self.step(schema, value, nesting))
            }
            ("not" | "if" | "then" | "else", schema, _) => self.step(schema, value, nesting),
            ("dependentSchemas" | "dependencies", Value::Object(schemas), _) => {
                schemas.values().try_for_each(|schema| self.step(schema, value, nesting))
            }
            ("properties", Value::Object(schemas), Value::Object(fields)) => fields
                .iter()
                .filter_map(|(name, value)| Some((schemas.get(name)?, value)))
                .try_for_each(|(schema, value)| self.step(schema, value, nesting)),
            ("patternProperties", Value::Object(schemas), Value::Object(fields)) => {
                schemas.values().try_for_each(|schema| {
                    fields.values().try_for_each(|value| self.step(schema, value, nesting))
                })
            }
            ("propertyNames", schema, Value::Object(fields)) => {
                fields.iter().try_for_each(|_| self.step(schema, &Value::Null, nesting))
            }
            ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(fields)) => {
                fields.values().try_for_each(|value| self.step(schema, value, nesting))
            }
            ("items" | "prefixItems", Value::Array(schemas), Value::Array(items)) => {
                schemas.iter().zip(items).try_for_each(|(schema, value)| self.step(schema, value, nesting))
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", schema, Value::Array(items)) => {
                items.iter().try_for_each(|value| self.step(schema, value, nesting))
            }
            _ => Some(()),
        }
    }
}

/// The JSON pointer of a reference `#/…`, whose special characters may be written as in URLs.
fn pointer(reference: &str) -> String {
    let text = reference.strip_prefix('#').unwrap_or(reference);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// Definitions `0`, `1`, …, each made from a reference to the next, and a last one.
    fn chain(length: usize, link: impl Fn(Value) -> Value, last: Value) -> Value {
        let mut definitions: Map<String, Value> = (0..length)
            .map(|n| (n.to_string(), link(json!({"$ref": format!("#/$defs/{}", n + 1)}))))
            .collect();
        definitions.insert(length.to_string(), last);
        json!({"type": "object", "$ref": "#/$defs/0", "$defs": definitions})
    }

    fn deep(depth: usize) -> Value {
        (0..depth).fold(json!({}), |value, _| json!({"a": value}))
    }

    #[test]
    fn schemas_that_look_at_themselves_too_often_are_not_bounded() {
        let twice = |next: Value| json!({"anyOf": [next.clone(), next]});
        for (name, schema, bounded) in [
            ("plain", json!({"type": "object"}), true),
            ("itself", json!({"$ref": "#"}), false),
            ("itself in part", json!({"allOf": [{"$ref": "#"}]}), false),
            ("itself in its parts", json!({"properties": {"a": {"$ref": "#"}}}), true),
            ("itself somewhere", json!({"$defs": {"%": {"not": {"$ref": "#/$defs/%25"}}}}), false),
            ("doubling a little", chain(4, twice, json!({})), true),
            ("doubling", chain(12, twice, json!({})), false),
            ("many variants", json!({"oneOf": vec![json!({"const": 1}); 1000]}), true),
            ("a reference in data", json!({"const": {"$ref": "#"}, "enum": [{"$ref": "#"}]}), true),
        ] {
            assert_eq!(is_bounded(&schema), bounded, "{name}");
        }
    }

    #[test]
    fn values_are_affordable_unless_they_multiply_the_work() {
        let tree = json!({"properties": {"a": {"$ref": "#"}, "b": {"items": {"$ref": "#"}}}});
        let twice =
            |next: Value| json!({"allOf": [{"properties": {"a": next}}, {"properties": {"a": next}}]});
        let itself = twice(json!({"$ref": "#"}));
        let unevaluated =
            json!({"anyOf": [{"properties": {"a": {"$ref": "#"}}}], "unevaluatedProperties": false});
        let list = json!({"properties": {"b": {"items": {"properties": {"n": {"type": "integer"}}}}}});
        for (name, schema, value, affordable) in [
            ("a tree", tree, json!({"a": deep(90), "b": vec![deep(9); 1000]}), true),
            ("a long list", list, json!({"b": vec![json!({"n": 1}); 100_000]}), true),
            ("twice at every level", itself.clone(), deep(10), true),
            ("twice at every level, deep", itself, deep(30), false),
            ("twice, by definitions", chain(30, twice, json!({})), deep(30), false),
            ("unevaluated at every level", unevaluated, deep(30), false),
            (
                "references without end",
                chain(100, |next| next, json!({"properties": {"a": {"$ref": "#"}}})),
                deep(9),
                false,
            ),
        ] {
            assert!(is_bounded(&schema), "{name}");
            assert_eq!(is_affordable(&schema, &value), affordable, "{name}");
        }
    }
}
