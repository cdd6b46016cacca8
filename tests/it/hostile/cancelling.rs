//! Stopping runs: by cancelling, dropping and disposing, at the worst of times.

use std::sync::Arc;
use std::time::Duration;

use fanfold::{
    CancellationToken, Engine, ErrorCode, Event, EventKind, EventStream, Run, RunResult, StopReason,
    event_stream,
};
use fanfold_agents::Scripted;
use futures::StreamExt as _;
use serde_json::json;

use super::on_both_runtimes;
use super::row::Row;
use crate::support;

/// What is tested here needs somebody who cancels.
pub(super) fn rows() -> Vec<Row> {
    Vec::new()
}

const GRACE_MS: u64 = 300;

fn engine() -> (Engine, Arc<Scripted>) {
    support::engine(support::limits(json!({
        "maxConcurrentAgents": 16, "disposeGraceMs": GRACE_MS, "syncTimeoutMs": 60_000, "maxMemoryBytes": 32 << 20,
    })))
}

/// Starts a script, and waits until it has started an agent.
async fn start(engine: &Engine, script: &str) -> (Run, EventStream, Vec<Event>) {
    let (observer, mut events) = event_stream();
    let run = engine.start(support::request(script).observe(observer)).await.expect("the script starts");
    let mut seen = Vec::new();
    while !seen.iter().any(|event: &Event| matches!(event.kind, EventKind::AgentStart { .. })) {
        seen.push(events.next().await.expect("an agent starts"));
    }
    (run, events, seen)
}

/// Waits for the end of a run that was begun with [`start`], and checks all of its events.
async fn end(run: Run, events: EventStream, mut seen: Vec<Event>) -> (Arc<RunResult>, Vec<Event>) {
    let result = run.result().await;
    run.dispose().await;
    seen.extend(events.collect::<Vec<_>>().await);
    support::check_events(&seen);
    (result, seen)
}

/// It was cancelled for this reason, and its last event says so too.
fn assert_cancelled(result: &RunResult, events: &[Event], reason: &str) {
    assert_eq!(result.stop_reason, StopReason::Cancelled, "{result:?}");
    let error = result.error.as_ref().expect("there is an error");
    assert_eq!((error.code, error.message.as_str()), (Some(ErrorCode::Cancelled), reason));
    let Some(Event { kind: EventKind::End { result: told }, .. }) = events.last() else { panic!("no end") };
    assert_eq!((told.stop_reason, told.error.as_ref()), (StopReason::Cancelled, Some(error)));
}

/// Whatever a script does when its agents are cancelled, it is cancelled.
const STUBBORN: [(&str, &str); 10] = [
    ("waits", "await agent('hang:')"),
    (
        "narrates and asks again",
        "try { await agent('hang:') } catch {} phase('next'); log('x'); for (;;) await agent('again')",
    ),
    (
        "asks again and catches",
        "for (;;) try { await agent('hang:'); log('x') } catch { try { log('y') } catch {} }",
    ),
    ("spins in finally", "try { await agent('hang:') } finally { while (true) {} }"),
    ("spins in catch, over microtasks", "try { await agent('hang:') } catch { for (;;) await null }"),
    ("returns a value", "try { await agent('hang:') } catch {} return 'done'"),
    ("throws another error", "try { await agent('hang:') } catch {} throw new Error('mine')"),
    ("waits for nothing", "try { await agent('hang:') } catch {} await new Promise(() => {})"),
    (
        "fans out again",
        "try { await agent('hang:') } catch {} await parallel(Array(100).fill(() => agent('x')))",
    ),
    ("spins beside its agent", "agent('hang:'); await agent('x'); while (true) {}"),
];

async fn a_cancelled_run_ends_cancelled_whatever_its_script_does() {
    let (engine, agents) = engine();
    for (name, script) in STUBBORN {
        let (run, events, seen) = start(&engine, script).await;
        run.cancel("enough");
        let (result, events) = end(run, events, seen).await;
        assert_cancelled(&result, &events, "enough");
        let narrated = |event: &&Event| matches!(event.kind, EventKind::Phase { .. } | EventKind::Log { .. });
        assert_eq!(events.iter().find(narrated), None, "{name}: nothing is narrated after the cancellation");
        assert_eq!(agents.running(), 0, "{name}");
    }
}

/// Each way to let go of a run tells its agents to stop.
async fn letting_go_of_a_run_stops_its_agents() {
    type LetGo = fn(Engine, Run);
    let ways: [(&str, LetGo); 3] = [
        ("the run was dropped", |_engine, run| drop(run)),
        ("the engine was shut down", |engine, run| {
            drop(engine);
            std::mem::forget(run);
        }),
        ("the run was dropped", |engine, run| {
            drop(run);
            drop(engine);
        }),
    ];
    for (reason, let_go) in ways {
        let (engine, agents) = engine();
        let (run, events, mut seen) = start(&engine, "await agent('hang:')").await;
        assert_eq!(agents.running(), 1);
        let_go(engine, run);
        seen.extend(events.collect::<Vec<_>>().await);
        support::check_events(&seen);
        let Some(Event { kind: EventKind::End { result }, .. }) = seen.last() else { panic!("no end") };
        assert_eq!(result.stop_reason, StopReason::Cancelled);
        assert_eq!(result.error.as_ref().map(|error| error.message.as_str()), Some(reason));
        assert_eq!(agents.running(), 0, "{reason}");
    }
}

/// Cancelling and the last completion at once: whichever wins, there is one end, and everybody agrees on it.
async fn cancelling_in_the_instant_of_the_end_gives_one_end() {
    let (engine, agents) = engine();
    let rounds = if cfg!(debug_assertions) { 200 } else { 1000 };
    let mut ends = [0, 0];
    for round in 0..rounds {
        let token = CancellationToken::new();
        let (observer, events) = event_stream();
        let script = "return await parallel([() => agent('a'), () => agent('sleep:0'), () => agent('b')])";
        let request = support::request(script).observe(observer).cancel_with(token.clone());
        let run = engine.start(request).await.expect("the script starts");
        let pause = Duration::from_micros(u64::from(round % 40u32) * 100);
        let canceller = tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            token.cancel();
        });
        let (result, events) = support::end(run, events).await;
        canceller.await.expect("the canceller ends");
        let Some(Event { kind: EventKind::End { result: told }, .. }) = events.last() else {
            panic!("no end")
        };
        assert_eq!((told.stop_reason, told.error.as_ref()), (result.stop_reason, result.error.as_ref()));
        match result.stop_reason {
            StopReason::Completed => assert_eq!(result.value.get(), r#"["echo:a","slept","echo:b"]"#),
            StopReason::Cancelled => assert_eq!(result.value.get(), "null"),
            StopReason::Error => panic!("{result:?}"),
        }
        ends[usize::from(result.stop_reason == StopReason::Cancelled)] += 1;
    }
    assert_eq!(agents.running(), 0);
    assert!(ends.iter().all(|count| *count > 0), "the instant was missed: {ends:?} completed and cancelled");
}

async fn the_first_reason_counts_and_the_end_is_the_end() {
    let (engine, _) = engine();
    let (run, events, seen) = start(&engine, "await agent('hang:')").await;
    run.cancel("first");
    run.cancel("second");
    let result = run.result().await;
    run.cancel("third");
    tokio::join!(run.dispose(), run.dispose());
    run.dispose().await;
    let (again, events) = end(run, events, seen).await;
    assert!(Arc::ptr_eq(&result, &again), "the result stays the same");
    assert_cancelled(&result, &events, "first");

    let (observer, events) = event_stream();
    let run = engine.start(support::request("return 1").observe(observer)).await.expect("the script starts");
    assert_eq!(run.result().await.value.get(), "1");
    run.cancel("too late");
    let (result, _) = support::end(run, events).await;
    assert_eq!((result.stop_reason, result.value.get()), (StopReason::Completed, "1"));
}

/// Two that dispose of a run while it runs both wait for the same end.
async fn disposing_twice_at_once_ends_once() {
    let (engine, agents) = engine();
    let (run, events, seen) =
        start(&engine, "try { await agent('hang:') } finally { while (true) {} }").await;
    tokio::join!(run.dispose(), run.dispose(), async {
        assert_eq!(run.result().await.stop_reason, StopReason::Cancelled);
    });
    assert_eq!(agents.running(), 0);
    let (result, events) = end(run, events, seen).await;
    assert_cancelled(&result, &events, "the run was disposed of");
}

async fn a_run_that_was_cancelled_before_its_start_runs_nothing() {
    let (engine, agents) = engine();
    let token = CancellationToken::new();
    token.cancel();
    let request = support::request("log('here'); agent('x'); while (true) {}").cancel_with(token);
    let (result, events) = support::run(&engine, request).await.expect("the script is accepted");
    assert_cancelled(&result, &events, "cancelled by the caller");
    assert_eq!((events.len(), result.agents_started, result.fuel_used), (2, 0, 0));
    assert!(agents.requests().is_empty());

    // Between the start and the first instruction, where the runtime lets one in between.
    let (observer, events) = event_stream();
    let run =
        engine.start(support::request("while (true) {}").observe(observer)).await.expect("the script starts");
    run.cancel("at once");
    let (result, events) = support::end(run, events).await;
    assert_cancelled(&result, &events, "at once");
}

on_both_runtimes! {
    16: a_cancelled_run_ends_cancelled_whatever_its_script_does,
    17: disposing_twice_at_once_ends_once,
    13: letting_go_of_a_run_stops_its_agents,
    18: cancelling_in_the_instant_of_the_end_gives_one_end,
    19: the_first_reason_counts_and_the_end_is_the_end,
    20: a_run_that_was_cancelled_before_its_start_runs_nothing,
}
