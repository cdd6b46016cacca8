//! Text of any length made short: what goes into an error or back to a model is bounded.

use std::borrow::Cow;

/// The end of what a process wrote, at most `max` bytes of it: trimmed, invalid UTF-8 replaced, after `…`
/// where that cuts.
pub(crate) fn tail(bytes: &[u8], max: usize) -> String {
    if bytes.len() <= max {
        return String::from_utf8_lossy(bytes).trim().to_owned();
    }
    let mut bytes = &bytes[bytes.len() - max..];
    // The rest of a character that is cut.
    while let [0x80..0xc0, rest @ ..] = bytes {
        bytes = rest;
    }
    format!("…{}", String::from_utf8_lossy(bytes).trim())
}

/// The beginning of a text, at most `max` bytes of it, before `…` where that cuts.
pub(crate) fn start(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(max)]))
}

/// The two ends of a text, about `max` bytes in whole characters, with a note of what is missing between
/// them.
pub(crate) fn ends(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let from = text.floor_char_boundary(max / 2);
    let to = text.ceil_char_boundary(text.len() - max / 2);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..from], to - from, &text[to..])
}

/// The end of a stream of bytes.
#[derive(Debug)]
pub(crate) struct Tail {
    max: usize,
    bytes: Vec<u8>,
}

impl Tail {
    /// Keeps the last `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, bytes: Vec::new() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Up to twice as much is kept, so that short pieces do not move everything each time; and at least
        // one byte too many, so that it shows that there were more.
        if self.bytes.len() > 2 * self.max {
            self.bytes.drain(..self.bytes.len() - self.max - 1);
        }
    }

    /// What is kept, as text; see [`tail`].
    pub(crate) fn text(&self) -> String {
        tail(&self.bytes, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(tail("🎉🎉🎉".as_bytes(), 9), "…🎉🎉");
        assert_eq!(tail("🎉🎉".as_bytes(), 8), "🎉🎉");
        assert_eq!(tail(b" \x80\xff ", 4), "\u{fffd}\u{fffd}");
        assert_eq!(tail(&[0x80; 10], 4), "…");
        assert_eq!((&*start("🎉🎉", 7), &*start("🎉🎉", 8)), ("🎉…", "🎉🎉"));
        assert_eq!(ends("🎉🎉🎉🎉", 10), "🎉\n[… 8 bytes left out …]\n🎉");
        assert_eq!(ends("🎉🎉", 8), "🎉🎉");
    }

    #[test]
    fn a_tail_keeps_the_end_of_any_stream() {
        let mut tail = Tail::new(10);
        tail.push(b" \xffshort\n");
        assert_eq!(tail.text(), "\u{fffd}short");
        for n in 0..1000 {
            tail.push(format!("{n},").as_bytes());
        }
        assert_eq!(tail.text(), "…7,998,999,");
        assert!(tail.bytes.len() <= 20);
    }
}
