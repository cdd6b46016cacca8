//! A value that satisfies a JSON Schema, made from the schema alone: the same every time.
//!
//! Not every schema has one that can be found this way (patterns are ignored, for one); the engine checks what
//! comes of it like any other answer.

use std::collections::HashSet;

use fanfold::Schema;
use serde_json::{Map, Number, Value};

/// The deepest value, as deep as those that a run may return.
const MAX_DEPTH: usize = 100;

/// The largest value, about: each of its parts counts one and each string its characters.
const MAX_SIZE: usize = 1 << 20;

/// Items of an array whose schema says nothing of their number.
const ITEMS: usize = 2;

/// A value for this schema.
///
/// # Errors
/// Why there is none.
pub(crate) fn of(schema: &Value) -> Result<Value, String> {
    let mut maker = Maker { root: schema, left: MAX_SIZE, open: Vec::new() };
    maker.make(schema, "value", "").map(Option::unwrap_or_default)
}

/// The keywords of a schema, with what it refers to and is made of merged in.
type Keywords = Map<String, Value>;

struct Maker<'a> {
    root: &'a Value,
    /// What may still be made.
    left: usize,
    /// The references that are being followed, outermost first.
    open: Vec<String>,
}

impl Maker<'_> {
    /// A value for a part of the schema; none where the part contains itself, which must end somewhere.
    fn make(&mut self, schema: &Value, name: &str, suffix: &str) -> Result<Option<Value>, String> {
        let followed = self.open.len();
        let mut keywords = Keywords::new();
        let made = if self.gather(schema, &mut keywords)? {
            self.spend(1)?;
            self.value(&keywords, name, suffix).map(Some)
        } else {
            Ok(None)
        };
        self.open.truncate(followed);
        made
    }

    /// Adds the keywords of a part, of what it refers to, and of its branches. Gives false where it contains itself.
    fn gather(&mut self, schema: &Value, keywords: &mut Keywords) -> Result<bool, String> {
        // Also those that follow references in a circle come to this end.
        self.spend(1)?;
        let Some(fields) = schema.as_object() else { return Ok(true) };
        if let Some(Value::String(reference)) = fields.get("$ref") {
            if self.open.contains(reference) {
                return Ok(false);
            }
            let target = Schema::part(self.root, reference);
            let target = target.ok_or_else(|| format!("the schema has no part {reference:?}"))?.clone();
            self.open.push(reference.clone());
            if !self.gather(&target, keywords)? {
                return Ok(false);
            }
        }
        for part in fields.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if !self.gather(part, keywords)? {
                return Ok(false);
            }
        }
        for (name, part) in fields.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten() {
            let is_made = fields.get("properties").is_some_and(|properties| properties.get(name).is_some());
            if is_made && !self.gather(part, keywords)? {
                return Ok(false);
            }
        }
        for branches in ["anyOf", "oneOf"] {
            let branches = fields.get(branches).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let branch = branches.iter().find(|branch| !is_null(branch)).or(branches.first());
            if let Some(branch) = branch
                && !self.gather(branch, keywords)?
            {
                return Ok(false);
            }
        }
        for (keyword, value) in fields {
            merge(keywords, keyword, value);
        }
        Ok(true)
    }

    fn value(&mut self, keywords: &Keywords, name: &str, suffix: &str) -> Result<Value, String> {
        let options = keywords.get("enum").and_then(Value::as_array).and_then(|options| options.first());
        if let Some(value) = keywords.get("const").or(options) {
            return Ok(value.clone());
        }
        match kind(keywords) {
            "object" => self.object(keywords, suffix),
            "array" => self.array(keywords, name),
            "boolean" => Ok(true.into()),
            "null" => Ok(Value::Null),
            "integer" => Ok(number(keywords, true)),
            "number" => Ok(number(keywords, false)),
            _ => self.string(keywords, name, suffix),
        }
    }

    fn object(&mut self, keywords: &Keywords, suffix: &str) -> Result<Value, String> {
        let required = required(keywords);
        let mut object = Map::new();
        for (name, schema) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            match self.deeper(schema, name, suffix)? {
                Some(value) => object.insert(name.clone(), value),
                None if required.contains(&name.as_str()) => object.insert(name.clone(), Value::Null),
                None => continue,
            };
        }
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.string(&Keywords::new(), name, suffix)?);
            }
        }
        Ok(object.into())
    }

    fn array(&mut self, keywords: &Keywords, name: &str) -> Result<Value, String> {
        let first = list(keywords, "prefixItems");
        let rest = keywords.get("items").unwrap_or(&Value::Bool(true));
        let most = if *rest == Value::Bool(false) { first.len() } else { usize::MAX };
        let wanted = ITEMS.max(first.len()).max(size(keywords, "minItems").unwrap_or(0));
        let count = wanted.min(size(keywords, "maxItems").unwrap_or(usize::MAX)).min(most);
        let mut array = Vec::new();
        for i in 0..count {
            let schema = first.get(i).unwrap_or(rest);
            let Some(item) = self.deeper(schema, name, &format!("#{i}"))? else { break };
            if keywords.get("uniqueItems") != Some(&Value::Bool(true)) || !array.contains(&item) {
                array.push(item);
            }
        }
        Ok(array.into())
    }

    fn string(&mut self, keywords: &Keywords, name: &str, suffix: &str) -> Result<Value, String> {
        let mut text = format!("{name}{suffix}");
        match keywords.get("format").and_then(Value::as_str) {
            Some("uri") => return Ok(format!("https://example.com/{text}").into()),
            Some(format) => {
                if let Some((_, example)) = FORMATS.iter().find(|(known, _)| *known == format) {
                    return Ok((*example).into());
                }
            }
            None => {}
        }
        let length = text.chars().count();
        let missing = size(keywords, "minLength").unwrap_or(0).saturating_sub(length);
        self.spend(length.saturating_add(missing))?;
        text.extend(std::iter::repeat_n('x', missing));
        if let Some((end, _)) = size(keywords, "maxLength").and_then(|most| text.char_indices().nth(most)) {
            text.truncate(end);
        }
        Ok(text.into())
    }

    /// A value inside of another.
    fn deeper(&mut self, schema: &Value, name: &str, suffix: &str) -> Result<Option<Value>, String> {
        // A mark that no reference is equal to: they begin with `#`.
        self.open.push(String::new());
        let depth = self.open.iter().filter(|reference| reference.is_empty()).count();
        if depth > MAX_DEPTH {
            return Err(format!("a value of this schema would be nested deeper than {MAX_DEPTH} levels"));
        }
        let made = self.make(schema, name, suffix);
        self.open.pop();
        made
    }

    fn spend(&mut self, size: usize) -> Result<(), String> {
        self.left =
            self.left.checked_sub(size).ok_or("a value of this schema would be too large for a dry run")?;
        Ok(())
    }
}

/// Strings of formats that need one of their own.
const FORMATS: [(&str, &str); 8] = [
    ("date-time", "2026-01-01T00:00:00Z"),
    ("date", "2026-01-01"),
    ("time", "00:00:00Z"),
    ("email", "a@example.com"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
];

/// Whether a branch allows `null` alone.
fn is_null(schema: &Value) -> bool {
    let only = |keyword, value: &Value| schema.get(keyword) == Some(value);
    only("type", &"null".into())
        || only("const", &Value::Null)
        || only("enum", &Value::Array(vec![Value::Null]))
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The names of the properties that an object must have if it has all that the schema names.
fn required(keywords: &Keywords) -> Vec<&str> {
    let mut required: Vec<&str> = keywords.get("required").into_iter().flat_map(names).collect();
    let properties = keywords.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let mut present: Vec<&str> = properties.map(String::as_str).chain(required.iter().copied()).collect();
    let mut known: HashSet<&str> = present.iter().copied().collect();
    let dependent = keywords.get("dependentRequired").and_then(Value::as_object);
    // Properties may depend on those that depend on others.
    let mut at = 0;
    while let Some(name) = present.get(at) {
        at += 1;
        let more = dependent.and_then(|dependent| dependent.get(*name)).into_iter().flat_map(names);
        for name in more.filter(|name| known.insert(name)) {
            required.push(name);
            present.push(name);
        }
    }
    required
}

/// Adds a keyword to those of another schema that must hold as well.
fn merge(keywords: &mut Keywords, keyword: &str, value: &Value) {
    match (keywords.get_mut(keyword), value) {
        (Some(Value::Object(known)), Value::Object(more)) if keyword == "properties" => {
            for (name, schema) in more {
                let both = match known.get(name) {
                    Some(other) => serde_json::json!({"allOf": [other, schema]}),
                    None => schema.clone(),
                };
                known.insert(name.clone(), both);
            }
        }
        (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => {
            known.extend(more.iter().cloned());
        }
        _ => {
            keywords.insert(keyword.to_owned(), value.clone());
        }
    }
}

fn kind(keywords: &Keywords) -> &str {
    match keywords.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if keywords.contains_key("properties") => "object",
        _ if keywords.contains_key("items") || keywords.contains_key("prefixItems") => "array",
        _ => "string",
    }
}

/// 1, or what is nearest to it within the bounds.
fn number(keywords: &Keywords, whole: bool) -> Value {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let beyond = |least: f64| if whole { least.floor() + 1.0 } else { least + 1.0 };
    let below = |most: f64| if whole { most.ceil() - 1.0 } else { most - 1.0 };
    let round = |least: f64| if whole { least.ceil() } else { least };
    let mut value = 1.0_f64;
    value = value.max(bound("minimum").map_or(value, round));
    value = bound("exclusiveMinimum").filter(|least| value <= *least).map_or(value, beyond);
    value = value.min(bound("maximum").map_or(value, |most| if whole { most.floor() } else { most }));
    value = bound("exclusiveMaximum").filter(|most| value >= *most).map_or(value, below);
    if let (false, Some(least), Some(most)) =
        (whole, bound("exclusiveMinimum"), bound("exclusiveMaximum").or(bound("maximum")))
        && value <= least
    {
        value = f64::midpoint(least, most);
    }
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        let up = (value / step).ceil() * step;
        let fits = bound("maximum").is_none_or(|most| up <= most)
            && bound("exclusiveMaximum").is_none_or(|most| up < most);
        value = if fits { up } else { (value / step).floor() * step };
    }
    // The largest whole numbers that JSON readers agree about.
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_991.0 {
        return (value as i64).into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn size(keywords: &Keywords, keyword: &str) -> Option<usize> {
    let size = keywords.get(keyword)?.as_f64()?;
    // A float beyond the range becomes the end of it.
    Some(size as usize)
}

fn list<'a>(keywords: &'a Keywords, keyword: &str) -> &'a [Value] {
    keywords.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn property(schema: &Value) -> Value {
        of(&json!({"type": "object", "properties": {"p": schema}})).unwrap()["p"].clone()
    }

    #[test]
    fn every_kind_of_schema_has_its_value() {
        for (schema, value) in [
            (json!({"const": {"a": 1}}), json!({"a": 1})),
            (json!({"enum": ["x", "y"]}), json!("x")),
            (json!({"type": "string"}), json!("p")),
            (json!({}), json!("p")),
            (json!(true), json!("p")),
            (json!({"type": ["null", "integer"]}), json!(1)),
            (json!({"type": ["null"]}), json!(null)),
            (json!({"anyOf": [{"type": "null"}, {"type": "boolean"}]}), json!(true)),
            (json!({"oneOf": [{"const": 5}, {"const": 6}]}), json!(5)),
            (json!({"anyOf": [{"type": "null"}]}), json!(null)),
            (json!({"properties": {"a": {}}}), json!({"a": "a"})),
            (json!({"items": {"type": "string"}}), json!(["p#0", "p#1"])),
            (json!({"type": "object"}), json!({})),
            (
                json!({"type": "object", "required": ["b"], "properties": {"a": {}}}),
                json!({"a": "a", "b": "b"}),
            ),
            (json!({"type": "array", "minItems": 3}), json!(["p#0", "p#1", "p#2"])),
            (json!({"type": "array", "maxItems": 1}), json!(["p#0"])),
            (json!({"type": "array", "maxItems": 0}), json!([])),
            (json!({"type": "array", "uniqueItems": true, "items": {"type": "integer"}}), json!([1])),
            (json!({"prefixItems": [{"const": 1}], "type": "array", "items": false}), json!([1])),
            (json!({"prefixItems": [{"const": 1}, {"const": 2}, {"const": 3}]}), json!([1, 2, 3])),
            (
                json!({"properties": {"a": {}}, "dependentRequired": {"c": ["d"], "a": ["b", "c"], "e": ["f"]}}),
                json!({"a": "a", "b": "b", "c": "c", "d": "d"}),
            ),
            (
                json!({"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {"const": 1}}}, "c": false}}),
                json!({"a": "a", "b": 1}),
            ),
            (
                json!({"items": {"type": "object", "properties": {"t": {}, "tags": {"type": "array", "maxItems": 1}}}}),
                json!([{"t": "t#0", "tags": ["tags#0"]}, {"t": "t#1", "tags": ["tags#0"]}]),
            ),
            (
                json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["b"]},
                                 {"properties": {"a": {"minLength": 3}, "c": {"const": 1}}}]}),
                json!({"a": "axx", "c": 1, "b": "b"}),
            ),
            (json!({"type": "string", "minLength": 4}), json!("pxxx")),
            (json!({"type": "string", "maxLength": 0}), json!("")),
            (json!({"format": "date-time"}), json!("2026-01-01T00:00:00Z")),
            (json!({"format": "date"}), json!("2026-01-01")),
            (json!({"format": "uri"}), json!("https://example.com/p")),
            (json!({"format": "email"}), json!("a@example.com")),
            (json!({"format": "uuid"}), json!("00000000-0000-4000-8000-000000000000")),
            (json!({"type": "number"}), json!(1)),
            (json!({"type": "integer", "minimum": 5}), json!(5)),
            (json!({"type": "number", "minimum": 1.5}), json!(1.5)),
            (json!({"type": "integer", "minimum": 1.5}), json!(2)),
            (json!({"type": "number", "maximum": 0.5}), json!(0.5)),
            (json!({"type": "integer", "maximum": -3}), json!(-3)),
            (json!({"type": "integer", "exclusiveMinimum": 1}), json!(2)),
            (json!({"type": "number", "exclusiveMaximum": 1}), json!(0)),
            (json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}), json!(0.25)),
            (json!({"type": "integer", "multipleOf": 5}), json!(5)),
            (json!({"type": "integer", "multipleOf": 5, "maximum": 4}), json!(0)),
        ] {
            assert_eq!(property(&schema), value, "{schema}");
        }
    }

    #[test]
    fn references_are_followed_until_they_come_back() {
        let schema = json!({
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/node"}, "again": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "required": ["left"], "properties": {
                "name": {"type": "string"}, "left": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
                "right": {"$ref": "#/$defs/node"}, "more": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            }}},
        });
        let node = json!({"name": "name", "left": null, "more": []});
        assert_eq!(of(&schema), Ok(json!({"tree": node, "again": node})));
        assert!(of(&json!({"$ref": "#/$defs/none"})).is_err());
        let escaped = json!({"$ref": "#/$defs/a%20b~1", "$defs": {"a b/": {"const": 1}}});
        assert_eq!(of(&escaped), Ok(json!(1)));
    }

    #[test]
    fn a_schema_that_asks_for_too_much_has_no_value() {
        let many = json!({"type": "array", "minItems": 100, "items": {"$ref": "#/$defs/b"}});
        for schema in [
            json!({"type": "string", "minLength": 1e12}),
            json!({"type": "array", "minItems": 1e300}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": many, "b": {
                "type": "array", "minItems": 1000, "items": {"type": "array", "minItems": 1000}}}}),
        ] {
            assert!(of(&schema).unwrap_err().contains("too large"), "{schema}");
        }
        let mut schema = json!({"type": "object"});
        let defs: Map<String, Value> = (0..1000)
            .map(|i| (i.to_string(), json!({"properties": {"p": {"$ref": format!("#/$defs/{}", i + 1)}}})))
            .collect();
        schema["$defs"] = defs.into();
        schema["$ref"] = "#/$defs/0".into();
        assert!(of(&schema).unwrap_err().contains("nested deeper"));
    }
}
