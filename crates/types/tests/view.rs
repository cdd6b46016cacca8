//! The fold of a run, whatever it is told in whatever order.

use std::sync::Arc;

use fanfold_types::{
    Agent, AgentFailure, AgentOutcome, AgentProgress, AgentRetry, AgentState, AgentView, EndedAgent,
    ErrorCode, Event, EventKind, Line, Meta, ProgressKind, QueuedAgent, RefusedAgent, ResultLine, RunEnd,
    RunResult, RunState, RunView, SessionRecord, StopReason, Tally, Usage,
};
use proptest::prelude::*;

/// A run that is being written down.
struct Script {
    events: Vec<Event>,
    at: u64,
    /// Those that were called, in that order.
    agents: Vec<(Arc<Agent>, Stage)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Queued,
    Running,
    Over,
}

impl Script {
    fn new() -> Self {
        let mut script = Self { events: Vec::new(), at: 1_000, agents: Vec::new() };
        script.push(EventKind::Start { meta: Arc::new(Meta::new("demo", "a run")) });
        script
    }

    fn push(&mut self, kind: EventKind) -> &mut Self {
        let n = self.events.len() as u64 + 1;
        self.events.push(Event { kind, id: "run-1".into(), n, at: self.at });
        self
    }

    fn phase(&mut self, title: &str) -> &mut Self {
        self.push(EventKind::Phase { title: title.into() })
    }

    fn log(&mut self, message: &str) -> &mut Self {
        self.push(EventKind::Log { message: message.into() })
    }

    fn calls(&mut self, phase: Option<&str>) -> &mut Self {
        let seq = self.agents.len() as u32 + 1;
        let agent = Arc::new(Agent {
            seq,
            label: format!("agent {seq}"),
            phase: phase.map(Into::into),
            child_id: format!("child-{seq}"),
        });
        self.agents.push((agent, Stage::Queued));
        let agent = self.queued(seq as usize - 1);
        self.push(EventKind::AgentQueued { agent })
    }

    fn queued(&self, index: usize) -> QueuedAgent {
        let agent = &self.agents[index].0;
        QueuedAgent { seq: agent.seq, label: agent.label.as_str().into(), phase: agent.phase.clone() }
    }

    fn begins(&mut self, index: usize) -> &mut Self {
        self.agents[index].1 = Stage::Running;
        let agent = self.agents[index].0.clone();
        self.push(EventKind::AgentStart { agent })
    }

    fn refuses(&mut self, index: usize, reason: &str) -> &mut Self {
        self.agents[index].1 = Stage::Over;
        let agent = RefusedAgent { agent: self.queued(index), reason: reason.into() };
        self.push(EventKind::AgentRefused { agent })
    }

    fn starts(&mut self, phase: Option<&str>) -> &mut Self {
        self.calls(phase);
        self.begins(self.agents.len() - 1)
    }

    fn retries(&mut self, index: usize, wait_ms: u64) -> &mut Self {
        let seq = self.agents[index].0.seq;
        let (kind, reason) = ("server".into(), "overloaded".into());
        self.push(EventKind::AgentRetry { agent: AgentRetry { seq, attempt: 1, kind, reason, wait_ms } })
    }

    fn says(&mut self, index: usize, kind: ProgressKind, text: &str) -> &mut Self {
        let seq = self.agents[index].0.seq;
        self.push(EventKind::AgentProgress { agent: AgentProgress { seq, kind, text: text.into() } })
    }

    fn ends(&mut self, index: usize, outcome: AgentOutcome) -> &mut Self {
        let (agent, stage) = &mut self.agents[index];
        *stage = Stage::Over;
        let reason = (outcome == AgentOutcome::Failed).then(|| "no answer".into());
        let usage = Some(Usage::new(10, 2));
        let agent = EndedAgent { usage, reason, ..EndedAgent::new(agent.clone(), outcome) };
        self.push(EventKind::AgentEnd { agent })
    }

    fn end(&mut self, stop_reason: StopReason) -> &mut Self {
        for index in 0..self.agents.len() {
            if self.agents[index].1 == Stage::Running {
                self.ends(index, AgentOutcome::Cancelled);
            }
        }
        let agents_started = self.agents.len() as u32;
        let error =
            (stop_reason == StopReason::Error).then(|| ErrorCode::Deadlock.error("nothing in flight"));
        self.push(EventKind::End { result: RunEnd { stop_reason, error, agents_started } })
    }

    fn at(&mut self, at: u64) -> &mut Self {
        self.at = at;
        self
    }

    fn view(&self) -> RunView {
        fold(&self.events)
    }
}

fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> RunView {
    let mut view = RunView::default();
    for event in events {
        view.event(event);
    }
    view
}

fn result(failures: Vec<AgentFailure>) -> ResultLine {
    let mut result = RunResult::new(StopReason::Completed, None);
    result.failures = failures;
    ResultLine::new("run-1", "demo", &result, 100)
}

/// Legal logs, of a run that ended or did not.
fn logs() -> impl Strategy<Value = Vec<Event>> {
    let step = (0..11u8, 0..5usize, 0..50u64);
    (proptest::collection::vec(step, 0..60), any::<bool>()).prop_map(|(steps, ended)| {
        const PHASES: [Option<&str>; 5] = [None, Some(""), Some("Plan"), Some("Work"), Some("Judge")];
        const OUTCOMES: [AgentOutcome; 3] =
            [AgentOutcome::Completed, AgentOutcome::Failed, AgentOutcome::Cancelled];
        let mut script = Script::new();
        for (step, choice, pause) in steps {
            let at = script.at + pause;
            script.at(at);
            let first = |wanted| script.agents.iter().position(|(_, stage)| *stage == wanted);
            let (running, queued) = (first(Stage::Running), first(Stage::Queued));
            match (step, running, queued) {
                (0, ..) => script.phase(PHASES[choice].unwrap_or("Other")),
                (1, ..) => script.log("line"),
                (2 | 3, Some(index), _) => script.ends(index, OUTCOMES[choice % 3]),
                (4, Some(index), _) => script.retries(index, 500),
                (5, Some(index), _) => script.says(index, ProgressKind::Text, "a word"),
                (6, Some(index), _) => script.says(index, ProgressKind::Tool, "grep"),
                (7, _, Some(index)) => script.refuses(index, "no such program"),
                (8, _, Some(index)) => script.begins(index),
                (9, ..) => script.push(EventKind::Warning { message: "odd".into() }),
                (10, ..) => script.calls(PHASES[choice]),
                _ => script.starts(PHASES[choice]),
            };
        }
        if ended {
            script.end(StopReason::Completed);
        }
        script.events
    })
}

proptest! {
    /// Live appends, a prefix and the rest, a reader that starts over, a network that shuffles: one view.
    #[test]
    fn the_view_depends_on_what_was_told_and_not_on_the_order(
        (log, shuffled) in logs().prop_flat_map(|log| (Just(log.clone()), Just(log).prop_shuffle())),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = fold(&log);
        prop_assert_eq!(&fold(&shuffled), &whole);
        let (prefix, rest) = log.split_at(cut.index(log.len()));
        let mut resumed = fold(prefix);
        rest.iter().for_each(|event| { resumed.event(event); });
        prop_assert_eq!(&resumed, &whole);
        // A reader that lost its place tells everything again.
        let again = fold(prefix.iter().chain(&log).chain(rest));
        prop_assert_eq!(&again, &whole);
        // What was seen in between adds up to the whole.
        let mut early = fold(prefix);
        let seen = early.since(0);
        rest.iter().for_each(|event| { early.event(event); });
        let news = early.since(seen.revision);
        let mut agents = seen.agents;
        for agent in news.agents {
            match agents.get_mut(agent.index as usize) {
                Some(old) => *old = agent,
                None => agents.push(agent),
            }
        }
        prop_assert_eq!(&agents[..], whole.agents());
        prop_assert_eq!(seen.logs.len() + news.logs.len(), whole.logs().len());
        prop_assert_eq!(&news.run, whole.run());
    }

    /// Records tell less, but nothing else.
    #[test]
    fn session_records_give_the_same_run_without_times(log in logs()) {
        let mut by_records = RunView::default();
        for record in log.iter().filter_map(SessionRecord::of_event) {
            by_records.record(&record);
        }
        let by_events = fold(&log);
        prop_assert_eq!(by_records.run().state, by_events.run().state);
        let started = Tally { queued: 0, refused: 0, ..by_events.run().agents };
        prop_assert_eq!(by_records.run().agents, started);
        prop_assert_eq!(by_records.run().peak, by_events.run().peak);
        let agents = |view: &RunView| -> Vec<_> {
            let phase = |index: Option<u32>| index.map(|index| view.phases()[index as usize].title.clone());
            let started = view.agents().iter().filter(|agent| !agent.child_id.is_empty());
            let mut agents: Vec<_> =
                started.map(|agent| (agent.seq, phase(agent.phase), agent.state)).collect();
            agents.sort_by_key(|agent| agent.0);
            agents
        };
        prop_assert_eq!(agents(&by_records), agents(&by_events));
    }

    #[test]
    fn lines_survive_being_written_and_read(log in logs()) {
        let mut view = RunView::default();
        for event in &log {
            let line = Line::parse(&serde_json::to_string(event).unwrap()).unwrap();
            prop_assert!(view.line(&line));
        }
        prop_assert_eq!(view, fold(&log));
    }

    /// A run that cannot be seen is shown as if its log were over, and goes on when it is seen again.
    #[test]
    fn what_is_last_known_of_a_run_is_what_a_closed_log_says(log in logs(), cut in any::<prop::sample::Index>()) {
        let (prefix, rest) = log.split_at(cut.index(log.len()));
        let mut view = fold(prefix);
        let last_known = view.last_known_since(0);
        let mut closed = view.clone();
        closed.close();
        prop_assert_eq!(&closed.since(0).run, &last_known.run);
        prop_assert_eq!(closed.phases().len(), last_known.phases.len());
        for (phase, shown) in closed.phases().iter().zip(&last_known.phases) {
            prop_assert_eq!((phase.active, phase.ended, phase.agents), (shown.active, shown.ended, shown.agents));
        }
        let states = |agents: &[AgentView]| agents.iter().map(|agent| agent.state).collect::<Vec<_>>();
        prop_assert_eq!(states(closed.agents()), states(&last_known.agents));
        prop_assert!(!matches!(last_known.run.state, RunState::Waiting | RunState::Running));
        prop_assert_eq!((last_known.run.agents.running, last_known.run.agents.queued), (0, 0));
        rest.iter().for_each(|event| { view.event(event); });
        prop_assert_eq!(view, fold(&log));
    }

    #[test]
    fn no_line_is_too_strange(line in "\\PC{0,80}") {
        if let Ok(line) = Line::parse(&line) {
            RunView::default().line(&line);
        }
    }
}

#[test]
fn what_is_missing_in_a_file_holds_nothing_up() {
    let mut script = Script::new();
    script.log("lost").log("kept");
    let lost = script.events.remove(1);
    let mut view = script.view();
    assert_eq!(view.logs().len(), 0);
    view.skip_missing();
    assert_eq!((view.logs().len(), view.run().missing_events, view.run().state), (1, 1, RunState::Running));
    // The log goes on.
    script.push(EventKind::Log { message: "more".into() });
    let next = Event { n: 4, ..script.events[2].clone() };
    assert!(view.event(&next) && !view.event(&lost));
    assert_eq!(view.logs().len(), 2);
}

#[test]
fn failures_are_told_by_their_reasons_and_only_when_there_are_new_ones() {
    let mut script = Script::new();
    script.calls(None).calls(None).refuses(0, "no key").refuses(1, "no key");
    let mut view = script.view();
    let changes = view.since(0);
    let groups: Vec<_> = changes.failures.iter().flatten().map(|group| group.seqs.clone()).collect();
    assert_eq!(groups, [[1, 2]]);
    script.log("unrelated");
    view.event(&script.events[script.events.len() - 1]);
    assert_eq!(view.since(changes.revision).failures, None);
}

#[test]
fn an_agent_is_quiet_after_a_while_and_not_while_it_waits_to_be_tried_again() {
    let mut script = Script::new();
    script.at(1_000).calls(None).at(2_000).begins(0);
    let shown = |script: &Script, now: u64| {
        let view = script.view();
        let agent = &view.agents()[0];
        (agent.quiet_for(now), agent.tries_again_in(now).map(|(wait, _)| wait))
    };
    assert_eq!(shown(&script, 9_999), (None, None));
    assert_eq!(shown(&script, 10_000), (Some(8_000), None));
    script.at(10_500).says(0, ProgressKind::Stderr, "at work");
    assert_eq!(shown(&script, 12_000), (None, None));
    script.at(20_000).retries(0, 30_000);
    assert_eq!(shown(&script, 20_000), (None, Some(30_000)));
    assert_eq!(shown(&script, 49_999), (None, Some(1)));
    // The next attempt has begun; nothing is heard of it.
    assert_eq!(shown(&script, 57_000), (None, None));
    assert_eq!(shown(&script, 58_500), (Some(8_500), None));
    script.at(60_000).ends(0, AgentOutcome::Failed);
    assert_eq!(shown(&script, 99_000), (None, None));
    // A clock that is behind.
    assert_eq!(shown(&script, 0), (None, None));
}

#[test]
fn a_call_that_waits_for_its_turn_is_not_quiet() {
    let mut script = Script::new();
    script.calls(None);
    assert_eq!(script.view().agents()[0].quiet_for(u64::MAX), None);
}

#[test]
fn a_phase_that_is_only_planned_is_not_an_empty_one() {
    let mut script = Script::new();
    script.phase("Entered").starts(Some("")).starts(None);
    let view = script.view();
    let phases: Vec<_> =
        view.phases().iter().map(|phase| (&*phase.title, phase.agents.running, phase.active)).collect();
    assert_eq!(phases, [("Entered", 0, true), ("", 1, true)]);
    assert_eq!(view.agents()[1].phase, None);
}

#[test]
fn a_phase_lasts_until_its_last_agent_ends() {
    let mut script = Script::new();
    script.phase("A").starts(Some("A")).at(2_000).phase("B");
    assert!(script.view().phases()[0].active);
    script.at(3_000).ends(0, AgentOutcome::Failed);
    let view = script.view();
    assert_eq!((view.phases()[0].active, view.phases()[0].ended), (false, Some(3_000)));
    assert_eq!(view.run().current_phase, Some(1));
}

#[test]
fn a_phase_is_not_over_while_calls_of_it_wait() {
    let mut script = Script::new();
    script.phase("A").calls(Some("A")).calls(Some("A")).phase("B").begins(0);
    script.at(2_000).ends(0, AgentOutcome::Completed);
    let view = script.view();
    assert!(view.phases()[0].active);
    assert_eq!(view.phases()[0].agents, Tally { queued: 1, completed: 1, ..Tally::default() });
    script.at(3_000).refuses(1, "no such program");
    let view = script.view();
    assert_eq!((view.phases()[0].active, view.phases()[0].ended), (false, Some(3_000)));
    assert_eq!(view.agents()[1].state, AgentState::Refused);
    assert_eq!(view.agents()[1].reason.as_deref(), Some("no such program"));
    let failure = AgentFailure::new(2, "agent 2", "no such program");
    assert_eq!(view.failures(), [failure]);
}

#[test]
fn calls_that_wait_when_the_run_ends_never_start() {
    let mut script = Script::new();
    script.calls(None).end(StopReason::Cancelled);
    let view = script.view();
    assert_eq!((view.agents()[0].state, view.agents()[0].reason.as_deref()), (AgentState::Refused, None));
    assert!(view.failures().is_empty());
}

#[test]
fn an_agent_shows_when_it_was_heard_and_what_it_said_last() {
    let mut script = Script::new();
    script.starts(None).at(2_000).says(0, ProgressKind::Tool, "grep").at(3_000);
    script.says(0, ProgressKind::Text, &"é".repeat(500)).says(0, ProgressKind::Text, "the end");
    let view = script.view();
    let agent = &view.agents()[0];
    assert_eq!((agent.heard, agent.tool.as_deref()), (Some(3_000), Some("grep")));
    assert_eq!(agent.said.chars().count(), 400);
    assert!(agent.said.starts_with('é') && agent.said.ends_with("the end"));
    // Thinking is a sign of life, and not an answer.
    script.at(4_000).says(0, ProgressKind::Reasoning, "hmm");
    let view = script.view();
    let agent = &view.agents()[0];
    assert!(agent.heard == Some(4_000) && agent.said.ends_with("the end"));
}

#[test]
fn an_agent_that_is_tried_again_says_why_until_it_is_heard_again() {
    let mut script = Script::new();
    script.starts(None).says(0, ProgressKind::Text, "half of").at(2_000).retries(0, 500);
    let view = script.view();
    let agent = &view.agents()[0];
    assert_eq!(agent.retry.as_ref().map(|retry| (retry.until, &*retry.reason)), Some((2_500, "overloaded")));
    assert_eq!(
        (agent.retries, agent.said.as_str()),
        (1, ""),
        "what an attempt said that failed is no answer"
    );
    script.at(3_000).says(0, ProgressKind::Text, "whole");
    let view = script.view();
    let agent = &view.agents()[0];
    assert_eq!((agent.retries, agent.said.as_str(), &agent.retry), (1, "whole", &None));
}

#[test]
fn warnings_are_told_as_they_come() {
    let mut script = Script::new();
    script.push(EventKind::Warning { message: "agent() option \"effort\" is ignored".into() });
    assert_eq!(script.view().run().warnings, ["agent() option \"effort\" is ignored"]);
}

#[test]
fn a_log_without_an_end_was_interrupted_once_it_is_over() {
    let mut script = Script::new();
    script.starts(None).starts(None).ends(0, AgentOutcome::Completed);
    let mut view = script.view();
    assert_eq!(view.run().state, RunState::Running);
    view.close();
    assert_eq!(view.run().state, RunState::Interrupted);
    let states: Vec<_> = view.agents().iter().map(|agent| agent.state).collect();
    assert_eq!(states, [AgentState::Completed, AgentState::Interrupted]);
    assert_eq!((view.run().agents.running, view.run().agents.interrupted), (0, 1));
}

#[test]
fn a_log_with_a_hole_shows_what_is_left_once_it_is_over() {
    let mut script = Script::new();
    script.starts(None).log("lost").log("kept").end(StopReason::Completed);
    let mut view = fold(script.events.iter().filter(|event| event.n != 4));
    assert_eq!((view.run().state, view.logs().len()), (RunState::Running, 0));
    view.close();
    assert_eq!((view.run().state, view.run().missing_events), (RunState::Completed, 1));
    assert_eq!(view.logs().next().map(|log| &*log.message), Some("kept"));
}

#[test]
fn records_before_their_run_start_wait_for_it() {
    let mut script = Script::new();
    script.starts(Some("A")).ends(0, AgentOutcome::Completed);
    let records: Vec<_> = script.events.iter().filter_map(SessionRecord::of_event).collect();
    let mut view = RunView::default();
    for record in &records[1..] {
        assert!(view.record(record));
    }
    assert_eq!((view.run().state, view.agents().len()), (RunState::Waiting, 0));
    view.record(&records[0]);
    assert_eq!(view.run().state, RunState::Running);
    assert_eq!(view.agents()[0].state, AgentState::Completed);
}

#[test]
fn a_view_is_of_one_run() {
    let mut script = Script::new();
    script.log("mine");
    let mut view = script.view();
    let before = view.clone();
    let other = Event { id: "run-2".into(), n: 3, ..script.events[1].clone() };
    assert!(!view.event(&other));
    assert_eq!(view, before);
}

#[test]
fn the_result_says_why_agents_failed_whenever_it_comes() {
    let mut script = Script::new();
    script.starts(None).ends(0, AgentOutcome::Failed).end(StopReason::Completed);
    let failures = vec![AgentFailure::new(1, "agent 1", "no answer")];
    let mut late = script.view();
    assert!(late.result(&result(failures.clone())));
    let mut early = RunView::default();
    early.result(&result(failures));
    script.events.iter().for_each(|event| assert!(early.event(event)));
    for view in [late, early] {
        assert_eq!(view.agents()[0].reason.as_deref(), Some("no answer"));
        assert_eq!(view.run().state, RunState::Completed);
        assert_eq!(view.failures().len(), 1);
    }
}

#[test]
fn what_agents_cost_adds_up_until_the_result_says_it() {
    let mut script = Script::new();
    script.starts(None).starts(None).ends(0, AgentOutcome::Completed).ends(1, AgentOutcome::Failed);
    let mut view = script.view();
    assert_eq!(view.run().usage, Some(Usage::new(20, 4)));
    assert_eq!(view.agents()[0].usage, Some(Usage::new(10, 2)));
    let mut said = result(Vec::new());
    said.usage = Some(Usage::new(25, 5));
    view.result(&said);
    assert_eq!(view.run().usage, Some(Usage::new(25, 5)));
}

#[test]
fn a_run_that_could_not_start_is_an_error() {
    let mut view = RunView::default();
    view.result(&ResultLine::refused(&ErrorCode::ScriptParse.error("unexpected token")));
    assert_eq!(view.run().state, RunState::Error);
    assert_eq!(view.run().error.as_ref().and_then(|error| error.code), Some(ErrorCode::ScriptParse));
}

#[test]
fn logs_are_bounded_and_say_how_many_are_gone() {
    let mut script = Script::new();
    for _ in 0..2_010 {
        script.log("line");
    }
    let view = script.view();
    assert_eq!((view.logs().len(), view.run().logged, view.run().forgotten_logs), (2_000, 2_010, 10));
    let long = "é".repeat(20_000);
    let mut script = Script::new();
    for _ in 0..100 {
        script.log(&long);
    }
    let view = script.view();
    let bytes: usize = view.logs().map(|log| log.message.len()).sum();
    assert!(bytes <= 1 << 20, "{bytes} bytes are kept");
    assert!(view.logs().all(|log| log.message.ends_with("é…")));
}

#[test]
fn events_that_a_later_version_tells_hold_nothing_up() {
    let mut script = Script::new();
    let start = serde_json::to_string(&script.events[0]).unwrap();
    script.log("a").log("after");
    let later = r#"{"type": "workflow/weather", "id": "run-1", "n": 2, "at": 5, "sun": true}"#;
    let last = serde_json::to_string(&script.events[2]).unwrap();
    let mut view = RunView::default();
    for line in [last.as_str(), later, &start] {
        assert!(view.line(&Line::parse(line).unwrap()));
    }
    assert_eq!(view.logs().next().map(|log| &*log.message), Some("after"));
}

#[test]
fn lines_of_others_are_nobodys_fault_and_torn_ones_are() {
    for other in [r#"{"type": "message", "text": "hi"}"#, "{}", r#"{"type": 5}"#] {
        assert!(matches!(Line::parse(other), Ok(Line::Other)), "{other}");
    }
    for torn in ["", "[]", r#"{"type": "workflow/log", "id": "r""#, r#"{"type": "workflow/log", "id": "r"}"#]
    {
        assert!(Line::parse(torn).is_err(), "{torn}");
    }
    let deep = format!(
        r#"{{"type": "workflow/log", "id": "r", "n": 1, "at": 1, "message": "m", "x": {}}}"#,
        "[".repeat(100_000)
    );
    assert!(Line::parse(&deep).is_err());
}
