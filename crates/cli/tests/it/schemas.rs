//! Schemas of scripts with keywords that are not of JSON Schema 2020-12: understood, refused or warned of, and never
//! ignored in silence.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::fanfold::{fanfold, stderr, stdout};

/// What becomes of a script whose agent answers what its prompt says.
enum Outcome {
    /// The run gives this value, and there is nothing to warn of.
    Gives(Value),
    /// The run gives this value, and a check warns with these words.
    Warns(Value, &'static str),
    /// The schema is refused with these words, before an agent starts, and a check warns so.
    Refuses(&'static str),
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas")
}

fn outcomes() -> Vec<(&'static str, Outcome)> {
    use Outcome::{Gives, Refuses, Warns};
    vec![
        ("additionalItems", Refuses("schema.properties.a.additionalItems counts only beside items")),
        ("annotation", Warns(json!({"a": "x"}), "schema.properties.a.markdownDescription is not a keyword")),
        ("data", Gives(json!({"a": {"nullable": true, "requierd": ["b"]}}))),
        ("discriminator", Refuses("schema.properties.pet.discriminator is a keyword of OpenAPI")),
        ("draft-07", Gives(json!({"pair": ["x", 1], "card": "4", "address": "a"}))),
        ("draft-07-violated", Gives(Value::Null)),
        ("exclusive", Gives(Value::Null)),
        ("misplaced", Refuses("schema.severity is not a keyword of JSON Schema; if it is a property")),
        ("misspelt", Refuses("schema.requierd is not a keyword of JSON Schema; did you mean \"required\"?")),
        (
            "misspelt-deep",
            Refuses("schema.$defs.e.enmu is not a keyword of JSON Schema; did you mean \"enum\"?"),
        ),
        ("nullable", Gives(json!({"a": null}))),
        ("nullable-deep", Gives(json!({"l": [{"p": {"t": null}}]}))),
        ("nullable-enum", Gives(json!({"a": null}))),
        ("nullable-name", Gives(json!({"nullable": "x", "requierd": 1}))),
        ("nullable-ref", Gives(json!({"a": null, "b": {"n": 1}}))),
    ]
}

#[test]
fn each_script_has_an_outcome() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let named: BTreeSet<String> = outcomes().into_iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(files, named);
}

#[test]
fn a_run_does_what_the_schema_means_or_refuses_it() {
    for (name, outcome) in outcomes() {
        let output = fanfold()
            .current_dir(folder())
            .args(["run", "--json", "--agents", "scripted", &format!("{name}.js")])
            .output()
            .unwrap();
        let printed = stdout(&output);
        match outcome {
            Outcome::Gives(value) | Outcome::Warns(value, _) => {
                let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
                assert_eq!(last["value"], value, "{name}: {last}");
            }
            Outcome::Refuses(words) => {
                assert!(printed.contains("UNSUPPORTED_SCHEMA"), "{name}: {printed}");
                assert!(printed.replace("\\\"", "\"").contains(words), "{name}: {printed}");
                assert!(!printed.contains("\"agentStart\""), "{name}: {printed}");
            }
        }
    }
}

#[test]
fn a_strict_check_fails_for_what_is_refused_or_ignored() {
    for (name, outcome) in outcomes() {
        let output = fanfold()
            .current_dir(folder())
            .args(["check", "--strict", &format!("{name}.js")])
            .output()
            .unwrap();
        let (status, words) = match outcome {
            Outcome::Gives(_) => (0, ""),
            Outcome::Warns(_, words) | Outcome::Refuses(words) => (1, words),
        };
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{name}: {said}");
        assert!(said.contains(words) && words.is_empty() == said.is_empty(), "{name}: {said}");
    }
}

#[test]
fn a_plan_makes_values_that_the_schema_means_and_shows_its_warnings() {
    for (name, outcome) in outcomes() {
        let output =
            fanfold().current_dir(folder()).args(["plan", "--json", &format!("{name}.js")]).output().unwrap();
        let plan: Value = serde_json::from_str(stdout(&output)).unwrap();
        let warnings = plan["warnings"].to_string();
        match outcome {
            Outcome::Gives(_) => {
                assert_eq!((&plan["warnings"], &plan["stopReason"]), (&json!([]), &json!("completed")))
            }
            Outcome::Warns(_, words) => assert!(warnings.contains(words), "{name}: {plan}"),
            Outcome::Refuses(words) => {
                assert_eq!(plan["error"]["code"], "UNSUPPORTED_SCHEMA", "{name}: {plan}");
                assert!(plan["error"]["message"].as_str().unwrap().contains(words), "{name}: {plan}");
            }
        }
    }
}
