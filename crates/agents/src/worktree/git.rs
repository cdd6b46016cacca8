//! Runs the `git` program.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use tokio::process::Command;

use crate::text;

/// How much of what git complains about is kept, in bytes.
const COMPLAINT_BYTES: usize = 2 * 1024;

/// Git, at a place.
#[derive(Clone, Debug)]
pub(super) struct Git {
    directory: PathBuf,
    /// Where the search for a repository ends: a folder whose worktree is gone must not be taken for a part of
    /// the repository around it.
    ceiling: Option<PathBuf>,
    /// Its standard input: the lock of this process. So the lock lasts until the last git has ended, should this
    /// process be killed, and nobody tidies up what that git is about to make.
    lock: Option<Arc<File>>,
}

/// Why git did not do what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The program cannot be started.
    #[error("cannot start git: {0}; install it")]
    NotInstalled(#[source] std::io::Error),
    /// It refused.
    #[error("`git {command}` failed: {complaint}")]
    Refused {
        /// What it was to do.
        command: String,
        /// What it said.
        complaint: String,
    },
}

impl Git {
    /// Git at a folder, in whatever repository that is.
    pub(super) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ceiling: None, lock: None }
    }

    /// The same, on behalf of a process with this lock.
    pub(super) fn holding(&self, lock: Arc<File>) -> Self {
        Self { lock: Some(lock), ..self.clone() }
    }

    /// The same, at a folder that is a worktree's own.
    pub(super) fn in_worktree(&self, directory: &Path) -> Self {
        let ceiling = directory.parent().map(Path::to_owned);
        Self { directory: directory.to_owned(), ceiling, lock: self.lock.clone() }
    }

    /// What it prints.
    ///
    /// It is never killed, not even when this future is dropped: that could leave a lock behind in somebody's
    /// repository.
    pub(super) async fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, GitError> {
        let mut command = Command::new("git");
        // A child may have written these into the repository's configuration.
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        // Hidden files would count as no change.
        command.args(["-c", "status.showUntrackedFiles=normal"]);
        let lock = self.lock.as_ref().and_then(|lock| lock.try_clone().ok());
        command.args(arguments).current_dir(&self.directory);
        command.stdin(lock.map_or_else(Stdio::null, Stdio::from));
        for (name, _) in std::env::vars_os() {
            // Such as GIT_DIR, which a hook has that runs us.
            if name.to_str().is_some_and(|name| name.starts_with("GIT_")) {
                command.env_remove(name);
            }
        }
        command.envs([("LC_ALL", "C"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0")]);
        if let Some(ceiling) = &self.ceiling {
            command.env("GIT_CEILING_DIRECTORIES", ceiling);
        }
        // Ctrl-C in a terminal is for us, not for git.
        #[cfg(unix)]
        command.process_group(0);
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let words = words.join(" ");
        let output = match command.output().await {
            Ok(output) => output,
            Err(_) if !self.directory.is_dir() => {
                let complaint = format!("there is no folder {}", self.directory.display());
                return Err(GitError::Refused { command: words, complaint });
            }
            Err(error) => return Err(GitError::NotInstalled(error)),
        };
        if output.status.success() {
            return Ok(output.stdout);
        }
        let mut complaint = text::tail(&output.stderr, COMPLAINT_BYTES);
        if complaint.is_empty() {
            complaint = output.status.to_string();
        }
        Err(GitError::Refused { command: words, complaint })
    }

    /// The path that it prints.
    pub(super) async fn path(&self, arguments: &[&str]) -> Result<PathBuf, GitError> {
        let mut printed = self.run(arguments).await?;
        printed.pop_if(|byte| *byte == b'\n');
        #[cfg(unix)]
        let path = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(printed);
        #[cfg(not(unix))]
        let path = String::from_utf8_lossy(&printed).into_owned();
        Ok(path.into())
    }

    /// What it prints, without the line's end.
    pub(super) async fn line(&self, arguments: &[&str]) -> Result<String, GitError> {
        let printed = self.run(arguments).await?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// The lines that it prints.
    pub(super) async fn lines(&self, arguments: &[&str]) -> Result<Vec<String>, GitError> {
        Ok(self.line(arguments).await?.lines().map(str::to_owned).collect())
    }
}
