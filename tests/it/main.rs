//! Tests of Fanfold as a library.

mod component;
mod conformance;
mod forgery;
mod fuel;
mod hostile;
mod messages;
mod pool;
mod support;
