//! The books, driven event by event: no sandbox, no runtime, no time.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_types::{Event, RecordChecker, SessionRecord};
use proptest::prelude::*;

use super::*;
use crate::subagents::AgentOptions;

/// Books with what they have decided so far.
struct Test {
    books: Books<u32>,
    events: Vec<EventKind>,
    answers: BTreeMap<u32, Result<Reply, WorkflowError>>,
    stopped: bool,
}

impl Test {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let activity = Arc::new(RunActivity::new(true));
        let books = Books::open("r".into(), None, Arc::new(Meta::new("m", "d")), limits, activity);
        Self { books, events: Vec::new(), answers: BTreeMap::new(), stopped: false }
    }

    /// Calls `agent()`; the prompt's number is the reply's.
    fn call(&mut self, n: u32) -> Result<(), WorkflowError> {
        self.books.admit(10)?;
        self.books.call(ScopeId::ROOT, format!("p{n}"), AgentOptions::default(), n)
    }

    fn start(&mut self) -> Option<u32> {
        self.books.start_next().map(|(_, request)| request.seq)
    }

    fn started(&mut self, seq: u32) {
        self.books.child_started(seq, format!("c{seq}"));
    }

    fn returns(&mut self, value: &str) {
        let outcome = Ok(RawValue::from_string(value.to_owned()).unwrap());
        self.books.script_ended(ScriptEnd { outcome, loose_ends: LooseEnds::default() });
    }

    fn throws(&mut self, code: ErrorCode) {
        self.books.script_ended(ScriptEnd::stopped(code.error("e")));
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.books.next_effect() {
            match effect {
                Effect::Emit(kind) => self.events.push(kind),
                Effect::Answer(to, answer) => {
                    assert!(self.answers.insert(to, answer).is_none(), "call {to} is answered twice");
                }
                Effect::StopChildren(_) => self.stopped = true,
            }
        }
    }

    fn close(&mut self) -> RunResult {
        let result = self.books.close();
        self.carry_out();
        result
    }

    /// The events in short: `start`, `phase t`, `log m`, `+1`, `-1 completed`, `end`. Warnings and calls that wait
    /// are left out.
    fn story(&mut self) -> Vec<String> {
        self.carry_out();
        self.events
            .iter()
            .filter(|event| !matches!(event, EventKind::AgentQueued { .. } | EventKind::Warning { .. }))
            .map(|event| match event {
                EventKind::Start { .. } => "start".into(),
                EventKind::Phase { title } => format!("phase {title}"),
                EventKind::Log { message } => format!("log {message}"),
                EventKind::AgentStart { agent } => format!("+{}", agent.seq),
                EventKind::AgentEnd { agent } => {
                    format!("-{} {:?}", agent.agent.seq, agent.outcome).to_lowercase()
                }
                EventKind::AgentRefused { agent } => format!("refused {}", agent.agent.seq),
                EventKind::End { result } => format!("end {:?}", result.stop_reason).to_lowercase(),
                other => format!("{other:?}"),
            })
            .collect()
    }
}

fn text(text: &str) -> ChildEnd {
    ChildEnd::Completed(Reply::Text(text.into()))
}

#[test]
fn a_run_is_told_from_start_to_end() {
    let mut test = Test::new();
    test.books.phase(ScopeId::ROOT, "one").unwrap();
    test.call(1).unwrap();
    assert_eq!(test.start(), Some(1));
    test.started(1);
    test.books.log("hello".into()).unwrap();
    test.books.child_ended(1, text("a"));
    test.returns("42");
    assert!(test.books.is_done());
    let result = test.close();
    assert_eq!(
        (result.stop_reason, result.value.get(), result.agents_started),
        (StopReason::Completed, "42", 1)
    );
    assert_eq!(test.answers[&1], Ok(Reply::Text("a".into())));
    assert_eq!(test.story(), ["start", "phase one", "+1", "log hello", "-1 completed", "end completed"]);
}

#[test]
fn calls_start_in_order_and_belong_to_the_phase_they_were_made_in() {
    let mut test = Test::new();
    test.call(1).unwrap();
    test.books.phase(ScopeId::ROOT, "two").unwrap();
    test.call(2).unwrap();
    let options =
        AgentOptions { phase: Some("own".into()), label: Some("L".into()), ..AgentOptions::default() };
    test.books.call(ScopeId::ROOT, "p".into(), options, 3).unwrap();
    for seq in 1..=3 {
        assert_eq!(test.start(), Some(seq));
        test.started(seq);
    }
    assert!(!test.books.wants_slot());
    test.carry_out();
    let agents: Vec<_> = test
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::AgentStart { agent } => Some((agent.label.as_str(), agent.phase.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(agents, [("p1", None), ("p2", Some("two")), ("L", Some("own"))]);
}

#[test]
fn the_default_label_is_the_first_line_cut_to_48_characters() {
    assert_eq!(default_label("one\ntwo"), "one");
    assert_eq!(default_label(&"é".repeat(48)), "é".repeat(48));
    assert_eq!(default_label(&format!("{}🌍🌍", "a".repeat(47))), format!("{}…", "a".repeat(47)));
    assert_eq!(default_label("\nx"), "");
}

#[test]
fn caps_refuse_calls_that_then_never_start() {
    let limits = Limits { max_total_agents: 2, max_request_bytes: 25, ..Limits::default() };
    let mut test = Test::with(limits);
    let empty = test.books.call(ScopeId::ROOT, String::new(), AgentOptions::default(), 0).unwrap_err();
    assert_eq!(empty.code, Some(ErrorCode::InvalidArgument));
    test.call(1).unwrap();
    let error = test.books.admit(16).unwrap_err();
    assert_eq!(error.code, Some(ErrorCode::OutputLimit));
    test.call(2).unwrap();
    assert_eq!(test.call(3).unwrap_err().code, Some(ErrorCode::AgentCap));
    assert_eq!((test.start(), test.start(), test.start()), (Some(1), Some(2), None));
    assert_eq!(test.close().agents_started, 2);
}

#[test]
fn narration_is_bounded_in_number_and_size() {
    let mut test =
        Test::with(Limits { max_narration_events: 3, max_narration_bytes: 10, ..Limits::default() });
    assert_eq!(test.books.phase(ScopeId::ROOT, "").unwrap_err().code, Some(ErrorCode::InvalidArgument));
    test.books.log(String::new()).unwrap();
    test.books.phase(ScopeId::ROOT, "12345").unwrap();
    assert_eq!(test.books.log("123456".into()).unwrap_err().code, Some(ErrorCode::OutputLimit));
    test.books.log("12345".into()).unwrap();
    assert_eq!(test.books.log(String::new()).unwrap_err().code, Some(ErrorCode::OutputLimit));
    assert_eq!(test.story(), ["start", "log ", "phase 12345", "log 12345"]);
}

#[test]
fn a_start_that_fails_is_refused_and_has_no_other_events() {
    let mut test = Test::new();
    test.call(1).unwrap();
    test.start();
    test.books.start_failed(1, "no");
    test.throws(ErrorCode::AgentStart);
    let result = test.close();
    assert_eq!((result.agents_started, result.failures[0].reason.as_str()), (1, "no"));
    assert_eq!(test.answers[&1].as_ref().unwrap_err().code, Some(ErrorCode::AgentStart));
    assert_eq!(test.story(), ["start", "refused 1", "end error"]);
}

#[test]
fn failures_are_listed_with_their_reasons() {
    let mut test = Test::new();
    for n in 1..=3 {
        test.call(n).unwrap();
        test.start();
        test.started(n);
    }
    test.books.child_ended(2, ChildEnd::Failed("bad".into()));
    test.books.child_ended(1, ChildEnd::Broken("x".repeat(10_000)));
    test.books.child_ended(3, ChildEnd::Cancelled);
    test.returns("[]");
    let result = test.close();
    let failures: Vec<_> =
        result.failures.iter().map(|f| (f.seq, f.label.as_str(), f.reason.len())).collect();
    assert_eq!(failures[..2], [(2, "p2", 3), (1, "p1", TEXT_CHARS + '…'.len_utf8())]);
    assert_eq!((failures.len(), failures[2].0), (3, 3), "a child that stopped by itself is a failure too");
    assert_eq!(test.answers[&2], Ok(Reply::None));
    assert_eq!(test.answers[&1].as_ref().unwrap_err().code, Some(ErrorCode::AgentResult));
    assert_eq!(test.answers[&3], Ok(Reply::None));
}

#[test]
fn after_a_fatal_end_nothing_starts_any_more() {
    let mut test = Test::new();
    for n in 1..=4 {
        test.call(n).unwrap();
    }
    for seq in 1..=2 {
        assert_eq!(test.start(), Some(seq));
        test.started(seq);
    }
    test.books.child_ended(1, ChildEnd::Fatal("the key is refused".into()));
    assert!(!test.books.wants_slot(), "what waits never starts");
    test.carry_out();
    let code = |answer: &Result<Reply, WorkflowError>| answer.as_ref().unwrap_err().code;
    assert_eq!(code(&test.answers[&1]), Some(ErrorCode::AgentResult));
    let refusal = "no more agents start, since agent 1 found: the key is refused";
    for n in 3..=4 {
        assert_eq!(test.answers[&n], Err(ErrorCode::AgentStart.error(refusal)));
    }
    assert_eq!(test.call(5).unwrap_err(), ErrorCode::AgentStart.error(refusal));
    // What runs goes on to its own end.
    test.books.child_ended(2, text("a"));
    test.throws(ErrorCode::AgentResult);
    assert!(test.books.is_done());
    let result = test.close();
    assert_eq!(result.agents_started, 4);
    let failures: Vec<_> = result.failures.iter().map(|f| (f.seq, f.reason.as_str())).collect();
    assert_eq!(failures, [(1, "the key is refused"), (3, refusal), (4, refusal)]);
    let story = ["start", "+1", "+2", "-1 failed", "refused 3", "refused 4", "-2 completed", "end error"];
    assert_eq!(test.story(), story);
}

#[test]
fn a_used_up_budget_refuses_what_waits_and_what_comes() {
    let mut test = Test::with(Limits { max_output_tokens: Some(10), ..Limits::default() });
    for n in 1..=3 {
        test.call(n).unwrap();
    }
    for seq in 1..=2 {
        test.start();
        test.started(seq);
    }
    test.books.child_used(1, Usage::new(1000, 9));
    test.books.child_ended(1, text("a"));
    assert_eq!((test.books.spent(), test.books.wants_slot()), (9, true));
    test.books.child_used(2, Usage::new(0, 2));
    test.books.child_ended(2, text("b"));
    test.carry_out();
    assert_eq!(test.answers[&2], Ok(Reply::Text("b".into())), "who spent it keeps its answer");
    let error = test.answers[&3].clone().unwrap_err();
    assert_eq!(error.code, Some(ErrorCode::AgentCap));
    assert!(error.message.contains("budget") && error.message.contains("11 are spent"), "{error}");
    assert_eq!(test.call(4).unwrap_err(), error);
}

#[test]
fn a_workflow_inside_has_a_phase_and_children_of_its_own() {
    let mut test = Test::with(Limits { max_nested_workflows: 3, ..Limits::default() });
    test.books.phase(ScopeId::ROOT, "outer").unwrap();
    let inner = test.books.open_scope(ScopeId::ROOT, 10).unwrap();
    test.books.call(inner, "in".into(), AgentOptions::default(), 1).unwrap();
    test.books.phase(inner, "inner").unwrap();
    test.books.call(inner, "in".into(), AgentOptions::default(), 2).unwrap();
    test.call(3).unwrap();
    let asked: Vec<_> = (0..2).map(|_| test.books.start_next().unwrap()).collect();
    let phases: Vec<_> = asked.iter().map(|(scope, request)| (*scope, request.phase.as_deref())).collect();
    assert_eq!(phases, [(inner, Some("outer")), (inner, Some("inner"))]);
    test.started(1);
    // It ends while one of its children runs and the other starts: both are no longer wanted.
    test.books.close_scope(
        inner,
        LooseEnds { never_awaited: 1, lost_calls: Some("lost".into()), errors: vec!["x".into()] },
    );
    test.books.close_scope(inner, LooseEnds { never_awaited: 1, ..LooseEnds::default() });
    test.started(2);
    test.books.child_ended(1, ChildEnd::Failed("stopped".into()));
    test.books.child_ended(2, ChildEnd::Cancelled);
    assert_eq!(test.start(), Some(3), "the others go on");
    test.started(3);
    test.books.child_ended(3, text("c"));
    test.returns("1");
    let result = test.close();
    assert_eq!((result.failures.len(), result.never_awaited, result.agents_started), (0, 1, 3));
    assert_eq!(
        test.story(),
        [
            "start",
            "phase outer",
            "phase inner",
            "+1",
            "+2",
            "-1 cancelled",
            "-2 cancelled",
            "+3",
            "-3 completed",
            "end completed"
        ]
    );
}

#[test]
fn workflows_inside_have_an_end_in_depth_and_number() {
    let mut test = Test::with(Limits { max_nested_workflows: 3, ..Limits::default() });
    let second = test.books.open_scope(ScopeId::ROOT, 0).unwrap();
    let third = test.books.open_scope(second, 0).unwrap();
    assert_eq!(test.books.open_scope(third, 0).unwrap_err().code, Some(ErrorCode::InvalidArgument));
    test.books.close_scope(second, LooseEnds::default());
    assert_eq!(test.books.open_scope(second, 0).unwrap_err().code, Some(ErrorCode::Cancelled));
    test.books.open_scope(ScopeId::ROOT, 0).unwrap();
    assert_eq!(test.books.open_scope(ScopeId::ROOT, 0).unwrap_err().code, Some(ErrorCode::AgentCap));
    test.books.cancel("stop");
    assert_eq!(test.books.open_scope(ScopeId::ROOT, 0).unwrap_err().code, Some(ErrorCode::Cancelled));
}

#[test]
fn what_children_cost_is_told_with_their_ends_and_together() {
    let mut test = Test::new();
    for n in 1..=4 {
        test.call(n).unwrap();
        test.start();
        test.started(n);
    }
    test.books.child_used(1, Usage::new(10, 1));
    test.books.child_ended(1, text("a"));
    test.books.child_used(2, Usage::new(20, 2));
    test.books.child_ended(2, ChildEnd::Failed("f".into()));
    test.books.child_ended(3, text("says nothing of it"));
    test.returns("1");
    test.books.child_used(4, Usage::new(30, 3));
    test.books.child_ended(4, ChildEnd::Cancelled);
    assert_eq!(test.close().usage, Some(Usage::new(60, 6)));
    let usages = test.events.iter().filter_map(|event| match event {
        EventKind::AgentEnd { agent } => Some(agent.usage.map(|usage| usage.output_tokens)),
        _ => None,
    });
    assert_eq!(usages.collect::<Vec<_>>(), [Some(1), Some(2), None, Some(3)]);
    assert_eq!(Test::new().close().usage, None, "nobody said anything");
}

#[test]
fn a_cancelled_run_never_reports_completed() {
    let mut test = Test::new();
    for n in 1..=3 {
        test.call(n).unwrap();
    }
    for seq in 1..=2 {
        test.start();
        test.started(seq);
    }
    test.books.cancel("first");
    test.books.cancel("second");
    test.carry_out();
    assert!(test.stopped);
    for n in 1..=3 {
        assert_eq!(test.answers[&n].as_ref().unwrap_err().message, "first");
    }
    assert_eq!(test.start(), None, "what has not started never will");
    assert_eq!(test.call(4).unwrap_err().code, Some(ErrorCode::Cancelled));
    assert_eq!(test.books.log("x".into()).unwrap_err().code, Some(ErrorCode::Cancelled));
    test.books.child_ended(1, text("just made it"));
    test.books.child_ended(2, ChildEnd::Failed("killed".into()));
    test.returns("1");
    assert!(test.books.is_done());
    let result = test.close();
    assert_eq!((result.stop_reason, result.value.get()), (StopReason::Cancelled, "null"));
    assert_eq!(result.error.unwrap().message, "first");
    assert!(result.failures.is_empty(), "being told to stop is no failure");
    assert_eq!(test.story(), ["start", "+1", "+2", "-1 completed", "-2 cancelled", "end cancelled"]);
}

#[test]
fn cancelling_after_the_script_ended_changes_nothing() {
    let mut test = Test::new();
    test.call(1).unwrap();
    test.start();
    test.started(1);
    test.returns("1");
    assert!(!test.books.is_done(), "the child is awaited");
    test.books.cancel("late");
    test.books.child_ended(1, ChildEnd::Cancelled);
    assert!(test.books.is_done());
    assert_eq!(test.close().stop_reason, StopReason::Completed);
    assert_eq!(test.story(), ["start", "+1", "-1 cancelled", "end completed"]);
}

#[test]
fn a_child_that_starts_after_the_cancellation_is_not_announced() {
    let mut test = Test::new();
    test.call(1).unwrap();
    test.start();
    test.books.cancel("c");
    test.started(1);
    test.books.child_ended(1, text("a"));
    test.throws(ErrorCode::Cancelled);
    test.close();
    assert_eq!(test.story(), ["start", "end cancelled"]);
}

#[test]
fn a_child_that_starts_after_the_script_ended_is_announced_and_paired() {
    let mut test = Test::new();
    test.call(1).unwrap();
    test.start();
    test.returns("1");
    test.started(1);
    test.close();
    assert_eq!(test.story(), ["start", "+1", "-1 cancelled", "end completed"]);
}

#[test]
fn what_a_person_should_know_is_said_once() {
    let mut test = Test::new();
    test.books.warn("w");
    test.books.warn("w");
    let outcome = Ok(RawValue::NULL.to_owned());
    test.books.script_ended(ScriptEnd {
        outcome,
        loose_ends: LooseEnds {
            never_awaited: 2,
            lost_calls: Some("two are lost".into()),
            errors: vec!["Error: x".into()],
        },
    });
    let result = test.close();
    assert_eq!(result.warnings, ["w", "two are lost", "Error: x"]);
    test.carry_out();
    let warned = test.events.iter().filter(|event| matches!(event, EventKind::Warning { .. })).count();
    assert_eq!(warned, 3);
    assert_eq!(result.never_awaited, 2);
}

/// Something that a script, a child, a provider or a caller does. Numbers are taken modulo what exists.
#[derive(Clone, Debug)]
enum Action {
    Call,
    Phase,
    Log,
    Slot,
    Started(u32),
    StartFailed(u32),
    Ended(u32, ChildEnd),
    Cancel,
    Return,
    Throw,
}

fn action() -> impl Strategy<Value = Action> {
    let seq = 0u32..6;
    prop_oneof![
        4 => Just(Action::Call),
        1 => Just(Action::Phase),
        1 => Just(Action::Log),
        4 => Just(Action::Slot),
        4 => seq.clone().prop_map(Action::Started),
        1 => seq.clone().prop_map(Action::StartFailed),
        2 => seq.clone().prop_map(|seq| Action::Ended(seq, text("a"))),
        1 => seq.clone().prop_map(|seq| Action::Ended(seq, ChildEnd::Failed("f".into()))),
        1 => seq.clone().prop_map(|seq| Action::Ended(seq, ChildEnd::Broken("b".into()))),
        1 => seq.clone().prop_map(|seq| Action::Ended(seq, ChildEnd::Fatal("q".into()))),
        1 => seq.prop_map(|seq| Action::Ended(seq, ChildEnd::Cancelled)),
        1 => Just(Action::Cancel),
        1 => Just(Action::Return),
        1 => Just(Action::Throw),
    ]
}

proptest! {
    /// Whatever happens, in whatever order: the story is legal, and there is one end.
    #[test]
    fn every_interleaving_leaves_legal_books(actions in prop::collection::vec(action(), 0..60)) {
        let mut test = Test::with(Limits { max_total_agents: 5, ..Limits::default() });
        let (mut next, mut first_end, mut accepted) = (0, None, BTreeSet::new());
        let mut told_before_cancel = None;
        for action in actions {
            match action {
                Action::Call => {
                    next += 1;
                    if test.call(next).is_ok() {
                        accepted.insert(next);
                    }
                }
                Action::Phase => drop(test.books.phase(ScopeId::ROOT, "p")),
                Action::Log => drop(test.books.log("l".into())),
                Action::Slot => drop(test.start()),
                Action::Started(seq) => test.started(seq),
                Action::StartFailed(seq) => test.books.start_failed(seq, "s"),
                // An executor reports the end of what it started alone.
                Action::Ended(seq, end) => {
                    if matches!(test.books.calls.get(&seq), Some(call) if matches!(call.stage, Stage::Running(_) | Stage::Unannounced)) {
                        test.books.child_ended(seq, end);
                    }
                }
                Action::Cancel => {
                    if first_end.is_none() {
                        first_end = Some(StopReason::Cancelled);
                        test.carry_out();
                        told_before_cancel = Some(test.events.len());
                    }
                    test.books.cancel("c");
                }
                Action::Return => { first_end.get_or_insert(StopReason::Completed); test.returns("1"); }
                Action::Throw => { first_end.get_or_insert(StopReason::Error); test.throws(ErrorCode::TimeLimit); }
            }
        }
        let result = test.close();
        prop_assert_eq!(result.stop_reason, first_end.unwrap_or(StopReason::Error));
        prop_assert_eq!(result.error.is_some(), result.stop_reason != StopReason::Completed);
        prop_assert_eq!(result.agents_started as usize, accepted.len());
        prop_assert!(test.books.is_done());

        // First, last, once.
        let story = test.story();
        prop_assert_eq!(&story[0], "start");
        prop_assert_eq!(story.iter().filter(|line| line.starts_with("end ") || *line == "start").count(), 2);
        prop_assert!(story[story.len() - 1].starts_with("end "));
        // The record checker knows the rules of pairing.
        let mut checker = RecordChecker::default();
        for kind in test.events.clone() {
            let event = Event { kind, id: "r".into(), n: 1, at: 0 };
            let Some(record) = SessionRecord::of_event(&event) else { continue };
            prop_assert_eq!(checker.check(&record), Ok(()));
        }
        // Nothing but ends after a cancellation.
        if let Some(told) = told_before_cancel {
            let late = |event: &EventKind| !matches!(event, EventKind::AgentEnd { .. } | EventKind::End { .. });
            prop_assert!(!test.events[told..].iter().any(late));
        }
        if result.stop_reason == StopReason::Cancelled {
            for n in &accepted {
                prop_assert!(test.answers.contains_key(n), "call {} waits for ever", n);
            }
        }
    }
}

/// What each actor of a small run does, in its own order. The scheduler below tries every way to interleave them.
fn actors() -> Vec<Vec<Action>> {
    let child = |seq| vec![Action::Slot, Action::Started(seq), Action::Ended(seq, text("a"))];
    vec![
        vec![Action::Call, Action::Call, Action::Return],
        child(1),
        vec![Action::Slot, Action::StartFailed(2)],
        vec![Action::Cancel],
    ]
}

/// Every interleaving of a script with two calls, a child that answers, one that fails to start, and a caller who
/// cancels: 5,040 schedules, each ending once, with nobody left waiting.
#[test]
fn every_schedule_of_a_small_run_ends_once_and_leaves_nobody_waiting() {
    fn explore(positions: &mut [usize], schedule: &mut Vec<usize>, count: &mut usize) {
        let actors = actors();
        if positions.iter().zip(&actors).all(|(position, actor)| *position == actor.len()) {
            *count += 1;
            play(schedule, &actors);
            return;
        }
        for actor in 0..actors.len() {
            if positions[actor] < actors[actor].len() {
                positions[actor] += 1;
                schedule.push(actor);
                explore(positions, schedule, count);
                schedule.pop();
                positions[actor] -= 1;
            }
        }
    }
    fn play(schedule: &[usize], actors: &[Vec<Action>]) {
        let mut test = Test::new();
        let mut actors: Vec<_> = actors.iter().map(|actions| actions.iter()).collect();
        let (mut calls, mut cancelled_first) = (0, None);
        for &actor in schedule {
            match actors[actor].next().expect("the schedule fits") {
                Action::Call => {
                    if test.call(calls + 1).is_ok() {
                        calls += 1;
                    }
                }
                Action::Slot => drop(test.start()),
                Action::Started(seq) => test.started(*seq),
                Action::StartFailed(seq) => test.books.start_failed(*seq, "s"),
                Action::Ended(seq, end) => test.books.child_ended(*seq, end.clone()),
                Action::Cancel => {
                    cancelled_first.get_or_insert(true);
                    test.books.cancel("c");
                }
                Action::Return => {
                    cancelled_first.get_or_insert(false);
                    test.returns("1");
                }
                other => unreachable!("{other:?}"),
            }
        }
        let result = test.close();
        let expected =
            if cancelled_first == Some(true) { StopReason::Cancelled } else { StopReason::Completed };
        assert_eq!(result.stop_reason, expected, "{schedule:?}");
        assert!(test.books.is_done(), "{schedule:?}");
        let story = test.story();
        let count = |prefix: &str| story.iter().filter(|line| line.starts_with(prefix)).count();
        assert_eq!((count("start"), count("end ")), (1, 1), "{schedule:?}");
        assert_eq!(count("+"), count("-"), "{schedule:?}: {story:?}");
        assert!(story.last().is_some_and(|line| line.starts_with("end ")), "{schedule:?}");
        if expected == StopReason::Cancelled {
            assert_eq!(test.answers.len() as u32, calls, "{schedule:?}");
        }
    }
    let mut count = 0;
    explore(&mut [0; 4], &mut Vec::new(), &mut count);
    // 9! / (3! · 3! · 2! · 1!)
    assert_eq!(count, 5040);
}
