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
use fanfold::{AgentOutcome, EndedAgent, Event, EventKind, RunResult};

use super::frame::Size;
use super::palette::Palette;
use super::row::counted;
use super::summary::{ending, failures, tokens};
use super::text;
use super::tree::{Item, Tree};
use super::view::View;
use super::worktrees;

/// Columns of a reason beside the end of its agent. The whole of it comes at the end.
const MAX_REASON: usize = 200;

/// Lines, in order.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    palette: Palette,
    tree: Tree,
    /// Lines that are not written yet.
    lines: String,
}

impl Plain {
    /// A display that has said nothing.
    pub(crate) fn new(palette: Palette) -> Self {
        Self { palette, ..Self::default() }
    }

    fn say(&mut self, style: Style, what: &str, text: &str, at: u64) {
        let elapsed = text::span(at.saturating_sub(self.tree.began.unwrap_or(at)));
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

    fn agent_started(&mut self, seq: u32, at: u64) {
        if let Some(agent) = self.tree.agent(seq) {
            let text = describe(&self.tree, agent, "started: ");
            self.say(self.palette.busy, "agent", &text, at);
        }
    }

    fn agent_ended(&mut self, ended: &EndedAgent, at: u64) {
        let Some(agent) = self.tree.agent(ended.agent.seq) else { return };
        let (style, how) = match ended.outcome {
            AgentOutcome::Completed => (self.palette.good, "completed"),
            AgentOutcome::Failed => (self.palette.bad, "failed"),
            AgentOutcome::Cancelled => (self.palette.odd, "cancelled"),
        };
        let took = text::span(at.saturating_sub(agent.began));
        let mut text = describe(&self.tree, agent, &format!("{how} after {took}: "));
        if let Some(reason) = &ended.reason {
            let _ = write!(text, ": {}", text::cut(&text::line(reason), MAX_REASON));
        }
        self.say(style, "agent", &text, at);
    }
}

/// An agent as `#2 started: check the docs [Verify]`.
fn describe(tree: &Tree, agent: &Item, how: &str) -> String {
    let phase = agent.phase.map(|phase| format!(" [{}]", tree.phases[phase].title));
    format!("#{} {how}{}{}", agent.seq, agent.label, phase.unwrap_or_default())
}

impl View for Plain {
    fn event(&mut self, event: &Event, _now: u64) {
        self.tree.event(event);
        let at = event.at;
        match &event.kind {
            EventKind::Start { .. } => {
                let text = format!("{}: {}", self.tree.name, self.tree.description);
                self.say(self.palette.strong, "workflow", &text, at);
            }
            EventKind::Phase { title } => self.say(self.palette.strong, "phase", &text::line(title), at),
            EventKind::Log { message } => self.say(Style::new(), "log", message, at),
            EventKind::AgentStart { agent } => self.agent_started(agent.seq, at),
            EventKind::AgentEnd { agent } => self.agent_ended(agent, at),
            EventKind::Warning { message } => self.say(self.palette.odd, "warning", message, at),
            // The end is told with its result.
            _ => {}
        }
    }

    fn notice(&mut self, text: &str, now: u64) {
        self.say(self.palette.odd, "notice", text, now);
    }

    fn draw(&mut self, _size: Size, _now: u64) -> String {
        std::mem::take(&mut self.lines)
    }

    fn end(&mut self, result: Option<&RunResult>, _size: Size, now: u64) -> String {
        if self.tree.began.is_some() {
            let at = self.tree.ended.unwrap_or(now);
            let failed = result.map(|result| failures(&self.tree, result)).unwrap_or_default();
            let failed =
                failed.into_iter().map(|(agent, why)| format!("{}: {why}", describe(&self.tree, agent, "")));
            for text in failed.collect::<Vec<_>>() {
                self.say(self.palette.bad, "failed", &text, at);
            }
            for worktree in result.iter().flat_map(|result| &result.worktrees) {
                self.say(self.palette.odd, "kept", &worktrees::described(worktree, &worktree.path), at);
            }
            let (mark, how) = ending(result);
            let (style, _) = self.palette.mark(mark, at);
            let took = text::span(self.tree.elapsed(at));
            let mut text = format!("{how} after {took}: {}", counted(self.tree.tally.started(), "agent"));
            for (_, trouble) in self.tree.tally.troubles() {
                let _ = write!(text, ", {trouble}");
            }
            if let Some(usage) = result.and_then(|result| result.usage) {
                let _ = write!(text, ", {}", tokens(usage));
            }
            self.say(style, "end", &text, at);
        }
        std::mem::take(&mut self.lines)
    }

    fn moves(&self) -> bool {
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

    fn told(run: &Run) -> Plain {
        let mut plain = Plain::new(Palette::default());
        run.events.iter().for_each(|event| plain.event(event, event.at));
        plain
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
        let mut plain = told(&run);
        assert_snapshot!(plain.end(Some(&result), SIZE, 65_000));
    }

    #[test]
    fn a_cancelled_run() {
        let mut run = Run::of(planned("review", &[]));
        run.agents(1..=2, "").at(3_000).ends(1, Failed);
        let mut plain = told(&run);
        plain.notice("cancelling; press Ctrl-C again to force", 3_100);
        let seen = run.events.len();
        run.at(3_200).ends(2, Cancelled);
        let error = ErrorCode::Cancelled.error("interrupted");
        let result = run.finish(RunResult::new(StopReason::Cancelled, Some(error)));
        run.events[seen..].iter().for_each(|event| plain.event(event, event.at));
        assert_snapshot!(plain.end(Some(&result), SIZE, 3_200));
    }

    #[test]
    fn a_failure_is_told_with_its_reason() {
        let mut run = Run::of(planned("review", &[]));
        run.agents(1..=1, "").at(900).fails(1, "exit status 3:\n  cannot");
        let lines = told(&run).draw(SIZE, 900);
        assert!(lines.ends_with("#1 failed after 0.9s: check file 1: exit status 3:   cannot\n"), "{lines}");
    }

    #[test]
    fn nothing_is_said_of_a_run_that_never_began() {
        assert_eq!(Plain::default().end(None, SIZE, 9), "");
    }

    #[test]
    fn what_others_wrote_cannot_pass_for_a_line_of_ours() {
        let forged = "\u{1b}[1A\n   9.9s  end      completed after 9.9s: 0 agents\n\u{9b}2J";
        let mut run = Run::of(planned(forged, &[]));
        run.phase(forged).log(forged).agent(1, forged, forged).fails(1, forged).warning(forged);
        let mut plain = told(&run);
        let result = run.finish(RunResult::new(StopReason::Error, None));
        let all = plain.end(Some(&result), SIZE, 0);
        assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{all:?}");
        let ours = all.lines().filter(|line| !line.starts_with(&" ".repeat(18)));
        assert_eq!(ours.filter(|line| line[9..].starts_with("end ")).count(), 1, "{all}");
    }
}
