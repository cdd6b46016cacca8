//! The value of JavaScript's strings, numbers and escaped words.

use super::lex::{self, Cursor};

/// A fault in a string.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: &'static str,
}

/// A string in the making. JavaScript's strings are UTF-16: two escapes may make one character, and a lone half
/// of one becomes U+FFFD.
#[derive(Debug, Default)]
pub(super) struct JsString {
    text: String,
    /// The first half of a surrogate pair that may be completed by what follows.
    high: Option<u16>,
}

impl JsString {
    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.text
    }

    fn flush(&mut self) {
        if self.high.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    fn push(&mut self, c: char) {
        self.flush();
        self.text.push(c);
    }

    /// Adds a code point, which may be half of a surrogate pair.
    fn push_code(&mut self, code: u32) {
        if let Some(c) = char::from_u32(code) {
            return self.push(c);
        }
        let unit = u16::try_from(code).unwrap_or_default();
        if let Some(Ok(c)) = self.high.and_then(|high| char::decode_utf16([high, unit]).next()) {
            self.high = None;
            self.text.push(c);
            return;
        }
        self.flush();
        match unit {
            0xd800..=0xdbff => self.high = Some(unit),
            _ => self.text.push(char::REPLACEMENT_CHARACTER),
        }
    }

    /// Adds the value of the string or template literal that the cursor stands at.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let start = cursor.at;
        let quote = cursor.next();
        let template = quote == Some('`');
        loop {
            let at = cursor.at;
            match cursor.next() {
                None => return Err(Fault { at: start, message: "the string is not closed" }),
                Some('\n' | '\r') if !template => {
                    let message = "the string is not closed on its line; close it, or join several with `+`";
                    return Err(Fault { at: start, message });
                }
                Some('\r') => {
                    cursor.eat("\n");
                    self.push('\n');
                }
                Some('$') if template && cursor.peek() == Some('{') => {
                    let message = "`${…}` makes this text computed; metadata is read without running the script, \
                                   so write the text itself";
                    return Err(Fault { at, message });
                }
                Some('\\') => self.escape(cursor).map_err(|message| Fault { at, message })?,
                c if c == quote => return Ok(()),
                Some(c) => self.push(c),
            }
        }
    }

    /// Adds the value of an escape, from behind its backslash.
    fn escape(&mut self, cursor: &mut Cursor<'_>) -> Result<(), &'static str> {
        let Some(c) = cursor.next() else { return Ok(()) };
        match c {
            'n' => self.push('\n'),
            't' => self.push('\t'),
            'r' => self.push('\r'),
            'b' => self.push('\u{8}'),
            'f' => self.push('\u{c}'),
            'v' => self.push('\u{b}'),
            '\r' if cursor.eat("\n") => {}
            c if lex::ends_line(c) => {}
            '0' if !matches!(cursor.peek(), Some('0'..='9')) => self.push('\0'),
            '0'..='9' => {
                return Err("octal escapes are not JavaScript any more; write `\\x` and two hex digits");
            }
            'x' => {
                let code = hex(cursor, 2).ok_or("`\\x` must be followed by two hex digits")?;
                self.push_code(code);
            }
            'u' => {
                let code = unicode(cursor);
                self.push_code(
                    code.ok_or("`\\u` must be followed by four hex digits, or by a code point in braces")?,
                );
            }
            c => self.push(c),
        }
        Ok(())
    }
}

/// The code point of an escape, from behind its `u`.
fn unicode(cursor: &mut Cursor<'_>) -> Option<u32> {
    if !cursor.eat("{") {
        return hex(cursor, 4);
    }
    let start = cursor.at;
    cursor.skip_while(|c| c.is_ascii_hexdigit());
    let digits = cursor.since(start);
    let significant = match digits.trim_start_matches('0') {
        "" if !digits.is_empty() => "0",
        significant => significant,
    };
    // Longer ones are beyond Unicode, whatever their digits.
    let code = u32::from_str_radix(significant.get(..8).unwrap_or(significant), 16).ok()?;
    (cursor.eat("}") && code <= u32::from(char::MAX)).then_some(code)
}

fn hex(cursor: &mut Cursor<'_>, digits: usize) -> Option<u32> {
    let text = cursor.rest().get(..digits)?;
    // from_str_radix takes a sign as well.
    let code = text.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(text, 16).ok())??;
    cursor.at += digits;
    Some(code)
}

/// The value of a word whose characters may be escaped. `None` when it is no word.
pub(super) fn unescaped_word(word: &str) -> Option<String> {
    let mut cursor = Cursor::new(word, 0);
    let mut text = String::with_capacity(word.len());
    while let Some(c) = cursor.next() {
        let c = match c {
            '\\' => char::from_u32(cursor.eat("u").then(|| unicode(&mut cursor))??)?,
            c => c,
        };
        let belongs = if text.is_empty() { lex::begins_word(c) } else { lex::continues_word(c) };
        text.push(belongs.then_some(c)?);
    }
    (!text.is_empty()).then_some(text)
}

/// The value of a number without sign. The error is to be read after the number.
pub(super) fn number(text: &str) -> Result<f64, &'static str> {
    const MALFORMED: &str = "is not a number";
    if text.ends_with('n') {
        return Err("is a bigint, which is not JSON; write it without the `n`");
    }
    let digits = separated(text).ok_or("has a `_` that does not stand between two digits")?;
    let radix = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        Some(start) if start.starts_with('0') && start.ends_with(|c: char| c.is_ascii_digit()) => {
            return Err("begins with a zero; write it without, or octal numbers with `0o`");
        }
        _ => return decimal(&digits).ok_or(MALFORMED),
    };
    integer(&digits[2..], radix).ok_or(MALFORMED)
}

/// The text without its separators, each of which must stand between two digits.
fn separated(text: &str) -> Option<String> {
    let is_hex = text.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"));
    let is_digit = |c: char| if is_hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
    let parts = text.split('_').collect::<Vec<_>>();
    let between_digits =
        parts.windows(2).all(|pair| pair[0].ends_with(is_digit) && pair[1].starts_with(is_digit));
    (between_digits && (parts.len() == 1 || parts[0] != "0")).then(|| parts.concat())
}

fn decimal(text: &str) -> Option<f64> {
    // Rust also knows words such as `inf`.
    text.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b)).then(|| text.parse().ok())?
}

/// The value of an integer of any length, rounded once, as JavaScript does.
fn integer(digits: &str, radix: u32) -> Option<f64> {
    let (mut value, mut exponent, mut rest) = (0u64, 0i32, false);
    for c in digits.chars() {
        let digit = u64::from(c.to_digit(radix)?);
        if value < 1 << 58 {
            value = value * u64::from(radix) + digit;
        } else {
            // Enough bits for a f64; what follows only decides how to round.
            exponent = exponent.saturating_add(radix.ilog2() as i32);
            rest |= digit != 0;
        }
    }
    (!digits.is_empty()).then(|| (value | u64::from(rest)) as f64 * 2f64.powi(exponent))
}

/// The name of a field that is written as a number.
pub(super) fn of_number(number: f64) -> String {
    if number == 0.0 || (1e-6..1e21).contains(&number) {
        return number.to_string();
    }
    if number.is_infinite() {
        return "Infinity".into();
    }
    let text = format!("{number:e}");
    if number < 1.0 { text } else { text.replace('e', "e+") }
}
