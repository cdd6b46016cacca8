//! A provider whose children are coding agents; the documentation is that of [`Acp`].

mod heard;
mod permissions;
mod session;

use std::sync::Arc;
use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, StartError, Subagents, Support, UsageMeter};
use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

pub use self::permissions::Permissions;
use self::session::Terms;
use crate::ask::{Question, with_instructions};
use crate::attempts::{Attempt, Retries};
use crate::command::{Command, Config};
use crate::failure::{Failure, FailureKind};
use crate::patience::Patience;
use crate::process::{Pipes, Process, describe, read};
use crate::text::Tail;

/// How much of the end of standard error goes into a reason, in bytes.
const DIAGNOSTIC_BYTES: usize = 8 * 1024;

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
/// `schema`, `timeoutMs`, `stallMs` and `retries`; `agentType` where the host defines it: its instructions come before
/// the prompt. No others: which model an agent uses is its own setting.
///
/// # Schemas
/// The prompt asks for the value; one that does not satisfy the schema is asked for again in the same session, up to
/// [`Command::schema_attempts`] times in all.
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
}

impl Acp {
    /// Agents that this command starts; each process must speak the protocol on its standard input and output. Its
    /// environment, directory, bounds and grace are those of the command.
    pub fn new(command: Command) -> Self {
        Self { command, permissions: Permissions::default() }
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
        let (config, permissions) = (self.command.config.clone(), self.permissions);
        Box::pin(async move {
            request.prompt = with_instructions(&request);
            let question = Question::new(&request, config.schema_attempts)?;
            let patience = Patience::new(&request, cancel);
            let first = config.start(&request, 1, None).await.map_err(StartError::new)?;
            let id = config.id_of(first.0.id());
            let meter = UsageMeter::default();
            let mut work = Work {
                config,
                permissions,
                request: request.clone(),
                question,
                patience: patience.clone(),
                meter: meter.clone(),
                attempt: 1,
                first: Some(first),
            };
            let result = async move {
                let retries = Retries { transient: 0, longest_wait: Duration::ZERO };
                retries.run(&mut work, &request, &patience).await
            };
            Ok(Child::new(id, result).metered(meter))
        })
    }

    fn supports(&self) -> Support {
        let mut support = Support::default();
        (support.schema, support.timeout, support.retries, support.stall) = (true, true, true, true);
        support.instructions = true;
        support
    }
}

/// What one child has to do.
struct Work {
    config: Arc<Config>,
    permissions: Permissions,
    request: AgentRequest,
    question: Question,
    patience: Patience,
    meter: UsageMeter,
    /// How many processes were started.
    attempt: u32,
    /// The first process, until it is asked.
    first: Option<(Process, Pipes)>,
}

impl Attempt for Work {
    /// Lets one process answer, in one session.
    async fn attempt(&mut self) -> Result<Answer, Failure> {
        let (mut process, pipes) = match self.first.take() {
            Some(first) => first,
            None => {
                self.attempt = self.attempt.saturating_add(1);
                self.config.start(&self.request, self.attempt, None).await.map_err(Failure::Broken)?
            }
        };
        let Pipes { stdin: Some(stdin), stdout: Some(stdout), stderr } = pipes else {
            return Err(Failure::Broken("the agent's process has no pipes".into()));
        };
        let mut said = Tail::new(DIAGNOSTIC_BYTES);
        let terms = Terms {
            directory: &self.config.directory,
            permissions: self.permissions,
            answer_bytes: self.config.answer_bytes,
            stall: self.request.options.stall_ms.map(Duration::from_millis),
            grace: self.config.stop_grace,
            patience: &self.patience,
            meter: &self.meter,
        };
        let session = session::ask(stdin, stdout, terms, &self.question);
        let outcome = attend(&mut process, session, stderr, &mut said).await;
        let by_itself = settle(&mut process, self.config.stop_grace).await;
        let status = process.finish().await;
        match (outcome, status) {
            // Its words for why it ended are better than ours.
            (Err(Failure::Failed(mut reason)), Ok(status))
                if reason.kind == FailureKind::Exit && by_itself =>
            {
                let said = said.text();
                let separator = if said.is_empty() { "" } else { ": " };
                reason.message = format!("{}; {}{separator}{said}", reason.message, describe(status));
                Err(Failure::Failed(reason))
            }
            (outcome, _) => outcome,
        }
    }
}

/// Serves a session while the process runs, and standard error with it.
async fn attend(
    process: &mut Process,
    session: impl Future<Output = Result<Answer, Failure>>,
    stderr: Option<tokio::process::ChildStderr>,
    said: &mut Tail,
) -> Result<Answer, Failure> {
    let mut session = std::pin::pin!(session);
    let diagnostics = read::<()>(stderr, |bytes| {
        said.push(bytes);
        Ok(())
    });
    let mut diagnostics = std::pin::pin!(diagnostics);
    let mut told = false;
    loop {
        tokio::select! {
            biased;
            outcome = &mut session => return outcome,
            _ = &mut diagnostics, if !told => told = true,
            () = process.ended() => break,
        }
    }
    // What it wrote before it ended may still be on its way.
    let rest = async {
        let (outcome, _) = tokio::join!(session, async {
            if !told {
                let _ = diagnostics.await;
            }
        });
        outcome
    };
    timeout(DRAIN, rest).await.unwrap_or_else(|_| Err(Failure::new(FailureKind::Exit, "the agent ended")))
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
