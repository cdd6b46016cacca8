//! The task that drives a run: it polls the script, starts children, listens to them and to the caller, tells
//! the books what happened and carries out what they decide. It decides nothing itself.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fanfold_types::{ErrorCode, Event, Meta, RunResult, WorkflowError};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::books::{Books, Effect, ScriptEnd};
use super::child::{self, Step};
use super::handle::{Canceller, Run};
use super::link::{Answerer, Link};
use crate::bindings::fanfold::workflow::types as wit;
use crate::json;
use crate::limits::Limits;
use crate::observe::{News, Newsroom, Observer};
use crate::sandbox::Sandboxes;
use crate::script::Script;
use crate::subagents::Subagents;

/// Everything a run needs, checked.
pub(crate) struct Plan {
    pub(crate) id: Arc<str>,
    pub(crate) meta: Arc<Meta>,
    pub(crate) script: Arc<Script>,
    pub(crate) program: Arc<[u8]>,
    pub(crate) args: Option<String>,
    pub(crate) seed: u64,
    pub(crate) limits: Limits,
    pub(crate) provider: Arc<dyn Subagents>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Whatever else ends the run: the caller's token, the engine's end.
    pub(crate) cancelled_by: Vec<(CancellationToken, &'static str)>,
}

/// Starts the run's task on the current Tokio runtime.
pub(crate) fn spawn(plan: Plan) -> Run {
    let canceller = Canceller::default();
    let (sender, result) = watch::channel(None);
    let (newsroom, telling) = Newsroom::open(plan.observers, plan.meta.clone());
    let books = Books::open(plan.id.clone(), plan.meta.clone(), plan.limits.clone());
    let driver = Driver {
        link: Arc::new(Link::new(books, plan.provider.supports())),
        id: plan.id.clone(),
        script: plan.script,
        provider: plan.provider,
        slots: plan.slots,
        clock: plan.clock,
        newsroom,
        events: 0,
        children: FuturesUnordered::new(),
        stop_children: CancellationToken::new(),
        limits: plan.limits,
    };
    let settings = wit::Settings {
        args: plan.args,
        start_time_ms: (driver.clock)(),
        seed: plan.seed,
        max_items_per_call: driver.limits.max_items_per_call,
    };
    let grace = driver.limits.grace();
    let cancellation = canceller.clone();
    let cancelled_by = plan.cancelled_by;
    let (sandboxes, program) = (plan.sandboxes, plan.program);
    tokio::spawn(async move {
        for (token, reason) in &cancelled_by {
            if token.is_cancelled() {
                cancellation.cancel(reason);
            }
        }
        let finished = driver.drive(sandboxes, program, settings, &cancellation, &cancelled_by).await;
        sender.send_replace(Some(Arc::new(finished)));
        if let Some(telling) = telling {
            // The observers have as long as children have to stop; then they go on by themselves.
            let _ = tokio::time::timeout(grace, telling).await;
        }
    });
    Run::new(plan.id, plan.meta, canceller, result, grace)
}

struct Driver {
    id: Arc<str>,
    link: Arc<Link>,
    script: Arc<Script>,
    provider: Arc<dyn Subagents>,
    slots: Arc<Semaphore>,
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    newsroom: Newsroom,
    events: u64,
    /// The next step of every child. They run in the run's own task: in order, and dropped with it.
    children: FuturesUnordered<BoxFuture<'static, Step>>,
    stop_children: CancellationToken,
    limits: Limits,
}

type Guest = Pin<Box<dyn Future<Output = (Result<wit::Report, WorkflowError>, u64)> + Send>>;
type Slot = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

impl Driver {
    async fn drive(
        mut self,
        sandboxes: Sandboxes,
        program: Arc<[u8]>,
        settings: wit::Settings,
        canceller: &Canceller,
        cancelled_by: &[(CancellationToken, &'static str)],
    ) -> RunResult {
        let (limits, link) = (self.limits.clone(), self.link.clone());
        let mut guest: Option<Guest> =
            Some(Box::pin(async move { sandboxes.run(program, settings, &limits, link).await }));
        let mut slot: Option<Slot> = None;
        // When patience ends, once the run is ending.
        let mut force_at: Option<Instant> = None;
        let overtime_at = self.limits.max_duration_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let mut fuel_used = 0;

        if canceller.is_cancelled() {
            // Cancelled before the first instruction: the script does not run at all.
            guest = None;
            self.link.books().cancel(&canceller.reason());
            self.link.books().script_ended(ScriptEnd::stopped(ErrorCode::Cancelled.error("")));
        }
        let link = self.link.clone();
        loop {
            self.carry_out();
            if link.books().is_done() {
                break;
            }
            if slot.is_none() && link.books().wants_slot() {
                slot = Some(self.next_slot());
            }
            tokio::select! {
                biased;
                // Before the script's end, so that every call it made has been seen and started.
                permit = wait(&mut slot) => {
                    slot = None;
                    self.start_child(permit);
                }
                () = link.changed.notified() => {}
                () = cancelled(canceller, cancelled_by), if force_at.is_none() => {
                    link.books().cancel(&canceller.reason());
                    link.stop.set();
                    force_at = Some(Instant::now() + self.limits.grace());
                }
                Some(step) = self.children.next(), if !self.children.is_empty() => self.note(step),
                (report, fuel) = wait(&mut guest) => {
                    guest = None;
                    fuel_used = fuel;
                    self.start_ready(&mut slot);
                    self.script_ended(report);
                    force_at.get_or_insert_with(|| Instant::now() + self.limits.grace());
                }
                () = sleep_until(force_at.unwrap_or_else(Instant::now)), if force_at.is_some() => break,
                () = sleep_until(overtime_at.unwrap_or_else(Instant::now)), if overtime_at.is_some() && guest.is_some() => {
                    guest = None;
                    let ms = self.limits.max_duration_ms.unwrap_or_default();
                    let error = ErrorCode::TimeLimit.error(format!("the run took longer than {ms} ms (maxDurationMs)"));
                    link.books().script_ended(ScriptEnd::stopped(error));
                    force_at.get_or_insert_with(|| Instant::now() + self.limits.grace());
                }
            }
        }
        drop(guest);
        let mut result = link.books().close();
        result.fuel_used = fuel_used;
        self.carry_out();
        // Children that did not stop are dropped with the driver.
        result
    }

    /// Does what the books have decided.
    fn carry_out(&mut self) {
        loop {
            // The books are not held while an answer wakes its receiver.
            let Some(effect) = self.link.books().next_effect() else { return };
            match effect {
                Effect::Emit(kind) => {
                    self.events += 1;
                    let (id, n, clock) = (&self.id, self.events, &self.clock);
                    self.newsroom.tell(|| News::Event(Event { kind, id: id.clone(), n, at: clock() }));
                }
                Effect::Warn(warning) => self.newsroom.tell(|| News::Warning(warning)),
                Effect::Answer(to, answer) => answer_call(to, answer),
                Effect::StopChildren => self.stop_children.cancel(),
            }
        }
    }

    /// A turn for a slot. The runs of an engine take turns, since each has at most one call that waits.
    fn next_slot(&self) -> Slot {
        let slots = self.slots.clone();
        Box::pin(async move { slots.acquire_owned().await.ok() })
    }

    fn start_child(&self, permit: Option<OwnedSemaphorePermit>) {
        let Some(permit) = permit else { return };
        let Some(request) = self.link.books().start_next() else { return };
        let cancel = self.stop_children.child_token();
        self.children.push(child::start(&*self.provider, request, cancel, permit));
    }

    /// Starts what the script called just before it ended and there is room for.
    fn start_ready(&self, slot: &mut Option<Slot>) {
        *slot = None;
        while self.link.books().wants_slot() {
            let Ok(permit) = self.slots.clone().try_acquire_owned() else { return };
            self.start_child(Some(permit));
        }
    }

    fn note(&self, step: Step) {
        let mut books = self.link.books();
        match step {
            Step::Started(started) => {
                books.child_started(started.seq, started.id().to_owned());
                self.children.push(started.end());
            }
            Step::StartFailed { seq, error } => books.start_failed(seq, error),
            Step::Ended { seq, end } => books.child_ended(seq, end),
        }
    }

    fn script_ended(&mut self, report: Result<wit::Report, WorkflowError>) {
        let end = match report {
            Err(error) => ScriptEnd::stopped(error),
            Ok(report) => ScriptEnd {
                outcome: self.outcome(report.outcome),
                never_awaited: report.never_awaited,
                unhandled_rejections: report
                    .unhandled_rejections
                    .iter()
                    .map(|text| self.script.thrown(text).message)
                    .collect(),
            },
        };
        self.link.books().script_ended(end);
    }

    /// What the guest says of the script's end, checked: it is not trusted.
    fn outcome(&self, outcome: Result<String, wit::Failure>) -> Result<Box<RawValue>, WorkflowError> {
        match outcome {
            Ok(value) => {
                let (size, most) = (value.len() as u64, self.limits.max_result_bytes);
                if size > most {
                    return Err(ErrorCode::OutputLimit.error(format!(
                        "the value has {size} bytes as JSON, more than {most} (maxResultBytes); return less, or \
                         a summary"
                    )));
                }
                json::read("value", value).map_err(|error| ErrorCode::Internal.error(error.message))
            }
            Err(failure) => {
                let mut error = self.script.thrown(&failure.message);
                error.code = failure
                    .code
                    .as_deref()
                    .map(|code| ErrorCode::from_wire(code).unwrap_or(ErrorCode::Internal));
                error.path = failure.path;
                if error.code.is_some() {
                    // Its place is told; the stack is for errors of the script's own.
                    error.message.truncate(error.message.find("\n    at ").unwrap_or(error.message.len()));
                }
                Err(error)
            }
        }
    }
}

fn answer_call(to: Answerer, answer: Result<super::books::Reply, WorkflowError>) {
    // A script that is gone does not mind.
    let _ = to.send(answer);
}

/// Waits for a future that may not be there; without one, for ever.
async fn wait<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Waits for whoever cancels first, and makes sure that the canceller knows the reason.
async fn cancelled(canceller: &Canceller, others: &[(CancellationToken, &'static str)]) {
    let others = others.iter().map(|(token, reason)| {
        Box::pin(async move {
            token.cancelled().await;
            *reason
        })
    });
    let others = async {
        let (reason, ..) = futures::future::select_all(others).await;
        canceller.cancel(reason);
    };
    tokio::select! {
        biased;
        () = canceller.cancelled() => {}
        () = others => {}
    }
}
