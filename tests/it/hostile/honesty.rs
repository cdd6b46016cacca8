//! What a script hides, the run tells: failures, answers that nobody waited for, rejections.

use serde_json::json;

use super::on_both_runtimes;
use super::row::{Row, check, row};
use crate::support;

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(33, "a member of a promise", "return agent('x').output ?? null").gives(json!(null)).warns("1 agent() call was never awaited"),
        row(33, "calls on two lines, one of them in a loop", "agent('x');\nfor (const n of [1, 2]) {\n  agent(n + '')\n}\nreturn 1").gives(json!(1)).warns("3 agent() calls were never awaited: their answers are lost (lines 1, 3)"),
        row(33, "calls on more lines than are told", (1..=12).map(|n| format!("agent('{n}')\n")).collect::<String>() + "return 1").gives(json!(1)).warns("12 agent() calls were never awaited: their answers are lost (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and others)"),
        row(33, "a pipeline that is not awaited", "pipeline([1, 2], (n) => agent('hang:' + n)); await agent('x'); return 1").gives(json!(1)).warns("2 agents were stopped since the script had ended"),
        row(33, "a function that is not awaited", "async function main() { await agent('hang:'); return 5 } main(); await agent('x')").gives(json!(null)).warns("1 agent was stopped since the script had ended"),
        row(33, "calls on as many lines as are told", (1..=10).map(|n| format!("agent('{n}')\n")).collect::<String>() + "return 1").gives(json!(1)).warns("(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)"),
        row(33, "many calls on a line", "agent('x'); ".repeat(12) + "\nagent('y')\nreturn 1").gives(json!(1)).warns("(lines 1, 2)"),
        row(33, "a call by a native function", "\n[1, 2].map(String).forEach(agent)\nreturn 1").gives(json!(1)).warns("their answers are lost (line 2)"),
        row(33, "a promise as text", "return `${agent('x')}`").gives(json!("[object Promise]")).warns("1 agent() call was never awaited"),
        row(33, "a promise as a condition", "if (agent('x')) return 1").gives(json!(1)).warns("1 agent() call was never awaited"),
        row(33, "promises in a list", "[1, 2].map((n) => agent(`${n}`)); return 1").gives(json!(1)).warns("2 agent() calls were never awaited"),
        row(33, "a promise that is kept", "globalThis.kept = agent('x'); return 1").gives(json!(1)).warns("1 agent() call was never awaited"),
        row(33, "a promise in the value", "return { a: agent('x') }").fails(fanfold::ErrorCode::ResultUnserializable).on("a"),
        row(33, "a promise that is awaited", "return await agent('x')").gives(json!("echo:x")),
        row(33, "a promise that is returned", "return agent('x')").gives(json!("echo:x")),
        row(34, "a rejection", "Promise.reject(new Error('x')); return 1").gives(json!(1)).warns("unhandled rejection: Error: x"),
        row(34, "an error in an asynchronous function", "(async () => { notDefined })(); return 1").gives(json!(1)).warns("notDefined"),
        row(34, "an error after an await", "(async () => { await null; null.x })(); await agent('x'); return 1").gives(json!(1)).warns("TypeError"),
        row(34, "a rejection that is handled later", "const p = Promise.reject(new Error('x')); await agent('x'); return await p.catch(() => 1)").gives(json!(1)),
        row(34, "a rejection of nothing", "Promise.reject(); return 1").gives(json!(1)).warns("unhandled rejection: undefined"),
        row(34, "a rejection that cannot be shown", "Promise.reject(Object.create(null)); return 1").gives(json!(1)).warns("unhandled rejection"),
        row(34, "a rejection that rejects when shown", "const f = () => Promise.reject({ toString: f }); f(); return 1")
            .gives(json!(1))
            .fails(fanfold::ErrorCode::TimeLimit)
            .fails(fanfold::ErrorCode::MemoryLimit),
        row(34, "a rejection with code that spins", "
            const error = Object.defineProperty(new Error('x'), 'message', { get() { while (true) {} } });
            Object.defineProperty(Object.prototype, 'value', { get() { while (true) {} } });
            Promise.reject(error); return 1")
            .gives(json!(1))
            .warns("unhandled rejection"),
        row(34, "a rejection beside a list that spins", "Object.defineProperty(Array.prototype, 0, { set() { while (true) {} } });
            Promise.reject(new Error('x')); return 1")
            .gives(json!(1))
            .warns("Error: x"),
        row(34, "many rejections", "for (let i = 0; i < 5000; i++) Promise.reject(new Error(`${i}`)); return 1").gives(json!(1)).warns("Error: 0"),
        row(34, "a rejection of 4 MiB", "Promise.reject('x'.repeat(4 << 20)); return 1").gives(json!(1)).warns("xxx"),
        row(34, "an agent's error that nobody handles", "agent('infra:x'); await agent('y'); return 1").gives(json!(1)).warns("never awaited"),
        row(35, "after an await", "const f = async () => {\n  await agent('x');\n  throw new RangeError('mine') };\nawait f()").throws("RangeError: mine").at(3, 13),
        row(35, "before the first call", "const a = 1;\nconst y = await agnet('x')").throws("ReferenceError").says("agnet").at(2, 17),
        row(35, "of nothing, before the first call", "const a = null;\nreturn a.x").throws("TypeError").at(2, 10),
        row(35, "after a microtask", "await null;\nnotDefined").throws("ReferenceError").says("notDefined").at(2, 1),
        row(35, "in a then", "await agent('x').then(() => {\n null.x })").throws("TypeError").at(2, 7),
        row(35, "in a class of its own", "class Mine extends Error { get name() { return 'Mine' } }\nawait null; throw new Mine('x')").throws("Mine: x"),
        row(35, "after a loop of agents", "for (const n of [1, 2, 3]) {\n  const answer = await agent(`${n}`);\n  if (n === 3) throw new Error(answer) }").throws("Error: echo:3").at(3, 26),
        row(35, "a value that is no error", "await null; throw { a: 1 }").throws("[object Object]"),
    ]
}

async fn what_a_script_loses_is_told() {
    check(rows()).await;
}

async fn failures_are_listed_whatever_the_script_returns() {
    let (engine, _) = support::engine(fanfold::Limits::default());
    let script = "
        const answers = await parallel(['fail:first', 'x', 'fail:second', 'infra:third'].map((prompt) =>
            () => agent(prompt, { label: `l ${prompt}` }).catch(() => null)));
        return { findings: answers.filter((answer) => answer === undefined) };";
    let (result, _) = support::run(&engine, support::request(script)).await.expect("it starts");
    assert_eq!((result.value.get(), result.agents_started), (r#"{"findings":[]}"#, 4));
    let mut failures: Vec<_> = result
        .failures
        .iter()
        .map(|failure| (failure.seq, failure.label.as_str(), failure.reason.as_str()))
        .collect();
    failures.sort_unstable();
    assert_eq!(
        failures,
        [(1, "l fail:first", "first"), (3, "l fail:second", "second"), (4, "l infra:third", "third")]
    );
}

on_both_runtimes! {
    33: what_a_script_loses_is_told,
    32: failures_are_listed_whatever_the_script_returns,
}
