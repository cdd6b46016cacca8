//! The subagent provider of the command line: the one chosen, with the user's defaults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use fanfold::{AgentRequest, CancellationToken, Child, StartError, Subagents, Support};
use fanfold_agents::{Command, Scripted, Worktrees};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::settings::{AgentSettings, Settings};

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
    /// The provider that the settings ask for.
    pub(crate) async fn of(settings: &Settings, requests: Option<Arc<Requests>>) -> Result<Self> {
        let mut no_worktrees = None;
        let agents: Box<dyn Subagents> = match &settings.agents {
            AgentSettings::Scripted { .. } => Box::new(Scripted::new()),
            AgentSettings::Command { command, given, env } => {
                let mut command = Command::parse(command).with_context(|| given.clone())?;
                for name in env {
                    command = command.inherit(name);
                }
                let here = std::env::current_dir().context("failed to tell the current folder")?;
                match Worktrees::open(&here, settings.worktree_base.as_deref()).await {
                    Ok(worktrees) => command = command.worktrees(worktrees),
                    Err(error) if settings.worktree_base.is_some() => {
                        return Err(error).context("--worktree-base");
                    }
                    Err(error) => no_worktrees = Some(error.to_string()),
                }
                Box::new(command)
            }
        };
        Ok(Self {
            agents,
            provider: settings.provider.clone(),
            model: settings.model.clone(),
            models: settings.models.clone(),
            no_worktrees,
            requests,
        })
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
