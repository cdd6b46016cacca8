//! A child from start to answer: one process or, for retries and schemas, several in turn.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, Schema, StartError, Worktree};
use tokio::time::Instant;

use super::exchange::{Break, exchange};
use super::process::{Pipes, Process};
use super::{Config, environment};
use crate::ask;
use crate::worktree::Place;

/// Starts a child's first process, in a worktree of its own if it asks for one.
pub(super) async fn start(
    config: Arc<Config>,
    mut request: AgentRequest,
    cancel: CancellationToken,
) -> Result<Child, StartError> {
    if environment::instructs_by_prompt(&config.words, config.support, &request)
        && let Some(definition) = &request.options.definition
    {
        request.prompt = ask::with_instructions(&request.prompt, definition);
    }
    let wanted = Wanted::new(&request)?;
    let deadline = request.options.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
    let mut work =
        Work { config, request, cancel, wanted, deadline, place: None, left: Arc::default(), attempt: 0 };
    if work.request.options.isolation.is_some() {
        work.place = Some(work.make_place().await?);
    }
    let first = match work.spawn().await {
        Ok(first) => first,
        Err(error) => {
            work.leave().await;
            return Err(StartError::new(error));
        }
    };
    let name = work.config.program.file_name().unwrap_or_default().to_string_lossy();
    let id = format!("{name}-{}", first.0.id().unwrap_or_default());
    let left = work.left.clone();
    let mut child = Child::new(id, work.run(first));
    child.left = left;
    Ok(child)
}

/// What one child has to do.
struct Work {
    config: Arc<Config>,
    request: AgentRequest,
    cancel: CancellationToken,
    wanted: Option<Wanted>,
    deadline: Option<Instant>,
    /// Its worktree.
    place: Option<Place>,
    /// What becomes of that.
    left: Arc<OnceLock<Worktree>>,
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
        self.leave().await;
        outcome
    }

    async fn make_place(&self) -> Result<Place, StartError> {
        let refused = |why: String| StartError::new(format!("cannot give it a worktree of its own: {why}"));
        let worktrees = self.config.worktrees.as_ref();
        let worktrees = worktrees.ok_or_else(|| refused("there is no repository".into()))?;
        let place = worktrees.make(&self.request).await.map_err(|error| refused(error.to_string()))?;
        if self.stopped().is_some() {
            place.leave().await;
            return Err(StartError::new("it was stopped before it started"));
        }
        Ok(place)
    }

    /// Removes the worktree, or tells of what is in it.
    async fn leave(&mut self) {
        if let Some(place) = self.place.take()
            && let Some(worktree) = place.leave().await
        {
            let _ = self.left.set(worktree);
        }
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
                None => self.spawn().await.map_err(ChildError::broken)?,
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
    async fn spawn(&mut self) -> Result<(Process, Pipes), String> {
        self.attempt = self.attempt.saturating_add(1);
        let config = &*self.config;
        let mut command = tokio::process::Command::new(&config.program);
        let directory = self.place.as_ref().map_or_else(|| config.directory.clone(), Place::directory);
        command.args(&config.words[1..]).current_dir(&directory);
        config.environment.apply(&mut command, &self.request, self.attempt, self.place.as_ref());
        let started =
            Process::spawn(&mut command).map_err(|error| cannot_start(config, &directory, &error))?;
        if let Some(place) = &mut self.place {
            place.occupied_by(started.0.id()).await.map_err(|error| error.to_string())?;
        }
        Ok(started)
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

fn cannot_start(config: &Config, directory: &Path, error: &io::Error) -> String {
    let (program, working) = (&config.words[0], directory.display());
    let why = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
            if !directory.is_dir() =>
        {
            format!("the working directory {working} is none; create it, or choose another")
        }
        io::ErrorKind::NotFound if is_path(&config.program) && config.program.exists() => {
            "the interpreter that its first line names does not exist; install that".into()
        }
        io::ErrorKind::NotFound if is_path(&config.program) => {
            format!("there is no file {}", config.program.display())
        }
        io::ErrorKind::NotFound => "there is no such program in PATH; install it, or give its path".into(),
        io::ErrorKind::PermissionDenied => {
            format!("{error}; it must be executable, and {working} accessible")
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
