//! The engine: one sandbox, its providers and its limits, shared by all runs.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fanfold_types::{ErrorCode, WorkflowError};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;
use wasmtime::component::Component;

use crate::agent_types::AgentTypes;
use crate::guests::{Guests, Program};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::pooling::{self, SandboxPool};
use crate::programs::Programs;
use crate::request::StartRequest;
use crate::run::{self, Plan, Run};
use crate::sandbox::{ASYNC_STACK_BYTES, Sandboxes, WASM_STACK_BYTES};
use crate::script::Script;
use crate::subagents::Subagents;
use crate::workflows::Workflows;
use crate::{COMPONENT, json, kept};

/// The provider that runs `agent()` unless a request names another.
const DEFAULT_PROVIDER: &str = "spawn";

/// Runs workflow scripts. Cheap to clone; when the last clone is dropped, its runs are cancelled.
///
/// Making one compiles the sandbox, which takes a second unless a cache directory is set: make one for the whole
/// process.
#[derive(Clone)]
pub struct Engine {
    /// Held by the clones alone, not by runs.
    shared: Arc<Shared>,
}

/// Tells milliseconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

struct Shared {
    sandboxes: Sandboxes,
    programs: Arc<Programs>,
    limits: Limits,
    providers: BTreeMap<String, Arc<dyn Subagents>>,
    agent_types: Option<Arc<dyn AgentTypes>>,
    slots: Arc<Semaphore>,
    clock: Clock,
    workflows: Option<Arc<dyn Workflows>>,
    default_provider: String,
    /// Why a file of the cache directory was not used.
    cache_warning: Option<String>,
    shutdown: DropGuard,
}

impl Engine {
    /// Configures an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The limits that runs have.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Why the compiled sandbox in the cache directory was not used, if one was there: it is damaged, belongs to
    /// another user, or other users can write to it. The engine has compiled the sandbox itself then.
    pub fn cache_warning(&self) -> Option<&str> {
        self.shared.cache_warning.as_deref()
    }

    /// Checks and compiles a script, and starts it.
    ///
    /// The Tokio runtime that this is awaited on drives the run.
    ///
    /// # Errors
    /// When nothing was started: `SCRIPT_PARSE` with line and column, `META_INVALID` with every violation,
    /// `INVALID_ARGUMENT` for args (also those that are not what `meta.args` asks for), provider or cap, `OUTPUT_LIMIT` for a script or args that are too large; a limit
    /// that the script breaks while it is parsed; `CANCELLED` if the request's token fires meanwhile.
    ///
    /// # Panics
    /// Outside a Tokio runtime, or within one that was built without time.
    pub async fn start(&self, request: StartRequest) -> Result<Run, WorkflowError> {
        let shared = &self.shared;
        let mut limits = shared.limits.clone();
        if let Some(cap) = request.max_total_agents {
            let most = limits.max_total_agents;
            if cap == 0 || cap > most {
                let message = format!("maxTotalAgents must be from 1 to the engine's {most}, got {cap}");
                return Err(ErrorCode::InvalidArgument.error(message).on("maxTotalAgents"));
            }
            limits.max_total_agents = cap;
        }
        if let Some(budget) = request.max_output_tokens {
            let most = limits.max_output_tokens.unwrap_or(u64::MAX);
            if budget == 0 || budget > most {
                let message = format!("maxOutputTokens must be from 1 to the engine's {most}, got {budget}");
                return Err(ErrorCode::InvalidArgument.error(message).on("maxOutputTokens"));
            }
            limits.max_output_tokens = Some(budget);
        }
        let name = request.provider.as_deref().unwrap_or(&shared.default_provider);
        let provider = shared.providers.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = shared.providers.keys().map(String::as_str).collect();
            let message = format!("there is no provider {name:?} (registered: {})", known.join(", "));
            ErrorCode::InvalidArgument.error(message).on("provider")
        })?;
        let args = request.args.map(|args| read_args(args, &limits)).transpose()?;
        let guests = self.guests(limits.clone());
        let pool = Arc::new(Pool::new(&limits));
        let compiling = guests.compile(&request.script, request.meta, pool);
        let (script, program) = match &request.cancel {
            // A token that has fired already lets the run start, and end without an instruction.
            Some(token) if !token.is_cancelled() => tokio::select! {
                compiled = compiling => compiled?,
                () = token.cancelled() => return Err(ErrorCode::Cancelled.error("cancelled before the start")),
            },
            _ => compiling.await?,
        };
        script.check_args(args.as_deref()).await?;
        // 53 bits, so that a seed survives JSON.
        let seed = request.seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().1 >> 11);
        // If both have been cancelled meanwhile, it was the caller.
        let mut cancelled_by = Vec::from_iter(request.cancel.map(|token| (token, "cancelled by the caller")));
        cancelled_by.push((shared.shutdown.token().clone(), "the engine was shut down"));
        // The clock is the host's; without a time a run is still a run.
        let now_ms = catch_unwind(AssertUnwindSafe(|| (shared.clock)())).unwrap_or_default();
        Ok(run::spawn(Plan {
            id: Uuid::new_v4().to_string().into(),
            parent: request.parent.map(Arc::from),
            script,
            guest: guests.make(program),
            nursery: Arc::new(guests),
            args,
            seed,
            start_time_ms: request.start_time_ms.unwrap_or(now_ms),
            limits,
            provider,
            agent_types: shared.agent_types.clone(),
            observers: request.observers,
            slots: shared.slots.clone(),
            now_ms,
            cancelled_by,
        }))
    }

    /// Checks a script without running any of it, as [`Engine::start`] would, and returns what its text says.
    ///
    /// # Errors
    /// As [`Engine::start`], for the script and its metadata.
    pub async fn check(
        &self,
        script: &str,
        meta: Option<fanfold_types::Meta>,
    ) -> Result<Script, WorkflowError> {
        let limits = self.shared.limits.clone();
        let pool = Arc::new(Pool::new(&limits));
        let compiled: (Script, Program) = self.guests(limits).compile(script, meta, pool).await?;
        Ok(compiled.0)
    }

    fn guests(&self, limits: Limits) -> Guests {
        let Shared { sandboxes, programs, workflows, .. } = &*self.shared;
        Guests {
            sandboxes: sandboxes.clone(),
            programs: programs.clone(),
            limits,
            workflows: workflows.clone(),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { limits, providers, .. } = &*self.shared;
        let providers: Vec<&String> = providers.keys().collect();
        f.debug_struct("Engine")
            .field("limits", limits)
            .field("providers", &providers)
            .finish_non_exhaustive()
    }
}

fn read_args(args: String, limits: &Limits) -> Result<String, WorkflowError> {
    let (size, most) = (args.len() as u64, limits.max_args_bytes);
    if size > most {
        let message = format!(
            "args have {size} bytes, more than {most} (maxArgsBytes); pass less, or where to find it"
        );
        return Err(ErrorCode::OutputLimit.error(message).on("args"));
    }
    json::read_args(args).map(|args| Box::<str>::from(args).into())
}

/// Configures an [`Engine`].
#[derive(Default)]
#[must_use]
pub struct EngineBuilder {
    limits: Limits,
    providers: BTreeMap<String, Arc<dyn Subagents>>,
    agent_types: Option<Arc<dyn AgentTypes>>,
    cache_directory: Option<PathBuf>,
    pool: Option<u32>,
    wasmtime: Option<wasmtime::Engine>,
    default_provider: Option<String>,
    workflows: Option<Arc<dyn Workflows>>,
    clock: Option<Clock>,
}

impl EngineBuilder {
    /// Registers who runs `agent()`, in place of whoever had the name before.
    pub fn provider(mut self, name: impl Into<String>, provider: impl Subagents) -> Self {
        self.providers.insert(name.into(), Arc::new(provider));
        self
    }

    /// Says which kinds of agents the option `agentType` names. A call that names another is `AGENT_START`, unless
    /// its provider knows kinds of its own ([`Support::agent_type`](crate::Support::agent_type)). By default there
    /// are none, and a provider that knows none ignores the option with a warning.
    pub fn agent_types(mut self, types: impl AgentTypes) -> Self {
        self.agent_types = Some(Arc::new(types));
        self
    }

    /// The provider of requests that name none. Default `spawn`.
    pub fn default_provider(mut self, name: impl Into<String>) -> Self {
        self.default_provider = Some(name.into());
        self
    }

    /// Where the scripts come from that a script runs with `workflow("name")` or `workflow({scriptPath})`. Default:
    /// nowhere, and such calls are refused.
    pub fn workflows(mut self, workflows: impl Workflows) -> Self {
        self.workflows = Some(Arc::new(workflows));
        self
    }

    /// What scripts may use. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the compiled sandbox is kept between processes, which makes every start but the first one fast.
    /// Must be writable by trusted users alone: what is in there is machine code. A file that is damaged, belongs to
    /// another user, or can be written by others is made anew ([`Engine::cache_warning`]). What cannot be written there
    /// is compiled at every start. Files of earlier versions, 5 MiB each, stay until somebody removes them. Also for an
    /// engine of the host's own ([`Self::wasmtime`]). Default: nowhere.
    pub fn cache_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.cache_directory = Some(path.into());
        self
    }

    /// Takes sandboxes from a pool of this many, which makes short runs several times faster. While all of them are
    /// in use, runs that were started wait for one, in order, with no event but their first. Default: no pool, and
    /// no bound.
    ///
    /// Workflows that run inside of others have as many more for each of the two levels below. A sandbox of the pool
    /// takes 4 GiB of address space, used or not: on 64-bit systems some 20,000 fit, so that 6,000 can be asked for.
    /// After its first run it keeps up to a MiB of memory. Has no effect on an engine of the host's own ([`Self::wasmtime`]),
    /// which has its own allocator.
    pub fn pool(mut self, sandboxes: u32) -> Self {
        self.pool = Some(sandboxes);
        self
    }

    /// Runs scripts on a Wasmtime engine that the host has already. It must have been made with what
    /// [`configure`] sets; [`Self::build`] checks that. While runs are live its epoch is advanced every 5 ms, which
    /// other instances with epoch deadlines see too.
    pub fn wasmtime(mut self, engine: wasmtime::Engine) -> Self {
        self.wasmtime = Some(engine);
        self
    }

    /// Tells when a run begins, in milliseconds since 1970: event times and the script's `Date` begin there, and go on
    /// with time that never goes back, whatever becomes of this clock. Default: the system's.
    pub fn clock(mut self, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(now_ms));
        self
    }

    /// Makes the engine. Compiles the sandbox, unless that is cached: call it off the async threads.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for limits that let nothing through and for a pool that is empty or that the system has no
    /// room for, `INTERNAL` when Wasmtime refuses.
    pub fn build(self) -> Result<Engine, WorkflowError> {
        self.limits.validate()?;
        let refused = |error: wasmtime::Error| {
            ErrorCode::Internal.error(format!("failed to make the sandbox: {error:#}"))
        };
        let mut pool = SandboxPool::default();
        let engine = match self.wasmtime {
            Some(engine) => {
                check_limits(&engine).map_err(refused)?;
                engine
            }
            None => {
                let mut config = wasmtime::Config::new();
                configure(&mut config);
                // What nothing here reads, and every start would have to load: half of what is compiled.
                config.generate_address_map(false).native_unwind_info(false).wasm_backtrace_max_frames(None);
                if let Some(slots) = self.pool {
                    check_pool(slots)?;
                    pooling::configure(&mut config, slots, self.limits.max_memory_bytes);
                    pool = SandboxPool::new(slots);
                }
                wasmtime::Engine::new(&config).map_err(|error| match self.pool {
                    Some(slots) => no_room(slots, &error),
                    None => refused(error),
                })?
            }
        };
        let component = match &self.cache_directory {
            Some(folder) => kept::component(&engine, COMPONENT, folder),
            None => Component::new(&engine, COMPONENT).map(|component| (component, None)),
        };
        let (component, cache_warning) = component.map_err(refused)?;
        let shared = Shared {
            sandboxes: Sandboxes::new(&engine, &component, pool).map_err(refused)?,
            programs: Arc::default(),
            slots: Arc::new(Semaphore::new(self.limits.concurrent_agents())),
            limits: self.limits,
            providers: self.providers,
            agent_types: self.agent_types,
            workflows: self.workflows,
            clock: self.clock.unwrap_or_else(|| Arc::new(system_clock)),
            cache_warning,
            default_provider: self.default_provider.unwrap_or_else(|| DEFAULT_PROVIDER.to_owned()),
            shutdown: CancellationToken::new().drop_guard(),
        };
        Ok(Engine { shared: Arc::new(shared) })
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Sets what the sandbox needs of a Wasmtime configuration: component-model async, fuel, epochs, and room on
/// the stack for 5,000 frames of a script. For hosts that hand their own engine to [`EngineBuilder::wasmtime`].
pub fn configure(config: &mut wasmtime::Config) {
    config
        .wasm_component_model_async(true)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(ASYNC_STACK_BYTES);
}

/// Checks that an engine interrupts a script that never ends, by fuel and by epoch.
fn check_limits(engine: &wasmtime::Engine) -> wasmtime::Result<()> {
    // (module (func (export "f") (loop (br 0))))
    const LOOP: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x05\x01\x01f\0\0\x0a\x09\x01\x07\0\x03\x40\x0c\0\x0b\x0b";
    let mut store = wasmtime::Store::new(engine, ());
    let made = wasmtime::Error::msg("the Wasmtime engine was not made with what fanfold::configure sets");
    if store.set_fuel(100_000).is_err() {
        return Err(made);
    }
    store.set_epoch_deadline(0);
    let module = wasmtime::Module::new(engine, LOOP)?;
    let instance = wasmtime::Instance::new(&mut store, &module, &[])?;
    let ended = instance.get_typed_func::<(), ()>(&mut store, "f")?.call(&mut store, ());
    match ended.map_err(|error| error.downcast::<wasmtime::Trap>()) {
        Err(Ok(wasmtime::Trap::Interrupt)) => Ok(()),
        _ => Err(made),
    }
}

fn check_pool(slots: u32) -> Result<(), WorkflowError> {
    if slots == 0 {
        return Err(ErrorCode::InvalidArgument.error("the pool must have at least one sandbox").on("pool"));
    }
    Ok(())
}

/// Making the engine is the probe: it maps all of the pool at once.
fn no_room(slots: u32, error: &wasmtime::Error) -> WorkflowError {
    let message = format!("the system has no room for a pool of {slots} sandboxes; use fewer: {error:#}");
    ErrorCode::InvalidArgument.error(message).on("pool")
}

fn system_clock() -> u64 {
    // A clock before 1970 is as good as one at 1970.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}
