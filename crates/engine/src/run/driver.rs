//! The task that drives a run: it polls the script, starts children, listens to them and to the caller, tells
//! the books what happened and carries out what they decide. It decides nothing itself.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fanfold_types::{ErrorCode, Event, RunResult, WorkflowError};
use futures::future::{BoxFuture, poll_fn};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::books::{Books, Effect, ScopeId, ScriptEnd};
use super::canceller::Canceller;
use super::child::{self, Step};
use super::ending;
use super::handle::Run;
use super::inline::Inline;
use super::link::{Answerer, Link, Shared};
use super::nested::{Inside, Nursery};
use crate::activity::RunActivity;
use crate::agent_types::AgentTypes;
use crate::bindings::fanfold::workflow::types as wit;
use crate::limits::Limits;
use crate::observe::{Dispatcher, Observer};
use crate::script::Script;
use crate::subagents::Subagents;

/// Everything a run needs, checked.
pub(crate) struct Plan {
    pub(crate) id: Arc<str>,
    pub(crate) parent: Option<Arc<str>>,
    pub(crate) script: Script,
    /// Makes the guest that runs the script.
    pub(crate) guest: MakeGuest,
    /// Makes those of the workflows inside of it.
    pub(crate) nursery: Arc<dyn Nursery>,
    pub(crate) args: Option<String>,
    pub(crate) seed: u64,
    pub(crate) start_time_ms: u64,
    pub(crate) limits: Limits,
    pub(crate) provider: Arc<dyn Subagents>,
    pub(crate) agent_types: Option<Arc<dyn AgentTypes>>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
    pub(crate) slots: Arc<Semaphore>,
    /// When the run begins, in milliseconds since 1970.
    pub(crate) now_ms: u64,
    /// Whatever else ends the run: the caller's token, the engine's end.
    pub(crate) cancelled_by: Vec<(CancellationToken, &'static str)>,
}

/// Starts the run's task on the current Tokio runtime.
pub(crate) fn spawn(plan: Plan) -> Run {
    let meta = Arc::new(plan.script.meta.clone());
    let canceller = Canceller::new(plan.cancelled_by);
    let (told, result) = watch::channel(None);
    let run = Run::new(plan.id.clone(), meta.clone(), canceller.clone(), result, plan.limits.grace());

    let activity = Arc::new(RunActivity::new(!plan.observers.is_empty()));
    let (dispatcher, telling) = Dispatcher::start(plan.observers, meta.clone());
    let mut books = Books::open(plan.id.clone(), plan.parent, meta, plan.limits.clone(), activity.clone());
    plan.script.ignored().for_each(|ignored| books.warn(&ignored));
    let start = (plan.start_time_ms, plan.seed);
    let (sender, called) = mpsc::unbounded_channel();
    let who = (plan.provider.clone(), plan.agent_types);
    let shared = Arc::new(Shared::new(
        books,
        who,
        plan.limits.clone(),
        start,
        plan.nursery,
        sender,
        canceller.clone(),
    ));
    let settings = shared.settings(&plan.script, plan.args, ScopeId::ROOT);
    let link = Link::new(shared.clone(), ScopeId::ROOT, plan.script.dialect);
    let guest = (plan.guest)(settings, Arc::new(link));
    let mut driver = Driver {
        id: plan.id,
        shared,
        script: plan.script,
        provider: plan.provider,
        slots: plan.slots,
        began: (plan.now_ms, Instant::now()),
        dispatcher,
        activity,
        events: 0,
        children: FuturesUnordered::new(),
        called,
        inside: FuturesUnordered::new(),
        stop_children: CancellationToken::new(),
        stop_nested: HashMap::new(),
        limits: plan.limits,
    };
    tokio::spawn(Inline::new(async move {
        let drive = driver.drive(guest, &canceller);
        if AssertUnwindSafe(drive).catch_unwind().await.is_err() {
            driver.panicked();
        }
        let grace = driver.limits.grace();
        let mut result = driver.finish();
        (result.seed, result.start_time_ms) = (plan.seed, plan.start_time_ms);
        told.send_replace(Some(Arc::new(result)));
        if let Some(telling) = telling {
            // The observers have as long as children have to stop; then they go on by themselves.
            let _ = timeout(grace, telling).await;
        }
    }));
    run
}

struct Driver {
    id: Arc<str>,
    shared: Arc<Shared>,
    script: Script,
    provider: Arc<dyn Subagents>,
    slots: Arc<Semaphore>,
    /// When the run began, in milliseconds since 1970 and by the clock that never goes back.
    began: (u64, Instant),
    dispatcher: Dispatcher,
    activity: Arc<RunActivity>,
    events: u64,
    /// The next step of every child. They run in the run's own task: in order, and dropped with it.
    children: FuturesUnordered<BoxFuture<'static, Step>>,
    /// Workflows that scripts have called, and those that run.
    called: mpsc::UnboundedReceiver<Inside>,
    inside: FuturesUnordered<Inside>,
    stop_children: CancellationToken,
    /// Stops the children of one workflow inside of this one.
    stop_nested: HashMap<ScopeId, CancellationToken>,
    limits: Limits,
}

/// Makes a guest of what it is given.
pub(crate) type MakeGuest = Box<dyn FnOnce(wit::Settings, Arc<Link>) -> Guest + Send>;

/// The guest at work, to its report or what stopped it. Dropping it ends it.
pub(crate) type Guest = Pin<Box<dyn Future<Output = Result<wit::Report, WorkflowError>> + Send>>;
type Slot = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;
type Deadline = Option<Pin<Box<Sleep>>>;

impl Driver {
    /// Drives the run until nothing is left to wait for, or patience is over. The script is gone then, children
    /// may not be.
    async fn drive(&mut self, guest: Guest, canceller: &Canceller) {
        let run = self.shared.clone();
        let mut guest = Some(guest);
        let mut slot: Option<Slot> = None;
        // When patience ends, once the run is ending.
        let mut force: Deadline = None;
        let mut overtime: Deadline = self.limits.max_duration_ms.map(|ms| after(Duration::from_millis(ms)));
        let mut cancelled = pin!(canceller.cancelled());
        let activity = self.activity.clone();
        let mut collected = Box::pin(activity.collected());

        if canceller.is_cancelled() {
            // Cancelled before the first instruction: the script does not run at all.
            guest = None;
            let reason = canceller.reason();
            run.books().cancel(reason);
            run.books().script_ended(ScriptEnd::stopped(ErrorCode::Cancelled.error(reason)));
        }
        loop {
            self.carry_out();
            if run.books().is_done() {
                return;
            }
            if slot.is_none() && run.books().wants_slot() {
                slot = Some(self.next_slot());
            }
            let may_wait = slot.is_none();
            tokio::select! {
                biased;
                permit = wait(&mut slot) => {
                    slot = None;
                    self.start_child(permit);
                }
                () = &mut cancelled, if force.is_none() => {
                    run.books().cancel(canceller.reason());
                    run.stopped.cancel();
                    force = Some(after(self.limits.grace()));
                }
                Some(workflow) = self.called.recv() => self.inside.push(workflow),
                Some(()) = self.inside.next(), if !self.inside.is_empty() => {}
                Some(step) = self.children.next(), if !self.children.is_empty() => self.note(step),
                report = wait(&mut guest) => {
                    guest = None;
                    slot = None;
                    if canceller.is_cancelled() {
                        // It may have noticed before this task did.
                        run.books().cancel(canceller.reason());
                    }
                    self.script_ended(report);
                    force.get_or_insert_with(|| after(self.limits.grace()));
                }
                () = &mut collected => {
                    collected.set(activity.collected());
                    self.tell_activity();
                }
                () = wait(&mut force) => return,
                () = wait(&mut overtime) => {
                    overtime = None;
                    if guest.take().is_some() {
                        let ms = self.limits.max_duration_ms.unwrap_or_default();
                        let message = format!("the run took longer than {ms} ms (maxDurationMs); do less in one run");
                        let end = ScriptEnd::stopped(ErrorCode::TimeLimit.error(message));
                        run.books().script_ended(end);
                        force.get_or_insert_with(|| after(self.limits.grace()));
                    }
                }
                // Last, since what scripts write into the books they write while they are polled, above.
                () = wanted(|| run.books().has_news(may_wait)) => {}
            }
        }
    }

    /// Something that the host gave, such as the drop of a child, panicked in the run's task.
    fn panicked(&self) {
        let error = ErrorCode::Internal.error("the task of the run panicked: a provider did");
        self.shared.books().script_ended(ScriptEnd::stopped(error));
    }

    /// Drops the children that did not stop, and closes the books.
    fn finish(mut self) -> RunResult {
        let children = std::mem::take(&mut self.children);
        self.called.close();
        let inside = std::mem::take(&mut self.inside);
        // A child that panics when it is dropped is gone all the same; the panic hook has told of it.
        let _ = catch_unwind(AssertUnwindSafe(|| drop((children, inside))));
        let mut result = self.shared.books().close();
        result.fuel_used = self.shared.pool.fuel_used();
        self.carry_out();
        result
    }

    /// Does what the books have decided.
    fn carry_out(&mut self) {
        loop {
            // The books are not held while an answer wakes its receiver.
            let Some(effect) = self.shared.books().next_effect() else { return };
            match effect {
                Effect::Emit(kind) => {
                    self.events += 1;
                    let (id, n, (began, since)) = (&self.id, self.events, self.began);
                    let passed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let at = began.saturating_add(passed);
                    self.dispatcher.dispatch(|| Event { kind, id: id.clone(), n, at });
                }
                Effect::Answer(to, answer) => answer_call(to, answer),
                Effect::StopChildren(ScopeId::ROOT) => self.stop_children.cancel(),
                Effect::StopChildren(scope) => {
                    if let Some(stop) = self.stop_nested.remove(&scope) {
                        stop.cancel();
                    }
                }
            }
        }
    }

    /// A turn for a slot. The runs of an engine take turns, since each has at most one call that waits.
    fn next_slot(&self) -> Slot {
        let slots = self.slots.clone();
        Box::pin(async move { slots.acquire_owned().await.ok() })
    }

    fn start_child(&mut self, permit: Option<OwnedSemaphorePermit>) {
        let Some(permit) = permit else { return };
        let Some((scope, request)) = self.shared.books().start_next() else { return };
        let all = &self.stop_children;
        let cancel = match scope {
            ScopeId::ROOT => all.child_token(),
            nested => self.stop_nested.entry(nested).or_insert_with(|| all.child_token()).child_token(),
        };
        self.children.push(child::start(&*self.provider, request, cancel, permit));
    }

    /// Starts what the script called just before it returned and there is room for.
    fn start_ready(&mut self) {
        while self.shared.books().wants_slot() {
            let Ok(permit) = self.slots.clone().try_acquire_owned() else { return };
            self.start_child(Some(permit));
        }
    }

    /// Tells what the children have said since it was told last.
    fn tell_activity(&self) {
        let reports = self.activity.take();
        let mut books = self.shared.books();
        reports.into_iter().for_each(|report| books.child_reported(report));
    }

    fn note(&self, step: Step) {
        // What a child said comes before its end.
        self.tell_activity();
        if let Step::Ended { seq, .. } = &step {
            self.activity.ended(*seq);
        }
        let mut books = self.shared.books();
        match step {
            Step::Started(started) => {
                books.child_started(started.seq, started.id().to_owned());
                self.children.push(started.end());
            }
            Step::StartFailed { seq, reason } => books.start_failed(seq, &reason),
            Step::Ended { seq, end, usage, left } => {
                if let Some(usage) = usage {
                    books.child_used(seq, usage);
                }
                books.child_ended(seq, end);
                if let Some(worktree) = left {
                    books.left(worktree);
                }
            }
        }
    }

    fn script_ended(&mut self, report: Result<wit::Report, WorkflowError>) {
        if report.is_ok() {
            self.start_ready();
        }
        let end = ending::read(report, &self.script, &self.limits);
        self.shared.books().script_ended(end);
    }
}

fn answer_call(to: Answerer, answer: Result<super::books::Reply, WorkflowError>) {
    // A script that is gone does not mind.
    let _ = to.send(answer);
}

/// Ready when the condition holds as this is polled.
async fn wanted(condition: impl Fn() -> bool) {
    poll_fn(|_| if condition() { Poll::Ready(()) } else { Poll::Pending }).await;
}

fn after(time: Duration) -> Pin<Box<Sleep>> {
    Box::pin(sleep(time))
}

/// Waits for a future that may not be there; without one, for ever.
async fn wait<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
