//! A hostile script as the row of a table, and the run that every row goes through.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fanfold::ErrorCode::{AgentCap, CpuLimit, ItemCap, MemoryLimit, OutputLimit, TimeLimit};
use fanfold::{Engine, ErrorCode, Event, EventKind, RunResult, StartRequest, StopReason, WorkflowError};
use fanfold_agents::Scripted;
use serde_json::{Map, Value, json};

use crate::support;

/// A run that has not ended by then never will.
const HANGS: Duration = Duration::from_secs(120);

/// A script and what must come of it.
pub(super) struct Row {
    pub(super) class: u8,
    name: &'static str,
    script: String,
    limits: Map<String, Value>,
    args: Option<String>,
    has_header: bool,
    expected: Vec<Expected>,
    says: Vec<&'static str>,
    place: Option<(u32, u32)>,
    path: Option<&'static str>,
    warns: Vec<&'static str>,
}

enum Expected {
    Value(Value),
    Code(ErrorCode),
    /// An error of the script's own, by its first line.
    Thrown(&'static str),
}

/// Begins a row.
pub(super) fn row(class: u8, name: &'static str, script: impl Into<String>) -> Row {
    Row {
        class,
        name,
        script: script.into(),
        limits: Map::new(),
        args: None,
        has_header: false,
        expected: Vec::new(),
        says: Vec::new(),
        place: None,
        path: None,
        warns: Vec::new(),
    }
}

impl Row {
    /// With this limit.
    pub(super) fn limit(mut self, name: &str, value: u64) -> Self {
        self.limits.insert(name.into(), value.into());
        self
    }

    /// With these args, as text.
    pub(super) fn args(mut self, json: impl Into<String>) -> Self {
        self.args = Some(json.into());
        self
    }

    /// The script has a header, and gets no metadata beside it.
    pub(super) fn with_header(mut self) -> Self {
        self.has_header = true;
        self
    }

    /// It completes with this value.
    pub(super) fn gives(mut self, value: Value) -> Self {
        self.expected.push(Expected::Value(value));
        self
    }

    /// It fails with this code, or with another that is given.
    pub(super) fn fails(mut self, code: ErrorCode) -> Self {
        self.expected.push(Expected::Code(code));
        self
    }

    /// It fails with an error of its own that begins so.
    pub(super) fn throws(mut self, first_line: &'static str) -> Self {
        self.expected.push(Expected::Thrown(first_line));
        self
    }

    /// The error's message has this in it.
    pub(super) fn says(mut self, part: &'static str) -> Self {
        self.says.push(part);
        self
    }

    /// The error is at this line and column.
    pub(super) fn at(mut self, line: u32, column: u32) -> Self {
        self.place = Some((line, column));
        self
    }

    /// The error is at this path.
    pub(super) fn on(mut self, path: &'static str) -> Self {
        self.path = Some(path);
        self
    }

    /// A warning of the run has this in it.
    pub(super) fn warns(mut self, part: &'static str) -> Self {
        self.warns.push(part);
        self
    }

    /// The row's limits: its own, and small ones. A script that may not run out of time has much of it, since the
    /// machine that runs the test may do other things.
    fn limits(&self) -> Value {
        let spins = self.expected.iter().any(|expected| matches!(expected, Expected::Code(TimeLimit)));
        let mut limits = json!({
            "maxConcurrentAgents": 16, "syncTimeoutMs": if spins { 100 } else { 30_000 }, "disposeGraceMs": 1000,
            "maxFuel": 20_000_000_000u64, "maxMemoryBytes": 32 << 20,
        });
        limits.as_object_mut().expect("an object").extend(self.limits.clone());
        limits
    }

    fn request(&self) -> StartRequest {
        let request =
            if self.has_header { StartRequest::new(&self.script) } else { support::request(&self.script) };
        match &self.args {
            Some(args) => request.args_json(args),
            None => request,
        }
    }

    /// Compares what has come of the script with what must.
    fn compare(&self, ran: &Result<(RunResult, Vec<Event>), WorkflowError>) -> Result<(), String> {
        let (error, value) = match ran {
            Err(error) => (Some(error), None),
            Ok((result, _)) => (result.error.as_ref(), Some(result.value.get())),
        };
        let as_expected = |expected: &Expected| match (expected, error) {
            (Expected::Value(expected), None) => value.is_some_and(|value| {
                serde_json::from_str::<Value>(value).is_ok_and(|value| value == *expected)
            }),
            (Expected::Code(code), Some(error)) => error.code == Some(*code),
            (Expected::Thrown(line), Some(error)) => error.code.is_none() && error.message.starts_with(line),
            _ => false,
        };
        if !self.expected.iter().any(as_expected) {
            return Err("ends otherwise".into());
        }
        if let Some(error) = error {
            self.compare_error(error)?;
        }
        let Ok((result, events)) = ran else { return Ok(()) };
        if let Some(missing) =
            self.warns.iter().find(|part| !result.warnings.iter().any(|said| said.contains(**part)))
        {
            return Err(format!("does not warn of {missing:?} but of {:?}", result.warnings));
        }
        let limits = support::limits(self.limits());
        let started =
            events.iter().filter(|event| matches!(event.kind, EventKind::AgentStart { .. })).count();
        if started > limits.max_total_agents as usize {
            return Err(format!("started {started} agents"));
        }
        Ok(())
    }

    fn compare_error(&self, error: &WorkflowError) -> Result<(), String> {
        if let Some(missing) = self.says.iter().find(|part| !error.message.contains(**part)) {
            return Err(format!("does not say {missing:?}"));
        }
        if self.place.is_some_and(|(line, column)| (error.line, error.column) != (Some(line), Some(column))) {
            return Err(format!("is at {:?}:{:?}", error.line, error.column));
        }
        if self.path.is_some_and(|path| error.path.as_deref() != Some(path)) {
            return Err(format!("is on {:?}", error.path));
        }
        let is_limit = [TimeLimit, CpuLimit, MemoryLimit, OutputLimit, AgentCap, ItemCap];
        match error.code.filter(|code| is_limit.contains(code)) {
            Some(_) => names_its_limit(&error.message, &self.limits()),
            None => Ok(()),
        }
    }
}

/// A limit that was reached says how it is called, how high it is and what to do about it.
fn names_its_limit(message: &str, limits: &Value) -> Result<(), String> {
    let limits = serde_json::to_value(support::limits(limits.clone())).expect("limits serialise");
    let named = limits
        .as_object()
        .expect("an object")
        .iter()
        .find(|(name, _)| message.contains(&format!("({name})")));
    let Some((name, value)) = named else { return Err("names no limit".into()) };
    if !message.contains(&value.to_string()) {
        return Err(format!("does not say that {name} is {value}"));
    }
    if !message.contains("; ") {
        return Err("does not say what to do".into());
    }
    Ok(())
}

/// Runs every row, each beside a neighbour on the same engine, and tells all that go wrong.
pub(super) async fn check(rows: Vec<Row>) {
    // Rows with the same limits share an engine, so what one of them breaks the next one sees.
    let mut engines: BTreeMap<String, (Engine, Arc<Scripted>)> = BTreeMap::new();
    let mut faults = Vec::new();
    for row in rows {
        let limits = row.limits();
        let (engine, agents) =
            engines.entry(limits.to_string()).or_insert_with(|| support::engine(support::limits(limits)));
        if let Err(fault) = check_one(&row, engine, agents).await {
            faults.push(format!("{} {}: {fault}", row.class, row.name));
        }
    }
    assert!(faults.is_empty(), "{} rows differ:\n{}", faults.len(), faults.join("\n"));
}

async fn check_one(row: &Row, engine: &Engine, agents: &Scripted) -> Result<(), String> {
    let both = async { tokio::join!(support::run(engine, row.request()), neighbour(engine)) };
    let (ran, beside) = tokio::time::timeout(HANGS, both).await.map_err(|_| "hangs")?;
    beside.map_err(|fault| format!("its neighbour {fault}"))?;
    neighbour(engine).await.map_err(|fault| format!("its successor {fault}"))?;
    if agents.running() > 0 {
        return Err(format!("leaves {} agents behind", agents.running()));
    }
    row.compare(&ran).map_err(|fault| format!("{fault}: {}", shown(&ran)))
}

/// A run that means no harm, and must get its right value whatever else goes on.
async fn neighbour(engine: &Engine) -> Result<(), String> {
    let script = "const first = await agent('a');
        return [first, ...await parallel(args.map((n) => async () => `${await agent(`b${n}`)}${'.'.repeat(n)}`))]";
    let request = support::request(script).args(json!([1, 2, 3])).max_total_agents(4);
    let (result, _) = support::run(engine, request).await.map_err(|error| format!("was refused: {error}"))?;
    match (result.stop_reason, result.value.get()) {
        (StopReason::Completed, r#"["echo:a","echo:b1.","echo:b2..","echo:b3..."]"#) => Ok(()),
        _ => Err(format!("ended with {result:?}")),
    }
}

fn shown(ran: &Result<(RunResult, Vec<Event>), WorkflowError>) -> String {
    let text = match ran {
        Err(error) => format!("refused with {error:?}"),
        Ok((RunResult { error: Some(error), .. }, _)) => format!("{error:?}"),
        Ok((result, _)) => format!("completed with {}", result.value.get()),
    };
    text.chars().take(600).collect()
}
