//! What Fanfold's tests share.

pub mod conformance;
