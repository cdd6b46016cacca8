//! Which phases and agents are shown when the terminal has not room for all.
//!
//! Finished agents go first: the counts beside their phase tell of them. Then go the phases that are over or
//! still to come, then running agents, the youngest first.

use fanfold::AgentOutcome;

use super::tree::{Item, Tree};

/// What is shown, by index in the tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picked {
    pub(crate) phases: Vec<bool>,
    pub(crate) agents: Vec<bool>,
    /// Rows that are left.
    room: usize,
}

impl Picked {
    /// Chooses for so many rows.
    pub(crate) fn new(tree: &Tree, rows: usize) -> Self {
        let mut picked = Self {
            phases: vec![false; tree.phases.len()],
            agents: vec![false; tree.agents.len()],
            room: rows,
        };
        // Phases may take half the room; the rest of them comes after the agents that run.
        let phases = by_interest(tree);
        let (some, rest) = phases.split_at(phases.len().min(rows / 2));
        some.iter().for_each(|&phase| picked.phase(phase));
        picked.agents(tree, |agent| agent.end.is_none(), Oldest);
        rest.iter().for_each(|&phase| picked.phase(phase));
        picked.agents(tree, |agent| matches!(agent.end, Some((AgentOutcome::Failed, _))), Newest);
        picked.agents(tree, |agent| agent.end.is_some(), Newest);
        picked
    }

    /// Running agents and phases that are not shown.
    pub(crate) fn hidden(&self, tree: &Tree) -> (usize, usize) {
        let agents = self.agents.iter().zip(&tree.agents);
        (
            agents.filter(|(shown, agent)| !**shown && agent.end.is_none()).count(),
            self.phases.iter().filter(|shown| !**shown).count(),
        )
    }

    fn phase(&mut self, index: usize) {
        if self.room > 0 && !self.phases[index] {
            self.phases[index] = true;
            self.room -= 1;
        }
    }

    fn agents(&mut self, tree: &Tree, wanted: impl Fn(&Item) -> bool, first: First) {
        let mut order: Vec<usize> =
            (0..tree.agents.len()).filter(|&index| wanted(&tree.agents[index])).collect();
        if let Newest = first {
            order.sort_by_key(|&index| std::cmp::Reverse(tree.agents[index].end.map(|(_, at)| at)));
        }
        for index in order {
            if self.room == 0 {
                return;
            }
            self.agent(index, tree.agents[index].phase);
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

/// Active phases, then those that are over, the last one first, then those to come.
fn by_interest(tree: &Tree) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tree.phases.len()).collect();
    order.sort_by_key(|&index| {
        let phase = &tree.phases[index];
        match phase.began {
            Some(began) if phase.active => (0, began),
            Some(_) => (1, u64::MAX - phase.until),
            None => (2, 0),
        }
    });
    order
}
