//! One run, from its start to its report.

use std::cell::{Cell, RefCell};

use futures::channel::oneshot;
use rquickjs::{Ctx, Result};

use crate::fanfold::workflow::types::{Failure, Report, Settings};
use crate::hooks::LooseEnds;
use crate::{clock, repairs, script, timers, with_sandbox};

type Outcome = core::result::Result<String, Failure>;

thread_local! {
    /// How the script settled, until the report is made.
    static OUTCOME: RefCell<Option<Outcome>> = const { RefCell::new(None) };
    /// Where the report goes. Taken when it is made, so there is one.
    static REPORT: RefCell<Option<oneshot::Sender<Report>>> = const { RefCell::new(None) };
    /// Calls that the host has not answered.
    static IN_FLIGHT: Cell<usize> = const { Cell::new(0) };
    /// Why nothing that the script waits for will come, when the host has said so.
    static HOPELESS: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Runs a program to its end.
pub(crate) async fn run(program: Vec<u8>, settings: Settings) -> Report {
    clock::start(settings.start_time_ms, settings.seed);
    let (sender, report) = oneshot::channel();
    REPORT.set(Some(sender));
    with_sandbox(|sandbox| {
        sandbox.runtime.context().with(|ctx| {
            if let Err(error) = start(&ctx, sandbox, &program, settings) {
                settle(Err(internal(&ctx, &error)));
            }
            turn(&ctx, sandbox);
        });
    });
    drop(program);
    report.await.unwrap_or_else(|_| unreachable!("the sender stays until the report is made"))
}

fn start(ctx: &Ctx<'_>, sandbox: &crate::Sandbox, program: &[u8], settings: Settings) -> Result<()> {
    sandbox.hooks.begin(ctx, &settings)?;
    if let Some(args) = settings.args {
        ctx.globals().set("args", ctx.json_parse(args)?)?;
    } else {
        ctx.globals().set("args", rquickjs::Undefined)?;
    }
    let script = script::load(ctx, program)?;
    sandbox.hooks.drive(ctx, script)
}

/// Records how the script settled.
pub(crate) fn settle(outcome: Outcome) {
    OUTCOME.set(Some(outcome));
}

/// Makes a call to the host, then lets the script go on with what `call` resolved to.
pub(crate) fn spawn_call<F>(call: impl Future<Output = F> + 'static)
where
    F: FnOnce(&Ctx<'_>) -> Result<()>,
{
    IN_FLIGHT.set(IN_FLIGHT.get() + 1);
    wit_bindgen::spawn_local(async move {
        let next = call.await;
        IN_FLIGHT.set(IN_FLIGHT.get() - 1);
        resume(next);
    });
}

/// Lets the script go on with `next`, which the host has brought about.
pub(crate) fn resume(next: impl FnOnce(&Ctx<'_>) -> Result<()>) {
    if is_over() {
        // Nothing of the script runs any more.
        return;
    }
    with_sandbox(|sandbox| {
        sandbox.runtime.context().with(|ctx| {
            if let Err(error) = next(&ctx) {
                settle(Err(internal(&ctx, &error)));
            }
            turn(&ctx, sandbox);
        });
    });
}

/// Whether the report has been made.
pub(crate) fn is_over() -> bool {
    REPORT.with_borrow(Option::is_none)
}

/// The host says that what the script still waits for will not come, and why.
pub(crate) fn give_up(failure: Failure) {
    HOPELESS.set(Some(failure));
    resume(|_| Ok(()));
}

/// Runs the script until it waits for the host, and makes the report if it has settled or waits for nothing.
fn turn(ctx: &Ctx<'_>, sandbox: &crate::Sandbox) {
    let outcome = loop {
        if let Some(outcome) = OUTCOME.take() {
            break outcome;
        }
        if ctx.execute_pending_job() {
            continue;
        }
        if IN_FLIGHT.get() > 0 || timers::are_set() {
            return;
        }
        break Err(HOPELESS.take().unwrap_or_else(deadlock));
    };
    let Some(sender) = REPORT.take() else { return };
    let LooseEnds { unhandled_rejections, swallowed_errors, swallowed_count } =
        sandbox.hooks.loose_ends(ctx).unwrap_or_default();
    let report = Report {
        outcome,
        never_awaited: sandbox.agents.never_awaited(),
        never_awaited_places: sandbox.agents.never_awaited_places(ctx),
        unhandled_rejections,
        swallowed_errors,
        swallowed_count,
        repairs: repairs::take(),
    };
    let _ = sender.send(report);
}

fn deadlock() -> Failure {
    Failure {
        code: Some("DEADLOCK".into()),
        message:
            "the script awaits a promise that nothing can settle: no agent is running, no timer is set and no \
                  work is left. Await only promises that come from agent(), parallel(), pipeline() or from async functions \
                  that end"
                .into(),
        stack: String::new(),
        path: None,
    }
}

/// A fault of the sandbox itself.
fn internal(ctx: &Ctx<'_>, error: &rquickjs::Error) -> Failure {
    let thrown = error.is_exception().then(|| ctx.catch());
    let message =
        thrown.as_ref().and_then(|value| value.as_exception()).and_then(|exception| exception.message());
    Failure {
        code: Some("INTERNAL".into()),
        message: format!("the sandbox failed: {}", message.unwrap_or_else(|| error.to_string())),
        stack: String::new(),
        path: None,
    }
}
