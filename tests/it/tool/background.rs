//! Runs that no call waits for, and results that are longer than an answer.

use fanfold::{CancellationToken, Engine, Event, EventKind, EventStream, event_stream};
use fanfold_agents::Scripted;
use fanfold_tool::{CallingAgent, Retention, RunState, Runs, ToolError, WorkflowTool};
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::sync::Arc;

use super::assistant::{Assistant, arguments, by, tool_with_runs};
use crate::support::{engine, limits};

struct Host {
    engine: Engine,
    runs: Runs,
    tool: WorkflowTool,
    agent: Arc<Assistant>,
    scripted: Arc<Scripted>,
}

impl Host {
    fn new(config: Value) -> Self {
        let (engine, scripted) = engine(limits(json!({"maxConcurrentAgents": 16})));
        let runs = Runs::new(Retention::default());
        let tool = tool_with_runs(&engine, config, &runs);
        Self { engine, runs, tool, agent: Assistant::new(), scripted }
    }

    /// Starts a script in the background.
    async fn start(&self, script: &str) -> (String, EventStream) {
        let (observer, events) = event_stream();
        let call = by(&self.agent).observe(observer);
        (self.tool.start(&arguments(script), call).await.expect("it starts").value.run_id, events)
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<(Value, String), ToolError> {
        let answer = self.tool.call(name, &arguments, by(&self.agent)).await?;
        Ok((answer.value, answer.text))
    }
}

/// Waits for an event.
async fn until(events: &mut EventStream, wanted: impl Fn(&EventKind) -> bool) -> Event {
    loop {
        let event = events.next().await.expect("the event comes");
        if wanted(&event.kind) {
            return event;
        }
    }
}

fn agent_starts(kind: &EventKind) -> bool {
    matches!(kind, EventKind::AgentStart { .. })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_in_the_background_is_told_of_and_read() {
    let host = Host::new(json!({}));
    let (run_id, _) = host.start("return await agent('sleep:20')").await;
    let of = json!({"runId": run_id});
    let (running, text) = host.call("workflow_result", of.clone()).await.unwrap();
    assert_eq!(running, json!({"runId": run_id, "name": "test", "state": "running"}));
    assert!(text.starts_with("workflow \"test\" is still running"), "{text}");

    let notice = host.agent.notice().await;
    assert_eq!((notice.run_id.as_str(), notice.state), (run_id.as_str(), RunState::Completed));
    assert_eq!(
        notice.text,
        format!(
            "workflow \"test\" completed (1 agent). Run {run_id}. Read its value: workflow_result {{\"runId\": \"{run_id}\"}}"
        )
    );
    let (page, text) = host.call("workflow_result", of.clone()).await.unwrap();
    assert_eq!(
        page,
        json!({"runId": run_id, "name": "test", "state": "completed", "agentsStarted": 1, "page": "\"slept\"",
               "offset": 0, "total": 7})
    );
    assert_eq!(text, "workflow \"test\" completed (1 agent).\nReturn value:\n\"slept\"");
    assert_eq!(host.call("workflow_result", of).await.unwrap().0, page, "reading does not take it away");
    assert_eq!(host.agent.records().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_result_ends_with_the_run_or_the_call() {
    let host = Host::new(json!({}));
    let (run_id, _) = host.start("return await agent('sleep:30')").await;
    let (page, _) = host.call("workflow_result", json!({"runId": run_id, "waitMs": 600_000})).await.unwrap();
    assert_eq!(page["state"], "completed");

    let (run_id, _) = host.start("return await agent('hang:')").await;
    let (page, _) = host.call("workflow_result", json!({"runId": run_id, "waitMs": 1})).await.unwrap();
    assert_eq!(page["state"], "running");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let waiting = json!({"runId": run_id, "waitMs": 600_000});
    let error = host.tool.result(&waiting, by(&host.agent).cancel_with(cancel)).await.unwrap_err();
    assert_eq!(
        error.text(),
        format!("Error: the call was cancelled while it waited for the end of run {run_id}")
    );
    host.runs.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_tells_phases_counts_and_what_happened_last() {
    let host = Host::new(json!({}));
    let script = "phase('Collect'); await agent('x'); await agent('fail:y'); phase('Report');
                  log('almost there'); return await parallel([1, 2].map((n) => () => agent('hang:', {label: 'h' + n})))";
    let (run_id, mut events) = host.start(script).await;
    for _ in 0..4 {
        until(&mut events, agent_starts).await;
    }
    let (status, text) = host.call("workflow_status", json!({"runId": run_id})).await.unwrap();
    let counts = |running, completed, failed| json!({"running": running, "completed": completed, "failed": failed, "cancelled": 0});
    assert_eq!((&status["state"], &status["phase"]), (&json!("running"), &json!("Report")), "{status:#}");
    assert_eq!(status["agents"], counts(2, 1, 1));
    assert_eq!(
        status["phases"],
        json!([{"title": "Collect", "agents": counts(0, 1, 1)}, {"title": "Report", "agents": counts(2, 0, 0)}])
    );
    let last: Vec<&str> =
        status["lastEvents"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(
        last[last.len() - 4..],
        ["phase \"Report\"", "log: almost there", "agent 3 \"h1\" started", "agent 4 \"h2\" started"]
    );
    assert!(status["elapsedMs"].as_u64() >= status["lastEventAgeMs"].as_u64());
    assert!(
        text.contains("\nAgents: 2 running, 1 completed, 1 failed, 0 cancelled\nPhase: Report\n"),
        "{text}"
    );

    let (stopped, text) = host.call("workflow_cancel", json!({"runId": run_id})).await.unwrap();
    assert_eq!(stopped, json!({"runId": run_id, "name": "test", "state": "cancelled"}));
    assert_eq!(text, "workflow \"test\" was cancelled; it and its agents have stopped.");
    assert_eq!(host.scripted.running(), 0);
    let (status, _) = host.call("workflow_status", json!({"runId": run_id})).await.unwrap();
    assert_eq!((&status["state"], &status["error"]["code"]), (&json!("cancelled"), &json!("CANCELLED")));
    assert_eq!(status["agents"], json!({"running": 0, "completed": 1, "failed": 1, "cancelled": 2}));
    let error = host.call("workflow_result", json!({"runId": run_id})).await.unwrap_err();
    assert_eq!(error.text(), "Error: workflow run was cancelled (cancelled by request)");
    let again = host.call("workflow_cancel", json!({"runId": run_id})).await.unwrap().0;
    assert_eq!(again["state"], "cancelled", "cancelling twice is no error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_failed_is_told_as_an_error() {
    let host = Host::new(json!({}));
    let (run_id, _) = host.start("throw new Error('boom')").await;
    let notice = host.agent.notice().await;
    assert_eq!(notice.state, RunState::Error);
    assert!(notice.text.contains("workflow run failed: Error: boom"), "{}", notice.text);
    let error = host.call("workflow_result", json!({"runId": run_id})).await.unwrap_err();
    assert!(error.text().starts_with("Error: workflow run failed: Error: boom"), "{error}");
    let (stopped, _) = host.call("workflow_cancel", json!({"runId": run_id})).await.unwrap();
    assert_eq!(stopped["state"], "error", "what has ended cannot be cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_is_read_in_pages_that_add_up_to_it() {
    let host = Host::new(json!({}));
    // Two megabytes of JSON, with characters of every length.
    let script = "return Array.from({length: 20000}, (_, i) => ({i, text: 'é🎉\\n' + 'x'.repeat(70) + i}))";
    let (run_id, _) = host.start(script).await;
    host.agent.notice().await;
    let (mut json, mut offset, mut pages) = (String::new(), Some(0), 0);
    while let Some(from) = offset {
        let (page, text) =
            host.call("workflow_result", json!({"runId": run_id, "offset": from})).await.unwrap();
        let part = page["page"].as_str().unwrap();
        assert!(part.chars().count() <= 50_000 && text.contains(part));
        offset = page["nextOffset"].as_u64();
        if let Some(next) = offset {
            assert!(text.ends_with(&format!(
                "more characters: workflow_result {{\"runId\": \"{run_id}\", \"offset\": {next}}}]"
            )));
        }
        json.push_str(part);
        pages += 1;
    }
    assert!(json.len() > 2_000_000 && pages > 40, "{} bytes, {pages} pages", json.len());
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value.as_array().map(Vec::len), Some(20000));
    assert_eq!(value[19999]["text"], format!("é🎉\n{}19999", "x".repeat(70)));

    let total = json.chars().count();
    let at = |offset: usize| {
        host.call("workflow_result", json!({"runId": run_id, "offset": offset, "maxChars": 2}))
    };
    assert_eq!(at(total).await.unwrap().0["page"], "");
    let error = at(total + 1).await.unwrap_err();
    assert!(error.text().contains(&format!("offset must be at most {total}")), "{error}");
    assert_eq!(at(total - 1).await.unwrap().0["page"], "]");
}

#[tokio::test]
async fn a_foreground_answer_that_was_cut_says_how_to_read_the_rest() {
    let host = Host::new(json!({"maxResultChars": 10}));
    let (value, text) = host.call("workflow", arguments("return '0123456789🎉abcdef'")).await.unwrap();
    assert_eq!(value["result"], "0123456789🎉abcdef");
    let run_id = value["runId"].as_str().unwrap();
    assert_eq!(
        text,
        format!(
            "workflow \"test\" completed (0 agents).\nReturn value:\n\"012345678\n… [truncated: 9 more characters]\n\
             Run {run_id}. Read the rest: workflow_result {{\"runId\": \"{run_id}\", \"offset\": 10}}"
        )
    );
    let (page, _) = host.call("workflow_result", json!({"runId": run_id, "offset": 10})).await.unwrap();
    assert_eq!(page["page"], "9🎉abcdef\"");
    assert_eq!(page.get("nextOffset"), None);
    assert_eq!(host.runs.len(), 1);

    host.call("workflow", arguments("return 'short'")).await.unwrap();
    host.call("workflow", arguments("throw 1")).await.unwrap_err();
    host.call("workflow", arguments("return )")).await.unwrap_err();
    assert_eq!(host.runs.len(), 1, "what was told whole is not kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutting_down_stops_every_run_and_keeps_what_has_ended() {
    let host = Host::new(json!({}));
    let (done, _) = host.start("return 1").await;
    host.agent.notice().await;
    let mut started = Vec::new();
    for _ in 0..3 {
        let (run_id, mut events) = host.start("return await agent('hang:')").await;
        until(&mut events, agent_starts).await;
        started.push(run_id);
    }
    let (observer, mut events) = event_stream();
    let (tool, agent) = (host.tool.clone(), host.agent.clone());
    let foreground = tokio::spawn(async move {
        tool.execute(&arguments("return await agent('hang:')"), by(&agent).observe(observer)).await
    });
    until(&mut events, agent_starts).await;

    host.runs.shutdown().await;
    assert_eq!(host.scripted.running(), 0);
    let error = foreground.await.unwrap().unwrap_err();
    assert_eq!(error.text(), "Error: workflow run was cancelled (the host is shutting down)");
    for run_id in started {
        let error = host.call("workflow_result", json!({"runId": run_id})).await.unwrap_err();
        assert_eq!(error.text(), "Error: workflow run was cancelled (the host is shutting down)");
    }
    assert_eq!(host.call("workflow_result", json!({"runId": done})).await.unwrap().0["page"], "1");
    for name in ["workflow", "workflow_start"] {
        let error = host.call(name, arguments("return 1")).await.unwrap_err();
        assert_eq!(error.text(), "Error: the host is shutting down and starts no further workflow");
    }
    host.runs.shutdown().await;
    // Every record is written: five runs, four of them with an agent.
    assert_eq!(host.agent.records().len(), 2 + 4 * 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_dropped_takes_its_runs_along() {
    let Host { engine: _engine, runs, tool, agent, scripted } = Host::new(json!({}));
    let (observer, mut events) = event_stream();
    let call = by(&agent).observe(observer);
    tool.start(&arguments("return await agent('hang:')"), call).await.unwrap();
    until(&mut events, agent_starts).await;
    drop((tool, runs));
    let end = until(&mut events, |kind| matches!(kind, EventKind::End { .. })).await;
    let EventKind::End { result } = end.kind else { unreachable!("an end") };
    assert_eq!(result.error.unwrap().message, "the registry of runs was dropped");
    assert_eq!(agent.notice().await.state, RunState::Cancelled);
    assert_eq!(scripted.running(), 0);
}

#[tokio::test]
async fn a_start_that_was_cancelled_or_refused_starts_nothing() {
    let host = Host::new(json!({}));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let call = by(&host.agent).cancel_with(cancel);
    let error = host.tool.start(&arguments("return await agent('x')"), call).await.unwrap_err();
    assert_eq!(error.text(), "Error: workflow run was cancelled (cancelled before the start)");
    let error = host.call("workflow_start", arguments("return (")).await.unwrap_err();
    assert!(error.text().starts_with("Error: the workflow did not start: SCRIPT_PARSE: "), "{error}");
    assert_eq!((host.scripted.requests().len(), host.runs.len(), host.agent.appends()), (0, 0, 0));
}

#[tokio::test]
async fn the_callers_token_ends_the_start_and_not_the_run() {
    let host = Host::new(json!({}));
    let cancel = CancellationToken::new();
    let call = by(&host.agent).cancel_with(cancel.clone());
    host.tool.start(&arguments("return await agent('sleep:20')"), call).await.unwrap();
    cancel.cancel();
    assert_eq!(host.agent.notice().await.state, RunState::Completed);
}

#[tokio::test]
async fn arguments_of_the_background_tools_are_checked() {
    let host = Host::new(json!({}));
    for name in ["workflow_status", "workflow_result", "workflow_cancel"] {
        let error = host.call(name, json!({"id": 3})).await.unwrap_err();
        assert!(
            error.text().starts_with(&format!(
                "Error: the arguments of {name} are not valid: INVALID_ARGUMENT: runId is missing; id is not a known"
            )),
            "{error}"
        );
        let error = host.call(name, json!({"runId": "r-1"})).await.unwrap_err();
        assert_eq!(error.text(), "Error: no run \"r-1\" is kept; results expire. This agent has no runs");
    }
}

struct Stranger;

impl CallingAgent for Stranger {
    fn id(&self) -> &str {
        "a stranger"
    }
}

#[tokio::test]
async fn an_agents_own_runs_are_listed_the_latest_first() {
    let host = Host::new(json!({}));
    let (list, text) = host.call("workflow_status", json!({})).await.unwrap();
    assert_eq!((list, text.as_str()), (json!({"runs": []}), "You have no workflow runs."));
    let (first, _) = host.start("return await agent('x')").await;
    host.agent.notice().await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let (second, mut events) = host.start("return await agent('hang:')").await;
    until(&mut events, agent_starts).await;
    let call = fanfold_tool::Call::by(Arc::new(Stranger));
    let theirs = host.tool.start(&arguments("return 1"), call).await.unwrap().value.run_id;

    let (list, text) = host.call("workflow_status", json!({})).await.unwrap();
    let told: Vec<(&Value, &Value, &Value)> = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (&run["runId"], &run["state"], &run["read"]))
        .collect();
    let no = &json!(false);
    assert_eq!(
        told,
        [(&json!(second), &json!("running"), no), (&json!(first), &json!("completed"), no)],
        "{list}"
    );
    assert_eq!(list["runs"][0]["agents"]["running"], 1);
    assert!(text.starts_with("You have 2 workflow runs"), "{text}");
    assert!(text.contains(&first) && text.contains(&second) && text.contains("not read yet"), "{text}");

    host.call("workflow_result", json!({"runId": first})).await.unwrap();
    host.runs.share(&theirs, host.agent.id());
    let (list, _) = host.call("workflow_status", json!({})).await.unwrap();
    let read = |id: &str| {
        let runs = list["runs"].as_array().unwrap();
        runs.iter().find(|run| run["runId"] == id).map(|run| run["read"].clone())
    };
    assert_eq!(read(&first), Some(json!(true)), "{list}");
    assert_eq!(read(&theirs), Some(json!(false)), "a run that is shared: {list}");
    host.runs.shutdown().await;
}

#[tokio::test]
async fn a_result_is_read_once_the_host_says_so_if_it_confirms() {
    let host = Host::new(json!({}));
    let (run_id, _) = host.start("return 1").await;
    host.agent.notice().await;
    let of = json!({"runId": run_id});
    host.tool.result(&of, by(&host.agent).confirms_reading()).await.unwrap();
    let read = async || host.call("workflow_status", json!({})).await.unwrap().0["runs"][0]["read"].clone();
    assert_eq!(read().await, false);
    host.runs.mark_read(&run_id);
    assert_eq!(read().await, true);
}

#[tokio::test]
async fn a_thousand_failures_make_a_short_answer() {
    let host = Host::new(json!({"noteFailures": true}));
    let script = "return (await parallel(Array.from({ length: 120 }, (_, i) => () => \
                  agent(`fail:no licence ${'x'.repeat(1000)}`, { label: `a${i}` })))).filter(Boolean).length";
    let (run_id, _) = host.start(script).await;
    host.agent.notice().await;
    let (page, text) = host.call("workflow_result", json!({"runId": run_id})).await.unwrap();
    assert_eq!((page["failures"].as_array().unwrap().len(), &page["moreFailures"]), (50, &json!(70)));
    assert!(page["failures"][0]["reason"].as_str().unwrap().chars().count() <= 301, "{page}");
    let (_, failed) =
        text.split_once("\nFailed agents (120):\n- 120 agents failed: no licence xxx").expect(&text);
    assert!(failed.lines().count() == 1 && failed.contains("… (first: #"), "{text}");
}
