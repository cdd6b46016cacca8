//! The command provider against real processes.

mod answers;
mod ends;
mod heard;
mod read;
mod schemas;
mod starts;
#[cfg(unix)]
mod worktrees;

use fanfold::{AgentRequest, Answer, CancellationToken, ChildError, FailureReason, Subagents as _};
use fanfold_agents::Command;

/// A provider that runs a shell script.
fn sh(script: &str) -> Command {
    Command::new(["sh", "-c", script]).unwrap()
}

/// Runs a child to its end.
async fn run(command: &Command, request: AgentRequest) -> Result<Answer, ChildError> {
    command.start(request, CancellationToken::new()).await.unwrap().result.await
}

/// The text that a script answers.
async fn say(script: &str) -> String {
    run(&sh(script), AgentRequest::new("prompt")).await.unwrap().text
}

/// A failure, by its kind and words.
fn failed<T>(reason: &str) -> Result<T, ChildError> {
    let (kind, message) = reason.split_once(": ").unwrap();
    Err(ChildError::failed(FailureReason::of_kind(kind.to_owned(), message)))
}
