//! JSON Schemas that scripts give, for answers of agents and for args: what can be enforced, and enforcing it.

mod cost;
mod keywords;
mod normal;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fanfold_types::{ErrorCode, WorkflowError};
use jsonschema::PatternOptions;
pub use normal::Ignored;
use normal::{Normal, normalise};
use serde_json::Value;

/// The most violations told of one value: enough to mend it by.
const MAX_VIOLATIONS: usize = 20;

/// The largest schema, as JSON in bytes.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// The largest schemas that are kept of one run together, as JSON in bytes. Compiled, they are some ten times as large.
const MAX_SCHEMAS_BYTES: usize = 4 << 20;

/// The most memory that one pattern may take, and all of a schema together, in bytes.
const MAX_PATTERN_BYTES: usize = 128 << 10;
const MAX_PATTERNS_BYTES: usize = 1 << 20;

/// The most patterns of a schema. Each takes some 20 microseconds to compile.
const MAX_PATTERNS: usize = 200;

/// Values up to this size have all their violations told, larger ones the first.
const THOROUGH_BYTES: usize = 64 << 10;

/// The most characters of one violation.
const MAX_VIOLATION_CHARS: usize = 300;

/// A JSON Schema with an object at its root, ready to check values.
///
/// It is one of draft 2020-12, or is rewritten as one ([`as_json`](Self::as_json)): `nullable` of OpenAPI, and
/// `items` as a list, `additionalItems`, `dependencies` and `exclusiveMinimum: true` of earlier drafts are understood.
/// Known formats but `regex` are checked, others ignored. No pattern runs for ever, and no reference leaves the schema.
/// A value that would take too many steps to check counts as one that does not satisfy it.
///
/// ```
/// use serde_json::json;
/// let schema = fanfold::Schema::new(&json!({"type": "object", "properties": {"n": {"type": "integer"}}}))?;
/// assert!(schema.violations(&json!({"n": 1})).is_empty());
/// assert_eq!(schema.violations(&json!({"n": "1"})), [r#"/n: value is not of type "integer""#]);
///
/// let misspelt = fanfold::Schema::new(&json!({"type": "object", "requierd": ["n"]}));
/// assert!(misspelt.unwrap_err().message.contains("did you mean \"required\"?"));
/// # Ok::<(), fanfold::WorkflowError>(())
/// ```
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
    /// What it was before it was rewritten, if it was.
    written: Option<Value>,
    normal: Value,
    ignored: Vec<Ignored>,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// `UNSUPPORTED_SCHEMA` for what cannot be enforced: a root that is not an object, keywords of other drafts and
    /// languages with no clear meaning, misspelt ones, references that leave the schema or lead to no schema, patterns
    /// that cannot be matched in linear time, schemas that look at themselves without end or too often.
    pub fn new(schema: &Value) -> Result<Self, WorkflowError> {
        Self::of_text(schema, &schema.to_string(), &OPTION)
    }

    /// Reads the schema of a script's args.
    ///
    /// # Errors
    /// `META_INVALID` for what [`Schema::new`] refuses.
    pub(crate) fn of_args(schema: &Value) -> Result<Self, WorkflowError> {
        Self::of_text(schema, &schema.to_string(), &ARGS)
    }

    /// The same of a schema whose JSON is at hand.
    fn of_text(schema: &Value, text: &str, origin: &Origin) -> Result<Self, WorkflowError> {
        let refuse = |message: &str| origin.refuse("", message);
        let Some(fields) = schema.as_object() else {
            return Err(refuse("must be a JSON Schema object"));
        };
        if fields.get("type").and_then(Value::as_str) != Some("object") {
            let message = "must describe an object: give its root {type: \"object\", …} and put other values in a \
                           property";
            return Err(origin.refuse(".type", message));
        }
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(refuse(&format!("must not have more than {MAX_SCHEMA_BYTES} bytes")));
        }
        let Normal { schema: normal, ignored } = normalise(schema, origin)?;
        let written = matches!(normal, Cow::Owned(_)).then(|| schema.clone());
        let schema = &*normal;
        if !cost::is_bounded(schema) {
            let message = "cannot be enforced: one of its parts looks at the same value without end or too \
                           often; follow no reference back to itself but through properties or items";
            return Err(refuse(message));
        }
        if mentions_unevaluated(schema) && !refers_simply(schema, false) {
            let message = "cannot be enforced: with unevaluatedProperties or unevaluatedItems, a $ref must name \
                           a part of $defs, and the parts of $defs must have none; use additionalProperties";
            return Err(refuse(message));
        }
        let patterns = patterns(schema);
        if patterns > MAX_PATTERNS {
            return Err(refuse(&format!("must not have more than {MAX_PATTERNS} patterns, got {patterns}")));
        }
        let pattern_bytes = (MAX_PATTERNS_BYTES / patterns.max(1)).min(MAX_PATTERN_BYTES);
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            // Each value would be a pattern to read.
            .with_format("regex", |_: &str| true)
            .with_pattern_options(PatternOptions::regex().size_limit(pattern_bytes))
            .offline()
            .build(schema)
            .map_err(|error| refuse(&format!("cannot be enforced: {}", Violation::of(&error))))?;
        Ok(Self { validator, written, normal: normal.into_owned(), ignored })
    }

    /// The schema by the keywords of 2020-12 alone: what is enforced, and what is to be asked for. It is the schema as it
    /// was written where that has no others.
    pub fn as_json(&self) -> &Value {
        &self.normal
    }

    /// The schema as it was written, for those who look at it.
    pub fn written(&self) -> &Value {
        self.written.as_ref().unwrap_or(&self.normal)
    }

    /// What is in the schema and has no effect on which values are valid, although it may have been meant to: names that
    /// are not keywords, and keywords that need others. At most 20.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    /// The part of a schema that a reference leads to, such as `#/$defs/item`; `None` if there is none.
    pub fn part<'a>(schema: &'a Value, reference: &str) -> Option<&'a Value> {
        normal::part(schema, reference)
    }

    /// Whether [`violations`](Self::violations) takes next to no time for this value: too little to leave the
    /// executor's thread for.
    pub fn is_quick(&self, value: &Value) -> bool {
        cost::is_quick(&self.normal, value)
    }

    /// What is wrong with a value, each as `<JSON pointer>: <what>`; empty for one that satisfies the schema.
    ///
    /// At most 20 are told, and the first alone of a value of more than 64 KiB. The value itself is not quoted: it
    /// may be large, and whoever reads this has it.
    pub fn violations(&self, value: &Value) -> Vec<String> {
        self.check(value).iter().map(ToString::to_string).collect()
    }

    fn check(&self, value: &Value) -> Vec<Violation> {
        if !cost::is_affordable(&self.normal, value) {
            let what = "checking the value against its schema takes too many steps".into();
            return vec![Violation { pointer: String::new(), what }];
        }
        // All are looked for even if few are wanted.
        let Err(first) = self.validator.validate(value) else { return Vec::new() };
        if value.to_string().len() > THOROUGH_BYTES {
            return vec![Violation::of(&first)];
        }
        self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| Violation::of(&error)).collect()
    }

    /// Checks the args of a run.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with every violation and its path in the message, and the first one's path beside it.
    pub(crate) fn check_args(&self, args: &Value) -> Result<(), WorkflowError> {
        let violations: Vec<(String, String)> = self
            .check(args)
            .into_iter()
            .map(|violation| (path("args", &violation.pointer, args), violation.what))
            .collect();
        let Some((first, _)) = violations.first() else { return Ok(()) };
        let first = first.clone();
        let told: Vec<String> =
            violations.into_iter().map(|(path, what)| format!("{path}: {what}")).collect();
        let message =
            format!("the args are not what the workflow takes (its meta.args): {}", told.join("; "));
        Err(ErrorCode::InvalidArgument.error(message).on(first))
    }
}

/// Where a value does not satisfy a schema.
struct Violation {
    /// The JSON Pointer of the part; empty for the value itself.
    pointer: String,
    what: String,
}

impl Violation {
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        let mut what = error.masked().to_string();
        if let Some((end, _)) = what.char_indices().nth(MAX_VIOLATION_CHARS) {
            what.truncate(end);
            what.push('…');
        }
        Self { pointer: error.instance_path().as_str().to_owned(), what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "(root)" } else { &self.pointer };
        let text = format!("{place}: {}", self.what);
        match text.char_indices().nth(MAX_VIOLATION_CHARS) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

/// The path of a part of a value, as messages write it, from its JSON Pointer.
fn path(root: &str, pointer: &str, value: &Value) -> String {
    let (mut path, mut part) = (root.to_owned(), Some(value));
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        match part {
            Some(Value::Array(items)) => {
                path.push_str(&format!("[{name}]"));
                part = name.parse().ok().and_then(|index: usize| items.get(index));
            }
            _ => {
                path.push_str(&format!(".{name}"));
                part = part.and_then(|part| part.get(&name));
            }
        }
    }
    path
}

/// The schemas of one run, each compiled once: most calls of a script have the same.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    schemas: HashMap<String, Arc<Schema>>,
    bytes: usize,
}

impl Schemas {
    /// Reads a schema.
    ///
    /// # Errors
    /// `UNSUPPORTED_SCHEMA` as by [`Schema::new`], and for more than 4 MiB of different schemas.
    pub(crate) fn get(&self, schema: &Value) -> Result<Arc<Schema>, WorkflowError> {
        let text = schema.to_string();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = known.schemas.get(&text) {
            return Ok(schema.clone());
        }
        if known.bytes + text.len() > MAX_SCHEMAS_BYTES {
            let message = format!(
                "is one too many: the different schemas of one run must not have more than {MAX_SCHEMAS_BYTES} bytes \
                 together; use the same schema for more calls"
            );
            return Err(OPTION.refuse("", &message));
        }
        let compiled = Arc::new(Schema::of_text(schema, &text, &OPTION)?);
        known.bytes += text.len();
        known.schemas.insert(text, compiled.clone());
        Ok(compiled)
    }
}

/// Whether a schema has one of the keywords that the validator does not give back the memory of if parts refer to
/// each other in a circle.
fn mentions_unevaluated(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            matches!(key.as_str(), "unevaluatedProperties" | "unevaluatedItems")
                || mentions_unevaluated(value)
        }),
        Value::Array(items) => items.iter().any(mentions_unevaluated),
        _ => false,
    }
}

/// Whether references lead from outside of the definitions into them and nowhere else, so that there is no circle.
fn refers_simply(schema: &Value, in_definitions: bool) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$ref", Value::String(part)) => {
                !in_definitions && (part.starts_with("#/$defs/") || part.starts_with("#/definitions/"))
            }
            ("$defs" | "definitions", value) => refers_simply(value, true),
            (_, value) => refers_simply(value, in_definitions),
        }),
        Value::Array(items) => items.iter().all(|item| refers_simply(item, in_definitions)),
        _ => true,
    }
}

/// How many patterns a schema has, or what looks like them.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let own = match (key.as_str(), value) {
                    ("pattern", Value::String(_)) => 1,
                    ("patternProperties", Value::Object(patterns)) => patterns.len(),
                    _ => 0,
                };
                own + patterns(value)
            })
            .sum(),
        Value::Array(items) => items.iter().map(patterns).sum(),
        _ => 0,
    }
}

/// Where a schema was given, as messages say it.
struct Origin {
    code: ErrorCode,
    name: &'static str,
    path: &'static str,
}

/// The option `schema` of `agent()`.
const OPTION: Origin =
    Origin { code: ErrorCode::UnsupportedSchema, name: "agent() option schema", path: "schema" };

/// The field `args` of a script's metadata.
const ARGS: Origin = Origin { code: ErrorCode::MetaInvalid, name: "meta.args", path: "meta.args" };

impl Origin {
    fn refuse(&self, part: &str, message: &str) -> WorkflowError {
        self.code.error(format!("{} {message}", self.name)).on(format!("{}{part}", self.path))
    }

    /// Refuses what is at a place, written as from the root of the schema's path.
    fn refuse_at(&self, place: &str, fault: &str) -> WorkflowError {
        self.code.error(format!("{} cannot be enforced: {place} {fault}", self.name)).on(place)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The validator would keep the memory of such a schema for ever.
    #[test]
    fn unevaluated_parts_may_not_refer_in_circles() {
        let list = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "unevaluatedProperties": false});
        let with = |defs: Value| {
            let mut schema = list.clone();
            schema["$defs"] = json!({"a": defs});
            Schema::new(&schema)
        };
        assert!(with(json!({"type": "object", "unevaluatedProperties": false})).is_ok());
        for part in ["#/$defs/a", "#", "#/properties/a"] {
            let error = with(json!({"properties": {"b": {"$ref": part}}})).unwrap_err();
            assert_eq!(error.code, Some(ErrorCode::UnsupportedSchema), "{part}");
        }
        let itself =
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": false});
        assert!(Schema::new(&itself).is_err());
        let without =
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
        assert!(Schema::new(&without).is_ok());
    }

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
            json!({"type": "object", "properties": {"a": {"$ref": "#name"}}, "$defs": {"a": {"$anchor": "name"}}}),
            json!({"type": "object", "properties": {"a": {"$dynamicRef": "#a"}}}),
            json!({"type": "object", "properties": {"a": {"$id": "b", "properties": {"c": {"$ref": "#"}}}}}),
            json!({"type": "object", "allOf": [{"$ref": "#"}]}),
            json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
            json!({"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}),
            json!({"type": "object", "required": "a"}),
        ] {
            let error = Schema::new(&schema).expect_err(&schema.to_string());
            assert_eq!(error.code, Some(ErrorCode::UnsupportedSchema));
        }
    }

    #[test]
    fn violations_name_their_place_and_not_the_value() {
        let schema = json!({
            "type": "object", "required": ["c"], "additionalProperties": false,
            "properties": {
                "a/b": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                "day": {"type": "string", "format": "date"}, "c": {},
                "n": {"type": ["integer", "null"], "maximum": 9},
            },
            "$defs": {"item": {"enum": [1, 2]}},
        });
        let schema = Schema::new(&schema).unwrap();
        assert_eq!(
            schema.violations(&json!({"a/b": [1, 2], "c": 0, "day": "2026-11-30", "n": null})),
            [""; 0]
        );
        let mut violations = schema.violations(&json!({"a/b": [1, "secret"], "day": "x", "d": 0, "n": 10}));
        violations.sort();
        assert_eq!(
            violations,
            [
                "(root): \"c\" is a required property",
                "(root): Additional properties are not allowed ('d' was unexpected)",
                "/a~1b/1: value is not one of 1 or 2",
                "/day: value is not a \"date\"",
                "/n: value is greater than the maximum of 9",
            ]
        );
    }

    #[test]
    fn a_great_many_violations_are_cut() {
        let schema = json!({"type": "object", "additionalProperties": {"type": "string"}, "required": ["x".repeat(10_000)]});
        let schema = Schema::new(&schema).unwrap();
        let many: Value =
            (0..1000).map(|i| (i.to_string(), json!(0))).collect::<serde_json::Map<_, _>>().into();
        assert_eq!(schema.violations(&many).len(), MAX_VIOLATIONS);
        assert_eq!(schema.violations(&json!({}))[0].chars().count(), MAX_VIOLATION_CHARS + 1);
    }

    #[test]
    fn args_are_refused_with_the_path_of_what_is_wrong() {
        let schema = json!({
            "type": "object", "required": ["files"], "additionalProperties": false,
            "properties": {
                "files": {"type": "array", "items": {"type": "string"}},
                "a/b~c": {"type": "object", "properties": {"0": {"type": "integer"}}},
            },
        });
        let schema = Schema::of_args(&schema).unwrap();
        assert_eq!(schema.check_args(&json!({"files": ["a"], "a/b~c": {"0": 1}})), Ok(()));
        for (args, path, what) in [
            (json!({}), "args", "args: \"files\" is a required property"),
            (json!(["a"]), "args", "is not of type \"object\""),
            (json!({"files": ["a", 2]}), "args.files[1]", "args.files[1]: value is not of type \"string\""),
            (json!({"files": [], "a/b~c": {"0": "x"}}), "args.a/b~c.0", "is not of type \"integer\""),
            (json!({"files": [], "more": 1}), "args", "'more' was unexpected"),
        ] {
            let error = schema.check_args(&args).unwrap_err();
            let told = (error.code, error.path.as_deref());
            assert_eq!(told, (Some(ErrorCode::InvalidArgument), Some(path)), "{args}: {error}");
            assert!(error.message.contains(what), "{args}: {error}");
        }
        let error = schema.check_args(&json!({"files": 1, "a/b~c": 2})).unwrap_err();
        assert!(error.message.contains("args.files: ") && error.message.contains("args.a/b~c: "), "{error}");
    }

    #[test]
    fn a_schema_of_args_is_named_as_such() {
        for (schema, path) in [
            (json!({"type": "array"}), "meta.args.type"),
            (json!({"type": "object", "required": 1}), "meta.args.required"),
            (json!({"type": "object", "$ref": "https://example.com/a.json"}), "meta.args.$ref"),
        ] {
            let error = Schema::of_args(&schema).unwrap_err();
            let told = (error.code, error.path.as_deref());
            assert_eq!(told, (Some(ErrorCode::MetaInvalid), Some(path)), "{error}");
            assert!(error.message.starts_with("meta.args "), "{error}");
        }
    }

    /// Unbounded, this takes a day, and the stack of a thread.
    #[test]
    fn a_value_that_multiplies_the_work_of_its_schema_is_refused() {
        let deep = |depth| (0..depth).fold(json!({}), |value, _| json!({"a": value}));
        let again = json!({"properties": {"a": {"$ref": "#"}}});
        let twice = Schema::new(&json!({"type": "object", "allOf": [again, again]})).unwrap();
        let mut definitions: serde_json::Map<String, Value> =
            (0..200).map(|n| (n.to_string(), json!({"$ref": format!("#/$defs/{}", n + 1)}))).collect();
        definitions.insert("200".into(), again);
        let long =
            Schema::new(&json!({"type": "object", "$ref": "#/$defs/0", "$defs": definitions})).unwrap();
        for schema in [twice, long] {
            assert_eq!(schema.violations(&deep(1)), [""; 0]);
            let violations = schema.violations(&deep(100));
            assert!(violations[0].contains("too many steps"), "{violations:?}");
        }
    }

    #[test]
    fn many_patterns_share_their_memory() {
        let schema = |count: usize, pattern: &str| {
            let patterns: serde_json::Map<String, Value> =
                (0..count).map(|n| (format!("{n}{pattern}"), json!({}))).collect();
            Schema::new(&json!({"type": "object", "patternProperties": patterns}))
        };
        assert!(schema(1, "(abc){200}").is_ok());
        assert!(schema(20, r"^[a-z_]\w{0,9}-\d+$").is_ok());
        for (count, pattern) in [(2_000, "a"), (100, "(abc){2000}")] {
            assert_eq!(schema(count, pattern).unwrap_err().code, Some(ErrorCode::UnsupportedSchema));
        }
    }

    #[test]
    fn the_schemas_of_a_run_are_compiled_once_and_bounded() {
        let schemas = Schemas::default();
        let schema =
            |n: usize| json!({"type": "object", "description": format!("{n}{}", "x".repeat(60_000))});
        assert!(schemas.get(&json!({"type": "array"})).is_err());
        let first = schemas.get(&schema(0)).unwrap();
        assert!(Arc::ptr_eq(&first, &schemas.get(&schema(0)).unwrap()));
        let refused = (1..100).find_map(|n| schemas.get(&schema(n)).err()).unwrap();
        assert_eq!(refused.code, Some(ErrorCode::UnsupportedSchema));
        assert!(refused.message.contains("together"), "{refused}");
        assert!(schemas.get(&schema(0)).is_ok());
    }

    #[test]
    fn a_value_is_not_read_as_a_pattern() {
        let schema =
            Schema::new(&json!({"type": "object", "properties": {"a": {"format": "regex"}}})).unwrap();
        assert_eq!(schema.violations(&json!({"a": "("})), [""; 0]);
    }

    #[test]
    fn a_pattern_takes_linear_time() {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}});
        let schema = Schema::new(&schema).unwrap();
        assert_eq!(schema.violations(&json!({"a": "a".repeat(90_000) + "!"})).len(), 1);
    }
}
