//! What a script says it is.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ErrorCode, WorkflowError};

/// The name, the purpose and the planned phases of a workflow.
///
/// Deserialising checks types only; [`Meta::from_value`] checks everything and reports it in one error.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Meta {
    /// A short name in kebab-case. Never empty.
    #[cfg_attr(feature = "schemars", schemars(length(min = 1)))]
    pub name: String,
    /// What the workflow does. Never empty.
    #[cfg_attr(feature = "schemars", schemars(length(min = 1)))]
    pub description: String,
    /// When to choose this workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_to_use: Option<String>,
    /// The phases the author plans. A run may enter others, and may skip these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<Phase>>,
    /// What the script takes as its `args`: a JSON Schema with an object at its root. The engine checks it, and a run's
    /// args against it before the run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", tsify(optional, type = "Record<string, unknown>"))]
    pub args: Option<Map<String, Value>>,
}

/// A phase the author plans.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Phase {
    /// What `phase()` will be called with. Never empty.
    #[cfg_attr(feature = "schemars", schemars(length(min = 1)))]
    pub title: String,
    /// What happens in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The model provider its agents are meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model its agents are meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Meta {
    /// Metadata with a name and a description alone.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            when_to_use: None,
            phases: None,
            args: None,
        }
    }

    /// Reads metadata from untyped JSON.
    ///
    /// # Errors
    /// `META_INVALID` with every violation and its path in the message, and the first one's path beside it.
    ///
    /// ```
    /// use fanfold_types::Meta;
    /// let value = serde_json::json!({"name": "", "extra": 1});
    /// let error = Meta::from_value(&value).unwrap_err();
    /// assert_eq!(error.path.as_deref(), Some("meta.name"));
    /// assert!(error.message.contains("meta.description") && error.message.contains("meta.extra"));
    /// ```
    pub fn from_value(value: &Value) -> Result<Self, WorkflowError> {
        let (meta, mut faults) = Self::read(value);
        faults.found.append(&mut faults.unknown);
        meta.filter(|_| faults.found.is_empty()).ok_or_else(|| faults.into_error())
    }

    /// Reads metadata from the header of a script: fields that are not known are ignored. Gives a warning for each of
    /// them, with its path.
    ///
    /// # Errors
    /// As [`Meta::from_value`], if there is any other violation.
    ///
    /// ```
    /// use fanfold_types::Meta;
    /// let value = serde_json::json!({"name": "n", "description": "d", "version": "1.2"});
    /// let (meta, ignored) = Meta::from_header(&value).unwrap();
    /// assert_eq!((meta, ignored[0].path.as_deref()), (Meta::new("n", "d"), Some("meta.version")));
    /// ```
    pub fn from_header(value: &Value) -> Result<(Self, Vec<WorkflowError>), WorkflowError> {
        let (meta, mut faults) = Self::read(value);
        let Some(meta) = meta.filter(|_| faults.found.is_empty()) else {
            // An unknown field may be the misspelled one that is missing.
            faults.found.append(&mut faults.unknown);
            return Err(faults.into_error());
        };
        let warning =
            |(path, fault)| WorkflowError::thrown(format!("{path} {fault}, and is ignored")).on(path);
        Ok((meta, faults.unknown.into_iter().map(warning).collect()))
    }

    /// What can be read of metadata, and what is wrong with it.
    fn read(value: &Value) -> (Option<Self>, Faults) {
        let mut faults = Faults::default();
        let Some(fields) = value.as_object() else {
            faults.add("meta", format!("must be an object, got {}", kind(value)));
            return (None, faults);
        };
        let name = faults.required(fields, "meta", "name");
        let description = faults.required(fields, "meta", "description");
        let when_to_use = faults.optional(fields, "meta", "whenToUse");
        let phases = fields.get("phases").map(|phases| match phases.as_array() {
            Some(phases) => {
                phases.iter().enumerate().filter_map(|(i, phase)| faults.phase(i, phase)).collect()
            }
            None => {
                faults.add("meta.phases", format!("must be an array, got {}", kind(phases)));
                Vec::new()
            }
        });
        let args = fields.get("args").and_then(|args| {
            if !args.is_object() {
                faults.add("meta.args", format!("must be a JSON Schema object, got {}", kind(args)));
            }
            args.as_object().cloned()
        });
        faults.unknown(fields, "meta", &["name", "description", "whenToUse", "phases", "args"]);
        let meta = name.zip(description);
        (meta.map(|(name, description)| Self { name, description, when_to_use, phases, args }), faults)
    }

    /// Checks metadata that was built in Rust.
    ///
    /// # Errors
    /// As [`Meta::from_value`].
    pub fn validate(&self) -> Result<(), WorkflowError> {
        let mut faults = Faults::default();
        let phases = self.phases.iter().flatten().enumerate();
        let titles = phases.map(|(i, phase)| (format!("meta.phases[{i}].title"), &phase.title));
        let named =
            [("meta.name".to_string(), &self.name), ("meta.description".to_string(), &self.description)];
        for (path, text) in named.into_iter().chain(titles) {
            if text.is_empty() {
                faults.add(&path, "must not be empty");
            }
        }
        if faults.found.is_empty() { Ok(()) } else { Err(faults.into_error()) }
    }
}

/// The violations found so far, as (path, what is wrong).
#[derive(Default)]
struct Faults {
    found: Vec<(String, String)>,
    /// Fields that are not known.
    unknown: Vec<(String, String)>,
}

impl Faults {
    fn add(&mut self, path: &str, fault: impl Into<String>) {
        self.found.push((path.to_string(), fault.into()));
    }

    fn required(&mut self, fields: &Map<String, Value>, at: &str, name: &str) -> Option<String> {
        if !fields.contains_key(name) {
            self.add(&format!("{at}.{name}"), "is missing");
        }
        let text = self.optional(fields, at, name)?;
        if text.is_empty() {
            self.add(&format!("{at}.{name}"), "must not be empty");
        }
        Some(text)
    }

    fn optional(&mut self, fields: &Map<String, Value>, at: &str, name: &str) -> Option<String> {
        match fields.get(name)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.add(&format!("{at}.{name}"), format!("must be a string, got {}", kind(other)));
                None
            }
        }
    }

    fn unknown(&mut self, fields: &Map<String, Value>, at: &str, known: &[&str]) {
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let fault = format!("is not a known field (known: {})", known.join(", "));
            self.unknown.push((format!("{at}.{name}"), fault));
        }
    }

    fn phase(&mut self, index: usize, value: &Value) -> Option<Phase> {
        let at = format!("meta.phases[{index}]");
        let Some(fields) = value.as_object() else {
            self.add(&at, format!("must be an object, got {}", kind(value)));
            return None;
        };
        let title = self.required(fields, &at, "title");
        let detail = self.optional(fields, &at, "detail");
        let provider = self.optional(fields, &at, "provider");
        let model = self.optional(fields, &at, "model");
        self.unknown(fields, &at, &["title", "detail", "provider", "model"]);
        Some(Phase { title: title?, detail, provider, model })
    }

    fn into_error(self) -> WorkflowError {
        let first = self.found.first().map(|(path, _)| path.clone()).unwrap_or_default();
        let all: Vec<String> = self.found.iter().map(|(path, fault)| format!("{path} {fault}")).collect();
        ErrorCode::MetaInvalid.error(all.join("; ")).on(first)
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_full_meta_survives_the_round_trip() {
        let value = json!({
            "name": "review", "description": "d", "whenToUse": "often",
            "phases": [{"title": "A", "detail": "x", "provider": "p", "model": "m"}, {"title": "B"}],
            "args": {"type": "object", "properties": {"files": {"type": "array"}}},
        });
        let meta = Meta::from_value(&value).unwrap();
        assert_eq!(serde_json::to_value(&meta).unwrap(), value);
        assert_eq!(meta.validate(), Ok(()));
    }

    #[test]
    fn every_violation_is_reported_at_once_with_its_path() {
        let value = json!({
            "description": 3, "whenToUse": [], "more": 1, "args": true,
            "phases": ["a", {"detail": 1, "provider": {}, "model": null, "colour": "red"}, {"title": ""}],
        });
        let error = Meta::from_value(&value).unwrap_err();
        assert_eq!(error.code, Some(ErrorCode::MetaInvalid));
        let mut faults: Vec<&str> = error.message.split("; ").collect();
        faults.sort_unstable();
        assert_eq!(
            faults,
            [
                "meta.args must be a JSON Schema object, got a boolean",
                "meta.description must be a string, got a number",
                "meta.more is not a known field (known: name, description, whenToUse, phases, args)",
                "meta.name is missing",
                "meta.phases[0] must be an object, got a string",
                "meta.phases[1].colour is not a known field (known: title, detail, provider, model)",
                "meta.phases[1].detail must be a string, got a number",
                "meta.phases[1].model must be a string, got null",
                "meta.phases[1].provider must be a string, got an object",
                "meta.phases[1].title is missing",
                "meta.phases[2].title must not be empty",
                "meta.whenToUse must be a string, got an array",
            ]
        );
    }

    #[test]
    fn a_header_may_have_fields_that_are_not_known() {
        let value = json!({
            "name": "n", "description": "d", "version": 1, "phases": [{"title": "A", "colour": "red"}, {"title": "B"}],
        });
        let (meta, ignored) = Meta::from_header(&value).unwrap();
        assert_eq!(meta.phases.map(|phases| phases.len()), Some(2));
        let mut paths: Vec<_> = ignored.iter().filter_map(|warning| warning.path.as_deref()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["meta.phases[0].colour", "meta.version"]);
        assert!(ignored.iter().all(|warning| warning.code.is_none() && warning.message.contains("ignored")));

        // What is missing may be there under another name.
        let error = Meta::from_header(&json!({"name": "n", "desciption": "d"})).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("meta.description"));
        assert!(error.message.contains("meta.desciption is not a known field"), "{}", error.message);
        for wrong in
            [json!({"name": 1, "description": "d"}), json!({"name": "n", "description": "d", "phases": 1})]
        {
            assert!(Meta::from_header(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_an_object_is_metadata() {
        for value in [json!(null), json!([]), json!("x"), json!(1)] {
            assert_eq!(Meta::from_value(&value).unwrap_err().path.as_deref(), Some("meta"));
        }
    }

    #[test]
    fn metadata_built_in_rust_is_checked_too() {
        assert_eq!(Meta::new("", "").validate().unwrap_err().message.matches("must not be empty").count(), 2);
    }
}
