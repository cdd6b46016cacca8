//! The dry-run provider through the trait: labels, schemas, what it records.

use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, ChildError, Subagents as _, Support};
use fanfold_agents::DryRun;
use serde_json::json;

async fn answer(agents: &DryRun, request: AgentRequest) -> Result<Answer, ChildError> {
    agents.start(request, CancellationToken::new()).await.unwrap().result.await
}

fn labelled(label: Option<&str>) -> AgentRequest {
    let mut request = AgentRequest::new("prompt");
    request.options.label = label.map(str::to_owned);
    request
}

#[tokio::test]
async fn a_child_answers_its_label() {
    let agents = DryRun::new();
    for (label, text) in [(Some("review a.js"), "OK: review a.js"), (Some(""), "OK"), (None, "OK")] {
        assert_eq!(answer(&agents, labelled(label)).await, Ok(Answer::text(text)));
    }
    assert_eq!((agents.requests().len(), agents.running(), agents.peak()), (3, 0, 1));
    assert_eq!(agents.supports(), Support::ALL);
}

#[tokio::test]
async fn a_child_with_a_schema_answers_a_value_that_satisfies_it() {
    let mut request = labelled(Some("ignored"));
    request.options.schema = Some(json!({"type": "object", "properties": {"title": {"type": "string"}}}));
    assert_eq!(
        answer(&DryRun::new(), request.clone()).await,
        Ok(Answer::structured(json!({"title": "title"})))
    );
    request.options.schema = Some(json!({"type": "string", "minLength": 1e99}));
    assert!(matches!(answer(&DryRun::new(), request).await, Err(ChildError::Failed(_))));
}

#[tokio::test(start_paused = true)]
async fn children_that_take_time_overlap_and_can_be_cancelled() {
    let agents = DryRun::new().taking(Duration::from_secs(3600));
    let cancel = CancellationToken::new();
    let first = agents.start(AgentRequest::new("1"), CancellationToken::new()).await.unwrap();
    let second = agents.start(AgentRequest::new("2"), cancel.clone()).await.unwrap();
    cancel.cancel();
    assert_eq!(second.result.await, Err(ChildError::Cancelled));
    assert_eq!(first.result.await, Ok(Answer::text("OK")));
    assert_eq!((agents.peak(), agents.running()), (2, 0));
}
