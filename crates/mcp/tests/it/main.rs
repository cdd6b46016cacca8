//! The server, by the bytes that clients send and get; one binary, so that the sandbox is compiled once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should not")]

mod again;
mod calls;
mod ends;
mod halves;
mod http;
mod malformed;
mod models;
mod saved;
mod wire;
