//! The subagent provider of the command line: the one chosen, with the user's defaults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use fanfold::{AgentRequest, CancellationToken, Child, StartError, Subagents, Support};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::settings::Settings;

/// Fills in the provider and model of agents that name none, calls models by the names that the user gave them, and
/// notes what each agent was asked.
pub(crate) struct WithDefaults {
    agents: Box<dyn Subagents>,
    provider: Option<String>,
    model: Option<String>,
    models: BTreeMap<String, String>,
    /// Why there are no worktrees.
    no_worktrees: Option<String>,
    requests: Option<Arc<Requests>>,
}

impl WithDefaults {
    /// The provider that the settings choose.
    pub(crate) async fn new(settings: &Settings, requests: Option<Arc<Requests>>) -> Result<Self> {
        let (agents, no_worktrees) = settings.agents.make(settings).await?;
        Ok(Self { no_worktrees, ..Self::of(agents, settings, requests)? })
    }

    /// This provider, with the settings' defaults.
    pub(crate) fn of(
        agents: Box<dyn Subagents>,
        settings: &Settings,
        requests: Option<Arc<Requests>>,
    ) -> Result<Self> {
        let Settings { provider, model, models, .. } = settings;
        let supports = agents.supports();
        for (option, given, honoured) in
            [("--model", model, supports.model), ("--provider", provider, supports.provider)]
        {
            ensure!(
                given.is_none() || honoured,
                "{option} would have no effect with these agents; see docs/agents.md, and for commands \
                 FANFOLD_MODEL and FANFOLD_PROVIDER in the README"
            );
        }
        let (provider, model, models) = (provider.clone(), model.clone(), models.clone());
        Ok(Self { agents, provider, model, models, no_worktrees: None, requests })
    }

    /// Puts the defaults into a request.
    pub(crate) fn complete(&self, request: &mut AgentRequest) {
        let options = &mut request.options;
        options.provider = options.provider.take().or_else(|| self.provider.clone());
        options.model = options.model.take().or_else(|| self.model.clone());
        if let Some(model) = &mut options.model
            && let Some(name) = self.models.get(model)
        {
            model.clone_from(name);
        }
    }
}

impl Subagents for WithDefaults {
    fn start(
        &self,
        mut request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        self.complete(&mut request);
        if let Some(requests) = &self.requests {
            requests.note(&request);
        }
        self.agents.start(request, cancel)
    }

    fn supports(&self) -> Support {
        self.agents.supports()
    }

    fn why_not(&self, option: &str) -> Option<String> {
        match (option, &self.no_worktrees) {
            ("isolation", Some(why)) => Some(why.clone()),
            _ => self.agents.why_not(option),
        }
    }
}

/// What each agent was asked, until its start is told.
#[derive(Default)]
pub(crate) struct Requests(Mutex<BTreeMap<u32, Value>>);

impl Requests {
    fn note(&self, request: &AgentRequest) {
        let Ok(mut asked) = serde_json::to_value(request) else { return };
        if let Some(fields) = asked.as_object_mut() {
            // These two are in the event already, the phase even where it is the script's current one.
            fields.remove("label");
            fields.remove("phase");
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request.seq, asked);
    }

    /// What this agent was asked; once.
    pub(crate) fn take(&self, seq: u32) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&seq)
    }
}
