//! Every verb of the scripted provider, and what it records.

use std::time::Duration;

use fanfold::{
    AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, Subagents as _, Support,
};
use fanfold_agents::Scripted;
use serde_json::json;

async fn start(agents: &Scripted, prompt: &str) -> Result<Child, StartError> {
    agents.start(AgentRequest::new(prompt), CancellationToken::new()).await
}

#[tokio::test]
async fn the_prompt_says_what_a_child_does() {
    let cases = [
        ("hello", Ok(Answer::text("echo:hello"))),
        ("other:hello", Ok(Answer::text("echo:other:hello"))),
        (" fail:no verb", Ok(Answer::text("echo: fail:no verb"))),
        ("failing: no verb", Ok(Answer::text("echo:failing: no verb"))),
        ("fail:the\nreason: x", Err(ChildError::failed("the\nreason: x"))),
        ("infra:gone", Err(ChildError::broken("gone"))),
        (r#"json: {"b":1,"a":[null]}"#, Ok(Answer::structured(json!({"b": 1, "a": [null]})))),
        (r#"json:"\ud83d x""#, Ok(Answer::structured(json!("\u{fffd} x")))),
        ("sleep:1", Ok(Answer::text("slept"))),
        ("sleep:1 second", Ok(Answer::text("slept"))),
        ("sleep:", Ok(Answer::text("slept"))),
        ("sleep:soon", Ok(Answer::text("slept"))),
        ("sleep:-5", Ok(Answer::text("slept"))),
    ];
    let agents = Scripted::new();
    for (number, (prompt, expected)) in cases.into_iter().enumerate() {
        let child = start(&agents, prompt).await.unwrap();
        assert_eq!(child.id, format!("child-{}", number + 1));
        assert_eq!(child.result.await, expected, "{prompt}");
    }
}

#[tokio::test]
async fn json_that_is_none_breaks() {
    let child = start(&Scripted::new(), "json:{").await.unwrap();
    let Err(ChildError::Broken(message)) = child.result.await else { panic!("it did not break") };
    assert!(message.starts_with("the prompt's json: is no JSON: EOF"), "{message}");
}

#[tokio::test]
async fn a_failed_start_uses_up_a_number() {
    let agents = Scripted::new();
    let error = start(&agents, "startfail:no room").await.unwrap_err();
    assert_eq!(error, StartError::new("no room"));
    assert_eq!(agents.running(), 0);
    assert_eq!(start(&agents, "x").await.unwrap().id, "child-2");
}

#[tokio::test]
async fn cancelling_ends_those_who_wait() {
    for prompt in ["hang:", "hang:on", "sleep:100000000"] {
        let cancel = CancellationToken::new();
        let child = Scripted::new().start(AgentRequest::new(prompt), cancel.clone()).await.unwrap();
        let result = tokio::spawn(child.result);
        tokio::task::yield_now().await;
        assert!(!result.is_finished(), "{prompt}");
        cancel.cancel();
        assert_eq!(result.await.unwrap(), Err(ChildError::Cancelled), "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn sleeping_takes_the_time_said() {
    let before = tokio::time::Instant::now();
    start(&Scripted::new(), "sleep:86400000 ms").await.unwrap().result.await.unwrap();
    assert_eq!(before.elapsed().as_secs(), Duration::from_millis(86_400_000).as_secs());
}

#[tokio::test]
async fn it_records_what_it_was_asked_and_how_many_ran_at_once() {
    let agents = Scripted::new();
    let observer = agents.clone();
    let first = start(&agents, "a").await.unwrap();
    let mut request = AgentRequest::new("b");
    request.options.label = Some("B".into());
    let second = agents.start(request.clone(), CancellationToken::new()).await.unwrap();
    assert_eq!((observer.running(), observer.peak()), (2, 2));
    first.result.await.unwrap();
    drop(second);
    assert_eq!((observer.running(), observer.peak()), (0, 2));
    start(&agents, "startfail:c").await.unwrap_err();
    let asked = observer.requests();
    let shown = |request: &AgentRequest| serde_json::to_value(request).unwrap();
    let expected = [AgentRequest::new("a"), request, AgentRequest::new("startfail:c")];
    assert_eq!(asked.iter().map(shown).collect::<Vec<_>>(), expected.iter().map(shown).collect::<Vec<_>>());
}

#[test]
fn it_honours_every_option() {
    assert_eq!(Scripted::new().supports(), Support::ALL);
}
