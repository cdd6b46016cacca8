//! What a provider that spends nothing was asked, and how many of its children ran at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold::AgentRequest;

/// Clones share what they record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    requests: Vec<AgentRequest>,
    running: usize,
    peak: usize,
}

impl Record {
    /// What was asked, in start order.
    pub(crate) fn requests(&self) -> Vec<AgentRequest> {
        self.lock().requests.clone()
    }

    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }

    pub(crate) fn peak(&self) -> usize {
        self.lock().peak
    }

    /// Notes a request and counts its child in; gives the child's number, from 1.
    pub(crate) fn enter(&self, request: &AgentRequest) -> (usize, Running) {
        let mut state = self.lock();
        state.requests.push(request.clone());
        state.running += 1;
        state.peak = state.peak.max(state.running);
        (state.requests.len(), Running(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a child out when it is dropped.
pub(crate) struct Running(Record);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
    }
}
