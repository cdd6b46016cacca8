//! What a session's client and server have to say to each other: messages to the server, and streams to the client that
//! outlive the connections they are read over.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fanfold::CancellationToken;
use futures::Stream;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions as _, GetMeta as _, JsonRpcMessage,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::OriginatingRequestId;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::{mpsc, oneshot, watch};

use crate::delivery::Delivery;

/// The stream that belongs to no request: clients read it with `GET`.
const COMMON: u64 = 0;

/// How many messages of a stream are kept for a client that comes back; of those that come too many, notifications go
/// first.
const MAX_EVENTS: usize = 256;

/// How many answered requests keep their streams. Those whose answers were read go first.
const MAX_ANSWERED: usize = 32;

/// When a client whose connection was dropped may come back.
const RETRY: Duration = Duration::from_secs(3);

/// The two ends of a session's messages.
pub(super) struct Mailbox {
    to_server: mpsc::Sender<ClientJsonRpcMessage>,
    state: Mutex<State>,
    /// Goes up with everything that is put in.
    version: watch::Sender<u64>,
    /// Fires when the session has ended.
    ended: CancellationToken,
}

#[derive(Default)]
struct State {
    /// Waits for the answer to `initialize`.
    initializing: Option<oneshot::Sender<ServerJsonRpcMessage>>,
    last_stream: u64,
    streams: BTreeMap<u64, Log>,
    of_request: HashMap<RequestId, u64>,
    of_progress: HashMap<ProgressToken, u64>,
    /// The streams of answered requests, the oldest first.
    answered: VecDeque<u64>,
    /// How far the common stream was read.
    common_read: u64,
}

/// The messages of a stream.
#[derive(Default)]
struct Log {
    events: BTreeMap<u64, ServerSseMessage>,
    next: u64,
    /// Nothing more comes.
    ended: bool,
    delivery: Option<Delivery>,
    progress: Option<ProgressToken>,
}

impl Mailbox {
    /// A mailbox, and where the server finds the client's messages.
    pub(super) fn new(capacity: usize) -> (Arc<Self>, mpsc::Receiver<ClientJsonRpcMessage>) {
        let (to_server, receiver) = mpsc::channel(capacity);
        let mut state = State::default();
        state.streams.insert(COMMON, Log::default());
        let mailbox = Self {
            to_server,
            state: Mutex::new(state),
            version: watch::Sender::new(0),
            ended: CancellationToken::new(),
        };
        (Arc::new(mailbox), receiver)
    }

    /// Fires when the session has ended.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Hands a message to the server; false if that has gone.
    pub(super) async fn send(&self, message: ClientJsonRpcMessage) -> bool {
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // It is not answered.
            self.lock().end(id);
            self.touch();
        }
        self.to_server.send(message).await.is_ok()
    }

    /// Hands the first message over, and waits for its answer.
    pub(super) async fn initialize(&self, message: ClientJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let (answer, answered) = oneshot::channel();
        self.lock().initializing = Some(answer);
        self.send(message).await.then_some(())?;
        answered.await.ok()
    }

    /// Begins the stream that answers a request.
    pub(super) fn begin(self: &Arc<Self>, request: &ClientJsonRpcMessage) -> Reader {
        let mut state = self.lock();
        state.last_stream += 1;
        let number = state.last_stream;
        let mut log = Log::default();
        log.put(number, ServerSseMessage::retry(RETRY));
        if let JsonRpcMessage::Request(request) = request {
            state.of_request.insert(request.id.clone(), number);
            log.delivery = Some(Delivery::of(request.request.extensions()));
            log.progress = request.request.get_meta().get_progress_token();
            if let Some(token) = log.progress.clone() {
                state.of_progress.insert(token, number);
            }
        }
        state.streams.insert(number, log);
        drop(state);
        Reader::new(self.clone(), number, Some(0), None)
    }

    /// Reads the stream that belongs to no request, from where it was left.
    pub(super) fn common(self: &Arc<Self>) -> Reader {
        Reader::new(self.clone(), COMMON, None, None)
    }

    /// Reads a stream on from behind an event; nothing if that is not known.
    pub(super) fn resume(self: &Arc<Self>, last_event_id: &str) -> Option<Reader> {
        let (stream, event) = last_event_id.split_once('/')?;
        let (stream, event): (u64, u64) = (stream.parse().ok()?, event.parse().ok()?);
        let delivery = {
            let state = self.lock();
            let log = state.streams.get(&stream).filter(|log| event < log.next)?;
            log.delivery.clone()
        };
        if let Some(delivery) = &delivery {
            delivery.reopened();
        }
        Some(Reader::new(self.clone(), stream, Some(event + 1), delivery))
    }

    /// Puts a message of the server into the stream that it belongs to.
    pub(super) fn put(&self, message: ServerJsonRpcMessage) {
        self.lock().put(message);
        self.touch();
    }

    fn touch(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, message: ServerJsonRpcMessage) {
        let answers = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        if matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
            if let Some(initializing) = self.initializing.take() {
                // Who asked may have gone.
                return drop(initializing.send(message));
            }
            // The client of a request that was cancelled does not wait for its answer.
            if let Some(id) = answers
                && let Some(number) = self.of_request.get(&id).copied()
            {
                self.put_into(number, message);
                self.end(&id);
            }
            return;
        }
        let stream = match &message {
            JsonRpcMessage::Request(request) => request
                .request
                .extensions()
                .get::<OriginatingRequestId>()
                .and_then(|origin| self.of_request.get(&origin.0)),
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.of_progress.get(&progress.params.progress_token)
                }
                _ => None,
            },
            _ => None,
        };
        self.put_into(stream.copied().unwrap_or(COMMON), message);
    }

    fn put_into(&mut self, number: u64, message: ServerJsonRpcMessage) {
        if let Some(log) = self.streams.get_mut(&number) {
            log.put(number, ServerSseMessage::from_message(message));
        }
    }

    /// Nothing more comes for a request.
    fn end(&mut self, id: &RequestId) {
        let Some(number) = self.of_request.remove(id) else { return };
        if let Some(log) = self.streams.get_mut(&number) {
            log.ended = true;
            if let Some(token) = log.progress.take()
                && self.of_progress.get(&token) == Some(&number)
            {
                self.of_progress.remove(&token);
            }
        }
        self.answered.push_back(number);
        if self.answered.len() > MAX_ANSWERED {
            let is_read = |number: &u64| {
                let delivery = self.streams.get(number).and_then(|log| log.delivery.as_ref());
                delivery.is_none_or(Delivery::is_delivered)
            };
            // The oldest one that was read, or else the oldest.
            let at = self.answered.iter().position(is_read).unwrap_or_default();
            if let Some(number) = self.answered.remove(at) {
                self.streams.remove(&number);
            }
        }
    }
}

impl Log {
    fn put(&mut self, stream: u64, mut event: ServerSseMessage) {
        event.event_id = Some(format!("{stream}/{}", self.next));
        self.events.insert(self.next, event);
        self.next += 1;
        if self.events.len() > MAX_EVENTS {
            // The first ones tell which run it is.
            let later = self.events.iter().skip(2);
            let lesser = later
                .filter(|(_, event)| {
                    matches!(event.message.as_deref(), Some(JsonRpcMessage::Notification(_)))
                })
                .map(|(number, _)| *number)
                .next();
            let first = self.events.keys().next().copied();
            if let Some(number) = lesser.or(first) {
                self.events.remove(&number);
            }
        }
    }

    /// The first event from this number on.
    fn from(&self, number: u64) -> Option<(u64, ServerSseMessage)> {
        self.events.range(number..).next().map(|(number, event)| (*number, event.clone()))
    }
}

/// Somebody who reads a stream.
pub(super) struct Reader {
    mailbox: Arc<Mailbox>,
    stream: u64,
    /// What is read next; none: the first message of the common stream that no reader has taken.
    next: Option<u64>,
    /// Of an answer that the client came back for.
    delivery: Option<Delivery>,
    version: watch::Receiver<u64>,
}

impl Reader {
    fn new(mailbox: Arc<Mailbox>, stream: u64, next: Option<u64>, delivery: Option<Delivery>) -> Self {
        let version = mailbox.version.subscribe();
        Self { mailbox, stream, next, delivery, version }
    }

    /// The messages as they come.
    pub(super) fn messages(self) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        futures::stream::unfold(self, |mut reader| async move {
            let message = reader.next().await?;
            Some((message, reader))
        })
    }

    async fn next(&mut self) -> Option<ServerSseMessage> {
        loop {
            self.version.borrow_and_update();
            match self.take() {
                Some(Some(event)) => return Some(event),
                Some(None) => {}
                None => {
                    if let Some(delivery) = &self.delivery {
                        delivery.delivered();
                    }
                    return None;
                }
            }
            tokio::select! {
                biased;
                () = self.mailbox.ended.cancelled() => return None,
                changed = self.version.changed() => changed.ok()?,
            }
        }
    }

    /// The next event; nothing inside if it has not come yet, nothing at all at the end.
    fn take(&mut self) -> Option<Option<ServerSseMessage>> {
        let mut state = self.mailbox.lock();
        let common_read = state.common_read;
        if self.stream == COMMON && self.next.is_some_and(|next| next >= common_read) {
            self.next = None;
        }
        let from = self.next.unwrap_or(common_read);
        let log = state.streams.get(&self.stream)?;
        let Some((number, event)) = log.from(from) else { return (!log.ended).then_some(None) };
        match &mut self.next {
            Some(next) => *next = number + 1,
            None => state.common_read = number + 1,
        }
        Some(Some(event))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(delivery) = &self.delivery {
            delivery.lost();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use serde_json::{Value, json};

    use super::*;

    fn request(id: u64) -> ClientJsonRpcMessage {
        let params = json!({"name": "x", "_meta": {"progressToken": id}});
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .unwrap()
    }

    fn answer(id: u64, text: &str) -> ServerJsonRpcMessage {
        let result = json!({"content": [{"type": "text", "text": text}]});
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "result": result})).unwrap()
    }

    fn progress(token: u64, message: &str) -> ServerJsonRpcMessage {
        let params = json!({"progressToken": token, "progress": 1, "message": message});
        serde_json::from_value(
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
        )
        .unwrap()
    }

    fn log(message: u64) -> ServerJsonRpcMessage {
        let params = json!({"level": "info", "data": message});
        serde_json::from_value(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
            .unwrap()
    }

    /// What was read, in short.
    fn shown(event: &ServerSseMessage) -> Value {
        let message = event.message.as_deref().map(|message| serde_json::to_value(message).unwrap());
        let Some(message) = message else { return json!("retry") };
        match message["method"].as_str() {
            None => message["result"]["content"][0]["text"].clone(),
            Some("notifications/progress") => message["params"]["message"].clone(),
            Some(_) => message["params"]["data"].clone(),
        }
    }

    /// What a reader gives at once.
    async fn now(reader: &mut Reader) -> Vec<ServerSseMessage> {
        let mut events = Vec::new();
        while let Some(Some(event)) = futures::FutureExt::now_or_never(reader.next()) {
            events.push(event);
        }
        events
    }

    #[tokio::test]
    async fn a_stream_is_read_on_from_any_of_its_events_while_it_lasts_and_after_its_end() {
        let (mailbox, _messages) = Mailbox::new(8);
        let mut first = mailbox.begin(&request(1));
        let other = mailbox.begin(&request(2));
        mailbox.put(progress(1, "one"));
        mailbox.put(progress(2, "of the other"));
        let seen = now(&mut first).await;
        assert_eq!(seen.iter().map(shown).collect::<Vec<_>>(), ["retry", "one"]);
        let last = seen[1].event_id.clone().unwrap();
        drop(first);
        let resumed = mailbox.resume(&last).unwrap();
        mailbox.put(progress(1, "two"));
        mailbox.put(answer(1, "done"));
        for reader in [resumed, mailbox.resume(&last).unwrap()] {
            let rest: Vec<_> = reader.messages().collect().await;
            assert_eq!(rest.iter().map(shown).collect::<Vec<_>>(), ["two", "done"]);
        }
        mailbox.put(answer(2, "done too"));
        let rest: Vec<_> = other.messages().collect().await;
        assert_eq!(rest.iter().map(shown).collect::<Vec<_>>(), ["retry", "of the other", "done too"]);
        for unknown in ["", "1", "x/y", "9/0", "1/9", "-1/0"] {
            assert!(mailbox.resume(unknown).is_none(), "{unknown}");
        }
    }

    #[tokio::test]
    async fn a_message_that_belongs_to_no_request_is_read_once_and_again_by_who_lost_it() {
        let (mailbox, _messages) = Mailbox::new(8);
        mailbox.put(log(1));
        let (mut one, mut two) = (mailbox.common(), mailbox.common());
        mailbox.put(log(2));
        let seen = now(&mut one).await;
        assert_eq!(seen.iter().map(shown).collect::<Vec<_>>(), [1, 2]);
        assert!(now(&mut two).await.is_empty(), "each goes to one reader alone");
        drop(one);
        mailbox.put(log(3));
        let mut back = mailbox.resume(seen[0].event_id.as_deref().unwrap()).unwrap();
        assert_eq!(now(&mut back).await.iter().map(shown).collect::<Vec<_>>(), [2, 3]);
        mailbox.ended().cancel();
        assert!(two.next().await.is_none());
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_the_first_and_the_last_stay() {
        let (mailbox, _messages) = Mailbox::new(8);
        let reader = mailbox.begin(&request(1));
        for n in 0..1000 {
            mailbox.put(progress(1, &n.to_string()));
        }
        mailbox.put(answer(1, "done"));
        let events: Vec<_> = reader.messages().collect().await;
        assert_eq!(events.len(), MAX_EVENTS);
        let told: Vec<_> = events.iter().map(shown).collect();
        assert_eq!((&told[..2], &told[MAX_EVENTS - 1]), (&[json!("retry"), json!("0")][..], &json!("done")));

        for id in 2..100 {
            drop(mailbox.begin(&request(id)));
            mailbox.put(answer(id, "done"));
        }
        let state = mailbox.lock();
        assert_eq!((state.streams.len(), state.answered.len()), (MAX_ANSWERED + 1, MAX_ANSWERED));
        assert!(state.of_request.is_empty() && state.of_progress.is_empty());
    }

    #[tokio::test]
    async fn a_request_that_is_cancelled_ends_its_stream() {
        let (mailbox, mut messages) = Mailbox::new(8);
        let reader = mailbox.begin(&request(1));
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert!(mailbox.send(serde_json::from_value(cancelled).unwrap()).await);
        assert!(messages.recv().await.is_some());
        mailbox.put(answer(1, "late"));
        let events: Vec<_> = reader.messages().collect().await;
        assert_eq!(events.iter().map(shown).collect::<Vec<_>>(), ["retry"]);
    }
}
