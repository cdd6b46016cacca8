//! What the two displays have in common: they take news in and say what to write. No clock, no terminal.

use fanfold::{Event, RunResult, RunView};

use super::frame::Size;

/// A display of one run. `run` is what is known of it, the event that is told included; `now` is milliseconds since
/// 1970, the clock of the events.
pub(crate) trait View: Send {
    /// Something happened.
    fn event(&mut self, event: &Event, run: &RunView);

    /// The command itself has something to say.
    fn notice(&mut self, text: &str, run: &RunView, now: u64);

    /// What to write to have everything shown that was taken in so far.
    fn draw(&mut self, run: &RunView, size: Size, now: u64) -> String;

    /// What to write at the end, and nothing after it: with the result, or without one for a run that nobody
    /// waits for any more.
    fn end(&mut self, run: &RunView, result: Option<&RunResult>, size: Size, now: u64) -> String;

    /// Whether it looks different as time goes by, without news.
    fn moves(&self, run: &RunView) -> bool;
}
