//! A run as people look at it, folded from what is told of it.
//!
//! # Layout
//! - `shown`: what there is to see: a run, its phases, agents and logs
//! - `fold`: [`RunView`], which takes in events, session records and the result

mod fold;
mod shown;

pub use fold::RunView;
pub use shown::{
    AgentState, AgentView, LogView, PhaseView, RetryView, RunHead, RunState, Tally, ViewChanges,
};
