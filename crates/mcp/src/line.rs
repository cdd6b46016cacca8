//! The runs that clients started: what of them is not in the tool's registry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fanfold_tool::{Answer, CallingAgent, Runs, Started};
use rmcp::model::{Implementation, RequestId};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::delivery::Delivery;
use crate::outbox::Outbox;
use crate::session::Hold;

/// A run's line to its client.
pub(crate) struct Line {
    pub(crate) run_id: String,
    pub(crate) outbox: Arc<Outbox>,
    /// What models are to know of its agents.
    pub(crate) notice: Option<String>,
    /// Its agents ask the client's model.
    asks_client: bool,
    /// When it started, in milliseconds since 1970.
    pub(crate) started_at: i64,
    /// What its start was answered.
    pub(crate) started: Answer<Started>,
    /// The call that started it.
    pub(crate) call: CallKey,
    /// Who made that call.
    pub(crate) client: Client,
    /// Speaks for the run, where the protocol has sessions.
    pub(crate) clerk: Option<Clerk>,
    /// What keeps the run going, where it belongs to sessions.
    hold: Weak<Hold>,
    calls: Mutex<Calls>,
}

/// The task that speaks for a run.
pub(crate) struct Clerk {
    pub(crate) task: Mutex<Option<JoinHandle<()>>>,
    /// The request that questions belong to: over HTTP its stream carries them.
    pub(crate) origin: watch::Sender<RequestId>,
}

/// The calls that a run is the answer of.
#[derive(Default)]
struct Calls {
    waiting: usize,
    /// A call was answered while the run goes on: its client knows the run and may come back.
    is_known: bool,
    /// The run is being stopped, or was.
    is_stopped: bool,
    /// Its result has reached a client.
    is_read: bool,
    deliveries: Vec<Delivery>,
}

impl Calls {
    fn is_open(&self) -> bool {
        !self.is_stopped && !self.is_read
    }
}

/// What a line is made of.
pub(crate) struct NewLine {
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) notice: Option<String>,
    pub(crate) asks_client: bool,
    pub(crate) started: Answer<Started>,
    pub(crate) call: CallKey,
    pub(crate) client: Client,
    pub(crate) clerk: Option<Clerk>,
    pub(crate) hold: Weak<Hold>,
}

impl Line {
    pub(crate) fn new(new: NewLine) -> Self {
        let NewLine { outbox, notice, asks_client, started, call, client, clerk, hold } = new;
        Self {
            run_id: started.value.run_id.clone(),
            outbox,
            notice,
            asks_client,
            started_at: chrono::Utc::now().timestamp_millis(),
            started,
            call,
            client,
            clerk,
            hold,
            calls: Mutex::default(),
        }
    }

    /// Whether its agents ask the client's model in the answers of requests that wait for the run.
    pub(crate) fn asks_in_answers(&self) -> bool {
        self.asks_client && self.clerk.is_none()
    }

    /// What keeps the run going, for another session that waits for it.
    pub(crate) fn hold(&self) -> Option<Arc<Hold>> {
        self.hold.upgrade()
    }

    /// Waits until the clerk of a run that is over has said all there was to say.
    pub(crate) async fn said(&self) {
        let task = self
            .clerk
            .as_ref()
            .and_then(|clerk| clerk.task.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(task) = task {
            // One that panicked says no more either.
            let _ = task.await;
        }
    }

    /// A call is to be answered with this run. Returns false if it cannot be: the run is being stopped, or its result was read.
    pub(crate) fn enter(&self, delivery: Delivery) -> bool {
        let mut calls = self.calls();
        let open = calls.is_open();
        if open {
            calls.waiting += 1;
            calls.deliveries.push(delivery);
        }
        open
    }

    /// A call has its answer.
    pub(crate) fn leave(&self) {
        let mut calls = self.calls();
        calls.waiting = calls.waiting.saturating_sub(1);
    }

    /// A call was answered while the run goes on.
    pub(crate) fn leave_knowing(&self) {
        self.calls().is_known = true;
        self.leave();
    }

    /// A call was cancelled. Returns true if the run must be stopped, since no call waits and no client knows of it; from
    /// then on no other call is answered with it.
    pub(crate) fn leave_cancelled(&self) -> bool {
        self.leave();
        let mut calls = self.calls();
        calls.is_stopped |= calls.waiting == 0 && !calls.is_known;
        calls.is_stopped
    }

    /// The run is being stopped.
    pub(crate) fn stop(&self) {
        self.calls().is_stopped = true;
    }

    /// A client has the result.
    pub(crate) fn read(&self) {
        self.calls().is_read = true;
    }

    /// Whether every call that waited for it has lost its connection.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.calls().deliveries.iter().all(Delivery::is_lost)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        // Nothing that holds the lock can leave the calls half-written.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of the runs in the tool's registry, by run id.
#[derive(Default)]
pub(crate) struct Lines {
    lines: Mutex<HashMap<String, Arc<Line>>>,
    /// Held while a call looks for its run and, if there is none, starts it.
    starting: Mutex<HashMap<CallKey, Weak<tokio::sync::Mutex<()>>>>,
}

impl Lines {
    /// Keeps a line, and drops those of runs that the registry has dropped: how much is kept, and how long, is said
    /// there alone.
    pub(crate) fn add(&self, line: Arc<Line>, runs: Option<&Runs>) {
        let mut lines = self.lock();
        lines.retain(|run_id, _| runs.is_some_and(|runs| runs.contains(run_id)));
        lines.insert(line.run_id.clone(), line);
    }

    pub(crate) fn get(&self, run_id: &str) -> Option<Arc<Line>> {
        self.lock().get(run_id).cloned()
    }

    /// One call of a kind at a time gets to look for its run.
    pub(crate) fn turn(&self, call: &CallKey) -> Arc<tokio::sync::Mutex<()>> {
        // Nothing that holds the lock can leave the map half-written.
        let mut starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        starting.retain(|_, turn| turn.strong_count() > 0);
        let turn = starting.get(call).and_then(Weak::upgrade).unwrap_or_default();
        starting.insert(call.clone(), Arc::downgrade(&turn));
        turn
    }

    /// The run of an equal call by the same client: one that goes on, or whose result was not read. The latest one, if
    /// there are several. A client with a new session finds those of an old one that no connection waits for.
    pub(crate) fn find(&self, call: &CallKey, client: &Client, runs: &Runs) -> Option<Arc<Line>> {
        let lines = self.lock();
        let found = lines.values().filter(|line| {
            let own = line.client.id == client.id;
            // The questions of its agents go to the session that started it.
            let left_behind =
                || client.is_same_program(&line.client) && line.is_abandoned() && !line.asks_client;
            line.call == *call
                && line.calls().is_open()
                && runs.contains(&line.run_id)
                && (own || left_behind())
        });
        found.max_by_key(|line| line.started_at).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Line>>> {
        // Nothing that holds the lock can leave the map half-written.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call asks for: equal calls have equal keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    tool: String,
    /// Of the arguments, which may be megabytes.
    digest: [u8; 32],
}

impl CallKey {
    pub(crate) fn new(tool: &str, arguments: &Value) -> Self {
        let mut digest = Sha256::new();
        digest_of(arguments, &mut digest);
        Self { tool: tool.to_owned(), digest: digest.finalize().into() }
    }
}

/// Feeds a value to a digest, objects in the order of their names.
fn digest_of(value: &Value, digest: &mut Sha256) {
    match value {
        Value::Array(items) => {
            digest.update(b"[");
            for item in items {
                digest_of(item, digest);
                digest.update(b",");
            }
            digest.update(b"]");
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            digest.update(b"{");
            for (name, value) in fields {
                digest.update(Value::from(name.as_str()).to_string());
                digest.update(b":");
                digest_of(value, digest);
                digest.update(b",");
            }
            digest.update(b"}");
        }
        scalar => digest.update(scalar.to_string()),
    }
}

/// Who calls: a session, or a program where the protocol has no sessions.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) id: String,
    /// The name and version that it says.
    program: Option<(String, String)>,
    has_session: bool,
}

impl Client {
    /// The client of a session.
    pub(crate) fn of_session(id: &str, program: Option<&Implementation>) -> Self {
        Self { id: id.to_owned(), program: program.map(name_and_version), has_session: true }
    }

    /// A client without a session.
    pub(crate) fn of_program(program: Option<&Implementation>) -> Self {
        let program = program.map(name_and_version);
        let (name, version) = program.clone().unwrap_or_default();
        Self { id: format!("mcp-client {name} {version}"), program, has_session: false }
    }

    fn is_same_program(&self, other: &Self) -> bool {
        self.has_session && other.has_session && self.program.is_some() && self.program == other.program
    }
}

fn name_and_version(program: &Implementation) -> (String, String) {
    (program.name.clone(), program.version.clone())
}

/// A client as the tool knows it.
impl CallingAgent for Client {
    fn id(&self) -> &str {
        &self.id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_equal_if_they_ask_for_the_same() {
        let key = |arguments: Value| CallKey::new("workflow", &arguments);
        assert_eq!(
            key(json!({"script": "x", "args": {"a": 1, "b": [2]}})),
            key(json!({"args": {"b": [2], "a": 1}, "script": "x"}))
        );
        let all = [
            json!({"script": "x"}),
            json!({"script": "y"}),
            json!({"script": "x", "args": null}),
            json!({"script": "x", "args": {}}),
            json!({"script": "x", "args": [[1], 2]}),
            json!({"script": "x", "args": [[1, 2]]}),
            json!({"script": "x", "args": ["1", 2]}),
            json!({"script": "x", "args": ["1,2"]}),
            json!({"script": "x\",\"args\":{}"}),
        ];
        let keys: std::collections::HashSet<_> = all.into_iter().map(key).collect();
        assert_eq!(keys.len(), 9);
        assert_ne!(CallKey::new("workflow", &json!({})), CallKey::new("workflow_start", &json!({})));
    }
}
