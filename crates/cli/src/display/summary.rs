//! The last picture of a run: what stays when everything is over.

use anstyle::Style;
use fanfold::{FailureGroup, RunResult, RunView, StopReason, Usage, group_failures};

use super::frame::phase_row;
use super::palette::{Mark, Palette};
use super::row::{Pieces, Row, counted};
use super::text;
use super::tree::{Tree, elapsed};
use super::worktrees;

/// Phases and failures that are listed. The lines of the other display (`plain`) have them all.
const MAX_LISTED: usize = 30;
/// Columns of a reason. Some are whole pages.
const MAX_REASON: usize = 500;

/// Draws the end of a run, or of a display that was told to stop before it. The lines stay, so they may be of
/// any length: the terminal wraps them.
pub(crate) fn summary(run: &RunView, result: Option<&RunResult>, now: u64, palette: &Palette) -> Vec<String> {
    let phases = Tree::of(run, &[]).phases;
    let listed = phases.iter().take(MAX_LISTED);
    let mut lines: Vec<String> =
        listed.map(|phase| phase_row(phase, false, usize::MAX, now, palette)).collect();
    let more = |lines: &mut Vec<String>, all: usize, what: &str| {
        if all > MAX_LISTED {
            let faint = palette.faint;
            lines.push(format!("{faint}… and {} more {what}{faint:#}", all - MAX_LISTED));
        }
    };
    more(&mut lines, phases.len(), "phases");
    let failed = failures(run, result);
    lines.extend(failed.iter().take(MAX_LISTED).map(|group| {
        let (style, mark) = palette.mark(Mark::Failed, now);
        let shown = |text: &str| text::cut(&text::line(text), MAX_REASON).into_owned();
        format!("{style}{mark}{style:#} {}", group.sentence(shown))
    }));
    more(&mut lines, failed.len(), "reasons");
    if let Some(result) = result {
        let kept = result.worktrees.iter().take(MAX_LISTED).map(|worktree| {
            let odd = palette.odd;
            format!("{odd}±{odd:#} {}", worktrees::described(worktree, &worktree.path))
        });
        lines.extend(kept);
        more(&mut lines, result.worktrees.len(), "worktrees");
    }
    lines.push(verdict(run, result, now, palette));
    lines
}

/// What failed, by its reasons: what the result says, or else what is known so far.
pub(crate) fn failures(run: &RunView, result: Option<&RunResult>) -> Vec<FailureGroup> {
    group_failures(result.map_or(run.failures(), |result| &result.failures))
}

/// How the run ended: its mark, the word for it and the error's code.
pub(crate) fn ending(result: Option<&RunResult>) -> (Mark, String) {
    match result.map(|result| (result.stop_reason, result.error.as_ref().and_then(|error| error.code))) {
        None => (Mark::Cancelled, "stopped".into()),
        Some((StopReason::Completed, _)) => (Mark::Completed, "completed".into()),
        Some((StopReason::Cancelled, _)) => (Mark::Cancelled, "cancelled".into()),
        Some((StopReason::Error, None)) => (Mark::Failed, "failed".into()),
        Some((StopReason::Error, Some(code))) => (Mark::Failed, format!("failed ({code})")),
    }
}

fn verdict(run: &RunView, result: Option<&RunResult>, now: u64, palette: &Palette) -> String {
    let (mark, word) = ending(result);
    let mark = palette.mark(mark, now);
    let mut facts = Pieces::default();
    facts.add(mark.0, word);
    facts.add(Style::new(), counted(run.run().agents.started() as usize, "agent"));
    facts.add_tally(&run.run().agents, palette);
    if let Some(usage) = result.and_then(|result| result.usage) {
        facts.add(palette.faint, tokens(usage));
    }
    facts.add(palette.faint, text::span(elapsed(run, now)));
    Row::new(usize::MAX).mark(mark).pieces(&facts, palette).finish()
}

/// What the agents cost, in few characters: `7.3k tokens read (7.0k from a cache), 340 written, $0.0123`.
pub(crate) fn tokens(usage: Usage) -> String {
    let cached = match usage.cache_read_tokens {
        0 => String::new(),
        read => format!(" ({} from a cache)", short(read)),
    };
    let cost = usage.cost_usd.map(|cost| format!(", ${:.4}", cost.dollars())).unwrap_or_default();
    format!("{} tokens read{cached}, {} written{cost}", short(usage.input_tokens), short(usage.output_tokens))
}

/// A number in at most five characters or so.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use fanfold::Usd;

    use super::*;

    #[test]
    fn tokens_are_told_in_few_characters() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12.3k"),
            (999_999, "999.9k"),
            (1_950_000, "1.9M"),
        ] {
            assert_eq!(short(number), expected);
        }
        assert_eq!(tokens(Usage::new(1_234, 56)), "1.2k tokens read, 56 written");
        let cached = Usage::new(7_310, 5).cached(7_000, 300).costing(Usd::from_billionths(12_345_678));
        assert_eq!(tokens(cached), "7.3k tokens read (7.0k from a cache), 5 written, $0.0123");
    }
}
