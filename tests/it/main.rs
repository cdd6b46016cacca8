//! Tests of Fanfold as a library.

mod component;
mod conformance;
mod forgery;
mod hostile;
mod messages;
mod support;
mod tool;
