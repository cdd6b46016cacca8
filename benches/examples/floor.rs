//! The floor for `cargo xtask bench --peers`: Fanfold's sandbox on Wasmtime alone.
//!
//!     floor CACHE-DIRECTORY SANDBOXES [limits]
//!
//! Sandboxes come from a pool of that many, or from none for 0. With `limits` scripts count fuel and look at epochs, and
//! are never stopped: what that costs by itself.
//!
//! It is the same component, and calls are answered as soon as they have been made. There is no fuel, no epoch, no
//! limit, no books and no event: what a run costs when nobody keeps it in check. Fanfold cannot be faster than this;
//! what it takes besides is what its promises cost.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use anyhow::{Context as _, Result, anyhow, ensure};
use peer_protocol::{Contender, Hello, serve};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use wasmtime::component::{Accessor, Component, HasSelf, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use bindings::fanfold::workflow::agent::{Reply, Request};
use bindings::fanfold::workflow::types::Failure;
use bindings::fanfold::workflow::{agent, budget, progress, timers, types, workflows};
use bindings::{Settings, Workflow, WorkflowPre};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "workflow",
        exports: { default: async },
    });
}

/// What a store carries: a permit for each agent that hangs.
struct Host(Arc<Semaphore>);

impl types::Host for Host {}

impl agent::Host for Host {}

impl<T: Send> agent::HostWithStore<T> for HasSelf<Host> {
    async fn run(host: &Accessor<T, Self>, request: Request) -> Result<Reply, Failure> {
        if request.prompt == "hang" {
            host.with(|mut access| access.get().0.add_permits(1));
            std::future::pending::<()>().await;
        }
        // No agent has its answer ready when it is asked.
        let mut asked = false;
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut asked, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        Ok(Reply::Text(request.prompt))
    }
}

impl workflows::Host for Host {}

impl<T: Send> workflows::HostWithStore<T> for HasSelf<Host> {
    async fn run(_host: &Accessor<T, Self>, _request: workflows::Request) -> Result<String, Failure> {
        Err(refusal())
    }
}

impl budget::Host for Host {
    fn spent(&mut self) -> u64 {
        0
    }
}

impl timers::Host for Host {
    fn set(&mut self, _delay_ms: u32) -> Result<u32, Failure> {
        Err(refusal())
    }

    fn clear(&mut self, _timer: u32) {}
}

impl<T: Send> timers::HostWithStore<T> for HasSelf<Host> {
    async fn next(_host: &Accessor<T, Self>) -> Result<timers::Fired, Failure> {
        Err(refusal())
    }
}

impl progress::Host for Host {
    fn phase(&mut self, _title: String) -> Result<(), Failure> {
        Ok(())
    }

    fn log(&mut self, _message: String) -> Result<(), Failure> {
        Ok(())
    }
}

fn refusal() -> Failure {
    Failure { code: None, message: "not measured".into(), stack: String::new(), path: None }
}

#[derive(Clone)]
struct Floor {
    sandbox: WorkflowPre<Host>,
    programs: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    asked: Arc<Semaphore>,
    limits: bool,
}

impl Floor {
    fn make(cache: PathBuf, sandboxes: u32, limits: bool) -> wasmtime::Result<Self> {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(sandboxes)
            .total_core_instances(4 * sandboxes)
            .total_memories(sandboxes)
            .total_tables(4 * sandboxes)
            .total_stacks(sandboxes)
            .max_component_instance_size(256 << 10)
            .max_core_instance_size(256 << 10)
            .table_elements(10_000)
            .max_memory_size(64 << 20)
            .linear_memory_keep_resident(1 << 20)
            .table_keep_resident(80_000)
            .async_stack_keep_resident(64 << 10)
            .pagemap_scan(wasmtime::Enabled::Auto);
        let mut config = Config::new();
        config
            .wasm_component_model_async(true)
            .consume_fuel(limits)
            .epoch_interruption(limits)
            .max_wasm_stack(4 << 20)
            .async_stack_size(5 << 20)
            .generate_address_map(false)
            .native_unwind_info(false)
            .wasm_backtrace_max_frames(None);
        if sandboxes > 0 {
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        }
        let engine = Engine::new(&config)?;
        let mut hasher = DefaultHasher::new();
        (fanfold::COMPONENT, sandboxes > 0, limits).hash(&mut hasher);
        let kept = cache.join(format!("floor-{:016x}.cwasm", hasher.finish()));
        // SAFETY: the folder is this benchmark's own.
        let component = match unsafe { Component::deserialize_file(&engine, &kept) } {
            Ok(component) => component,
            Err(_) => {
                let component = Component::new(&engine, fanfold::COMPONENT)?;
                std::fs::create_dir_all(&cache)?;
                std::fs::write(&kept, component.serialize()?)?;
                component
            }
        };
        let mut linker = Linker::new(&engine);
        Workflow::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;
        let sandbox = WorkflowPre::new(linker.instantiate_pre(&component)?)?;
        Ok(Self { sandbox, programs: Arc::default(), asked: Arc::new(Semaphore::new(0)), limits })
    }

    async fn instantiate(&self) -> wasmtime::Result<(Store<Host>, Workflow)> {
        let mut store = Store::new(self.sandbox.engine(), Host(self.asked.clone()));
        store.set_hostcall_fuel(usize::MAX);
        if self.limits {
            store.set_fuel(u64::MAX)?;
            store.set_epoch_deadline(u64::MAX / 2);
        }
        let workflow = self.sandbox.instantiate_async(&mut store).await?;
        Ok((store, workflow))
    }

    async fn evaluate(&self, script: &str) -> wasmtime::Result<String> {
        let known = self.programs.lock().unwrap_or_else(PoisonError::into_inner).get(script).cloned();
        let program = match known {
            Some(program) => program,
            None => {
                let (mut store, workflow) = self.instantiate().await?;
                let program = workflow.call_compile(&mut store, script).await?;
                let program = program.map_err(|error| wasmtime::Error::msg(error.message))?;
                let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
                programs.insert(script.to_owned(), program.clone());
                program
            }
        };
        let (mut store, workflow) = self.instantiate().await?;
        let settings = Settings {
            args: None,
            dialect: types::Dialect::Body,
            start_time_ms: 0,
            seed: 0,
            max_items_per_call: 4096,
            budget_total: None,
        };
        let run = store.run_concurrent(async |accessor| workflow.call_run(accessor, program, settings).await);
        run.await??.outcome.map_err(|failure| wasmtime::Error::msg(failure.message))
    }
}

impl Contender for Floor {
    type Parked = JoinHandle<wasmtime::Result<String>>;

    async fn run(&self, script: String) -> Result<String> {
        let floor = self.clone();
        // A task of its own, as everywhere.
        let run = tokio::spawn(async move { floor.evaluate(&script).await });
        run.await?.map_err(|error| anyhow!("{error:?}"))
    }

    async fn park(&self, script: String) -> Result<Self::Parked> {
        let floor = self.clone();
        let run = tokio::spawn(async move { floor.evaluate(&script).await });
        self.asked.acquire().await?.forget();
        Ok(run)
    }

    async fn cancel(&self, parked: Self::Parked) -> Result<()> {
        parked.abort();
        let ended = parked.await;
        ensure!(ended.is_err_and(|error| error.is_cancelled()), "it was not cancelled");
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().context("usage: floor CACHE-DIRECTORY SANDBOXES [limits]");
    let (cache, sandboxes) = (next()?, next()?.parse()?);
    let limits = next().is_ok_and(|word| word == "limits");
    let floor = Floor::make(cache.into(), sandboxes, limits).map_err(|error| anyhow!("{error:?}"))?;
    let hello = Hello { name: "the sandbox alone".into(), version: env!("CARGO_PKG_VERSION").into() };
    tokio::spawn(serve(hello, floor)).await?
}
