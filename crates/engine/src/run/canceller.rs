//! Who may cancel a run, and why the run was cancelled.

use std::sync::{Arc, OnceLock};

use futures::future::select_all;
use tokio_util::sync::CancellationToken;

/// Cancels a run once, for the first reason given.
#[derive(Clone, Debug)]
pub(crate) struct Canceller(Arc<State>);

#[derive(Debug)]
struct State {
    reason: OnceLock<String>,
    token: CancellationToken,
    /// Whatever else cancels the run, and the reason that is.
    others: Vec<(CancellationToken, &'static str)>,
}

impl Canceller {
    /// A canceller that these tokens work too.
    pub(crate) fn new(others: Vec<(CancellationToken, &'static str)>) -> Self {
        Self(Arc::new(State { reason: OnceLock::new(), token: CancellationToken::new(), others }))
    }

    pub(crate) fn cancel(&self, reason: &str) {
        self.0.reason.get_or_init(|| self.other().unwrap_or(reason).to_owned());
        self.0.token.cancel();
    }

    /// Whether somebody has cancelled the run, be it a moment ago.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.token.is_cancelled() || self.other().is_some()
    }

    /// Why the run was cancelled, once it was.
    pub(crate) fn reason(&self) -> &str {
        self.0.reason.get_or_init(|| self.other().unwrap_or_default().to_owned())
    }

    /// Why another token cancelled it, if one has.
    fn other(&self) -> Option<&'static str> {
        self.0.others.iter().find(|(token, _)| token.is_cancelled()).map(|(_, reason)| *reason)
    }

    /// Waits until somebody cancels the run.
    pub(crate) async fn cancelled(&self) {
        let others = self.0.others.iter().map(|(token, _)| token);
        let all = others.chain([&self.0.token]).map(|token| Box::pin(token.cancelled()));
        select_all(all).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn the_first_reason_counts_whoever_gives_it() {
        let token = CancellationToken::new();
        let canceller = Canceller::new(vec![(token.clone(), "the engine was shut down")]);
        assert!(!canceller.is_cancelled());
        assert!(canceller.cancelled().now_or_never().is_none());
        token.cancel();
        assert!(canceller.is_cancelled());
        assert!(canceller.cancelled().now_or_never().is_some());
        canceller.cancel("too late");
        assert_eq!(canceller.reason(), "the engine was shut down");

        let canceller = Canceller::new(Vec::new());
        canceller.cancel("enough");
        canceller.cancel("too late");
        assert!(canceller.is_cancelled());
        assert_eq!(canceller.reason(), "enough");
    }
}
