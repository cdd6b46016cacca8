//! What an agent had said by the time it failed is in the reason.

use fanfold::AgentRequest;
use fanfold_agents::FailureKind;

use super::{Bench, failure};

async fn reason(prompt: &str, timeout: Option<u64>, stall: Option<u64>) -> (FailureKind, String) {
    let mut request = AgentRequest::new(prompt);
    (request.options.timeout_ms, request.options.stall_ms) = (timeout, stall);
    failure(Bench::new().run(request).await)
}

#[tokio::test]
async fn a_turn_that_is_not_ended_after_the_answer_is_told_with_the_answer() {
    let said = "; the answer may be complete but the turn was not ended; it had said: The full answer is 42.";
    assert_eq!(
        reason("endless", None, Some(1000)).await,
        (FailureKind::Stall, format!("stall: nothing came for 1000 ms{said}"))
    );
    assert_eq!(
        reason("endless", Some(1500), None).await,
        (FailureKind::Timeout, format!("timeout: no answer within 1500 ms{said}"))
    );
}

#[tokio::test]
async fn an_agent_that_crashes_is_told_with_what_it_had_said() {
    let expected =
        "exit: the agent closed its output; exit status 4; standard error: boom; it had said: Half of it";
    assert_eq!(reason("break", None, None).await, (FailureKind::Exit, expected.to_owned()));
}

#[tokio::test]
async fn an_agent_out_of_tokens_is_told_with_what_it_had_said() {
    let (kind, reason) = reason("half full", None, None).await;
    assert_eq!(kind, FailureKind::Length);
    assert!(reason.ends_with("; it had said: Half of it"), "{reason}");
}

#[tokio::test]
async fn what_an_agent_says_and_does_is_reported_as_it_comes() {
    let request = AgentRequest::new("work");
    let activity = request.activity.clone();
    Bench::new().run(request).await.unwrap();
    assert_eq!(activity.tail(), "Let me look.It is 42.");
    let request = AgentRequest::new("complain");
    let activity = request.activity.clone();
    assert_eq!(Bench::new().run(request).await.unwrap().text, "done");
    assert_eq!(activity.stderr_tail(), "deprecated\nbye\n");
}
