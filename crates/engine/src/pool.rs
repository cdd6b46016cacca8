//! What the sandboxes of one run share: its fuel and its memory.
//!
//! A run has one sandbox for its script and one for each workflow that runs inside of it. The limits are the run's.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::Limits;

/// The fuel and the memory of a run.
#[derive(Debug)]
pub(crate) struct Pool {
    max_fuel: u64,
    max_memory: u64,
    fuel_used: AtomicU64,
    memory: AtomicU64,
}

impl Pool {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            max_fuel: limits.max_fuel,
            max_memory: limits.max_memory_bytes,
            fuel_used: AtomicU64::new(0),
            memory: AtomicU64::new(0),
        }
    }

    /// Fuel that the run has used so far.
    pub(crate) fn fuel_used(&self) -> u64 {
        self.fuel_used.load(Ordering::Relaxed).min(self.max_fuel)
    }

    /// Fuel that is left. Sandboxes that compute at the same time are each given all of it, until one of them notes
    /// what it has used: what they use too much is bounded by how long they may compute without awaiting.
    pub(crate) fn fuel_left(&self) -> u64 {
        self.max_fuel - self.fuel_used()
    }

    pub(crate) fn use_fuel(&self, fuel: u64) {
        self.fuel_used.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Takes memory, if there is so much.
    pub(crate) fn take_memory(&self, bytes: u64) -> bool {
        let taken = |now: u64| now.checked_add(bytes).filter(|memory| *memory <= self.max_memory);
        self.memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }

    pub(crate) fn give_memory_back(&self, bytes: u64) {
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_given_back_can_be_taken_again() {
        let pool = Pool::new(&Limits { max_memory_bytes: 100, ..Limits::default() });
        assert!(pool.take_memory(60));
        assert!(!pool.take_memory(41));
        assert!(!pool.take_memory(u64::MAX));
        assert!(pool.take_memory(40));
        pool.give_memory_back(60);
        assert!(pool.take_memory(60));
    }

    #[test]
    fn fuel_is_never_less_than_none() {
        let pool = Pool::new(&Limits { max_fuel: 100, ..Limits::default() });
        pool.use_fuel(70);
        assert_eq!((pool.fuel_used(), pool.fuel_left()), (70, 30));
        pool.use_fuel(70);
        assert_eq!((pool.fuel_used(), pool.fuel_left()), (100, 0));
    }
}
