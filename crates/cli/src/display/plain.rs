//! The display for logs and pipes: one line for each thing that happens, as it happens.
//!
//! ```text
//!    0.0s  agent    #2 started: check the docs [Verify]
//!    0.9s  agent    #2 failed after 0.9s: check the docs [Verify]
//! ```
//! When, counted from the start of the run; one word for what; the rest. A text of several lines goes on under
//! the rest, so that none of its lines can pass for one of ours.

use std::fmt::Write as _;

use anstyle::Style;
use fanfold::{AgentOutcome, AgentState, AgentView, Event, EventKind, RunResult, RunView};

use super::frame::Size;
use super::palette::Palette;
use super::row::{counted, troubles};
use super::summary::{ending, failures, tokens};
use super::text;
use super::tree::{elapsed, label, name};
use super::view::View;
use super::worktrees;

/// Columns of a reason beside the end of its agent. The whole of it comes at the end.
const MAX_REASON: usize = 200;

/// Lines, in order.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    palette: Palette,
    /// Lines that are not written yet.
    lines: String,
}

impl Plain {
    /// A display that has said nothing.
    pub(crate) fn new(palette: Palette) -> Self {
        Self { palette, ..Self::default() }
    }

    fn say(&mut self, style: Style, what: &str, text: &str, run: &RunView, at: u64) {
        let elapsed = text::span(at.saturating_sub(run.run().began.unwrap_or(at)));
        let faint = self.palette.faint;
        let mut lines = text::lines(text);
        // Nothing is also something that a script may log.
        let first = lines.next().unwrap_or_default();
        let line = format!("{faint}{elapsed:>7}{faint:#}  {style}{what:<8}{style:#} {first}");
        self.lines.push_str(line.trim_end());
        self.lines.push('\n');
        for line in lines {
            let _ = writeln!(self.lines, "{:18}{line}", "");
        }
    }

    /// Says what became of an agent, and why.
    fn agent(&mut self, seq: u32, how: &str, reason: Option<&str>, run: &RunView, at: u64) {
        let Some(agent) = run.agent(seq.into()) else { return };
        let mut text = describe(run, agent, how);
        if let Some(reason) = reason {
            let _ = write!(text, ": {}", text::cut(&text::line(reason), MAX_REASON));
        }
        let style = match agent.state {
            AgentState::Running if agent.retry.is_some() => self.palette.odd,
            state => self.palette.mark(state.into(), at).0,
        };
        self.say(style, "agent", &text, run, at);
    }
}

/// An agent as `#2 started: check the docs [Verify]`.
fn describe(run: &RunView, agent: &AgentView, how: &str) -> String {
    let phase = agent.phase.and_then(|phase| run.phases().get(phase as usize));
    let phase = phase.map(|phase| format!(" [{}]", name(&phase.title)));
    format!("#{} {how}: {}{}", agent.seq, label(agent), phase.unwrap_or_default())
}

impl View for Plain {
    fn event(&mut self, event: &Event, run: &RunView) {
        let at = event.at;
        match &event.kind {
            EventKind::Start { meta } => {
                let text = format!("{}: {}", name(&meta.name), name(&meta.description));
                self.say(self.palette.strong, "workflow", &text, run, at);
            }
            EventKind::Phase { title } => {
                self.say(self.palette.strong, "phase", &text::line(title), run, at);
            }
            EventKind::Log { message } => self.say(Style::new(), "log", message, run, at),
            EventKind::Warning { message } => self.say(self.palette.odd, "warning", message, run, at),
            EventKind::AgentStart { agent } => self.agent(agent.seq, "started", None, run, at),
            EventKind::AgentRefused { agent } => {
                self.agent(agent.agent.seq, "did not start", Some(&agent.reason), run, at);
            }
            EventKind::AgentRetry { agent } => {
                let how = format!("tries again in {}", text::span(agent.wait_ms));
                self.agent(agent.seq, &how, Some(&agent.reason), run, at);
            }
            EventKind::AgentEnd { agent: ended } => {
                let seq = ended.agent.seq;
                let began = run.agent(seq.into()).and_then(|agent| agent.began).unwrap_or(at);
                let how = match ended.outcome {
                    AgentOutcome::Completed => "completed",
                    AgentOutcome::Failed => "failed",
                    AgentOutcome::Cancelled => "cancelled",
                };
                let how = format!("{how} after {}", text::span(at.saturating_sub(began)));
                self.agent(seq, &how, ended.reason.as_deref(), run, at);
            }
            // The end is told with its result. Calls that wait, and what agents say meanwhile, would be too many lines.
            _ => {}
        }
    }

    fn notice(&mut self, text: &str, run: &RunView, now: u64) {
        self.say(self.palette.odd, "notice", text, run, now);
    }

    fn draw(&mut self, _run: &RunView, _size: Size, _now: u64) -> String {
        std::mem::take(&mut self.lines)
    }

    fn end(&mut self, run: &RunView, result: Option<&RunResult>, _size: Size, now: u64) -> String {
        if run.run().began.is_some() {
            let at = run.run().ended.unwrap_or(now);
            for group in failures(run, result) {
                self.say(self.palette.bad, "failed", &group.sentence(str::to_owned), run, at);
            }
            for worktree in result.iter().flat_map(|result| &result.worktrees) {
                let kept = worktrees::described(worktree, &worktree.path);
                self.say(self.palette.odd, "kept", &kept, run, at);
            }
            let (mark, how) = ending(result);
            let (style, _) = self.palette.mark(mark, at);
            let took = text::span(elapsed(run, at));
            let agents = &run.run().agents;
            let mut text = format!("{how} after {took}: {}", counted(agents.started() as usize, "agent"));
            for (_, trouble) in troubles(agents) {
                let _ = write!(text, ", {trouble}");
            }
            if let Some(usage) = result.and_then(|result| result.usage) {
                let _ = write!(text, ", {}", tokens(usage));
            }
            self.say(style, "end", &text, run, at);
        }
        std::mem::take(&mut self.lines)
    }

    fn moves(&self, _run: &RunView) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use fanfold::AgentOutcome::{Cancelled, Completed, Failed};
    use fanfold::{ErrorCode, StopReason};
    use insta::assert_snapshot;

    use super::super::sample::{Run, planned};
    use super::*;

    const SIZE: Size = Size { columns: 80, rows: 24 };

    /// What is said of a run, with a notice in it before the events after the first `seen`, and its end.
    fn said(run: &Run, notice: Option<(usize, &str, u64)>, result: Option<&RunResult>, now: u64) -> String {
        let (mut plain, mut view) = (Plain::new(Palette::default()), RunView::default());
        for (n, event) in run.events.iter().enumerate() {
            if let Some((seen, notice, at)) = notice
                && n == seen
            {
                plain.notice(notice, &view, at);
            }
            view.event(event);
            plain.event(event, &view);
        }
        plain.end(&view, result, SIZE, now)
    }

    #[test]
    fn a_complete_run() {
        let mut run = Run::of(planned("review", &["Read", "Verify"]));
        run.agent(1, "scout", "")
            .at(40)
            .phase("Read")
            .agents(2..=3, "Read")
            .log("three files\n  in two folders\n");
        run.at(1_240).ends(2, Completed).ends(1, Completed).at(2_000).ends(3, Failed).log("");
        run.phase("Verify").agent(4, "", "Verify").at(65_000).ends(4, Completed);
        run.warning("agent() option \"effort\" is ignored");
        let result = run.completed();
        assert_snapshot!(said(&run, None, Some(&result), 65_000));
    }

    #[test]
    fn a_cancelled_run() {
        let mut run = Run::of(planned("review", &[]));
        run.agents(1..=2, "").at(3_000).ends(1, Failed);
        let seen = run.events.len();
        run.at(3_200).ends(2, Cancelled);
        let error = ErrorCode::Cancelled.error("interrupted");
        let result = run.finish(RunResult::new(StopReason::Cancelled, Some(error)));
        let notice = Some((seen, "cancelling; press Ctrl-C again to force", 3_100));
        assert_snapshot!(said(&run, notice, Some(&result), 3_200));
    }

    #[test]
    fn a_failure_is_told_with_its_reason() {
        let mut run = Run::of(planned("review", &[]));
        run.agents(1..=1, "").at(900).fails(1, "exit status 3:\n  cannot");
        let lines = said(&run, None, None, 900);
        assert!(lines.contains("#1 failed after 0.9s: check file 1: exit status 3:   cannot\n"), "{lines}");
    }

    #[test]
    fn calls_that_wait_are_not_told_but_retries_and_refusals_are() {
        let mut run = Run::of(planned("review", &[]));
        run.calls(1, "check", "A").calls(2, "judge", "A").agent(1, "check", "A").at(900);
        run.retries(1, "429: slow down", 2_500).at(4_000).says(1, "done").ends(1, Completed);
        run.refuses(2, "no key");
        assert_snapshot!(said(&run, None, None, 4_000));
    }

    #[test]
    fn agents_that_fail_alike_are_one_line_at_the_end() {
        let mut run = Run::of(planned("review", &[]));
        run.agents(1..=14, "");
        (3..=14).for_each(|seq| _ = run.fails(seq, "exit status 1: not signed in"));
        run.fails(2, "no answer").ends(1, Completed);
        let result = run.completed();
        let all = said(&run, None, Some(&result), 0);
        let failed: Vec<_> = all.lines().filter(|line| line.contains(" failed   ")).collect();
        assert_eq!(
            failed,
            [
                "   0.0s  failed   12 agents failed: exit status 1: not signed in (first: #3 check file 3)",
                "   0.0s  failed   #2 check file 2 failed: no answer",
            ]
        );
    }

    #[test]
    fn nothing_is_said_of_a_run_that_never_began() {
        assert_eq!(Plain::default().end(&RunView::default(), None, SIZE, 9), "");
    }

    #[test]
    fn what_others_wrote_cannot_pass_for_a_line_of_ours() {
        let forged = "\u{1b}[1A\n   9.9s  end      completed after 9.9s: 0 agents\n\u{9b}2J";
        let mut run = Run::of(planned(forged, &[]));
        run.phase(forged).log(forged).agent(1, forged, forged).fails(1, forged).warning(forged);
        run.calls(2, forged, "").refuses(2, forged).agent(3, forged, "").retries(3, forged, 5);
        let result = run.finish(RunResult::new(StopReason::Error, None));
        let all = said(&run, None, Some(&result), 0);
        assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{all:?}");
        let ours = all.lines().filter(|line| !line.starts_with(&" ".repeat(18)));
        assert_eq!(ours.filter(|line| line[9..].starts_with("end ")).count(), 1, "{all}");
    }
}
