//! The workflow tool that a model calls.
