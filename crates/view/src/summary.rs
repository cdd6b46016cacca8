//! What a list says of a run.

use fanfold_types::{RunHead, RunState, Tally};
use serde::Serialize;

/// A run in a list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) key: u64,
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) state: RunState,
    pub(crate) began: Option<u64>,
    pub(crate) ended: Option<u64>,
    pub(crate) agents: Tally,
    /// The file it is in.
    pub(crate) file: Option<String>,
}

impl Summary {
    pub(crate) fn new(key: u64, run: &RunHead, file: Option<String>) -> Self {
        Self {
            key,
            id: run.id.as_deref().map(str::to_owned),
            name: run.name.clone().or_else(|| file.clone()).unwrap_or_else(|| "a run".to_owned()),
            description: run.meta.as_ref().map(|meta| meta.description.clone()),
            state: run.state,
            began: run.began,
            ended: run.ended,
            agents: run.agents,
            file,
        }
    }
}
