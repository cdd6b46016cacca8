//! A child from start to answer: one process or, for retries and schemas, several in turn.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError};

use super::Config;
use super::exchange::{Break, exchange};
use crate::ask::{Answerer, Question};
use crate::patience::{Patience, Stop};
use crate::process::{Pipes, Process};

/// Starts a child's first process.
pub(super) fn start(
    config: Arc<Config>,
    request: AgentRequest,
    cancel: CancellationToken,
) -> Result<Child, StartError> {
    let question = Question::new(&request, config.schema_attempts)?;
    let patience = Patience::new(&request, cancel);
    let (first, id) = config.start(&request, 1).map_err(StartError::new)?;
    let work = Work { config, request, patience, attempt: 1, first: Some(first) };
    Ok(Child::new(id, work.run(question)))
}

/// What one child has to do.
struct Work {
    config: Arc<Config>,
    request: AgentRequest,
    patience: Patience,
    /// How many processes were started.
    attempt: u32,
    /// The first process, until it is asked.
    first: Option<(Process, Pipes)>,
}

impl Work {
    /// Tries until the child succeeds or there are no retries left.
    async fn run(mut self, question: Question) -> Result<Answer, ChildError> {
        let mut retries = self.request.options.retries.unwrap_or_default();
        let mut outcome = question.ask(&mut self).await;
        while matches!(outcome, Err(ChildError::Failed(_)))
            && retries > 0
            && self.patience.is_over().is_none()
        {
            retries -= 1;
            outcome = question.ask(&mut self).await;
        }
        outcome
    }

    /// The first process, or a new one.
    fn process(&mut self) -> Result<(Process, Pipes), ChildError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        if let Some(stop) = self.patience.is_over() {
            return Err(error(stop));
        }
        self.attempt = self.attempt.saturating_add(1);
        let started = self.config.start(&self.request, self.attempt);
        started.map(|(process, _)| process).map_err(ChildError::broken)
    }
}

impl Answerer for Work {
    type Error = ChildError;

    /// Lets one process answer.
    async fn answer(&mut self, prompt: &str) -> Result<String, ChildError> {
        let (mut process, pipes) = self.process()?;
        let (max_bytes, grace) = (self.config.answer_bytes, self.config.stop_grace);
        let outcome = exchange(&mut process, pipes, prompt, max_bytes, self.patience.over(), grace).await;
        let status = process.finish().await;
        match (outcome, status) {
            (Err(Break::Stopped(stop)), _) => Err(error(stop)),
            (Err(Break::TooLong), _) => {
                Err(ChildError::failed(format!("the answer is longer than {max_bytes} bytes")))
            }
            (Ok(output), Ok(status)) if status.success() => Ok(output.answer()),
            (Ok(output), Ok(status)) => Err(ChildError::failed(output.diagnostic(status))),
            (Ok(_), Err(error)) => {
                Err(ChildError::broken(format!("cannot tell how {:?} ended: {error}", self.config.words[0])))
            }
        }
    }

    async fn unwanted(&self) -> ChildError {
        error(self.patience.over().await)
    }
}

impl Config {
    /// Starts a process and names it, or says why that is not possible and what to do.
    pub(crate) fn start(
        &self,
        request: &AgentRequest,
        attempt: u32,
    ) -> Result<((Process, Pipes), String), String> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.words[1..]).current_dir(&self.directory);
        self.environment.apply(&mut command, request, attempt);
        let started = Process::spawn(&mut command).map_err(|error| cannot_start(self, &error))?;
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        let id = format!("{name}-{}", started.0.id().unwrap_or_default());
        Ok((started, id))
    }
}

fn error(stop: Stop) -> ChildError {
    match stop {
        Stop::Cancelled => ChildError::Cancelled,
        Stop::TimedOut(ms) => ChildError::failed(format!("timed out after {ms} ms")),
    }
}

fn cannot_start(config: &Config, error: &io::Error) -> String {
    let (program, directory) = (&config.words[0], config.directory.display());
    let why = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
            if !config.directory.is_dir() =>
        {
            format!("the working directory {directory} is none; create it, or choose another")
        }
        io::ErrorKind::NotFound if is_path(&config.program) && config.program.exists() => {
            "the interpreter that its first line names does not exist; install that".into()
        }
        io::ErrorKind::NotFound if is_path(&config.program) => {
            format!("there is no file {}", config.program.display())
        }
        io::ErrorKind::NotFound => "there is no such program in PATH; install it, or give its path".into(),
        io::ErrorKind::PermissionDenied => {
            format!("{error}; it must be executable, and {directory} accessible")
        }
        io::ErrorKind::ArgumentListTooLong => {
            "its arguments and environment are too long for this system; shorten the options of agent()"
                .into()
        }
        _ => error.to_string(),
    };
    format!("cannot start {program:?}: {why}")
}

fn is_path(program: &Path) -> bool {
    program.components().count() > 1
}
