//! Workflows inside of workflows: what is counted is the run's, however deep it happens.

use fanfold::ErrorCode::{
    AgentCap, CpuLimit, InvalidArgument, MemoryLimit, MetaInvalid, OutputLimit, TimeLimit,
};
use fanfold::{EventKind, StopReason};
use serde_json::json;

use super::on_both_runtimes;
use super::row::{Row, check, row};
use crate::support;

/// A row whose script has `inner(body)`, the text of a workflow.
fn nested(name: &'static str, body: &str) -> Row {
    row(
        37,
        name,
        format!(
            "const inner = (body) => ({{ script: \"export const meta = {{ name: 'i', description: 'd' }};\\n\" + body }});\n{body}"
        ),
    )
}

pub(super) fn rows() -> Vec<Row> {
    // A workflow that runs itself, as deep as it may.
    let deep = "const self = `try { return 1 + await workflow({ script: args }, args) } catch (e) { return e.code }`;
        const text = inner(self).script; return await workflow({ script: text }, text)";
    vec![
        nested("the value comes back", "return await workflow(inner('return { a: [args] }'), { x: 1, y: undefined })").gives(json!({"a": [{"x": 1}]})),
        nested("three levels and no more", deep).gives(json!("1INVALID_ARGUMENT")),
        nested("agents are counted together", "
            const fan = inner('for (;;) await agent(\"x\")');
            return await Promise.allSettled([workflow(fan), workflow(fan)]).then((all) => all.map((r) => r.reason.code))")
            .limit("maxTotalAgents", 7)
            .gives(json!(["AGENT_CAP", "AGENT_CAP"])),
        nested("workflows are counted", "for (;;) await workflow(inner('return 1'))").limit("maxNestedWorkflows", 5).fails(AgentCap),
        nested("workflows that never end are counted, too", "for (let i = 0; i < 1e4; i++) workflow(inner('await new Promise(() => {})')).catch(() => {}); await workflow(inner('return 1'))")
            .limit("maxNestedWorkflows", 5)
            .fails(AgentCap),
        nested("an empty sandbox costs nothing", "return await workflow(inner('return 1'))").limit("maxMemoryBytes", 16 << 20).gives(json!(1)),
        nested("a spinning one", "await workflow(inner('while (true) {}'))").fails(TimeLimit),
        nested("fuel is shared", "for (;;) await workflow(inner('for (let i = 0; i < 1e6; i++);'))").limit("maxFuel", 400_000_000).limit("maxNestedWorkflows", 10_000).fails(CpuLimit),
        nested("memory is shared", "
            const keep = inner('const a = []; for (let i = 0; i < 10; i++) a.push(new Uint8Array(1 << 20).fill(1)); await agent(\"hang:\"); return a.length');
            return await Promise.race([1, 2, 3, 4, 5].map(() => workflow(keep)))")
            .fails(MemoryLimit),
        nested("memory comes back", "
            const take = inner('return new Uint8Array(8 << 20).fill(1).length');
            for (let i = 0; i < 8; i++) await workflow(take); return 1")
            .gives(json!(1)),
        nested("narration is shared", "for (;;) await workflow(inner('log(\"x\")'))").limit("maxNarrationEvents", 5).fails(OutputLimit),
        nested("what is sent is counted", "for (;;) await workflow(inner('/*' + 'x'.repeat(1e5) + '*/'))").limit("maxRequestBytes", 1 << 20).fails(OutputLimit),
        nested("a text that is too long", "await workflow(inner('//' + 'x'.repeat(1e6)))").fails(OutputLimit),
        nested("a value that is too long", "await workflow(inner('return \"x\".repeat(1e6)'))").limit("maxResultBytes", 1000).fails(OutputLimit),
        nested("without a header", "await workflow({ script: 'return 1' })").fails(MetaInvalid).says("export const meta"),
        nested("targets that are none", "
            const codes = [];
            for (const target of [undefined, null, 5, [], {}, { script: 1 }, { script: '' }, { script: 'x', scriptPath: 'y' }, { name: 'x' }, '', 'unknown', { scriptPath: '/etc/passwd' }, new Map(), () => {}])
                codes.push(await workflow(target).catch((e) => e.code));
            return [...new Set(codes)]")
            .gives(json!(["INVALID_ARGUMENT"])),
        nested("args that are no data", "await workflow(inner('return 1'), { a: () => {} })").fails(InvalidArgument).on("a"),
        nested("its own error is ordinary", "
            const e = await workflow(inner('throw new RangeError(\"mine\")')).catch((e) => e);
            return [e.name, e.code ?? null, e instanceof Error, e.message.includes('RangeError: mine'), await parallel([() => workflow(inner('throw 1'))])]")
            .gives(json!(["Error", null, true, true, [null]])),
        nested("its misuse is not", "return await parallel([() => workflow(inner('await agent(5)'))])").fails(InvalidArgument),
        nested("an error cannot be forged across", "
            return await parallel([() => workflow(inner('throw Object.assign(new Error(), { name: \"WorkflowError\", code: \"AGENT_CAP\" })'))])")
            .gives(json!([null])),
        nested("globals are its own", "
            globalThis.leak = 1; Array.prototype.leak = 1;
            return await workflow(inner('globalThis.other = 1; return [typeof leak, [].leak ?? null, typeof console]')).then((v) => [...v, typeof other])")
            .gives(json!(["undefined", null, "object", "undefined"])),
        nested("its agents stop when it ends", "await workflow(inner('agent(\"hang:\"); return 1')); return await agent('x')")
            .warns("workflow {script}: 1 agent() call was never awaited: its answer is lost (line 2)")
            .gives(json!("echo:x")),
        nested("one that nobody waits for ends with the script", "workflow(inner('await agent(\"hang:\")')); await agent('x'); return 1").gives(json!(1)),
        nested("one that lost a race stays until the end", "
            return await Promise.race([workflow(inner('await agent(\"hang:\")')), agent('x')])")
            .gives(json!("echo:x")),
        nested("overwritten intrinsics", "JSON.parse = JSON.stringify = null; Promise.prototype.then = null; Object.prototype.script = 'x'; return await workflow(inner('return [1]'))")
            .gives(json!([1]))
            .fails(InvalidArgument),
    ]
}

async fn workflows_inside_share_what_is_counted() {
    check(rows()).await;
}

/// Phases and agents of workflows inside are events of the run.
async fn the_events_of_workflows_inside_are_the_runs() {
    let script = "
        phase('Outer');
        const inner = \"export const meta = { name: 'i', description: 'd' }; const a = await agent('in'); phase('Inner'); return [a, await agent('in too')]\";
        const [found] = await Promise.all([workflow({ script: inner })]);
        return [found, await agent('out')]";
    let (engine, _) = support::engine(fanfold::Limits::default());
    let (result, events) = support::run(&engine, support::request(script)).await.expect("it starts");
    assert_eq!(result.value.get(), r#"[["echo:in","echo:in too"],"echo:out"]"#, "{:?}", result.error);
    assert_eq!((result.stop_reason, result.agents_started), (StopReason::Completed, 3));
    let story: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Phase { title } => Some(format!("phase {title}")),
            EventKind::AgentStart { agent } => {
                Some(format!("{} {} in {}", agent.seq, agent.label, agent.phase.as_deref().unwrap_or("none")))
            }
            _ => None,
        })
        .collect();
    // What is inside begins in the phase of the call, and has phases of its own from then on.
    assert_eq!(story, ["phase Outer", "1 in in Outer", "phase Inner", "2 in too in Inner", "3 out in Outer"]);
}

async fn cancelling_ends_workflows_inside() {
    let inner = "export const meta = { name: 'i', description: 'd' }; try { await agent('hang:') } catch (e) { return e.code }";
    for script in [
        format!("return await workflow({{ script: {inner:?} }})"),
        format!("await workflow({{ script: {inner:?} }}); while (true) {{}}"),
    ] {
        let (engine, agents) = support::engine(support::limits(json!({"disposeGraceMs": 1000})));
        let (observer, events) = fanfold::event_stream();
        let run = engine.start(support::request(&script).observe(observer)).await.expect("it starts");
        while agents.running() == 0 {
            tokio::task::yield_now().await;
        }
        run.cancel("enough");
        let (result, _) = support::end(run, events).await;
        assert_eq!((result.stop_reason, agents.running()), (StopReason::Cancelled, 0));
    }
}

on_both_runtimes! {
    37: workflows_inside_share_what_is_counted,
    37: the_events_of_workflows_inside_are_the_runs,
    37: cancelling_ends_workflows_inside,
}
