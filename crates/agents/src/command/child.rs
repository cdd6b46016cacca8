//! A child from start to answer: one process or, for retries and schemas, several in turn.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, Worktree};

use super::exchange::{Break, exchange};
use super::{Config, environment};
use crate::ask::{self, Answerer, Question};
use crate::patience::{Patience, Stop};
use crate::process::{Pipes, Process};
use crate::worktree::{NotMade, Place};

/// Starts a child's first process, in a worktree of its own if it asks for one.
pub(super) async fn start(
    config: Arc<Config>,
    mut request: AgentRequest,
    cancel: CancellationToken,
) -> Result<Child, StartError> {
    if environment::instructs_by_prompt(&config.words, config.support, &request) {
        request.prompt = ask::with_instructions(&request);
    }
    let question = Question::new(&request, config.schema_attempts)?;
    let patience = Patience::new(&request, cancel);
    let mut work =
        Work { config, request, patience, place: None, left: Arc::default(), attempt: 0, first: None };
    if work.request.options.isolation.is_some() {
        match work.make_place().await? {
            Ok(place) => work.place = Some(place),
            // An agent that is out of time has failed, as one that runs: only what cannot be started is an error.
            Err(stop) => return Ok(Child::new(work.config.id_of(None), async move { Err(error(stop)) })),
        }
    }
    let first = match work.spawn().await {
        Ok(first) => first,
        Err(error) => {
            work.leave().await;
            return Err(StartError::new(error));
        }
    };
    let id = work.config.id_of(first.0.id());
    work.first = Some(first);
    let left = work.left.clone();
    let mut child = Child::new(id, work.run(question));
    child.left = left;
    Ok(child)
}

/// What one child has to do.
struct Work {
    config: Arc<Config>,
    request: AgentRequest,
    patience: Patience,
    /// Its worktree.
    place: Option<Place>,
    /// What becomes of that.
    left: Arc<OnceLock<Worktree>>,
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
        self.leave().await;
        outcome
    }

    /// Makes a worktree, unless patience ends before it is there.
    async fn make_place(&self) -> Result<Result<Place, Stop>, StartError> {
        let refused = |why: String| StartError::new(format!("cannot give it a worktree of its own: {why}"));
        let worktrees = self.config.worktrees.as_ref();
        let worktrees = worktrees.ok_or_else(|| refused("there is no repository".into()))?;
        let place = match worktrees.make(&self.request, &self.patience, self.config.stop_grace).await {
            Ok(place) => place,
            Err(NotMade::Stopped(stop)) => return Ok(Err(stop)),
            Err(NotMade::Failed(error)) => return Err(refused(error.to_string())),
        };
        match self.patience.is_over() {
            None => Ok(Ok(place)),
            Some(stop) => {
                place.leave().await;
                Ok(Err(stop))
            }
        }
    }

    /// Removes the worktree, or tells of what is in it.
    async fn leave(&mut self) {
        if let Some(place) = self.place.take()
            && let Some(worktree) = place.leave().await
        {
            let _ = self.left.set(worktree);
        }
    }

    /// The first process, or a new one.
    async fn process(&mut self) -> Result<(Process, Pipes), ChildError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        if let Some(stop) = self.patience.is_over() {
            return Err(error(stop));
        }
        self.spawn().await.map_err(ChildError::broken)
    }

    /// Starts the next process.
    async fn spawn(&mut self) -> Result<(Process, Pipes), String> {
        self.attempt = self.attempt.saturating_add(1);
        self.config.start(&self.request, self.attempt, self.place.as_mut()).await
    }
}

impl Answerer for Work {
    type Error = ChildError;

    /// Lets one process answer.
    async fn answer(&mut self, prompt: &str) -> Result<String, ChildError> {
        let (mut process, pipes) = self.process().await?;
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
    /// Starts a process, in its place if it has one, or says why that is not possible and what to do.
    pub(crate) async fn start(
        &self,
        request: &AgentRequest,
        attempt: u32,
        mut place: Option<&mut Place>,
    ) -> Result<(Process, Pipes), String> {
        let mut command = tokio::process::Command::new(&self.program);
        let directory = place.as_ref().map_or_else(|| self.directory.clone(), |place| place.directory());
        command.args(&self.words[1..]).current_dir(&directory);
        self.environment.apply(&mut command, request, attempt, place.as_deref());
        let started = Process::spawn(&mut command).map_err(|error| cannot_start(self, &directory, &error))?;
        if let Some(place) = &mut place {
            place.occupied_by(started.0.id()).await.map_err(|error| error.to_string())?;
        }
        Ok(started)
    }

    /// What a child is called, by the id of its first process; 0 for one that ended before it had any.
    pub(crate) fn id_of(&self, process: Option<u32>) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}-{}", process.unwrap_or_default())
    }
}

fn error(stop: Stop) -> ChildError {
    match stop {
        Stop::Cancelled => ChildError::Cancelled,
        Stop::TimedOut(ms) => ChildError::failed(format!("timed out after {ms} ms")),
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
