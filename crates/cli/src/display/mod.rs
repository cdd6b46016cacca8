//! What a person sees of a run, on standard error.
//!
//! ```ignore
//! let display = Display::start(&limits);
//! let request = request.observe(display.observer());
//! // … start the run; on Ctrl-C:
//! display.notice("cancelling; press Ctrl-C again to force");
//! // … and when its result is known and it is disposed of:
//! display.finish(&result);
//! ```
//!
//! # Layout
//! - `handle`: [`Display`], which the rest of the command holds, and its observer
//! - `painter`: the thread that owns the terminal and knows the run, by [`RunView`](fanfold::RunView); `view`: what it
//!   needs of a display
//! - `plain`: a line for each thing that happens
//! - `live`: a tree drawn in place. `tree`: the run as a list; `pick`: what of it fits; `frame`: a picture of it;
//!   `screen`: the picture in its place; `summary`: the last one
//! - `row`, `palette`, `text`: rows, their colours and marks, and the harmless form of others' words
//! - `messages`: what the command says besides; `plan`, `listing`, `worktrees`: what `plan`, `list` and `clean` print
//!
//! Everything between `painter` and the terminal's bytes is free of clocks and I/O.

mod frame;
mod handle;
mod listing;
mod live;
mod messages;
mod painter;
mod palette;
mod pick;
mod plain;
mod plan;
mod row;
#[cfg(test)]
mod sample;
mod screen;
mod summary;
mod text;
mod tree;
mod view;
mod worktrees;

pub(crate) use handle::Display;
pub(crate) use listing::list;
pub(crate) use messages::{error, notice, say, script, warning, workflow_error};
pub(crate) use plan::plan;
pub(crate) use text::json;
pub(crate) use worktrees::kept;
