//! The conformance cases: what a script, given certain agents, must lead to. Each way to run a script (the
//! library, the command line) turns a case into an [`Observed`] and has it compared here.

use std::collections::BTreeMap;
use std::time::Duration;

use fanfold::{
    CancellationToken, EndedAgent, Event, EventKind, RecordChecker, RunResult, SessionRecord, StopReason,
    WorkflowError,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const CASES: &str = include_str!("../conformance/cases.json");

/// How many cases there are. A case that is lost from the file fails every runner.
const COUNT: usize = 138;

/// One case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The workflow's metadata, valid or not.
    pub meta: Value,
    /// The script's text.
    pub script: String,
    /// The script's `args`; none means `undefined`.
    pub args: Option<Value>,
    /// Settings by name.
    #[serde(default)]
    limits: Map<String, Value>,
    /// Cancel this long after the start.
    pub cancel_after_ms: Option<u64>,
    /// What must come of it.
    pub expect: Expect,
}

impl Case {
    /// A token that is cancelled when the case says so: at once, later, or never. Needs a Tokio runtime.
    pub fn cancellation(&self) -> CancellationToken {
        let cancel = CancellationToken::new();
        match self.cancel_after_ms {
            Some(0) => cancel.cancel(),
            Some(ms) => {
                let cancel = cancel.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    cancel.cancel();
                });
            }
            None => {}
        }
        cancel
    }

    /// The limits to run it with: its own, on a machine that has room for 16 agents at once.
    pub fn limits(&self) -> Value {
        let mut limits = self.limits.clone();
        limits.entry("maxConcurrentAgents").or_insert(json!(16));
        Value::Object(limits)
    }
}

/// What must come of a case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    ok: bool,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    result_json_length: Option<usize>,
    agents_started: Option<u32>,
    text: Option<String>,
    text_length: Option<usize>,
    text_tail: Option<String>,
    code: Option<String>,
    path: Option<String>,
    thrown: Option<String>,
    events: Option<Vec<(String, Value)>>,
    records: Option<Vec<(String, Value)>>,
    requests: Option<Vec<Value>>,
    peak_concurrency: Option<usize>,
}

/// `null` is a value too.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// What came of a case.
#[derive(Debug)]
pub struct Observed {
    /// The result, or why the run did not start.
    pub result: Result<RunResult, WorkflowError>,
    /// What a model would be shown.
    pub text: String,
    /// All events.
    pub events: Vec<Event>,
    /// What each agent was asked, in the order they started.
    pub requests: Vec<Value>,
    /// Whether `requests` holds the agents that could not start.
    pub sees_failed_starts: bool,
    /// The session's records, where runs are recorded.
    pub records: Option<Vec<SessionRecord>>,
}

/// All cases.
///
/// # Panics
/// If there are not as many as there should be.
pub fn cases() -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_str(CASES).expect("the case file is valid");
    assert_eq!(cases.len(), COUNT, "a conformance case was lost");
    cases
}

/// Compares every case that was run with what it expects.
///
/// # Panics
/// If a case differs or was not run, with all that do.
pub fn check(cases: &[Case], observed: &BTreeMap<String, Observed>) {
    let faults: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let fault = match observed.get(&case.name) {
                Some(observed) => case.expect.compare(observed).err()?,
                None => "was not run".to_owned(),
            };
            Some(format!("{}: {fault}", case.name))
        })
        .collect();
    assert!(faults.is_empty(), "{} of {} cases differ:\n{}", faults.len(), cases.len(), faults.join("\n"));
}

impl Expect {
    fn compare(&self, observed: &Observed) -> Result<(), String> {
        match &observed.result {
            Ok(result) if result.stop_reason == StopReason::Completed => self.compare_value(result)?,
            Ok(RunResult { error: Some(error), .. }) | Err(error) => self.compare_error(error)?,
            Ok(result) => return Err(format!("neither completed nor failed: {result:?}")),
        }
        if let (Some(expected), Ok(result)) = (self.agents_started, &observed.result) {
            same("agentsStarted", &expected, &result.agents_started)?;
        }
        if let Some(text) = &self.text {
            same("text", text, &observed.text)?;
        }
        if let Some(length) = self.text_length {
            same("textLength", &length, &observed.text.chars().count())?;
        }
        if let Some(tail) = &self.text_tail {
            let from = observed.text.len().saturating_sub(tail.len());
            same("textTail", &Some(tail.as_str()), &observed.text.get(from..))?;
        }
        if let Some(events) = &self.events {
            compare_events(events, &observed.events)?;
        }
        if let (Some(expected), Some(records)) = (&self.records, &observed.records) {
            compare_records(expected, records)?;
        }
        if let Some(requests) = &self.requests {
            let failed_start =
                |request: &Value| request["prompt"].as_str().is_some_and(|p| p.starts_with("startfail:"));
            let seen =
                requests.iter().filter(|request| observed.sees_failed_starts || !failed_start(request));
            same("requests", &seen.collect::<Vec<_>>(), &observed.requests.iter().collect())?;
        }
        if let Some(peak) = self.peak_concurrency {
            same("peakConcurrency", &peak, &peak_concurrency(&observed.events))?;
        }
        Ok(())
    }

    fn compare_value(&self, result: &RunResult) -> Result<(), String> {
        same("ok", &self.ok, &true)?;
        let json = result.value.get();
        if let Some(expected) = &self.result {
            let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
            same("result", expected, &value)?;
        }
        if let Some(length) = self.result_json_length {
            same("resultJsonLength", &length, &json.chars().count())?;
        }
        Ok(())
    }

    fn compare_error(&self, error: &WorkflowError) -> Result<(), String> {
        if self.ok {
            return Err(format!("failed: {error}"));
        }
        same("code", &self.code.as_deref(), &error.code.map(|code| code.as_str()))?;
        if self.path.is_some() {
            same("path", &self.path, &error.path)?;
        }
        let first_line = error.message.lines().next().unwrap_or_default();
        match self.thrown.as_deref() {
            None | Some("") => Ok(()),
            // What an engine says of its own errors is its own affair.
            Some(class @ ("TypeError" | "ReferenceError")) => {
                same("thrown", &class, &first_line.split(':').next().unwrap_or_default())
            }
            Some(thrown) => same("thrown", &thrown, &first_line),
        }
    }
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, expected: &T, got: &T) -> Result<(), String> {
    if expected == got { Ok(()) } else { Err(format!("{what}: expected {expected:?}, got {got:?}")) }
}

/// First and last event in their places, each agent's start before its end, phases and logs in the script's
/// order; otherwise any order.
fn compare_events(expected: &[(String, Value)], events: &[Event]) -> Result<(), String> {
    let numbers: Vec<u64> = events.iter().map(|event| event.n).collect();
    same("event numbers", &(1..=events.len() as u64).collect(), &numbers)?;
    let got: Vec<(String, Value)> = events.iter().filter_map(short).collect();
    same("first event", &expected.first(), &got.first())?;
    same("last event", &expected.last(), &got.last())?;
    let narration = |events: &[(String, Value)]| -> Vec<(String, Value)> {
        events.iter().filter(|(name, _)| name == "phase" || name == "log").cloned().collect()
    };
    same("phases and logs", &narration(expected), &narration(&got))?;
    same("events", &sorted(expected), &sorted(&got))?;
    for (i, (name, ended)) in got.iter().enumerate() {
        let starts = |(name, data): &(String, Value)| name == "agent-start" && data["seq"] == ended["seq"];
        if name == "agent-end" && !got[..i].iter().any(starts) {
            return Err(format!("agent {} ends before it starts", ended["seq"]));
        }
    }
    Ok(())
}

/// First and last record in their places, each agent's start before its end; otherwise any order.
fn compare_records(expected: &[(String, Value)], records: &[SessionRecord]) -> Result<(), String> {
    let mut checker = RecordChecker::default();
    for record in records {
        checker.check(record).map_err(|fault| format!("records: {fault}"))?;
    }
    let got: Vec<(String, Value)> = records.iter().map(short_record).collect();
    same("first record", &expected.first(), &got.first())?;
    same("last record", &expected.last(), &got.last())?;
    same("records", &sorted(expected), &sorted(&got))
}

/// Named data in some order of its own.
fn sorted(named: &[(String, Value)]) -> Vec<String> {
    let mut all: Vec<String> =
        named.iter().map(|(name, data)| format!("{name} {}", canonical(data))).collect();
    all.sort();
    all
}

/// A record as the case file writes it: without the run's id.
fn short_record(record: &SessionRecord) -> (String, Value) {
    let mut wire = json!(record);
    let mut payload = wire["payload"].take();
    if let Value::Object(fields) = &mut payload {
        fields.remove("runId");
    }
    (wire["type"].as_str().unwrap_or_default().to_owned(), payload)
}

/// An event as the case file writes it; `None` for those that it does not know.
fn short(event: &Event) -> Option<(String, Value)> {
    let (name, data) = match &event.kind {
        EventKind::Start { meta } => ("start", json!(meta)),
        EventKind::Phase { title } => ("phase", json!(title)),
        EventKind::Log { message } => ("log", json!(message)),
        EventKind::AgentStart { agent } => ("agent-start", json!(agent)),
        EventKind::AgentEnd { agent } => {
            ("agent-end", json!(EndedAgent { kind: None, reason: None, ..agent.clone() }))
        }
        EventKind::End { result } => {
            ("end", json!({"stopReason": result.stop_reason, "agentsStarted": result.agents_started}))
        }
        _ => return None,
    };
    Some((name.to_owned(), data))
}

/// JSON with sorted keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, String> = fields.iter().map(|(k, v)| (k, canonical(v))).collect();
            format!("{fields:?}")
        }
        other => other.to_string(),
    }
}

fn peak_concurrency(events: &[Event]) -> usize {
    let (mut now, mut peak) = (0, 0);
    for event in events {
        match event.kind {
            EventKind::AgentStart { .. } => now += 1,
            EventKind::AgentEnd { .. } => now -= 1,
            _ => {}
        }
        peak = peak.max(now);
    }
    peak
}
