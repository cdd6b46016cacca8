//! How much work a schema is, before anybody does it.
//!
//! A validator does what a schema says, and a small schema can say a lot: definitions that refer to one another
//! twice double the work with every level, whether of definitions or of the value, and long chains of references
//! use up the stack. Neither time nor stack of a validator can be bounded from outside, so its steps are counted
//! first, by a walk that stops when there are too many.

use serde_json::Value;

use super::normal::part;

/// The most subschemas that may look at one value in one place, its parts left aside.
const MAX_AT_ONE_PLACE: u32 = 2_000;

/// The most of them for all places of a schema together.
const MAX_AT_ALL_PLACES: u32 = 200_000;

/// The most steps that checking a value may take, whatever its size, and for each of its parts. Some millions a second
/// are possible.
const MAX_STEPS: u32 = 100_000;
const MAX_STEPS_A_PART: u32 = 16;

/// Steps that take no time worth leaving a thread for.
const QUICK_STEPS: u32 = 2_000;

/// Bytes of text that are looked at in the time of a step, by what looks at each once.
const BYTES_A_STEP: usize = 64;

/// The most subschemas within each other. A step of the validator takes some 250 bytes of stack when optimised, and
/// threads have 2 MiB.
pub(super) const MAX_NESTING: u32 = 500;

/// Keywords whose content is data.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Whether no value, be it ever so small, makes this schema look at itself too often.
pub(super) fn is_bounded(schema: &Value) -> bool {
    // Whatever could be a subschema; what is none does no harm.
    fn all(root: &Value, part: &Value, left: &mut u32) -> bool {
        match part {
            Value::Object(fields) => {
                let most = MAX_AT_ONE_PLACE.min(*left);
                let mut walk = Walk { root, steps_left: most };
                let bounded = walk.step(part, &Value::Null, 0).is_some();
                *left -= most - walk.steps_left;
                bounded
                    && fields
                        .iter()
                        .all(|(name, part)| DATA.contains(&name.as_str()) || all(root, part, left))
            }
            Value::Array(items) => items.iter().all(|part| all(root, part, left)),
            _ => true,
        }
    }
    let mut left = MAX_AT_ALL_PLACES;
    all(schema, schema, &mut left)
}

/// Whether checking this value takes no more time and stack than there is.
pub(super) fn is_affordable(schema: &Value, value: &Value) -> bool {
    let parts = u32::try_from(parts(value)).unwrap_or(u32::MAX);
    let steps_left = parts.saturating_mul(MAX_STEPS_A_PART).saturating_add(MAX_STEPS);
    Walk { root: schema, steps_left }.step(schema, value, 0).is_some()
}

/// Whether checking this value takes next to no time.
pub(super) fn is_quick(schema: &Value, value: &Value) -> bool {
    Walk { root: schema, steps_left: QUICK_STEPS }.step(schema, value, 0).is_some()
}

/// How many values a value consists of, itself included.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(parts).sum::<usize>(),
        _ => 1,
    }
}

/// A validator that never finds anything wrong and so leaves nothing out.
struct Walk<'a> {
    root: &'a Value,
    steps_left: u32,
}

impl<'a> Walk<'a> {
    fn pay(&mut self, steps: usize) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(u32::try_from(steps).ok()?)?;
        Some(())
    }

    /// Counts the steps of a schema on a value; `None` when there are too many.
    fn step(&mut self, schema: &'a Value, value: &Value, nesting: u32) -> Option<()> {
        self.pay(1)?;
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
                let target = part(self.root, reference)?;
                self.step(target, value, nesting)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas), _) => {
                schemas.iter().try_for_each(|schema| self.step(schema, value, nesting))
            }
            ("not" | "if" | "then" | "else", schema, _) => self.step(schema, value, nesting),
            ("dependentSchemas" | "dependencies", Value::Object(schemas), _) => {
                schemas.values().try_for_each(|schema| match schema {
                    Value::Array(names) => self.pay(1 + names.len()),
                    schema => self.step(schema, value, nesting),
                })
            }
            ("properties", Value::Object(schemas), Value::Object(fields)) => fields
                .iter()
                .filter_map(|(name, value)| Some((schemas.get(name)?, value)))
                .try_for_each(|(schema, value)| self.step(schema, value, nesting)),
            ("patternProperties", Value::Object(schemas), Value::Object(fields)) => {
                schemas.values().try_for_each(|schema| {
                    fields.iter().try_for_each(|(name, value)| {
                        self.pay(name.len())?;
                        self.step(schema, value, nesting)
                    })
                })
            }
            ("propertyNames", schema, Value::Object(fields)) => {
                fields.keys().try_for_each(|name| self.step(schema, &Value::String(name.clone()), nesting))
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
            // In the worst case a byte takes a step of each state of a pattern.
            ("pattern", _, Value::String(text)) => self.pay(text.len()),
            ("format" | "minLength" | "maxLength", _, Value::String(text)) => {
                self.pay(text.len() / BYTES_A_STEP)
            }
            ("uniqueItems", Value::Bool(true), Value::Array(_)) => self.pay(parts(value)),
            ("const" | "enum", ..) if value.is_null() => Some(()),
            ("const", data, _) => self.pay(parts(data).min(parts(value))),
            ("enum", Value::Array(items), _) => {
                let most = parts(value);
                items.iter().try_for_each(|item| self.pay(parts(item).min(most)))
            }
            ("required", Value::Array(names), Value::Object(_)) => self.pay(names.len()),
            ("dependentRequired", Value::Object(lists), Value::Object(_)) => {
                lists.values().try_for_each(|names| self.pay(1 + names.as_array().map_or(0, Vec::len)))
            }
            _ => Some(()),
        }
    }
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
    fn comparing_and_matching_counts() {
        let objects = |n: usize| (0..n).map(|n| json!({"n": n})).collect::<Vec<_>>();
        let numbers = |n: usize| (0..n).collect::<Vec<_>>();
        let items = |schema: Value| json!({"properties": {"a": {"items": schema}}});
        let long = "x".repeat(200_000);
        for (name, schema, value, affordable) in [
            ("a long enum", items(json!({"enum": numbers(5_000)})), json!({"a": numbers(10)}), true),
            (
                "often a long enum",
                items(json!({"enum": numbers(5_000)})),
                json!({"a": numbers(1_000)}),
                false,
            ),
            (
                "often an enum of objects",
                items(json!({"enum": objects(900)})),
                json!({"a": objects(900)}),
                false,
            ),
            (
                "a large constant",
                items(json!({"const": objects(900)})),
                json!({"a": vec![objects(900); 9]}),
                true,
            ),
            (
                "unique items",
                json!({"properties": {"a": {"uniqueItems": true}}}),
                json!({"a": objects(9_000)}),
                true,
            ),
            ("a pattern", items(json!({"pattern": "x"})), json!({"a": vec!["x"; 9_000]}), true),
            ("a pattern on a long text", items(json!({"pattern": "x"})), json!({"a": [long]}), false),
            (
                "a pattern on a long name",
                json!({"propertyNames": {"pattern": "x"}}),
                json!({long.clone(): 1}),
                false,
            ),
            ("patterns of names", json!({"patternProperties": {"x": {}}}), json!({long.clone(): 1}), false),
            (
                "a long text",
                items(json!({"maxLength": 300_000, "format": "date"})),
                json!({"a": [long]}),
                true,
            ),
        ] {
            assert_eq!(is_affordable(&schema, &value), affordable, "{name}");
        }
    }

    #[test]
    fn what_takes_time_is_not_quick() {
        let schema = json!({"properties": {"a": {"items": {"type": "integer"}}}});
        assert!(is_quick(&schema, &json!({"a": vec![1; 1_000]})));
        assert!(!is_quick(&schema, &json!({"a": vec![1; 10_000]})));
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
