//! What a run has to say to its client, until somebody says it.
//!
//! How a client is told things, and asked, depends on its protocol, and whoever speaks with it comes and goes: a
//! request that waits for the run, the next one, nobody. So a run leaves here what it has to say: where it is, what its
//! script logged, and what its subagents ask of the client's model.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold::{AgentOutcome, CancellationToken, Event, EventKind, Meta, Observer};
use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, LoggingLevel};
use tokio::sync::{oneshot, watch};

/// How many log lines are kept for a client that does not come for them; the oldest go first.
const MAX_LINES: usize = 1000;

/// What a run has to say. An observer of the run fills it: [`Outbox::observer`].
#[derive(Default)]
pub(crate) struct Outbox {
    content: Mutex<Content>,
    /// Goes up with everything that is put in.
    version: watch::Sender<u64>,
    /// The run is over: nothing more comes.
    closed: CancellationToken,
}

#[derive(Default)]
struct Content {
    progress: Progress,
    lines: VecDeque<Line>,
    last_question: u64,
    questions: BTreeMap<u64, Question>,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) phase: Option<String>,
    pub(crate) started: u32,
    pub(crate) ended: u32,
    pub(crate) failed: u32,
}

impl Progress {
    /// In words.
    pub(crate) fn text(&self) -> String {
        let Self { phase, started, ended, failed } = self;
        let agents = match started {
            0 => "no agent yet".to_owned(),
            1 => format!("{ended} of 1 agent done"),
            _ => format!("{ended} of {started} agents done"),
        };
        let failed = if *failed > 0 { format!(", {failed} without success") } else { String::new() };
        match phase {
            Some(phase) => format!("{phase}: {agents}{failed}"),
            None => format!("{agents}{failed}"),
        }
    }
}

/// A line that the script logged, or a warning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) level: LoggingLevel,
    pub(crate) text: String,
}

/// What a subagent asks of the client's model.
pub(crate) struct Question {
    pub(crate) params: CreateMessageRequestParams,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// What the client's model said, or why it said nothing.
pub(crate) type Reply = Result<CreateMessageResult, String>;

impl Outbox {
    /// Who must watch the run.
    pub(crate) fn observer(self: &Arc<Self>) -> impl Observer + use<> {
        Watcher(self.clone())
    }

    /// Leaves a question for the client's model. Dropping the receiver withdraws it.
    pub(crate) fn ask(&self, params: CreateMessageRequestParams) -> oneshot::Receiver<Reply> {
        let (reply, receiver) = oneshot::channel();
        let mut content = self.lock();
        content.last_question += 1;
        let number = content.last_question;
        content.questions.insert(number, Question { params, reply });
        drop(content);
        self.touch();
        receiver
    }

    /// Takes the questions that nobody took yet, for a client that is asked one by one.
    pub(crate) fn take_questions(&self) -> Vec<Question> {
        mem::take(&mut self.lock().questions).into_values().collect()
    }

    /// All questions without an answer, by their names, for a client that is told them when it comes by. They stay
    /// until they are answered: a client that lost an answer is asked again.
    pub(crate) fn show_questions(&self) -> Vec<(String, CreateMessageRequestParams)> {
        let mut content = self.lock();
        content.questions.retain(|_, question| !question.reply.is_closed());
        content.questions.iter().map(|(number, question)| (name(*number), question.params.clone())).collect()
    }

    /// Whether there is a question to show.
    pub(crate) fn has_questions(&self) -> bool {
        self.lock().questions.values().any(|question| !question.reply.is_closed())
    }

    /// Hands in the answer to a question shown. Answers to others are ignored.
    pub(crate) fn answer(&self, name: &str, reply: Reply) {
        let question = number(name).and_then(|number| self.lock().questions.remove(&number));
        if let Some(question) = question {
            // Whoever asked may have gone.
            let _ = question.reply.send(reply);
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.lock().progress.clone()
    }

    /// Takes the log lines that are there.
    pub(crate) fn take_lines(&self) -> VecDeque<Line> {
        mem::take(&mut self.lock().lines)
    }

    /// Changes whenever something is put in.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Fires once the run is over.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Takes no more: whoever asked and whoever serves it may go.
    pub(crate) fn close(&self) {
        self.lock().questions.clear();
        self.closed.cancel();
        self.touch();
    }

    fn put_line(&self, level: LoggingLevel, text: &str) {
        let mut content = self.lock();
        if content.lines.len() == MAX_LINES {
            content.lines.pop_front();
        }
        content.lines.push_back(Line { level, text: text.to_owned() });
    }

    fn touch(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        // Nothing that holds the lock can leave the content half-written.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a question is called on the wire.
fn name(number: u64) -> String {
    format!("agent-question-{number}")
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix("agent-question-")?.parse().ok()
}

/// Puts what happens in a run into its outbox.
struct Watcher(Arc<Outbox>);

impl Observer for Watcher {
    fn event(&self, _meta: &Meta, event: &Event) {
        match &event.kind {
            EventKind::Phase { title } => self.0.lock().progress.phase = Some(title.to_string()),
            EventKind::Log { message } => self.0.put_line(LoggingLevel::Info, message),
            EventKind::Warning { message } => self.0.put_line(LoggingLevel::Warning, message),
            EventKind::AgentStart { .. } => self.0.lock().progress.started += 1,
            EventKind::AgentEnd { agent } => {
                let mut content = self.0.lock();
                content.progress.ended += 1;
                content.progress.failed += u32::from(agent.outcome == AgentOutcome::Failed);
            }
            EventKind::End { .. } => return self.0.close(),
            _ => return,
        }
        self.0.touch();
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::SamplingMessage;

    use super::*;

    fn question(text: &str) -> CreateMessageRequestParams {
        CreateMessageRequestParams::new(vec![SamplingMessage::user_text(text)], 10)
    }

    fn answer(text: &str) -> CreateMessageResult {
        CreateMessageResult::new(SamplingMessage::assistant_text(text), "m".into())
    }

    #[tokio::test]
    async fn a_question_is_shown_until_it_is_answered() {
        let outbox = Outbox::default();
        let receiver = outbox.ask(question("one"));
        assert!(outbox.has_questions());
        let shown = outbox.show_questions();
        assert_eq!(outbox.show_questions(), shown);
        outbox.answer("agent-question-99", Err("nobody asked".into()));
        outbox.answer(&shown[0].0, Ok(answer("two")));
        assert_eq!(receiver.await.unwrap().unwrap(), answer("two"));
        assert!(!outbox.has_questions());
    }

    #[tokio::test]
    async fn questions_of_those_who_have_gone_are_withdrawn() {
        let outbox = Outbox::default();
        drop(outbox.ask(question("one")));
        assert!(!outbox.has_questions());
        assert!(outbox.show_questions().is_empty());
        let receiver = outbox.ask(question("two"));
        outbox.close();
        assert!(receiver.await.is_err());
    }

    #[test]
    fn progress_reads_as_a_sentence() {
        let text = |phase: Option<&str>, started, ended, failed| {
            Progress { phase: phase.map(Into::into), started, ended, failed }.text()
        };
        assert_eq!(text(None, 0, 0, 0), "no agent yet");
        assert_eq!(text(Some("Review"), 1, 0, 0), "Review: 0 of 1 agent done");
        assert_eq!(text(Some("Review"), 7, 3, 1), "Review: 3 of 7 agents done, 1 without success");
    }

    #[test]
    fn lines_that_nobody_takes_are_bounded() {
        let outbox = Arc::new(Outbox::default());
        for n in 0..MAX_LINES + 2 {
            outbox.put_line(LoggingLevel::Info, &n.to_string());
        }
        let lines = outbox.take_lines();
        assert_eq!((lines.len(), lines[0].text.as_str()), (MAX_LINES, "2"));
        assert!(outbox.take_lines().is_empty());
    }
}
