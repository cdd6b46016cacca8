//! Engines and runs for tests.

use std::sync::Arc;

use fanfold::{
    AgentRequest, CancellationToken, Child, Engine, Event, Limits, Meta, RunResult, StartError, StartRequest,
    Subagents, Support, WorkflowError, event_stream,
};
use fanfold_agents::Scripted;
use futures::StreamExt as _;
use futures::future::BoxFuture;

/// An engine with scripted agents and these limits. The compiled sandbox is shared through a cache on disk.
pub(crate) fn engine(limits: Limits) -> (Engine, Arc<Scripted>) {
    let scripted = Arc::new(Scripted::new());
    let engine = Engine::builder()
        .provider("spawn", Shared(scripted.clone()))
        .limits(limits)
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
        .build()
        .expect("the engine builds");
    (engine, scripted)
}

/// A provider that the test holds too.
pub(crate) struct Shared<S>(pub(crate) Arc<S>);

impl<S: Subagents> Subagents for Shared<S> {
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        self.0.start(request, cancel)
    }

    fn supports(&self) -> Support {
        self.0.supports()
    }
}

/// Limits by their setting names.
pub(crate) fn limits(json: serde_json::Value) -> Limits {
    serde_json::from_value(json).expect("valid limits")
}

/// A request with metadata.
pub(crate) fn request(script: &str) -> StartRequest {
    StartRequest::new(script).meta(Meta::new("test", "a test"))
}

/// Runs a request to its end and checks that its events are legal.
pub(crate) async fn run(
    engine: &Engine,
    request: StartRequest,
) -> Result<(RunResult, Vec<Event>), WorkflowError> {
    let (observer, events) = event_stream();
    let run = engine.start(request.observe(observer)).await?;
    let result = run.result().await;
    run.dispose().await;
    let events: Vec<Event> = events.collect().await;
    Ok(((*result).clone(), events))
}
