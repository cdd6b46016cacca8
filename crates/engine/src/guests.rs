//! The guests of a run: from a script's text to what runs it.

use std::sync::Arc;

use fanfold_types::{ErrorCode, Meta, WorkflowError};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::limits::Limits;
use crate::pool::Pool;
use crate::programs::Programs;
use crate::run::{MakeGuest, Nursery};
use crate::sandbox::Sandboxes;
use crate::script::Script;
use crate::workflows::{Wanted, Workflows};

/// What the sandbox makes of a script.
pub(crate) type Program = Arc<[u8]>;

/// Makes guests for the scripts of one run.
#[derive(Clone)]
pub(crate) struct Guests {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) programs: Arc<Programs>,
    pub(crate) limits: Limits,
    pub(crate) workflows: Option<Arc<dyn Workflows>>,
}

impl Guests {
    /// Reads a script and compiles it, without running any of it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) async fn compile(
        &self,
        text: &str,
        meta: Option<Meta>,
        pool: Arc<Pool>,
    ) -> Result<(Script, Program), WorkflowError> {
        let (size, most) = (text.len() as u64, self.limits.max_script_bytes);
        if size > most {
            let message =
                format!("the script has {size} bytes, more than {most} (maxScriptBytes); pass data as args");
            return Err(ErrorCode::OutputLimit.error(message).on("script"));
        }
        let script = Script::read(text, meta)?;
        if let Some(program) = self.programs.get(&script.body) {
            return Ok((script, program));
        }
        match self.sandboxes.compile(&script.body, &self.limits, pool).await? {
            Ok(program) => {
                let program: Program = program.into();
                self.programs.put(&script.body, program.clone());
                Ok((script, program))
            }
            Err(error) => Err(script.syntax_error(&error.message, error.line)),
        }
    }

    /// Makes the guest that runs a program.
    pub(crate) fn make(&self, program: Program) -> MakeGuest {
        let (sandboxes, limits) = (self.sandboxes.clone(), self.limits.clone());
        Box::new(move |settings, link| {
            async move { sandboxes.run(program, settings, &limits, link).await }.boxed()
        })
    }

    /// The text of a workflow.
    async fn load(&self, wanted: Wanted) -> Result<String, WorkflowError> {
        let invalid = |reason: &str| Err(ErrorCode::InvalidArgument.error(reason));
        match (wanted, &self.workflows) {
            (Wanted::Script(text), _) => Ok(text),
            (Wanted::Saved(target), Some(workflows)) => match workflows.load(target).await {
                Ok(text) => Ok(text),
                Err(error) => invalid(&error.0),
            },
            (Wanted::Saved(_), None) => invalid(
                "nobody here knows workflows by name or path; pass {script: \"…\"} with the text of one",
            ),
        }
    }
}

impl Nursery for Guests {
    fn open(
        &self,
        wanted: Wanted,
        pool: Arc<Pool>,
    ) -> BoxFuture<'static, Result<(Script, MakeGuest), WorkflowError>> {
        let guests = self.clone();
        async move {
            let text = guests.load(wanted).await?;
            let (script, program) = guests.compile(&text, None, pool).await?;
            let guest = guests.make(program);
            Ok((script, guest))
        }
        .boxed()
    }
}
