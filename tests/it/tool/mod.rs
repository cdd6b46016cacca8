//! The tool that a model calls.

mod assistant;
mod background;
mod calls;
mod conformance;
mod records;
mod retention;
