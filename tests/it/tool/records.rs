//! What runs leave in the calling agent's session.

use std::sync::{Mutex, mpsc};

use fanfold::{Event, Meta, Observer, SessionRecord};
use serde_json::json;

use super::assistant::{Assistant, Fault, arguments, by, tool};
use crate::support::{engine, limits};

const SCRIPT: &str =
    "phase('one'); const a = agent('a'); log('l'); await a; return await agent('fail:b', {phase: 'two'})";

#[tokio::test]
async fn a_run_is_recorded_from_its_start_to_its_end() {
    let (engine, _) = engine(limits(json!({})));
    let agent = Assistant::new();
    let answer = tool(&engine, json!({})).execute(&arguments(SCRIPT), by(&agent)).await.unwrap();
    let id = &answer.value.run_id;
    assert_eq!(
        serde_json::to_value(agent.records()).unwrap(),
        json!([
            {"type": "tool-workflow/run-start", "payload": {"runId": id, "name": "test"}},
            {"type": "tool-workflow/agent-start",
             "payload": {"runId": id, "seq": 1, "label": "a", "phase": "one", "childId": "child-1"}},
            {"type": "tool-workflow/agent-end", "payload": {"runId": id, "seq": 1, "outcome": "completed"}},
            {"type": "tool-workflow/agent-start",
             "payload": {"runId": id, "seq": 2, "label": "fail:b", "phase": "two", "childId": "child-2"}},
            {"type": "tool-workflow/agent-end", "payload": {"runId": id, "seq": 2, "outcome": "failed"}},
            {"type": "tool-workflow/run-end", "payload": {"runId": id, "stopReason": "completed"}},
        ])
    );
}

#[tokio::test]
async fn a_session_that_fails_keeps_a_legal_prefix_and_changes_no_run() {
    let (engine, _) = engine(limits(json!({})));
    let tool = tool(&engine, json!({}));
    for fault in [Fault::Error, Fault::Panic] {
        for kept in 0..6 {
            let agent = Assistant::failing_after(kept, fault);
            let answer = tool.execute(&arguments(SCRIPT), by(&agent)).await.expect("the run goes on");
            assert!(answer.text.ends_with("Return value:\nnull"));
            assert_eq!(agent.records().len(), kept);
            assert_eq!(agent.appends(), kept + 1, "the first append that fails is the last");
            let warnings = agent.warnings();
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            let why = if fault == Fault::Error { "the disk is full" } else { "the session panicked" };
            assert!(warnings[0].ends_with(why), "{warnings:?}");
        }
    }
}

#[tokio::test]
async fn a_session_that_hangs_holds_no_call_up_for_ever() {
    let (engine, scripted) = engine(limits(json!({})));
    let agent = Assistant::failing_after(1, Fault::Hang);
    tool(&engine, json!({})).execute(&arguments(SCRIPT), by(&agent)).await.expect("the run goes on");
    assert_eq!((agent.records().len(), agent.appends(), scripted.running()), (1, 2, 0));
    assert!(agent.warnings()[0].contains("took longer than"), "{:?}", agent.warnings());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_at_the_same_time_are_recorded_apart() {
    let (engine, _) = engine(limits(json!({"maxConcurrentAgents": 4})));
    let tool = tool(&engine, json!({}));
    let agent = Assistant::new();
    let script =
        arguments("return await parallel(Array.from({length: 20}, (_, i) => () => agent('sleep:' + i % 3)))");
    let calls = (0..4).map(|_| tool.execute(&script, by(&agent)));
    let answers = futures::future::join_all(calls).await;
    let records = agent.records();
    assert_eq!(records.len(), 4 * 42);
    for answer in answers {
        let id = answer.unwrap().value.run_id;
        let own: Vec<&SessionRecord> = records.iter().filter(|record| record.run_id() == id).collect();
        assert_eq!(own.len(), 42);
        assert!(matches!(own[0], SessionRecord::RunStart { .. }));
        assert!(matches!(own[41], SessionRecord::RunEnd { .. }));
    }
    assert_eq!(agent.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn one_run_whose_records_fail_does_not_silence_the_next() {
    let (engine, _) = engine(limits(json!({})));
    let tool = tool(&engine, json!({}));
    let agent = Assistant::failing_after(0, Fault::Error);
    for runs in 1..=2 {
        tool.execute(&arguments("return 1"), by(&agent)).await.unwrap();
        assert_eq!((agent.appends(), agent.warnings().len()), (runs, runs));
    }
}

#[tokio::test]
async fn a_nested_call_leaves_no_records() {
    let (engine, _) = engine(limits(json!({})));
    let agent = Assistant::new();
    tool(&engine, json!({})).execute(&arguments(SCRIPT), by(&agent).nested()).await.unwrap();
    assert_eq!((agent.records().len(), agent.appends()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_cancelled_or_fails_is_recorded_to_its_end() {
    let (engine, _) = engine(limits(json!({"maxConcurrentAgents": 4})));
    let tool = tool(&engine, json!({}));
    for (script, reason) in [
        ("const a = agent('hang:'); await agent('x'); throw new Error('boom')", "error"),
        ("const a = agent('hang:'); return await agent('x')", "completed"),
        ("await agent('startfail:no')", "error"),
    ] {
        let agent = Assistant::new();
        let _ = tool.execute(&arguments(script), by(&agent)).await;
        let last = serde_json::to_value(agent.records().pop()).unwrap();
        assert_eq!(last["payload"]["stopReason"], reason, "{script}");
    }
}

/// An observer that is busy until it is let go.
struct Busy(Mutex<mpsc::Receiver<()>>);

impl Observer for Busy {
    fn event(&self, _meta: &Meta, _event: &Event) {
        let _ = self.0.lock().expect("not poisoned").recv();
    }
}

#[tokio::test]
async fn an_observer_that_never_returns_costs_records_and_nothing_else() {
    let (engine, scripted) = engine(limits(json!({"disposeGraceMs": 50})));
    let agent = Assistant::new();
    let (let_go, busy) = mpsc::channel();
    let call = by(&agent).observe(Busy(Mutex::new(busy)));
    let answer = tool(&engine, json!({})).execute(&arguments(SCRIPT), call).await.expect("the run goes on");
    assert_eq!(answer.value.agents_started, 2);
    assert_eq!((agent.records().len(), scripted.running()), (0, 0));
    assert!(
        agent.warnings()[0].ends_with("another observer of the run held its events up"),
        "{:?}",
        agent.warnings()
    );
    drop(let_go);
}
