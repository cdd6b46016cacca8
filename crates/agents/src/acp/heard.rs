//! What a client has heard of its agent: when last, and the answer so far.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agent_client_protocol::v1::schema::{ContentBlock, SessionUpdate, ToolCallId, ToolCallUpdate, ToolKind};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Tools whose kind is remembered. An agent with more is told what those of unknown kind are told.
const MAX_TOOLS: usize = 1000;

/// Shared between the connection, which hears, and the child, which waits.
#[derive(Clone)]
pub(super) struct Heard(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    too_long: Notify,
    answer_bytes: usize,
}

struct State {
    last: Instant,
    /// What the agent said since its last call of a tool.
    text: String,
    /// What it said before that.
    before: String,
    tools: HashMap<ToolCallId, ToolKind>,
    /// Nobody wants the answer any more.
    stopped: bool,
}

impl Heard {
    pub(super) fn new(answer_bytes: usize) -> Self {
        let state = State {
            last: Instant::now(),
            text: String::new(),
            before: String::new(),
            tools: HashMap::new(),
            stopped: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), too_long: Notify::new(), answer_bytes }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-written.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an update of the session.
    pub(super) fn update(&self, update: SessionUpdate) {
        let mut state = self.state();
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                if let ContentBlock::Text(text) = chunk.content {
                    state.text.push_str(&text.text);
                    if state.text.len() > self.0.answer_bytes {
                        state.text.clear();
                        self.0.too_long.notify_one();
                    }
                }
            }
            // What was said before a tool is called is talk about the work, not its result.
            SessionUpdate::ToolCall(call) => {
                if !state.text.trim().is_empty() {
                    state.before = std::mem::take(&mut state.text);
                }
                if state.tools.len() < MAX_TOOLS {
                    state.tools.insert(call.tool_call_id, call.kind);
                }
            }
            _ => {}
        }
    }

    /// The kind of a tool that wants permission: its own words, else what was said when it was called.
    pub(super) fn kind(&self, call: &ToolCallUpdate) -> ToolKind {
        call.fields.kind.or_else(|| self.state().tools.get(&call.tool_call_id).copied()).unwrap_or_default()
    }

    /// The last thing that the agent said, and forgets it.
    pub(super) fn take(&self) -> String {
        let mut state = self.state();
        let (text, before) = (std::mem::take(&mut state.text), std::mem::take(&mut state.before));
        if text.trim().is_empty() { before } else { text }
    }

    /// Ready once the answer is too long.
    pub(super) async fn too_long(&self) {
        self.0.too_long.notified().await;
    }

    /// Ready once nothing was heard for so long; without a time never.
    pub(super) async fn silence(&self, longest: Option<Duration>) {
        let Some(longest) = longest else { return std::future::pending().await };
        loop {
            let last = self.state().last;
            match last.checked_add(longest) {
                Some(end) if end <= Instant::now() => return,
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Notes that nobody wants the answer any more.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }
}

/// Reads what an agent writes, and notes when. A line that never ends is an error.
pub(super) struct Ear<R> {
    pub(super) stream: R,
    pub(super) heard: Heard,
    /// Bytes of the line so far, and the most there may be.
    line: usize,
    most: usize,
}

impl<R> Ear<R> {
    pub(super) fn new(stream: R, heard: Heard, most: usize) -> Self {
        Self { stream, heard, line: 0, most }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Ear<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let new = &buffer.filled()[before..];
        if !new.is_empty() {
            self.heard.state().last = Instant::now();
        }
        self.line = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => new.len() - end - 1,
            None => self.line.saturating_add(new.len()),
        };
        if self.line > self.most {
            // An error comes without bytes.
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other("a message is too long")));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{ContentChunk, ToolCall};
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn says(heard: &Heard, text: &str) {
        heard.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into())));
    }

    fn calls(heard: &Heard) {
        heard.update(SessionUpdate::ToolCall(ToolCall::new("t", "tool").kind(ToolKind::Search)));
    }

    #[test]
    fn the_answer_is_what_was_said_last() {
        let heard = Heard::new(100);
        says(&heard, "Let me ");
        says(&heard, "look.");
        calls(&heard);
        says(&heard, "It is 4");
        says(&heard, "2.");
        assert_eq!(heard.take(), "It is 42.");
        says(&heard, "Done.");
        calls(&heard);
        says(&heard, "\n");
        calls(&heard);
        assert_eq!(heard.take(), "Done.", "work afterwards does not undo the answer");
        assert_eq!(heard.take(), "");
    }

    #[test]
    fn a_tool_is_of_the_kind_that_was_told_last() {
        let heard = Heard::new(100);
        let mut call = ToolCallUpdate::new("t", Default::default());
        assert_eq!(heard.kind(&call), ToolKind::Other);
        calls(&heard);
        assert_eq!(heard.kind(&call), ToolKind::Search);
        call.fields.kind = Some(ToolKind::Delete);
        assert_eq!(heard.kind(&call), ToolKind::Delete);
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_an_error() {
        let lines = "0123456789\n".repeat(100);
        let mut ear = Ear::new(lines.as_bytes(), Heard::new(1), 10);
        assert_eq!(ear.read_to_end(&mut Vec::new()).await.unwrap(), lines.len());
        let mut ear = Ear::new(tokio::io::repeat(b'x'), Heard::new(1), 100_000);
        assert!(ear.read_to_end(&mut Vec::new()).await.is_err());
    }
}
