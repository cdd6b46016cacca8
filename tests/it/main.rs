//! Tests of Fanfold as a library.

mod agent_types;
mod args;
mod clock;
mod component;
mod conformance;
mod corpus;
mod forgery;
mod fuel;
mod gather;
mod hostile;
mod messages;
mod names;
mod pool;
mod queued;
mod support;
mod tool;
mod values;
