//! What `parallel()` and `pipeline()` make of whatever their functions give: promises of calls, other promises, values
//! and errors.

use fanfold::{Limits, RunResult, StopReason};
use serde_json::{Value, json};

use crate::support;

async fn result(script: &str) -> RunResult {
    let limits = support::limits(json!({"maxConcurrentAgents": 4}));
    let (engine, _) = support::engine(limits);
    let (result, _) = support::run(&engine, support::request(script)).await.expect("the script starts");
    assert_eq!(result.stop_reason, StopReason::Completed, "{script}: {:?}", result.error);
    result
}

async fn value(script: &str) -> Value {
    serde_json::from_str(result(script).await.value.get()).expect("a value is JSON")
}

#[tokio::test]
async fn functions_may_give_anything() {
    let script = "return await parallel([
        () => 1, () => agent('x'), async () => 2, () => { throw 1 }, async () => { throw 2 }, () => agent('fail:x'),
        () => ({ then(resolve) { resolve(3) } }), () => agent('x').then((x) => x + '!'), () => undefined])";
    let script = script.replace("return await", "const list = await")
        + "; return [...list.slice(0, -1), list.at(-1) === undefined]";
    let expected = json!([1, "echo:x", 2, null, null, null, 3, "echo:x!", true]);
    assert_eq!(value(&script).await, expected);
}

#[tokio::test]
async fn a_promise_of_a_call_may_be_used_again() {
    let expected = json!(["echo:x", "echo:x", "echo:x"]);
    assert_eq!(
        value(
            "const p = agent('x'); const two = await parallel([() => p, () => p]); return [...two, await p]"
        )
        .await,
        expected
    );
    assert_eq!(
        value(
            "const p = agent('x'); const one = await p; return [one, ...await parallel([() => p, () => p])]"
        )
        .await,
        expected
    );
    let script = "const p = agent('x'); const later = p.then((x) => x);
        return [...await parallel([() => p, () => p]), await later]";
    assert_eq!(value(script).await, expected);
}

#[tokio::test]
async fn a_call_may_have_its_answer_already() {
    let script = "const p = agent('x'); await agent('y'); await agent('z'); return await parallel([() => p])";
    assert_eq!(value(script).await, json!(["echo:x"]));
    let script = "const p = agent(1); await agent('y');
        try { await parallel([() => p]) } catch (error) { return error.code }";
    assert_eq!(value(script).await, json!("INVALID_ARGUMENT"));
}

#[tokio::test]
async fn an_error_reaches_everybody_who_waits_and_is_handled_then() {
    let script = "const p = agent('infra:x');
        try { await parallel([() => p]) } catch (error) {
          return [error.code, await p.catch((same) => same === error), await p.catch((same) => same === error)];
        }";
    let result = result(script).await;
    assert_eq!(result.value.get(), r#"["AGENT_RESULT",true,true]"#);
    assert!(result.warnings.is_empty(), "{:?}", result.warnings);
}

#[tokio::test]
async fn what_a_script_does_to_the_promise_of_a_call_keeps_its_error_from_nobody() {
    let script = "const p = agent('infra:x');
        Object.defineProperty(p, 'constructor', { get() { throw new Error('mine') } });
        Promise.prototype.then = () => { throw new Error('mine') };
        try { await parallel([() => p]) } catch (error) { return error.code }";
    assert_eq!(value(script).await, json!("AGENT_RESULT"));
}

#[tokio::test]
async fn stages_get_what_the_stage_before_gave_in_the_order_of_the_stages() {
    let script = "const seen = [];
        const values = await pipeline(['a', 'b'],
          (before, item, i) => { seen.push(`1${item}`); return before + i },
          (before, item, i) => { seen.push(`2${item}`); return agent(`${before} ${item} ${i}`) },
          async (before) => { await null; return before.length },
          (before, item) => [before, item]);
        return { values, seen }";
    let expected = json!({"values": [[11, "a"], [11, "b"]], "seen": ["1a", "1b", "2a", "2b"]});
    assert_eq!(value(script).await, expected);
}

#[tokio::test]
async fn errors_that_become_null_are_told() {
    let result =
        result("return await parallel([() => agent('x'), async () => { await null;\nnull.x }])").await;
    assert_eq!(result.value.get(), r#"["echo:x",null]"#);
    let [warning] = &result.warnings[..] else { panic!("{:?}", result.warnings) };
    assert!(warning.starts_with("parallel(): thunks[1] became null: TypeError: "), "{warning}");
    assert!(warning.ends_with("(workflow:2:6)"), "{warning}");

    let script = "return (await pipeline(Array.from({ length: 500 }, (_, i) => i), (i) => { throw new Error(`no ${i}`) })).length";
    let result = self::result(script).await;
    let warnings = &result.warnings;
    assert_eq!(warnings.len(), 11, "{warnings:?}");
    assert!(warnings[0].starts_with("pipeline(): items[0] became null: Error: no 0"), "{warnings:?}");
    assert_eq!(&*warnings[10], "490 more items of parallel() and pipeline() became null by errors");
}

#[tokio::test]
async fn telling_of_errors_costs_no_run_its_value() {
    let big = "const big = 'x'.repeat(3 << 20);";
    let script = format!(
        "{big} await parallel(Array(10).fill(() => {{ throw new Error(`no ${{big}}`) }})); return 'done'"
    );
    let result = self::result(&script).await;
    assert_eq!((result.value.get(), result.warnings.len()), ("\"done\"", 10));
    assert!(result.warnings.iter().all(|warning| warning.len() < 10_000));

    let script = format!(
        "{big} for (let i = 0; i < 100; i++) Promise.reject(i % 2 ? big : new Error(big)); return 'done'"
    );
    let result = self::result(&script).await;
    assert_eq!(result.value.get(), "\"done\"");
    assert!(!result.warnings.is_empty());
}

#[tokio::test]
async fn no_error_hides_another_and_none_runs_code_of_the_script() {
    let script = "const { proxy, revoke } = Proxy.revocable({}, {}); revoke();
        let over = false;
        Error.stackTraceLimit = { valueOf() { if (over) log('too late'); return 1 } };
        Promise.reject(proxy); Promise.reject(new Error('seen'));
        await parallel([() => { throw proxy }, () => { throw new Error('lost') }]);
        over = true; return 1";
    let (engine, _) = support::engine(Limits::default());
    let (result, events) = support::run(&engine, support::request(script)).await.expect("the script starts");
    let warnings = result.warnings.join("\n");
    for text in
        ["unhandled rejection: an object", "Error: seen", "thunks[0] became null: an object", "Error: lost"]
    {
        assert!(warnings.contains(text), "{text}: {warnings}");
    }
    assert!(!format!("{events:?}").contains("too late"), "{events:?}");
}

#[tokio::test]
async fn bad_arguments_are_refused_whatever_they_are() {
    let calls = [
        "agent(proxy)",
        "agent('x', proxy)",
        "parallel(proxy)",
        "parallel([proxy])",
        "pipeline(proxy, (x) => x)",
        "phase(proxy)",
        "log(proxy)",
        "workflow(proxy)",
    ];
    for call in calls {
        let script = format!(
            "const {{ proxy, revoke }} = Proxy.revocable({{}}, {{}}); revoke();
             try {{ await parallel([() => {call}]) }} catch (error) {{ return error.code }}"
        );
        assert_eq!(value(&script).await, json!("INVALID_ARGUMENT"), "{call}");
    }
}

/// What the script finds in a failed call is what `await` would have found.
#[tokio::test]
async fn a_failed_call_knows_its_line() {
    let (engine, _) = support::engine(Limits::default());
    let script = "const one = () =>\n  agent('infra:x');\nawait parallel([one])";
    let (result, _) = support::run(&engine, support::request(script)).await.expect("the script starts");
    let error = result.error.expect("it failed");
    assert_eq!((error.line, error.column), (Some(2), Some(3)), "{error:?}");
    let script = "await Promise.all(['infra:x'].map(agent))";
    let (result, _) = support::run(&engine, support::request(script)).await.expect("the script starts");
    assert_eq!(result.error.expect("it failed").line, Some(1));
}
