//! The examples: what they say where agents fail.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::fanfold::{fanfold, stderr, stdout};

/// Runs an example, whose agents are this shell script. It finds the prompt in `$prompt`.
fn example(name: &str, agent: &str, args: &Value) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("agent.sh"), format!("prompt=$(cat)\n{agent}\n")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.js"));
    let mut command = fanfold();
    command.current_dir(folder.path()).arg("run").arg(script);
    command.args(["--agent-command", "sh agent.sh", "--args", &args.to_string()]);
    command.output().unwrap()
}

fn value(output: &Output) -> Value {
    serde_json::from_str(stdout(output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

#[test]
fn triage_tells_reports_that_were_not_judged_from_mild_ones() {
    let agent = r#"case "$prompt" in
      *blank*) exit 1 ;;
      *slow*) [ $((FANFOLD_SEQ % 3)) = 0 ] || exit 1; echo '{"severity": 2}' ;;
      *) echo '{"severity": 4}' ;;
    esac"#;
    let output = example("triage", agent, &json!({"reports": ["it is blank", "it is slow", "it is red"]}));
    assert_eq!(
        value(&output),
        json!({
            "judged": [
                {"report": "it is red", "severity": 4, "readers": 3},
                {"report": "it is slow", "severity": 2, "readers": 1},
            ],
            "notJudged": ["it is blank"],
        })
    );
}

#[test]
fn review_has_no_verdict_that_missing_votes_could_change() {
    let agent = r#"case "$FANFOLD_LABEL" in
      read*) echo "a file" ;;
      "correctness of"*) echo '{"findings": [
        {"key": "a", "line": 1, "severity": "low", "title": "A"}, {"key": "b", "line": 2, "severity": "low", "title": "B"},
        {"key": "c", "line": 3, "severity": "low", "title": "C"}, {"key": "d", "line": 4, "severity": "low", "title": "D"}]}' ;;
      "security of"*) exit 1 ;;
      *:1) exit 1 ;;
      "vote 1"*:2) exit 1 ;;
      "vote 2"*:2) echo '{"real": false, "reason": "no"}' ;;
      "vote 1"*:3) exit 1 ;;
      *:4) echo '{"real": false, "reason": "no"}' ;;
      vote*) echo '{"real": true, "reason": "yes"}' ;;
      *) exit 1 ;;
    esac"#;
    let lenses = json!({"correctness": "faults", "security": "holes"});
    let output = example("review", agent, &json!({"files": ["a.js"], "lenses": lenses}));
    let value = value(&output);
    let votes = |list: &str| -> Vec<(Value, Value)> {
        let findings = value[list].as_array().unwrap().iter();
        findings.map(|finding| (finding["key"].clone(), finding["votes"].clone())).collect()
    };
    assert_eq!(votes("confirmed"), [(json!("c"), json!({"real": 2, "notReal": 0, "missing": 1}))]);
    assert_eq!(
        votes("undecided"),
        [
            (json!("a"), json!({"real": 0, "notReal": 0, "missing": 3})),
            (json!("b"), json!({"real": 1, "notReal": 1, "missing": 1})),
        ]
    );
    assert_eq!(value["notReviewed"], json!([{"file": "a.js", "lens": "security"}]));
    let statistics = &value["statistics"];
    assert_eq!((&statistics["refuted"], &statistics["unanswered"]), (&json!(1), &json!(6)));
    assert_eq!(value["summary"], Value::Null);
}

#[test]
fn research_rejects_no_claim_that_was_not_checked() {
    let agent = r#"case "$FANFOLD_LABEL" in
      plan) exit 1 ;;
      research*) echo notes ;;
      "claims of"*) echo '{"claims": [{"claim": "one", "source": "s", "passage": "p"},
        {"claim": "two", "source": "s", "passage": "p"}, {"claim": "three", "source": "s", "passage": "p"}]}' ;;
      *": one") exit 1 ;;
      "scope: two") exit 1 ;;
      *": two") echo '{"holds": true, "reason": "yes"}' ;;
      *": three") echo '{"holds": false, "reason": "no"}' ;;
      *) exit 1 ;;
    esac"#;
    let value = value(&example("research", agent, &json!({"question": "why?"})));
    let claims = |list: &str| -> Vec<Value> {
        value[list].as_array().unwrap().iter().map(|claim| claim["claim"].clone()).collect()
    };
    assert_eq!(
        (claims("claims"), claims("rejected"), claims("undecided")),
        (vec![json!("two")], vec![json!("three")], vec![json!("one")])
    );
    assert_eq!(value["undecided"][0]["missing"], 3);
    assert_eq!(value["statistics"]["planned"], false);
    assert_eq!(
        (&value["answer"], &value["noAnswer"]),
        (&Value::Null, &json!("the agent that writes the answer failed"))
    );
}

#[test]
fn examples_refuse_args_that_they_do_not_take_by_name() {
    for (name, args, says) in [
        ("triage", json!({}), "reports"),
        ("triage", json!({"reports": "one"}), "args.reports"),
        ("triage", json!({"reports": [], "report": "one"}), "report"),
        ("review", json!({"file": ["a.js"]}), "file"),
        ("review", json!({"votes": 0}), "args.votes"),
        ("review", json!({"lenses": ["security"]}), "args.lenses"),
        ("research", json!({"angles": "three"}), "args.angles"),
        ("research", json!({"question": ""}), "args.question"),
    ] {
        let output = example(name, "exit 1", &args);
        assert_eq!(output.status.code(), Some(2), "{name} {args}: {}", stdout(&output));
        let said = stderr(&output);
        assert!(said.contains("--args: ") && said.contains(says), "{name} {args}: {said}");
    }
}
