//! The display for a terminal: a tree that is drawn in place, under everything that was said.

use std::iter;

use anstyle::Style;
use fanfold::{Event, EventKind, FailureGroup, RunResult, RunView, group_failures};

use super::frame::{Size, frame};
use super::palette::Palette;
use super::screen::Screen;
use super::summary::summary;
use super::text;
use super::tree::{Tree, name};
use super::view::View;

/// Rows of the terminal that the tree leaves to what was said last, at most.
const LAST_WORDS: usize = 5;

/// A live tree. Logs and warnings go above it and stay.
#[derive(Debug, Default)]
pub(crate) struct Live {
    palette: Palette,
    /// The failures so far by their reasons, and how many there were.
    failures: (Vec<FailureGroup>, usize),
    /// Lines that are not written yet.
    lines: Vec<String>,
    notice: Option<String>,
    screen: Screen,
}

impl Live {
    /// A display with nothing on it.
    pub(crate) fn new(palette: Palette) -> Self {
        Self { palette, ..Self::default() }
    }

    /// Others' words. Each line has something before it, so that none can pass for one of ours, nor a log for a
    /// warning.
    fn quote(&mut self, first: (Style, &str), text: &str) {
        let bar = (self.palette.faint, "│");
        let marks = iter::once(first).chain(iter::repeat(bar));
        let lines = text::lines(text).zip(marks);
        self.lines.extend(lines.map(|(line, (style, mark))| format!("{style}{mark}{style:#} {line}")));
    }
}

impl View for Live {
    fn event(&mut self, event: &Event, _run: &RunView) {
        match &event.kind {
            EventKind::Start { meta } => {
                let (name, description) = (name(&meta.name), name(&meta.description));
                let Palette { strong, faint, .. } = self.palette;
                self.lines.push(format!("{strong}{name}{strong:#}{faint}: {description}{faint:#}"));
            }
            EventKind::Log { message } => self.quote((self.palette.faint, "│"), message),
            EventKind::Warning { message } => self.quote((self.palette.odd, "! warning:"), message),
            _ => {}
        }
    }

    fn notice(&mut self, text: &str, _run: &RunView, _now: u64) {
        self.notice = Some(text::line(text));
    }

    fn draw(&mut self, run: &RunView, size: Size, now: u64) -> String {
        let lines = std::mem::take(&mut self.lines);
        if self.failures.1 != run.failures().len() {
            self.failures = (group_failures(run.failures()), run.failures().len());
        }
        let rows = if self.moves(run) {
            // One row is for the cursor.
            let rows = size.rows.saturating_sub(1 + LAST_WORDS.min(size.rows / 5));
            // The last column stays free; see `Screen::draw`.
            let size = Size { columns: size.columns.saturating_sub(1), rows };
            frame(&Tree::of(run, &self.failures.0), self.notice.as_deref(), size, now, &self.palette)
        } else {
            Vec::new()
        };
        self.screen.draw(&lines, rows, size)
    }

    fn end(&mut self, run: &RunView, result: Option<&RunResult>, size: Size, now: u64) -> String {
        let mut lines = std::mem::take(&mut self.lines);
        if self.moves(run) {
            lines.extend(summary(run, result, now, &self.palette));
        }
        self.screen.draw(&lines, Vec::new(), size)
    }

    fn moves(&self, run: &RunView) -> bool {
        run.run().began.is_some()
    }
}

#[cfg(test)]
mod tests {
    use fanfold::AgentOutcome::{Cancelled, Completed, Failed};
    use fanfold::{ErrorCode, StopReason};
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::super::sample::{Run, planned};
    use super::*;

    /// A terminal, and the display on it.
    struct Watched {
        run: RunView,
        live: Live,
        terminal: vt100::Parser,
        size: Size,
    }

    impl Watched {
        fn new(columns: u16, rows: u16) -> Self {
            Self {
                run: RunView::default(),
                live: Live::new(Palette::new(true)),
                terminal: vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 10_000),
                size: Size { columns: columns.into(), rows: rows.into() },
            }
        }

        /// Shows each event in a picture of its own.
        fn watch(mut self, events: &[Event]) -> Self {
            for event in events {
                self.run.event(event);
                self.live.event(event, &self.run);
                self.draw(event.at);
            }
            self
        }

        fn draw(&mut self, now: u64) -> &mut Self {
            let picture = self.live.draw(&self.run, self.size, now);
            self.terminal.process(picture.as_bytes());
            self
        }

        fn end(&mut self, result: Option<&RunResult>, now: u64) -> &mut Self {
            let picture = self.live.end(&self.run, result, self.size, now);
            self.terminal.process(picture.as_bytes());
            self
        }

        fn screen(&self) -> String {
            self.terminal.screen().contents()
        }

        /// What is on the terminal and what has scrolled off it, lines that were wrapped in one piece.
        fn everything(&mut self) -> String {
            let screen = self.terminal.screen_mut();
            let (rows, columns) = screen.size();
            let mut all = String::new();
            let mut add = |screen: &vt100::Screen, row: u16| {
                all.extend(screen.rows(0, columns.get()).nth(row.into()));
                if !screen.row_wrapped(row) {
                    all.push('\n');
                }
            };
            for back in (1..=screen.scrollback_len()).rev() {
                screen.set_scrollback(back);
                add(screen, 0);
            }
            screen.set_scrollback(0);
            (0..rows.get()).for_each(|row| add(screen, row));
            all.trim_end().to_string()
        }
    }

    fn review() -> Run {
        let mut run = Run::of(planned("review", &["Read", "Review", "Verify"]));
        run.phase("Read")
            .agents(1..=2, "Read")
            .log("two files")
            .at(1_500)
            .ends(1, Completed)
            .ends(2, Completed);
        run.phase("Review").agents(3..=6, "Review").at(4_000).ends(3, Completed).ends(4, Failed);
        run.log("a finding:\n  nobody checks the length").at(5_000);
        run
    }

    #[test]
    fn while_it_runs_the_tree_is_under_what_was_said() {
        let mut run = review();
        run.warning("agent() option \"effort\" is ignored");
        let mut watched = Watched::new(60, 20).watch(&run.events);
        assert_snapshot!(watched.draw(6_000).screen());
    }

    #[test]
    fn a_completed_run_leaves_its_phases_and_failures() {
        let mut run = review();
        run.at(7_000).ends(5, Completed).ends(6, Completed);
        let result = run.completed();
        let mut watched = Watched::new(60, 20).watch(&run.events);
        assert_snapshot!(watched.end(Some(&result), 7_000).screen());
    }

    #[test]
    fn a_cancelled_run_leaves_no_notice() {
        let mut run = review();
        let mut watched = Watched::new(60, 20).watch(&run.events);
        watched.live.notice("cancelling; press Ctrl-C again to force", &watched.run, 5_000);
        assert!(watched.draw(5_100).screen().ends_with("\ncancelling; press Ctrl-C again to force"));
        let seen = run.events.len();
        run.at(5_200).ends(5, Cancelled).ends(6, Cancelled);
        let error = ErrorCode::Cancelled.error("interrupted");
        let result = run.finish(RunResult::new(StopReason::Cancelled, Some(error)));
        let mut watched = watched.watch(&run.events[seen..]);
        assert_snapshot!(watched.end(Some(&result), 5_200).screen());
    }

    #[test]
    fn a_failed_run_names_the_code_of_its_error() {
        let mut run = review();
        let error = ErrorCode::AgentCap.error("3 is the cap");
        let result = run.ends(5, Cancelled).finish(RunResult::new(StopReason::Error, Some(error)));
        let mut watched = Watched::new(60, 20).watch(&run.events);
        watched.end(Some(&result), 5_000);
        assert!(
            watched.screen().ends_with("✗ failed (AGENT_CAP) · 6 agents · 1 failed · 1 cancelled · 5.0s")
        );
    }

    #[test]
    fn a_display_that_is_dropped_says_how_far_it_came() {
        let mut watched = Watched::new(60, 20).watch(&review().events);
        watched.end(None, 6_000);
        assert!(watched.screen().ends_with("⊘ stopped · 6 agents · 1 failed · 6.0s"), "{}", watched.screen());
        // Nothing looks as if it went on.
        assert!(!watched.screen().contains(|c: char| ('⠀'..='⣿').contains(&c)), "{}", watched.screen());
    }

    #[test]
    fn nothing_is_drawn_of_a_run_that_never_began() {
        assert_eq!(Live::default().end(&RunView::default(), None, Size { columns: 80, rows: 24 }, 9), "");
    }

    #[test]
    fn the_same_picture_is_not_drawn_twice() {
        let mut watched = Watched::new(60, 20).watch(&review().events);
        watched.draw(5_010);
        assert_eq!(watched.live.draw(&watched.run, watched.size, 5_020), "");
        // The spinner turns.
        assert_ne!(watched.live.draw(&watched.run, watched.size, 5_120), "");
    }

    #[test]
    fn long_lists_are_cut_at_the_end() {
        let mut run = Run::of(planned("review", &[]));
        for seq in 1..=200 {
            run.agent(seq, &format!("check {seq}"), &format!("File {seq}")).ends(seq, Failed);
        }
        let result = run.completed();
        let mut watched = Watched::new(60, 20).watch(&run.events);
        let all = watched.end(Some(&result), 0).everything();
        assert!(all.contains("… and 170 more phases\n") && all.contains("… and 170 more reasons\n"), "{all}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever a script says, in whatever terminal: every line of it stays, once and in order; nothing of
        /// the live tree does; the cursor is where the next line begins.
        #[test]
        fn all_that_was_said_stays(
            // Of characters one column wide: the terminal here joins no row that ends before a wide one.
            logs in prop::collection::vec("[ -~é│✓\\u{0}-\\u{9}\\u{b}-\\u{1f}\\u{7f}-\\u{9f}\\u{202e}]{0,30}", 1..30),
            (columns, rows) in (4u16..60, 3u16..30),
        ) {
            let mut run = Run::of(planned("review", &["A", "B"]));
            run.phase("A").agents(1..=40, "A");
            for (log, seq) in logs.iter().zip(1..) {
                run.at(u64::from(seq) * 70).log(&format!("<{log}>")).ends(seq, Completed);
            }
            let result = run.completed();
            let mut watched = Watched::new(columns, rows).watch(&run.events);
            watched.end(Some(&result), 9_000);

            let (row, column) = watched.terminal.screen().cursor_position();
            prop_assert_eq!(column, 0);
            prop_assert!(watched.terminal.screen().rows(0, columns).nth(row.into()).unwrap().is_empty());
            let all = watched.everything();
            let said = logs.iter().map(|log| format!("│ {}", text::line(&format!("<{log}>")).replace('\u{fffd}', "")));
            prop_assert_eq!(
                said.collect::<Vec<_>>(),
                all.lines().filter(|line| line.starts_with('│')).collect::<Vec<_>>()
            );
            prop_assert_eq!(all.lines().count(), 1 + logs.len() + 3, "{}", all);
        }
    }
}
