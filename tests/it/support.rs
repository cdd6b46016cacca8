//! Engines and runs for tests.

use std::sync::Arc;

use fanfold::{
    Engine, Event, EventKind, EventStream, Limits, Meta, RecordChecker, Run, RunResult, SessionRecord,
    StartRequest, Subagents, WorkflowError, event_stream,
};
use fanfold_agents::Scripted;
use futures::StreamExt as _;

/// An engine with scripted agents and these limits. The compiled sandbox is shared through a cache on disk.
pub(crate) fn engine(limits: Limits) -> (Engine, Arc<Scripted>) {
    let scripted = Arc::new(Scripted::new());
    (engine_with(scripted.clone(), limits), scripted)
}

/// An engine with these agents and limits.
pub(crate) fn engine_with(agents: impl Subagents, limits: Limits) -> Engine {
    Engine::builder()
        .provider("spawn", agents)
        .limits(limits)
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
        .build()
        .expect("the engine builds")
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
    Ok(end(run, events).await)
}

/// Waits for the end of a run and checks that its events are legal.
pub(crate) async fn end(run: Run, events: EventStream) -> (RunResult, Vec<Event>) {
    let result = run.result().await;
    run.dispose().await;
    let events: Vec<Event> = events.collect().await;
    check_events(&events);
    ((*result).clone(), events)
}

/// The rules that the events of every run keep: numbered from 1, start first, end last, children paired.
pub(crate) fn check_events(events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.n).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let mut checker = RecordChecker::default();
    for record in events.iter().filter_map(SessionRecord::of_event) {
        checker.check(&record).unwrap_or_else(|fault| panic!("{fault}: {events:?}"));
    }
    assert!(matches!(events.first().map(|event| &event.kind), Some(EventKind::Start { .. })), "{events:?}");
    assert!(matches!(events.last().map(|event| &event.kind), Some(EventKind::End { .. })), "{events:?}");
}
