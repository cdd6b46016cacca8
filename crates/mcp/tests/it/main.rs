//! The server, by the bytes that clients send and get; one binary, so that the sandbox is compiled once.

mod calls;
mod ends;
mod http;
mod models;
mod wire;
