//! The one agent policy: everything that holds for the agents of every provider, around a provider that makes one
//! attempt.
//!
//! # Layout
//! - [`AgentPolicy`]: the decorator: deadline (`timeoutMs`), silence (`stallMs`), retries, asking for a value again
//! - [`PlainProvider`]: what it decorates: an attempt is opened, answers prompts and is closed
//! - [`Attempt`]: what an attempt is told, and where it reports to
//! - `deadline`: the clocks; `retry`: which failures are tried again, after how long; [`ask`](crate::ask): prompts and
//!   values; [`Transcript`]: what was said, for the reasons of failures
//!
//! `tower`'s layers were the model and are not used: they end what takes too long by dropping it, and an agent is told
//! to stop, has time for that, and what it had said by then is kept.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fanfold::{Activity, AgentRequest, Answer, CancellationToken, Child, StartError, UsageMeter, Worktree};

use tokio::time::Instant;

use crate::ask::{Answerer, Question};
use crate::deadline::{Deadline, silence};
pub use crate::failure::{Failure, Reason, Unfinished};
use crate::failure::{FailureKind, MESSAGE_BYTES};
use crate::retry::RetryPolicy;
use crate::text;
pub use crate::transcript::Transcript;

/// Makes attempts, and knows nothing of deadlines, silences, retries and schemas.
///
/// One of these works for one agent. Each attempt is opened, answers one prompt or more, and is closed; the next one
/// begins afresh. A conversation, if the provider has one, lasts for an attempt. Dropping it stops the agent at once.
pub trait PlainProvider: Send + 'static {
    /// What people call the agent, once it was opened for the first time. Never empty.
    fn id(&self) -> String;

    /// Begins an attempt: makes what must be there before it can be asked.
    ///
    /// # Errors
    /// [`Failure::Broken`] if that is not possible; at the first attempt the agent could not start then.
    fn open(&mut self, attempt: &Attempt) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = attempt;
        async { Ok(()) }
    }

    /// Lets the agent answer a prompt.
    ///
    /// # Errors
    /// Why it did not. Once the attempt [is stopped](Attempt::stopped), [`Failure::Stopped`], soon.
    fn answer(
        &mut self,
        prompt: &str,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Ends an attempt, however it went: nothing of it may be running afterwards.
    fn close(&mut self, attempt: &Attempt) -> impl Future<Output = ()> + Send {
        let _ = attempt;
        async {}
    }

    /// Ends the agent, after its last attempt. What it leaves behind is reported.
    fn leave(&mut self) -> impl Future<Output = Option<Worktree>> + Send {
        async { None }
    }

    /// An answer, as the script may have it: without keys.
    fn given(&self, answer: Answer) -> Answer {
        answer
    }

    /// What a failure tells, as it may be shown: without keys.
    fn shown(&self, text: String) -> String {
        text
    }
}

/// What an attempt is told, and where it reports to.
#[derive(Clone, Debug)]
pub struct Attempt {
    stop: CancellationToken,
    deadline: Deadline,
    /// Takes what the agent says as it comes. Silence is measured by it.
    pub transcript: Transcript,
    /// Takes what requests cost, failed ones included.
    pub meter: UsageMeter,
}

impl Attempt {
    /// The next attempt of the same agent.
    fn next(&self) -> Self {
        self.transcript.begin();
        Self { stop: CancellationToken::new(), ..self.clone() }
    }

    /// When the agent's time is over, if it is bounded.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.end()
    }

    /// Returns once the answer is no longer wanted.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// What the work gives, unless the answer is no longer wanted; the work is dropped then.
    ///
    /// # Errors
    /// [`Failure::Stopped`].
    pub async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.stopped() => Err(Failure::Stopped(Unfinished::default())),
        }
    }
}

/// What holds for the agents of a provider.
#[derive(Clone, Copy, Debug)]
pub struct AgentPolicy {
    retries: RetryPolicy,
    stall: Option<Duration>,
    schema_attempts: u32,
}

impl Default for AgentPolicy {
    /// Nothing is tried again unless the call says so, silence has no limit, a value is asked for 3 times.
    fn default() -> Self {
        let retries = RetryPolicy { transient: 0, longest_wait: Duration::from_secs(60) };
        Self { retries, stall: None, schema_attempts: 3 }
    }
}

impl AgentPolicy {
    /// The longest silence of an agent, while it is asked; `None` for any.
    #[must_use]
    pub fn stall(self, longest: Option<Duration>) -> Self {
        Self { stall: longest, ..self }
    }

    /// How often an agent is asked, in all, for a value that satisfies its schema; 1 at least.
    #[must_use]
    pub fn schema_attempts(self, attempts: u32) -> Self {
        Self { schema_attempts: attempts.max(1), ..self }
    }

    pub(crate) fn retries(self, retries: RetryPolicy) -> Self {
        Self { retries, ..self }
    }

    /// Starts an agent of a provider. Its deadline is that of the request, and covers everything from now on.
    ///
    /// # Errors
    /// A schema that cannot be used; a first attempt that could not be opened.
    pub async fn start(
        self,
        mut provider: impl PlainProvider,
        request: &AgentRequest,
        cancel: CancellationToken,
    ) -> Result<Child, StartError> {
        let deadline = Deadline::new(request.options.timeout());
        let mut limits = Limits {
            cancel,
            deadline,
            timeout: request.options.timeout().unwrap_or_default(),
            stall: self.stall,
        };
        let question = Question::new(request, self.schema_attempts)?;
        let (transcript, meter) = (Transcript::new(request.activity.clone()), UsageMeter::default());
        let attempt = Attempt { stop: CancellationToken::new(), deadline, transcript, meter: meter.clone() };
        let opened = match limits.keep(&attempt, None, provider.open(&attempt)).await {
            Ok(()) => Ok(()),
            Err((Failure::Broken(reason), _)) => {
                let left = provider.leave().await.map(|worktree| worktree.path);
                let left = left.map(|path| format!("; its worktree {path} was kept")).unwrap_or_default();
                return Err(StartError::new(reason + &left));
            }
            Err(failure) => Err(limits.told(failure, &question).await),
        };
        let id = provider.id();
        let (policy, retries) = (self.retries, request.options.retries);
        let activity = request.activity.clone();
        let mut agent =
            Agent { provider, question, limits, policy, retries, attempt, activity, asked: 1, before: None };
        let left = Arc::new(OnceLock::new());
        let reported = left.clone();
        let result = async move {
            let outcome = agent.run(opened).await;
            if let Some(worktree) = agent.provider.leave().await {
                let _ = reported.set(worktree);
            }
            outcome.map_err(Into::into)
        };
        let mut child = Child::new(id, result).metered(meter);
        child.left = left;
        Ok(child)
    }
}

/// What ends the work of an agent from outside.
struct Limits {
    cancel: CancellationToken,
    deadline: Deadline,
    /// The time that the deadline was made of.
    timeout: Duration,
    stall: Option<Duration>,
}

/// One of these limits.
#[derive(Clone, Copy)]
enum Limit {
    Cancelled,
    Timeout,
    Stall,
}

impl Limits {
    /// Does a piece of an attempt's work. At a limit the work is told to stop, and awaited.
    async fn keep<T>(
        &mut self,
        attempt: &Attempt,
        stall: Option<Duration>,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, (Failure, Option<Limit>)> {
        let mut work = std::pin::pin!(work);
        let limit = tokio::select! {
            biased;
            // What is there already counts, even where time is over in the same moment.
            done = &mut work => return done.map_err(|failure| (failure, None)),
            () = self.cancel.cancelled() => Limit::Cancelled,
            () = self.deadline.over() => Limit::Timeout,
            () = silence(&attempt.transcript, stall) => Limit::Stall,
        };
        attempt.stop.cancel();
        work.await.map_err(|failure| (failure, Some(limit)))
    }

    /// Returns once the agent is cancelled or out of time.
    async fn over(&mut self) -> Limit {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Limit::Cancelled,
            () = self.deadline.over() => Limit::Timeout,
        }
    }

    /// The failure of work that a limit stopped, by how far it had come. Work that failed by itself in the same moment
    /// keeps its own.
    async fn told(&self, failure: (Failure, Option<Limit>), question: &Question) -> Failure {
        let (Failure::Stopped(unfinished), Some(limit)) = failure else { return failure.0 };
        let (kind, message) = match limit {
            Limit::Cancelled => return Failure::Stopped(unfinished),
            Limit::Timeout => {
                (FailureKind::Timeout, format!("no answer within {} ms", self.timeout.as_millis()))
            }
            Limit::Stall => {
                let ms = self.stall.unwrap_or_default().as_millis();
                (FailureKind::Stall, format!("nothing came for {ms} ms"))
            }
        };
        Failure::new(kind, format!("{message}{}", how_far(unfinished, question).await))
    }
}

/// How far an agent had come, as a clause to follow a reason.
async fn how_far(Unfinished { text, missing }: Unfinished, question: &Question) -> String {
    if missing.is_empty() {
        return String::new();
    }
    if text.trim().is_empty() {
        return format!("; {missing}");
    }
    match question.is_answered_by(text).await {
        Some(true) => format!("; the answer was complete but {missing}"),
        Some(false) => format!("; {missing}"),
        None => format!("; the answer may be complete but {missing}"),
    }
}

/// One agent.
struct Agent<P> {
    provider: P,
    question: Question,
    limits: Limits,
    policy: RetryPolicy,
    /// How often the call wants failures to be tried again.
    retries: Option<u32>,
    attempt: Attempt,
    activity: Activity,
    /// How often it was asked, as the observers count.
    asked: u32,
    /// Why the attempt before failed.
    before: Option<Reason>,
}

impl<P: PlainProvider> Agent<P> {
    /// Tries until there is an answer, or no try is left. The first attempt was opened, with this outcome.
    async fn run(&mut self, opened: Result<(), Failure>) -> Result<Answer, Failure> {
        let mut opened = Some(opened);
        let mut tries = 0;
        loop {
            let outcome = self.attempt(opened.take()).await;
            self.provider.close(&self.attempt).await;
            let reason = match outcome {
                Err(Failure::Failed(reason)) => self.complete(reason),
                Err(Failure::Broken(reason)) => return Err(Failure::Broken(self.provider.shown(reason))),
                ended => return ended.map(|answer| self.provider.given(answer)),
            };
            let pause = match self.policy.pause(&reason, self.retries, tries) {
                // What cannot end in time need not begin.
                Ok(pause) if !self.limits.deadline.is_within(pause) => pause,
                Ok(_) | Err(None) => return Err(Failure::Failed(reason)),
                Err(Some(longer)) => return Err(longer),
            };
            tries += 1;
            self.activity.retry(self.asked, reason.kind.as_str(), &reason.message, pause);
            self.asked += 1;
            self.before = Some(reason);
            self.attempt = self.attempt.next();
            let pausing = self.attempt.unless_stopped(tokio::time::sleep(pause));
            if let Err(failure) = self.limits.keep(&self.attempt, None, pausing).await {
                return Err(match self.limits.told(failure, &self.question).await {
                    Failure::Failed(reason) => Failure::Failed(self.complete(reason)),
                    other => other,
                });
            }
        }
    }

    /// Makes an attempt, unless it was opened already.
    async fn attempt(&mut self, opened: Option<Result<(), Failure>>) -> Result<Answer, Failure> {
        let Self { provider, question, limits, attempt, activity, asked, .. } = self;
        match opened {
            Some(opened) => opened?,
            None => match limits.keep(attempt, None, provider.open(attempt)).await {
                Ok(()) => {}
                Err(failure) => return Err(limits.told(failure, question).await),
            },
        }
        question.ask(&mut Asked { provider, question, limits, attempt, activity, asked }).await
    }

    /// A reason with what the agent had said by then, as it may be shown.
    fn complete(&self, mut reason: Reason) -> Reason {
        // In this order: a key that a cut had split would not be found.
        reason.message = text::ends(&self.provider.shown(reason.message), MESSAGE_BYTES);
        // Who declines says so in the message, and the end of too long an answer tells nothing.
        if !matches!(reason.kind, FailureKind::Refusal | FailureKind::AnswerSize) {
            reason.message.push_str(&self.provider.shown(self.attempt.transcript.told()));
        }
        if let (FailureKind::Timeout, Some(before)) = (reason.kind, &self.before) {
            let message = text::ends(&before.message, MESSAGE_BYTES / 4);
            reason.message.push_str(&format!("; the try before failed: {}: {message}", before.kind));
        }
        reason
    }
}

/// An agent as it is asked.
struct Asked<'a, P> {
    provider: &'a mut P,
    question: &'a Question,
    limits: &'a mut Limits,
    attempt: &'a Attempt,
    activity: &'a Activity,
    asked: &'a mut u32,
}

impl<P: PlainProvider> Answerer for Asked<'_, P> {
    async fn answer(&mut self, prompt: &str) -> Result<String, Failure> {
        // It could say nothing before it was asked.
        self.attempt.transcript.heard();
        let stall = self.limits.stall;
        let answer = self.provider.answer(prompt, self.attempt);
        match self.limits.keep(self.attempt, stall, answer).await {
            Ok(answer) => Ok(answer),
            Err(failure) => Err(self.limits.told(failure, self.question).await),
        }
    }

    fn again(&mut self, wrong: &[String]) {
        let reason = text::ends(&self.provider.shown(wrong.join("; ")), MESSAGE_BYTES);
        self.activity.retry(*self.asked, FailureKind::Schema.as_str(), &reason, Duration::ZERO);
        *self.asked += 1;
    }

    async fn unwanted(&mut self) -> Failure {
        let limit = self.limits.over().await;
        self.limits.told((Failure::Stopped(Unfinished::default()), Some(limit)), self.question).await
    }
}
