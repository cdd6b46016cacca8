//! What `agentType` names, by what the host defines and what the provider claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanfold::{
    AgentRequest, AgentType, Answer, CancellationToken, Child, Engine, ErrorCode, Limits, StartError,
    Subagents, Support,
};
use futures::future::BoxFuture;

use crate::support::request;

/// Answers with what it was told of its kind; claims what it is made with.
#[derive(Clone, Copy)]
struct Tells(Support);

impl Subagents for Tells {
    fn start(
        &self,
        request: AgentRequest,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let options = request.options;
        let told = options.definition.map_or("nothing".to_owned(), |kind| kind.instructions.clone());
        let answer = format!("{told} {}", options.model.unwrap_or_default());
        Box::pin(async move { Ok(Child::new("c", async move { Ok(Answer::text(answer.trim())) })) })
    }

    fn supports(&self) -> Support {
        self.0
    }

    fn why_not(&self, option: &str) -> Option<String> {
        (option == "isolation").then(|| "there is no room".to_owned())
    }
}

/// What a script that names this kind gets and is warned of, or how it fails.
async fn told(
    support: Support,
    defined: bool,
    name: &str,
) -> Result<(String, usize), (Option<ErrorCode>, String)> {
    let mut builder = Engine::builder()
        .provider("spawn", Tells(support))
        .limits(Limits::default())
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"));
    if defined {
        let mut kind = AgentType::new("reviewer", "be strict");
        kind.model = Some("large".into());
        builder = builder.agent_types(BTreeMap::from([("reviewer".to_owned(), Arc::new(kind))]));
    }
    let engine = builder.build().expect("the engine builds");
    let script = format!("return await agent('x', {{agentType: '{name}'}})");
    let run = engine.start(request(&script)).await.expect("it starts");
    let result = run.result().await;
    run.dispose().await;
    match &result.error {
        None => Ok((result.value.get().trim_matches('"').to_owned(), result.warnings.len())),
        Some(error) => Err((error.code, error.message.clone())),
    }
}

#[tokio::test]
async fn a_kind_of_agent_is_defined_known_ignored_or_refused() {
    let none = Support::default();
    let mut instructs = none;
    (instructs.instructions, instructs.model) = (true, true);
    let mut ignores = none;
    ignores.model = true;
    let mut knows = none;
    knows.agent_type = true;
    for (support, defined, name, expected) in [
        // The host defines it.
        (instructs, true, "reviewer", ("be strict large", 0)),
        (knows, true, "reviewer", ("be strict", 0)),
        (none, true, "reviewer", ("be strict", 1)),
        (ignores, true, "reviewer", ("be strict", 1)),
        // The provider may.
        (knows, true, "nobody", ("nothing", 0)),
        (knows, false, "nobody", ("nothing", 0)),
        // The host defines none at all: a hint that is ignored.
        (instructs, false, "nobody", ("nothing", 1)),
        (none, false, "nobody", ("nothing", 1)),
    ] {
        let told = told(support, defined, name).await;
        assert_eq!(told, Ok((expected.0.to_owned(), expected.1)), "{support:?} {defined} {name}");
    }
    for support in [none, instructs] {
        let (code, message) = told(support, true, "nobody").await.unwrap_err();
        assert_eq!(code, Some(ErrorCode::AgentStart));
        assert!(message.contains("names \"nobody\", which nobody defines (known: reviewer)"), "{message}");
    }
}

#[tokio::test]
async fn a_provider_says_why_it_cannot_guarantee_something() {
    let engine = crate::support::engine_with(Tells(Support::default()), Limits::default());
    let run =
        engine.start(request("return await agent('x', {isolation: 'worktree'})")).await.expect("it starts");
    let result = run.result().await;
    run.dispose().await;
    let error = result.error.as_ref().expect("it is refused");
    assert_eq!(error.code, Some(ErrorCode::UnsupportedOption));
    assert!(error.message.contains("cannot give (there is no room); leave it out"), "{}", error.message);
}
