//! The two streams of an agent as the protocol's library wants them, and what has to be seen before it does.
//!
//! The library takes lines and gives lines. On their way session updates are taken out, so that none is lost and all
//! come before the response that they belong to; what is no message is kept for reasons; and what breaks the protocol
//! ends the attempt at once, where the library would pass over it and wait.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::{ToolCallUpdate, ToolKind};
use futures::{Sink, Stream, stream};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::frames::{self, Item, Lines, TooLong};
use super::updates::{Said, Updates};
use crate::failure::{Failure, FailureKind};
use crate::policy::Transcript;
use crate::text;

/// How many requests of an agent may wait until it reads their answers. What an agent is answered is made at once, so
/// one that does not read could have as many answers kept as it likes.
const MAX_UNREAD: usize = 1000;

/// How long an agent's input may be closed before that counts as its end.
const CLOSED_FOR: Duration = Duration::from_millis(500);

/// How much of a message that cannot be read is shown, in bytes.
const SHOWN_BYTES: usize = 200;

/// What both directions, and who waits for the answer, share.
#[derive(Clone)]
pub(super) struct Wire(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    failed: Notify,
    transcript: Transcript,
    answer_bytes: usize,
    line_bytes: usize,
}

#[derive(Default)]
struct State {
    updates: Updates,
    /// The ids of our requests that are not answered yet.
    asked: HashSet<String>,
    /// The beginning of the last answer to one of them; none for one that is an error.
    result: Option<String>,
    /// How many requests of the agent wait for their answer to be written.
    unread: usize,
    /// What broke the protocol first.
    failure: Option<Failure>,
    /// The answer is no longer wanted.
    stopped: bool,
}

/// A message of ours, as far as it matters here.
#[derive(Deserialize)]
struct Outgoing {
    id: Option<Value>,
    method: Option<serde::de::IgnoredAny>,
}

impl Wire {
    /// With the longest answer, and the longest line, in bytes.
    pub(super) fn new(transcript: Transcript, answer_bytes: usize, line_bytes: usize) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared { state, failed: Notify::new(), transcript, answer_bytes, line_bytes }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-written.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready once the protocol is broken.
    pub(super) async fn failed(&self) -> Failure {
        loop {
            if let Some(failure) = self.failure() {
                return failure;
            }
            self.0.failed.notified().await;
        }
    }

    /// What broke the protocol, if it is broken.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.state().failure.clone()
    }

    fn fail(&self, kind: FailureKind, message: String) -> io::Error {
        let failure = Failure::new(kind, message);
        self.state().failure.get_or_insert(failure);
        self.0.failed.notify_one();
        io::Error::other("the protocol is broken")
    }

    /// The last thing that the agent said, and forgets it.
    pub(super) fn take_answer(&self) -> String {
        self.state().updates.take()
    }

    pub(super) fn kind(&self, call: &ToolCallUpdate) -> ToolKind {
        self.state().updates.kind(call)
    }

    /// The beginning of the agent's last answer to a request; none for one that is an error.
    pub(super) fn result(&self) -> Option<String> {
        self.state().result.clone()
    }

    /// Notes that the answer is no longer wanted.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// The messages of the agent that the library has to see.
    pub(super) fn incoming(
        &self,
        stdout: impl AsyncRead + Unpin + Send + 'static,
    ) -> impl Stream<Item = io::Result<String>> + Send + 'static {
        let incoming = Incoming {
            wire: self.clone(),
            stdout: Some(stdout),
            bytes: vec![0; 16 * 1024],
            lines: Lines::default(),
            ready: VecDeque::new(),
        };
        let next = |mut incoming: Incoming<_>| async move {
            Ok(incoming.next().await?.map(|message| (message, incoming)))
        };
        Box::pin(stream::try_unfold(incoming, next))
    }

    /// Takes the messages of the library.
    pub(super) fn outgoing(
        &self,
        stdin: impl AsyncWrite + Unpin + Send + 'static,
    ) -> impl Sink<String, Error = io::Error> + Send + 'static {
        futures::sink::unfold((self.clone(), stdin), async |(wire, mut stdin), line: String| {
            let message = serde_json::from_str(&line).map_err(io::Error::from)?;
            wire.asked(&message);
            let mut bytes = line.into_bytes();
            bytes.push(b'\n');
            let written = async {
                stdin.write_all(&bytes).await?;
                stdin.flush().await
            };
            if let Err(error) = written.await {
                // An agent that has ended is told by what it wrote before, which is read meanwhile.
                sleep(CLOSED_FOR).await;
                return Err(wire.fail(FailureKind::Exit, format!("the agent closed its input: {error}")));
            }
            wire.answered(&message);
            Ok((wire, stdin))
        })
    }

    /// Before a message of ours is written.
    fn asked(&self, message: &Outgoing) {
        if let (Some(id), Some(_)) = (&message.id, &message.method) {
            self.state().asked.insert(id.to_string());
        }
    }

    /// After a message of ours was written.
    fn answered(&self, message: &Outgoing) {
        if message.method.is_none() {
            let mut state = self.state();
            state.unread = state.unread.saturating_sub(1);
        }
    }

    /// Takes a line of the agent, and adds the messages in it that the library has to see.
    fn take_line(&self, line: &[u8], ready: &mut VecDeque<String>) -> io::Result<()> {
        for item in frames::read(line) {
            match item {
                Item::Stray(text) => self.0.transcript.stray(&text),
                Item::Broken(text) => {
                    let shown = shown(&text);
                    let message = format!("the agent sent a message that cannot be read: {shown}");
                    return Err(self.fail(FailureKind::Protocol, message));
                }
                Item::Message(message, text) => self.take_message(&message, text, ready)?,
            }
        }
        Ok(())
    }

    fn take_message(&self, message: &Value, text: String, ready: &mut VecDeque<String>) -> io::Result<()> {
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some("session/update"), None) => self.take_update(message),
            // What the agent wants known, and has no answer.
            (Some(_), None) => Ok(()),
            (Some(_), Some(_)) => {
                let unread = {
                    let mut state = self.state();
                    state.unread += 1;
                    state.unread
                };
                if unread > MAX_UNREAD {
                    let message = format!("the agent has not read the answers to {MAX_UNREAD} requests");
                    return Err(self.fail(FailureKind::Protocol, message));
                }
                ready.push_back(text);
                Ok(())
            }
            (None, id) => {
                let id = id.unwrap_or(&Value::Null).to_string();
                let known = {
                    let mut state = self.state();
                    state.result = message.get("error").is_none().then(|| shown(&text));
                    state.asked.remove(&id)
                };
                if !known {
                    let shown = shown(&text);
                    let message = format!("the agent answered a request that was not made: {shown}");
                    return Err(self.fail(FailureKind::Protocol, message));
                }
                ready.push_back(text);
                Ok(())
            }
        }
    }

    fn take_update(&self, message: &Value) -> io::Result<()> {
        let taken = {
            let mut state = self.state();
            let said = state.updates.take_in(message.get("params").unwrap_or(&Value::Null));
            said.map(|said| (said, state.updates.len()))
        };
        match taken {
            Ok((_, length)) if length > self.0.answer_bytes => {
                let most = self.0.answer_bytes;
                let message = format!("the answer is longer than {most} bytes");
                Err(self.fail(FailureKind::AnswerSize, message))
            }
            Ok((said, _)) => {
                match said {
                    Said::Text(text) => self.0.transcript.text(&text),
                    Said::Reasoning(text) => self.0.transcript.reasoning(&text),
                    Said::Tool(name) => self.0.transcript.tool(&name),
                    Said::Nothing => {}
                }
                Ok(())
            }
            Err(wrong) => {
                let shown = shown(&message.to_string());
                Err(self.fail(FailureKind::Protocol, format!("{wrong}: {shown}")))
            }
        }
    }
}

/// What an agent writes.
struct Incoming<R> {
    wire: Wire,
    /// Until its end.
    stdout: Option<R>,
    bytes: Vec<u8>,
    lines: Lines,
    ready: VecDeque<String>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// The next message; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let Some(stdout) = &mut self.stdout else { return Ok(None) };
            let count = stdout.read(&mut self.bytes).await?;
            let lines = if count == 0 {
                self.stdout = None;
                vec![self.lines.rest()]
            } else {
                self.wire.0.transcript.heard();
                let lines = self.lines.push(&self.bytes[..count], self.wire.0.line_bytes);
                lines.map_err(|TooLong| self.too_long())?
            };
            for line in lines {
                self.wire.take_line(&line, &mut self.ready)?;
            }
        }
    }

    fn too_long(&mut self) -> io::Error {
        let begin = shown(&String::from_utf8_lossy(&self.lines.rest()));
        let most = self.wire.0.line_bytes;
        self.wire.fail(FailureKind::Protocol, format!("a line is longer than {most} bytes: {begin}"))
    }
}

/// The beginning of a text, with all that cannot be seen escaped.
fn shown(text: &str) -> String {
    text::start(text, SHOWN_BYTES).escape_debug().collect()
}
