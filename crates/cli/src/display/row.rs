//! One row of the display, built from left to right and never wider than it may be.

use std::fmt::Write as _;

use anstyle::Style;
use fanfold::Tally;

use super::palette::{Mark, Palette};
use super::text;

/// A row under construction.
#[derive(Debug)]
pub(crate) struct Row {
    text: String,
    left: usize,
}

impl Row {
    /// An empty row for so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self { text: String::new(), left: columns }
    }

    /// Adds a text, cut to what is left of the row.
    #[must_use]
    pub(crate) fn put(self, style: Style, text: &str) -> Self {
        self.put_before(style, text, 0)
    }

    /// Adds a text, cut so that `reserve` columns stay free after it.
    #[must_use]
    pub(crate) fn put_before(mut self, style: Style, text: &str, reserve: usize) -> Self {
        let text = text::cut(text, self.left.saturating_sub(reserve));
        self.left -= text::width(&text);
        let _ = write!(self.text, "{style}{text}{style:#}");
        self
    }

    /// Adds a mark and a blank.
    #[must_use]
    pub(crate) fn mark(self, (style, mark): (Style, char)) -> Self {
        self.put(style, mark.encode_utf8(&mut [0; 4])).put(Style::new(), " ")
    }

    /// Adds pieces with dots between them.
    #[must_use]
    pub(crate) fn pieces(mut self, pieces: &Pieces, palette: &Palette) -> Self {
        for (index, (style, piece)) in pieces.0.iter().enumerate() {
            if index > 0 {
                self = self.put(palette.faint, " · ");
            }
            self = self.put(*style, piece);
        }
        self
    }

    /// The row, with no blanks at its end and every style closed.
    pub(crate) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }
}

/// Short facts that stand in a row, such as `3/8 · 1 failed · 2.1s`.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Vec<(Style, String)>);

impl Pieces {
    pub(crate) fn add(&mut self, style: Style, piece: impl Into<String>) {
        self.0.push((style, piece.into()));
    }

    /// How many calls wait for their turn, and what of a tally needs attention.
    pub(crate) fn add_tally(&mut self, tally: &Tally, palette: &Palette) {
        if tally.queued > 0 {
            self.add(palette.faint, format!("{} queued", tally.queued));
        }
        for (mark, trouble) in troubles(tally) {
            self.add(palette.mark(mark, 0).0, trouble);
        }
    }

    /// Columns that all of them take.
    pub(crate) fn width(&self) -> usize {
        let dots = 3 * self.0.len().saturating_sub(1);
        self.0.iter().map(|(_, piece)| text::width(piece)).sum::<usize>() + dots
    }
}

/// What of a tally needs attention, in words: `1 failed`, `2 cancelled`.
pub(crate) fn troubles(tally: &Tally) -> impl Iterator<Item = (Mark, String)> {
    let all = [
        (Mark::Failed, tally.failed, "failed"),
        (Mark::Cancelled, tally.cancelled, "cancelled"),
        (Mark::Cancelled, tally.refused, "not started"),
    ];
    all.into_iter().filter(|all| all.1 > 0).map(|(mark, count, what)| (mark, format!("{count} {what}")))
}

/// `1 agent`, `2 agents`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
