//! Scripts as people write them, in the header dialect, played through by the dry-run provider.
//!
//! Each `tests/corpus/NAME.js` has its expectation beside it, in `NAME.json`: what the script returns or how it fails,
//! how many agents it asks for, and how many of them run at once when nothing holds them back. A child takes an hour
//! of a time that is not the real one, so that whatever can overlap does, staggered starts included.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fanfold::{
    Engine, ErrorCode, EventKind, LoadError, RunResult, StartRequest, Usage, WorkflowError, WorkflowTarget,
    Workflows,
};
use fanfold_agents::DryRun;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::support;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");

/// How long a child takes.
const HOUR: Duration = Duration::from_secs(3600);

/// Output tokens that a child says it has used.
const TOKENS: u64 = 1000;

/// What must come of a script.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expectation {
    args: Option<Value>,
    /// By their setting names.
    #[serde(default)]
    limits: Map<String, Value>,
    value: Option<Value>,
    error: Option<Failure>,
    agents: u32,
    width: usize,
    /// What the script logs, where that matters.
    logs: Option<Vec<String>>,
    /// The phases that it enters, where that matters.
    phases: Option<Vec<String>>,
    /// The labels of its agents, where they matter.
    labels: Option<Vec<String>>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    code: Option<ErrorCode>,
    /// Part of the message.
    says: String,
    line: Option<u32>,
}

/// The corpus by name: `workflow("args-text")` and `workflow({scriptPath: "args-text.js"})`.
struct Corpus;

impl Workflows for Corpus {
    fn load(&self, target: WorkflowTarget) -> BoxFuture<'static, Result<String, LoadError>> {
        let path = match target {
            WorkflowTarget::Name(name) => format!("{name}.js"),
            WorkflowTarget::Path(path) => path,
            _ => String::new(),
        };
        let read = std::fs::read_to_string(Path::new(FOLDER).join(path));
        Box::pin(async move { read.map_err(|_| LoadError::new("the corpus has no such script")) })
    }
}

fn scripts() -> Vec<PathBuf> {
    let files = std::fs::read_dir(FOLDER).expect("the corpus is there");
    let files = files.map(|file| file.expect("a file").path());
    let scripts: BTreeSet<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "js")).collect();
    scripts.into_iter().collect()
}

fn engine(limits: &Map<String, Value>, agents: &DryRun) -> Engine {
    let mut all = serde_json::json!({"maxConcurrentAgents": 100_000});
    all.as_object_mut().expect("an object").extend(limits.clone());
    Engine::builder()
        .provider("spawn", agents.clone())
        .limits(support::limits(all))
        .workflows(Corpus)
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
        .build()
        .expect("the engine builds")
}

#[tokio::test(start_paused = true)]
async fn every_script_gives_its_value_with_its_agents() {
    let scripts = scripts();
    assert!(scripts.len() >= 40, "there are {} scripts", scripts.len());
    let mut faults = Vec::new();
    for path in scripts {
        if let Err(fault) = check(&path).await {
            let name = path.file_stem().unwrap_or_default();
            faults.push(format!("{}: {fault}", name.display()));
        }
    }
    assert!(faults.is_empty(), "{} scripts differ:\n{}", faults.len(), faults.join("\n"));
}

async fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let expected = std::fs::read_to_string(path.with_extension("json")).map_err(|_| "has no expectation")?;
    let expected: Expectation = serde_json::from_str(&expected).map_err(|error| error.to_string())?;

    let agents = DryRun::new().taking(HOUR).costing(Usage::new(0, TOKENS));
    let engine = engine(&expected.limits, &agents);
    // The first of January of 2026.
    let mut request = StartRequest::new(text).seed(1).start_time_ms(1_767_225_600_000);
    if let Some(args) = &expected.args {
        request = request.args(args.clone());
    }
    let (result, events) = match support::run(&engine, request).await {
        Ok(ran) => ran,
        Err(error) => return compare_end(&expected, Err(&error)),
    };
    compare_end(&expected, Ok(&result))?;
    if agents.running() > 0 {
        return Err(format!("leaves {} agents behind", agents.running()));
    }
    let numbers = (result.agents_started, agents.peak());
    if numbers != (expected.agents, expected.width) {
        return Err(format!("asks for {} agents, {} at once", numbers.0, numbers.1));
    }
    let (mut logs, mut phases, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        match event.kind {
            EventKind::Log { message } => logs.push(message),
            EventKind::Phase { title } => phases.push(title.to_string()),
            EventKind::AgentStart { agent } => labels.push(agent.label.clone()),
            _ => {}
        }
    }
    let told = [
        ("warnings", Some(result.warnings), Some(expected.warnings)),
        ("logs", Some(logs), expected.logs),
        ("phases", Some(phases), expected.phases),
        ("labels", Some(labels), expected.labels),
    ];
    match told.into_iter().find(|(_, got, wanted)| wanted.is_some() && got != wanted) {
        Some((what, got, _)) => Err(format!("other {what}: {}", serde_json::json!(got))),
        None => Ok(()),
    }
}

fn compare_end(expected: &Expectation, ran: Result<&RunResult, &WorkflowError>) -> Result<(), String> {
    let error = match ran {
        Ok(result) => result.error.as_ref(),
        Err(error) => Some(error),
    };
    match (error, &expected.error, &expected.value) {
        (None, None, Some(value)) => {
            let got = ran.map(|result| result.value.get()).unwrap_or_default();
            let same = serde_json::from_str::<Value>(got).is_ok_and(|got| got == *value);
            if same { Ok(()) } else { Err(format!("returns {got}")) }
        }
        (Some(error), Some(failure), None)
            if error.code == failure.code
                && error.message.contains(&failure.says)
                && (failure.line.is_none() || error.line == failure.line) =>
        {
            Ok(())
        }
        (Some(error), ..) => Err(format!("fails with {error:?}")),
        (None, ..) => Err("does not fail".into()),
    }
}

/// A script as large as the largest that were seen, most of it prompts of 38,000 characters.
#[tokio::test(start_paused = true)]
async fn large_scripts_with_long_prompts_run() {
    let sentence =
        "Consider every module, its callers and its tests, and say what you would change – and why. ";
    let prompt: String = sentence.chars().cycle().take(38_000).collect();
    let mut script = String::from(
        "export const meta = { name: 'large', description: 'a large script' }\nconst prompts = [\n",
    );
    for i in 0..6 {
        script.push_str(&format!("  // Prompt {i}\n  `{i}. {prompt}`,\n"));
    }
    script.push_str("]\n");
    while script.len() < 263_000 {
        script.push_str("// What remains is commentary, as in many a script that was written in one go.\n");
    }
    script.push_str(
        "const answers = await parallel(prompts.map((p, i) => () => agent(p, { label: `long ${i}` })))\n\
         return { answers: answers.length, length: prompts.map((p) => p.length) }",
    );
    let agents = DryRun::new().taking(HOUR);
    let (result, _) =
        support::run(&engine(&Map::new(), &agents), StartRequest::new(script)).await.expect("it starts");
    assert_eq!(
        result.value.get(),
        r#"{"answers":6,"length":[38003,38003,38003,38003,38003,38003]}"#,
        "{:?}",
        result.error
    );
    assert_eq!((agents.peak(), agents.requests()[5].prompt.chars().count()), (6, 38_003));
}

/// The default of everything is enough for the corpus, and one agent at a time gives the same values.
#[tokio::test(start_paused = true)]
async fn one_agent_at_a_time_gives_the_same_counts() {
    for name in ["verify-votes", "nested-fan-out", "many-agents", "workflow-inline"] {
        let path = Path::new(FOLDER).join(name);
        let text = std::fs::read_to_string(path.with_extension("js")).expect("the script is there");
        let expected =
            std::fs::read_to_string(path.with_extension("json")).expect("its expectation is there");
        let expected: Expectation = serde_json::from_str(&expected).expect("it is valid");
        let agents = DryRun::new();
        let limits = support::limits(serde_json::json!({"maxConcurrentAgents": 1}));
        let engine = support::engine_with(agents.clone(), limits);
        let mut request = StartRequest::new(text);
        if let Some(args) = &expected.args {
            request = request.args(args.clone());
        }
        let (result, _) = support::run(&engine, request).await.expect("it starts");
        assert_eq!((result.agents_started, agents.peak()), (expected.agents, 1), "{name}");
    }
}
