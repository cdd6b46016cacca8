//! A page that shows runs as they happen.
