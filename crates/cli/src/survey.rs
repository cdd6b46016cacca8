//! What a script would do, from two runs that cost nothing.

use std::collections::{BTreeMap, HashMap};

use fanfold::{
    AgentRequest, ErrorCode, Event, EventKind, Limits, StopReason, Subagents, Support, WorkflowError,
};
use serde::Serialize;

use crate::plan::{AGENT_TOKENS, Played};
use crate::provider::WithDefaults;

/// A plan, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Survey {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) stop_reason: StopReason,
    /// Why the script did not get to its end, although nothing bounded its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<WorkflowError>,
    pub(crate) agents: usize,
    /// Agents at once, if as many may run as the script asks for.
    pub(crate) width: usize,
    /// Agents one after another, then.
    pub(crate) rounds: u64,
    /// The same two with the limits as configured, and how many may run at once then.
    pub(crate) configured: Configured,
    pub(crate) phases: Vec<PhasePlan>,
    /// Agents by the model they ask for; `null` is the provider's own choice.
    pub(crate) models: Vec<ModelPlan>,
    /// Characters of all prompts.
    pub(crate) prompt_chars: usize,
    /// Output tokens that the run may use, if bounded, and how many each agent was taken to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<Budget>,
    pub(crate) never_awaited: u32,
    /// What a cap or the provider would refuse.
    pub(crate) refused: Vec<Refusal>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Configured {
    pub(crate) max_concurrent_agents: usize,
    pub(crate) width: usize,
    pub(crate) rounds: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Budget {
    pub(crate) max_output_tokens: u64,
    pub(crate) assumed_per_agent: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PhasePlan {
    /// None for agents outside of all phases.
    pub(crate) title: Option<String>,
    pub(crate) agents: usize,
    pub(crate) width: usize,
    pub(crate) groups: Vec<Group>,
}

/// Agents that are alike: their labels begin with the same word and they ask for the same.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Group {
    pub(crate) agents: usize,
    pub(crate) first_label: String,
    pub(crate) last_label: String,
    #[serde(flatten)]
    pub(crate) wants: Wants,
    pub(crate) prompt_chars: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wants {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) isolation: Option<String>,
    /// Whether they answer with a value.
    pub(crate) schema: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelPlan {
    pub(crate) model: Option<String>,
    pub(crate) agents: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    /// Calls that it would hit; none where that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agents: Option<usize>,
}

impl Survey {
    /// Puts together what two runs were seen to do, with and without the configured limits.
    pub(crate) fn new(
        unbound: &Played,
        configured: &Played,
        limits: &Limits,
        provider: &WithDefaults,
    ) -> Self {
        let mut requests = unbound.requests.clone();
        requests.iter_mut().for_each(|request| provider.complete(request));
        let mut models = BTreeMap::new();
        for request in &requests {
            *models.entry(request.options.model.clone()).or_default() += 1;
        }
        let error = unbound.result.error.clone();
        Self {
            name: unbound.meta.name.clone(),
            description: unbound.meta.description.clone(),
            stop_reason: unbound.result.stop_reason,
            agents: requests.len(),
            width: unbound.width,
            rounds: unbound.rounds,
            configured: Configured {
                max_concurrent_agents: limits.concurrent_agents(),
                width: configured.width,
                rounds: configured.rounds,
            },
            phases: phases(unbound, &requests),
            models: models.into_iter().map(|(model, agents)| ModelPlan { model, agents }).collect(),
            prompt_chars: requests.iter().map(prompt_chars).sum(),
            budget: limits
                .max_output_tokens
                .map(|max_output_tokens| Budget { max_output_tokens, assumed_per_agent: AGENT_TOKENS }),
            never_awaited: unbound.result.never_awaited,
            refused: refused(&requests, configured, limits, provider, error.as_ref()),
            warnings: unbound.result.warnings.clone(),
            error,
        }
    }
}

fn prompt_chars(request: &AgentRequest) -> usize {
    request.prompt.chars().count()
}

/// The phases in the order in which they are planned, then entered; agents without one first.
fn phases(played: &Played, requests: &[AgentRequest]) -> Vec<PhasePlan> {
    let mut phases: Vec<PhasePlan> = Vec::new();
    let mut index: HashMap<Option<String>, usize> = HashMap::new();
    let mut place = |phases: &mut Vec<PhasePlan>, title: Option<&str>| {
        let title = title.map(str::to_owned);
        *index.entry(title.clone()).or_insert_with(|| {
            phases.push(PhasePlan { title, agents: 0, width: 0, groups: Vec::new() });
            phases.len() - 1
        })
    };
    if requests.iter().any(|request| request.phase.is_none()) {
        place(&mut phases, None);
    }
    for phase in played.meta.phases.iter().flatten() {
        place(&mut phases, Some(&phase.title));
    }
    for event in &played.events {
        if let EventKind::Phase { title } = &event.kind {
            place(&mut phases, Some(title));
        }
    }
    for request in requests {
        let at = place(&mut phases, request.phase.as_deref());
        phases[at].agents += 1;
        phases[at].add(request);
    }
    for (title, width) in widths(&played.events) {
        let at = place(&mut phases, title.as_deref());
        phases[at].width = width;
    }
    phases
}

impl PhasePlan {
    fn add(&mut self, request: &AgentRequest) {
        let options = &request.options;
        let wants = Wants {
            agent_type: options.agent_type.clone(),
            model: options.model.clone(),
            effort: options.effort.clone(),
            isolation: options.isolation.clone(),
            schema: options.schema.is_some(),
        };
        let label = request.label.to_string();
        let alike = |group: &&mut Group| group.wants == wants && kind(&group.first_label) == kind(&label);
        match self.groups.iter_mut().find(alike) {
            Some(group) => {
                group.agents += 1;
                group.last_label = label;
                group.prompt_chars += prompt_chars(request);
            }
            None => self.groups.push(Group {
                agents: 1,
                first_label: label.clone(),
                last_label: label,
                wants,
                prompt_chars: prompt_chars(request),
            }),
        }
    }
}

/// What a label has in common with those of its like: its first word, without a number.
fn kind(label: &str) -> &str {
    label.split(|c: char| !c.is_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default()
}

/// The most agents of each phase that ran at once.
fn widths(events: &[Event]) -> HashMap<Option<String>, usize> {
    let mut running: HashMap<Option<String>, usize> = HashMap::new();
    let mut widths: HashMap<Option<String>, usize> = HashMap::new();
    for event in events {
        match &event.kind {
            EventKind::AgentStart { agent } => {
                let title = agent.phase.as_deref().map(str::to_owned);
                let now = running.entry(title.clone()).or_default();
                *now += 1;
                let width = widths.entry(title).or_default();
                *width = (*width).max(*now);
            }
            EventKind::AgentEnd { agent } => {
                let title = agent.agent.phase.as_deref().map(str::to_owned);
                let now = running.entry(title).or_default();
                *now = now.saturating_sub(1);
            }
            _ => {}
        }
    }
    widths
}

/// What the configured run would refuse, as far as it can be told.
fn refused(
    requests: &[AgentRequest],
    configured: &Played,
    limits: &Limits,
    provider: &dyn Subagents,
    known: Option<&WorkflowError>,
) -> Vec<Refusal> {
    let mut refused = options_refused(requests, provider);
    let (agents, cap) = (requests.len(), limits.max_total_agents as usize);
    if agents > cap {
        refused.push(Refusal {
            code: ErrorCode::AgentCap,
            message: format!("a run may make {cap} agent() calls (maxTotalAgents), this one makes {agents}"),
            agents: Some(agents - cap),
        });
    }
    // What happens without the limits too is the script's own affair.
    if let Some(error) =
        configured.result.error.as_ref().filter(|error| known.is_none_or(|known| known.code != error.code))
        && let Some(code) = error.code.filter(|code| *code != ErrorCode::AgentCap)
    {
        refused.push(Refusal { code, message: error.message.clone(), agents: None });
    }
    refused
}

/// Options that the provider does not honour although it would have to, and kinds of agents that nobody defines.
fn options_refused(requests: &[AgentRequest], provider: &dyn Subagents) -> Vec<Refusal> {
    let support = provider.supports();
    let mut refused = Vec::new();
    for (name, asked, honoured) in guarantees() {
        let agents = requests.iter().filter(|request| asked(request)).count();
        if agents > 0 && !honoured(&support) {
            let why = provider.why_not(name).unwrap_or_else(|| "the provider cannot give it".to_owned());
            refused.push(Refusal {
                code: ErrorCode::UnsupportedOption,
                message: format!("option {name:?}: {why}"),
                agents: Some(agents),
            });
        }
    }
    let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
    for options in requests.iter().map(|request| &request.options) {
        if let (Some(name), None, false) = (&options.agent_type, &options.definition, support.agent_type) {
            *unknown.entry(name).or_default() += 1;
        }
    }
    refused.extend(unknown.into_iter().map(|(name, agents)| Refusal {
        code: ErrorCode::AgentStart,
        message: format!("nobody defines the agentType {name:?}"),
        agents: Some(agents),
    }));
    refused
}

type Guarantee = (&'static str, fn(&AgentRequest) -> bool, fn(&Support) -> bool);

/// The options that a provider must honour or refuse.
fn guarantees() -> [Guarantee; 6] {
    [
        ("schema", |request| request.options.schema.is_some(), |support| support.schema),
        ("model", |request| request.options.model.is_some(), |support| support.model),
        ("provider", |request| request.options.provider.is_some(), |support| support.provider),
        ("isolation", |request| request.options.isolation.is_some(), |support| support.isolation),
        ("timeoutMs", |request| request.options.timeout_ms.is_some(), |support| support.timeout),
        ("retries", |request| request.options.retries.is_some(), |support| support.retries),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_alike_if_they_begin_alike() {
        for (one, other, alike) in [
            ("check file 1", "check docs", true),
            ("review:a.js", "review:b.js", true),
            ("vote-1", "vote-2", true),
            ("#1", "#2", true),
            ("check", "verify", false),
        ] {
            assert_eq!(kind(one) == kind(other), alike, "{one}, {other}");
        }
    }
}
