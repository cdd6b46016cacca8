//! `fanfold plan`: plays a script through with made-up answers, twice: once as wide as it goes, once as configured.
//!
//! Children take an hour each, of a time that passes only when nothing else can happen. So how many run at once, and
//! how many in a row, is what it would be if real ones took equally long; and nobody waits.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use anyhow::{Context as _, Result};
use fanfold::{
    AgentRequest, CancellationToken, Event, EventKind, Limits, Meta, Observer, RunResult, StartRequest,
    Usage, WorkflowError,
};
use fanfold_agents::DryRun;
use tokio::time::Instant;

use crate::agent_types::AgentFiles;
use crate::args::PlanArgs;
use crate::provider::WithDefaults;
use crate::settings::Settings;
use crate::survey::Survey;
use crate::workflows::Workflows;
use crate::{check, display, engine, input, lines, run, status};

/// What a child takes: longer than any pause that a script makes.
const CHILD: Duration = Duration::from_secs(3600);

/// Output tokens that an agent is taken to use, where a budget counts them.
pub(crate) const AGENT_TOKENS: u64 = 1_000;

/// The longest a script is played.
const REAL_TIME: Duration = Duration::from_secs(20);

/// More agents than any plan needs.
const MANY: u32 = 100_000;

/// Plays a script and prints what it would do.
pub(crate) async fn plan(args: &PlanArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("failed to tell the current folder")?;
    let settings = Settings::read(&args.settings)?;
    let workflows = Workflows::read(&here);
    let source = input::source(&args.script.script, &workflows)?;
    let agents = AgentFiles::read(&here);
    let provider = match WithDefaults::new(&settings, None).await {
        Ok(provider) => provider,
        // It may want a key that nobody has yet.
        Err(error) => {
            display::notice(&format!(
                "what the agents would refuse is not told, since they cannot be made: {error:#}"
            ));
            WithDefaults::of(Box::new(DryRun::new()), &settings, None)?
        }
    };

    let mut configured = settings.limits.clone();
    // Of a time that does not pass.
    configured.max_duration_ms = None;
    let mut unbound = configured.clone();
    (unbound.max_concurrent_agents, unbound.max_total_agents) = (MANY, MANY.max(configured.max_total_agents));
    let mut played = Vec::new();
    for limits in [unbound, configured] {
        let request = run::requested(&args.script, &source)?;
        let started = match check::meta(&args.script.meta, &source) {
            Ok(Some(meta)) => play(request.meta(meta), limits, (agents.clone(), workflows.clone())).await?,
            Ok(None) => play(request, limits, (agents.clone(), workflows.clone())).await?,
            Err(error) => Err(error),
        };
        match started {
            Ok(run) => played.push(run),
            Err(error) => {
                let error = run::option_named(error, &args.script);
                display::workflow_error(&error, &source.path, &source.text);
                return Ok(ExitCode::from(status::COULD_NOT_START));
            }
        }
    }
    let [unbound, configured] = &*played else { return Ok(ExitCode::from(status::FAILED)) };
    let survey = Survey::new(unbound, configured, &settings.limits, &provider);
    if args.json {
        lines::print(&survey)?;
    } else {
        display::plan(&survey)?;
        if let Some(error) = &survey.error {
            display::workflow_error(error, &source.path, &source.text);
        }
    }
    Ok(if survey.error.is_none() { ExitCode::SUCCESS } else { ExitCode::from(status::FAILED) })
}

/// A run that cost nothing.
pub(crate) struct Played {
    pub(crate) meta: Meta,
    pub(crate) result: RunResult,
    pub(crate) events: Vec<Event>,
    /// What the children were asked, in start order.
    pub(crate) requests: Vec<AgentRequest>,
    /// The most children that ran at once.
    pub(crate) width: usize,
    /// How many children it takes one after another.
    pub(crate) rounds: u64,
}

async fn play(
    request: StartRequest,
    limits: Limits,
    (agents, workflows): (AgentFiles, Workflows),
) -> Result<Result<Played, WorkflowError>> {
    let mut children = DryRun::new().taking(CHILD);
    if limits.max_output_tokens.is_some() {
        // A script that goes on until its budget is used up would never end.
        children = children.costing(Usage::new(0, AGENT_TOKENS));
    }
    let builder = engine::builder(agents, workflows, limits).provider("spawn", children.clone());
    let engine = engine::make(builder).await?;
    let seen = Seen::default();
    tokio::time::pause();
    let began = Instant::now();
    let patience = Patience::begin();
    let request = request.observe(seen.clone()).cancel_with(patience.over.clone());
    let started = engine.start(request).await;
    let played = match started {
        Ok(run) => {
            let result = run.result().await;
            let rounds = began.elapsed().as_secs_f64() / CHILD.as_secs_f64();
            run.dispose().await;
            seen.ended.cancelled().await;
            Ok(Played {
                meta: run.meta().clone(),
                result: (*result).clone(),
                events: std::mem::take(&mut *seen.events.lock().unwrap_or_else(PoisonError::into_inner)),
                requests: children.requests(),
                width: children.peak(),
                rounds: rounds.round() as u64,
            })
        }
        Err(error) => Err(error),
    };
    tokio::time::resume();
    if patience.over.is_cancelled() {
        let seconds = REAL_TIME.as_secs();
        display::notice(&format!(
            "the script went on for {seconds} s, so the plan is what it did until then"
        ));
    }
    Ok(played)
}

/// How long a script may be played, in real time: one that sets timers for ever never ends in a time of its own.
struct Patience {
    over: CancellationToken,
    /// Dropped when the script has ended.
    _ended: mpsc::Sender<()>,
}

impl Patience {
    fn begin() -> Self {
        let (ended, waiting) = mpsc::channel();
        let over = CancellationToken::new();
        let theirs = over.clone();
        // Not a task: Tokio's time stands still for as long as one blocks.
        std::thread::spawn(move || {
            if waiting.recv_timeout(REAL_TIME) == Err(mpsc::RecvTimeoutError::Timeout) {
                theirs.cancel();
            }
        });
        Self { over, _ended: ended }
    }
}

/// Keeps a run's events.
#[derive(Clone, Default)]
struct Seen {
    events: Arc<Mutex<Vec<Event>>>,
    ended: CancellationToken,
}

impl Observer for Seen {
    fn event(&self, _meta: &Meta, event: &Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
        if let EventKind::End { .. } = event.kind {
            self.ended.cancel();
        }
    }
}
