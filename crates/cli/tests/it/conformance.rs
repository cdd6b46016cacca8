//! The conformance cases through `fanfold run --json`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use fanfold::{Event, RunResult, StopReason, WorkflowError};
use fanfold_tests::conformance::{Case, Observed, cases, check};
use serde_json::Value;

use crate::fanfold::{run, stderr, stdout};

#[test]
fn every_case_passes() {
    let cases = cases();
    let observed = Mutex::new(BTreeMap::new());
    let next = Mutex::new(cases.iter());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(case) = next.lock().unwrap().next() else { return };
                    let seen = observe(case);
                    observed.lock().unwrap().insert(case.name.clone(), seen);
                }
            });
        }
    });
    check(&cases, &observed.into_inner().unwrap());
}

fn observe(case: &Case) -> Observed {
    let meta = case.meta.to_string();
    let limits = case.limits().to_string();
    let args = case.args.as_ref().map(Value::to_string);
    let cancel = case.cancel_after_ms.map(|ms| ms.to_string());
    let mut words = vec!["run", "-", "--json", "--with-requests", "--meta", &meta, "--limits", &limits];
    words.extend(args.iter().flat_map(|args| ["--args", args]));
    words.extend(cancel.iter().flat_map(|ms| ["--cancel-after-ms", ms]));
    let output = run(&words, &case.script);

    let mut lines: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", case.name))
        })
        .collect();
    let last = lines.pop().unwrap_or_else(|| panic!("{}: no output; {}", case.name, stderr(&output)));
    assert_eq!(last["type"], "result", "{}", case.name);
    let started = last.get("id").is_some();
    assert_eq!(output.status.code(), Some(status(&last, started)), "{}", case.name);
    assert_eq!(
        started,
        !lines.is_empty(),
        "{}: a script that cannot start prints only the last line",
        case.name
    );

    let requests = lines.iter_mut().filter_map(|line| line.as_object_mut()?.remove("request")).collect();
    Observed {
        text: last["text"].as_str().expect("text").to_owned(),
        result: if started { Ok(result(&last)) } else { Err(error(&last).expect("an error")) },
        events: lines.into_iter().map(event).collect(),
        requests,
        sees_failed_starts: false,
        records: None,
    }
}

fn event(line: Value) -> Event {
    serde_json::from_value(line.clone()).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn result(line: &Value) -> RunResult {
    let reason: StopReason = serde_json::from_value(line["stopReason"].clone()).expect("a stop reason");
    let mut result = RunResult::new(reason, error(line));
    if let Some(value) = line.get("value") {
        result.value = serde_json::value::to_raw_value(value).expect("JSON");
    }
    result.agents_started = line["agentsStarted"].as_u64().and_then(|n| n.try_into().ok()).expect("a count");
    result
}

fn error(line: &Value) -> Option<WorkflowError> {
    line.get("error").map(|error| serde_json::from_value(error.clone()).expect("an error"))
}

fn status(last: &Value, started: bool) -> i32 {
    match last["stopReason"].as_str() {
        Some("completed") => 0,
        Some("cancelled") => 130,
        _ if started => 1,
        _ => 2,
    }
}
