//! Server-sent events out of a stream of bytes, as the HTML standard reads them, within bounds.
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

/// Reads events, whatever pieces the bytes come in.
#[derive(Debug)]
pub(super) struct Decoder {
    max_bytes: usize,
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed that follows is part of the same line end.
    after_return: bool,
    first_line: bool,
    has_data: bool,
    event: Event,
}

impl Decoder {
    /// A reader of events of at most so many bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        let event = Event::default();
        Self { max_bytes, line: Vec::new(), after_return: false, first_line: true, has_data: false, event }
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
            return Ok(std::mem::take(&mut self.has_data).then_some(event));
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
            // Comments, ids and what nobody knows.
            _ => {}
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

    #[test]
    fn events_are_the_same_in_whatever_pieces_they_come() {
        let stream = "\u{feff}: hello\r\n\r\nevent: a\rdata: 1\r\rdata:2\ndata: \u{1f30d}\ndata\n\nid: 7\nretry: 5\nno \
                      field\nevent: lost\n\ndata:  x: y\r\n\r\ndata: cut off";
        let expected = [event("a", "1"), event("", "2\n\u{1f30d}\n"), event("", " x: y")];
        for size in 1..=stream.len() {
            let mut decoder = Decoder::new(100);
            let pieces = stream.as_bytes().chunks(size);
            let events: Vec<_> = pieces.flat_map(|piece| decoder.push(piece).unwrap()).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn what_never_ends_is_not_kept() {
        for piece in [&b"data: xxxxxxx"[..], b"xxxxxxxxxxxxx", b"data: xxxxxxx\n", b"data:x\n"] {
            let mut decoder = Decoder::new(1000);
            let fate = (0..1000).find_map(|_| decoder.push(piece).err());
            assert_eq!(fate, Some(TooLarge), "{piece:?}");
            assert!(decoder.line.capacity() + decoder.event.data.capacity() < 5000);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(Decoder::new(100).push(b"data: \xff\n\n"), Ok(vec![event("", "\u{fffd}")]));
    }
}
