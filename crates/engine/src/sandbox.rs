//! One instance of the guest: compiling a script, running a program, and what stops it.
//!
//! Limits are enforced here, in the host: fuel over the whole run, ticks of the epoch for every stretch of
//! computation, a limiter for memory, Wasmtime's bound for the stack. A trap is the end of an instance; it
//! becomes a [`WorkflowError`] that says which limit it was.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold_types::{ErrorCode, WorkflowError};
use futures::FutureExt as _;
use tokio_util::task::AbortOnDropHandle;
use wasmtime::component::{Accessor, HasSelf, Linker};
use wasmtime::{CallHook, ResourceLimiter, Store, StoreContextMut, Trap, UpdateDeadline};

use crate::bindings::fanfold::workflow::types::{self, Failure, Report, Settings, SyntaxError};
use crate::bindings::fanfold::workflow::{agent, budget, progress, timers, workflows};
use crate::bindings::{Workflow, WorkflowPre};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::pooling::SandboxPool;
use crate::run::{Link, Reply};
use crate::ticker::{TICK, Ticker};
use crate::turns::{Turn, Turns};

/// Stack of a script's WebAssembly. Less than [`ASYNC_STACK_BYTES`], which holds the host's frames too.
pub(crate) const WASM_STACK_BYTES: usize = 4 << 20;
pub(crate) const ASYNC_STACK_BYTES: usize = 5 << 20;

/// Functions that the guest's tables may hold; it has about 4,000 and never grows them.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 10_000;

/// Where instances come from.
#[derive(Clone)]
pub(crate) struct Sandboxes {
    pre: WorkflowPre<Host>,
    sandboxes: SandboxPool,
    ticker: Ticker,
    turns: Turns,
}

impl Sandboxes {
    /// Links the component; fails on a Wasmtime engine that lacks what it needs.
    pub(crate) fn new(
        engine: &wasmtime::Engine,
        component: &wasmtime::component::Component,
        sandboxes: SandboxPool,
    ) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        Workflow::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;
        let pre = WorkflowPre::new(linker.instantiate_pre(component)?)?;
        Ok(Self { pre, sandboxes, ticker: Ticker::start(engine)?, turns: Turns::default() })
    }

    /// Compiles a script to bytecode, without running any of it.
    ///
    /// What takes longer than a tick, or has to wait, goes on in a task of its own, which ends with this future: a
    /// caller that does not poll it holds neither a turn at computing nor a sandbox that others wait for.
    ///
    /// # Errors
    /// The inner error is the script's, with places in bytes; the outer one a limit it broke.
    pub(crate) async fn compile(
        &self,
        source: &str,
        limits: &Limits,
        pool: Arc<Pool>,
    ) -> Result<Result<Vec<u8>, SyntaxError>, WorkflowError> {
        let (sandboxes, source, limits) = (self.clone(), source.to_owned(), limits.clone());
        let mut compiling = Box::pin(async move { sandboxes.compile_here(&source, &limits, pool).await });
        if let Some(compiled) = (&mut compiling).now_or_never() {
            return compiled;
        }
        AbortOnDropHandle::new(tokio::spawn(compiling)).await.unwrap_or_else(|error| {
            Err(ErrorCode::Internal.error(format!("the task that compiled the script ended: {error}")))
        })
    }

    async fn compile_here(
        &self,
        source: &str,
        limits: &Limits,
        pool: Arc<Pool>,
    ) -> Result<Result<Vec<u8>, SyntaxError>, WorkflowError> {
        let _slot = self.sandboxes.for_compiling().await;
        let _ticking = self.ticker.keep_ticking();
        let (mut store, workflow) = self.instantiate(limits, pool, None).await?;
        workflow.call_compile(&mut store, source).await.map_err(|error| explain(&error, limits))
    }

    /// Runs a program that [`Self::compile`] made. Dropping the future ends the script, wherever it is.
    pub(crate) async fn run(
        &self,
        program: Arc<[u8]>,
        settings: Settings,
        limits: &Limits,
        link: Arc<Link>,
    ) -> Result<Report, WorkflowError> {
        let _slot = tokio::select! {
            biased;
            () = link.run.stopped.cancelled() => return Err(link.run.books().stop_error()),
            slot = self.sandboxes.for_running(link.level()) => slot,
        };
        let _ticking = self.ticker.keep_ticking();
        let (mut store, workflow) = self.instantiate(limits, link.run.pool.clone(), Some(link)).await?;
        let report = store
            .run_concurrent(async |accessor| workflow.call_run(accessor, program.to_vec(), settings).await)
            .await;
        report.and_then(|report| report).map_err(|error| explain(&error, limits))
    }

    async fn instantiate(
        &self,
        limits: &Limits,
        pool: Arc<Pool>,
        link: Option<Arc<Link>>,
    ) -> Result<(Store<Host>, Workflow), WorkflowError> {
        let host = Host {
            link,
            pool,
            max_memory: limits.max_memory_bytes,
            memory: 0,
            sync_timeout: Duration::from_millis(limits.sync_timeout_ms),
            fuel_given: 0,
            fuel_noted: 0,
            computed: Duration::ZERO,
            resumed: Arc::new(Mutex::new(Instant::now())),
            turn: self.turns.join(),
            may_finish: false,
            depth: 0,
        };
        let mut store = Store::new(self.pre.engine(), host);
        store.limiter(|host| host);
        // What it may hold it may say: how much of that is too much is for the books to tell.
        store.set_hostcall_fuel(usize::try_from(limits.max_memory_bytes).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(on_tick);
        store.call_hook(on_call);
        let ready = async {
            let fuel = store.data().pool.fuel_left();
            store.set_fuel(fuel)?;
            self.pre.instantiate_async(&mut store).await
        };
        match ready.await {
            Ok(workflow) => Ok((store, workflow)),
            Err(error) => Err(explain(&error, limits)),
        }
    }
}

/// What the store of an instance carries.
pub(crate) struct Host {
    /// The run's books; none while compiling, when the guest has nobody to ask.
    link: Option<Arc<Link>>,
    /// What this sandbox shares with the others of its run.
    pool: Arc<Pool>,
    max_memory: u64,
    /// Memory that it has taken from the pool.
    memory: u64,
    sync_timeout: Duration,
    /// Fuel that it got for the current stretch of computation, and how much of it the pool knows to be used.
    fuel_given: u64,
    fuel_noted: u64,
    /// How long the current stretch of computation has computed, without its waits for the processor.
    computed: Duration,
    /// When it last got the processor.
    resumed: Arc<Mutex<Instant>>,
    turn: Turn,
    /// Whether the current stretch of computation may see one more tick although the run is cancelled.
    may_finish: bool,
    /// Calls into WebAssembly that are on the stack.
    depth: u32,
}

/// A tick found the script computing: stops it or lets others run.
fn on_tick(mut store: StoreContextMut<'_, Host>) -> wasmtime::Result<UpdateDeadline> {
    note_fuel(&mut store);
    let host = store.data_mut();
    // A slice is a tick. What is longer, the process itself has waited for a processor.
    let slice = host.resumed().elapsed().min(2 * TICK);
    host.computed += slice;
    if host.computed > host.sync_timeout {
        let ms = host.sync_timeout.as_millis();
        return Err(ErrorCode::TimeLimit
            .error(format!(
                "the script computed for {ms} ms without awaiting anything (syncTimeoutMs); look for an endless \
                 loop, or do the work in an agent"
            ))
            .into());
    }
    if host.is_cancelled() {
        if !std::mem::take(&mut host.may_finish) {
            let message = "the script went on computing after the run was cancelled";
            return Err(ErrorCode::Cancelled.error(message).into());
        }
        return Ok(UpdateDeadline::Continue(1));
    }
    let (resumed, turn, link) = (host.resumed.clone(), host.turn.clone(), host.link.clone());
    Ok(UpdateDeadline::YieldCustom(
        1,
        Box::pin(async move {
            let stopped = async {
                match &link {
                    Some(link) => link.run.stopped.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // To be stopped it need not wait for its turn.
                () = stopped => {}
                () = turn.next() => {}
            }
            *lock(&resumed) = Instant::now();
        }),
    ))
}

/// A stretch of computation begins when the host enters a guest that is not running.
fn on_call(mut store: StoreContextMut<'_, Host>, hook: CallHook) -> wasmtime::Result<()> {
    let host = store.data_mut();
    match hook {
        CallHook::CallingWasm => {
            host.depth += 1;
            if host.depth == 1 {
                host.computed = Duration::ZERO;
                // What began before the cancellation knows nothing of it; a tick is enough to handle it.
                host.may_finish = host.is_cancelled();
                *host.resumed() = Instant::now();
                (host.fuel_given, host.fuel_noted) = (host.pool.fuel_left(), 0);
                let fuel = host.fuel_given;
                store.set_fuel(fuel)?;
            }
        }
        CallHook::ReturningFromWasm => {
            host.depth = host.depth.saturating_sub(1);
            if host.depth == 0 {
                host.turn.end();
                note_fuel(&mut store);
            }
        }
        CallHook::CallingHost | CallHook::ReturningFromHost => {}
    }
    Ok(())
}

/// Writes down how much fuel the sandbox has used, so that it is known however the run ends.
fn note_fuel(store: &mut StoreContextMut<'_, Host>) {
    let Ok(left) = store.get_fuel() else { return };
    let host = store.data_mut();
    let used = host.fuel_given.saturating_sub(left);
    host.pool.use_fuel(used.saturating_sub(host.fuel_noted));
    host.fuel_noted = host.fuel_noted.max(used);
}

fn lock(resumed: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    resumed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ResourceLimiter for Host {
    fn memory_growing(&mut self, now: usize, desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        let (now, desired) = (now as u64, desired as u64);
        // An empty sandbox is hardly more than a promise of memory: those that compile or run inside of a run have
        // it for nothing.
        let is_given = now == 0 && desired <= self.max_memory && !self.is_of_the_runs_script();
        let more = desired.saturating_sub(now);
        if is_given {
            return Ok(true);
        }
        if self.pool.take_memory(more) {
            self.memory += more;
            return Ok(true);
        }
        // Not `Ok(false)`: QuickJS would throw `null`, and the script could catch it.
        Err(ErrorCode::MemoryLimit
            .error(format!(
                "the script needs more than {} of memory, {} bytes (maxMemoryBytes); keep less of what agents \
                 answer, or work in smaller batches",
                mebibytes(self.max_memory),
                self.max_memory
            ))
            .into())
    }

    fn table_growing(&mut self, _now: usize, desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS)
    }
}

/// An amount of memory as people say it: to a tenth of a MiB.
fn mebibytes(bytes: u64) -> String {
    let tenths = bytes / ((1 << 20) / 10);
    match tenths % 10 {
        0 => format!("{} MiB", tenths / 10),
        tenth => format!("{}.{tenth} MiB", tenths / 10),
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.pool.give_memory_back(self.memory);
    }
}

/// Why an instance ended before its script did.
fn explain(error: &wasmtime::Error, limits: &Limits) -> WorkflowError {
    if let Some(error) = error.downcast_ref::<WorkflowError>() {
        return error.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => ErrorCode::CpuLimit.error(format!(
            "the script computed more than {} units of fuel over the whole run (maxFuel); do heavy work in an agent",
            limits.max_fuel
        )),
        // The guest keeps C's and Rust's stack at the bottom of its memory: what grows beyond leaves it.
        Some(Trap::StackOverflow | Trap::MemoryOutOfBounds) => ErrorCode::StackLimit.error(
            "the script recursed too deeply: look for a recursion without end, or use a loop and a list",
        ),
        Some(Trap::AsyncDeadlock) => {
            ErrorCode::Deadlock.error("the script awaits something that nothing in flight can settle")
        }
        _ => ErrorCode::Internal.error(format!("the sandbox failed: {error:#}")),
    }
}

// ── What the guest imports ──────────────────────────────────────────────────────────────────────────────────

impl types::Host for Host {}

impl agent::Host for Host {}

impl progress::Host for Host {
    fn phase(&mut self, title: String) -> wasmtime::Result<Result<(), Failure>> {
        Ok(self.link()?.phase(&title).map_err(Failure::from))
    }

    fn log(&mut self, message: String) -> wasmtime::Result<Result<(), Failure>> {
        Ok(self.link()?.log(message).map_err(Failure::from))
    }
}

impl<T: Send> agent::HostWithStore<T> for HasSelf<Host> {
    async fn run(
        accessor: &Accessor<T, Self>,
        request: agent::Request,
    ) -> wasmtime::Result<Result<agent::Reply, Failure>> {
        let link = accessor.with(|mut access| access.get().link())?;
        let agent::Request { prompt, options } = request;
        Ok(link.agent(prompt, &options).await.map(agent::Reply::from).map_err(Failure::from))
    }
}

impl<T: Send> workflows::HostWithStore<T> for HasSelf<Host> {
    async fn run(
        accessor: &Accessor<T, Self>,
        request: workflows::Request,
    ) -> wasmtime::Result<Result<String, Failure>> {
        let link = accessor.with(|mut access| access.get().link())?;
        Ok(link.workflow(&request.target, request.args).await.map_err(Failure::from))
    }
}

impl workflows::Host for Host {}

impl budget::Host for Host {
    fn spent(&mut self) -> wasmtime::Result<u64> {
        Ok(self.link()?.spent())
    }
}

impl timers::Host for Host {
    fn set(&mut self, delay_ms: u32) -> wasmtime::Result<Result<u32, Failure>> {
        match self.link()?.set_timer(delay_ms) {
            Some(set) => Ok(set.map_err(Failure::from)),
            None => Err(wasmtime::Error::msg("the guest set a timer for a script that has none")),
        }
    }

    fn clear(&mut self, timer: u32) -> wasmtime::Result<()> {
        self.link()?.clear_timer(timer);
        Ok(())
    }
}

impl<T: Send> timers::HostWithStore<T> for HasSelf<Host> {
    async fn next(accessor: &Accessor<T, Self>) -> wasmtime::Result<Result<timers::Fired, Failure>> {
        let link = accessor.with(|mut access| access.get().link())?;
        let fired = link.next_timer().await;
        Ok(fired.map(|(timer, now_ms)| timers::Fired { timer, now_ms }).map_err(Failure::from))
    }
}

impl Host {
    /// Whether the run's own script runs in this sandbox. One that compiles has no link.
    fn is_of_the_runs_script(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_root())
    }

    fn is_cancelled(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.run.canceller.is_cancelled())
    }

    fn resumed(&self) -> MutexGuard<'_, Instant> {
        lock(&self.resumed)
    }

    fn link(&self) -> wasmtime::Result<Arc<Link>> {
        self.link.clone().ok_or_else(|| wasmtime::Error::msg("the guest called the host while compiling"))
    }
}

impl From<WorkflowError> for Failure {
    fn from(error: WorkflowError) -> Self {
        let code = error.code.map(|code| code.to_string());
        Self { code, message: error.message, stack: String::new(), path: error.path }
    }
}

impl From<Reply> for agent::Reply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::None => Self::None,
            Reply::Text(text) => Self::Text(text),
            Reply::Json(json) => Self::Json(json),
        }
    }
}
