//! A provider whose children are coding agents; the documentation is that of [`Acp`].

mod frames;
mod permissions;
mod session;
mod updates;
mod wire;

use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use fanfold::{AgentRequest, CancellationToken, Child, StartError, Subagents, Support};
use futures::FutureExt as _;
use futures::future::{BoxFuture, FusedFuture as _};
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};

pub use self::permissions::Permissions;
use self::session::{Session, Terms};
use crate::ask::with_instructions;
use crate::command::{Command, Config};
use crate::failure::{Failure, FailureKind};
use crate::policy::{AgentPolicy, Attempt, PlainProvider, Transcript};
use crate::process::{Pipes, Process, describe};

/// The longest silence of agents whose calls do not say. A tool that an agent runs may be silent for long, and an agent
/// that waits for a person is silent for ever.
const STALL: Duration = Duration::from_secs(600);

/// How long what an agent has written may take to arrive after it ended; and how long it may take to end by itself once
/// nobody speaks to it any more.
const DRAIN: Duration = Duration::from_millis(500);

/// A provider that runs a coding agent for each child, and speaks the [Agent Client Protocol] with it.
///
/// Each child is a process of its own and one session in it, in the command's working directory. The answer is what the
/// agent said last: its words since its last call of a tool. The agent gets no file system and no terminal of ours; it
/// uses its own, and asks before it does what needs permission. [`Permissions`] answers.
///
/// # Which options it honours
/// `schema`, `timeoutMs`, `stallMs` (or [`stall`](Self::stall)) and `retries`; `agentType` where the host defines it: its instructions come before
/// the prompt. No others: which model an agent uses is its own setting.
///
/// # Schemas
/// The prompt asks for the value; one that does not satisfy the schema is asked for again in the same session, up to
/// [`Command::schema_attempts`] times in all.
///
/// # What an agent writes
/// Standard error, and lines of its output that are no messages of the protocol, go into the reasons of failures. What
/// cannot be seen around a message (a byte order mark, escape sequences of terminals) is taken off, halves of a
/// character that was cut between two pieces of the answer are put together, and bytes that are no UTF-8 become U+FFFD.
/// A message that cannot be read, or that answers what was not asked, ends the attempt at once (`protocol`), since it
/// may have been a part of the answer.
///
/// # Ends
/// A child that is cancelled, out of time or silent for too long gets `session/cancel` and has the command's
/// [`stop_grace`](Command::stop_grace) to end its turn, then SIGTERM and as long again, then SIGKILL, it and its
/// descendants. Keep twice the grace below the engine's. A child whose result is dropped gets SIGKILL at once. Failures
/// have [kinds](crate::FailureKind) and are tried again, with a new process, only as often as `retries` says: an agent
/// may have done half its work. An agent that asks for a login is fatal for the run.
///
/// ```
/// use fanfold_agents::{Acp, Command, Permissions};
///
/// # fn main() -> Result<(), fanfold_agents::CommandError> {
/// let command = Command::parse("my-agent --acp")?.inherit("MY_AGENT_KEY");
/// let agents = Acp::new(command).permissions(Permissions::Read);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// As [`Command`].
///
/// [Agent Client Protocol]: https://agentclientprotocol.com
#[derive(Clone, Debug)]
pub struct Acp {
    command: Command,
    permissions: Permissions,
    stall: Option<Duration>,
}

impl Acp {
    /// Agents that this command starts; each process must speak the protocol on its standard input and output. Its
    /// environment, directory, bounds and grace are those of the command.
    pub fn new(command: Command) -> Self {
        Self { command, permissions: Permissions::default(), stall: Some(STALL) }
    }

    /// The longest silence of agents whose calls do not say `stallMs`: no message, nothing on standard error. 10
    /// minutes by default; `None` for any.
    #[must_use]
    pub fn stall(mut self, longest: Option<Duration>) -> Self {
        self.stall = longest;
        self
    }

    /// What agents may do that ask. [`Permissions::Deny`] by default.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }
}

impl Subagents for Acp {
    fn start(
        &self,
        mut request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let config = self.command.config.clone();
        let policy = AgentPolicy::default()
            .stall(request.options.stall_ms.map(Duration::from_millis).or(self.stall))
            .schema_attempts(config.schema_attempts);
        request.prompt = with_instructions(&request);
        let agent = CodingAgent {
            config,
            permissions: self.permissions,
            request: request.clone(),
            processes: 0,
            first: None,
            running: None,
        };
        Box::pin(async move { policy.start(agent, &request, cancel).await })
    }

    fn supports(&self) -> Support {
        let mut support = Support::default();
        (support.schema, support.timeout, support.retries, support.stall) = (true, true, true, true);
        support.instructions = true;
        support
    }
}

/// Runs a coding agent for one call: a process and a session for each attempt.
struct CodingAgent {
    config: Arc<Config>,
    permissions: Permissions,
    request: AgentRequest,
    /// How many processes were started.
    processes: u32,
    /// The first of them.
    first: Option<u32>,
    running: Option<Running>,
}

/// An agent's process, and what it is spoken with.
struct Running {
    process: Process,
    /// Until the session begins.
    pipes: Option<(ChildStdin, ChildStdout)>,
    session: Option<Session>,
    /// Until its end.
    stderr: Option<ChildStderr>,
}

impl PlainProvider for CodingAgent {
    fn id(&self) -> String {
        self.config.id(self.first)
    }

    /// Starts a process.
    async fn open(&mut self, _attempt: &Attempt) -> Result<(), Failure> {
        self.processes = self.processes.saturating_add(1);
        let started = self.config.start(&self.request, self.processes, None).await;
        let (process, Pipes { stdin, stdout, stderr }) = started.map_err(Failure::Broken)?;
        self.first = self.first.or(process.id());
        self.running = Some(Running { process, pipes: stdin.zip(stdout), session: None, stderr });
        Ok(())
    }

    /// Asks in the attempt's session, which begins with the first prompt.
    async fn answer(&mut self, prompt: &str, attempt: &Attempt) -> Result<String, Failure> {
        let Some(running) = &mut self.running else {
            return Err(Failure::Broken("the agent's process does not run".into()));
        };
        let terms = Terms {
            permissions: self.permissions,
            answer_bytes: self.config.answer_bytes,
            grace: self.config.stop_grace,
        };
        let outcome = running.ask(prompt, &self.config, terms, attempt).await;
        let Err(failure) = outcome else { return outcome };
        Err(match self.running.take() {
            Some(running) => running.end(self.config.stop_grace, failure, &attempt.transcript).await,
            None => failure,
        })
    }

    async fn close(&mut self, attempt: &Attempt) {
        if let Some(running) = self.running.take() {
            // It answered; how it ended tells nothing.
            let _ = running.finish(self.config.stop_grace, &attempt.transcript).await;
        }
    }
}

impl Running {
    async fn ask(
        &mut self,
        prompt: &str,
        config: &Config,
        terms: Terms,
        attempt: &Attempt,
    ) -> Result<String, Failure> {
        let Self { process, pipes, session, stderr } = self;
        let asking = async {
            let session = match session {
                Some(session) => session,
                None => {
                    let (stdin, stdout) = pipes
                        .take()
                        .ok_or_else(|| Failure::Broken("the agent's process has no pipes".into()))?;
                    let begun = session.insert(Session::connect(stdin, stdout, terms, attempt).await?);
                    begun.begin(&config.directory, attempt).await?;
                    begun
                }
            };
            session.prompt(prompt, attempt).await
        };
        attend(process, asking, stderr, &attempt.transcript).await
    }

    /// Ends what failed, and tells of its end if that is why.
    async fn end(self, grace: Duration, failure: Failure, transcript: &Transcript) -> Failure {
        match (failure, self.finish(grace, transcript).await) {
            (Failure::Failed(mut reason), Some(status)) if reason.kind == FailureKind::Exit => {
                reason.message = format!("{}; {}", reason.message, describe(status));
                Failure::Failed(reason)
            }
            (failure, _) => failure,
        }
    }

    /// Lets the process end, which nobody speaks to any more: by itself, else told to, else by force. Its status, if it
    /// ended by itself.
    async fn finish(mut self, grace: Duration, transcript: &Transcript) -> Option<ExitStatus> {
        // Its input is closed; that is how agents know.
        (self.session, self.pipes) = (None, None);
        let Self { mut process, mut stderr, .. } = self;
        let by_itself = {
            let mut listening = pin!(listen(&mut stderr, transcript).fuse());
            let mut settling = pin!(settle(&mut process, grace));
            loop {
                tokio::select! {
                    biased;
                    by_itself = &mut settling => break by_itself,
                    () = &mut listening, if !listening.is_terminated() => {}
                }
            }
        };
        let status = process.finish().await;
        // Its last words may still be on their way, and a descendant that left the group may hold the stream open.
        let _ = timeout(DRAIN, listen(&mut stderr, transcript)).await;
        status.ok().filter(|_| by_itself)
    }
}

/// Serves a session while the process runs, and standard error with it.
async fn attend<T>(
    process: &mut Process,
    session: impl Future<Output = Result<T, Failure>>,
    stderr: &mut Option<ChildStderr>,
    transcript: &Transcript,
) -> Result<T, Failure> {
    let mut session = pin!(session);
    {
        let mut listening = pin!(listen(stderr, transcript).fuse());
        loop {
            tokio::select! {
                biased;
                outcome = &mut session => return outcome,
                () = &mut listening, if !listening.is_terminated() => {}
                () = process.ended() => break,
            }
        }
    }
    // What it wrote before it ended may still be on its way.
    timeout(DRAIN, session).await.unwrap_or_else(|_| Err(Failure::new(FailureKind::Exit, "the agent ended")))
}

/// Reads standard error to its end.
async fn listen(stderr: &mut Option<ChildStderr>, transcript: &Transcript) {
    let mut bytes = vec![0; 4096];
    while let Some(stream) = stderr {
        // A stream that breaks has nothing more to say.
        match stream.read(&mut bytes).await {
            Ok(count @ 1..) => transcript.stderr(&bytes[..count]),
            _ => *stderr = None,
        }
    }
}

/// Lets a process end that nobody speaks to any more: by itself, else told to, and tells which. It may still run
/// afterwards.
async fn settle(process: &mut Process, grace: Duration) -> bool {
    // Its input is closed; that is how agents know.
    if timeout(DRAIN, process.ended()).await.is_ok() {
        return true;
    }
    process.terminate();
    tokio::select! {
        () = process.ended() => {}
        () = sleep(grace) => {}
    }
    false
}
