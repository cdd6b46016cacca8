//! Scripts that never end: in computation, in microtasks, in narration, in agents.

use fanfold::ErrorCode::{AgentCap, CpuLimit, MemoryLimit, OutputLimit, StackLimit, TimeLimit};
use serde_json::json;

use super::on_both_runtimes;
use super::row::{Row, check, row};

pub(super) fn rows() -> Vec<Row> {
    [loops(), microtasks(), narration(), agents()].into_iter().flatten().collect()
}

/// A loop, and the places from which a script's code is called.
fn loops() -> Vec<Row> {
    let forever = [
        ("first thing", "while (true) {}"),
        ("with a body that computes", "let n = 0; for (;;) n = (n * 31 + 7) % 1000003"),
        ("that catches", "for (;;) try { for (;;); } catch {} finally { continue }"),
        ("after an agent", "await agent('x'); while (true) {}"),
        ("after every agent", "for (;;) { await agent('x'); while (true) {} }"),
        ("beside an agent", "const a = agent('x'); while (true) {} await a"),
        ("after a microtask", "await null; while (true) {}"),
        ("in then", "await Promise.resolve().then(() => { while (true) {} })"),
        (
            "in then of an agent that is not awaited",
            "agent('x').then(() => { while (true) {} }); await agent('y')",
        ),
        ("in a promise's executor", "await new Promise(() => { while (true) {} })"),
        ("in a thenable that is returned", "return { then() { while (true) {} } }"),
        ("in a thunk", "await parallel([() => { while (true) {} }])"),
        ("in a thunk after an agent", "await parallel([async () => { await agent('x'); while (true) {} }])"),
        ("in a stage", "await pipeline([1], (n) => n, () => { while (true) {} })"),
        ("in the length of a thunk list", "await parallel(new Proxy([], { get() { while (true) {} } }))"),
        ("in finally", "try { await agent('infra:x') } finally { while (true) {} }"),
        ("in a generator", "for (const n of (function* () { for (;;) yield 1 })()) {}"),
        (
            "in an asynchronous generator",
            "for await (const n of (async function* () { for (;;) yield 1 })()) {}",
        ),
        ("in a getter of the value", "return { get a() { while (true) {} } }"),
        ("in a trap of the value", "return new Proxy({}, { ownKeys() { while (true) {} } })"),
        (
            "in the prototype trap of the value",
            "return new Proxy({}, { getPrototypeOf() { while (true) {} } })",
        ),
        ("in toString of what is thrown", "throw { toString() { while (true) {} } }"),
        ("in toPrimitive of what is thrown", "throw { [Symbol.toPrimitive]() { while (true) {} } }"),
        (
            "in the message of what is thrown",
            "throw Object.defineProperty(Error(), 'message', { get() { while (true) {} } })",
        ),
        (
            "in the stack of what is thrown",
            "throw Object.defineProperty(Error(), 'stack', { get() { while (true) {} } })",
        ),
        ("in evaluated code", "(0, eval)('while (true) {}')"),
        ("in a static block", "class A { static { while (true) {} } }"),
        ("in a default argument", "((a = (() => { while (true) {} })()) => a)()"),
        ("in a tag", "(() => { while (true) {} })`x`"),
        ("in a comparison", "[2, 1].sort(() => { while (true) {} })"),
        ("in a replacement", "'x'.replace(/x/, () => { while (true) {} })"),
        ("in a reviver", "JSON.parse('[1]', () => { while (true) {} })"),
    ];
    let rows = forever.map(|(name, script)| row(1, name, script).fails(TimeLimit).says("syncTimeoutMs"));
    let over_a_run = row(
        1,
        "in short stretches",
        "for (;;) { await agent('sleep:0'); for (let i = 0; i < 100000; i++); }",
    );
    // Places that a host might call, and this one does not.
    let never_called = [
        (
            "in hasInstance",
            "Object.defineProperty(Error, Symbol.hasInstance, { value() { while (true) {} } })",
        ),
        ("in toString of an unhandled rejection", "Promise.reject({ toString() { while (true) {} } })"),
        ("in prepareStackTrace", "Error.prepareStackTrace = () => { while (true) {} }"),
        ("in a finaliser", "new FinalizationRegistry(() => { while (true) {} }).register({}, 1)"),
        ("in then of what was lost", "agent('hang:').then(() => {}, () => { while (true) {} })"),
        ("in catch of what was lost", "agent('hang:').catch(() => { while (true) {} })"),
    ];
    let never_called = never_called.map(|(name, script)| {
        row(1, name, format!("{script}; await agent('').catch(() => {{}}); return 1")).gives(json!(1))
    });
    rows.into_iter()
        .chain(never_called)
        .chain([over_a_run.limit("maxFuel", 300_000_000).fails(CpuLimit)])
        .chain([row(1, "of waiting", "for (;;) await agent('sleep:5')")
            .limit("maxDurationMs", 300)
            .fails(TimeLimit)
            .says("maxDurationMs")])
        .collect()
}

fn microtasks() -> Vec<Row> {
    let chains = [
        ("promises that wait for promises", "function f() { return Promise.resolve().then(f) } await f()"),
        ("asynchronous recursion", "async function f() { await null; return f() } await f()"),
        ("a loop that awaits nothing", "for (;;) await null"),
        ("a loop that awaits nothing, beside an agent", "const a = agent('hang:'); for (;;) await null"),
        ("a thenable of itself", "const t = { then(resolve) { resolve(t) } }; await t"),
        (
            "nested fan-out of nothing",
            "const f = async () => { await null; await parallel([f, f]) }; await f()",
        ),
        (
            "a pipeline of itself",
            "const f = async () => { await null; await pipeline([1, 2], f) }; await f()",
        ),
        ("two chains", "const f = () => Promise.resolve().then(f); await Promise.race([f(), f()])"),
        ("races without end", "for (;;) await Promise.race([null, agent('x').then])"),
    ];
    chains
        .map(|(name, script)| row(2, name, script).fails(TimeLimit).fails(MemoryLimit).fails(AgentCap))
        .into()
}

fn narration() -> Vec<Row> {
    vec![
        row(3, "phases", "while (true) phase('x')").fails(OutputLimit).says("maxNarrationEvents"),
        row(3, "logs", "while (true) log('x')").fails(OutputLimit).says("maxNarrationEvents"),
        row(3, "logs of nothing", "while (true) log('')").fails(OutputLimit).says("maxNarrationEvents"),
        row(3, "logs that wait", "while (true) { log('x'); await null }").fails(OutputLimit),
        row(3, "50,000 logs of 1 KiB", "for (let i = 0; i < 50000; i++) log('x'.repeat(1024))")
            .limit("maxNarrationEvents", 100_000)
            .fails(OutputLimit)
            .says("maxNarrationBytes"),
        row(3, "one log of 8 MiB", "log('x'.repeat(8 << 20))").fails(OutputLimit).says("maxNarrationBytes"),
        row(3, "one phase of 8 MiB", "phase('x'.repeat(8 << 20))")
            .fails(OutputLimit)
            .says("maxNarrationBytes"),
        row(3, "one log of 140 MiB", "log('x'.repeat(140 << 20))")
            .limit("maxMemoryBytes", 512 << 20)
            .fails(OutputLimit),
        row(3, "logs that catch", "while (true) try { log('x') } catch {}").fails(TimeLimit),
        row(3, "as many as may be", "for (let i = 0; i < 10000; i++) log(`${i}`); return 1").gives(json!(1)),
        row(3, "a breach that is caught", "try { for (;;) log('x') } catch (error) { return error.code }")
            .gives(json!("OUTPUT_LIMIT")),
    ]
}

fn agents() -> Vec<Row> {
    let capped = |name, script: &str| row(5, name, script).limit("maxTotalAgents", 5);
    vec![
        capped("one after the other", "for (;;) await agent('x')").fails(AgentCap),
        capped("at once", "await Promise.all(Array.from({ length: 20 }, () => agent('hang:')))")
            .fails(AgentCap),
        capped("in parallel", "await parallel(Array.from({ length: 20 }, () => () => agent('hang:')))")
            .fails(AgentCap),
        capped("in a pipeline", "await pipeline(Array(20).fill(0), () => agent('x'), () => agent('y'))")
            .fails(AgentCap),
        capped("nobody waits for", "for (;;) agent('x')").fails(TimeLimit).fails(MemoryLimit),
        capped("that are caught", "for (;;) try { await agent('x') } catch {}")
            .limit("maxFuel", 300_000_000)
            .fails(CpuLimit)
            .fails(TimeLimit),
        capped("that make agents", "const f = () => agent('x').then(f); await f()").fails(AgentCap),
        capped("in itself", "const f = () => parallel([f, f]); await f()").fails(StackLimit),
        row(5, "prompts of 64 MiB together", "for (;;) await agent('x'.repeat(1 << 20))")
            .limit("maxRequestBytes", 16 << 20)
            .fails(OutputLimit)
            .says("maxRequestBytes"),
        row(5, "labels of 64 MiB together", "for (;;) await agent('x', { label: 'l'.repeat(1 << 20) })")
            .limit("maxRequestBytes", 16 << 20)
            .fails(OutputLimit)
            .says("maxRequestBytes"),
        row(5, "items without end", "await parallel(Array(1e6).fill(() => agent('x')))")
            .fails(fanfold::ErrorCode::ItemCap),
    ]
}

async fn scripts_that_never_end_are_stopped() {
    check(loops()).await;
}

async fn microtasks_without_end_are_stopped() {
    check(microtasks()).await;
}

async fn narration_and_agents_are_capped() {
    check(narration()).await;
    check(agents()).await;
}

on_both_runtimes! {
    1: scripts_that_never_end_are_stopped,
    2: microtasks_without_end_are_stopped,
    3: narration_and_agents_are_capped,
}
