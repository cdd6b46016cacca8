//! What the tools take: the types that their JSON Schemas are generated from, and reading them.
//!
//! Reading reports every fault at once, with its path, so that a model needs one further attempt and not one for
//! each.

use fanfold::{ErrorCode, Meta, Script, WorkflowError};
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// What starts a workflow.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WorkflowArguments {
    /// What the workflow is.
    #[schemars(with = "Meta")]
    pub(crate) meta: Option<Meta>,
    /// The plain JavaScript body of an async function: top-level `await`, ends with `return <json>`.
    pub(crate) script: String,
    /// The script's global `args`, exactly as given. Put data here and not into the text of the script.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(crate) args: Option<Value>,
}

impl WorkflowArguments {
    /// # Errors
    /// With every fault.
    pub(crate) fn read(arguments: &Value) -> Result<Self, WorkflowError> {
        let mut reader = Reader::new(arguments)?;
        let meta = reader.take("meta");
        let script = reader.string("script");
        let args = reader.take("args");
        // Models write `null` for what they leave out.
        let meta = match (meta.filter(|meta| !meta.is_null()), &script) {
            (Some(meta), _) => reader.check(Meta::from_value(&decoded(meta))),
            (None, Some(script)) if Script::has_header(script) => None,
            // Why the text is not taken for a script with a header: it stands in a fence, or the header does not
            // come first, or there is none.
            (None, Some(script)) => {
                let read = Script::read(script, None);
                reader.check(read.map(|script| script.meta))
            }
            // The metadata may be in what was meant to be the script.
            (None, None) if reader.is_given("script") || reader.has_unknown() => None,
            (None, None) => reader.check(Meta::from_value(&Value::Object(Map::new()))),
        };
        reader.finish()?;
        Ok(Self { meta, script: script.unwrap_or_default(), args: args.map(decoded) })
    }
}

/// Which run is meant.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RunArguments {
    /// The run's id, as it was given when the run started.
    #[schemars(length(min = 1))]
    pub(crate) run_id: String,
}

impl RunArguments {
    /// # Errors
    /// With every fault.
    pub(crate) fn read(arguments: &Value) -> Result<Self, WorkflowError> {
        let mut reader = Reader::new(arguments)?;
        let run_id = reader.string("runId");
        reader.finish()?;
        Ok(Self { run_id: run_id.unwrap_or_default() })
    }
}

/// Which run is meant, if one is.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StatusArguments {
    /// The run's id, as it was given when the run started. Without it, your runs are listed.
    #[schemars(length(min = 1))]
    pub(crate) run_id: Option<String>,
}

impl StatusArguments {
    /// # Errors
    /// With every fault.
    pub(crate) fn read(arguments: &Value) -> Result<Self, WorkflowError> {
        let mut reader = Reader::new(arguments)?;
        let run_id = match reader.take("runId") {
            // Another name was meant for it.
            None if reader.has_unknown() => reader.string("runId"),
            None | Some(Value::Null) => None,
            Some(_) => reader.string("runId"),
        };
        reader.finish()?;
        Ok(Self { run_id })
    }
}

/// Which part of a run's result is wanted.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ResultArguments {
    /// The run's id, as it was given when the run started.
    #[schemars(length(min = 1))]
    pub(crate) run_id: String,
    /// The first character wanted, from 0. Default 0. Go on with the `nextOffset` of the page before.
    #[schemars(default)]
    pub(crate) offset: u64,
    /// At most so many characters. Default, and most that are given at once: what one answer may hold.
    #[schemars(range(min = 1))]
    pub(crate) max_chars: Option<u64>,
    /// How long to wait for a run that has not ended yet, in milliseconds. Default 0: the answer comes at once.
    #[schemars(default, range(max = MAX_WAIT_MS))]
    pub(crate) wait_ms: u64,
}

/// Longest wait for a run's end in one call: ten minutes.
const MAX_WAIT_MS: u64 = 600_000;

impl ResultArguments {
    /// # Errors
    /// With every fault.
    pub(crate) fn read(arguments: &Value) -> Result<Self, WorkflowError> {
        let mut reader = Reader::new(arguments)?;
        let run_id = reader.string("runId");
        let offset = reader.integer("offset", 0, u64::MAX);
        let max_chars = reader.integer("maxChars", 1, u64::MAX);
        let wait_ms = reader.integer("waitMs", 0, MAX_WAIT_MS);
        reader.finish()?;
        Ok(Self {
            run_id: run_id.unwrap_or_default(),
            offset: offset.unwrap_or_default(),
            max_chars,
            wait_ms: wait_ms.unwrap_or_default(),
        })
    }
}

/// Takes JSON text for the object or array that it says: models often send one where the other was meant. Other text
/// stays text.
fn decoded(value: &Value) -> Value {
    let Value::String(text) = value else { return value.clone() };
    match serde_json::from_str(text) {
        Ok(decoded @ (Value::Object(_) | Value::Array(_))) => decoded,
        _ => value.clone(),
    }
}

/// Reads an object field by field, and keeps all that is wrong with it.
struct Reader<'a> {
    fields: &'a Map<String, Value>,
    known: Vec<&'static str>,
    faults: Vec<WorkflowError>,
}

impl<'a> Reader<'a> {
    fn new(arguments: &'a Value) -> Result<Self, WorkflowError> {
        match arguments.as_object() {
            Some(fields) => Ok(Self { fields, known: Vec::new(), faults: Vec::new() }),
            None => Err(ErrorCode::InvalidArgument.error("arguments must be an object").on("")),
        }
    }

    /// A field, which is thereby known.
    fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.fields.get(name)
    }

    fn is_given(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn has_unknown(&self) -> bool {
        self.fields.keys().any(|name| !self.known.contains(&name.as_str()))
    }

    /// A string that must be there.
    fn string(&mut self, name: &'static str) -> Option<String> {
        match self.take(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => self.fault(name, "must be a string"),
            None => self.fault(name, "is missing"),
        }
    }

    /// An integer that may be missing.
    fn integer(&mut self, name: &'static str, min: u64, max: u64) -> Option<u64> {
        match self.take(name) {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_u64() {
                Some(number) if (min..=max).contains(&number) => Some(number),
                _ if max == u64::MAX => self.fault(name, &format!("must be an integer, at least {min}")),
                _ => self.fault(name, &format!("must be an integer from {min} to {max}")),
            },
        }
    }

    fn fault<T>(&mut self, path: &str, what: &str) -> Option<T> {
        self.check(Err(ErrorCode::InvalidArgument.error(format!("{path} {what}")).on(path)))
    }

    fn check<T>(&mut self, read: Result<T, WorkflowError>) -> Option<T> {
        read.map_err(|error| self.faults.push(error)).ok()
    }

    /// # Errors
    /// With every fault; code and path are those of the first.
    fn finish(mut self) -> Result<(), WorkflowError> {
        let known = self.known.join(", ");
        for name in self.fields.keys().filter(|name| !self.known.contains(&name.as_str())) {
            let message = format!("{name} is not a known argument (known: {known})");
            self.faults.push(ErrorCode::InvalidArgument.error(message).on(name.as_str()));
        }
        let messages: Vec<String> = self.faults.iter().map(|fault| fault.message.clone()).collect();
        match self.faults.into_iter().next() {
            None => Ok(()),
            Some(first) => Err(WorkflowError { message: messages.join("; "), ..first }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fault_of_the_arguments_is_reported_at_once_with_its_path() {
        let arguments = json!({"meta": {"name": "", "colour": 1}, "arguments": {}, "script": 5});
        let error = WorkflowArguments::read(&arguments).unwrap_err();
        assert_eq!(error.code, Some(ErrorCode::InvalidArgument));
        for fault in [
            "script must be a string",
            "meta.name must not be empty",
            "meta.description is missing",
            "meta.colour is not a known field",
            "arguments is not a known argument (known: meta, script, args)",
        ] {
            assert!(error.message.contains(fault), "{error}");
        }
        let missing = WorkflowArguments::read(&json!({})).unwrap_err();
        assert_eq!(missing.message, "script is missing; meta.name is missing; meta.description is missing");
        let untyped = json!({"script": ["return 1"]});
        assert_eq!(WorkflowArguments::read(&untyped).unwrap_err().message, "script must be a string");
        let misspelled = WorkflowArguments::read(&json!({"scirpt": "return 1"})).unwrap_err();
        assert_eq!(
            misspelled.message,
            "script is missing; scirpt is not a known argument (known: meta, script, args)"
        );
        let only_meta = WorkflowArguments::read(&json!({"meta": [], "script": ""})).unwrap_err();
        assert_eq!((only_meta.code, only_meta.path.as_deref()), (Some(ErrorCode::MetaInvalid), Some("meta")));
        for arguments in [json!(null), json!([]), json!("text"), json!(1)] {
            assert!(WorkflowArguments::read(&arguments).is_err(), "{arguments}");
        }
    }

    #[test]
    fn text_that_says_an_object_or_array_is_taken_as_that() {
        let read = |args: Value| {
            let arguments = json!({"meta": {"name": "n", "description": "d"}, "script": "", "args": args});
            WorkflowArguments::read(&arguments).unwrap().args.unwrap()
        };
        let deep = "[".repeat(1_000_000);
        for (given, taken) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!("{\"a\": 1}"), json!({"a": 1})),
            (json!(" [1, 2]\n"), json!([1, 2])),
            (json!([1]), json!([1])),
            (json!("hello"), json!("hello")),
            (json!("{not json"), json!("{not json")),
            (json!("5"), json!("5")),
            (json!("null"), json!("null")),
            (json!("\"text\""), json!("\"text\"")),
            (json!(7), json!(7)),
            (json!(null), json!(null)),
            (json!(deep), json!(deep)),
        ] {
            assert_eq!(read(given), taken);
        }
    }

    #[test]
    fn metadata_may_stand_in_a_header_or_in_text() {
        let header = "export const meta = {name: 'h', description: 'd'}\nreturn 1";
        for arguments in [json!({"script": header}), json!({"script": header, "meta": null})] {
            assert_eq!(WorkflowArguments::read(&arguments).unwrap().meta, None);
        }
        let text = json!({"script": "", "meta": r#"{"name": "n", "description": "d"}"#});
        assert_eq!(WorkflowArguments::read(&text).unwrap().meta, Some(Meta::new("n", "d")));
    }

    #[test]
    fn a_script_that_hides_its_header_is_told_as_that_and_not_as_missing_metadata() {
        let header = "export const meta = {name: 'h', description: 'd'}";
        for (script, code, told) in [
            (format!("```js\n{header}\nreturn 1\n```"), ErrorCode::ScriptParse, "Markdown code fence"),
            (format!("\n\n  ```\n{header}\n```"), ErrorCode::ScriptParse, "Markdown code fence"),
            (format!("const a = 1\n{header}"), ErrorCode::MetaInvalid, "must come first"),
            (header.replace("export ", ""), ErrorCode::MetaInvalid, "must be exported"),
            ("return 1".to_owned(), ErrorCode::MetaInvalid, "give `meta` with a name"),
        ] {
            for arguments in [json!({"script": script}), json!({"script": script, "meta": null})] {
                let error = WorkflowArguments::read(&arguments).unwrap_err();
                assert_eq!(error.code, Some(code), "{script}: {error}");
                assert!(error.message.contains(told), "{script}: {error}");
                assert!(!error.message.contains("meta.name is missing"), "{script}: {error}");
            }
        }
        let fenced = json!({"script": "```js\nreturn 1\n```", "meta": {"name": "n", "description": "d"}});
        assert!(WorkflowArguments::read(&fenced).is_ok(), "the engine tells of it, with its place");
    }

    #[test]
    fn a_status_may_be_asked_of_one_run_or_of_all() {
        for (arguments, run_id) in
            [(json!({}), None), (json!({"runId": null}), None), (json!({"runId": "r"}), Some("r"))]
        {
            assert_eq!(StatusArguments::read(&arguments).unwrap().run_id.as_deref(), run_id);
        }
        for arguments in [json!({"runId": 1}), json!({"run_id": "r"}), json!([])] {
            assert!(StatusArguments::read(&arguments).is_err(), "{arguments}");
        }
    }

    #[test]
    fn numbers_are_checked_against_their_range() {
        let read = |arguments| ResultArguments::read(&arguments);
        let plain = read(json!({"runId": "r"})).unwrap();
        assert_eq!((plain.offset, plain.max_chars, plain.wait_ms), (0, None, 0));
        let error = read(json!({"offset": -1, "maxChars": 0, "waitMs": 1e9, "page": 2})).unwrap_err();
        for fault in ["runId is missing", "offset must", "maxChars must", "waitMs must", "page is not"] {
            assert!(error.message.contains(fault), "{error}");
        }
    }
}
