//! Providers that break: they block, panic, answer nonsense, too late or too much; and runs that share slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fanfold::ErrorCode::{AgentResult, AgentStart};
use fanfold::{
    AgentOutcome, AgentRequest, Answer, CancellationToken, Child, ChildError, Engine, ErrorCode, Event,
    EventKind, RunResult, StartError, StopReason, Subagents, Support, event_stream,
};
use futures::FutureExt as _;
use futures::future::{BoxFuture, pending, ready};
use serde_json::{Value, json};

use super::on_both_runtimes;
use crate::support;

/// A provider whose children misbehave in the way that their prompt names.
struct Misbehaving;

impl Subagents for Misbehaving {
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let AgentRequest { prompt, seq, .. } = request;
        let child = |result: BoxFuture<'static, _>| -> BoxFuture<'static, _> {
            ready(Ok(Child::new(format!("child-{seq}"), result))).boxed()
        };
        match prompt.as_str() {
            "block in start" => {
                std::thread::sleep(Duration::from_millis(300));
                child(ready(Ok(Answer::text("late"))).boxed())
            }
            "block in result" => child(
                async {
                    std::thread::sleep(Duration::from_millis(300));
                    Ok(Answer::text("late"))
                }
                .boxed(),
            ),
            "panic at once" => quiet_panic("at once"),
            "panic in start" => async { quiet_panic("in start") }.boxed(),
            "panic in result" => child(async { quiet_panic("in result") }.boxed()),
            "panic with nothing to say" => std::panic::resume_unwind(Box::new(7)),
            "no id" => ready(Ok(Child::new("", ready(Ok(Answer::text("x")))))).boxed(),
            "same id" => ready(Ok(Child::new("same", ready(Ok(Answer::text("x")))))).boxed(),
            "never start" => pending().boxed(),
            "never answer" => child(pending().boxed()),
            "answer after cancel" => child(
                async move {
                    cancel.cancelled().await;
                    Ok(Answer::text("too late"))
                }
                .boxed(),
            ),
            "break after cancel" => child(
                async move {
                    cancel.cancelled().await;
                    Err(ChildError::broken("too late"))
                }
                .boxed(),
            ),
            "panic after cancel" => child(
                async move {
                    cancel.cancelled().await;
                    quiet_panic("after cancel")
                }
                .boxed(),
            ),
            "cancelled by itself" => child(ready(Err(ChildError::Cancelled)).boxed()),
            "answer 10 MB" => child(ready(Ok(Answer::text("x".repeat(10_000_000)))).boxed()),
            "answer more than fits" => child(ready(Ok(Answer::text("x".repeat(200 << 20)))).boxed()),
            "fail at length" => child(ready(Err(ChildError::failed("e\0".repeat(500_000)))).boxed()),
            "break at length" => child(ready(Err(ChildError::broken("e\0".repeat(500_000)))).boxed()),
            "start at length" => ready(Err(StartError::new("e\0".repeat(500_000)))).boxed(),
            "break with a stack" => {
                child(ready(Err(ChildError::broken("it\n    at agent (workflow:1:1)\nbroke"))).boxed())
            }
            "answer a value" => child(ready(Ok(Answer::structured(json!({"a": "\u{0}\u{2028}"})))).boxed()),
            "answer a wrong value" => child(ready(Ok(Answer::structured(json!([1])))).boxed()),
            _ => child(ready(Ok(Answer::text(prompt))).boxed()),
        }
    }

    fn supports(&self) -> Support {
        Support::ALL
    }
}

/// Panics without the panic hook telling of it.
fn quiet_panic(message: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(message))
}

fn engine(agents: impl Subagents) -> Engine {
    let limits = json!({"maxConcurrentAgents": 8, "disposeGraceMs": 200, "syncTimeoutMs": 5000});
    support::engine_with(agents, support::limits(limits))
}

async fn neighbour(engine: &Engine) {
    let (result, _) =
        support::run(engine, support::request("return await agent('fine')")).await.expect("it starts");
    assert_eq!(result.value.get(), "\"fine\"");
}

/// Runs a script beside a neighbour.
async fn ran(engine: &Engine, script: &str, prompt: &str) -> RunResult {
    let request = support::request(script).args(prompt.into());
    let (ran, ()) = tokio::join!(support::run(engine, request), neighbour(engine));
    neighbour(engine).await;
    ran.expect("the script starts").0
}

/// What an agent gave, or the error it threw.
const ASK: &str = "
    try { const text = await agent(args); return text?.length > 100 ? text.length : text }
    catch (error) { return [error.code, error.message] }";

async fn a_provider_that_misbehaves_harms_nobody() {
    let engine = engine(Misbehaving);
    let answers = [
        ("block in start", json!("late")),
        ("block in result", json!("late")),
        ("same id", json!("x")),
        ("answer 10 MB", json!(10_000_000)),
        ("fail at length", Value::Null),
        ("cancelled by itself", Value::Null),
        ("answer a value", json!("{\"a\":\"\\u0000\u{2028}\"}")),
    ];
    for (prompt, answer) in answers {
        let result = ran(&engine, ASK, prompt).await;
        assert_eq!(
            serde_json::from_str::<Value>(result.value.get()).ok(),
            Some(answer),
            "{prompt}: {result:?}"
        );
    }
    let errors = [
        ("panic at once", AgentStart, "at once"),
        ("panic in start", AgentStart, "in start"),
        ("panic in result", AgentResult, "in result"),
        ("panic with nothing to say", AgentStart, "panicked"),
        ("no id", AgentStart, "empty id"),
        ("start at length", AgentStart, "e\0e"),
        ("break at length", AgentResult, "e\0e"),
        ("break with a stack", AgentResult, "broke"),
    ];
    for (prompt, code, part) in errors {
        let result = ran(&engine, ASK, prompt).await;
        let caught: (ErrorCode, String) = serde_json::from_str(result.value.get())
            .unwrap_or_else(|error| panic!("{prompt}: {error} in {result:?}"));
        assert_eq!(caught.0, code, "{prompt}");
        assert!(caught.1.contains(part) && caught.1.len() < 20_000, "{prompt}: {:.200}", caught.1);
        let error = ran(&engine, "await agent(args)", prompt).await.error.expect("it fails");
        assert_eq!(error.code, Some(code), "{prompt}");
        assert!(
            error.message.contains(part) && error.message.len() < 20_000,
            "{prompt}: {:.200}",
            error.message
        );
    }
    let result =
        ran(&engine, "return await agent(args, {schema: {type: 'object'}})", "answer a wrong value").await;
    assert_eq!(result.value.get(), "null");
    assert!(result.failures[0].reason.contains("does not satisfy the schema"), "{:?}", result.failures);
    let error = ran(&engine, ASK, "answer more than fits").await.error.expect("it does not fit");
    assert_eq!(error.code, Some(ErrorCode::MemoryLimit), "{error:?}");
}

/// A child that is not waited for is stopped when the script ends, and the run waits for it.
async fn a_child_that_ends_after_its_script_is_told_so() {
    let engine = engine(Misbehaving);
    let outcomes = [
        ("answer after cancel", AgentOutcome::Completed),
        ("break after cancel", AgentOutcome::Cancelled),
        ("never answer", AgentOutcome::Cancelled),
    ];
    for (prompt, outcome) in outcomes {
        let request = support::request("agent(args); await agent('x'); return 1").args(prompt.into());
        let (result, events) = support::run(&engine, request).await.expect("the script starts");
        assert_eq!((result.value.get(), result.never_awaited), ("1", 1), "{prompt}");
        let ended = events.iter().find_map(|event| match &event.kind {
            EventKind::AgentEnd { agent } if agent.agent.seq == 1 => Some(agent.outcome),
            _ => None,
        });
        assert_eq!(ended, Some(outcome), "{prompt}");
    }
    let request = support::request("agent('never start'); await agent('x'); return 1");
    let (result, events) = support::run(&engine, request).await.expect("the script starts");
    assert_eq!(result.value.get(), "1");
    let of_first = |event: &&Event| match &event.kind {
        EventKind::AgentStart { agent } => agent.seq == 1,
        EventKind::AgentEnd { agent } => agent.agent.seq == 1,
        _ => false,
    };
    assert_eq!(events.iter().filter(of_first).count(), 0, "it never started: {events:?}");
}

/// A run that is cancelled ends, whatever its children make of it: those that do not stop are dropped.
async fn a_cancelled_run_does_not_wait_for_ever() {
    let engine = engine(Misbehaving);
    let prompts = [
        "never start",
        "never answer",
        "answer after cancel",
        "break after cancel",
        "panic after cancel",
        "block in result",
    ];
    for prompt in prompts {
        let (observer, events) = event_stream();
        let script = "await parallel([() => agent('x'), () => agent(args), () => agent(args)])";
        let request = support::request(script).args(prompt.into()).observe(observer);
        let run = engine.start(request).await.expect("the script starts");
        tokio::time::sleep(Duration::from_millis(20)).await;
        run.cancel("enough");
        let ((result, _), ()) = tokio::join!(support::end(run, events), neighbour(&engine));
        // The children that block do not let the run see that it was cancelled before they have answered.
        let expected = if prompt == "block in result" { result.stop_reason } else { StopReason::Cancelled };
        assert_eq!(result.stop_reason, expected, "{prompt}: {result:?}");
        assert_ne!(result.stop_reason, StopReason::Error, "{prompt}: {result:?}");
    }
}

/// Counts the children that run, and keeps each for a moment.
#[derive(Default)]
struct Counting {
    running: AtomicUsize,
    peak: AtomicUsize,
}

impl Subagents for Shared {
    fn start(
        &self,
        request: AgentRequest,
        _: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let counting = self.0.clone();
        async move {
            let running = counting.running.fetch_add(1, Ordering::SeqCst) + 1;
            counting.peak.fetch_max(running, Ordering::SeqCst);
            Ok(Child::new(format!("child-{}", request.seq), async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                counting.running.fetch_sub(1, Ordering::SeqCst);
                Ok(Answer::text(request.prompt))
            }))
        }
        .boxed()
    }
}

struct Shared(Arc<Counting>);

/// Two runs that want all slots get them in turns: when one is done, the other is nearly so.
async fn runs_that_share_slots_take_turns() {
    let counting = Arc::new(Counting::default());
    let engine =
        support::engine_with(Shared(counting.clone()), support::limits(json!({"maxConcurrentAgents": 4})));
    let script = "return (await parallel(Array.from({ length: 40 }, (_, i) => () => agent(`${i}`)))).length";
    let (first, second) = tokio::join!(
        support::run(&engine, support::request(script)),
        support::run(&engine, support::request(script))
    );
    let mut answered = Vec::new();
    for (run, ran) in [first, second].into_iter().enumerate() {
        let (result, events) = ran.expect("the script starts");
        assert_eq!((result.stop_reason, result.value.get()), (StopReason::Completed, "40"));
        let starts = events.iter().filter(|event| matches!(event.kind, EventKind::AgentStart { .. }));
        answered.extend(starts.map(|event| (event.at, run)));
    }
    assert_eq!(counting.peak.load(Ordering::SeqCst), 4);
    // If one had to wait for the other, all would be of the same run. A busy machine lets either begin earlier.
    answered.sort_unstable();
    let early: Vec<usize> = answered[..40].iter().map(|(_, run)| *run).collect();
    let of_first = early.iter().filter(|run| **run == 0).count();
    assert!((4..=36).contains(&of_first), "{of_first} of the first 40 starts are of the first run");
}

on_both_runtimes! {
    14: a_provider_that_misbehaves_harms_nobody,
    14: a_child_that_ends_after_its_script_is_told_so,
    13: a_cancelled_run_does_not_wait_for_ever,
    15: runs_that_share_slots_take_turns,
}
