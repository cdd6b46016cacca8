//! What a model is shown of answers, in words.

use fanfold::{AgentFailure, text};

use crate::answer::{
    AgentCounts, EventLine, FailedAgents, ListedRun, PhaseStatus, ResultPage, RunList, RunState, RunStatus,
};

/// How many failures a text lists, and how many characters of each reason.
const LISTED_FAILURES: usize = 20;
const REASON_CHARS: usize = 200;

impl FailedAgents {
    /// How many there are in all.
    pub fn count(&self) -> usize {
        self.failures.len() + self.more as usize
    }

    /// A line for each of the first 20, before each of them a line break, and one that says how many more there are.
    pub fn lines(&self) -> String {
        lines(&self.failures, self.more)
    }
}

/// The failed agents as text for the model; empty if there are none. `more` have failed besides.
pub(crate) fn failures_text(failures: &[AgentFailure], more: u32) -> String {
    match failures.len() + more as usize {
        0 => String::new(),
        all => format!("\nFailed agents ({all}):{}", lines(failures, more)),
    }
}

fn lines(failures: &[AgentFailure], more: u32) -> String {
    let mut text = String::new();
    for AgentFailure { seq, label, reason } in failures.iter().take(LISTED_FAILURES) {
        let reason = line(reason, REASON_CHARS);
        text.push_str(&format!("\n- agent {seq} {label:?}: {reason}"));
    }
    if let more @ 1.. = (failures.len() + more as usize).saturating_sub(LISTED_FAILURES) {
        text.push_str(&format!("\n- and {more} more"));
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
    use super::*;

    #[test]
    fn durations_are_what_people_say() {
        for (ms, text) in [(0, "0.0 s"), (59_999, "59.9 s"), (60_000, "1 min 0 s"), (3_725_000, "1 h 2 min")]
        {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn a_long_list_of_failures_is_cut() {
        let mut failures: Vec<AgentFailure> = Vec::new();
        assert_eq!(failures_text(&failures, 0), "");
        for seq in 1..=25 {
            failures.push(AgentFailure { seq, label: "a\nb".into(), reason: "é\nmore".repeat(1000) });
        }
        let text = failures_text(&failures[..20], 5);
        assert_eq!(text, failures_text(&failures, 0));
        assert!(text.starts_with("\nFailed agents (25):\n- agent 1 \"a\\nb\": é\n- agent 2"), "{text}");
        assert!(text.ends_with("\n- and 5 more"), "{text}");
        assert_eq!(text.lines().count(), 23);
    }
}
