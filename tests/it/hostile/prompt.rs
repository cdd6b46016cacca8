//! Promptness: how late a host's timer is while scripts spin, and how long a spinning script lives after its
//! cancellation.
//!
//! A machine that does other things makes anything late, so the bounds here are many times what is promised
//! (20 ms, and two ticks of 5 ms): they catch a host that is starved, which is late by hundreds of milliseconds,
//! and the figures are printed for whoever runs these tests alone with `--nocapture`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fanfold::{Engine, Run, StopReason};
use futures::FutureExt as _;
use serde_json::json;

use crate::support;

/// So many scripts spin.
const SCRIPTS: usize = 8;

const PERIOD: Duration = Duration::from_millis(5);

/// Ten times what is promised.
const LATEST: Duration = Duration::from_millis(200);

#[tokio::test]
async fn timers_are_prompt_on_a_current_thread_runtime() {
    timers_are_prompt("current thread").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_are_prompt_on_a_multi_thread_runtime() {
    timers_are_prompt("multi thread").await;
}

/// Scripts that never end by themselves.
const SPINS: &str = "await agent('x'); while (true) {}";
const SPINS_AND_NARRATES: &str =
    "await agent('x'); for (let i = 0; ; i++) if (i % 20000 === 0) log(`at ${i}`)";
const SPINS_BETWEEN_AGENTS: &str = "for (;;) { for (let i = 0; i < 30000; i++); await agent('x') }";

async fn spinning(engine: &Engine, script: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    for _ in 0..SCRIPTS {
        runs.push(engine.start(support::request(script)).await.expect("the script starts"));
    }
    runs
}

async fn timers_are_prompt(kind: &str) {
    for script in [SPINS, SPINS_AND_NARRATES, SPINS_BETWEEN_AGENTS] {
        timers_are_prompt_beside(script, kind).await;
    }
}

async fn timers_are_prompt_beside(script: &str, kind: &str) {
    let limits = json!({
        "syncTimeoutMs": 60_000, "maxConcurrentAgents": 8, "maxNarrationEvents": 1_000_000, "maxTotalAgents": 1_000_000,
    });
    let (engine, _) = support::engine(support::limits(limits));
    let runs = spinning(&engine, script).await;
    // Making eight sandboxes is work too, which is not what is measured.
    tokio::time::sleep(20 * PERIOD).await;

    let mut late = Vec::new();
    for _ in 0..100 {
        let due = Instant::now() + PERIOD;
        tokio::time::sleep(PERIOD).await;
        late.push(due.elapsed());
    }

    let mut stopped = Vec::new();
    for run in &runs {
        let cancelled = Instant::now();
        run.cancel("enough");
        assert_eq!(run.result().await.stop_reason, StopReason::Cancelled);
        stopped.push(cancelled.elapsed());
    }
    let late = Figures::of(late);
    let stopped = Figures::of(stopped);
    report(&format!("{kind}, {script}: timers late by {late}; stopped after {stopped}"));
    assert!(late.median < LATEST, "{kind}: timers are late by {late}");
    assert!(stopped.median < LATEST, "{kind}: scripts stop after {stopped}");
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn multi_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// Scripts on one runtime do not wait for those on another, be it busy, forgotten or gone.
#[test]
fn a_runtime_that_stands_still_holds_nobody_up() {
    let (engine, _) =
        support::engine(support::limits(json!({"syncTimeoutMs": 100, "maxDurationMs": 60_000})));
    let still = current_thread();
    let runs = still.block_on(async {
        let runs = spinning(&engine, SPINS).await;
        tokio::time::sleep(PERIOD).await;
        runs
    });
    for other in [current_thread(), multi_thread()] {
        let error = other.block_on(async {
            let run = engine.start(support::request("while (true) {}")).await.expect("the script starts");
            run.result().await.error.clone()
        });
        assert_eq!(error.and_then(|error| error.code), Some(fanfold::ErrorCode::TimeLimit));
    }
    drop(runs);
}

/// A start that is not awaited for a while, as in `buffered`, takes nothing from the scripts that run.
#[tokio::test]
async fn a_start_that_nobody_polls_holds_nobody_up() {
    let (engine, _) =
        support::engine(support::limits(json!({"syncTimeoutMs": 2000, "maxDurationMs": 60_000})));
    let long = format!("const a = [{}]; return a.length", "[1, { a: 2 }],".repeat(30_000));
    let mut start = Box::pin(engine.start(support::request(&long)));
    assert!((&mut start).now_or_never().is_none());
    // Long enough to be interrupted while it compiles.
    tokio::time::sleep(4 * PERIOD).await;
    let run = engine.start(support::request("while (true) {}")).await.expect("the script starts");
    let code = run.result().await.error.as_ref().and_then(|error| error.code);
    assert_eq!(code, Some(fanfold::ErrorCode::TimeLimit));
    let run = start.await.expect("the script starts");
    assert_eq!(run.result().await.value.get(), "30000");
}

/// Compiling is tried at once, in the caller's task: until the next tick.
#[tokio::test]
async fn checking_one_script_after_the_other_lets_other_tasks_run() {
    let (engine, _) = support::engine(fanfold::Limits::default());
    let turns = Arc::new(AtomicU32::new(0));
    let other = tokio::spawn({
        let turns = turns.clone();
        async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    });
    for n in 0..400 {
        engine.check(&format!("return {n}"), Some(fanfold::Meta::new("a", "b"))).await.expect("a script");
    }
    other.abort();
    assert!(turns.load(Ordering::Relaxed) >= 3);
}

/// Its runs end with it, wherever they are, and say so.
#[test]
fn a_runtime_that_is_dropped_ends_its_runs() {
    let (engine, _) = support::engine(support::limits(json!({"syncTimeoutMs": 60_000})));
    for runtime in [current_thread(), multi_thread()] {
        let runs = runtime.block_on(spinning(&engine, SPINS));
        drop(runtime);
        for run in runs {
            let result = current_thread().block_on(run.result());
            assert_eq!(result.stop_reason, StopReason::Error);
            assert!(
                result.error.as_ref().is_some_and(|error| error.message.contains("shut down")),
                "{result:?}"
            );
        }
    }
    let value = current_thread().block_on(async {
        let run = engine.start(support::request("return await agent('x')")).await.expect("the script starts");
        run.result().await.value.clone()
    });
    assert_eq!(value.get(), "\"echo:x\"");
}

#[expect(clippy::print_stderr, reason = "figures are for whoever runs the tests")]
fn report(line: &str) {
    eprintln!("{line}");
}

struct Figures {
    median: Duration,
    most: Duration,
}

impl Figures {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { median: times[times.len() / 2], most: times[times.len() - 1] }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} (at most {:?})", self.median, self.most)
    }
}
