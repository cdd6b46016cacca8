//! What observers are told besides events.

use std::sync::{Arc, Mutex};

use fanfold::{CancellationToken, Event, EventKind, Limits, Meta, Note, Observer};
use serde_json::json;

use crate::support::{engine, limits, request};

#[derive(Clone, Default)]
struct Heard {
    told: Arc<Mutex<Vec<String>>>,
    ended: CancellationToken,
}

impl Observer for Heard {
    fn event(&self, _meta: &Meta, event: &Event) {
        let told = match &event.kind {
            EventKind::AgentStart { agent } => format!("starts {}", agent.seq),
            EventKind::AgentEnd { agent } => format!("ends {}", agent.agent.seq),
            EventKind::End { .. } => return self.ended.cancel(),
            _ => return,
        };
        self.told.lock().expect("nobody panics").push(told);
    }

    fn note(&self, _meta: &Meta, note: &Note) {
        let told = match note {
            Note::Waiting { seq, phase } => format!("waits {seq} {}", phase.as_deref().unwrap_or("-")),
            Note::Failed(failure) => format!("fails {}: {}", failure.seq, failure.reason),
            other => format!("{other:?}"),
        };
        self.told.lock().expect("nobody panics").push(told);
    }
}

async fn heard(script: &str, limits: Limits) -> Vec<String> {
    let (engine, _) = engine(limits);
    let heard = Heard::default();
    let run = engine.start(request(script).observe(heard.clone())).await.expect("it starts");
    run.result().await;
    run.dispose().await;
    heard.ended.cancelled().await;
    let heard = heard.told.lock().expect("nobody panics");
    heard.clone()
}

#[tokio::test]
async fn a_call_waits_before_it_starts_and_a_failure_has_its_reason_before_it_ends() {
    let script = "phase('A'); await parallel([() => agent('a'), () => agent('fail:no')])";
    let heard = heard(script, limits(json!({"maxConcurrentAgents": 1}))).await;
    let place = |told: &str| {
        heard.iter().position(|heard| heard == told).unwrap_or_else(|| panic!("{told}: {heard:?}"))
    };
    assert!(place("waits 1 A") < place("starts 1") && place("waits 2 A") < place("ends 1"), "{heard:?}");
    assert!(place("starts 2") < place("fails 2: no") && place("fails 2: no") < place("ends 2"), "{heard:?}");
}

#[tokio::test]
async fn a_child_that_cannot_start_is_told_although_it_has_no_events() {
    let script = "await agent('startfail:no').catch(() => 1)";
    assert_eq!(heard(script, Limits::default()).await, ["waits 1 -", "fails 1: no"]);
}
