//! `fanfold plan`.

use std::path::Path;

use serde_json::{Value, json};

use crate::fanfold::{fanfold, run, stderr, stdout};

fn planned(script: &str, options: &[&str]) -> Value {
    let mut args = vec!["plan", "-", "--json"];
    args.extend(options);
    let output = run(&args, script);
    serde_json::from_str(stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

#[test]
fn a_plan_counts_agents_their_width_and_how_many_stand_in_a_row() {
    let script = "
        phase('Read')
        const files = await parallel([1, 2, 3, 4].map((n) => () => agent('read ' + n)))
        phase('Review')
        const reviews = await pipeline(files, (file) => agent('review', {model: 'small'}), () => agent('verify', {model: 'large'}))
        return await agent('report', {phase: 'Report'})";
    let plan = planned(script, &["--limits", r#"{"maxConcurrentAgents": 2}"#]);
    assert_eq!((&plan["agents"], &plan["width"], &plan["rounds"]), (&json!(13), &json!(4), &json!(4)));
    assert_eq!(plan["configured"], json!({"maxConcurrentAgents": 2, "width": 2, "rounds": 7}));
    let phases: Vec<_> =
        plan["phases"].as_array().unwrap().iter().map(|phase| (&phase["title"], &phase["agents"])).collect();
    assert_eq!(
        phases,
        [(&json!("Read"), &json!(4)), (&json!("Review"), &json!(8)), (&json!("Report"), &json!(1))]
    );
    assert_eq!(
        plan["models"],
        json!([{"model": null, "agents": 5}, {"model": "large", "agents": 4}, {"model": "small", "agents": 4}])
    );
    let groups = plan["phases"][0]["groups"].as_array().unwrap();
    assert_eq!(
        (groups.len(), &groups[0]["firstLabel"], &groups[0]["lastLabel"]),
        (1, &json!("read 1"), &json!("read 4"))
    );
}

#[test]
fn a_plan_says_what_would_be_refused() {
    let script = "
        agent('lost')
        return await parallel(Array.from({length: 5}, (_, n) => () =>
            agent('x', {model: 'm', agentType: 'nobody-' + n % 2, isolation: 'worktree'})))";
    let limits = r#"{"maxTotalAgents": 4}"#;
    let folder = tempfile::tempdir().unwrap();
    let script_file = folder.path().join("s.js");
    std::fs::write(&script_file, script).unwrap();
    let output = fanfold()
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .args(["plan", "s.js", "--json", "--limits", limits, "--agent-command", "claude -p"])
        .output()
        .unwrap();
    let plan: Value = serde_json::from_str(stdout(&output)).unwrap();
    let refused: Vec<(&str, u64)> = plan["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refusal| (refusal["code"].as_str().unwrap(), refusal["agents"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("UNSUPPORTED_OPTION", 5),
        ("UNSUPPORTED_OPTION", 5),
        ("AGENT_START", 3),
        ("AGENT_START", 2),
        ("AGENT_CAP", 2),
    ];
    assert_eq!(refused, expected, "{plan}");
    assert_eq!(plan["neverAwaited"], 1);
}

#[test]
fn a_script_that_fails_in_a_plan_shows_what_it_planned_and_why_it_failed() {
    let output = run(&["plan", "-"], "await agent('one'); throw new Error('no such field')");
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("agents   1"), "{}", stdout(&output));
    assert!(stderr(&output).contains("no such field"), "{}", stderr(&output));
}

#[test]
fn a_plan_of_each_example_is_something_to_read() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for (script, args) in
        [("review", "@review.args.json"), ("research", r#"{"question": "Why?"}"#), ("migrate", "{}")]
    {
        let output = fanfold()
            .current_dir(&examples)
            .args([
                "plan",
                &format!("{script}.js"),
                "--args",
                args,
                "--limits",
                r#"{"maxConcurrentAgents": 8}"#,
            ])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{script}: {}", stderr(&output));
        assert!(!stdout(&output).contains('\u{1b}'), "{}", stdout(&output));
        insta::assert_snapshot!(format!("plan_of_{script}"), stdout(&output));
    }
}

#[test]
fn a_script_that_goes_on_until_its_budget_is_used_up_ends_in_a_plan() {
    let script = "let n = 0; while (budget.remaining() >= 1000) { await agent('x'); n++ } return n";
    let plan = planned(script, &["--limits", r#"{"maxOutputTokens": 5000}"#]);
    assert_eq!((&plan["agents"], &plan["stopReason"]), (&json!(5), &json!("completed")));
    assert_eq!(plan["budget"], json!({"maxOutputTokens": 5000, "assumedPerAgent": 1000}));
}

#[test]
fn the_readmes_script_is_an_example_that_can_be_planned() {
    let script = include_str!("../../../../examples/triage.js");
    assert!(include_str!("../../../../README.md").contains(&format!("```js\n{script}```\n")));
    let plan = planned(script, &["--args", r#"{"reports": ["the page is blank", "it is slow"]}"#]);
    assert_eq!((&plan["agents"], &plan["stopReason"]), (&json!(6), &json!("completed")));
}
