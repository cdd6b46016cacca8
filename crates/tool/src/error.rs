//! Why a call has no answer.

use std::sync::Arc;

use fanfold::{ErrorCode, RunResult, WorkflowError, text};

/// Why a call has no answer. [`ToolError::text`] is what the model is told, as an error result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// Nobody calls.
    #[error("workflow tool requires a calling agent (exec.agent was undefined)")]
    NoCallingAgent,
    /// There is no such tool.
    #[error("there is no tool {name:?} (there are: {known})")]
    UnknownTool {
        /// What was called.
        name: String,
        /// What could have been.
        known: String,
    },
    /// The arguments are not what the tool takes. Every fault is told, with its path.
    #[error("the arguments of {tool} are not valid: {error}")]
    Arguments {
        /// The tool.
        tool: String,
        /// What is wrong; its path is that of the first fault.
        error: WorkflowError,
    },
    /// The workflow could not start: its script or its metadata is at fault, or the host's provider.
    #[error("{}", not_started(.0))]
    NotStarted(WorkflowError),
    /// The run failed or was cancelled.
    #[error("{}", failed(.result))]
    Run {
        /// The run.
        run_id: String,
        /// What became of it. Its value is `null`.
        result: Arc<RunResult>,
    },
    /// No such run is kept: it never was, or its time is over.
    #[error("no run {run_id:?} is kept; results expire. {}", own_runs(.own))]
    UnknownRun {
        /// What was asked for.
        run_id: String,
        /// The runs of the same agent that are.
        own: Vec<String>,
    },
    /// The registry has no room for another run.
    #[error("no further run can be kept: {kept} are running or have a result that nobody has read; {advice}")]
    Full {
        /// Runs in the registry.
        kept: usize,
        /// What to do.
        advice: String,
    },
    /// The host is shutting down.
    #[error("the host is shutting down and starts no further workflow")]
    ShutDown,
    /// The call was cancelled while it waited for the end of a run. That alone does not stop the run.
    #[error("the call was cancelled while it waited for the end of run {run_id}")]
    CallCancelled {
        /// The run.
        run_id: String,
    },
}

impl ToolError {
    /// What the model is told.
    pub fn text(&self) -> String {
        format!("Error: {self}")
    }

    /// The run that it is about.
    pub fn run_id(&self) -> Option<&str> {
        match self {
            Self::Run { run_id, .. } | Self::UnknownRun { run_id, .. } | Self::CallCancelled { run_id } => {
                Some(run_id)
            }
            _ => None,
        }
    }

    /// The workflow's own error, with code and place, where there is one.
    pub fn error(&self) -> Option<&WorkflowError> {
        match self {
            Self::Arguments { error, .. } | Self::NotStarted(error) => Some(error),
            Self::Run { result, .. } => result.error.as_ref(),
            _ => None,
        }
    }
}

fn not_started(error: &WorkflowError) -> String {
    match error.code {
        Some(ErrorCode::Cancelled) => format!("workflow run was cancelled ({})", error.message),
        _ => format!("the workflow did not start: {error}"),
    }
}

fn failed(result: &RunResult) -> String {
    text::failure(result).unwrap_or_default()
}

fn own_runs(ids: &[String]) -> String {
    match ids {
        [] => "This agent has no runs".to_owned(),
        ids => format!("This agent's runs: {}", ids.join(", ")),
    }
}
