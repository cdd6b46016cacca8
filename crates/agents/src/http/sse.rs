//! Server-sent events out of a stream of bytes, as the HTML standard reads them, within bounds; but for the two
//! liberties that servers take, which [`Decoder`] notes.
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>

/// What a server sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its type; empty where none was given.
    pub(super) name: String,
    /// Its lines.
    pub(super) data: String,
}

/// An event has more bytes than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Reads events, whatever pieces the bytes come in. Other than the standard, it gives events that have a name and no
/// data, and with [`finish`](Self::finish) an event that no blank line ends.
#[derive(Debug)]
pub(super) struct Decoder {
    max_bytes: usize,
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed that follows is part of the same line end.
    after_return: bool,
    first_line: bool,
    has_data: bool,
    event: Event,
    /// Lines before the first event that are no part of an event stream.
    stray: Vec<u8>,
    any: bool,
}

impl Decoder {
    /// A reader of events of at most so many bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            after_return: false,
            first_line: true,
            has_data: false,
            event: Event::default(),
            stray: Vec::new(),
            any: false,
        }
    }

    /// Takes the next bytes and gives the events that they complete.
    ///
    /// # Errors
    /// An event is too large; what follows is not to be read.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend_line(&bytes[..end])?;
            let rest = &bytes[end + 1..];
            bytes = match (bytes[end], rest) {
                (b'\r', []) => {
                    self.after_return = true;
                    rest
                }
                (b'\r', [b'\n', rest @ ..]) => rest,
                _ => rest,
            };
            let line = std::mem::take(&mut self.line);
            events.extend(self.take_line(&line)?);
            self.line = line;
            self.line.clear();
        }
        self.extend_line(bytes)?;
        Ok(events)
    }

    /// The event that the stream ends with where no blank line follows it. The standard ignores it; some servers send
    /// their last one so.
    ///
    /// # Errors
    /// It is too large.
    pub(super) fn finish(&mut self) -> Result<Option<Event>, TooLarge> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line)?;
        }
        self.take_line(b"")
    }

    /// What came in place of events, if none ever came: a body that is not an event stream.
    pub(super) fn stray(&self) -> &[u8] {
        if self.any { &[] } else { &self.stray }
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.check(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self, more: usize) -> Result<(), TooLarge> {
        if self.event.data.len() + self.line.len() + more > self.max_bytes { Err(TooLarge) } else { Ok(()) }
    }

    fn take_line(&mut self, mut line: &[u8]) -> Result<Option<Event>, TooLarge> {
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            // The standard wants data; an error or an end may do without.
            let given = std::mem::take(&mut self.has_data) || !event.name.is_empty();
            self.any |= given;
            return Ok(given.then_some(event));
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.check(value.len())?;
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            // A comment.
            b"" | b"id" | b"retry" => {}
            _ if self.any => {}
            _ => {
                if self.stray.len() + line.len() > self.max_bytes {
                    return Err(TooLarge);
                }
                self.stray.extend_from_slice(line);
                self.stray.push(b'\n');
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    /// All events of a stream that comes in pieces of this size, the one that it ends with included.
    fn all(stream: &[u8], size: usize) -> Vec<Event> {
        let mut decoder = Decoder::new(100);
        let mut events: Vec<_> = stream.chunks(size).flat_map(|piece| decoder.push(piece).unwrap()).collect();
        events.extend(decoder.finish().unwrap());
        events
    }

    #[test]
    fn events_are_the_same_in_whatever_pieces_they_come() {
        let stream = "\u{feff}: hello\r\n\r\nevent: a\rdata: 1\r\rdata:2\ndata: \u{1f30d}\ndata\n\nid: 7\nretry: 5\nno \
                      field\nevent: lost\n\ndata:  x: y\r\n\r\ndata: cut off";
        let expected = [
            event("a", "1"),
            event("", "2\n\u{1f30d}\n"),
            event("lost", ""),
            event("", " x: y"),
            event("", "cut off"),
        ];
        for size in 1..=stream.len() {
            assert_eq!(all(stream.as_bytes(), size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        for (stream, expected) in [
            ("data: 1\n\ndata: 2", vec![event("", "1"), event("", "2")]),
            ("data: 1\n\ndata: 2\n", vec![event("", "1"), event("", "2")]),
            ("data: 1\n\ndata: 2\r", vec![event("", "1"), event("", "2")]),
            ("event: error\ndata: 1", vec![event("error", "1")]),
            ("event: error", vec![event("error", "")]),
            ("data: 1\n\n", vec![event("", "1")]),
            (": only\n: comments", vec![]),
            ("", vec![]),
        ] {
            for size in 1..=stream.len().max(1) {
                assert_eq!(all(stream.as_bytes(), size), expected, "{stream:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_is_no_event_stream_is_kept_until_an_event_comes() {
        for (stream, stray) in [
            ("{\"error\":\n {\"code\": 503}}", "{\"error\":\n {\"code\": 503}}\n"),
            ("<html>\n\n<title>data: 1</title>", "<html>\n<title>data: 1</title>\n"),
            ("oops\ndata: 1\n\noops", ""),
            (": ping\nid: 7\nretry: 5\n\n", ""),
        ] {
            let mut decoder = Decoder::new(100);
            decoder.push(stream.as_bytes()).unwrap();
            decoder.finish().unwrap();
            assert_eq!(decoder.stray(), stray.as_bytes(), "{stream:?}");
        }
    }

    #[test]
    fn what_never_ends_is_not_kept() {
        for piece in [&b"data: xxxxxxx"[..], b"xxxxxxxxxxxxx", b"data: xxxxxxx\n", b"data:x\n", b"xxxxxxxx\n"]
        {
            let mut decoder = Decoder::new(1000);
            let fate = (0..1000).find_map(|_| decoder.push(piece).err());
            assert_eq!(fate, Some(TooLarge), "{piece:?}");
            let kept = decoder.line.capacity() + decoder.event.data.capacity() + decoder.stray.capacity();
            assert!(kept < 5000);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(Decoder::new(100).push(b"data: \xff\n\n"), Ok(vec![event("", "\u{fffd}")]));
    }
}
