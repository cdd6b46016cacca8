//! What a program had said by the time it failed is in the reason, and all of it is reported as it comes.

use std::time::Duration;

use fanfold::{AgentRequest, CancellationToken, Subagents as _};
use serde_json::json;

use super::{failed, run, sh};

fn within(ms: u64) -> AgentRequest {
    let mut request = AgentRequest::new("x");
    request.options.timeout_ms = Some(ms);
    request
}

#[tokio::test]
async fn an_answer_after_which_the_program_does_not_exit_is_in_the_reason() {
    let agents = sh(r#"cat > /dev/null; echo '{"a":1}'; exec sleep 60"#);
    let expected = "timeout: no answer within 1000 ms; the answer was complete but the process did not exit; it \
                    had said: {\"a\":1}";
    assert_eq!(run(&agents, within(1000)).await, failed(expected));
}

#[tokio::test]
async fn a_text_after_which_the_program_does_not_exit_may_be_an_answer() {
    for said in ["It is 42.", r#"{"a":"#, r#"{"a":1} and"#, "7"] {
        let agents = sh(r#"printf %s "$SAID"; exec sleep 60"#).env("SAID", said);
        let expected = format!(
            "timeout: no answer within 1000 ms; the answer may be complete but the process did not exit; it had said: \
             {said}"
        );
        assert_eq!(run(&agents, within(1000)).await, failed(&expected));
    }
}

#[tokio::test]
async fn whether_the_answer_was_complete_is_told_by_its_schema() {
    for (answer, told) in [
        (r#"Here: {"a": 1}"#, "; the answer was complete but the process did not exit"),
        (r#"{"a":"#, "; the process did not exit"),
        (r#"{"b": 1}"#, "; the process did not exit"),
    ] {
        let agents = sh(r#"printf %s "$SAID"; exec sleep 60"#).env("SAID", answer);
        let mut request = within(1000);
        request.options.schema = Some(json!({"type": "object", "required": ["a"]}));
        let expected = format!("timeout: no answer within 1000 ms{told}; it had said: {answer}");
        assert_eq!(run(&agents, request).await, failed(&expected));
    }
}

#[tokio::test]
async fn a_line_on_standard_error_before_a_silence_is_in_the_reason() {
    let agents = sh("cat > /dev/null; echo 'waiting for the licence server' >&2; exec sleep 60");
    let expected = "timeout: no answer within 1000 ms; standard error: waiting for the licence server";
    assert_eq!(run(&agents, within(1000)).await, failed(expected));
}

#[tokio::test]
async fn the_end_of_a_long_answer_is_in_the_reason_cut_at_a_character() {
    let agents =
        sh("i=0; while [ $i -lt 1000 ]; do printf 🎉; i=$((i + 1)); done; printf end; exec sleep 60");
    let reason = run(&agents, within(2000)).await.unwrap_err().to_string();
    let (_, said) = reason.split_once("it had said: ").unwrap();
    assert!(said.starts_with("…🎉🎉") && said.ends_with("🎉end") && said.len() < 1010, "{said}");
}

#[tokio::test]
async fn what_a_program_says_is_reported_as_it_comes_whether_it_succeeds_or_not() {
    for end in ["exit 0", "exit 3", "exec sleep 60"] {
        let request = within(1500);
        let activity = request.activity.clone();
        let _ = run(&sh(&format!("echo answer; echo deprecated >&2; {end}")), request).await;
        assert_eq!((&*activity.tail(), &*activity.stderr_tail()), ("answer\n", "deprecated\n"), "{end}");
    }
    let request = AgentRequest::new("x");
    let (activity, cancel) = (request.activity.clone(), CancellationToken::new());
    let child = sh("printf half; exec sleep 60").start(request, cancel.clone()).await.unwrap();
    let result = tokio::spawn(child.result);
    while activity.tail() != "half" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cancel.cancel();
    assert_eq!(result.await.unwrap(), Err(fanfold::ChildError::Cancelled));
    assert_eq!(activity.tail(), "half");
}
