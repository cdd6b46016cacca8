//! One run from its start to its end, the same for calls that wait and for those that do not.

use std::sync::Arc;

use fanfold::{CancellationToken, Engine, Run, RunResult, StartRequest, event_stream};
use futures::future::join;

use crate::agent::{Call, CallingAgent};
use crate::arguments::WorkflowArguments;
use crate::error::ToolError;
use crate::recorder::Recorder;

/// A run that has started. Dropping it cancels the run.
pub(crate) struct Launched {
    pub(crate) run: Arc<Run>,
    pub(crate) agent: Arc<dyn CallingAgent>,
    recorder: Option<Recorder>,
}

/// Starts a run on behalf of the calling agent.
///
/// # Errors
/// When nothing has started.
pub(crate) async fn launch(
    engine: &Engine,
    arguments: WorkflowArguments,
    call: Call,
) -> Result<Launched, ToolError> {
    let Call { agent, nested, cancel, provider, parent, observers, .. } = call;
    let agent = agent.ok_or(ToolError::NoCallingAgent)?;
    let mut request =
        StartRequest::new(arguments.script).parent(parent.unwrap_or_else(|| agent.id().to_owned()));
    if let Some(meta) = arguments.meta {
        request = request.meta(meta);
    }
    if let Some(args) = arguments.args {
        request = request.args(args);
    }
    if let Some(provider) = provider {
        request = request.provider(provider);
    }
    if let Some(cancel) = cancel {
        request = request.cancel_with(cancel);
    }
    for observer in observers {
        request = request.observe(observer);
    }
    let mut recorder = None;
    if !nested && agent.session().is_some() {
        let (observer, events) = event_stream();
        request = request.observe(observer);
        recorder = Some(Recorder::new(agent.clone(), events));
    }
    let run = engine.start(request).await.map_err(ToolError::NotStarted)?;
    Ok(Launched { run: Arc::new(run), agent, recorder })
}

impl Launched {
    /// Waits for the end, and disposes of the run: when this returns, the script and all its children have stopped,
    /// and the session has its records.
    pub(crate) async fn finish(self) -> Arc<RunResult> {
        let Self { run, recorder, .. } = self;
        let disposed = CancellationToken::new();
        let ending = async {
            let result = run.result().await;
            run.dispose().await;
            disposed.cancel();
            result
        };
        let Some(mut recorder) = recorder else { return ending.await };
        let (result, ()) = join(ending, recorder.follow(&disposed)).await;
        recorder.end(run.id(), result.stop_reason).await;
        result
    }
}
