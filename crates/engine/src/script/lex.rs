//! JavaScript text as characters: white space, comments, words and quoted text.
//!
//! What the reader of literals and the scanner of tokens share. Nothing here knows any grammar.

use super::source::BOM;

/// A comment, a string or the like that begins and does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclosed {
    pub(super) what: &'static str,
    /// Where it begins.
    pub(super) at: usize,
}

/// Whether JavaScript ends a line with this character.
pub(super) fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_space(c: char) -> bool {
    c == BOM || (c.is_whitespace() && c != '\u{85}')
}

pub(super) fn begins_word(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '$' | '_')
}

/// Whether a word can go on with this character. For characters beyond ASCII that is a good guess.
pub(super) fn continues_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '$' | '_' | '\u{200c}' | '\u{200d}' | '\u{300}'..='\u{36f}')
}

/// A place in a text that moves forward.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    pub(super) fn skip_while(&mut self, mut wanted: impl FnMut(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    }

    /// Skips white space and comments. Says whether a line began in them; one does at the start of the text.
    pub(super) fn gap(&mut self) -> Result<bool, Unclosed> {
        let mut new_line = self.at == 0;
        loop {
            let rest = self.rest();
            // Comments as in HTML are JavaScript outside modules, and scripts are no modules.
            if rest.starts_with("//") || rest.starts_with("<!--") || (new_line && rest.starts_with("-->")) {
                self.skip_while(|c| !ends_line(c));
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let unclosed = Unclosed { what: "comment", at: self.at };
                let length = comment.find("*/").ok_or(unclosed)?;
                new_line |= comment[..length].contains(ends_line);
                self.at += length + 4;
            } else {
                match rest.chars().next() {
                    Some(c) if ends_line(c) => new_line = true,
                    Some(c) if is_space(c) => {}
                    _ => return Ok(new_line),
                }
                self.next();
            }
        }
    }

    /// Reads a word: an identifier or a keyword, with its escapes as they are. Empty when there is none.
    pub(super) fn word(&mut self) -> &'a str {
        let start = self.at;
        while let Some(c) = self.peek() {
            if self.rest().starts_with("\\u{") {
                self.skip_while(|c| c != '}' && !ends_line(c));
                self.eat("}");
            } else if self.eat("\\u") || (if self.at == start { begins_word(c) } else { continues_word(c) }) {
                self.skip_while(continues_word);
            } else {
                break;
            }
        }
        self.since(start)
    }

    /// Skips a string from its opening quote to behind its closing one.
    pub(super) fn string(&mut self) -> Result<(), Unclosed> {
        let unclosed = Unclosed { what: "string", at: self.at };
        let quote = self.next();
        loop {
            match self.next() {
                None | Some('\n' | '\r') => return Err(unclosed),
                Some('\\') if self.eat("\r\n") => {}
                Some('\\') => {
                    self.next();
                }
                c if c == quote => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Skips the text of a template literal, of which `start` is the beginning, to behind its closing backquote
    /// (true) or the next `${` (false).
    pub(super) fn template(&mut self, start: usize) -> Result<bool, Unclosed> {
        loop {
            match self.next() {
                None => return Err(Unclosed { what: "template literal", at: start }),
                Some('`') => return Ok(true),
                Some('$') if self.eat("{") => return Ok(false),
                Some('\\') => {
                    self.next();
                }
                Some(_) => {}
            }
        }
    }

    /// Skips a regular expression from its first slash to behind its flags. It must end on its line.
    pub(super) fn regex(&mut self) -> Result<(), Unclosed> {
        let unclosed = Unclosed { what: "regular expression", at: self.at };
        self.next();
        let mut in_class = false;
        loop {
            let c = self.next().filter(|c| !ends_line(*c)).ok_or(unclosed)?;
            match c {
                '\\' if self.peek().is_some_and(|c| !ends_line(c)) => {
                    self.next();
                }
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => break,
                _ => {}
            }
        }
        self.skip_while(continues_word);
        Ok(())
    }
}
