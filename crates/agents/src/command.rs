//! A provider whose children are processes; the documentation is that of [`Command`].

mod child;
mod environment;
mod exchange;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fanfold::{AgentRequest, CancellationToken, Child, StartError, Subagents, Support};
use futures::future::BoxFuture;

use self::child::Program;
use self::environment::Environment;
use crate::policy::AgentPolicy;
use crate::worktree::Worktrees;

/// A provider that runs a program for each child: the prompt is its standard input, the answer its standard
/// output.
///
/// # The program
/// It runs without a shell, in its own process group and in the working directory chosen. The prompt is
/// written to its standard input as UTF-8 and the input closed; a program need not read it. What it writes to
/// its standard output by the time it exits is the answer, with line ends at the end trimmed and invalid
/// UTF-8 replaced, without terminal escape codes and [reasoning](crate::reasoning). An exit status other than 0
/// is a failure, told with the end of its standard error. It has no terminal: a program that asks questions there
/// is stopped by the system.
///
/// The options of the call are environment variables; those of options not given are not set.
///
/// | variable | value |
/// |---|---|
/// | `FANFOLD_RUN_ID` | the run's id |
/// | `FANFOLD_SEQ` | the number of the call in its run, from 1 |
/// | `FANFOLD_ATTEMPT` | which process this is for the same call, from 1 |
/// | `FANFOLD_LABEL`, `FANFOLD_PHASE` | what people call the child, and the phase it belongs to |
/// | `FANFOLD_SCHEMA` | the JSON Schema for its answer, as JSON text; not set if longer than 64 KiB |
/// | `FANFOLD_MODEL`, `FANFOLD_PROVIDER` | the model and the model provider to use |
/// | `FANFOLD_EFFORT`, `FANFOLD_AGENT_TYPE` | how hard to think, which kind of agent to use |
/// | `FANFOLD_AGENT_INSTRUCTIONS`, `FANFOLD_AGENT_TOOLS` | what the host defines for that kind: its instructions, if no longer than 64 KiB, and its tools, with commas |
/// | `FANFOLD_WORKTREE`, `FANFOLD_BRANCH`, `FANFOLD_BASE` | its worktree, the branch in it and the commit that was made from |
/// | `FANFOLD_TIMEOUT_MS`, `FANFOLD_STALL_MS` | the longest it may take, and say nothing, in milliseconds |
/// | `FANFOLD_RETRIES` | how often a failure is tried again |
///
/// NUL characters in a value are left out.
///
/// # The rest of its environment
/// Nothing is inherited but what a program needs to find its way: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`,
/// `LANG`, `LANGUAGE`, `LC_*`, `TZ`, `TERM`, `TMPDIR`, `XDG_RUNTIME_DIR` and `XDG_*_HOME` (cache, config,
/// data, state, bin); on Windows also `SystemRoot`, `SystemDrive`, `ComSpec`, `PATHEXT`, `TEMP`, `TMP`,
/// `USERNAME`, `USERPROFILE`, `APPDATA`, `LOCALAPPDATA`, `ProgramData` and `ProgramFiles`. Agents that keep
/// their login under the home directory work with that. Keys (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`), proxies
/// (`HTTPS_PROXY`) and certificates (`SSL_CERT_FILE`, `NODE_EXTRA_CA_CERTS`) are passed only by name, with
/// [`inherit`](Self::inherit).
///
/// # Which options it honours
/// `schema`, `timeoutMs` and `retries` always: they are this provider's work. `isolation` where it was given a
/// repository, with [`worktrees`](Self::worktrees). `model`,
/// `provider`, `effort`, `agentType` and `stallMs` are up to the program, and a script that asks for a model
/// must not be given another in silence. So they count as honoured where the command names their variable,
/// or where [`honours`](Self::honours) says that the program reads it:
///
/// ```
/// # use fanfold_agents::Command;
/// # fn main() -> Result<(), fanfold_agents::CommandError> {
/// let command = Command::parse(r#"sh -c 'exec claude -p ${FANFOLD_MODEL:+--model "$FANFOLD_MODEL"}'"#)?;
/// let wrapper = Command::parse("./agent.sh")?.honours("model")?.honours("effort")?;
/// # Ok(())
/// # }
/// ```
///
/// A kind of agent that the host defines (`agentType`) is honoured always: its instructions stand before the
/// prompt, unless the command names `FANFOLD_AGENT_INSTRUCTIONS` or knows kinds of its own.
///
/// Options are not put into the command's words, since a script could write words of its own that way. For
/// the same reason quote the variables in shell commands, as above.
///
/// # Schemas
/// With a schema the prompt ends with the order to answer with a JSON value that satisfies it. The value may
/// stand alone, in a fenced code block or within prose. One that does not satisfy the schema is asked for
/// again by a new process, whose prompt also holds the last answer and what is wrong with it, up to
/// [`schema_attempts`](Self::schema_attempts) times in all.
///
/// # Ends
/// `timeoutMs` spans all processes of the child, `retries` starts afresh with the first prompt. A child that
/// is cancelled or out of time gets SIGTERM, it and its descendants, and SIGKILL once it exits or after the
/// [`stop_grace`](Self::stop_grace). A child whose result is dropped gets SIGKILL at once. Descendants never
/// outlive their child, unless they leave its process group or the host itself is killed. On Windows only the
/// child itself is ended, without warning.
///
/// All processes of a child work in the same worktree, also those of its retries.
///
/// # Panics
/// Starting a child panics outside of a Tokio runtime, or in one whose I/O or time driver is not enabled.
#[derive(Clone, Debug)]
pub struct Command {
    pub(crate) config: Arc<Config>,
}

/// What is fixed for all children.
#[derive(Clone)]
pub(crate) struct Config {
    /// The program and its arguments.
    words: Vec<String>,
    /// What is run: the first word, made absolute if it is a path.
    program: PathBuf,
    pub(crate) directory: PathBuf,
    environment: Environment,
    support: Support,
    pub(crate) answer_bytes: usize,
    pub(crate) schema_attempts: u32,
    pub(crate) stop_grace: Duration,
    worktrees: Option<Worktrees>,
}

/// Why a command cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// There is no first word.
    #[error("the command is empty; give a program and its arguments")]
    Empty,
    /// The command line does not split into words.
    #[error("a quotation mark in the command {0:?} is not closed, or it ends in a backslash")]
    Unbalanced(String),
    /// Not an option that is up to the program.
    #[error("a command cannot honour {0:?}; it can: model, provider, effort, agentType, stallMs")]
    UnknownOption(String),
    /// The current directory cannot be told.
    #[error("cannot tell the current directory: {0}")]
    CurrentDirectory(#[source] std::io::Error),
}

impl Command {
    /// A command from a line, split into words as a POSIX shell splits them, quotes and backslashes included.
    /// Nothing is expanded and no shell runs, unless the line says `sh -c '…'`. On Windows put paths into
    /// single quotes, for their backslashes.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`CommandError::Unbalanced`].
    pub fn parse(line: &str) -> Result<Self, CommandError> {
        Self::new(shlex::split(line).ok_or_else(|| CommandError::Unbalanced(line.into()))?)
    }

    /// A command from its words: the program, then its arguments.
    ///
    /// The program is looked for in `PATH`, or, if it has a path separator, from the current directory of
    /// now.
    ///
    /// # Errors
    /// [`CommandError::Empty`]; [`CommandError::CurrentDirectory`].
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, CommandError> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        let directory = std::env::current_dir().map_err(CommandError::CurrentDirectory)?;
        let program = match words.first().map(Path::new) {
            None => return Err(CommandError::Empty),
            Some(program) if program.as_os_str().is_empty() => return Err(CommandError::Empty),
            Some(program) if program.components().count() > 1 => directory.join(program),
            Some(program) => program.into(),
        };
        let mut support = Support::default();
        (support.schema, support.timeout, support.retries, support.instructions) = (true, true, true, true);
        for (_, variable, honoured) in environment::hints(&mut support) {
            *honoured = words.iter().any(|word| word.contains(variable));
        }
        Ok(Self {
            config: Arc::new(Config {
                words,
                program,
                directory,
                environment: Environment::minimal(),
                support,
                answer_bytes: 10 * 1024 * 1024,
                schema_attempts: 3,
                stop_grace: Duration::from_secs(2),
                worktrees: None,
            }),
        })
    }

    /// Looks for the program, if its path is relative, from this folder instead of the current one.
    #[must_use]
    pub fn relative_to(self, folder: impl AsRef<Path>) -> Self {
        self.with(|config| {
            let program = Path::new(&config.words[0]);
            if program.components().count() > 1 && program.is_relative() {
                config.program = config.directory.join(folder).join(program);
            }
        })
    }

    /// Where the children work; a relative path goes from the current directory of when the command was made,
    /// which is also the default.
    #[must_use]
    pub fn directory(self, path: impl AsRef<Path>) -> Self {
        self.with(|config| config.directory.push(path))
    }

    /// Passes on an environment variable of this process, with its value of now. One that is not set is not
    /// passed.
    #[must_use]
    pub fn inherit(self, name: impl AsRef<str>) -> Self {
        self.with(|config| config.environment.inherit(name.as_ref()))
    }

    /// Sets an environment variable for the children.
    #[must_use]
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.with(|config| config.environment.set(name.into(), value.into()))
    }

    /// Says that the program does what its environment tells it for an option: `model`, `provider`, `effort`,
    /// `agentType` or `stallMs`.
    ///
    /// # Errors
    /// [`CommandError::UnknownOption`].
    pub fn honours(self, option: &str) -> Result<Self, CommandError> {
        let mut support = self.config.support;
        match environment::hints(&mut support).into_iter().find(|(name, ..)| *name == option) {
            Some((.., honoured)) => *honoured = true,
            None => return Err(CommandError::UnknownOption(option.into())),
        }
        Ok(self.with(|config| config.support = support))
    }

    /// The longest answer, in bytes; a child that says more is ended and has failed. 10 MiB by default.
    #[must_use]
    pub fn max_answer_bytes(self, bytes: usize) -> Self {
        self.with(|config| config.answer_bytes = bytes)
    }

    /// How often a child is asked, in all, for a value that satisfies its schema. 3 by default, 1 at least.
    #[must_use]
    pub fn schema_attempts(self, attempts: u32) -> Self {
        self.with(|config| config.schema_attempts = attempts.max(1))
    }

    /// How long a child has to end once it was told to. 2 seconds by default; keep it below the engine's
    /// grace.
    #[must_use]
    pub fn stop_grace(self, grace: Duration) -> Self {
        self.with(|config| config.stop_grace = grace)
    }

    /// Gives children that ask for it (`isolation: "worktree"`) a git worktree of their own. Without this, such a
    /// call is refused.
    #[must_use]
    pub fn worktrees(self, worktrees: Worktrees) -> Self {
        self.with(|config| {
            config.support.isolation = true;
            config.worktrees = Some(worktrees);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.config));
        self
    }
}

impl Subagents for Command {
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let policy = AgentPolicy::default().schema_attempts(self.config.schema_attempts);
        let program = Program::new(self.config.clone(), request);
        Box::pin(async move {
            let request = program.request().clone();
            policy.start(program, &request, cancel).await
        })
    }

    fn supports(&self) -> Support {
        self.config.support
    }

    fn why_not(&self, option: &str) -> Option<String> {
        if option == "isolation" {
            return Some("the command was given no git repository for worktrees".to_owned());
        }
        let mut support = self.config.support;
        let (_, variable, _) =
            environment::hints(&mut support).into_iter().find(|(name, ..)| *name == option)?;
        Some(format!("the command does not mention {variable}, so it would not know"))
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("words", &self.words)
            .field("directory", &self.directory)
            .field("environment", &self.environment)
            .field("support", &self.support)
            .field("answer_bytes", &self.answer_bytes)
            .field("schema_attempts", &self.schema_attempts)
            .field("stop_grace", &self.stop_grace)
            .field("worktrees", &self.worktrees)
            .finish()
    }
}
