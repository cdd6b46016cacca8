//! Watching runs: events to listeners and streams, which can never hold a run up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fanfold_types::{Event, Meta};
use futures::Stream;
use tokio::sync::mpsc;

/// Watches a run.
///
/// Called from Tokio's threads for blocking work, one call at a time, in order. A listener that is slow falls
/// behind, one that panics misses that event; the run goes on in either case. It has no way to control the run.
pub trait Observer: Send + Sync + 'static {
    /// Something happened in the run with this metadata.
    fn event(&self, meta: &Meta, event: &Event);
}

macro_rules! delegate {
    ($($pointer:ty),*) => {$(
        impl<O: Observer + ?Sized> Observer for $pointer {
            fn event(&self, meta: &Meta, event: &Event) {
                (**self).event(meta, event);
            }
        }
    )*};
}

delegate!(Arc<O>, Box<O>);

/// An observer and the stream of what it sees, from `workflow/start` to `workflow/end`.
///
/// Events that are not read yet are kept; a run's own limits bound how many there can be.
///
/// ```
/// let (observer, events) = fanfold::event_stream();
/// let request = fanfold::StartRequest::new("return 1").observe(observer);
/// # let _ = (request, events);
/// ```
pub fn event_stream() -> (impl Observer, EventStream) {
    struct Sender(mpsc::UnboundedSender<Event>);
    impl Observer for Sender {
        fn event(&self, _meta: &Meta, event: &Event) {
            // A stream that was dropped wants no more.
            let _ = self.0.send(event.clone());
        }
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    (Sender(sender), EventStream(receiver))
}

/// The events of a run; see [`event_stream`].
#[derive(Debug)]
pub struct EventStream(mpsc::UnboundedReceiver<Event>);

impl Stream for EventStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(context)
    }
}

/// How many events are told in one go.
const BATCH: usize = 1024;

fn tell(observers: &[Box<dyn Observer>], meta: &Meta, events: &[Event]) {
    for event in events {
        for observer in observers {
            // A panic is the observer's own affair; the panic hook has told of it.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.event(meta, event)));
        }
    }
}

/// Hands a run's events to its observers. Without observers, to nobody.
#[derive(Debug)]
pub(crate) struct Dispatcher(Option<mpsc::UnboundedSender<Event>>);

impl Dispatcher {
    /// Starts the task that tells the observers; it ends after the dispatcher is dropped.
    pub(crate) fn start(
        observers: Vec<Box<dyn Observer>>,
        meta: Arc<Meta>,
    ) -> (Self, Option<tokio::task::JoinHandle<()>>) {
        if observers.is_empty() {
            return (Self(None), None);
        }
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let observers: Arc<[Box<dyn Observer>]> = observers.into();
        let task = tokio::spawn(async move {
            let mut batch = Vec::new();
            while receiver.recv_many(&mut batch, BATCH).await > 0 {
                let (observers, meta, events) = (observers.clone(), meta.clone(), std::mem::take(&mut batch));
                // Observers may block: not on a thread that runs anything else.
                let told = tokio::task::spawn_blocking(move || tell(&observers, &meta, &events));
                if told.await.is_err() {
                    // The runtime shuts down.
                    return;
                }
            }
        });
        (Self(Some(sender)), Some(task))
    }

    pub(crate) fn dispatch(&self, event: impl FnOnce() -> Event) {
        if let Some(sender) = &self.0 {
            let _ = sender.send(event());
        }
    }
}
