//! A run from its start to its result.
//!
//! - [`books`]: the state machine that decides everything
//! - [`link`]: how the guest reaches it
//! - [`driver`]: the task that carries its decisions out
//! - [`child`]: the steps of one child
//! - [`handle`]: what the host holds of it

mod books;
mod child;
mod driver;
mod handle;
mod link;

pub(crate) use books::{Reply, default_label};
#[cfg(fuzzing)]
pub(crate) use driver::Guest;
pub(crate) use driver::{Clock, Plan, spawn};
pub use handle::Run;
pub(crate) use link::Link;
