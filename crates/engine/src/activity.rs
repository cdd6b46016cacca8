//! What agents say while they work, on its way from their providers to the observers of the run.
//!
//! A provider says every piece as it comes; observers are told twice a second, in pieces that were put together and
//! cut.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fanfold_types::{AgentProgress, AgentRetry, ProgressKind};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// How long pieces are collected before the observers are told.
pub(crate) const COLLECTED_FOR: Duration = Duration::from_millis(500);

/// Longest text of one event, in bytes; of a longer one the end is told.
const MAX_TEXT: usize = 4 << 10;

/// Most bytes that observers are told of one agent, and what a report counts at least. Afterwards they are told only
/// that it is at work, and how often.
const MAX_TOLD: usize = 256 << 10;
const MIN_COUNTED: usize = 64;
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// How much is kept of the end of what an agent has said, in bytes.
const MAX_TAIL: usize = 8 << 10;

/// What an agent does while it works, as its provider reports it. Clones share.
///
/// ```
/// use fanfold::AgentRequest;
///
/// let request = AgentRequest::new("Count the files.");
/// request.activity.tool("find");
/// request.activity.text("There are ");
/// request.activity.text("seven.");
/// assert_eq!(request.activity.tail(), "There are seven.");
/// ```
#[derive(Clone)]
pub struct Activity {
    run: Arc<RunActivity>,
    seq: u32,
}

impl Activity {
    /// The agent says something. Pieces may be cut anywhere between characters.
    pub fn text(&self, piece: &str) {
        self.run.say(self.seq, ProgressKind::Text, piece);
    }

    /// The agent thinks aloud.
    pub fn reasoning(&self, piece: &str) {
        self.run.say(self.seq, ProgressKind::Reasoning, piece);
    }

    /// The process of the agent writes to standard error.
    pub fn stderr(&self, piece: &str) {
        self.run.say(self.seq, ProgressKind::Stderr, piece);
    }

    /// The agent calls a tool.
    pub fn tool(&self, name: &str) {
        self.run.say(self.seq, ProgressKind::Tool, name);
    }

    /// An attempt has failed, and another one begins after the wait. `kind` is one word for the failure, such as
    /// `rateLimit`. What the attempt had said is forgotten.
    pub fn retry(&self, attempt: u32, kind: &str, reason: &str, wait: Duration) {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let (kind, reason) = (kind.to_owned(), reason.to_owned());
        self.run.retry(AgentRetry { seq: self.seq, attempt, kind, reason, wait_ms });
    }

    /// The end of what the agent has said to whoever asked it, of the current attempt: 8 KiB at most.
    pub fn tail(&self) -> String {
        self.run.lock().agents.get(&self.seq).map(|agent| agent.said.clone()).unwrap_or_default()
    }

    /// The end of what its process has written to standard error, of the current attempt: 8 KiB at most.
    pub fn stderr_tail(&self) -> String {
        self.run.lock().agents.get(&self.seq).map(|agent| agent.stderr.clone()).unwrap_or_default()
    }
}

/// Of an agent without a run, for tests of providers: what it says goes nowhere, but its end is kept.
impl Default for Activity {
    fn default() -> Self {
        Self { run: Arc::new(RunActivity::new(false)), seq: 1 }
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").field("seq", &self.seq).finish_non_exhaustive()
    }
}

/// What is to be told of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Report {
    Progress(AgentProgress),
    Retry(AgentRetry),
}

/// What the agents of a run have said and the run state does not know yet.
pub(crate) struct RunActivity {
    collected: Mutex<Collected>,
    /// Something was collected.
    some: Notify,
    /// Whether there are observers.
    is_told: bool,
}

#[derive(Default)]
struct Collected {
    reports: Vec<Report>,
    agents: BTreeMap<u32, Agent>,
}

/// One agent that has said something.
#[derive(Default)]
struct Agent {
    said: String,
    stderr: String,
    /// How much observers were told of it, and when last.
    told: usize,
    last: Option<Instant>,
}

impl RunActivity {
    pub(crate) fn new(is_told: bool) -> Self {
        Self { collected: Mutex::default(), some: Notify::new(), is_told }
    }

    /// What the agent of this call reports to.
    pub(crate) fn of(self: &Arc<Self>, seq: u32) -> Activity {
        Activity { run: self.clone(), seq }
    }

    /// Ready some time after something was said, once what follows at once has been collected with it.
    pub(crate) async fn collected(&self) {
        self.some.notified().await;
        sleep(COLLECTED_FOR).await;
    }

    /// Takes what was collected.
    pub(crate) fn take(&self) -> Vec<Report> {
        std::mem::take(&mut self.lock().reports)
    }

    /// An agent has ended: its end is forgotten.
    pub(crate) fn ended(&self, seq: u32) {
        self.lock().agents.remove(&seq);
    }

    fn say(&self, seq: u32, kind: ProgressKind, piece: &str) {
        let mut collected = self.lock();
        let Collected { reports, agents } = &mut *collected;
        let agent = agents.entry(seq).or_default();
        match kind {
            ProgressKind::Text => append(&mut agent.said, piece, MAX_TAIL),
            ProgressKind::Stderr => append(&mut agent.stderr, piece, MAX_TAIL),
            _ => {}
        }
        if !self.is_told {
            return;
        }
        if agent.told >= MAX_TOLD {
            if agent.last.is_none_or(|last| last.elapsed() >= SIGN_OF_LIFE) {
                agent.last = Some(Instant::now());
                reports.push(Report::Progress(AgentProgress { seq, kind, text: String::new() }));
                self.some.notify_one();
            }
            return;
        }
        // What an agent says is put together, unless it has said something else in between. Tools are told one by one.
        let last = reports.iter_mut().rev().find(|report| report.seq() == seq);
        match last {
            Some(Report::Progress(progress)) if progress.kind == kind && kind != ProgressKind::Tool => {
                agent.told += piece.len();
                append(&mut progress.text, piece, MAX_TEXT);
            }
            _ => {
                agent.told += piece.len().max(MIN_COUNTED);
                agent.last = Some(Instant::now());
                let mut text = String::new();
                append(&mut text, piece, MAX_TEXT);
                reports.push(Report::Progress(AgentProgress { seq, kind, text }));
                self.some.notify_one();
            }
        }
    }

    fn retry(&self, retry: AgentRetry) {
        let mut collected = self.lock();
        if let Some(agent) = collected.agents.get_mut(&retry.seq) {
            agent.said.clear();
            agent.stderr.clear();
        }
        if self.is_told {
            collected.reports.push(Report::Retry(retry));
            self.some.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        // Nothing that holds the lock can leave the reports half-written.
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report {
    fn seq(&self) -> u32 {
        match self {
            Self::Progress(progress) => progress.seq,
            Self::Retry(retry) => retry.seq,
        }
    }
}

/// Appends a piece to a text of which the end is kept: at most so many bytes.
fn append(text: &mut String, piece: &str, most: usize) {
    let piece = &piece[piece.ceil_char_boundary(piece.len().saturating_sub(most))..];
    let excess = (text.len() + piece.len()).saturating_sub(most);
    text.drain(..text.ceil_char_boundary(excess));
    text.push_str(piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(seq: u32, kind: ProgressKind, text: &str) -> Report {
        Report::Progress(AgentProgress { seq, kind, text: text.into() })
    }

    #[test]
    fn pieces_of_one_kind_are_put_together_agent_by_agent() {
        let run = Arc::new(RunActivity::new(true));
        let (one, two) = (run.of(1), run.of(2));
        one.text("a");
        two.text("x");
        one.text("b");
        one.tool("grep");
        one.tool("grep");
        two.text("y");
        one.text("c");
        let expected = [
            progress(1, ProgressKind::Text, "ab"),
            progress(2, ProgressKind::Text, "xy"),
            progress(1, ProgressKind::Tool, "grep"),
            progress(1, ProgressKind::Tool, "grep"),
            progress(1, ProgressKind::Text, "c"),
        ];
        assert_eq!(run.take(), expected);
        assert_eq!(run.take(), []);
        assert_eq!((one.tail(), two.tail()), ("abc".to_owned(), "xy".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_and_kept_is_bounded_and_cut_between_characters() {
        let run = Arc::new(RunActivity::new(true));
        let agent = run.of(1);
        for _ in 0..2_000 {
            agent.text(&"é".repeat(100));
        }
        assert!((MAX_TAIL - 1..=MAX_TAIL).contains(&agent.tail().len()));
        let [Report::Progress(first)] = &run.take()[..] else { panic!("one report") };
        assert!((MAX_TEXT - 1..=MAX_TEXT).contains(&first.text.len()));
        // It has said too much, and is still at work.
        agent.text("more");
        agent.tool("grep");
        assert_eq!(run.take(), []);
        sleep(SIGN_OF_LIFE).await;
        agent.text("more");
        agent.tool("grep");
        assert_eq!(run.take(), [progress(1, ProgressKind::Text, "")]);
        agent.text(&"z".repeat(MAX_TAIL * 3));
        assert_eq!(agent.tail(), "z".repeat(MAX_TAIL));
    }

    #[test]
    fn an_agent_that_calls_tools_without_end_is_bounded_too() {
        let run = Arc::new(RunActivity::new(true));
        for _ in 0..100_000 {
            run.of(1).tool("x");
        }
        assert!(run.take().len() <= MAX_TOLD / MIN_COUNTED);
    }

    #[test]
    fn a_retry_comes_after_what_was_said_before_and_forgets_it() {
        let run = Arc::new(RunActivity::new(true));
        let agent = run.of(1);
        agent.text("half of");
        agent.stderr("warning");
        agent.retry(1, "server", "overloaded", Duration::from_millis(500));
        assert_eq!((agent.tail(), agent.stderr_tail()), (String::new(), String::new()));
        agent.text("whole");
        let [_, _, Report::Retry(retry), _] = &run.take()[..] else { panic!("four reports") };
        assert_eq!((retry.attempt, retry.kind.as_str(), retry.wait_ms), (1, "server", 500));
        assert_eq!(agent.tail(), "whole");
    }

    #[test]
    fn without_observers_only_the_end_is_kept() {
        let run = Arc::new(RunActivity::new(false));
        run.of(1).text("a");
        run.of(1).retry(1, "server", "overloaded", Duration::ZERO);
        run.of(1).text("b");
        assert_eq!(run.take(), []);
        assert_eq!(run.of(1).tail(), "b");
        run.ended(1);
        assert_eq!(run.of(1).tail(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn observers_are_told_a_little_after_something_was_said() {
        let run = Arc::new(RunActivity::new(true));
        let began = tokio::time::Instant::now();
        run.of(1).text("a");
        run.collected().await;
        assert!(began.elapsed() >= COLLECTED_FOR);
        assert!(tokio::time::timeout(Duration::from_secs(60), run.collected()).await.is_err());
    }
}
