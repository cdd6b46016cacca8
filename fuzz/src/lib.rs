//! What the fuzz targets share: one engine and one clock for a process, and what must hold of every run.

pub mod deeds;

use std::sync::OnceLock;
use std::time::Duration;

use fanfold::{
    AgentOutcome, Engine, ErrorCode, Event, EventKind, EventStream, Limits, Meta, RecordChecker, Run,
    RunResult, SessionRecord, StartRequest, StopReason, Subagents, WorkflowError,
};
use futures::StreamExt as _;
use tokio::runtime::Runtime;

/// How long a run may wait before it is cancelled. By the clock of [`block_on`], so it takes no time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Runs a future to its end. Time passes when all wait for it, so nothing that sleeps takes time.
pub fn block_on<F: Future>(future: F) -> F::Output {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O can be made")
    });
    runtime.block_on(future)
}

/// The process's engine, which has this provider and small limits.
pub fn engine(provider: impl FnOnce() -> Box<dyn Subagents>) -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        Engine::builder()
            .provider("spawn", provider())
            .limits(limits())
            .clock(|| 1_000_000_000_000)
            .cache_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/target/cache"))
            .build()
            .expect("the engine can be made")
    })
}

/// Limits that end any run within a fraction of a second.
pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_concurrent_agents = 4;
    limits.max_total_agents = 20;
    limits.max_items_per_call = 20;
    limits.sync_timeout_ms = 1000;
    limits.max_fuel = 30_000_000;
    limits.max_memory_bytes = 16 << 20;
    limits.max_script_bytes = 16 << 10;
    limits.max_args_bytes = 16 << 10;
    limits.max_result_bytes = 16 << 10;
    limits.max_request_bytes = 16 << 10;
    limits.max_narration_events = 20;
    limits.max_narration_bytes = 4 << 10;
    limits
}

/// Runs a request on an engine with [`limits`] and checks what must hold of it. An error is one of the start.
pub async fn run(engine: &Engine, request: StartRequest) -> Result<RunResult, WorkflowError> {
    let (observer, events) = fanfold::event_stream();
    match engine.start(request.observe(observer)).await {
        Ok(run) => Ok(finish(run, events).await),
        Err(error) => {
            assert_ne!(error.code, Some(ErrorCode::Internal), "{error}");
            assert!(error.code.is_some(), "a start fails with a code: {error}");
            Err(error)
        }
    }
}

/// Waits for the end of a run that has [`limits`], and checks what must hold of it.
pub async fn finish(run: Run, events: EventStream) -> RunResult {
    if tokio::time::timeout(PATIENCE, run.result()).await.is_err() {
        run.cancel("out of patience");
    }
    let result = run.result().await;
    run.dispose().await;
    let events: Vec<Event> = events.collect().await;
    check_events(&events, &result);
    (*result).clone()
}

/// Events are legal and agree with the result, and no limit was passed.
fn check_events(events: &[Event], result: &RunResult) {
    let limits = limits();
    let [first, .., last] = events else { panic!("too few events: {events:?}") };
    assert!(matches!(first.kind, EventKind::Start { .. }), "{first:?}");
    assert!(matches!(last.kind, EventKind::End { .. }), "{last:?}");
    let (mut checker, mut narration, mut said, mut running) = (RecordChecker::default(), 0, 0, 0);
    for (event, n) in events.iter().zip(1..) {
        assert_eq!((&event.id, event.n), (&first.id, n));
        let run_id = event.id.to_string();
        let record = match &event.kind {
            EventKind::Start { meta } => SessionRecord::RunStart { run_id, name: meta.name.clone() },
            EventKind::Phase { title } => {
                assert!(!title.is_empty());
                narration += 1;
                said += title.len();
                continue;
            }
            EventKind::Log { message } => {
                narration += 1;
                said += message.len();
                continue;
            }
            EventKind::AgentStart { agent } => {
                running += 1;
                SessionRecord::AgentStart {
                    run_id,
                    seq: agent.seq.into(),
                    label: agent.label.clone(),
                    phase: agent.phase.as_deref().map(str::to_owned),
                    child_id: agent.child_id.clone(),
                }
            }
            EventKind::AgentEnd { agent } => {
                running -= 1;
                SessionRecord::AgentEnd { run_id, seq: agent.agent.seq.into(), outcome: agent.outcome }
            }
            EventKind::End { result: end } => {
                assert_eq!(
                    (end.stop_reason, end.agents_started),
                    (result.stop_reason, result.agents_started)
                );
                assert_eq!(end.error, result.error);
                SessionRecord::RunEnd { run_id, stop_reason: end.stop_reason }
            }
            EventKind::AgentQueued { .. }
            | EventKind::AgentRefused { .. }
            | EventKind::AgentRetry { .. }
            | EventKind::AgentProgress { .. }
            | EventKind::Warning { .. } => continue,
            other => panic!("an event that nobody checks: {other:?}"),
        };
        assert!(running <= limits.max_concurrent_agents, "too many children at once");
        // It knows the rules: pairs, numbers that do not repeat, nothing after the end.
        checker.check(&record).unwrap_or_else(|error| panic!("{error}: {events:#?}"));
        // What is written can be read.
        let json = serde_json::to_string(event).expect("an event is JSON");
        assert_eq!(serde_json::from_str::<Event>(&json).expect("its own JSON is an event"), *event);
    }
    assert!(narration <= limits.max_narration_events && said as u64 <= limits.max_narration_bytes);
    assert!(result.agents_started <= limits.max_total_agents);
    assert!(result.value.get().len() as u64 <= limits.max_result_bytes);
    assert_eq!(result.error.is_none(), result.stop_reason == StopReason::Completed, "{result:?}");
    assert!(result.stop_reason == StopReason::Completed || result.value.get() == "null");
    let failed = events.iter().filter(
        |event| matches!(&event.kind, EventKind::AgentEnd { agent } if agent.outcome == AgentOutcome::Failed),
    );
    // Children that could not start are listed, too.
    assert!(failed.count() <= result.failures.len(), "{result:?}");
    assert!(result.failures.len() <= result.agents_started as usize, "{result:?}");
}

/// The run did not end by a fault of the sandbox.
pub fn assert_no_fault(result: &RunResult) {
    if let Some(error) = &result.error {
        assert_ne!(error.code, Some(ErrorCode::Internal), "{error}");
    }
}

/// A script with metadata, unless it brings its own.
pub fn request(script: &str) -> StartRequest {
    let request = StartRequest::new(script);
    if fanfold::Script::has_header(script) {
        request
    } else {
        request.meta(Meta::new("fuzz", "a fuzzed run"))
    }
}

/// Lines of a text as [`fanfold::Script`] counts them: each without what ends it.
pub fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(end) = text[at..].find(['\n', '\r']).map(|end| at + end) {
        lines.push(&text[start..end]);
        at = end + if text[end..].starts_with("\r\n") { 2 } else { 1 };
        start = at;
    }
    lines.push(&text[start..]);
    lines
}

/// An error's place, if it has one, is a place of the text.
pub fn assert_place(text: &str, error: &WorkflowError) {
    let (line, column) = match (error.line, error.column) {
        (Some(line), Some(column)) => (line as usize, column as usize),
        (None, None) => return,
        half => panic!("half a place, {half:?}: {error}"),
    };
    let lines = lines(text);
    assert!((1..=lines.len()).contains(&line), "line {line} of {}: {error}", lines.len());
    let characters = lines[line - 1].chars().count();
    assert!(
        (1..=characters + 1).contains(&column),
        "column {column} of {characters} on line {line}: {error}"
    );
}
