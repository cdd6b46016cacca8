//! What the two displays have in common: they take news in and say what to write. No clock, no terminal.

use fanfold::{Event, RunResult};

use super::frame::Size;

/// A display of one run. `now` is milliseconds since 1970, the clock of the events.
pub(crate) trait View: Send {
    /// Something happened.
    fn event(&mut self, event: &Event, now: u64);

    /// The command itself has something to say.
    fn notice(&mut self, text: &str, now: u64);

    /// What to write to have everything shown that was taken in so far.
    fn draw(&mut self, size: Size, now: u64) -> String;

    /// What to write at the end, and nothing after it: with the result, or without one for a run that nobody
    /// waits for any more.
    fn end(&mut self, result: Option<&RunResult>, size: Size, now: u64) -> String;

    /// Whether it looks different as time goes by, without news.
    fn moves(&self) -> bool;
}
