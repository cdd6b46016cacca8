//! A child from start to answer: one process or, for retries and schemas, several in turn.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError};
use tokio::time::Instant;

use super::Config;
use super::exchange::{Break, exchange};
use super::process::{Pipes, Process};
use crate::ask;
use fanfold::Schema;

/// Starts a child's first process.
pub(super) fn start(
    config: Arc<Config>,
    request: AgentRequest,
    cancel: CancellationToken,
) -> Result<Child, StartError> {
    let wanted = Wanted::new(&request)?;
    let deadline = request.options.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
    let mut work = Work { config, request, cancel, wanted, deadline, attempt: 0 };
    let first = work.spawn().map_err(StartError::new)?;
    let name = work.config.program.file_name().unwrap_or_default().to_string_lossy();
    let id = format!("{name}-{}", first.0.id().unwrap_or_default());
    Ok(Child::new(id, work.run(first)))
}

/// What one child has to do.
struct Work {
    config: Arc<Config>,
    request: AgentRequest,
    cancel: CancellationToken,
    wanted: Option<Wanted>,
    deadline: Option<Instant>,
    /// How many processes were started.
    attempt: u32,
}

/// A value that the child is to answer with.
#[derive(Clone)]
struct Wanted {
    schema: Arc<Schema>,
    /// The prompt, with the order to answer with a value.
    prompt: String,
}

impl Wanted {
    fn new(request: &AgentRequest) -> Result<Option<Self>, StartError> {
        let unusable = |error| StartError::new(format!("the schema cannot be used: {error}"));
        let validator = request.options.validator().map_err(unusable)?;
        let wanted = validator.zip(request.options.schema.as_ref());
        Ok(wanted.map(|(schema, text)| Self { schema, prompt: ask::with_schema(&request.prompt, text) }))
    }
}

/// Why work was left.
enum Stop {
    Cancelled,
    TimedOut,
}

impl Work {
    /// Tries until the child succeeds or there are no retries left.
    async fn run(mut self, first: (Process, Pipes)) -> Result<Answer, ChildError> {
        let mut retries = self.request.options.retries.unwrap_or_default();
        let mut outcome = self.ask(Some(first)).await;
        while matches!(outcome, Err(ChildError::Failed(_))) && retries > 0 && self.stopped().is_none() {
            retries -= 1;
            outcome = self.ask(None).await;
        }
        outcome
    }

    /// Asks until the answer is good or was asked for often enough.
    async fn ask(&mut self, mut first: Option<(Process, Pipes)>) -> Result<Answer, ChildError> {
        let Some(Wanted { schema, prompt: original }) = self.wanted.clone() else {
            let prompt = self.request.prompt.clone();
            return self.answer(first, &prompt).await.map(Answer::text);
        };
        let mut prompt = original.clone();
        let mut wrong = Vec::new();
        for _ in 0..self.config.schema_attempts {
            let answer: Arc<str> = self.answer(first.take(), &prompt).await?.into();
            // Megabytes of JSON take their time.
            let reading = {
                let (answer, schema) = (answer.clone(), schema.clone());
                tokio::task::spawn_blocking(move || ask::read(&answer, &schema))
            };
            let read = tokio::select! {
                biased;
                stop = self.stop() => return Err(self.error(stop)),
                read = reading => read,
            };
            match read {
                Ok(Ok(value)) => return Ok(Answer::structured(value)),
                Ok(Err(errors)) => wrong = errors,
                Err(error) => return Err(ChildError::broken(format!("cannot read the answer: {error}"))),
            }
            prompt = ask::again(&original, &answer, &wrong);
        }
        let times = self.config.schema_attempts;
        Err(ChildError::failed(format!(
            "no answer satisfied the schema, asked {times} {}; the last: {}",
            if times == 1 { "time" } else { "times" },
            wrong.join("; "),
        )))
    }

    /// Lets one process answer: the one given, or a new one.
    async fn answer(
        &mut self,
        process: Option<(Process, Pipes)>,
        prompt: &str,
    ) -> Result<String, ChildError> {
        let (mut process, pipes) = match process {
            Some(started) => started,
            None => match self.stopped() {
                Some(stop) => return Err(self.error(stop)),
                None => self.spawn().map_err(ChildError::broken)?,
            },
        };
        let (max_bytes, grace) = (self.config.answer_bytes, self.config.stop_grace);
        let outcome = exchange(&mut process, pipes, prompt, max_bytes, self.stop(), grace).await;
        let status = process.finish().await;
        match (outcome, status) {
            (Err(Break::Stopped(stop)), _) => Err(self.error(stop)),
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

    /// Starts a process, or says why that is not possible and what to do.
    fn spawn(&mut self) -> Result<(Process, Pipes), String> {
        self.attempt = self.attempt.saturating_add(1);
        let config = &*self.config;
        let mut command = tokio::process::Command::new(&config.program);
        command.args(&config.words[1..]).current_dir(&config.directory);
        config.environment.apply(&mut command, &self.request, self.attempt);
        Process::spawn(&mut command).map_err(|error| cannot_start(config, &error))
    }

    /// Returns once the child is cancelled or out of time.
    async fn stop(&self) -> Stop {
        let out_of_time = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Stop::Cancelled,
            () = out_of_time => Stop::TimedOut,
        }
    }

    fn stopped(&self) -> Option<Stop> {
        if self.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        self.deadline.filter(|deadline| *deadline <= Instant::now()).map(|_| Stop::TimedOut)
    }

    fn error(&self, stop: Stop) -> ChildError {
        match stop {
            Stop::Cancelled => ChildError::Cancelled,
            Stop::TimedOut => {
                let ms = self.request.options.timeout_ms.unwrap_or_default();
                ChildError::failed(format!("timed out after {ms} ms"))
            }
        }
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
