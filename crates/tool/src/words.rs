//! What a model is shown of answers, in words.

use fanfold::{AgentFailure, group_failures, text};

use crate::answer::{
    AgentCounts, EventLine, FailedAgents, ListedRun, PhaseStatus, ResultPage, RunList, RunState, RunStatus,
};

/// How many reasons a text lists, and how many characters of each.
const LISTED_REASONS: usize = 20;
const REASON_CHARS: usize = 200;

/// The failed agents as text for the model; empty if there are none.
pub(crate) fn failures_text(failed: &FailedAgents) -> String {
    match failed.count() {
        0 => String::new(),
        count => format!("\nFailed agents ({count}):{}", failed.lines()),
    }
}

/// A line for each of the first 20 reasons, before each of them a line break, and one that says how many more there
/// are.
pub(crate) fn failure_lines(failures: &[AgentFailure]) -> String {
    let groups = group_failures(failures);
    let mut text = String::new();
    for group in groups.iter().take(LISTED_REASONS) {
        text.push_str(&format!("\n- {}", group.sentence(|text| line(text, REASON_CHARS))));
    }
    match groups.len().saturating_sub(LISTED_REASONS) {
        0 => {}
        1 => text.push_str("\n- and 1 more reason"),
        more => text.push_str(&format!("\n- and {more} more reasons")),
    }
    text
}

/// The first line of a text, at most `chars` characters.
pub(crate) fn line(text: &str, chars: usize) -> String {
    short(text.lines().next().unwrap_or_default(), chars)
}

/// A text, cut after `chars` characters.
pub(crate) fn short(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A duration as people say it.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

impl AgentCounts {
    fn text(&self) -> String {
        let Self { running, completed, failed, cancelled } = self;
        format!("{running} running, {completed} completed, {failed} failed, {cancelled} cancelled")
    }
}

impl RunStatus {
    /// What a model is shown.
    pub(crate) fn text(&self) -> String {
        let Self { name, state, elapsed_ms, last_event_age_ms, .. } = self;
        let elapsed = duration(*elapsed_ms);
        let mut text = match state {
            RunState::Running => format!(
                "workflow \"{name}\" is running: {elapsed} so far, last event {} ago.",
                duration(*last_event_age_ms)
            ),
            RunState::Completed => format!("workflow \"{name}\" completed after {elapsed}."),
            RunState::Cancelled => format!("workflow \"{name}\" was cancelled after {elapsed}."),
            RunState::Error => format!("workflow \"{name}\" failed after {elapsed}."),
        };
        if let Some(error) = &self.error {
            text.push_str(&format!("\nError: {error}"));
        }
        text.push_str(&format!("\nAgents: {}", self.agents.text()));
        if let Some(phase) = &self.phase {
            text.push_str(&format!("\nPhase: {phase}"));
        }
        for PhaseStatus { title, agents } in &self.phases {
            text.push_str(&format!("\n- {title}: {}", agents.text()));
        }
        if !self.last_events.is_empty() {
            text.push_str("\nLast events:");
        }
        for EventLine { age_ms, text: event, .. } in &self.last_events {
            text.push_str(&format!("\n- {} ago: {event}", duration(*age_ms)));
        }
        text
    }
}

impl RunList {
    /// What a model is shown; `tool` is the workflow tool's name.
    pub(crate) fn text(&self, tool: &str) -> String {
        let all = self.runs.len() + self.more as usize;
        let mut text = match all {
            0 => return "You have no workflow runs.".to_owned(),
            1 => "You have 1 workflow run".to_owned(),
            _ => format!("You have {all} workflow runs"),
        };
        text.push_str(&format!(
            ", the latest first. {tool}_status {{\"runId\": \"…\"}} tells more of one, {tool}_result reads its value."
        ));
        for ListedRun { run_id, name, state, elapsed_ms, agents, read } in &self.runs {
            let elapsed = duration(*elapsed_ms);
            let state = match state {
                RunState::Running => format!("is running for {elapsed}"),
                RunState::Completed if *read => format!("completed after {elapsed}; its result was read"),
                RunState::Completed => format!("completed after {elapsed}; its result was not read yet"),
                RunState::Cancelled => format!("was cancelled after {elapsed}"),
                RunState::Error => format!("failed after {elapsed}"),
            };
            text.push_str(&format!("\n- {run_id} \"{name}\" {state}. Agents: {}", agents.text()));
        }
        if self.more > 0 {
            text.push_str(&format!("\n- and {} more", self.more));
        }
        text
    }
}

impl ResultPage {
    /// What a model is shown of a page; `tool` is what gives the next one.
    pub(crate) fn text(&self, tool: &str) -> String {
        let (Some(page), Some(offset), Some(total)) = (&self.page, self.offset, self.total) else {
            return format!(
                "workflow \"{}\" is still running: there is no result yet. Ask again later, or give waitMs.",
                self.name
            );
        };
        let completed = text::completed(&self.name, self.agents_started.unwrap_or_default());
        match self.next_offset {
            None if offset == 0 => format!("{completed}\nReturn value:\n{page}"),
            next => {
                let end = next.unwrap_or(total);
                let mut text =
                    format!("{completed}\nReturn value, characters {offset} to {end} of {total}:\n{page}");
                if let Some(next) = next {
                    text.push_str(&format!(
                        "\n… [{} more characters: {tool} {{\"runId\": \"{}\", \"offset\": {next}}}]",
                        total - next,
                        self.run_id
                    ));
                }
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fanfold::{RunResult, StopReason};

    use super::*;

    #[test]
    fn durations_are_what_people_say() {
        for (ms, text) in [(0, "0.0 s"), (59_999, "59.9 s"), (60_000, "1 min 0 s"), (3_725_000, "1 h 2 min")]
        {
            assert_eq!(duration(ms), text);
        }
    }

    fn failed(failures: Vec<AgentFailure>) -> FailedAgents {
        let mut result = RunResult::new(StopReason::Completed, None);
        result.failures = failures;
        FailedAgents::of(&result)
    }

    #[test]
    fn a_long_list_of_reasons_is_cut() {
        assert_eq!(failures_text(&failed(Vec::new())), "");
        let failure = |seq| {
            let reason = format!("reason {seq}\n{}", "more".repeat(1000));
            AgentFailure::new(seq, "a\nb", reason)
        };
        for (count, last) in [
            (20, "\n- #20 a failed: reason 20"),
            (21, "\n- and 1 more reason"),
            (75, "\n- and 55 more reasons"),
        ] {
            let text = failures_text(&failed((1..=count).map(failure).collect()));
            let begin = format!("\nFailed agents ({count}):\n- #1 a failed: reason 1\n- #2");
            assert!(text.starts_with(&begin) && text.ends_with(last), "{text}");
            assert_eq!(text.lines().count(), 2 + count.min(21) as usize);
        }
    }

    #[test]
    fn agents_that_failed_alike_are_listed_once() {
        for count in [12, 1200] {
            let failure = |seq| AgentFailure::new(seq, "check", "é".repeat(400));
            let text = failures_text(&failed((3..3 + count).map(failure).collect()));
            let reason = "é".repeat(200);
            let expected =
                format!("\nFailed agents ({count}):\n- {count} agents failed: {reason}… (first: #3 check)");
            assert_eq!(text, expected);
        }
    }
}
