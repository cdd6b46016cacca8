//! A request that waits for a run, and what its client hears meanwhile.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::time::Duration;

use fanfold::CancellationToken;
use rmcp::model::{LoggingLevel, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::time::{Instant, sleep_until};

use crate::log;
use crate::outbox::{Outbox, Progress};

/// A client that hears nothing for longer may think that the server hangs.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Progress is told no more often than this.
const PACE: Duration = Duration::from_millis(100);

/// A script that asks several agents at once is given this long to name them all, so that one round answers them.
const SETTLE: Duration = Duration::from_millis(30);

/// What the waiting is for and who waits.
pub(crate) struct Attendance<'a> {
    pub(crate) context: &'a RequestContext<RoleServer>,
    /// Fires when the client has gone, or the server stops.
    pub(crate) gone: &'a CancellationToken,
    /// Fires when the client's session has ended.
    pub(crate) session_ended: &'a CancellationToken,
    pub(crate) run_id: &'a str,
    /// The least severe log lines that this request carries. None: it carries none.
    pub(crate) log_level: Option<LoggingLevel>,
    /// Come back when subagents have questions for the client.
    pub(crate) takes_questions: bool,
    /// Come back after this time.
    pub(crate) patience: Option<Duration>,
}

/// Why the waiting ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The run is over.
    Ended,
    /// Subagents have questions for the client.
    Questions,
    /// It took longer than the request may.
    Late,
    /// The client has cancelled the request, or has gone.
    Cancelled,
}

impl Attendance<'_> {
    /// Waits for the run, and tells the client how it goes.
    pub(crate) async fn wait(&self, outbox: &Outbox) -> Left {
        let mut news = outbox.watch();
        let mut teller = Teller::new(self.context);
        teller.tell_run(self.run_id).await;
        let late = self.patience.and_then(|patience| Instant::now().checked_add(patience));
        loop {
            news.borrow_and_update();
            // Before anything is taken: nothing comes after it.
            let ended = outbox.closed().is_cancelled();
            if let Some(level) = self.log_level {
                for line in outbox.take_lines() {
                    // A client that has gone shows by the cancelled request.
                    let _ = log::send(&self.context.peer, log::severity(level), self.run_id, line).await;
                }
            }
            teller.tell(&outbox.progress(), ended).await;
            if ended {
                return Left::Ended;
            }
            if self.takes_questions && outbox.has_questions() {
                tokio::time::sleep(SETTLE).await;
                return Left::Questions;
            }
            tokio::select! {
                biased;
                () = self.context.ct.cancelled() => return Left::Cancelled,
                () = self.gone.cancelled() => return Left::Cancelled,
                () = self.session_ended.cancelled() => return Left::Cancelled,
                _ = news.changed() => {}
                () = at(late) => return Left::Late,
                () = at(teller.next()) => {}
            }
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Tells progress to a client that asked for it.
struct Teller {
    client: Option<(Peer<RoleServer>, ProgressToken)>,
    told: Option<Progress>,
    told_at: Instant,
    value: f64,
    /// There is something to tell that came too soon.
    waits: bool,
}

impl Teller {
    fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        let client = token.map(|token| (context.peer.clone(), token));
        Self { client, told: None, told_at: Instant::now(), value: -1.0, waits: false }
    }

    /// Tells which run it is, so that a client that loses the answer can ask for it.
    async fn tell_run(&mut self, run_id: &str) {
        let Some((peer, token)) = &self.client else { return };
        self.value = 0.0;
        let message =
            ProgressNotificationParam::new(token.clone(), self.value).with_message(format!("run {run_id}"));
        // A client that has gone shows by the cancelled request.
        let _ = peer.notify_progress(message).await;
    }

    /// Tells where the run is, if that is news or nothing was told for long.
    async fn tell(&mut self, progress: &Progress, ended: bool) {
        let Some((peer, token)) = &self.client else { return };
        let news = self.told.as_ref() != Some(progress);
        let since = self.told_at.elapsed();
        self.waits = news && self.told.is_some() && since < PACE && !ended;
        if self.waits || !(news || since >= HEARTBEAT) {
            return;
        }
        // The protocol wants a number that grows each time.
        self.value = f64::max(f64::from(progress.ended), self.value + 0.001);
        let mut message =
            ProgressNotificationParam::new(token.clone(), self.value).with_message(progress.text());
        if progress.started > 0 {
            message = message.with_total(f64::from(progress.started));
        }
        self.told = Some(progress.clone());
        self.told_at = Instant::now();
        // A client that has gone shows by the cancelled request.
        let _ = peer.notify_progress(message).await;
    }

    /// When there will be something to tell even without news.
    fn next(&self) -> Option<Instant> {
        self.client.as_ref()?;
        self.told_at.checked_add(if self.waits { PACE } else { HEARTBEAT })
    }
}
