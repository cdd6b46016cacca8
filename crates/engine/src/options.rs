//! The options of `agent()`: from the JSON a script sends to [`AgentOptions`].
//!
//! This is the one place that knows what each option may be; the guest passes on whatever is plain data.

use fanfold_types::{ErrorCode, WorkflowError};
use serde_json::{Map, Value};

use crate::closest::closest;
use crate::schema::Schemas;
use crate::subagents::AgentOptions;

pub(crate) const KNOWN: [&str; 11] = [
    "label",
    "phase",
    "schema",
    "provider",
    "model",
    "effort",
    "agentType",
    "isolation",
    "timeoutMs",
    "stallMs",
    "retries",
];

/// A retry is a process or a request that no other cap counts.
const MAX_RETRIES: u64 = 10;

/// The longest name of an option that is the script's own; it is in a warning.
const MAX_PRIVATE: usize = 40;

/// A year.
const MAX_MS: u64 = 365 * 24 * 3600 * 1000;

/// Reads and checks the options of one call. Gives the names beside them that are the script's own: those that begin
/// with `_` mean nothing to anybody else.
///
/// # Errors
/// `INVALID_ARGUMENT`, `UNSUPPORTED_OPTION` or `UNSUPPORTED_SCHEMA`, with the option as its path.
pub(crate) fn parse(json: &str, schemas: &Schemas) -> Result<(AgentOptions, Vec<String>), WorkflowError> {
    if json == "{}" {
        return Ok(Default::default());
    }
    let value: Value = serde_json::from_str(json)
        .map_err(|error| ErrorCode::InvalidArgument.error(format!("agent() options: {error}")))?;
    let Value::Object(mut fields) = value else {
        return Err(ErrorCode::InvalidArgument.error("agent() options must be an object"));
    };
    let is_private =
        |name: &str| name.starts_with('_') && !name.starts_with("__") && name.len() <= MAX_PRIVATE;
    let private: Vec<String> = fields.keys().filter(|name| is_private(name)).cloned().collect();
    fields.retain(|name, _| !is_private(name));
    if let Some(name) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        let meant = closest(name, KNOWN.into_iter());
        let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
        let message = format!("agent() has no option {name:?} (it has: {}){meant}", KNOWN.join(", "));
        return Err(ErrorCode::UnsupportedOption.error(message).on(name));
    }
    let validator = fields.remove("schema").map(|schema| schemas.get(&schema)).transpose()?;
    let options = AgentOptions {
        schema: validator.as_ref().map(|schema| schema.as_json().clone()),
        validator,
        label: text(&fields, "label", true)?,
        phase: text(&fields, "phase", false)?,
        provider: text(&fields, "provider", false)?,
        model: text(&fields, "model", false)?,
        effort: text(&fields, "effort", false)?,
        agent_type: text(&fields, "agentType", false)?,
        definition: None,
        isolation: text(&fields, "isolation", false)?,
        timeout_ms: integer(&fields, "timeoutMs", 1, MAX_MS)?,
        stall_ms: integer(&fields, "stallMs", 1, MAX_MS)?,
        retries: integer(&fields, "retries", 0, MAX_RETRIES)?.and_then(|n| u32::try_from(n).ok()),
    };
    if let Some(isolation) = options.isolation.as_deref().filter(|isolation| *isolation != "worktree") {
        return Err(invalid("isolation", &format!("must be \"worktree\", got {isolation:?}")));
    }
    Ok((options, private))
}

fn text(
    fields: &Map<String, Value>,
    name: &str,
    may_be_empty: bool,
) -> Result<Option<String>, WorkflowError> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if may_be_empty || !text.is_empty() => Ok(Some(text.clone())),
        Some(Value::String(_)) => Err(invalid(name, "must not be empty")),
        Some(other) => Err(invalid(name, &format!("must be a string, got {}", shown(other)))),
    }
}

fn integer(
    fields: &Map<String, Value>,
    name: &str,
    least: u64,
    most: u64,
) -> Result<Option<u64>, WorkflowError> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    // JavaScript has one kind of number: 1e3 is as good as 1000.
    let number =
        value.as_u64().or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64));
    match number {
        Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => Err(invalid(name, &format!("must be an integer from {least} to {most}, got {}", shown(value)))),
    }
}

fn invalid(name: &str, fault: &str) -> WorkflowError {
    ErrorCode::InvalidArgument.error(format!("agent() option {name:?} {fault}")).on(name)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
        other => other.to_string().chars().take(40).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &str) -> Result<(AgentOptions, Vec<String>), WorkflowError> {
        parse(json, &Schemas::default())
    }

    #[test]
    fn every_option_is_read() {
        let value = json!({
            "label": "", "phase": "p", "schema": {"type": "object"}, "provider": "a", "model": "m", "effort": "high",
            "agentType": "t", "isolation": "worktree", "timeoutMs": 1e3, "stallMs": 5, "retries": 0,
        });
        let (options, _) = read(&value.to_string()).unwrap();
        assert_eq!(
            serde_json::to_value(&options).unwrap(),
            json!({
                "label": "", "phase": "p", "schema": {"type": "object"}, "provider": "a", "model": "m", "effort": "high",
                "agentType": "t", "isolation": "worktree", "timeoutMs": 1000, "stallMs": 5, "retries": 0,
            })
        );
        let (none, _) = read("{}").unwrap();
        assert!(serde_json::to_value(none).unwrap().as_object().unwrap().is_empty());
    }

    #[test]
    fn names_that_are_the_scripts_own_are_left_out_and_told() {
        let (options, private) = read(r#"{"label":"l","_group":{"a":[1]},"_n":1}"#).unwrap();
        assert_eq!(
            (options.label.as_deref(), private),
            (Some("l"), vec!["_group".to_owned(), "_n".to_owned()])
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        use ErrorCode::{InvalidArgument, UnsupportedOption, UnsupportedSchema};
        for (json, code, path) in [
            ("null", InvalidArgument, None),
            ("[]", InvalidArgument, None),
            ("\"label\"", InvalidArgument, None),
            (r#"{"foo":1}"#, UnsupportedOption, Some("foo")),
            (r#"{"__proto__":1}"#, UnsupportedOption, Some("__proto__")),
            (r#"{"label":1}"#, InvalidArgument, Some("label")),
            (r#"{"model":null}"#, InvalidArgument, Some("model")),
            (r#"{"phase":""}"#, InvalidArgument, Some("phase")),
            (r#"{"isolation":"vm"}"#, InvalidArgument, Some("isolation")),
            (r#"{"timeoutMs":0}"#, InvalidArgument, Some("timeoutMs")),
            (r#"{"timeoutMs":1.5}"#, InvalidArgument, Some("timeoutMs")),
            (r#"{"retries":-1}"#, InvalidArgument, Some("retries")),
            (r#"{"retries":11}"#, InvalidArgument, Some("retries")),
            (r#"{"timeoutMs":1e300}"#, InvalidArgument, Some("timeoutMs")),
            (r#"{"schema":null}"#, UnsupportedSchema, Some("schema")),
        ] {
            let error = read(json).unwrap_err();
            assert_eq!((error.code, error.path.as_deref()), (Some(code), path), "{json}");
        }
    }
}
