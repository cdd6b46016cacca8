//! A few rows at the bottom of a terminal that are drawn again and again, and what scrolls away above them.
//!
//! Nothing of the terminal's state is changed for longer than one write: no hidden cursor, no alternate screen.
//! The cursor rests at the start of the line after the last row. So there is nothing to restore when the process
//! is killed, and what is printed after the end follows cleanly.

use super::frame::Size;
use super::text;

/// Terminals that know it draw what is between these at once; others ignore them.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
const ERASE_TO_END_OF_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// What was drawn last.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    rows: Vec<String>,
    size: Option<Size>,
}

impl Screen {
    /// What to write so that `lines` are above the rows for ever, and the rows are these. Empty when that is so
    /// already.
    ///
    /// Lines may be of any length: the terminal wraps them, and joins them again when somebody copies them. Rows
    /// must leave the last column free, where terminals differ about what a full row means.
    pub(crate) fn draw(&mut self, lines: &[String], rows: Vec<String>, size: Size) -> String {
        let resized = self.size.replace(size).is_some_and(|before| before != size);
        if lines.is_empty() && rows == self.rows && !resized {
            return String::new();
        }
        let mut out = String::from(BEGIN);
        out.push('\r');
        let up = self.height(size);
        if up > 0 {
            out.push_str(&format!("\x1b[{up}A"));
        }
        if resized || !lines.is_empty() {
            out.push_str(ERASE_BELOW);
        }
        for line in lines {
            out.push_str(line);
            out.push_str("\r\n");
        }
        for row in &rows {
            out.push_str(row);
            out.push_str(ERASE_TO_END_OF_LINE);
            out.push_str("\r\n");
        }
        out.push_str(ERASE_BELOW);
        out.push_str(END);
        self.rows = rows;
        out
    }

    /// How far above the cursor the rows begin. A terminal that has become narrower has wrapped them.
    fn height(&self, size: Size) -> usize {
        let wrapped = |row: &String| text::width(&anstream::adapter::strip_str(row).to_string()).max(1);
        let rows: usize = self.rows.iter().map(|row| wrapped(row).div_ceil(size.columns.max(1))).sum();
        // What has scrolled away is out of reach.
        rows.min(size.rows.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Size = Size { columns: 40, rows: 10 };

    fn rows(lengths: &[usize]) -> Vec<String> {
        lengths.iter().map(|&length| "x".repeat(length)).collect()
    }

    #[test]
    fn rows_are_drawn_over_the_rows_before() {
        let mut screen = Screen::default();
        let first = screen.draw(&[], rows(&[3, 3, 3]), WIDE);
        assert!(!first.contains("A\x1b"), "{first:?}");
        let second = screen.draw(&[], rows(&[2]), WIDE);
        assert_eq!(second, "\x1b[?2026h\r\x1b[3Axx\x1b[K\r\n\x1b[J\x1b[?2026l");
    }

    #[test]
    fn a_narrower_terminal_has_wrapped_the_rows() {
        let cases = [(40, 3), (39, 3), (20, 5), (10, 8), (8, 9), (1, 9), (0, 9)];
        for (columns, up) in cases {
            let mut screen = Screen::default();
            screen.draw(&[], rows(&[39, 0, 25]), WIDE);
            let narrow = Size { columns, rows: 10 };
            let drawn = screen.draw(&["said".into()], rows(&[1]), narrow);
            assert!(drawn.contains(&format!("\r\x1b[{up}A\x1b[J")), "{columns}: {drawn:?}");
        }
    }

    #[test]
    fn a_resized_terminal_is_drawn_anew_although_nothing_changed() {
        let mut screen = Screen::default();
        screen.draw(&[], rows(&[3]), WIDE);
        assert_eq!(screen.draw(&[], rows(&[3]), WIDE), "");
        assert_ne!(screen.draw(&[], rows(&[3]), Size { columns: 41, rows: 10 }), "");
    }
}
