//! What the registry keeps, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfold::event_stream;
use fanfold_tool::{Retention, Runs, ToolError, WorkflowTool};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::assistant::{Assistant, arguments, by, tool_with_runs};
use crate::support::{engine, limits};

/// A registry whose clock is set by hand.
struct Host {
    seconds: Arc<AtomicU64>,
    runs: Runs,
    tool: WorkflowTool,
    agent: Arc<Assistant>,
}

impl Host {
    fn new(retention: Value) -> Self {
        let retention: Retention = serde_json::from_value(retention).expect("valid");
        let seconds = Arc::new(AtomicU64::new(1000));
        let now = seconds.clone();
        let runs = Runs::with_clock(retention, move || Duration::from_secs(now.load(Ordering::Relaxed)));
        let (engine, _) = engine(limits(json!({})));
        let tool = tool_with_runs(&engine, json!({}), &runs);
        Self { seconds, runs, tool, agent: Assistant::new() }
    }

    fn pass(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    async fn start(&self, script: &str) -> Result<String, ToolError> {
        Ok(self.tool.start(&arguments(script), by(&self.agent)).await?.value.run_id)
    }

    /// A run that has ended.
    async fn ended(&self, script: &str) -> String {
        let run_id = self.start(script).await.expect("there is room");
        self.agent.notice().await;
        run_id
    }

    async fn read(&self, run_id: &str, max_chars: u64) -> Result<Value, ToolError> {
        let arguments = json!({"runId": run_id, "maxChars": max_chars});
        Ok(self.tool.call("workflow_result", &arguments, by(&self.agent)).await?.value)
    }
}

#[tokio::test]
async fn a_result_expires_an_hour_after_it_was_last_read() {
    let host = Host::new(json!({}));
    let (read, unread) = (host.ended("return 1").await, host.ended("return 2").await);
    host.pass(3599);
    host.read(&read, 10).await.unwrap();
    host.pass(1);
    let error = host.read(&unread, 10).await.unwrap_err();
    assert_eq!(
        error.text(),
        format!("Error: no run {unread:?} is kept; results expire. This agent's runs: {read}")
    );
    host.pass(3598);
    host.read(&read, 10).await.unwrap();
    host.pass(3600);
    host.read(&read, 10).await.unwrap_err();
    assert!(host.runs.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_runs_is_kept_however_long_it_takes() {
    let host = Host::new(json!({"keepMs": 1000}));
    let run_id = host.start("return await agent('hang:')").await.unwrap();
    host.pass(100_000);
    let status = host.tool.status(&json!({"runId": run_id}), by(&host.agent)).await.unwrap();
    assert_eq!(status.value.elapsed_ms, 100_000_000);
    assert!(status.text.contains("is running: 27 h 46 min so far"), "{}", status.text);
    host.runs.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ages_are_told_by_the_registrys_clock() {
    let host = Host::new(json!({}));
    let (observer, mut events) = event_stream();
    let call = by(&host.agent).observe(observer);
    let script = arguments("return await agent('hang:')");
    let run_id = host.tool.start(&script, call).await.unwrap().value.run_id;
    while !matches!(events.next().await.unwrap().kind, fanfold::EventKind::AgentStart { .. }) {}
    host.pass(5);
    let status = host.tool.status(&json!({"runId": run_id}), by(&host.agent)).await.unwrap().value;
    assert_eq!((status.elapsed_ms, status.last_event_age_ms), (5000, 5000));
    assert_eq!(status.last_events.last().map(|line| line.age_ms), Some(5000));
    host.tool.cancel(&json!({"runId": run_id}), by(&host.agent)).await.unwrap();
    host.pass(7);
    let status = host.tool.status(&json!({"runId": run_id}), by(&host.agent)).await.unwrap().value;
    assert_eq!((status.elapsed_ms, status.last_event_age_ms), (5000, 7000), "the time of a run ends with it");
}

#[tokio::test]
async fn room_is_made_from_what_was_read_and_never_from_what_was_not() {
    let host = Host::new(json!({"maxRuns": 2}));
    let (first, second) = (host.ended("return 'one'").await, host.ended("return 'two'").await);
    host.pass(600);
    for tool in ["workflow", "workflow_start"] {
        let error = host.tool.call(tool, &arguments("return 3"), by(&host.agent)).await.unwrap_err();
        assert_eq!(
            error.text(),
            "Error: no further run can be kept: 2 are running or have a result that nobody has read; read a result \
             to its end, cancel a run, or wait: the first result expires in 50 min 0 s"
        );
    }
    host.read(&second, 3).await.unwrap();
    host.start("return 3").await.expect_err("only its beginning was read");
    host.read(&second, 5).await.unwrap();
    let third = host.ended("return 3").await;
    host.read(&second, 5).await.expect_err("its room was needed");
    host.read(&first, 5).await.unwrap();
    host.read(&third, 5).await.unwrap();
    assert_eq!(host.runs.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_run_take_room_too() {
    let host = Host::new(json!({"maxRuns": 1}));
    let run_id = host.start("return await agent('hang:')").await.unwrap();
    let error = host.start("return 1").await.unwrap_err();
    assert!(error.text().ends_with("cancel a run, or wait until one has ended"), "{error}");
    host.tool.cancel(&json!({"runId": run_id}), by(&host.agent)).await.unwrap();
    host.start("return 1").await.expect("a run that was cancelled on request holds no room");
    host.runs.shutdown().await;
}

#[tokio::test]
async fn results_are_bounded_in_size() {
    let host = Host::new(json!({"maxBytes": 1000}));
    let large = host.ended("return 'x'.repeat(2000)").await;
    host.start("return 1").await.expect_err("too much is kept");
    host.read(&large, 5000).await.unwrap();
    host.ended("return 1").await;
    host.read(&large, 5).await.expect_err("its room was needed");
}

#[tokio::test]
async fn a_start_that_fails_gives_its_place_back() {
    let host = Host::new(json!({"maxRuns": 1}));
    for _ in 0..3 {
        assert!(matches!(host.start("return (").await, Err(ToolError::NotStarted(_))));
    }
    host.tool.execute(&arguments("return 1"), by(&host.agent)).await.unwrap();
    host.ended("return 1").await;
}
