//! Sandboxes from a pool: who waits for one, and how long.

use fanfold::{Engine, Limits, StopReason};
use fanfold_agents::Scripted;

use crate::support;

fn engine(sandboxes: u32) -> Engine {
    let mut limits = Limits::default();
    limits.max_concurrent_agents = 16;
    Engine::builder()
        .provider("spawn", Scripted::new())
        .limits(limits)
        .pool(sandboxes)
        .build()
        .expect("an engine")
}

#[tokio::test]
async fn runs_wait_for_a_sandbox_and_can_be_cancelled_meanwhile() {
    let engine = engine(1);
    let start = async |script: &str| engine.start(support::request(script)).await.expect("the script starts");
    let first = start("return await agent('hang:')").await;
    let (second, third) = (start("return 2").await, start("return 3").await);
    second.cancel("enough");
    // While the first one has the only sandbox.
    assert_eq!(second.result().await.stop_reason, StopReason::Cancelled);
    first.cancel("enough");
    assert_eq!(first.result().await.stop_reason, StopReason::Cancelled);
    assert_eq!(third.result().await.value.get(), "3");
}

#[tokio::test]
async fn a_workflow_inside_does_not_wait_for_the_one_that_waits_for_it() {
    let engine = engine(1);
    let inner = "export const meta = {name: 'i', description: 'd'}\nreturn await agent('x')";
    let script = "return await parallel([() => workflow({script: args}), () => workflow({script: args})])";
    let request = support::request(script).args(inner.into());
    let run = engine.start(request).await.expect("the script starts");
    assert_eq!(run.result().await.value.get(), r#"["echo:x","echo:x"]"#);
}

#[test]
fn a_pool_of_nothing_is_refused() {
    let error = Engine::builder().provider("spawn", Scripted::new()).pool(0).build().expect_err("no pool");
    assert_eq!(error.path.as_deref(), Some("pool"));
}
