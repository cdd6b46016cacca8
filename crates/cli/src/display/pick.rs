//! Which phases and agents are shown when the terminal has not room for all.
//!
//! Finished agents go first: the counts beside their phase tell of them. Then go the phases that are over or
//! still to come, then running agents, the youngest first. Agents that wait for their turn are only counted.

use fanfold::{AgentState, AgentView};

use super::tree::{Tree, has_failed};

/// What is shown, by place in the tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picked {
    pub(crate) phases: Vec<bool>,
    pub(crate) agents: Vec<bool>,
    /// Rows that are left.
    room: usize,
}

impl Picked {
    /// Chooses for so many rows.
    pub(crate) fn new(tree: &Tree<'_>, rows: usize) -> Self {
        let mut picked = Self {
            phases: vec![false; tree.phases.len()],
            agents: vec![false; tree.run.agents().len()],
            room: rows,
        };
        // Phases may take half the room; the rest of them comes after the agents that run.
        let phases = by_interest(tree);
        let (some, rest) = phases.split_at(phases.len().min(rows / 2));
        some.iter().for_each(|&phase| picked.phase(phase));
        picked.agents(tree, is_running, Oldest);
        rest.iter().for_each(|&phase| picked.phase(phase));
        let alike = tree.are_alike();
        let is_alone = |agent: &AgentView| !alike[agent.index as usize];
        picked.agents(tree, |agent| has_failed(agent) && is_alone(agent), Newest);
        let is_over = |agent: &AgentView| agent.ended.is_some() && agent.state != AgentState::Refused;
        picked.agents(tree, |agent| is_over(agent) && is_alone(agent), Newest);
        picked
    }

    /// Running agents and phases that are not shown.
    pub(crate) fn hidden(&self, tree: &Tree<'_>) -> (usize, usize) {
        let agents = self.agents.iter().zip(tree.run.agents());
        (
            agents.filter(|(shown, agent)| !**shown && is_running(agent)).count(),
            self.phases.iter().filter(|shown| !**shown).count(),
        )
    }

    fn phase(&mut self, place: usize) {
        if self.room > 0 && !self.phases[place] {
            self.phases[place] = true;
            self.room -= 1;
        }
    }

    fn agents(&mut self, tree: &Tree<'_>, wanted: impl Fn(&AgentView) -> bool, first: First) {
        let mut order: Vec<&AgentView> = tree.run.agents().iter().filter(|agent| wanted(agent)).collect();
        match first {
            Oldest => order.sort_by_key(|agent| agent.began),
            Newest => order.sort_by_key(|agent| std::cmp::Reverse(agent.ended)),
        }
        for agent in order {
            if self.room == 0 {
                return;
            }
            self.agent(agent.index as usize, tree.phase_of(agent));
        }
    }

    /// An agent is shown under its phase or not at all.
    fn agent(&mut self, index: usize, phase: Option<usize>) {
        let phase = phase.filter(|&phase| !self.phases[phase]);
        let rows = 1 + usize::from(phase.is_some());
        if self.agents[index] || rows > self.room {
            return;
        }
        self.agents[index] = true;
        self.room -= rows;
        if let Some(phase) = phase {
            self.phases[phase] = true;
        }
    }
}

enum First {
    Oldest,
    Newest,
}
use First::{Newest, Oldest};

fn is_running(agent: &AgentView) -> bool {
    agent.state == AgentState::Running
}

/// Active phases, then those that are over, the last one first, then those to come.
fn by_interest(tree: &Tree<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tree.phases.len()).collect();
    order.sort_by_key(|&place| match tree.phases[place].known {
        Some(phase) if phase.active => (0, phase.began.unwrap_or_default()),
        Some(phase) => (1, u64::MAX - phase.ended.unwrap_or_default()),
        None => (2, 0),
    });
    order
}
