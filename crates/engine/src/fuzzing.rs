//! The door for the fuzz targets: a run whose guest does what it likes. Not part of the library: it exists under
//! `cfg(fuzzing)` alone, which cargo-fuzz sets.
//!
//! Everything but the sandbox is real: options, schemas, books, link, driver, children, observers.

use std::sync::Arc;

use fanfold_types::{ErrorCode, Meta, WorkflowError};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::bindings::fanfold::workflow::types::{Failure, Repair, Report, SwallowedError};
use crate::limits::Limits;
use crate::observe::Observer;
use crate::pool::Pool;
use crate::run::{self, Guest, Link, MakeGuest, Nursery, Plan, Run};
use crate::script::Script;
use crate::subagents::Subagents;
use crate::workflows::Wanted;

/// What a hostile guest does next.
#[derive(Clone, Debug)]
pub enum Message {
    /// Calls `agent.run`, and does not wait.
    Agent { prompt: String, options: String },
    /// Calls `workflows.run`, and does not wait. The guest inside asks for an agent and returns.
    Workflow { target: String, args: Option<String> },
    /// Calls `timers.set`.
    Timer(u32),
    /// Calls `progress.phase`.
    Phase(String),
    /// Calls `progress.log`.
    Log(String),
    /// Waits for any of its calls to be answered, if there are any.
    Await,
    /// Lets the host go on.
    Yield,
    /// Drops all its calls.
    Forget,
    /// The caller cancels the run. Not the guest's doing, but at a time that it chooses.
    Cancel,
}

/// How a hostile guest ends.
#[derive(Clone, Debug)]
pub enum Ending {
    /// It says that its script returned this text.
    Value {
        json: String,
        never_awaited: u32,
        never_awaited_places: Vec<String>,
        unhandled_rejections: Vec<String>,
        swallowed: Vec<(String, String)>,
        swallowed_count: u32,
        /// Value, path, message and stack of each.
        repairs: Vec<(String, String, String, Option<String>)>,
    },
    /// It says that its script failed.
    Failure { code: Option<String>, message: String, stack: String, path: Option<String> },
    /// It traps.
    Trap,
    /// It waits for ever.
    Never,
}

/// Starts a run of `script` by a guest that does this. Needs a Tokio runtime.
///
/// # Errors
/// As [`Script::read`].
pub fn start(
    script: &str,
    messages: Vec<Message>,
    ending: Ending,
    limits: Limits,
    provider: impl Subagents,
    observer: impl Observer,
) -> Result<Run, WorkflowError> {
    let script = Script::read(script, Some(Meta::new("fuzz", "a hostile guest")))?;
    let cancel = CancellationToken::new();
    Ok(run::spawn(Plan {
        id: "fuzz".into(),
        parent: None,
        script,
        args: None,
        seed: 0,
        start_time_ms: 0,
        slots: Arc::new(Semaphore::new(limits.concurrent_agents())),
        limits,
        provider: Arc::new(provider),
        agent_types: None,
        observers: vec![Box::new(observer)],
        now_ms: 0,
        cancelled_by: vec![(cancel.clone(), "cancelled by the caller")],
        guest: Box::new(move |_, link| guest(messages, ending, link, cancel)),
        nursery: Arc::new(Inner),
    }))
}

/// The guests of workflows inside of the run.
struct Inner;

impl Nursery for Inner {
    fn open(
        &self,
        wanted: Wanted,
        _pool: Arc<Pool>,
    ) -> BoxFuture<'static, Result<(Script, MakeGuest), WorkflowError>> {
        let text = match wanted {
            Wanted::Script(text) => text,
            Wanted::Saved(_) => String::new(),
        };
        let script = Script::read(&text, Some(Meta::new("inner", "a guest inside")));
        let make: MakeGuest = Box::new(|_, link| {
            let ask = Message::Agent { prompt: "inner".into(), options: "{}".into() };
            let value = Ending::Value {
                json: "1".into(),
                never_awaited: 1,
                never_awaited_places: Vec::new(),
                unhandled_rejections: Vec::new(),
                swallowed: Vec::new(),
                swallowed_count: 0,
                repairs: Vec::new(),
            };
            guest(vec![ask, Message::Yield], value, link, CancellationToken::new())
        });
        async move { Ok((script?, make)) }.boxed()
    }
}

fn guest(messages: Vec<Message>, ending: Ending, link: Arc<Link>, cancel: CancellationToken) -> Guest {
    Box::pin(async move {
        let mut calls = FuturesUnordered::new();
        for message in messages {
            match message {
                Message::Agent { prompt, options } => {
                    let link = link.clone();
                    calls.push(async move { link.agent(prompt, &options).await.map(drop) }.boxed());
                    // A call is made when it is polled.
                    let _ = calls.next().now_or_never();
                }
                Message::Workflow { target, args } => {
                    let link = link.clone();
                    calls.push(async move { link.workflow(&target, args).await.map(drop) }.boxed());
                    let _ = calls.next().now_or_never();
                }
                Message::Timer(delay_ms) => drop(link.set_timer(delay_ms)),
                Message::Phase(title) => drop(link.phase(&title)),
                Message::Log(message) => drop(link.log(message)),
                Message::Await => drop(calls.next().await),
                Message::Yield => tokio::task::yield_now().await,
                Message::Forget => calls.clear(),
                Message::Cancel => cancel.cancel(),
            }
        }
        match ending {
            Ending::Value {
                json,
                never_awaited,
                never_awaited_places,
                unhandled_rejections,
                swallowed,
                swallowed_count,
                repairs,
            } => {
                let swallowed = swallowed.into_iter().map(|(item, error)| SwallowedError { item, error });
                let swallowed_errors = swallowed.collect();
                let repairs = repairs.into_iter();
                let repair = |(value, path, message, stack)| Repair { value, path, message, stack };
                Ok(Report {
                    outcome: Ok(json),
                    never_awaited,
                    never_awaited_places,
                    unhandled_rejections,
                    swallowed_errors,
                    swallowed_count,
                    repairs: repairs.map(repair).collect(),
                })
            }
            Ending::Failure { code, message, stack, path } => Ok(Report {
                outcome: Err(Failure { code, message, stack, path }),
                never_awaited: 0,
                never_awaited_places: Vec::new(),
                unhandled_rejections: Vec::new(),
                swallowed_errors: Vec::new(),
                swallowed_count: 0,
                repairs: Vec::new(),
            }),
            Ending::Trap => Err(ErrorCode::MemoryLimit.error("a trap")),
            Ending::Never => std::future::pending().await,
        }
    })
}
