//! One picture of a run that goes on: the tree, then the totals.

use anstyle::Style;

use super::palette::{Mark, Palette};
use super::pick::Picked;
use super::row::{Pieces, Row, counted};
use super::text;
use super::tree::{Item, Phase, Tree};

/// How many columns and rows there are to draw in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Draws the run at a time (milliseconds since 1970) in at most `size.rows` rows of at most `size.columns`
/// columns. `notice` is a line for the person, below everything else.
pub(crate) fn frame(
    tree: &Tree,
    notice: Option<&str>,
    size: Size,
    now: u64,
    palette: &Palette,
) -> Vec<String> {
    if size.rows == 0 {
        return Vec::new();
    }
    let room = size.rows.saturating_sub(1 + usize::from(notice.is_some()));
    let mut picked = Picked::new(tree, room);
    let mut hidden = picked.hidden(tree);
    if hidden != (0, 0) && room > 0 {
        // One row tells what the others do not.
        picked = Picked::new(tree, room - 1);
        hidden = picked.hidden(tree);
    }
    let canvas = Canvas { tree, columns: size.columns, now, palette };
    let mut rows = canvas.agents(&picked, None);
    for index in 0..tree.phases.len() {
        if picked.phases[index] {
            rows.push(canvas.phase(&tree.phases[index]));
            rows.extend(canvas.agents(&picked, Some(index)));
        }
    }
    if hidden != (0, 0) && room > 0 {
        rows.push(canvas.more(hidden));
    }
    rows.push(canvas.totals());
    if let Some(notice) = notice
        && size.rows > 1
    {
        rows.push(Row::new(size.columns).put(palette.odd, notice).finish());
    }
    rows
}

/// The mark of a phase.
pub(crate) fn phase_mark(phase: &Phase) -> Mark {
    let tally = &phase.tally;
    match phase.began {
        None => Mark::Planned,
        Some(_) if phase.active => Mark::Running,
        Some(_) if phase.abandoned || tally.cancelled > 0 => Mark::Cancelled,
        Some(_) if tally.failed > 0 && tally.failed == tally.ended() => Mark::Failed,
        Some(_) => Mark::Completed,
    }
}

/// The shortest silence of an agent that is told, in milliseconds.
const SILENCE: u64 = 10_000;

/// A row with the title of a phase, cut before its facts are.
pub(crate) fn phase_row(phase: &Phase, columns: usize, now: u64, palette: &Palette) -> String {
    let row = Row::new(columns).mark(palette.mark(phase_mark(phase), now));
    let Some(elapsed) = phase.elapsed(now) else {
        return row.put(palette.faint, &phase.title).finish();
    };
    let mut facts = Pieces::default();
    if phase.tally.started() > 0 {
        facts.add(Style::new(), format!("{}/{}", phase.tally.ended(), phase.tally.started()));
    }
    facts.add_waiting(&phase.tally, palette);
    facts.add_troubles(&phase.tally, palette);
    facts.add(palette.faint, text::span(elapsed));
    // A title of which less than this is seen says nothing.
    let reserve = (facts.width() + 2).min(columns.saturating_sub(8));
    row.put_before(palette.strong, &phase.title, reserve)
        .put(Style::new(), "  ")
        .pieces(&facts, palette)
        .finish()
}

struct Canvas<'a> {
    tree: &'a Tree,
    columns: usize,
    now: u64,
    palette: &'a Palette,
}

impl Canvas<'_> {
    fn phase(&self, phase: &Phase) -> String {
        phase_row(phase, self.columns, self.now, self.palette)
    }

    fn agents(&self, picked: &Picked, phase: Option<usize>) -> Vec<String> {
        let agents = self.tree.agents.iter().zip(&picked.agents);
        agents
            .filter(|(agent, shown)| **shown && agent.phase == phase)
            .map(|(agent, _)| self.agent(agent))
            .collect()
    }

    fn agent(&self, agent: &Item) -> String {
        let (mark, until) = match agent.end {
            None => (Mark::Running, self.now),
            Some((outcome, at)) => (outcome.into(), at),
        };
        let elapsed = text::span(until.saturating_sub(agent.began));
        let silence = until.saturating_sub(agent.heard);
        let silence = if agent.end.is_none() && silence >= SILENCE {
            format!("  silent for {}", text::span(silence))
        } else {
            String::new()
        };
        let indent = if agent.phase.is_some() { "  " } else { "" };
        Row::new(self.columns)
            .put(Style::new(), indent)
            .mark(self.palette.mark(mark, self.now))
            .put(self.palette.faint, &format!("{elapsed:>5}"))
            .put(Style::new(), "  ")
            .put_before(
                if agent.end.is_some() { self.palette.faint } else { Style::new() },
                &agent.label,
                silence.len().min(self.columns / 2),
            )
            .put(self.palette.faint, &silence)
            .finish()
    }

    fn more(&self, (agents, phases): (usize, usize)) -> String {
        let mut facts = Pieces::default();
        if agents > 0 {
            facts.add(self.palette.faint, format!("{agents} more running"));
        }
        if phases > 0 {
            facts.add(self.palette.faint, counted(phases, "more phase"));
        }
        Row::new(self.columns).put(self.palette.faint, "… and ").pieces(&facts, self.palette).finish()
    }

    fn totals(&self) -> String {
        let tally = &self.tree.tally;
        let mut facts = Pieces::default();
        facts.add(
            Style::new(),
            match tally.started() {
                0 => "no agents yet".into(),
                started => format!("{}/{}", tally.ended(), counted(started, "agent")),
            },
        );
        facts.add_waiting(tally, self.palette);
        facts.add_troubles(tally, self.palette);
        facts.add(self.palette.faint, text::span(self.tree.elapsed(self.now)));
        Row::new(self.columns)
            .mark(self.palette.mark(Mark::Running, self.now))
            .pieces(&facts, self.palette)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use fanfold::AgentOutcome::{Cancelled, Completed, Failed};
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::super::sample::{Run, planned};
    use super::*;

    const PHASES: &[&str] = &["Read", "Review", "Verify"];

    fn shown(run: &Run, columns: usize, rows: usize, now: u64) -> String {
        let rows = frame(&run.tree(), None, Size { columns, rows }, now, &Palette::default());
        assert!(rows.iter().all(|row| text::width(row) <= columns));
        rows.join("\n")
    }

    /// One phase over, one with agents in all states, and one to come.
    fn busy() -> Run {
        let mut run = Run::of(planned("review", PHASES));
        run.agent(1, "scout", "").at(100).phase("Read").agents(2..=3, "Read");
        run.at(900).ends(2, Completed).at(1_000).ends(3, Completed).ends(1, Completed).phase("Review");
        run.agents(4..=8, "Review").at(2_000).ends(4, Completed).ends(5, Failed).ends(6, Cancelled);
        run
    }

    #[test]
    fn a_run_that_has_just_begun() {
        assert_snapshot!(shown(&Run::of(planned("review", &[])), 80, 20, 100));
    }

    #[test]
    fn phases_with_agents_in_every_state() {
        assert_snapshot!(shown(&busy(), 80, 20, 62_500));
    }

    #[test]
    fn an_agent_is_silent_since_it_was_last_heard() {
        let mut run = Run::of(planned("review", &[]));
        run.agent(1, "check", "").at(20_000).says(1, "hm");
        assert!(!shown(&run, 80, 5, 29_000).contains("silent"));
        assert!(shown(&run, 80, 5, 31_000).contains("check  silent for 11"));
    }

    #[test]
    fn finished_agents_make_room_for_running_ones() {
        // Eight rows: three phases, two that run, the one that failed, the last that ended, the totals.
        assert_snapshot!(shown(&busy(), 80, 8, 3_000));
    }

    #[test]
    fn a_narrow_terminal() {
        assert_snapshot!(shown(&busy(), 20, 20, 3_000));
    }

    #[test]
    fn a_thousand_agents_on_a_small_terminal() {
        let mut run = Run::of(planned("review", PHASES));
        run.phase("Review").agents(1..=600, "Review").at(5_000);
        (1..=560).for_each(|seq| _ = run.ends(seq, if seq % 50 == 0 { Failed } else { Completed }));
        run.phase("Verify").agents(601..=1_000, "Verify");
        assert_snapshot!(shown(&run, 80, 24, 9_000));
    }

    #[test]
    fn more_phases_than_rows() {
        let mut run = Run::of(planned("review", &[]));
        for seq in 1..=40 {
            run.at(u64::from(seq) * 100).agent(seq, "check", &format!("File {seq}"));
            if seq % 2 == 0 {
                run.ends(seq, Completed);
            }
        }
        assert_snapshot!(shown(&run, 80, 12, 5_000));
    }

    #[test]
    fn names_that_are_long_wide_or_hostile() {
        let mut run = Run::of(planned("review", &[]));
        run.phase("\u{1b}[2J\u{1b}[31mPhase\u{202e}\nesahP");
        let hostile = [
            "\u{1b}]0;title\u{7}",
            "two\nlines",
            "\r✓  0.1s  all is well",
            "日本語のとても長い名前がここにあります",
            "👩‍👩‍👧‍👦 👩‍👩‍👧‍👦 👩‍👩‍👧‍👦 families",
            "",
            " \t ",
        ];
        for (label, seq) in hostile.into_iter().zip(1..) {
            run.agent(seq, label, "\u{1b}[2J\u{1b}[31mPhase\u{202e}\nesahP");
        }
        run.agent(20, &"long ".repeat(50), "");
        run.agent(21, &format!("z{}", "\u{35f}".repeat(900)), "");
        assert_snapshot!(shown(&run, 36, 20, 1_000));
    }

    #[test]
    fn a_notice_is_below_everything() {
        let mut run = busy();
        run.at(3_000);
        let size = Size { columns: 80, rows: 6 };
        let notice = Some("cancelling; press Ctrl-C again to force");
        assert_snapshot!(frame(&run.tree(), notice, size, 3_500, &Palette::default()).join("\n"));
    }

    #[test]
    fn colours_only_repeat_what_is_written() {
        let size = Size { columns: 80, rows: 20 };
        let coloured = frame(&busy().tree(), None, size, 3_000, &Palette::new(true));
        let bare: Vec<String> =
            coloured.iter().map(|row| anstream::adapter::strip_str(row).to_string()).collect();
        assert_ne!(coloured, bare);
        assert_eq!(bare.join("\n"), shown(&busy(), 80, 20, 3_000));
    }

    proptest! {
        #[test]
        fn a_frame_never_outgrows_its_place(
            told in prop::collection::vec((0..6, 1u32..60, any::<String>()), 0..120),
            (columns, rows) in (0usize..50, 0usize..30),
        ) {
            let mut run = Run::of(planned("w", &["A"]));
            for (step, (what, seq, name)) in told.into_iter().enumerate() {
                run.at(step as u64 * 70);
                match what {
                    0 => run.phase(&name),
                    1..3 => run.agent(seq + 60 * step as u32, &name, if seq % 3 == 0 { &name } else { "A" }),
                    3 => run.ends(seq, Failed),
                    _ => run.ends(seq, Completed),
                };
            }
            let (tree, size) = (run.tree(), Size { columns, rows });
            let picture = frame(&tree, Some("notice"), size, 9_000, &Palette::new(true));
            prop_assert!(picture.len() <= rows);
            for row in picture {
                let bare = anstream::adapter::strip_str(&row).to_string();
                prop_assert!(text::width(&bare) <= columns);
                prop_assert!(!bare.chars().any(char::is_control));
            }
        }
    }
}
