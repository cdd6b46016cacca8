//! Ctrl-C and its relatives.

use std::future::pending;

/// Waits for the next request to stop: Ctrl-C, or on Unix SIGTERM or SIGHUP.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
}

impl Interrupts {
    /// Takes the signals over: from now on they do not end the process.
    #[cfg(unix)]
    pub(crate) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Ok(Self { signals: kinds.into_iter().map(signal).collect::<Result<_, _>>()? })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        let signals = self.signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        match futures::future::select_all(signals).await {
            (Some(()), ..) => {}
            // The runtime listens no more.
            (None, ..) => pending().await,
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            pending().await
        }
    }
}
