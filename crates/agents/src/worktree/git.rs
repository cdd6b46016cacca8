//! Runs the `git` program. Nothing else in this crate does.
//!
//! A call that changes something goes through [`Git`], which cannot be made without the repository directory and the
//! working tree that git is to use. So git never searches for them, and no setting of a repository (`core.worktree`)
//! and no variable of the environment (`GIT_DIR`) can lead it elsewhere. [`discover`] alone lets git search, and asks
//! for paths.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::process::{Pipes, Process, describe, read};
use crate::text::{self, Tail};

/// How much of what git complains about is kept, in bytes.
const COMPLAINT_BYTES: usize = 2 * 1024;

/// How long what git has started may go on printing once git itself has ended.
const DRAIN: Duration = Duration::from_millis(500);

/// Settings over those of the repository and the user. The first three could run a command that an agent has
/// configured; the next ones would write an index in parts, or one that leaves files out; and nothing is to be tidied,
/// or followed into submodules, in passing.
const SETTINGS: [(&str, &str); 11] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("log.showSignature", "false"),
    ("core.splitIndex", "false"),
    ("core.untrackedCache", "false"),
    ("index.sparse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    // A file without grafts is named below.
    ("advice.graftFileDeprecated", "false"),
    // Commits that an agent makes on no branch are found there.
    ("core.logAllRefUpdates", "always"),
];

/// What a git that must run no command may fetch: nothing. The first is known to newer versions only.
const NO_FETCH: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// Git, in one repository directory and with one working tree.
#[derive(Clone, Debug)]
pub(super) struct Git {
    git_dir: PathBuf,
    work_tree: PathBuf,
    /// Settings over [`SETTINGS`].
    settings: Vec<(String, String)>,
    variables: Vec<(&'static str, OsString)>,
    fetches: bool,
    /// Its standard input when it makes something: the lock of this process. So the lock lasts until the last git has
    /// ended, should this process be killed, and no other process tidies up what that git is about to make.
    lock: Option<Arc<File>>,
}

/// Where a folder is, as git sees it from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The folder of the working tree.
    pub(super) top: PathBuf,
    /// The directory of this working tree.
    pub(super) git_dir: PathBuf,
    /// The directory that all working trees of the repository share.
    pub(super) common: PathBuf,
    /// The way from `top` to the folder.
    pub(super) prefix: PathBuf,
}

/// Why git did not do what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The program cannot be started.
    #[error("cannot start git: {0}; install it")]
    NotInstalled(#[source] io::Error),
    /// It is too old.
    #[error("this git is too old; install version 2.31 or later")]
    TooOld,
    /// The temporary folder for looking at worktrees cannot be used.
    #[error("cannot use a temporary folder: {0}")]
    View(#[source] io::Error),
    /// It refused.
    #[error("`git {command}` failed: {complaint}")]
    Refused {
        /// What it was to do.
        command: String,
        /// What it said.
        complaint: String,
    },
}

/// Lets git search for the repository that a folder is in, up to the folder `ceiling`, which does not count. Changes
/// nothing.
pub(super) async fn discover(directory: &Path, ceiling: Option<&Path>) -> Result<Found, GitError> {
    let arguments = [
        "rev-parse",
        "--path-format=absolute",
        "--show-toplevel",
        "--absolute-git-dir",
        "--git-common-dir",
        "--show-prefix",
    ];
    let mut program = program(directory, &[]);
    program.args(arguments);
    if let Some(ceiling) = ceiling {
        program.env("GIT_CEILING_DIRECTORIES", ceiling);
    }
    let refused = |complaint: String| GitError::Refused { command: command(&arguments), complaint };
    if !directory.is_dir() {
        return Err(refused(format!("there is no folder {}", directory.display())));
    }
    let printed = finish(&mut program, &arguments, b"").await?.stdout;
    if printed.starts_with(b"--path-format") {
        return Err(GitError::TooOld);
    }
    let lines: Vec<_> = printed.split(|byte| *byte == b'\n').map(path).collect();
    // The last line ends too.
    let [top, git_dir, common, prefix, _] = &lines[..] else {
        return Err(refused("a path has a line break in it".into()));
    };
    let [top, git_dir, common, prefix] = [top, git_dir, common, prefix].map(Clone::clone);
    Ok(Found { top, git_dir, common, prefix })
}

impl Git {
    /// Git in this repository directory, with this working tree.
    pub(super) fn new(git_dir: &Path, work_tree: &Path) -> Self {
        let (git_dir, work_tree) = (git_dir.to_owned(), work_tree.to_owned());
        Self { git_dir, work_tree, settings: Vec::new(), variables: Vec::new(), fetches: false, lock: None }
    }

    /// The same, on behalf of a process with this lock.
    pub(super) fn holding(mut self, lock: Option<Arc<File>>) -> Self {
        self.lock = lock;
        self
    }

    /// The lock that it holds.
    pub(super) fn lock(&self) -> Option<Arc<File>> {
        self.lock.clone()
    }

    /// The same, with these settings.
    pub(super) fn with(mut self, settings: impl IntoIterator<Item = (String, String)>) -> Self {
        self.settings.extend(settings);
        self
    }

    /// The same, with this variable.
    pub(super) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The same, which may fetch objects that a partial clone lacks: that runs what the repository has configured for
    /// it.
    pub(super) fn fetching(mut self) -> Self {
        self.fetches = true;
        self
    }

    /// What it prints. For calls that change nothing in the repository: git is ended when this is dropped.
    pub(super) async fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        self.ask_with(arguments, b"").await
    }

    /// The same, with this as its standard input.
    pub(super) async fn ask_with(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, GitError> {
        Ok(finish(self.program().args(arguments), arguments, input).await?.stdout)
    }

    /// The same, where a warning means that it did not see everything.
    pub(super) async fn ask_without_warnings(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let Printed { stdout, complaint } = finish(self.program().args(arguments), arguments, b"").await?;
        if complaint.is_empty() {
            return Ok(stdout);
        }
        Err(GitError::Refused { command: command(arguments), complaint })
    }

    /// The lines that it prints.
    pub(super) async fn lines(&self, arguments: &[&str]) -> Result<Vec<String>, GitError> {
        Ok(lines(&self.ask(arguments).await?))
    }

    /// Changes something in the repository. Git is never ended, not even when this is dropped: that could leave a lock
    /// behind in the user's repository. So it is only for calls that run no other program.
    pub(super) async fn change(&self, arguments: &[impl AsRef<OsStr>]) -> Result<(), GitError> {
        let mut program = self.program();
        program.args(arguments).stdin(self.stdin());
        let done = tokio::spawn(async move { program.output().await }).await;
        let output = match done.map_err(io::Error::other).flatten() {
            Ok(output) => output,
            Err(error) => return Err(GitError::NotInstalled(error)),
        };
        if output.status.success() {
            return Ok(());
        }
        Err(refused(arguments, output.status, text::tail(&output.stderr, COMPLAINT_BYTES)))
    }

    /// Fills the working tree, which may run programs and take long. Once `stop` is ready, git is told to end with all
    /// that it started, has `grace` to do so, and the reason to stop is returned.
    pub(super) async fn fill<S>(
        &self,
        arguments: &[&str],
        stop: impl Future<Output = S>,
        grace: Duration,
    ) -> Result<Result<(), S>, GitError> {
        let mut program = self.program();
        program.args(arguments);
        let (mut process, pipes) =
            Process::spawn_with(&mut program, self.stdin()).map_err(GitError::NotInstalled)?;
        let mut complaint = Tail::new(COMPLAINT_BYTES);
        let stopped = tokio::select! {
            biased;
            reason = stop => Some(reason),
            _ = attend(&mut process, pipes, b"", |_| {}, &mut complaint) => None,
        };
        if let Some(reason) = stopped {
            process.terminate();
            let _ = tokio::time::timeout(grace, process.ended()).await;
            let _ = process.finish().await;
            return Ok(Err(reason));
        }
        let status = process.finish().await.map_err(GitError::NotInstalled)?;
        if status.success() {
            return Ok(Ok(()));
        }
        Err(refused(arguments, status, complaint.text()))
    }

    fn stdin(&self) -> Stdio {
        let lock = self.lock.as_ref().and_then(|lock| lock.try_clone().ok());
        lock.map_or_else(Stdio::null, Stdio::from)
    }

    fn program(&self) -> Command {
        // The working tree may be gone.
        let mut program = program(&self.git_dir, &self.settings);
        program.env("GIT_DIR", &self.git_dir).env("GIT_WORK_TREE", &self.work_tree);
        if !self.fetches {
            program.envs(NO_FETCH);
        }
        program.envs(self.variables.iter().map(|(name, value)| (name, value)));
        program
    }
}

/// The program, with nothing that this process has in its environment for git.
fn program(directory: &Path, settings: &[(String, String)]) -> Command {
    let mut program = Command::new("git");
    program.current_dir(directory);
    for (name, _) in std::env::vars_os() {
        // Such as GIT_DIR, which a hook has that runs us.
        if name.to_str().is_some_and(|name| name.to_ascii_uppercase().starts_with("GIT_")) {
            program.env_remove(name);
        }
    }
    program.envs([("LC_ALL", "C"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0")]);
    // Both could make one commit look like another.
    program.envs([("GIT_NO_REPLACE_OBJECTS", "1"), ("GIT_GRAFT_FILE", "/dev/null")]);
    let fixed = SETTINGS.iter().copied();
    let all = fixed.chain(settings.iter().map(|(name, value)| (&**name, &**value)));
    let mut count = 0;
    for (name, value) in all {
        program.env(format!("GIT_CONFIG_KEY_{count}"), name);
        program.env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    program.env("GIT_CONFIG_COUNT", count.to_string());
    // Ctrl-C in a terminal is for us, not for git.
    #[cfg(unix)]
    program.process_group(0);
    program
}

/// What git printed before it ended well.
struct Printed {
    stdout: Vec<u8>,
    complaint: String,
}

/// Runs git to its end.
async fn finish(program: &mut Command, arguments: &[&str], input: &[u8]) -> Result<Printed, GitError> {
    let (mut process, pipes) = Process::spawn(program).map_err(GitError::NotInstalled)?;
    let (mut stdout, mut complaint) = (Vec::new(), Tail::new(COMPLAINT_BYTES));
    attend(&mut process, pipes, input, |bytes| stdout.extend_from_slice(bytes), &mut complaint).await;
    let status = process.finish().await.map_err(GitError::NotInstalled)?;
    if status.success() {
        return Ok(Printed { stdout, complaint: complaint.text() });
    }
    Err(refused(arguments, status, complaint.text()))
}

/// Serves the streams of a process until they are closed and it has ended.
async fn attend(
    process: &mut Process,
    pipes: Pipes,
    input: &[u8],
    mut take: impl FnMut(&[u8]),
    complaint: &mut Tail,
) {
    let write = async {
        if let Some(mut stdin) = pipes.stdin {
            // Git need not read it.
            let _ = stdin.write_all(input).await;
        }
    };
    let stdout = read::<()>(pipes.stdout, |bytes| {
        take(bytes);
        Ok(())
    });
    let stderr = read::<()>(pipes.stderr, |bytes| {
        complaint.push(bytes);
        Ok(())
    });
    let mut streams = pin!(async { tokio::join!(write, stdout, stderr) });
    tokio::select! {
        biased;
        _ = &mut streams => process.ended().await,
        // What it has left running must not hold up the answer.
        () = process.ended() => {
            let _ = tokio::time::timeout(DRAIN, streams).await;
        }
    }
}

fn refused(arguments: &[impl AsRef<OsStr>], status: ExitStatus, complaint: String) -> GitError {
    let complaint = if complaint.is_empty() { describe(status) } else { complaint };
    GitError::Refused { command: command(arguments), complaint }
}

/// What git was to do, without the details: `worktree add`.
fn command(arguments: &[impl AsRef<OsStr>]) -> String {
    let words = arguments.iter().map(|word| word.as_ref().to_string_lossy());
    let words = words.take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
    words.take_while(|word| !word.starts_with('-')).collect::<Vec<_>>().join(" ")
}

/// The lines of what git printed.
pub(super) fn lines(printed: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(printed).lines().map(str::to_owned).collect()
}

/// A path that git printed.
pub(super) fn path(printed: &[u8]) -> PathBuf {
    #[cfg(unix)]
    let path = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(printed).to_owned();
    #[cfg(not(unix))]
    let path = String::from_utf8_lossy(printed).into_owned();
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_git_was_to_do_and_not_how() {
        for (arguments, expected) in [
            (&["worktree", "add", "--quiet", "/a/b", "c0ffee"][..], "worktree add"),
            (&["rev-parse", "--verify", "HEAD"], "rev-parse"),
            (&["worktree", "remove", "/a"], "worktree remove"),
        ] {
            assert_eq!(command(arguments), expected);
        }
    }
}
