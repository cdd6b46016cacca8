//! The sandbox that Fanfold scripts run in.
//!
//! Javy's QuickJS plus the workflow hooks, as a component that imports nothing but `fanfold:workflow`. An
//! instance compiles scripts, or runs one program, once; the host throws it away afterwards, so nothing here
//! frees anything.
//!
//! # Layout
//! - `lib`: the exports of the world, and the memory image that `wizer-initialize` leaves behind
//! - `script`: source text to bytecode, bytecode to a function
//! - `hooks`: the native half of the globals; the other half is `guest-js/hooks.js`
//! - `agent`: the native half of `agent()`
//! - `timers`, `url`: the same for what the header dialect has besides, with `guest-js/header.js` and `url.js`
//! - `task`: one run from its start to its report
//! - `json`: JavaScript values as JSON; `repairs`: what was made of those that are not plain data
//! - `text`: JavaScript strings as well-formed UTF-8
//! - `memory`: an allocator for small pieces that live for one run
//! - `clock`: the time that moves with the timers alone, and seeded randomness

mod agent;
mod clock;
mod hooks;
mod json;
mod memory;
mod repairs;
mod script;
mod task;
mod text;
mod timers;
mod url;

use std::cell::OnceCell;

use javy::{Config, Runtime};

wit_bindgen::generate!({ world: "workflow", path: "../../wit" });

use agent::Agents;
use hooks::Hooks;
use memory::Memory;

#[global_allocator]
static MEMORY: Memory = Memory::new();

/// QuickJS looks for garbage once this many bytes have been allocated, and later whenever the heap has grown by
/// half.
const GC_THRESHOLD: usize = 2 << 20;

struct Sandbox {
    runtime: Runtime,
    hooks: Hooks,
    agents: Agents,
}

thread_local! {
    static SANDBOX: OnceCell<Sandbox> = const { OnceCell::new() };
}

/// Gives access to the sandbox, which the first call makes.
fn with_sandbox<R>(f: impl FnOnce(&Sandbox) -> R) -> R {
    SANDBOX.with(|cell| f(cell.get_or_init(Sandbox::new)))
}

impl Sandbox {
    fn new() -> Self {
        let mut config = Config::default();
        config.gc_threshold(GC_THRESHOLD).weak_ref(true);
        let runtime = Runtime::new(config).expect("QuickJS starts");
        let (hooks, agents) = Hooks::install(runtime.context()).expect("the hooks install");
        Self { runtime, hooks, agents }
    }
}

/// Called once when the component is built: what it makes is in the memory of every instance.
#[unsafe(export_name = "wizer-initialize")]
pub extern "C" fn initialize() {
    with_sandbox(|sandbox| sandbox.runtime.context().with(|ctx| ctx.run_gc()));
    MEMORY.begin_anew();
}

struct Component;

impl Guest for Component {
    fn compile(source: String) -> Result<Vec<u8>, SyntaxError> {
        with_sandbox(|sandbox| sandbox.runtime.context().with(|ctx| script::compile(&ctx, &source)))
    }

    async fn run(program: Vec<u8>, settings: Settings) -> Report {
        task::run(program, settings).await
    }
}

export!(Component);
