//! A run from its start to its result.
//!
//! - [`books`]: the state machine that decides everything
//! - [`link`]: how guests reach it; [`timers`]: what they wait for besides
//! - [`nested`]: the workflows inside of a run
//! - [`driver`]: the task that carries its decisions out, polled by [`inline`]
//! - [`child`]: the steps of one child
//! - [`ending`]: what a guest says of its script's end, checked
//! - [`handle`]: what the host holds of it; [`canceller`]: how it is cancelled

mod books;
mod canceller;
mod child;
mod driver;
mod ending;
mod handle;
mod inline;
mod link;
mod nested;
mod timers;

pub(crate) use books::{MAX_LEVELS, Reply, default_label};
#[cfg(fuzzing)]
pub(crate) use driver::Guest;
pub(crate) use driver::{MakeGuest, Plan, spawn};
pub use handle::Run;
pub(crate) use link::Link;
pub(crate) use nested::Nursery;
