//! The conformance cases through the tool: texts, events and session records too.

use std::collections::BTreeMap;

use fanfold::{RunResult, StopReason, event_stream};
use fanfold_tests::conformance::{Case, Observed, cases, check};
use fanfold_tool::{Answer, Completed, ToolError};
use futures::StreamExt as _;
use serde_json::json;

use super::assistant::{Assistant, by, tool};
use crate::conformance::asked;
use crate::support;

#[tokio::test]
async fn every_case_passes_through_the_tool_on_a_current_thread_runtime() {
    run_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_passes_through_the_tool_on_a_multi_thread_runtime() {
    run_all().await;
}

async fn run_all() {
    let cases = cases();
    let mut observed = BTreeMap::new();
    for case in &cases {
        observed.insert(case.name.clone(), run(case).await);
    }
    check(&cases, &observed);
}

async fn run(case: &Case) -> Observed {
    let (engine, scripted) = support::engine(support::limits(case.limits()));
    let tool = tool(&engine, json!({}));
    let mut arguments = json!({"meta": case.meta, "script": case.script});
    if let Some(args) = &case.args {
        arguments["args"] = args.clone();
    }
    let agent = Assistant::new();
    let (observer, events) = event_stream();
    let called =
        tool.execute(&arguments, by(&agent).cancel_with(case.cancellation()).observe(observer)).await;

    assert_eq!(scripted.running(), 0, "{}: a child outlived the call", case.name);
    let (result, text) = match called {
        Ok(Answer { value, text, .. }) => (Ok(completed(value)), text),
        Err(error) => {
            let text = error.text();
            let result = match error {
                ToolError::Run { result, .. } => Ok((*result).clone()),
                ToolError::NotStarted(error) | ToolError::Arguments { error, .. } => Err(error),
                other => panic!("{}: {other}", case.name),
            };
            check_failure(case, &result, &text);
            (result, text)
        }
    };
    Observed {
        result,
        text,
        events: events.collect().await,
        requests: scripted.requests().iter().map(asked).collect(),
        sees_failed_starts: true,
        records: Some(agent.records()),
    }
}

fn completed(value: Completed) -> RunResult {
    let mut result = RunResult::new(StopReason::Completed, None);
    result.value = value.result;
    result.agents_started = value.agents_started;
    result
}

/// The texts of failures are the same for all cases.
fn check_failure(case: &Case, result: &Result<RunResult, fanfold::WorkflowError>, text: &str) {
    let expected = match result {
        Err(error) => {
            assert!(
                text.starts_with("Error: ") && text.ends_with(&error.to_string()),
                "{}: {text}",
                case.name
            );
            return;
        }
        Ok(RunResult { stop_reason: StopReason::Cancelled, error: Some(error), .. }) => {
            format!("Error: workflow run was cancelled ({})", error.message)
        }
        Ok(RunResult { error: Some(error), .. }) => format!("Error: workflow run failed: {error}"),
        Ok(result) => panic!("{}: {result:?}", case.name),
    };
    assert_eq!(text, expected, "{}", case.name);
}
