//! Workflows that run inside of a run: each in a sandbox of its own, all in the books of the run.

use std::sync::Arc;

use fanfold_types::WorkflowError;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::books::{LooseEnds, ScopeId};
use super::driver::MakeGuest;
use super::ending;
use super::link::{Link, Shared};
use crate::json;
use crate::pool::Pool;
use crate::script::Script;
use crate::workflows::Wanted;

/// Makes the guests of workflows inside of a run.
pub(crate) trait Nursery: Send + Sync + 'static {
    /// Finds a workflow's script and compiles it; what that takes is the run's.
    fn open(
        &self,
        wanted: Wanted,
        pool: Arc<Pool>,
    ) -> BoxFuture<'static, Result<(Script, MakeGuest), WorkflowError>>;
}

/// A workflow at work. The run's task polls it beside the script that called it, and not inside of it, since Wasmtime
/// cannot run one store while it polls another.
pub(super) type Inside = BoxFuture<'static, ()>;

impl Link {
    /// The script called `workflow()`. Gives the value as JSON text.
    ///
    /// Dropping the future ends the workflow, wherever it is.
    pub(crate) async fn workflow(&self, target: &str, args: Option<String>) -> Result<String, WorkflowError> {
        let bytes = target.len() + args.as_ref().map_or(0, String::len);
        let scope = Scope::open(&self.run, self.scope, bytes as u64)?;
        let wanted = Wanted::parse(target)?;
        let args = args.map(|args| json::read_args(args).map(|args| Box::<str>::from(args).into()));
        let shown = wanted.shown();
        let work = run_inside(scope, wanted, shown.clone(), args.transpose()?);
        let (mut sender, answer) = oneshot::channel();
        let inside: Inside = Box::pin(async move {
            let ended = tokio::select! {
                biased;
                // The script that called it is gone.
                () = sender.closed() => return,
                ended = work => ended,
            };
            let _ = sender.send(ended);
        });
        // The run's task is there as long as its scripts are.
        let _ = self.run.inside.send(inside);
        let ended = answer.await.unwrap_or_else(|_| Err(self.run.books().stop_error()));
        ended.map_err(|error| from_inside(&shown, error))
    }
}

async fn run_inside(
    mut scope: Scope,
    wanted: Wanted,
    shown: String,
    args: Option<String>,
) -> Result<String, WorkflowError> {
    let run = scope.run.clone();
    let opening = run.nursery.open(wanted, run.pool.clone());
    let (script, make_guest) = tokio::select! {
        biased;
        () = run.stopped.cancelled() => return Err(run.books().stop_error()),
        opened = opening => opened?,
    };
    script.check_args(args.as_deref()).await?;
    script.ignored().for_each(|ignored| run.books().warn(&format!("workflow {shown}: {ignored}")));
    let settings = run.settings(&script, args, scope.id);
    let link = Link::new(run.clone(), scope.id, script.dialect);
    let report = make_guest(settings, Arc::new(link)).await;
    let end = ending::read(report, &script, &run.limits);
    scope.loose_ends = end.loose_ends.of_workflow(&shown);
    end.outcome.map(|value| Box::<str>::from(value).into())
}

/// A workflow's place in the books, which closes when it is dropped.
struct Scope {
    run: Arc<Shared>,
    id: ScopeId,
    loose_ends: LooseEnds,
}

impl Scope {
    fn open(run: &Arc<Shared>, parent: ScopeId, bytes: u64) -> Result<Self, WorkflowError> {
        let id = run.books().open_scope(parent, bytes)?;
        Ok(Self { run: run.clone(), id, loose_ends: LooseEnds::default() })
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let loose_ends = std::mem::take(&mut self.loose_ends);
        self.run.books().close_scope(self.id, loose_ends);
    }
}

/// What the calling script gets of a workflow's failure: the code, and in words which workflow it was and where.
fn from_inside(shown: &str, error: WorkflowError) -> WorkflowError {
    let place = match (error.code, error.line, error.column) {
        (Some(_), Some(line), Some(column)) => format!(" (line {line}, column {column})"),
        _ => String::new(),
    };
    let message = format!("workflow {shown} failed: {}{place}", error.message);
    WorkflowError { message, line: None, column: None, ..error }
}
