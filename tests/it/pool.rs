//! Sandboxes from a pool.

use fanfold::{Engine, EngineBuilder, ErrorCode, StopReason};
use fanfold_agents::Scripted;

use crate::support;

fn pooled(sandboxes: u32) -> EngineBuilder {
    Engine::builder()
        .provider("spawn", Scripted::new())
        .limits(support::limits(serde_json::json!({"maxConcurrentAgents": 16})))
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
        .pool(sandboxes)
}

#[tokio::test]
async fn a_run_that_finds_the_pool_empty_waits_for_its_turn() {
    let engine = pooled(1).build().expect("the engine builds");
    let first = engine.start(support::request("return await agent('hang:')")).await.expect("it starts");
    // Starting and checking need no sandbox of those that run.
    let second = engine.start(support::request("return 2")).await.expect("it starts");
    let third = engine.start(support::request("return 3")).await.expect("it starts");
    third.cancel("it waited long enough");
    assert_eq!(third.result().await.stop_reason, StopReason::Cancelled);
    first.cancel("enough");
    assert_eq!(first.result().await.stop_reason, StopReason::Cancelled);
    assert_eq!(second.result().await.value.get(), "2");
}

#[tokio::test]
async fn a_workflow_inside_does_not_wait_for_the_one_that_waits_for_it() {
    let engine = pooled(1).build().expect("the engine builds");
    let inner = "export const meta = {name: 'i', description: 'd'}\nreturn await agent('x')";
    let script = "return await parallel([() => workflow({script: args}), () => workflow({script: args})])";
    let request = support::request(script).args(inner.into());
    let (result, _) = support::run(&engine, request).await.expect("it starts");
    assert_eq!(result.value.get(), r#"["echo:x","echo:x"]"#, "{:?}", result.error);
}

#[tokio::test]
async fn a_sandbox_of_the_pool_remembers_nothing() {
    let engine = pooled(1).build().expect("the engine builds");
    let script = "const before = [globalThis.left, Object.prototype.left];
                  Object.prototype.left = 'something'; globalThis.left = new Array(1e5).fill('x');
                  return before.every((value) => value === undefined)";
    for _ in 0..5 {
        let (result, _) = support::run(&engine, support::request(script)).await.expect("it starts");
        assert_eq!(result.value.get(), "true", "{:?}", result.error);
    }
}

#[test]
fn a_pool_that_cannot_be_is_refused() {
    // The other one would take more addresses than a processor has.
    for sandboxes in [0, u32::MAX / 8] {
        let error = pooled(sandboxes).build().expect_err("there is no such pool");
        assert_eq!(
            (error.code, error.path.as_deref()),
            (Some(ErrorCode::InvalidArgument), Some("pool")),
            "{error}"
        );
    }
}
