//! One picture of a run that goes on: the tree, then the totals.

use anstyle::Style;
use fanfold::{AgentState, AgentView, FailureGroup};

use super::palette::{Mark, Palette};
use super::pick::Picked;
use super::row::{Pieces, Row, counted};
use super::text;
use super::tree::{Phase, Tree, elapsed, has_failed, label, progress};

/// Reasons that several agents failed for, as far as they are shown.
const MAX_ALIKE: usize = 3;

/// How many columns and rows there are to draw in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Draws the run at a time (milliseconds since 1970) in at most `size.rows` rows of at most `size.columns`
/// columns. `notice` is a line for the person, below everything else.
pub(crate) fn frame(
    tree: &Tree<'_>,
    notice: Option<&str>,
    size: Size,
    now: u64,
    palette: &Palette,
) -> Vec<String> {
    if size.rows == 0 {
        return Vec::new();
    }
    let room = size.rows.saturating_sub(1 + usize::from(notice.is_some()));
    // They tell of many, but the tree is more than its failures.
    let alike = &tree.alike[..tree.alike.len().min(MAX_ALIKE).min(room / 3)];
    let room = room - alike.len();
    let mut picked = Picked::new(tree, room);
    let mut hidden = picked.hidden(tree);
    if hidden != (0, 0) && room > 0 {
        // One row tells what the others do not.
        picked = Picked::new(tree, room - 1);
        hidden = picked.hidden(tree);
    }
    let canvas = Canvas { tree, columns: size.columns, now, palette };
    let mut rows = canvas.agents(&picked, None);
    for place in 0..tree.phases.len() {
        if picked.phases[place] {
            rows.push(canvas.phase(&tree.phases[place]));
            rows.extend(canvas.agents(&picked, Some(place)));
        }
    }
    if hidden != (0, 0) && room > 0 {
        rows.push(canvas.more(hidden));
    }
    rows.extend(alike.iter().map(|group| canvas.alike(group)));
    rows.push(canvas.totals());
    if let Some(notice) = notice
        && size.rows > 1
    {
        rows.push(Row::new(size.columns).put(palette.odd, notice).finish());
    }
    rows
}

/// The mark of a phase of a run that goes on, or does not.
fn phase_mark(phase: &Phase<'_>, goes_on: bool) -> Mark {
    let agents = phase.agents();
    match phase.known {
        None => Mark::Planned,
        Some(known) if known.active && goes_on => Mark::Running,
        Some(known) if known.active || agents.cancelled > 0 => Mark::Cancelled,
        Some(_) if agents.failed > 0 && agents.failed == agents.ended() => Mark::Failed,
        Some(_) if agents.refused > 0 && agents.refused == agents.called() => Mark::Failed,
        Some(_) => Mark::Completed,
    }
}

/// A row with the title of a phase, cut before its facts are.
pub(crate) fn phase_row(
    phase: &Phase<'_>,
    goes_on: bool,
    columns: usize,
    now: u64,
    palette: &Palette,
) -> String {
    let row = Row::new(columns).mark(palette.mark(phase_mark(phase, goes_on), now));
    let Some(elapsed) = phase.elapsed(now) else {
        return row.put(palette.faint, &phase.title()).finish();
    };
    let agents = phase.agents();
    let mut facts = Pieces::default();
    if agents.called() > 0 {
        facts.add(Style::new(), progress(&agents));
    }
    facts.add_tally(&agents, palette);
    facts.add(palette.faint, text::span(elapsed));
    // A title of which less than this is seen says nothing.
    let reserve = (facts.width() + 2).min(columns.saturating_sub(8));
    row.put_before(palette.strong, &phase.title(), reserve)
        .put(Style::new(), "  ")
        .pieces(&facts, palette)
        .finish()
}

struct Canvas<'a> {
    tree: &'a Tree<'a>,
    columns: usize,
    now: u64,
    palette: &'a Palette,
}

impl Canvas<'_> {
    fn phase(&self, phase: &Phase<'_>) -> String {
        phase_row(phase, true, self.columns, self.now, self.palette)
    }

    fn agents(&self, picked: &Picked, phase: Option<usize>) -> Vec<String> {
        let agents = self.tree.run.agents().iter().zip(&picked.agents);
        agents
            .filter(|(agent, shown)| **shown && self.tree.phase_of(agent) == phase)
            .map(|(agent, _)| self.agent(agent))
            .collect()
    }

    fn agent(&self, agent: &AgentView) -> String {
        let until = agent.ended.unwrap_or(self.now);
        let elapsed = agent.began.map(|began| text::span(until.saturating_sub(began))).unwrap_or_default();
        let indent = if agent.phase.is_some() { "  " } else { "" };
        let over = agent.state != AgentState::Running;
        let (style, note) = self.note(agent);
        // A label of which less than this is seen says nothing.
        let reserve = (text::width(&note) + 2 * usize::from(!note.is_empty())).min(self.columns / 2);
        let row = Row::new(self.columns)
            .put(Style::new(), indent)
            .mark(self.palette.mark(agent.state.into(), self.now))
            .put(self.palette.faint, &format!("{elapsed:>5}"))
            .put(Style::new(), "  ")
            .put_before(if over { self.palette.faint } else { Style::new() }, &label(agent), reserve);
        if note.is_empty() { row.finish() } else { row.put(Style::new(), "  ").put(style, &note).finish() }
    }

    /// What to know of an agent besides: why it failed, or why it takes so long.
    fn note(&self, agent: &AgentView) -> (Style, String) {
        let Palette { bad, odd, .. } = *self.palette;
        if has_failed(agent) {
            return (bad, agent.reason.as_deref().map(text::line).unwrap_or_default());
        }
        if let Some((wait, retry)) = agent.tries_again_in(self.now) {
            // Not "in 0s": whole seconds are told until they are over.
            let wait = text::seconds(wait.div_ceil(1000) * 1000);
            return (odd, format!("tries again in {wait}: {}", text::line(&retry.reason)));
        }
        let quiet = agent.quiet_for(self.now).map(|quiet| format!("quiet {}", text::seconds(quiet)));
        let attempt = (agent.retries > 0).then(|| format!("attempt {}", agent.retries + 1));
        let running = agent.state == AgentState::Running;
        let facts = quiet.into_iter().chain(attempt.filter(|_| running));
        (odd, facts.collect::<Vec<_>>().join(", "))
    }

    fn alike(&self, group: &FailureGroup) -> String {
        let bad = self.palette.bad;
        let sentence = group.sentence(|text| text::cut(&text::line(text), self.columns / 2).into_owned());
        Row::new(self.columns).mark(self.palette.mark(Mark::Failed, self.now)).put(bad, &sentence).finish()
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
        let agents = &self.tree.run.run().agents;
        let mut facts = Pieces::default();
        facts.add(
            Style::new(),
            match agents.called() {
                0 => "no agents yet".into(),
                1 => format!("{} agent", progress(agents)),
                _ => format!("{} agents", progress(agents)),
            },
        );
        facts.add_tally(agents, self.palette);
        facts.add(self.palette.faint, text::span(elapsed(self.tree.run, self.now)));
        Row::new(self.columns)
            .mark(self.palette.mark(Mark::Running, self.now))
            .pieces(&facts, self.palette)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use fanfold::AgentOutcome::{Cancelled, Completed, Failed};
    use fanfold::group_failures;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::super::sample::{Run, planned};
    use super::*;

    const PHASES: &[&str] = &["Read", "Review", "Verify"];

    fn drawn(run: &Run, notice: Option<&str>, size: Size, now: u64, palette: &Palette) -> Vec<String> {
        let view = run.view();
        let failures = group_failures(view.failures());
        frame(&Tree::of(&view, &failures), notice, size, now, palette)
    }

    fn shown(run: &Run, columns: usize, rows: usize, now: u64) -> String {
        let rows = drawn(run, None, Size { columns, rows }, now, &Palette::default());
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
    fn agents_that_wait_are_quiet_or_are_tried_again() {
        let mut run = Run::of(planned("review", &["Review"]));
        run.phase("Review");
        (1..=200).for_each(|seq| _ = run.calls(seq, &format!("check file {seq}"), "Review"));
        run.agents(1..=74, "Review");
        (1..=69).for_each(|seq| _ = run.ends(seq, Completed));
        run.at(4_000).says(70, "reading").retries(71, "429: slow down\nfor a while", 12_400);
        run.retries(72, "overloaded", 1_000).at(44_000).says(73, "still reading");
        run.retries(74, "timed out", 500).says(74, "reading again");
        assert_snapshot!(shown(&run, 60, 24, 46_000));
        run.at(47_000).retries(74, "timed out", 12_000);
        assert_snapshot!(shown(&run, 40, 9, 47_100));
    }

    #[test]
    fn why_an_agent_failed_is_beside_it_and_what_many_failed_of_is_said_once() {
        let mut run = Run::of(planned("review", &["Review"]));
        run.phase("Review").agents(1..=20, "Review").at(2_000).fails(2, "no answer\nwithin 2000 ms");
        (3..=14).for_each(|seq| _ = run.fails(seq, "exit status 1: not signed in"));
        run.calls(21, "judge", "Review").refuses(21, "no key");
        assert_snapshot!(shown(&run, 80, 30, 2_500));
        assert_snapshot!(shown(&run, 60, 6, 2_500));
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
        assert_snapshot!(drawn(&run, notice, size, 3_500, &Palette::default()).join("\n"));
    }

    #[test]
    fn colours_only_repeat_what_is_written() {
        let size = Size { columns: 80, rows: 20 };
        let coloured = drawn(&busy(), None, size, 3_000, &Palette::new(true));
        let bare: Vec<String> =
            coloured.iter().map(|row| anstream::adapter::strip_str(row).to_string()).collect();
        assert_ne!(coloured, bare);
        assert_eq!(bare.join("\n"), shown(&busy(), 80, 20, 3_000));
    }

    proptest! {
        #[test]
        fn a_frame_never_outgrows_its_place(
            told in prop::collection::vec((0..10, 1u32..60, any::<String>()), 0..120),
            (columns, rows) in (0usize..50, 0usize..30),
        ) {
            let mut run = Run::of(planned("w", &["A"]));
            for (step, (what, seq, name)) in told.into_iter().enumerate() {
                run.at(step as u64 * 70);
                match what {
                    0 => run.phase(&name),
                    6 => run.calls(seq + 60 * step as u32, &name, "A"),
                    7 => run.retries(seq, &name, 900),
                    8 => run.refuses(seq, &name),
                    9 => run.fails(seq, "alike"),
                    1..3 => run.agent(seq + 60 * step as u32, &name, if seq % 3 == 0 { &name } else { "A" }),
                    3 => run.ends(seq, Failed),
                    _ => run.ends(seq, Completed),
                };
            }
            let size = Size { columns, rows };
            let picture = drawn(&run, Some("notice"), size, 9_000, &Palette::new(true));
            prop_assert!(picture.len() <= rows);
            for row in picture {
                let bare = anstream::adapter::strip_str(&row).to_string();
                prop_assert!(text::width(&bare) <= columns);
                prop_assert!(!bare.chars().any(char::is_control));
            }
        }
    }
}
