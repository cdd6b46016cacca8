//! An agent that calls the tool, with a session that keeps its records or fails to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fanfold::{Engine, RecordChecker, SessionRecord};
use fanfold_tool::{AppendError, Call, CallingAgent, Notice, Runs, Session, ToolConfig, WorkflowTool};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What happens to the append after those that succeed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    Error,
    Panic,
    Hang,
}

pub(super) struct Assistant {
    log: Mutex<Vec<SessionRecord>>,
    appends: AtomicUsize,
    fault: Option<(usize, Fault)>,
    warnings: Mutex<Vec<String>>,
    notices: mpsc::UnboundedSender<Notice>,
    received: tokio::sync::Mutex<mpsc::UnboundedReceiver<Notice>>,
}

impl Assistant {
    pub(super) fn new() -> Arc<Self> {
        Self::make(None)
    }

    /// One whose session keeps that many records and then has a fault.
    pub(super) fn failing_after(records: usize, fault: Fault) -> Arc<Self> {
        Self::make(Some((records, fault)))
    }

    fn make(fault: Option<(usize, Fault)>) -> Arc<Self> {
        let (notices, received) = mpsc::unbounded_channel();
        Arc::new(Self {
            log: Mutex::default(),
            appends: AtomicUsize::new(0),
            fault,
            warnings: Mutex::default(),
            notices,
            received: tokio::sync::Mutex::new(received),
        })
    }

    /// What the session holds, which is legal.
    pub(super) fn records(&self) -> Vec<SessionRecord> {
        let records = self.log.lock().expect("not poisoned").clone();
        let mut checker = RecordChecker::default();
        for record in &records {
            checker.check(record).unwrap_or_else(|fault| panic!("{fault}: {records:?}"));
        }
        records
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().expect("not poisoned").clone()
    }

    /// How often the session was asked to append.
    pub(super) fn appends(&self) -> usize {
        self.appends.load(Ordering::Relaxed)
    }

    /// The next notice of a run that has ended.
    pub(super) async fn notice(&self) -> Notice {
        self.received.lock().await.recv().await.expect("the sender is here")
    }
}

impl CallingAgent for Assistant {
    fn id(&self) -> &str {
        "assistant-1"
    }

    fn session(&self) -> Option<&dyn Session> {
        Some(self)
    }

    fn warning(&self, warning: &str) {
        self.warnings.lock().expect("not poisoned").push(warning.to_owned());
    }

    fn run_ended(&self, notice: &Notice) {
        self.notices.send(notice.clone()).expect("the receiver is here");
    }
}

impl Session for Assistant {
    fn append(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let before = self.appends.fetch_add(1, Ordering::Relaxed);
            match self.fault {
                Some((after, fault)) if before >= after => match fault {
                    Fault::Error => Err("the disk is full".into()),
                    Fault::Panic => panic!("the session has a fault"),
                    Fault::Hang => std::future::pending().await,
                },
                _ => {
                    self.log.lock().expect("not poisoned").push(record);
                    Ok(())
                }
            }
        })
    }
}

/// The tool without a registry.
pub(super) fn tool(engine: &Engine, config: Value) -> WorkflowTool {
    let config: ToolConfig = serde_json::from_value(config).expect("a valid configuration");
    WorkflowTool::new(engine.clone(), config).expect("a valid configuration")
}

/// The tool with a registry.
pub(super) fn tool_with_runs(engine: &Engine, config: Value, runs: &Runs) -> WorkflowTool {
    tool(engine, config).with_runs(runs.clone())
}

/// The arguments of a workflow.
pub(super) fn arguments(script: &str) -> Value {
    json!({"meta": {"name": "test", "description": "a test"}, "script": script})
}

/// A call by this agent.
pub(super) fn by(agent: &Arc<Assistant>) -> Call {
    Call::by(agent.clone())
}
