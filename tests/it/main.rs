//! Tests of Fanfold as a library.

mod component;
mod conformance;
mod corpus;
mod forgery;
mod hostile;
mod messages;
mod support;
