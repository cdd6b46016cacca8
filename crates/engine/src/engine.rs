//! The engine: one sandbox, its providers and its limits, shared by all runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fanfold_types::{ErrorCode, WorkflowError};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;
use wasmtime::component::Component;

use crate::limits::Limits;
use crate::request::StartRequest;
use crate::run::{self, Plan, Run};
use crate::sandbox::{ASYNC_STACK_BYTES, Sandboxes, WASM_STACK_BYTES};
use crate::script::Script;
use crate::subagents::Subagents;
use crate::{COMPONENT, json};

/// The provider that runs `agent()` unless a request names another.
const DEFAULT_PROVIDER: &str = "spawn";

/// Runs workflow scripts. Cheap to clone; when the last clone is dropped, its runs are cancelled.
///
/// Making one compiles the sandbox, which takes a second unless a cache directory is set: make one for the whole
/// process.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    /// Fires [`Shared::shutdown`] with the last clone. Runs hold `shared` alone.
    _guard: Arc<DropGuard>,
}

struct Shared {
    sandboxes: Sandboxes,
    limits: Limits,
    providers: BTreeMap<String, Arc<dyn Subagents>>,
    slots: Arc<Semaphore>,
    clock: Clock,
    shutdown: CancellationToken,
}

/// Milliseconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

impl Engine {
    /// Configures an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The limits that runs have.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Checks and compiles a script, and starts it.
    ///
    /// Must be called within a Tokio runtime, which then drives the run.
    ///
    /// # Errors
    /// When nothing was started: `SCRIPT_PARSE` with line and column, `META_INVALID` with every violation,
    /// `INVALID_ARGUMENT` for args, provider or cap, `OUTPUT_LIMIT` for a script or args that are too large.
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
        let name = request.provider.as_deref().unwrap_or(DEFAULT_PROVIDER);
        let provider = shared.providers.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = shared.providers.keys().map(String::as_str).collect();
            let message = format!("there is no provider {name:?} (registered: {})", known.join(", "));
            ErrorCode::InvalidArgument.error(message).on("provider")
        })?;
        let args = request.args.map(|args| read_args(args, &limits)).transpose()?;
        let (script, program) = self.compile(&request.script, request.meta, &limits).await?;
        let seed = request.seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().1);
        let mut cancelled_by = vec![(shared.shutdown.clone(), "the engine was shut down")];
        cancelled_by.extend(request.cancel.map(|token| (token, "cancelled by the caller")));
        Ok(run::spawn(Plan {
            id: Uuid::new_v4().to_string().into(),
            meta: Arc::new(script.meta.clone()),
            script: Arc::new(script),
            program,
            args,
            seed,
            limits,
            provider,
            observers: request.observers,
            sandboxes: shared.sandboxes.clone(),
            slots: shared.slots.clone(),
            clock: shared.clock.clone(),
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
        self.compile(script, meta, &self.shared.limits).await.map(|(script, _)| script)
    }

    async fn compile(
        &self,
        text: &str,
        meta: Option<fanfold_types::Meta>,
        limits: &Limits,
    ) -> Result<(Script, Arc<[u8]>), WorkflowError> {
        let (size, most) = (text.len() as u64, limits.max_script_bytes);
        if size > most {
            let message = format!("the script has {size} bytes, more than {most} (maxScriptBytes)");
            return Err(ErrorCode::OutputLimit.error(message).on("script"));
        }
        let script = Script::read(text, meta)?;
        match self.shared.sandboxes.compile(&script.body, limits).await? {
            Ok(program) => Ok((script, program.into())),
            Err(error) => Err(script.syntax_error(&error.message, error.line)),
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
        let message = format!("args have {size} bytes, more than {most} (maxArgsBytes)");
        return Err(ErrorCode::OutputLimit.error(message).on("args"));
    }
    json::read("args", args).map(|args| Box::<str>::from(args).into())
}

/// Configures an [`Engine`].
#[derive(Default)]
#[must_use]
pub struct EngineBuilder {
    limits: Limits,
    providers: BTreeMap<String, Arc<dyn Subagents>>,
    cache_directory: Option<PathBuf>,
    wasmtime: Option<wasmtime::Engine>,
    clock: Option<Clock>,
}

impl EngineBuilder {
    /// Registers who runs `agent()`. A request that names no provider gets the one called `spawn`.
    pub fn provider(mut self, name: impl Into<String>, provider: impl Subagents) -> Self {
        self.providers.insert(name.into(), Arc::new(provider));
        self
    }

    /// What scripts may use. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the compiled sandbox is kept between processes, which makes every start but the first one fast.
    /// Must be writable by trusted users alone: what is in there is machine code. Default: nowhere.
    pub fn cache_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.cache_directory = Some(path.into());
        self
    }

    /// Runs scripts on a Wasmtime engine that the host has already. It must have been made with what
    /// [`configure`] sets. Something must advance its epoch: this engine does while runs are live, which ends
    /// other instances' epoch deadlines too.
    pub fn wasmtime(mut self, engine: wasmtime::Engine) -> Self {
        self.wasmtime = Some(engine);
        self
    }

    /// Where event times and the scripts' `Date` come from, in milliseconds since 1970. Default: the system.
    pub fn clock(mut self, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(now_ms));
        self
    }

    /// Makes the engine. Compiles the sandbox, unless that is cached: call it off the async threads.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for limits that let nothing through, `INTERNAL` when Wasmtime refuses.
    pub fn build(self) -> Result<Engine, WorkflowError> {
        self.limits.validate()?;
        let refused = |error: wasmtime::Error| {
            ErrorCode::Internal.error(format!("failed to make the sandbox: {error:#}"))
        };
        let engine = match self.wasmtime {
            Some(engine) => engine,
            None => {
                let mut config = wasmtime::Config::new();
                configure(&mut config);
                if let Some(directory) = self.cache_directory {
                    let mut cache = wasmtime::CacheConfig::new();
                    cache.with_directory(directory);
                    config.cache(Some(wasmtime::Cache::new(cache).map_err(refused)?));
                }
                wasmtime::Engine::new(&config).map_err(refused)?
            }
        };
        let component = Component::new(&engine, COMPONENT).map_err(refused)?;
        let shutdown = CancellationToken::new();
        let shared = Shared {
            sandboxes: Sandboxes::new(&engine, &component).map_err(refused)?,
            slots: Arc::new(Semaphore::new(self.limits.concurrent_agents())),
            limits: self.limits,
            providers: self.providers,
            clock: self.clock.unwrap_or_else(|| Arc::new(system_clock)),
            shutdown: shutdown.clone(),
        };
        Ok(Engine { shared: Arc::new(shared), _guard: Arc::new(shutdown.drop_guard()) })
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

fn system_clock() -> u64 {
    // A clock before 1970 is as good as one at 1970.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}
