//! Drives codewhale-workflow-js: QuickJS in the process, a thread for each run.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use codewhale_workflow_js::{
    BudgetSnapshot, DriverError, ProgressEvent, SpawnedTask, TaskCompletion, TaskRequest, WorkflowDriver,
    WorkflowJsError, WorkflowRunCancel, WorkflowVm,
};
use peer_protocol::{Contender, Hello, serve};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// The hook of that engine by the name of ours.
const PRELUDE: &str = "const agent = (prompt) => task({ prompt });";

/// Agents that answer at once.
#[derive(Default)]
struct Agents {
    /// Those that hang.
    hanging: Mutex<Vec<oneshot::Sender<TaskCompletion>>>,
    asked: Notify,
}

#[async_trait::async_trait]
impl WorkflowDriver for Agents {
    async fn spawn_task(&self, request: TaskRequest) -> Result<SpawnedTask, DriverError> {
        let (sender, completion) = oneshot::channel();
        if request.description == "hang" {
            self.hanging.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
            self.asked.notify_one();
        } else {
            let _ = sender.send(TaskCompletion::Completed { text: request.description });
        }
        Ok(SpawnedTask { task_id: "child".into(), completion })
    }

    fn cancel_all(&self) {
        for sender in self.hanging.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = sender.send(TaskCompletion::Cancelled);
        }
    }

    fn budget(&self) -> BudgetSnapshot {
        BudgetSnapshot::default()
    }

    fn progress(&self, _: ProgressEvent) {}
}

struct Codewhale;

struct Parked {
    cancel: WorkflowRunCancel,
    run: JoinHandle<Result<Value, WorkflowJsError>>,
}

impl Contender for Codewhale {
    type Parked = Parked;

    async fn run(&self, script: String) -> Result<String> {
        let script = format!("{PRELUDE}{script}");
        let value = WorkflowVm::new().run_script(&script, Value::Null, Arc::new(Agents::default())).await;
        Ok(value.map_err(|error| anyhow!("{error}"))?.to_string())
    }

    async fn park(&self, script: String) -> Result<Parked> {
        let (agents, cancel) = (Arc::new(Agents::default()), WorkflowRunCancel::new());
        let run = tokio::spawn({
            let (agents, cancel) = (agents.clone(), cancel.clone());
            async move {
                let script = format!("{PRELUDE}{script}");
                WorkflowVm::new().run_script_with_cancel(&script, Value::Null, agents, cancel).await
            }
        });
        agents.asked.notified().await;
        Ok(Parked { cancel, run })
    }

    async fn cancel(&self, parked: Parked) -> Result<()> {
        parked.cancel.cancel();
        match parked.run.await? {
            Ok(value) => Err(anyhow!("a cancelled run gave {value}")),
            Err(_) => Ok(()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let hello = Hello { name: "codewhale-workflow-js".into(), version: "0.10.2".into() };
    tokio::spawn(serve(hello, Codewhale)).await?
}
