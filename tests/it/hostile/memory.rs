//! Memory: of the sandbox, which has a limit, and of the host, which must not grow with what scripts do.

use fanfold::ErrorCode::{self, MemoryLimit};
use fanfold::{Engine, EventKind, Observer, RunResult, StopReason};
use serde_json::{Value, json};

use super::on_both_runtimes;
use super::row::{Row, check, row};
use crate::support;

pub(super) fn rows() -> Vec<Row> {
    let growing = [
        ("objects", "const a = []; while (true) a.push({ x: 1 })"),
        ("texts", "const a = []; for (let i = 0; ; i++) a.push(`${i}`.padEnd(1000))"),
        ("bytes", "const a = []; while (true) a.push(new Uint8Array(1 << 16))"),
        ("closures", "const a = []; while (true) { const x = {}; a.push(() => x) }"),
        ("a map", "const a = new Map(); for (let i = 0; ; i++) a.set(i, { i })"),
        ("a set", "const a = new Set(); for (let i = 0; ; i++) a.add(`k${i}`)"),
        ("properties", "const a = {}; for (let i = 0; ; i++) a[`k${i}`] = i"),
        ("symbols", "const a = []; for (let i = 0; ; i++) a.push(Symbol(i))"),
        ("promises", "const a = []; while (true) a.push(new Promise(() => {}))"),
        ("errors", "const a = []; while (true) a.push(new Error('x'))"),
        ("rejections", "while (true) Promise.reject(new Error('x'))"),
        ("regular expressions", "const a = []; for (let i = 0; ; i++) a.push(new RegExp(`${i}`))"),
        ("functions", "const a = []; for (let i = 0; ; i++) a.push((0, eval)(`() => ${i}`))"),
        (
            "generators",
            "const a = []; while (true) { const g = (function* () { yield 1 })(); g.next(); a.push(g) }",
        ),
        ("globals", "for (let i = 0; ; i++) globalThis[`k${i}`] = []"),
        (
            "what weak references keep",
            "const a = []; while (true) { const x = {}; a.push(x, new WeakRef(x)) }",
        ),
        ("what agents answer", "const a = []; while (true) a.push(await agent('x'.repeat(1 << 20)))"),
        ("one text", "'x'.repeat(1 << 28).split('')"),
        ("one array", "new Uint8Array(1 << 28)"),
        ("the value", "const line = 'x'.repeat(1 << 20); return Array(100).fill(line)"),
        ("the value's keys", "const o = {}; for (let i = 0; i < 1e7; i++) o[i] = 0; return o"),
        ("options", "await agent('x', { label: Array(100).fill('x'.repeat(1 << 20)) })"),
    ];
    let rows = |caught: fn(&str) -> String| {
        growing.map(|(name, script)| row(6, name, caught(script)).fails(MemoryLimit).says("maxMemoryBytes"))
    };
    let plain = rows(str::to_owned);
    let caught = rows(|script| format!("try {{ {script} }} catch (error) {{ return error }}"));
    let others = [
        row(7, "a million pairs between agents", CYCLES)
            .limit("maxMemoryBytes", 64 << 20)
            .gives(json!("done")),
        row(
            7,
            "a million pairs at once",
            "for (let i = 0; i < 1e6; i++) { const a = {}, b = { a }; a.b = b } return 1",
        )
        .limit("maxMemoryBytes", 64 << 20)
        .gives(json!(1)),
        row(
            7,
            "closures that hold each other",
            "for (let i = 0; i < 3e5; i++) { let f = () => g; const g = () => f } return 1",
        )
        .limit("maxMemoryBytes", 64 << 20)
        .gives(json!(1)),
        row(
            7,
            "promises that hold each other",
            "for (let i = 0; i < 1e5; i++) { const p = new Promise(() => {}); p.catch(() => p) } return 1",
        )
        .limit("maxMemoryBytes", 64 << 20)
        .gives(json!(1)),
        row(
            9,
            "beside a hundred agents",
            "for (let i = 0; i < 100; i++) agent('hang:'); const a = []; while (true) a.push({})",
        )
        .limit("maxConcurrentAgents", 128)
        .fails(MemoryLimit),
        row(
            9,
            "while a hundred agents are awaited",
            "await parallel(Array.from({ length: 100 }, (_, i) => async () => {
                await agent(i < 50 ? 'x' : 'hang:'); const a = []; while (true) a.push({}) }))",
        )
        .limit("maxConcurrentAgents", 128)
        .fails(MemoryLimit),
    ];
    plain.into_iter().chain(caught).chain(others).collect()
}

const CYCLES: &str = "
    for (let i = 0; i < 10; i++) {
        for (let j = 0; j < 1e5; j++) { const a = {}, b = { a }; a.b = b }
        await agent('x');
    }
    return 'done'";

async fn memory_without_end_is_stopped() {
    check(rows()).await;
}

/// How a run of an engine ended.
async fn ran(engine: &Engine, script: &str) -> RunResult {
    support::run(engine, support::request(script)).await.expect("the script starts").0
}

/// Bytes of this process that are in memory; 0 where that is not told.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() << 10
}

/// More than other tests of this process may use meanwhile, less than what would leak.
const NOISE: u64 = 192 << 20;

/// Every way to fail, over and over.
async fn runs_that_fail_leave_nothing_behind() {
    let limits = json!({"maxMemoryBytes": 16 << 20, "syncTimeoutMs": 5000, "maxConcurrentAgents": 16, "disposeGraceMs": 1000});
    let (engine, agents) = support::engine(support::limits(limits));
    let failing = [
        ("throw new Error('x'.repeat(1000))", None),
        ("await agent('startfail:x')", Some(ErrorCode::AgentStart)),
        ("await agent('infra:x')", Some(ErrorCode::AgentResult)),
        ("agent('hang:'); await new Promise((_, no) => agent('x').then(no))", None),
        ("await agent('x'); await new Promise(() => {})", Some(ErrorCode::Deadlock)),
        ("const a = []; while (true) a.push('x'.repeat(1e5) + a.length)", Some(MemoryLimit)),
        ("(function f() { f() })()", Some(ErrorCode::StackLimit)),
        ("return () => {}", Some(ErrorCode::ResultUnserializable)),
    ];
    let rounds = if cfg!(debug_assertions) { 40 } else { 1250 };
    let mut before = 0;
    for round in 0..rounds {
        for (script, code) in failing {
            let result = ran(&engine, script).await;
            assert_eq!(result.error.map(|error| error.code), Some(code), "{script}");
        }
        if round == 10 {
            before = resident();
        }
    }
    assert_eq!(agents.running(), 0);
    let grown = resident().saturating_sub(before);
    assert!(grown < NOISE, "{grown} bytes more after {rounds} rounds");
}

/// Long runs: the sandbox's memory limit says that it does not keep what it was told, and the host does not
/// keep it either.
async fn long_runs_keep_nothing() {
    struct Ignore;
    impl Observer for Ignore {
        fn event(&self, _: &fanfold::Meta, _: &fanfold::Event) {}
    }
    let agents = if cfg!(debug_assertions) { 2_000 } else { 10_000 };
    let limits = json!({
        "maxMemoryBytes": 16 << 20, "maxTotalAgents": agents, "maxRequestBytes": 1u64 << 30,
        "maxNarrationEvents": 50_000, "maxNarrationBytes": 64 << 20,
    });
    let (engine, _) = support::engine(support::limits(limits));
    let script = "
        for (let i = 0; i < 50000; i++) log(`${i} `.repeat(10));
        let bytes = 0;
        for (let i = 0; i < args; i++) bytes += (await agent('x'.repeat(10000))).length;
        return bytes";
    let before = resident();
    let request = support::request(script).args(agents.into()).observe(Ignore);
    let run = engine.start(request).await.expect("the script starts");
    let result = run.result().await;
    assert_eq!(result.stop_reason, StopReason::Completed, "{:?}", result.error);
    assert_eq!(serde_json::from_str::<Value>(result.value.get()).ok(), Some(json!(agents * 10_005)));
    run.dispose().await;
    // The provider of this test remembers every prompt.
    let remembered = agents as u64 * 10_000;
    let grown = resident().saturating_sub(before + remembered);
    assert!(grown < NOISE, "{grown} bytes more");
}

/// Observers fall behind, panic, or go away; the run does not wait, and ends as it would.
async fn observers_change_nothing() {
    struct Slow;
    impl Observer for Slow {
        fn event(&self, _: &fanfold::Meta, _: &fanfold::Event) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    struct Panics;
    impl Observer for Panics {
        fn event(&self, _: &fanfold::Meta, event: &fanfold::Event) {
            // Quietly: the panic hook would tell of each.
            std::panic::resume_unwind(Box::new(event.n));
        }
    }
    let limits = json!({"maxNarrationEvents": 200, "disposeGraceMs": 1000, "syncTimeoutMs": 5000});
    let (engine, _) = support::engine(support::limits(limits));
    let (observer, dropped) = fanfold::event_stream();
    drop(dropped);
    let script = "try { for (;;) log('x') } catch (error) { return [error.code, await agent('a')] }";
    let request = support::request(script).observe(Slow).observe(Panics).observe(observer);
    let (result, events) = support::run(&engine, request).await.expect("the script starts");
    assert_eq!(result.value.get(), r#"["OUTPUT_LIMIT","echo:a"]"#);
    let logs = events.iter().filter(|event| matches!(event.kind, EventKind::Log { .. })).count();
    assert_eq!(logs, 200);
}

on_both_runtimes! {
    6: memory_without_end_is_stopped,
    10: runs_that_fail_leave_nothing_behind,
    10: long_runs_keep_nothing,
    3: observers_change_nothing,
}
