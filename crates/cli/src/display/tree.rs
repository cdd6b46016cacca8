//! A run as the terminal lists it: phases in their order, and the agents in them, with names fit for a terminal.
//! What is known of the run is all in its [`RunView`]. No clock, no terminal.

use std::collections::HashMap;

use fanfold::{AgentState, AgentView, FailureGroup, PhaseView, RunView, Tally};

use super::text;

/// The longest label or title that is shown, in columns. Terminals are rarely wider.
const MAX_NAME: usize = 300;

/// What there is to list of a run.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) run: &'a RunView,
    /// Planned ones first, then others in the order they started.
    pub(crate) phases: Vec<Phase<'a>>,
    /// Agents that failed for one reason, more than one of each: they are shown together.
    pub(crate) alike: Vec<&'a FailureGroup>,
    /// Where the phases of the run are in the list.
    places: Vec<usize>,
}

/// A phase.
#[derive(Debug)]
pub(crate) struct Phase<'a> {
    /// As the script has it.
    title: &'a str,
    /// What is known of it, once it has started.
    pub(crate) known: Option<&'a PhaseView>,
}

impl<'a> Tree<'a> {
    /// What there is to list of a run with these failures.
    pub(crate) fn of(run: &'a RunView, failures: &'a [FailureGroup]) -> Self {
        let planned = run.run().meta.iter().flat_map(|meta| meta.phases.iter().flatten());
        let mut tree = Self {
            run,
            phases: Vec::new(),
            alike: failures.iter().filter(|group| group.seqs.len() > 1).collect(),
            places: Vec::with_capacity(run.phases().len()),
        };
        let mut place_by_title = HashMap::new();
        for phase in planned {
            place_by_title.entry(&*phase.title).or_insert_with(|| {
                tree.phases.push(Phase { title: &phase.title, known: None });
                tree.phases.len() - 1
            });
        }
        for phase in run.phases() {
            let place = *place_by_title.entry(&phase.title).or_insert_with(|| {
                tree.phases.push(Phase { title: &phase.title, known: None });
                tree.phases.len() - 1
            });
            tree.phases[place].known = Some(phase);
            tree.places.push(place);
        }
        tree
    }

    /// The phase of an agent, by its place in the list.
    pub(crate) fn phase_of(&self, agent: &AgentView) -> Option<usize> {
        self.places.get(agent.phase? as usize).copied()
    }

    /// The agents that are shown together with others, by their index.
    pub(crate) fn are_alike(&self) -> Vec<bool> {
        let mut alike = vec![false; self.run.agents().len()];
        for seq in self.alike.iter().flat_map(|group| &group.seqs) {
            if let Some(agent) = self.run.agent((*seq).into()) {
                alike[agent.index as usize] = true;
            }
        }
        alike
    }
}

impl Phase<'_> {
    /// Its title, fit for a terminal.
    pub(crate) fn title(&self) -> String {
        name(self.title)
    }

    /// Its agents.
    pub(crate) fn agents(&self) -> Tally {
        self.known.map(|known| known.agents).unwrap_or_default()
    }

    /// How long it has taken by `now`, in milliseconds; nothing for one that was not entered.
    pub(crate) fn elapsed(&self, now: u64) -> Option<u64> {
        let known = self.known?;
        let until = if known.active { now } else { known.ended.unwrap_or_default() };
        Some(until.saturating_sub(known.began?))
    }
}

/// Milliseconds from the start of a run to `now`, or to its end.
pub(crate) fn elapsed(run: &RunView, now: u64) -> u64 {
    let run = run.run();
    run.ended.unwrap_or(now).saturating_sub(run.began.unwrap_or(now))
}

/// What an agent is called: fit for a terminal, and never empty.
pub(crate) fn label(agent: &AgentView) -> String {
    match name(&agent.label) {
        label if label.trim().is_empty() => format!("#{}", agent.seq),
        label => label,
    }
}

/// Whether an agent failed, or could not start.
pub(crate) fn has_failed(agent: &AgentView) -> bool {
    matches!(agent.state, AgentState::Failed | AgentState::Refused)
}

/// The calls that are over, and all: `69 of 200`.
pub(crate) fn progress(agents: &Tally) -> String {
    format!("{} of {}", agents.ended() + agents.refused, agents.called())
}

/// Others' words as a name on one line.
pub(crate) fn name(text: &str) -> String {
    text::cut(&text::line(text), MAX_NAME).into_owned()
}

#[cfg(test)]
mod tests {
    use fanfold::AgentOutcome::{Completed, Failed};

    use super::super::sample::{Run, planned};
    use super::*;

    #[test]
    fn a_phase_lasts_until_its_last_agent_ends() {
        let mut run = Run::of(planned("w", &["A", "B"]));
        run.phase("A").agents(1..=2, "A").at(1_000).phase("B").at(3_000).ends(1, Completed);
        let phase = |run: &Run, index: usize| {
            let view = run.view();
            let phase = &Tree::of(&view, &[]).phases[index];
            (phase.known.is_some_and(|known| known.active), phase.elapsed(9_000))
        };
        assert_eq!(phase(&run, 0), (true, Some(9_000)));
        run.at(4_000).ends(2, Failed);
        assert_eq!(phase(&run, 0), (false, Some(4_000)));
        assert_eq!(phase(&run, 1), (true, Some(8_000)));
        run.at(5_000).completed();
        assert_eq!(phase(&run, 1), (false, Some(4_000)));
    }

    #[test]
    fn a_phase_that_is_entered_again_goes_on() {
        let mut run = Run::of(planned("w", &["A"]));
        run.phase("A").at(1_000).phase("B").at(2_000).phase("A");
        let view = run.view();
        let phases = Tree::of(&view, &[]).phases;
        let active: Vec<_> = phases.iter().map(|phase| phase.known.unwrap().active).collect();
        assert_eq!(active, [true, false]);
        assert_eq!(phases[0].elapsed(5_000), Some(5_000));
    }

    #[test]
    fn planned_phases_come_first_and_others_as_they_start() {
        let mut run = Run::of(planned("w", &["A", "B", "A"]));
        run.at(500).agents(1..=1, "C").agent(2, "x", "B");
        let view = run.view();
        let tree = Tree::of(&view, &[]);
        let began = |phase: &Phase<'_>| (phase.title(), phase.known.and_then(|known| known.began));
        let expected = [("A", None), ("B", Some(500)), ("C", Some(500))];
        assert_eq!(
            tree.phases.iter().map(began).collect::<Vec<_>>(),
            expected.map(|(title, at)| (title.into(), at))
        );
        let places: Vec<_> = view.agents().iter().map(|agent| tree.phase_of(agent)).collect();
        assert_eq!(places, [Some(2), Some(1)]);
    }

    #[test]
    fn calls_that_wait_and_those_that_never_start_are_counted() {
        let mut run = Run::of(planned("w", &[]));
        (1..=5).for_each(|seq| _ = run.calls(seq, "x", "A"));
        run.agent(1, "x", "A").agent(2, "x", "A").ends(1, Completed).refuses(5, "no key");
        let view = run.view();
        assert_eq!(progress(&view.run().agents), "2 of 5");
        assert_eq!(progress(&Tree::of(&view, &[]).phases[0].agents()), "2 of 5");
    }
}
