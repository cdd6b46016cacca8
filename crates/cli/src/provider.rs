//! The subagent provider of the command line: the one chosen, with the user's defaults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use fanfold::{AgentRequest, CancellationToken, Child, StartError, Subagents, Support};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::settings::Settings;

/// Fills in the provider and model of agents that name none, and notes what each was asked.
pub(crate) struct WithDefaults {
    agents: Box<dyn Subagents>,
    provider: Option<String>,
    model: Option<String>,
    requests: Option<Arc<Requests>>,
}

impl WithDefaults {
    /// The provider that the settings choose.
    pub(crate) fn new(settings: &Settings, requests: Option<Arc<Requests>>) -> Result<Self> {
        Self::of(settings.agents.make(settings.model.as_deref())?, settings, requests)
    }

    /// This provider, with the settings' defaults.
    pub(crate) fn of(
        agents: Box<dyn Subagents>,
        settings: &Settings,
        requests: Option<Arc<Requests>>,
    ) -> Result<Self> {
        let Settings { provider, model, .. } = settings;
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
        Ok(Self { agents, provider: provider.clone(), model: model.clone(), requests })
    }
}

impl Subagents for WithDefaults {
    fn start(
        &self,
        mut request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        request.options.provider = request.options.provider.or_else(|| self.provider.clone());
        request.options.model = request.options.model.or_else(|| self.model.clone());
        if let Some(requests) = &self.requests {
            requests.note(&request);
        }
        self.agents.start(request, cancel)
    }

    fn supports(&self) -> Support {
        self.agents.supports()
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
