//! JavaScript literals as JSON, without running anything.
//!
//! A literal is what needs no computing: objects, arrays, strings, numbers, `true`, `false`, `null`, and strings
//! joined with `+`, because long texts are written so. Whatever else stands in its place is refused with its
//! place and with what to write instead. Time is linear in the text, and nesting is bounded.

use std::fmt::Display;

use fanfold_types::{ErrorCode, WorkflowError};
use serde_json::{Map, Number, Value};

use super::lex::{self, Cursor, Unclosed};
use super::source::Source;
use super::string::{self, JsString};
use super::words::{MAX_NAME, brief, shown, typescript};

/// How deep a literal may nest.
const MAX_DEPTH: usize = 64;

/// Reads the literal at a byte of the text, and says where it ends. `root` is its name in paths.
///
/// # Errors
/// `META_INVALID` at the first thing that is no literal.
pub(super) fn read(source: &Source, at: usize, root: &str) -> Result<(Value, usize), WorkflowError> {
    let mut reader = Reader::new(source, at, root);
    let value = reader.value()?;
    Ok((value, reader.cursor.at))
}

/// Where the value with a path stands in the literal at a byte of the text, if it has one.
pub(super) fn find(source: &Source, at: usize, root: &str, path: &str) -> Option<usize> {
    let mut reader = Reader { wanted: Some(path), ..Reader::new(source, at, root) };
    // The literal has been read before; if it is no literal there is nothing to be found.
    reader.value().ok()?;
    reader.found
}

struct Reader<'a> {
    source: &'a Source,
    cursor: Cursor<'a>,
    /// Of the value that is being read.
    path: String,
    depth: usize,
    /// The path of a value whose place is asked for, until it is found.
    wanted: Option<&'a str>,
    found: Option<usize>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source, at: usize, root: &str) -> Self {
        let cursor = Cursor::new(source.text(), at);
        Self { source, cursor, path: root.into(), depth: 0, wanted: None, found: None }
    }

    fn value(&mut self) -> Result<Value, WorkflowError> {
        self.gap()?;
        let start = self.cursor.at;
        if self.wanted.is_some_and(|wanted| wanted == self.path) {
            self.found = Some(start);
            self.wanted = None;
        }
        match self.cursor.peek() {
            Some('{') => self.nested(Self::object),
            Some('[') => self.nested(Self::array),
            Some('"' | '\'' | '`') => self.strings(),
            Some('0'..='9' | '.' | '+' | '-') if !self.cursor.rest().starts_with("..") => self.number(),
            Some(c) if lex::begins_word(c) => match self.cursor.word() {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                "null" => Ok(Value::Null),
                _ => Err(self.no_literal(start)),
            },
            _ => Err(self.no_literal(start)),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self, usize) -> Result<Value, WorkflowError>,
    ) -> Result<Value, WorkflowError> {
        let start = self.cursor.at;
        if self.depth == MAX_DEPTH {
            return Err(self.refuse(start, format!("the literal nests deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        self.cursor.next();
        let value = read(self, start)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self, start: usize) -> Result<Value, WorkflowError> {
        let mut elements = Vec::new();
        let outer = self.path.len();
        loop {
            self.gap()?;
            if self.cursor.eat("]") {
                return Ok(elements.into());
            }
            self.path.push_str(&format!("[{}]", elements.len()));
            match self.cursor.peek() {
                None => return Err(self.unclosed(start, "[", "]")),
                Some(',') => {
                    return Err(self.refuse(self.cursor.at, "an element is missing before this `,`"));
                }
                _ => elements.push(self.value()?),
            }
            self.comma(start, "[", "]")?;
            self.path.truncate(outer);
        }
    }

    fn object(&mut self, start: usize) -> Result<Value, WorkflowError> {
        let mut fields = Map::new();
        let outer = self.path.len();
        loop {
            self.gap()?;
            if self.cursor.eat("}") {
                return Ok(fields.into());
            }
            if self.cursor.peek().is_none() {
                return Err(self.unclosed(start, "{", "}"));
            }
            let name = self.field_name()?;
            self.path.push('.');
            self.path.push_str(&name);
            let value = self.value()?;
            // The last of several wins, and stays at the place of the first.
            fields.insert(name, value);
            self.comma(start, "{", "}")?;
            self.path.truncate(outer);
        }
    }

    /// Reads a field's name and its colon.
    fn field_name(&mut self) -> Result<String, WorkflowError> {
        let start = self.cursor.at;
        let name = match self.cursor.peek() {
            Some('"' | '\'') => {
                let mut name = JsString::default();
                self.string_part(&mut name)?;
                name.finish()
            }
            Some('0'..='9' | '.') if !self.cursor.rest().starts_with("..") => {
                string::of_number(self.unsigned_number()?)
            }
            Some(c) if lex::begins_word(c) || c == '\\' => {
                let word = self.cursor.word();
                let name = string::unescaped_word(word);
                name.ok_or_else(|| self.refuse(start, format!("{} is no field name", self.shown(start))))?
            }
            _ => return Err(self.no_field(start)),
        };
        let end = self.cursor.at;
        self.gap()?;
        if !self.cursor.eat(":") {
            return Err(self.no_colon(start, end, &name));
        }
        if name == "__proto__" {
            let message = "`__proto__` would set the object's prototype; leave the field out";
            return Err(self.refuse(start, message));
        }
        Ok(name)
    }

    /// Reads what stands behind an element: a comma, or nothing before the closing bracket.
    fn comma(&mut self, start: usize, open: &str, close: &str) -> Result<(), WorkflowError> {
        self.gap()?;
        let at = self.cursor.at;
        match self.cursor.peek() {
            None => Err(self.unclosed(start, open, close)),
            Some(',') => {
                self.cursor.next();
                Ok(())
            }
            Some(c) if close.starts_with(c) => Ok(()),
            Some(c) if lex::begins_word(c) && matches!(self.cursor.word(), "as" | "satisfies") => {
                Err(self.refuse(at, typescript(self.cursor.since(at))))
            }
            Some(c) => {
                let computes =
                    !lex::continues_word(c) && !matches!(c, '"' | '\'' | '{' | ')' | ']' | '}' | ';');
                let shown = self.shown(at);
                Err(self.refuse(
                    at,
                    match computes {
                        true => format!("{shown} makes this value computed; {INSTEAD}"),
                        false => format!("expected `,` or `{close}`, found {shown}"),
                    },
                ))
            }
        }
    }

    /// Reads strings and template literals joined with `+`.
    fn strings(&mut self) -> Result<Value, WorkflowError> {
        let mut text = JsString::default();
        loop {
            self.string_part(&mut text)?;
            let end = self.cursor.clone();
            self.gap()?;
            if !self.cursor.eat("+") {
                self.cursor = end;
                return Ok(text.finish().into());
            }
            self.gap()?;
            if !matches!(self.cursor.peek(), Some('"' | '\'' | '`')) {
                let at = self.cursor.at;
                let shown = self.shown(at);
                let message = format!("{shown} is joined to a string; only strings in quotes can be");
                return Err(self.refuse(at, message));
            }
        }
    }

    fn string_part(&mut self, text: &mut JsString) -> Result<(), WorkflowError> {
        text.read(&mut self.cursor).map_err(|fault| self.refuse(fault.at, fault.message))
    }

    fn number(&mut self) -> Result<Value, WorkflowError> {
        let start = self.cursor.at;
        let negative = self.cursor.peek() == Some('-');
        if self.cursor.eat("-") || self.cursor.eat("+") {
            self.gap()?;
            if !matches!(self.cursor.peek(), Some('0'..='9' | '.')) {
                let message =
                    format!("a sign must stand before a number, not before {}", self.shown(self.cursor.at));
                return Err(self.refuse(self.cursor.at, message));
            }
        }
        let number = self.unsigned_number()?;
        let number = if negative { -number } else { number };
        // Beyond 2^53 neighbouring integers are one number.
        let number = if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
            Some(Number::from(number as i64))
        } else {
            Number::from_f64(number)
        };
        let number = number.ok_or_else(|| self.refuse(start, "the number is too large"))?;
        Ok(number.into())
    }

    fn unsigned_number(&mut self) -> Result<f64, WorkflowError> {
        let start = self.cursor.at;
        // Everything that looks as if it belonged to the number, such as the `n` of a bigint, does.
        let mut last = ' ';
        self.cursor.skip_while(|c| {
            let exponent = matches!(c, '+' | '-') && matches!(last, 'e' | 'E');
            last = c;
            c == '.' || lex::continues_word(c) || exponent
        });
        let number = string::number(self.cursor.since(start));
        number.map_err(|fault| {
            self.refuse(start, format!("`{}` {fault}", brief(self.cursor.since(start), MAX_NAME)))
        })
    }

    fn gap(&mut self) -> Result<(), WorkflowError> {
        self.cursor
            .gap()
            .map_err(|Unclosed { what, at }| self.refuse(at, format!("the {what} is not closed")))?;
        Ok(())
    }

    fn refuse(&self, at: usize, message: impl Display) -> WorkflowError {
        let message = format!("{}: {message}", brief(&self.path, MAX_NAME));
        self.source.error(ErrorCode::MetaInvalid, at, message).on(self.path.clone())
    }

    fn unclosed(&self, start: usize, open: &str, close: &str) -> WorkflowError {
        self.refuse(start, format!("this `{open}` is not closed; add the missing `{close}`"))
    }

    fn no_literal(&self, at: usize) -> WorkflowError {
        let shown = self.shown(at);
        let mut word = Cursor::new(self.source.text(), at);
        self.refuse(
            at,
            match word.word() {
                "undefined" => "`undefined` is not JSON; leave the field out".to_string(),
                "NaN" | "Infinity" => format!("{shown} is not JSON; write a number, a string or `null`"),
                "" if matches!(word.peek(), None | Some(',' | ';' | ')' | ']' | '}')) => {
                    format!("a value is missing before {shown}")
                }
                "" if word.eat("...") => format!("`...` spreads a value that must be computed; {INSTEAD}"),
                _ => format!("{shown} is not a literal; {INSTEAD}"),
            },
        )
    }

    fn no_field(&self, at: usize) -> WorkflowError {
        let rest = self.source.text()[at..].chars().next();
        let shown = self.shown(at);
        self.refuse(
            at,
            match rest {
                Some('[') => format!("`[` begins a computed field name; {INSTEAD}"),
                Some('*') => format!("`*` begins a method; {INSTEAD}"),
                Some('.') => format!("`...` spreads a value that must be computed; {INSTEAD}"),
                Some(',') => "a field is missing before this `,`".to_string(),
                Some('`') => "a field name cannot be a template literal; use plain quotes".to_string(),
                _ => format!("expected a field name or `}}`, found {shown}"),
            },
        )
    }

    /// What to say when there is no colon behind the field name from `start` to `end`.
    fn no_colon(&self, start: usize, end: usize, name: &str) -> WorkflowError {
        let at = self.cursor.at;
        let next = self.cursor.peek();
        let quoted = self.source.text()[start..end].starts_with(['"', '\'']);
        let name = brief(name, MAX_NAME);
        match next {
            Some('(') => self.refuse(start, format!("`{name}` is a method; {INSTEAD}")),
            Some(',' | '}') if !quoted => self.refuse(
                start,
                format!("`{name}` alone stands for a variable; write `{name}: …` with its value"),
            ),
            Some(c)
                if matches!(&*name, "get" | "set" | "async")
                    && (lex::begins_word(c) || "[*\"'".contains(c)) =>
            {
                self.refuse(start, format!("`{name}` begins a function; {INSTEAD}"))
            }
            _ => self
                .refuse(at, format!("expected `:` after the field name `{name}`, found {}", self.shown(at))),
        }
    }

    fn shown(&self, at: usize) -> String {
        shown(self.source.text(), at)
    }
}

const INSTEAD: &str = "metadata is read without running the script, so write the value itself";
