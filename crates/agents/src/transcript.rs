//! What an agent has said so far: on to the observers of the run as it comes, and its end into the reasons of failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold::Activity;
use tokio::time::Instant;

use crate::text::{self, Tail};

/// How much of the end of each goes into a reason, in bytes. Together with a message of
/// [`MESSAGE_BYTES`](crate::failure::MESSAGE_BYTES) this is what the engine shows of one.
const TEXT_BYTES: usize = 1000;
const STDERR_BYTES: usize = 1000;
const STRAY_BYTES: usize = 300;

/// Takes what an agent says in its current attempt, and notes when. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    activity: Activity,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    last_heard: Instant,
    output: Utf8,
    stderr: Utf8,
    /// What its process wrote among the messages of a protocol, and is none.
    stray: Tail,
}

impl Default for State {
    fn default() -> Self {
        Self {
            last_heard: Instant::now(),
            output: Utf8::default(),
            stderr: Utf8::default(),
            stray: Tail::new(STRAY_BYTES),
        }
    }
}

impl Transcript {
    /// The transcript of an agent with this activity.
    pub(crate) fn new(activity: Activity) -> Self {
        Self { activity, state: Arc::default() }
    }

    /// Notes a sign of life.
    pub fn heard(&self) {
        self.state().last_heard = Instant::now();
    }

    /// Takes words of the agent: its answer, and what comes before it.
    pub fn text(&self, text: &str) {
        self.heard();
        if !text.is_empty() {
            self.activity.text(text);
        }
    }

    /// Takes what the agent's process wrote to standard output, where those are its words.
    pub(crate) fn output(&self, bytes: &[u8]) {
        let text = self.state().output.push(bytes);
        self.text(&text);
    }

    /// Takes what the agent thinks aloud.
    pub fn reasoning(&self, text: &str) {
        self.heard();
        if !text.is_empty() {
            self.activity.reasoning(text);
        }
    }

    /// Takes a call of a tool.
    pub fn tool(&self, name: &str) {
        self.heard();
        self.activity.tool(name);
    }

    /// Takes what the agent's process wrote to standard error.
    pub fn stderr(&self, bytes: &[u8]) {
        self.heard();
        let text = self.state().stderr.push(bytes);
        if !text.is_empty() {
            self.activity.stderr(&text);
        }
    }

    /// Takes a line that is no message of the protocol that the agent speaks.
    pub(crate) fn stray(&self, line: &str) {
        let mut state = self.state();
        state.stray.push(line.as_bytes());
        state.stray.push(b"\n");
    }

    pub(crate) fn last_heard(&self) -> Instant {
        self.state().last_heard
    }

    /// Begins anew, with an attempt. The activity does so with the report of a retry.
    pub(crate) fn begin(&self) {
        *self.state() = State::default();
    }

    /// The ends of what was said, as clauses to follow a reason.
    pub(crate) fn told(&self) -> String {
        let stray = self.state().stray.text();
        let parts = [
            ("standard error: ", text::tail(self.activity.stderr_tail().as_bytes(), STDERR_BYTES)),
            ("besides its messages it wrote: ", stray),
            ("it had said: ", text::tail(self.activity.tail().as_bytes(), TEXT_BYTES)),
        ];
        let said = parts.into_iter().filter(|(_, said)| !said.is_empty());
        said.map(|(name, said)| format!("; {name}{said}")).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream of bytes as text, in pieces that may be cut within a character.
#[derive(Debug, Default)]
struct Utf8 {
    /// The bytes of a character that is not complete.
    cut: Vec<u8>,
}

impl Utf8 {
    /// The text of the next bytes, invalid ones replaced.
    fn push(&mut self, bytes: &[u8]) -> String {
        self.cut.extend_from_slice(bytes);
        let complete = self.cut.len() - cut_off(&self.cut);
        let cut = self.cut.split_off(complete);
        String::from_utf8_lossy(&std::mem::replace(&mut self.cut, cut)).into_owned()
    }
}

/// How many bytes at the end are the beginning of a character that goes on.
fn cut_off(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).position(|byte| !matches!(byte, 0x80..=0xbf));
    let Some(back) = last else { return 0 };
    let length = match bytes[bytes.len() - 1 - back] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if length > back + 1 { back + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_whole_in_whatever_pieces_they_come() {
        for text in ["a\u{e9}\u{20ac}\u{1f600}b", "\u{1f600}"] {
            for size in 1..text.len() {
                let mut stream = Utf8::default();
                let read: String = text.as_bytes().chunks(size).map(|bytes| stream.push(bytes)).collect();
                assert_eq!(read, text, "in pieces of {size}");
            }
        }
        let mut stream = Utf8::default();
        assert_eq!(stream.push(b"\xff\x80\xc3"), "\u{fffd}\u{fffd}");
        assert_eq!(stream.push(b"x\xf0\x9f"), "\u{fffd}x");
        assert_eq!(stream.push(b"\xff"), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn the_ends_of_all_that_was_said_are_told() {
        let transcript = Transcript::default();
        assert_eq!(transcript.told(), "");
        transcript.text("half of ");
        transcript.output("an \u{e9}".as_bytes());
        transcript.stderr(b"warning\n");
        transcript.stray("Loading");
        assert_eq!(
            transcript.told(),
            "; standard error: warning; besides its messages it wrote: Loading; it had said: half of an \u{e9}"
        );
        transcript.text(&"\u{e9}".repeat(TEXT_BYTES));
        transcript.stderr(&[b'x'; 10 * STDERR_BYTES]);
        transcript.stray(&"y".repeat(10 * STRAY_BYTES));
        assert!(transcript.told().len() < TEXT_BYTES + STDERR_BYTES + STRAY_BYTES + 100);
    }
}
