//! Runs a workflow script with Wasmtime alone: no Fanfold crate, only the component and its WIT world.
//!
//!     cargo run -- 'return await parallel([() => agent("fan"), () => agent("fold")])'
//!
//! This host answers every prompt in capitals. It keeps no books: no caps, no queue, no time limit. See
//! `crates/engine` for what a real host does.

use wasmtime::component::{Accessor, Component, HasSelf, Linker};
use wasmtime::{Config, Engine, Result, Store};

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "workflow",
    exports: { default: async },
});

use fanfold::workflow::agent::{Reply, Request};
use fanfold::workflow::types::Failure;
use fanfold::workflow::{agent, budget, progress, timers, types, workflows};

struct Host;

impl types::Host for Host {}

impl agent::Host for Host {}

impl<T: Send> agent::HostWithStore<T> for HasSelf<Host> {
    async fn run(_host: &Accessor<T, Self>, request: Request) -> Result<Reply, Failure> {
        Ok(Reply::Text(request.prompt.to_uppercase()))
    }
}

impl workflows::Host for Host {}

impl<T: Send> workflows::HostWithStore<T> for HasSelf<Host> {
    async fn run(_host: &Accessor<T, Self>, _request: workflows::Request) -> Result<String, Failure> {
        Err(refusal("this host runs no workflows inside of others"))
    }
}

impl budget::Host for Host {
    fn spent(&mut self) -> u64 {
        0
    }
}

/// Scripts of the dialect `body` have no timers; a host that runs others keeps them here.
impl timers::Host for Host {
    fn set(&mut self, _delay_ms: u32) -> Result<u32, Failure> {
        Err(refusal("this host keeps no timers"))
    }

    fn clear(&mut self, _timer: u32) {}
}

impl<T: Send> timers::HostWithStore<T> for HasSelf<Host> {
    async fn next(_host: &Accessor<T, Self>) -> Result<timers::Fired, Failure> {
        Err(refusal("this host keeps no timers"))
    }
}

fn refusal(message: &str) -> Failure {
    Failure { code: None, message: message.into(), stack: String::new(), path: None }
}

impl progress::Host for Host {
    fn phase(&mut self, title: String) -> Result<(), Failure> {
        eprintln!("phase {title}");
        Ok(())
    }

    fn log(&mut self, message: String) -> Result<(), Failure> {
        eprintln!("log {message}");
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let script = std::env::args().nth(1).unwrap_or_else(|| "return await agent('hello')".into());
    let component = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/engine/component/workflow.wasm");

    let mut config = Config::new();
    // Room for deep recursion in scripts.
    config.wasm_component_model_async(true).max_wasm_stack(4 << 20).async_stack_size(5 << 20);
    let engine = Engine::new(&config)?;
    let component = Component::from_file(&engine, component)?;
    let mut linker = Linker::new(&engine);
    Workflow::add_to_linker::<_, HasSelf<Host>>(&mut linker, |host| host)?;

    let mut store = Store::new(&engine, Host);
    let workflow = Workflow::instantiate_async(&mut store, &component, &linker).await?;
    let program = match workflow.call_compile(&mut store, &script).await? {
        Ok(program) => program,
        Err(error) => return Err(wasmtime::Error::msg(format!("line {}: {}", error.line, error.message))),
    };
    let settings = Settings {
        args: None,
        dialect: types::Dialect::Body,
        start_time_ms: 0,
        seed: 0,
        max_items_per_call: 4096,
        budget_total: None,
    };
    let report =
        store.run_concurrent(async |accessor| workflow.call_run(accessor, program, settings).await).await??;
    match report.outcome {
        Ok(value) => println!("{value}"),
        Err(failure) => return Err(wasmtime::Error::msg(failure.message)),
    }
    Ok(())
}
