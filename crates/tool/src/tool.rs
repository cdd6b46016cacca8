//! The tools themselves: each takes a model's arguments and a call, and gives an answer.

use std::sync::Arc;
use std::time::Duration;

use fanfold::{Engine, ErrorCode, RunResult, WorkflowError, text};
use serde_json::Value;

use crate::agent::{Call, CallingAgent};
use crate::answer::{
    Answer, Completed, FailedAgents, Notice, ResultPage, RunList, RunState, RunStatus, Started, Stopped,
};
use crate::arguments::{ResultArguments, RunArguments, StatusArguments, WorkflowArguments};
use crate::card::{CallCard, ResultCard};
use crate::config::ToolConfig;
use crate::definition::{Definition, Guidance, ToolKind};
use crate::error::ToolError;
use crate::launch::{Launched, launch};
use crate::runs::{Runs, Ticket};
use crate::words::failures_text;

/// The workflow tool and, where runs are kept, the tools for background runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WorkflowTool {
    engine: Engine,
    config: Arc<ToolConfig>,
    runs: Option<Runs>,
}

impl WorkflowTool {
    /// The tool alone: calls last as long as their runs, and what is cut from a long result is lost to the model.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a configuration that [`ToolConfig::validate`] refuses.
    pub fn new(engine: Engine, config: ToolConfig) -> Result<Self, WorkflowError> {
        config.validate()?;
        Ok(Self { engine, config: Arc::new(config), runs: None })
    }

    /// Keeps runs in this registry: adds the background tools, and loses no result.
    #[must_use]
    pub fn with_runs(mut self, runs: Runs) -> Self {
        self.runs = Some(runs);
        self
    }

    /// The registry, where there is one.
    pub fn runs(&self) -> Option<&Runs> {
        self.runs.as_ref()
    }

    /// The tool's configuration.
    pub fn config(&self) -> &ToolConfig {
        &self.config
    }

    /// The workflow tool as a model is told of it.
    pub fn definition(&self) -> Definition {
        self.define(ToolKind::Workflow)
    }

    /// All the tools: the workflow tool first, then those for background runs.
    pub fn definitions(&self) -> Vec<Definition> {
        self.kinds().map(|kind| self.define(kind)).collect()
    }

    /// The section of the system prompt that says when to use the tool.
    pub fn guidance(&self) -> Guidance {
        Guidance::new(&self.config.tool_name)
    }

    /// How a host shows a call of the workflow tool. A pure function of the arguments, malformed ones included.
    pub fn call_card(&self, arguments: &Value) -> CallCard {
        CallCard::of(arguments)
    }

    /// How a host shows what came of a call.
    pub fn result_card(&self) -> ResultCard {
        ResultCard::generic()
    }

    /// Calls one of the tools by its name.
    ///
    /// # Errors
    /// As the tool's own method; [`ToolError::UnknownTool`] for another name.
    pub async fn call(&self, name: &str, arguments: &Value, call: Call) -> Result<Answer, ToolError> {
        let Some(kind) = self.kinds().find(|kind| kind.name(&self.config.tool_name) == name) else {
            let known: Vec<String> = self.kinds().map(|kind| kind.name(&self.config.tool_name)).collect();
            return Err(ToolError::UnknownTool { name: name.to_owned(), known: known.join(", ") });
        };
        match kind {
            ToolKind::Workflow => self.execute(arguments, call).await.map(Answer::into_json),
            ToolKind::Start => self.start(arguments, call).await.map(Answer::into_json),
            ToolKind::Status => {
                let StatusArguments { run_id } = self.read(kind, StatusArguments::read(arguments))?;
                match run_id {
                    Some(_) => self.status(arguments, call).await.map(Answer::into_json),
                    None => self.list(call).map(Answer::into_json),
                }
            }
            ToolKind::Result => self.result(arguments, call).await.map(Answer::into_json),
            ToolKind::Cancel => self.cancel(arguments, call).await.map(Answer::into_json),
        }
    }

    /// Runs a workflow to its end. When this returns, the script and all its children have stopped, on every path.
    ///
    /// Dropping the future cancels the run too, but cannot wait for that; prefer the call's token.
    ///
    /// # Errors
    /// When there is no value: nobody calls, the arguments are wrong, the script cannot start, the run failed or was
    /// cancelled. [`ToolError::text`] is what the model is told.
    pub async fn execute(&self, arguments: &Value, call: Call) -> Result<Answer<Completed>, ToolError> {
        let (launched, ticket) = self.launch(ToolKind::Workflow, arguments, call).await?;
        let run = launched.run.clone();
        let (run_id, name) = (run.id(), run.meta().name.as_str());
        let result = launched.finish().await;
        if text::failure(&result).is_some() {
            return Err(ToolError::Run { run_id: run_id.to_owned(), result });
        }
        let max_chars = self.config.max_result_chars;
        let (mut text, chars) = {
            let (name, result) = (name.to_owned(), result.clone());
            off_thread(result.value.get().len(), move || {
                let chars = text::page(result.value.get(), 0, 0).total;
                (text::render(&name, &result, max_chars), chars)
            })
            .await?
        };
        if self.config.note_failures {
            text.push_str(&failures_text(&FailedAgents::of(&result)));
        }
        let value = Completed::new(run_id, &result);
        if let (Some(ticket), true) = (ticket, chars > max_chars) {
            let tool = ToolKind::Result.name(&self.config.tool_name);
            text.push_str(&format!(
                "\nRun {run_id}. Read the rest: {tool} {{\"runId\": \"{run_id}\", \"offset\": {max_chars}}}"
            ));
            ticket.keep(result);
        }
        Ok(Answer::new(value, text))
    }

    /// Starts a workflow and answers at once. The run belongs to the registry and goes on by itself; the agent is told
    /// of its end by [`CallingAgent::run_ended`].
    ///
    /// # Errors
    /// When nothing has started.
    pub async fn start(&self, arguments: &Value, mut call: Call) -> Result<Answer<Started>, ToolError> {
        let runs = self.registry(ToolKind::Start)?;
        // The run outlives the call, whose token is good for the start alone.
        let cancel = call.cancel.take().unwrap_or_default();
        let (launched, ticket) = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let error = ErrorCode::Cancelled.error("cancelled before the start");
                return Err(ToolError::NotStarted(error));
            }
            launched = self.launch(ToolKind::Start, arguments, call) => launched?,
        };
        let (run_id, name) = (launched.run.id().to_owned(), launched.run.meta().name.clone());
        let tool = self.config.tool_name.clone();
        let text = format!(
            "workflow \"{name}\" has started: run {run_id}. It goes on by itself; {tool}_status tells how it is doing, \
             {tool}_result {{\"runId\": \"{run_id}\", \"waitMs\": 30000}} waits for its value, {tool}_cancel stops it."
        );
        runs.spawn(async move {
            let agent = launched.agent.clone();
            let run = launched.run.clone();
            let result = launched.finish().await;
            let notice = notice(run.id(), &run.meta().name, &result, &tool);
            if let Some(ticket) = ticket {
                ticket.keep(result);
            }
            tell(&*agent, &notice);
        });
        Ok(Answer::new(Started { run_id, name }, text))
    }

    /// How a run is doing.
    ///
    /// # Errors
    /// When no such run is kept.
    pub async fn status(&self, arguments: &Value, call: Call) -> Result<Answer<RunStatus>, ToolError> {
        let runs = self.registry(ToolKind::Status)?;
        let agent = call.agent.ok_or(ToolError::NoCallingAgent)?;
        let RunArguments { run_id } = self.read(ToolKind::Status, RunArguments::read(arguments))?;
        let status = runs.status(agent.id(), &run_id)?;
        let text = status.text();
        Ok(Answer::new(status, text))
    }

    /// The runs of the calling agent.
    ///
    /// # Errors
    /// When nobody calls.
    pub fn list(&self, call: Call) -> Result<Answer<RunList>, ToolError> {
        let runs = self.registry(ToolKind::Status)?;
        let agent = call.agent.ok_or(ToolError::NoCallingAgent)?;
        let list = runs.list(agent.id());
        let text = list.text(&self.config.tool_name);
        Ok(Answer::new(list, text))
    }

    /// A part of a run's value.
    ///
    /// # Errors
    /// When no such run is kept; when it failed or was cancelled; when its value is not as long as that.
    pub async fn result(&self, arguments: &Value, call: Call) -> Result<Answer<ResultPage>, ToolError> {
        let runs = self.registry(ToolKind::Result)?;
        let agent = call.agent.ok_or(ToolError::NoCallingAgent)?;
        let ResultArguments { run_id, offset, max_chars, wait_ms } =
            self.read(ToolKind::Result, ResultArguments::read(arguments))?;
        if wait_ms > 0 {
            runs.wait(agent.id(), &run_id, Duration::from_millis(wait_ms), call.cancel).await?;
        }
        let (name, result) = runs.result(agent.id(), &run_id)?;
        let tool = ToolKind::Result.name(&self.config.tool_name);
        let Some(result) = result else {
            let page = ResultPage::running(&run_id, &name);
            let text = page.text(&tool);
            return Ok(Answer::new(page, text));
        };
        if text::failure(&result).is_some() {
            if !call.confirms {
                runs.mark_read(&run_id);
            }
            return Err(ToolError::Run { run_id, result });
        }
        let most = self.config.max_result_chars;
        let max_chars =
            max_chars.and_then(|chars| usize::try_from(chars).ok()).map_or(most, |chars| chars.min(most));
        let page = {
            let (run_id, result) = (run_id.clone(), result.clone());
            off_thread(result.value.get().len(), move || {
                ResultPage::of(&run_id, &name, &result, offset, max_chars)
            })
            .await?
        };
        let page = self.read(ToolKind::Result, page)?;
        if page.next_offset.is_none() && !call.confirms {
            runs.mark_read(&run_id);
        }
        let mut text = page.text(&tool);
        if self.config.note_failures {
            text.push_str(&failures_text(&page.failed_agents()));
        }
        Ok(Answer::new(page, text))
    }

    /// Stops a run, and waits until it and its children have stopped.
    ///
    /// # Errors
    /// When no such run is kept, or the call is cancelled meanwhile; the run stops all the same then.
    pub async fn cancel(&self, arguments: &Value, call: Call) -> Result<Answer<Stopped>, ToolError> {
        let runs = self.registry(ToolKind::Cancel)?;
        let agent = call.agent.ok_or(ToolError::NoCallingAgent)?;
        let RunArguments { run_id } = self.read(ToolKind::Cancel, RunArguments::read(arguments))?;
        runs.run(agent.id(), &run_id)?.cancel("cancelled by request");
        // A run that is cancelled ends within its grace periods.
        runs.wait(agent.id(), &run_id, Duration::MAX, call.cancel).await?;
        let stopped = runs.stopped(agent.id(), &run_id)?;
        let text = match stopped.state {
            RunState::Cancelled => {
                format!("workflow \"{}\" was cancelled; it and its agents have stopped.", stopped.name)
            }
            RunState::Completed => format!(
                "workflow \"{}\" had completed before it could be cancelled; {}_result reads its value.",
                stopped.name, self.config.tool_name
            ),
            RunState::Error => {
                format!("workflow \"{}\" had failed before it could be cancelled.", stopped.name)
            }
            RunState::Running => format!("workflow \"{}\" is stopping.", stopped.name),
        };
        Ok(Answer::new(stopped, text))
    }

    fn kinds(&self) -> impl Iterator<Item = ToolKind> + use<> {
        ToolKind::ALL.into_iter().take(if self.runs.is_some() { ToolKind::ALL.len() } else { 1 })
    }

    fn define(&self, kind: ToolKind) -> Definition {
        let retention = self.runs.as_ref().map(Runs::retention);
        Definition::new(kind, &self.config, self.engine.limits(), retention)
    }

    fn registry(&self, kind: ToolKind) -> Result<&Runs, ToolError> {
        self.runs.as_ref().ok_or_else(|| ToolError::UnknownTool {
            name: kind.name(&self.config.tool_name),
            known: self.config.tool_name.clone(),
        })
    }

    fn read<T>(&self, kind: ToolKind, read: Result<T, WorkflowError>) -> Result<T, ToolError> {
        read.map_err(|error| ToolError::Arguments { tool: kind.name(&self.config.tool_name), error })
    }

    async fn launch(
        &self,
        kind: ToolKind,
        arguments: &Value,
        mut call: Call,
    ) -> Result<(Launched, Option<Ticket>), ToolError> {
        if call.agent.is_none() {
            return Err(ToolError::NoCallingAgent);
        }
        let arguments = self.read(kind, WorkflowArguments::read(arguments))?;
        let mut ticket = self.runs.as_ref().map(Runs::admit).transpose()?;
        if let Some(ticket) = &ticket {
            // First, so that whoever else is told of an event finds it in the status.
            call.observers.insert(0, Box::new(ticket.observer()));
        }
        let launched = launch(&self.engine, arguments, call).await?;
        if let Some(ticket) = &mut ticket {
            ticket.open(launched.agent.id(), &launched.run);
        }
        Ok((launched, ticket))
    }
}

/// The notice of a background run's end.
fn notice(run_id: &str, name: &str, result: &RunResult, tool: &str) -> Notice {
    let text = match text::failure(result) {
        Some(failure) => format!("workflow \"{name}\", run {run_id}: {failure}"),
        None => format!(
            "{} Run {run_id}. Read its value: {tool}_result {{\"runId\": \"{run_id}\"}}",
            text::completed(name, result.agents_started)
        ),
    };
    Notice { run_id: run_id.to_owned(), name: name.to_owned(), state: result.stop_reason.into(), text }
}

/// Tells an agent that its run has ended. A panic is the agent's own affair; the panic hook has told of it.
fn tell(agent: &dyn CallingAgent, notice: &Notice) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| agent.run_ended(notice)));
}

/// JSON up to this size is gone through at once, on whatever thread it is: less than a millisecond's work.
const SMALL_BYTES: usize = 64 << 10;

/// Does work on JSON of this size where it holds no other task up.
async fn off_thread<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    if bytes <= SMALL_BYTES {
        return Ok(work());
    }
    // Only a runtime that shuts down does not finish it.
    tokio::task::spawn_blocking(work).await.map_err(|_| ToolError::ShutDown)
}
