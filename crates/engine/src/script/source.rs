//! Lines and columns of the author's text.

use fanfold_types::{ErrorCode, WorkflowError};

pub(super) const BOM: char = '\u{feff}';

/// The author's text, and where its lines begin.
#[derive(Clone, Debug)]
pub(super) struct Source {
    text: String,
    is_ascii: bool,
    starts: Vec<usize>,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends_line = |&at: &usize| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let starts = (0..bytes.len()).filter(ends_line).map(|at| at + 1);
        Self {
            text: text.into(),
            is_ascii: text.is_ascii(),
            starts: std::iter::once(0).chain(starts).collect(),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The number of lines: at least 1.
    pub(super) fn lines(&self) -> u32 {
        number(self.starts.len())
    }

    fn line_with_bom(&self, line: u32) -> Option<&str> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// The line of a byte of the text.
    pub(super) fn line_of(&self, offset: usize) -> u32 {
        number(self.starts.partition_point(|&start| start <= offset))
    }

    /// The line and column of a byte of the text.
    pub(super) fn place(&self, offset: usize) -> (u32, u32) {
        let line = self.line_of(offset);
        let byte_column = offset - self.starts[line as usize - 1] + 1;
        (line, self.column(line, number(byte_column)))
    }

    /// The byte of the text at a line and a column in bytes.
    pub(super) fn offset(&self, line: u32, byte_column: u32) -> usize {
        let start = self.starts.get((line as usize).saturating_sub(1)).copied().unwrap_or(self.text.len());
        start + (byte_column as usize).saturating_sub(1)
    }

    /// The place after the last character that is not white space.
    pub(super) fn end(&self) -> (u32, u32) {
        self.place(self.text.trim_end().len())
    }

    /// The column in characters of a column in bytes.
    pub(super) fn column(&self, line: u32, byte_column: u32) -> u32 {
        let Some(text) = self.line_with_bom(line) else { return 1 };
        // A byte inside a character belongs to it.
        let end = text.floor_char_boundary((byte_column as usize).saturating_sub(1));
        if self.is_ascii {
            return number(end + 1);
        }
        let before = &text[..end];
        let before = if line == 1 { before.strip_prefix(BOM).unwrap_or(before) } else { before };
        number(before.chars().count() + 1)
    }

    /// An error at a byte of the text.
    pub(super) fn error(&self, code: ErrorCode, offset: usize, message: impl Into<String>) -> WorkflowError {
        let (line, column) = self.place(offset);
        code.error(message).at(line, column)
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
