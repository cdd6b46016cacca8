//! The HTTP providers against a local server that speaks their APIs, faults included.

mod answers;
mod ends;
mod faults;
mod keys;
mod raw;
mod schemas;
mod server;
mod streams;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, Subagents};
use fanfold_agents::{Anthropic, ApiKey, FailureKind, OpenAi};

use self::server::{Api, Server};

const KEY: &str = "sk-test-0123456789";

/// The provider of an API, at a URL.
fn provider(api: Api, url: &str) -> Box<dyn Subagents> {
    let key = Some(ApiKey::new(KEY).unwrap());
    match api {
        Api::OpenAi => Box::new(OpenAi::new(url, key).unwrap().model("m")),
        Api::Anthropic => Box::new(Anthropic::new(url, key).unwrap().model("m")),
    }
}

async fn start_at(api: Api, url: &str, request: AgentRequest, cancel: CancellationToken) -> Child {
    provider(api, url).start(request, cancel).await.unwrap()
}

async fn start(api: Api, server: &Server, request: AgentRequest, cancel: CancellationToken) -> Child {
    start_at(api, &server.url(), request, cancel).await
}

/// Runs a child to its end.
async fn run(api: Api, server: &Server, request: AgentRequest) -> Result<Answer, ChildError> {
    start(api, server, request, CancellationToken::new()).await.result.await
}

async fn ask(api: Api, server: &Server) -> Result<Answer, ChildError> {
    run(api, server, AgentRequest::new("prompt")).await
}

/// The kind of a failure that is not fatal, and its reason.
fn failure(outcome: Result<Answer, ChildError>) -> (FailureKind, String) {
    match outcome {
        Err(ChildError::Failed(reason)) => (
            FailureKind::named(reason.kind.as_ref().expect("a kind")).expect("one of ours"),
            reason.to_string(),
        ),
        other => panic!("no failure: {other:?}"),
    }
}
