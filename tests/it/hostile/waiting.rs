//! Scripts that wait: for nothing, for much, in any order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfold::ErrorCode::Deadlock;
use fanfold::{AgentRequest, Answer, CancellationToken, Child, StartError, StopReason, Subagents};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::on_both_runtimes;
use super::row::{Row, check, row};
use crate::support;

pub(super) fn rows() -> Vec<Row> {
    let dead = [
        ("a promise", "await new Promise(() => {})"),
        ("a promise that is returned", "return new Promise(() => {})"),
        ("a thenable", "await { then() {} }"),
        ("a race of nobody", "await Promise.race([])"),
        ("all of one", "await Promise.all([1, new Promise(() => {})])"),
        ("a thunk", "return await parallel([() => 1, () => new Promise(() => {})])"),
        ("a stage", "return await pipeline([1, 2], (n) => new Promise(() => {}))"),
        (
            "an asynchronous generator",
            "for await (const x of (async function* () { await new Promise(() => {}) })()) {}",
        ),
        (
            "each other",
            "let a; const b = (async () => { await null; await a })(); a = (async () => { await b })(); await a",
        ),
        (
            "an agent's promise, resolved by nobody",
            "let go; const gate = new Promise((r) => { go = r }); await gate",
        ),
        ("a promise, beside an agent", "const p = agent('a'); await new Promise(() => {})"),
        (
            "a promise, beside agents that fail",
            "agent('fail:x'); agent('infra:y').catch(() => {}); await new Promise(() => {})",
        ),
        ("a promise, after agents", "await agent('a'); await agent('b'); await new Promise(() => {})"),
        ("a promise, in finally", "try { throw 1 } finally { await new Promise(() => {}) }"),
        ("a promise, caught", "try { await new Promise(() => {}) } catch {} finally { return 1 }"),
    ];
    let alive = [
        (
            "a gate that another agent opens",
            "let go; const gate = new Promise((r) => { go = r }); agent('x').then(go); return await gate",
            json!("echo:x"),
        ),
        (
            "a race with an agent",
            "return await Promise.race([new Promise(() => {}), agent('x')])",
            json!("echo:x"),
        ),
        ("a promise nobody waits for", "new Promise(() => {}); return 1", Value::Null),
    ];
    dead.map(|(name, script)| row(11, name, script).fails(Deadlock).says("nothing can settle"))
        .into_iter()
        .chain(alive.map(|(name, script, value)| match value {
            Value::Null => row(11, name, script).gives(json!(1)),
            value => row(11, name, script).gives(value),
        }))
        .collect()
}

async fn waiting_for_nothing_is_told_at_once() {
    check(rows()).await;
}

/// Answers after a time that looks random and is the same every time.
struct Jittery(AtomicU64);

impl Subagents for Jittery {
    fn start(
        &self,
        request: AgentRequest,
        _: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let next = |n: u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let random =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default() >> 60;
        let pause = Duration::from_micros(random * 200);
        Box::pin(async move {
            tokio::time::sleep(pause / 4).await;
            Ok(Child::new(format!("c{}", request.seq), async move {
                tokio::time::sleep(pause).await;
                Ok(Answer::text(request.prompt))
            }))
        })
    }
}

/// Fan-out in fan-out, through every hook, with calls in between that nobody waits for.
async fn nested_fan_out_loses_nothing() {
    let script = "
        const lost = () => { agent('lost'); };
        const leaf = async (n) => { lost(); return Number(await agent(`${n}`)) };
        const sums = await parallel([0, 1, 2, 3].map((i) => async () => {
            const rows = await pipeline([0, 1, 2], (j) => leaf(10 * i + j), async (n) => n + await leaf(100), (n) => n - 100);
            lost();
            return rows;
        }));
        return sums;";
    let expected: Vec<Value> = (0..4).map(|i| json!([10 * i, 10 * i + 1, 10 * i + 2])).collect();
    for slots in [1, 2, 16] {
        let limits = support::limits(json!({"maxConcurrentAgents": slots, "disposeGraceMs": 1000}));
        let engine = support::engine_with(Jittery(AtomicU64::new(slots)), limits);
        let runs = (0..3).map(|_| support::run(&engine, support::request(script)));
        for ran in futures::future::join_all(runs).await {
            let (result, _) = ran.expect("the script starts");
            assert_eq!(result.stop_reason, StopReason::Completed, "{:?}", result.error);
            assert_eq!(serde_json::from_str::<Value>(result.value.get()).ok(), Some(json!(expected)));
            assert_eq!((result.agents_started, result.never_awaited), (24 + 24 + 4, 24 + 4));
        }
    }
}

on_both_runtimes! {
    11: waiting_for_nothing_is_told_at_once,
    12: nested_fan_out_loses_nothing,
}
