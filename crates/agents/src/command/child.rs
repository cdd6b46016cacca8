//! An agent that is a program: a process for each prompt, in turn.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fanfold::{AgentRequest, Worktree};

use super::exchange::{Break, exchange};
use super::{Config, environment};
use crate::ask;
use crate::failure::{Failure, FailureKind, Unfinished};
use crate::policy::{Attempt, PlainProvider};
use crate::process::{Pipes, Process, describe};
use crate::worktree::{NotMade, Place};

/// Runs a program for one agent.
pub(super) struct Program {
    config: Arc<Config>,
    request: AgentRequest,
    /// The agent's worktree, if it asked for one.
    place: Option<Place>,
    /// How many processes were started.
    attempt: u32,
    /// The first process of all.
    first: Option<u32>,
    /// The process of an attempt, until it is asked.
    ready: Option<(Process, Pipes)>,
}

impl Program {
    pub(super) fn new(config: Arc<Config>, mut request: AgentRequest) -> Self {
        if environment::instructs_by_prompt(&config.words, config.support, &request) {
            request.prompt = ask::with_instructions(&request);
        }
        Self { config, request, place: None, attempt: 0, first: None, ready: None }
    }

    /// The request, as the program gets it.
    pub(super) fn request(&self) -> &AgentRequest {
        &self.request
    }

    /// Makes a worktree, unless the attempt is stopped before it is there.
    async fn make_place(&self, attempt: &Attempt) -> Result<Place, Failure> {
        let refused = |why: String| Failure::Broken(format!("cannot give it a worktree of its own: {why}"));
        let Some(worktrees) = &self.config.worktrees else {
            return Err(refused("there is no repository".into()));
        };
        let made = worktrees.make(&self.request, attempt, self.config.stop_grace).await;
        made.map_err(|error| match error {
            NotMade::Stopped => Failure::Stopped(Unfinished::default()),
            NotMade::Failed(error) => refused(error.to_string()),
        })
    }

    /// Starts the next process.
    async fn spawn(&mut self) -> Result<(Process, Pipes), Failure> {
        self.attempt = self.attempt.saturating_add(1);
        let started = self.config.start(&self.request, self.attempt, self.place.as_mut()).await;
        let started = started.map_err(Failure::Broken)?;
        self.first = self.first.or(started.0.id());
        Ok(started)
    }
}

impl PlainProvider for Program {
    fn id(&self) -> String {
        self.config.id(self.first)
    }

    /// Starts a process, in a worktree of its own if the agent asks for one.
    async fn open(&mut self, attempt: &Attempt) -> Result<(), Failure> {
        if self.request.options.isolation.is_some() && self.place.is_none() {
            self.place = Some(self.make_place(attempt).await?);
        }
        self.ready = Some(self.spawn().await?);
        Ok(())
    }

    /// Lets one process answer.
    async fn answer(&mut self, prompt: &str, attempt: &Attempt) -> Result<String, Failure> {
        let (mut process, pipes) = match self.ready.take() {
            Some(ready) => ready,
            None => self.spawn().await?,
        };
        let (max_bytes, grace) = (self.config.answer_bytes, self.config.stop_grace);
        let outcome = exchange(&mut process, pipes, prompt, max_bytes, attempt, grace).await;
        let status = process.finish().await;
        match (outcome, status) {
            (Err(Break::Stopped(text)), _) => {
                // A program that said nothing is one that has not exited; that needs no word.
                let missing = if text.is_empty() { "" } else { "the process did not exit" };
                Err(Failure::Stopped(Unfinished { text, missing }))
            }
            (Err(Break::TooLong), _) => {
                let message = format!("the answer is longer than {max_bytes} bytes");
                Err(Failure::new(FailureKind::AnswerSize, message))
            }
            (Err(Break::Unfinished), _) => {
                let message = "the process has ended, and what it started goes on writing the answer";
                Err(Failure::new(FailureKind::CutOff, message))
            }
            (Ok(answer), Ok(status)) if status.success() => Ok(answer),
            (Ok(_), Ok(status)) => Err(Failure::new(FailureKind::Exit, describe(status))),
            (Ok(_), Err(error)) => {
                Err(Failure::Broken(format!("cannot tell how {:?} ended: {error}", self.config.words[0])))
            }
        }
    }

    async fn close(&mut self, _attempt: &Attempt) {
        if let Some((process, _)) = self.ready.take() {
            // It was not asked; how it ended tells nothing.
            let _ = process.finish().await;
        }
    }

    /// Removes the worktree, or tells of what is in it.
    async fn leave(&mut self) -> Option<Worktree> {
        self.place.take()?.leave().await
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

    /// What an agent is called, by its first process if there was one.
    pub(crate) fn id(&self, process: Option<u32>) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        match process {
            Some(process) => format!("{name}-{process}"),
            None => format!("{name}-not-started"),
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
