//! Runs scripts for a long time, good and bad ones mixed, and fails if anything is lost or grows.
//!
//!     cargo run --release --example soak            # 100,000 short runs, then 2,000 at once for 5 minutes
//!     cargo run --release --example soak -- --short 10000 --live 500 --seconds 30
//!
//! Each run's value or error, the number of its failures, and its events (numbered, paired, one end) are compared
//! with what they must be; so is the memory of the process at the end with that after a warm-up.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use fanfold::{
    Engine, ErrorCode, Event, EventKind, Limits, Meta, Observer, RecordChecker, RunResult, SessionRecord,
    StartRequest, StopReason,
};
use fanfold_agents::Scripted;
use futures::StreamExt as _;

#[derive(Parser)]
#[command(about = "Runs scripts for a long time and fails if anything is lost or grows")]
struct Args {
    /// Short runs, of all kinds.
    #[arg(long, default_value_t = 100_000)]
    short: u64,
    /// Runs that are live at once, waiting for agents.
    #[arg(long, default_value_t = 2_000)]
    live: u64,
    /// How long to keep them live.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
}

/// Growth of resident memory after the warm-up that is let pass: of it, in percent, and what an allocator and a
/// thread pool may keep for themselves, in bytes.
const MAX_GROWTH_PERCENT: u64 = 10;
const SLACK_BYTES: u64 = 16 << 20;

/// Short runs at once.
const WIDTH: usize = 64;

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let limits: Limits = serde_json::from_value(serde_json::json!({
        "maxConcurrentAgents": 1_000_000, "syncTimeoutMs": 1_000, "maxMemoryBytes": 24 << 20, "disposeGraceMs": 5_000,
    }))?;
    let engine = Engine::builder().provider("spawn", Forgetful).limits(limits).build()?;
    short_runs(&engine, args.short).await?;
    live_runs(&engine, args.live, Duration::from_secs(args.seconds)).await?;
    say("ok");
    Ok(())
}

/// Scripted agents that do not remember what they were asked, as the ones for tests do.
struct Forgetful;

impl fanfold::Subagents for Forgetful {
    fn start(
        &self,
        request: fanfold::AgentRequest,
        cancel: fanfold::CancellationToken,
    ) -> futures::future::BoxFuture<'static, Result<fanfold::Child, fanfold::StartError>> {
        Scripted::new().start(request, cancel)
    }

    fn supports(&self) -> fanfold::Support {
        fanfold::Support::ALL
    }
}

/// A kind of run and what must come of it.
struct Kind {
    script: &'static str,
    /// Cancel it once it runs.
    cancel: bool,
    outcome: Outcome,
    failures: usize,
}

enum Outcome {
    Value(&'static str),
    Thrown(&'static str),
    Code(ErrorCode),
}

const fn kind(script: &'static str, outcome: Outcome, failures: usize) -> Kind {
    Kind { script, cancel: false, outcome, failures }
}

/// Kinds that are cheap, most of the runs.
const GOOD: &[Kind] = &[
    kind("return [1, {a: 'b'}]", Outcome::Value(r#"[1,{"a":"b"}]"#), 0),
    kind("phase('p'); log('l'); return await agent('x')", Outcome::Value(r#""echo:x""#), 0),
    kind(
        "return await parallel([() => agent('fail:no'), () => agent('json:{\"n\":1}', {schema: {type: 'object'}}), () => 3])",
        Outcome::Value(r#"[null,{"n":1},3]"#),
        1,
    ),
    kind(
        "return await pipeline([1, 2], (x) => agent('a' + x), (p, x) => p + x)",
        Outcome::Value(r#"["echo:a11","echo:a22"]"#),
        0,
    ),
    kind("await agent('x'); throw new TypeError('boom')", Outcome::Thrown("TypeError: boom"), 0),
    kind("await agent('infra:gone')", Outcome::Code(ErrorCode::AgentResult), 1),
    kind("await new Promise(() => {})", Outcome::Code(ErrorCode::Deadlock), 0),
    kind("return {x: undefined}", Outcome::Code(ErrorCode::ResultUnserializable), 0),
    kind("agent('hang:'); return 1", Outcome::Value("1"), 0),
    Kind {
        cancel: true,
        ..kind(
            "await parallel([() => agent('hang:'), () => agent('hang:')])",
            Outcome::Code(ErrorCode::Cancelled),
            0,
        )
    },
];

/// Kinds that take long, a few of the runs.
const BAD: &[Kind] = &[
    kind("(function f() { f() })()", Outcome::Code(ErrorCode::StackLimit), 0),
    kind(
        "const a = []; while (true) a.push('x'.repeat(100000) + a.length)",
        Outcome::Code(ErrorCode::MemoryLimit),
        0,
    ),
    kind("await agent('x'); while (true) {}", Outcome::Code(ErrorCode::TimeLimit), 0),
    Kind {
        cancel: true,
        ..kind(
            "try { await agent('hang:') } finally { while (true) {} }",
            Outcome::Code(ErrorCode::Cancelled),
            0,
        )
    },
];

/// One run in so many is a bad one.
const BAD_EVERY: u64 = 100;

/// The kind of run number `n`, when that is a bad one.
fn bad(n: u64) -> Option<&'static Kind> {
    n.is_multiple_of(BAD_EVERY).then(|| &BAD[(n / BAD_EVERY) as usize % BAD.len()])
}

/// One live run in so many is a short one of a good kind, failures and cancellations among them.
const SHORT_EVERY: u64 = 4;

async fn short_runs(engine: &Engine, count: u64) -> Result<()> {
    let (done, began) = (AtomicU64::new(0), Instant::now());
    let warm_up = (count / 10).max(1);
    let baseline = AtomicU64::new(0);
    let runs = (0..count).map(|n| {
        let kind = bad(n).unwrap_or(&GOOD[n as usize % GOOD.len()]);
        let (done, baseline) = (&done, &baseline);
        async move {
            run(engine, kind).await.with_context(|| format!("run {n}: {}", kind.script))?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done == warm_up {
                baseline.store(resident()?, Ordering::Relaxed);
            }
            if done.is_multiple_of((count / 10).max(1)) {
                say(&format!("{done} short runs, {} MiB resident", resident()? >> 20));
            }
            Ok::<(), anyhow::Error>(())
        }
    });
    let mut runs = futures::stream::iter(runs).buffer_unordered(WIDTH);
    while let Some(ended) = runs.next().await {
        ended?;
    }
    let seconds = began.elapsed().as_secs_f64();
    say(&format!("{count} short runs in {seconds:.1} s: {:.0} a second", count as f64 / seconds));
    check_growth(baseline.load(Ordering::Relaxed))
}

async fn live_runs(engine: &Engine, live: u64, time: Duration) -> Result<()> {
    const LIVE: Kind = kind(
        "let n = 0; for (let i = 0; i < 20; i++) { n += (await agent('sleep:' + (200 + i))).length } return n",
        Outcome::Value("100"),
        0,
    );
    let (started, ended, began) = (AtomicU64::new(1), AtomicU64::new(0), Instant::now());
    let watch = async {
        // Until every run has been replaced once.
        tokio::time::sleep((time / 4).min(Duration::from_secs(15))).await;
        let baseline = resident()?;
        say(&format!("{live} live runs, {} MiB resident", baseline >> 20));
        while began.elapsed() + Duration::from_secs(1) < time {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if began.elapsed().as_secs().is_multiple_of(30) {
                say(&format!("{} ended, {} MiB resident", ended.load(Ordering::Relaxed), resident()? >> 20));
            }
        }
        check_growth(baseline)
    };
    let chains = (0..live).map(|_| async {
        while began.elapsed() < time {
            let n = started.fetch_add(1, Ordering::Relaxed);
            let short = n.is_multiple_of(SHORT_EVERY).then(|| &GOOD[(n / SHORT_EVERY) as usize % GOOD.len()]);
            let kind = bad(n).or(short).unwrap_or(&LIVE);
            run(engine, kind).await.with_context(|| format!("live run {n}: {}", kind.script))?;
            ended.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<(), anyhow::Error>(())
    });
    let (watched, chained) = futures::future::join(watch, futures::future::try_join_all(chains)).await;
    chained?;
    say(&format!("{live} live runs for {} s: {} ended", time.as_secs(), ended.load(Ordering::Relaxed)));
    watched
}

/// Runs a script of this kind and compares everything that came of it.
async fn run(engine: &Engine, kind: &Kind) -> Result<()> {
    let seen = Arc::new(Seen::default());
    let request =
        StartRequest::new(kind.script).meta(Meta::new("soak", "soaks")).observe(Watch(seen.clone()));
    let run = engine.start(request).await?;
    if kind.cancel {
        // Once both sides are in the middle of it.
        tokio::time::sleep(Duration::from_millis(20)).await;
        run.cancel("enough");
    }
    let result = run.result().await;
    run.dispose().await;
    check_result(kind, &result).with_context(|| format!("{result:?}"))?;
    seen.check(&result)
}

fn check_result(kind: &Kind, result: &RunResult) -> Result<()> {
    let code = result.error.as_ref().and_then(|error| error.code);
    let message = result.error.as_ref().map_or("", |error| error.message.as_str());
    match kind.outcome {
        Outcome::Value(value) => {
            ensure!(result.stop_reason == StopReason::Completed, "did not complete");
            ensure!(result.value.get() == value, "wrong value");
        }
        Outcome::Thrown(first_line) => {
            ensure!(code.is_none() && message.lines().next() == Some(first_line), "wrong error");
        }
        Outcome::Code(expected) => ensure!(code == Some(expected), "wrong code"),
    }
    ensure!(result.failures.len() == kind.failures, "wrong failures");
    Ok(())
}

/// The events of a run, checked as they come.
#[derive(Default)]
struct Seen(Mutex<State>);

#[derive(Default)]
struct State {
    checker: RecordChecker,
    events: u64,
    ended: Option<StopReason>,
    fault: Option<String>,
}

struct Watch(Arc<Seen>);

impl Observer for Watch {
    fn event(&self, _meta: &Meta, event: &Event) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.events += 1;
        if event.n != state.events {
            state.fault = Some(format!("event {} came as number {}", event.n, state.events));
        }
        if let EventKind::End { result } = &event.kind {
            state.ended = Some(result.stop_reason);
        }
        let Some(record) = SessionRecord::of_event(event) else { return };
        if let Err(fault) = state.checker.check(&record) {
            state.fault = Some(fault.to_string());
        }
    }
}

impl Seen {
    fn check(&self, result: &RunResult) -> Result<()> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = &state.fault {
            bail!("{fault}");
        }
        ensure!(state.ended == Some(result.stop_reason), "the end was told as {:?}", state.ended);
        Ok(())
    }
}

fn check_growth(baseline: u64) -> Result<()> {
    let now = resident()?;
    let most = baseline + baseline * MAX_GROWTH_PERCENT / 100 + SLACK_BYTES;
    say(&format!("resident memory: {} MiB after the warm-up, {} MiB at the end", baseline >> 20, now >> 20));
    ensure!(now <= most, "resident memory grew by more than {MAX_GROWTH_PERCENT} %");
    Ok(())
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm").context("this program measures memory on Linux")?;
    let pages: u64 = statm.split(' ').nth(1).context("statm has a second number")?.parse()?;
    Ok(pages * 4096)
}

#[expect(clippy::print_stdout, reason = "a program that reports")]
fn say(line: &str) {
    println!("{line}");
}
