//! What `agentType` names: kinds of agents that the host defines, with instructions for their children.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Says which kinds of agents there are, for the option `agentType`; see
/// [`EngineBuilder::agent_types`](crate::EngineBuilder::agent_types).
///
/// A map from names to types is one:
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
///
/// use fanfold::{AgentType, AgentTypes};
///
/// let reviewer = AgentType::new("reviewer", "Review what you are given. Change nothing.");
/// let types = BTreeMap::from([("reviewer".to_owned(), Arc::new(reviewer))]);
/// assert_eq!(types.names(), ["reviewer"]);
/// ```
pub trait AgentTypes: Send + Sync + 'static {
    /// The type of this name, if the host defines it. Called for every call of `agent()` that names one, on the
    /// run's own task: look it up, do not read it.
    fn find(&self, name: &str) -> Option<Arc<AgentType>>;

    /// All names, for the message about one that is not among them.
    fn names(&self) -> Vec<String>;

    /// How people define one, as a sentence without its full stop, for the same message.
    fn how_to_define(&self) -> String {
        "the host defines them".to_owned()
    }
}

impl AgentTypes for BTreeMap<String, Arc<AgentType>> {
    fn find(&self, name: &str) -> Option<Arc<AgentType>> {
        self.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// A kind of agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentType {
    /// What `agentType` names it.
    pub name: String,
    /// What it is for, for people.
    pub description: String,
    /// What its children are told before their prompt.
    pub instructions: String,
    /// The tools that its children are meant to use; all of them where it does not say. Fanfold hands this on and
    /// enforces nothing.
    pub tools: Option<Vec<String>>,
    /// The model of its children, where a call names none and the provider can choose one.
    pub model: Option<String>,
}

impl AgentType {
    /// A type with these instructions; the other fields are public.
    pub fn new(name: impl Into<String>, instructions: impl Into<String>) -> Self {
        Self { name: name.into(), instructions: instructions.into(), ..Self::default() }
    }
}
