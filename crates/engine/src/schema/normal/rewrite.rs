//! Rewrites a schema that was read, by the keywords of 2020-12 alone.

use std::ptr;

use serde_json::{Map, Value, json};

use super::references::{child, raw_tokens, tokens};
use super::{DRAFT_2020_12, Reader, bound_of};

/// What `nullable` does to a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nullable {
    No,
    /// `null` is added to what the schema lists.
    Listed,
    /// The schema becomes one branch, and `null` the other.
    Branch,
}

impl Nullable {
    fn of(fields: &Map<String, Value>) -> Self {
        const DECIDE_ALONE: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"];
        let asked =
            ["nullable", "x-nullable"].iter().any(|name| fields.get(*name) == Some(&Value::Bool(true)));
        match asked {
            false => Self::No,
            true if DECIDE_ALONE.iter().any(|name| fields.contains_key(*name)) => Self::Branch,
            true => Self::Listed,
        }
    }
}

impl Reader<'_> {
    /// The same value, with the schemas in it rewritten.
    pub(super) fn rewritten(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) if self.schemas.contains(&ptr::from_ref(value)) => {
                self.rewritten_schema(fields, ptr::eq(value, self.root))
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), self.rewritten(value)));
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.iter().map(|item| self.rewritten(item)).collect(),
            other => other.clone(),
        }
    }

    fn rewritten_schema(&self, fields: &Map<String, Value>, is_root: bool) -> Value {
        let mut out = Map::new();
        for (name, content) in fields {
            match (name.as_str(), content) {
                ("$schema", _) if is_root => {
                    out.insert(name.clone(), DRAFT_2020_12.into());
                }
                ("$schema" | "id" | "nullable" | "x-nullable", _) => {}
                ("$ref", Value::String(reference)) => {
                    out.insert(name.clone(), self.moved(reference).into());
                }
                ("items", Value::Array(schemas)) if schemas.is_empty() => {}
                ("items", Value::Array(_)) => {
                    out.insert("prefixItems".into(), self.rewritten(content));
                }
                ("additionalItems", _) => {
                    out.insert("items".into(), self.rewritten(content));
                }
                ("dependencies", Value::Object(dependencies)) => {
                    let (names, schemas): (Map<_, _>, Map<_, _>) = dependencies
                        .iter()
                        .map(|(name, dependency)| (name.clone(), self.rewritten(dependency)))
                        .partition(|(_, dependency)| dependency.is_array());
                    for (name, part) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
                        if !part.is_empty() {
                            out.insert(name.into(), part.into());
                        }
                    }
                }
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(exclusive)) => {
                    if let Some(bound) = fields.get(bound_of(name)).filter(|_| *exclusive) {
                        out.insert(name.clone(), bound.clone());
                    }
                }
                ("minimum", _) if fields.get("exclusiveMinimum") == Some(&Value::Bool(true)) => {}
                ("maximum", _) if fields.get("exclusiveMaximum") == Some(&Value::Bool(true)) => {}
                ("example", example) => {
                    if !fields.contains_key("examples") {
                        out.insert("examples".into(), json!([example]));
                    }
                }
                _ => {
                    out.insert(name.clone(), self.rewritten(content));
                }
            }
        }
        match Nullable::of(fields) {
            Nullable::No => out.into(),
            Nullable::Branch => json!({"anyOf": [out, {"type": "null"}]}),
            Nullable::Listed => {
                if let Some(kind) = out.get_mut("type") {
                    let kinds = match kind.take() {
                        Value::Array(kinds) => kinds,
                        only => vec![only],
                    };
                    *kind = with(kinds, "null".into());
                }
                if let Some(Value::Array(values)) = out.get_mut("enum") {
                    let values = std::mem::take(values);
                    out.insert("enum".into(), with(values, Value::Null));
                }
                out.into()
            }
        }
    }

    /// A reference to where its target stands afterwards.
    fn moved(&self, reference: &str) -> String {
        let mut moved = "#".to_owned();
        let mut target = Some(self.root);
        for (raw, token) in raw_tokens(reference).zip(tokens(reference)) {
            let is_schema = target.is_some_and(|target| self.schemas.contains(&ptr::from_ref(target)));
            let fields = target.and_then(Value::as_object).filter(|_| is_schema);
            if fields.is_some_and(|fields| Nullable::of(fields) == Nullable::Branch) {
                moved.push_str("/anyOf/0");
            }
            moved.push('/');
            moved.push_str(match (token.as_str(), fields) {
                ("items", Some(fields)) if fields["items"].is_array() => "prefixItems",
                ("additionalItems", Some(_)) => "items",
                ("dependencies", Some(_)) => "dependentSchemas",
                _ => raw,
            });
            target = target.and_then(|target| child(target, &token));
        }
        moved
    }
}

/// The list with a value, once.
fn with(mut list: Vec<Value>, value: Value) -> Value {
    if !list.contains(&value) {
        list.push(value);
    }
    list.into()
}
