//! What observers are told of calls that wait, that do not start, and that fail; and of agents at work.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::{
    AgentRequest, Answer, CancellationToken, Child, ChildError, Event, EventKind, Limits, Meta, Observer,
    StartError, Subagents,
};
use futures::future::BoxFuture;
use serde_json::json;

use crate::support::{engine, engine_with, limits, request};

#[derive(Clone, Default)]
struct Seen {
    told: Arc<Mutex<Vec<String>>>,
    ended: CancellationToken,
}

impl Observer for Seen {
    fn event(&self, _meta: &Meta, event: &Event) {
        let told = match &event.kind {
            EventKind::AgentQueued { agent } => {
                format!("queues {} {}", agent.seq, agent.phase.as_deref().unwrap_or("-"))
            }
            EventKind::AgentRefused { agent } => format!("refuses {}: {}", agent.agent.seq, agent.reason),
            EventKind::AgentStart { agent } => format!("starts {}", agent.seq),
            EventKind::AgentRetry { agent } => {
                format!("retries {} after {} ms: {}: {}", agent.seq, agent.wait_ms, agent.kind, agent.reason)
            }
            EventKind::AgentProgress { agent } => format!("{:?} {}", agent.kind, agent.text),
            EventKind::AgentEnd { agent } => {
                format!("ends {} {}", agent.agent.seq, agent.reason.as_deref().unwrap_or("-"))
            }
            EventKind::End { .. } => return self.ended.cancel(),
            _ => return,
        };
        self.told.lock().expect("nobody panics").push(told);
    }
}

impl Seen {
    async fn all(&self) -> Vec<String> {
        self.ended.cancelled().await;
        self.told.lock().expect("nobody panics").clone()
    }
}

async fn seen(script: &str, limits: Limits) -> Vec<String> {
    let (engine, _) = engine(limits);
    let seen = Seen::default();
    let run = engine.start(request(script).observe(seen.clone())).await.expect("it starts");
    run.result().await;
    run.dispose().await;
    seen.all().await
}

#[tokio::test]
async fn a_call_is_queued_before_it_starts_and_a_failed_agent_ends_with_its_reason() {
    let script = "phase('A'); await parallel([() => agent('a'), () => agent('fail:no')])";
    let seen = seen(script, limits(json!({"maxConcurrentAgents": 1}))).await;
    let place =
        |told: &str| seen.iter().position(|seen| seen == told).unwrap_or_else(|| panic!("{told}: {seen:?}"));
    assert!(place("queues 1 A") < place("starts 1") && place("queues 2 A") < place("ends 1 -"), "{seen:?}");
    assert!(place("starts 2") < place("ends 2 no"), "{seen:?}");
}

#[tokio::test]
async fn a_call_that_cannot_start_is_refused_with_its_reason() {
    let script = "await agent('startfail:no').catch(() => 1)";
    assert_eq!(seen(script, Limits::default()).await, ["queues 1 -", "refuses 1: no"]);
}

/// An agent that talks while it works, and needs a second attempt.
struct Talker;

impl Subagents for Talker {
    fn start(
        &self,
        request: AgentRequest,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let activity = request.activity;
        let work = async move {
            activity.text("half ");
            activity.text("a text");
            activity.retry(1, "server", "overloaded", Duration::from_millis(7));
            activity.tool("grep");
            activity.text("the whole");
            Err::<Answer, _>(ChildError::failed(format!("it ended after {:?}", activity.tail())))
        };
        Box::pin(async { Ok(Child::new("talker", work)) })
    }
}

#[tokio::test]
async fn what_an_agent_says_is_told_before_its_end() {
    let engine = engine_with(Talker, Limits::default());
    let seen = Seen::default();
    let run = engine.start(request("await agent('x')").observe(seen.clone())).await.expect("it starts");
    run.result().await;
    let expected = [
        "queues 1 -",
        "starts 1",
        "Text half a text",
        "retries 1 after 7 ms: server: overloaded",
        "Tool grep",
        "Text the whole",
        "ends 1 it ended after \"the whole\"",
    ];
    assert_eq!(seen.all().await, expected);
}
