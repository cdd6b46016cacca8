//! What people see of a call while it runs.

use fanfold::Script;
use serde::Serialize;
use serde_json::Value;

/// How a host shows a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallCard {
    /// The kind of card: always `generic`.
    pub card: &'static str,
    /// `workflow: ` and the workflow's name, where the arguments tell one.
    pub title: String,
    /// The script.
    pub raw_input: String,
}

/// How a host shows what came of a call: in the generic card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResultCard {
    /// The kind of card: always `generic`.
    pub card: &'static str,
}

const GENERIC: &str = "generic";

impl CallCard {
    /// The card of a call with these arguments, whatever they are.
    pub(crate) fn of(arguments: &Value) -> Self {
        let script = match arguments.get("script") {
            Some(Value::String(script)) => script.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let title = match name(arguments, &script) {
            Some(name) => format!("workflow: {name}"),
            None => "workflow".to_owned(),
        };
        Self { card: GENERIC, title, raw_input: script }
    }
}

impl ResultCard {
    pub(crate) fn generic() -> Self {
        Self { card: GENERIC }
    }
}

/// The name that stands in `meta`, or else in the script's header.
fn name(arguments: &Value, script: &str) -> Option<String> {
    match arguments.get("meta").and_then(|meta| meta.get("name")) {
        Some(Value::String(name)) if !name.is_empty() => Some(name.clone()),
        _ => Script::read(script, None).ok().map(|script| script.meta.name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_card_can_be_made_of_any_arguments() {
        let header = "export const meta = {name: 'h', description: 'd'}\nreturn 1";
        for (arguments, title, raw_input) in [
            (json!({"meta": {"name": "m"}, "script": "return 1"}), "workflow: m", "return 1"),
            (json!({"script": header}), "workflow: h", header),
            (json!({"meta": {"name": ""}, "script": "x"}), "workflow", "x"),
            (json!({"meta": {"name": 3}, "script": 4}), "workflow", "4"),
            (json!({"meta": "m", "script": null}), "workflow", "null"),
            (json!({"meta": []}), "workflow", ""),
            (json!({}), "workflow", ""),
            (json!([1]), "workflow", ""),
            (json!("text"), "workflow", ""),
            (json!(null), "workflow", ""),
        ] {
            let card = CallCard::of(&arguments);
            assert_eq!((card.title.as_str(), card.raw_input.as_str()), (title, raw_input), "{arguments}");
        }
        assert_eq!(
            serde_json::to_value(CallCard::of(&json!({"meta": {"name": "m"}, "script": "s"}))).unwrap(),
            json!({"card": "generic", "title": "workflow: m", "rawInput": "s"})
        );
    }
}
