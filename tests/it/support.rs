//! Engines and runs for tests.

use std::sync::Arc;

use fanfold::{
    AgentRequest, CancellationToken, Child, Engine, Event, EventKind, Limits, RecordChecker, RunResult,
    SessionRecord, StartError, StartRequest, Subagents, Support, WorkflowError, event_stream,
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

/// The rules that the events of every run keep: numbered from 1, start first, end last, children paired.
fn check_events(events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.n).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let mut checker = RecordChecker::default();
    for record in events.iter().filter_map(SessionRecord::of_event) {
        checker.check(&record).unwrap_or_else(|fault| panic!("{fault}: {events:?}"));
    }
    assert!(matches!(events.last().map(|event| &event.kind), Some(EventKind::End { .. })), "{events:?}");
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
    check_events(&events);
    Ok(((*result).clone(), events))
}
