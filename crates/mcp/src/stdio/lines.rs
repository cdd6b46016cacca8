//! Messages from a stream, one a line.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use crate::incoming::{IdFinder, MAX_BYTES};

/// What comes next.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A line without its end. The last one of the stream needs none.
    Whole(Vec<u8>),
    /// One of more than [`MAX_BYTES`], which was not kept, with the id of its message.
    TooLong(Value),
    /// The stream has ended, or is broken.
    End,
}

pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Looks at the rest of a line that is too long.
    too_long: Option<IdFinder>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), too_long: None }
    }

    /// The next line. Nothing is lost if the future is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Line {
        loop {
            let available = self.reader.fill_buf().await.unwrap_or_default();
            let ended = available.is_empty();
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |at| at + 1);
            let part = &available[..newline.unwrap_or(taken)];
            if self.too_long.is_none() && self.line.len() + part.len() > MAX_BYTES {
                let mut finder = IdFinder::default();
                finder.pass(&std::mem::take(&mut self.line));
                self.too_long = Some(finder);
            }
            match &mut self.too_long {
                Some(finder) => finder.pass(part),
                None => self.line.extend_from_slice(part),
            }
            self.reader.consume(taken);
            if newline.is_none() && !ended {
                continue;
            }
            if let Some(finder) = self.too_long.take() {
                return Line::TooLong(finder.found());
            }
            let line = std::mem::take(&mut self.line);
            if !line.trim_ascii().is_empty() {
                return Line::Whole(line);
            }
            if ended {
                return Line::End;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn lines_end_as_people_end_them() {
        let mut lines = Lines::new(&b"one\n\r\n  \ntwo\r\n\nthree"[..]);
        for expected in ["one", "two\r", "three"] {
            assert_eq!(lines.next().await, Line::Whole(expected.into()));
        }
        assert_eq!((lines.next().await, lines.next().await), (Line::End, Line::End));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_told_with_its_id_and_the_next_one_is_read() {
        let long = format!("{{\"params\":\"{}\",\"id\":7}}\n", "x".repeat(MAX_BYTES));
        let text = format!("{long}next\n{long}");
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next().await, Line::TooLong(json!(7)));
        assert_eq!(lines.next().await, Line::Whole("next".into()));
        assert_eq!(lines.next().await, Line::TooLong(json!(7)));
        assert_eq!(lines.next().await, Line::End);
    }
}
