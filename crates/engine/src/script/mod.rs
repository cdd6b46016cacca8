//! The author's text on the host: what is done with it before and after the sandbox.
//!
//! Everything here is a pure function of the text. Nothing here parses JavaScript as a whole: QuickJS, in the
//! sandbox, decides what a script is, and this module only reads its metadata, gives places their numbers and
//! finds better words for errors.
//!
//! # Layout
//! - `mod`: [`Script`], from text to what the sandbox is given
//! - `header`: the `export const meta = {…}` that a script may begin with
//! - `literal`: JavaScript literals as JSON, without running anything
//! - `source`: lines and columns of the author's text
//! - `stack`: thrown errors, with the author's lines and columns
//! - `calls`: which hooks a script calls; `returns`: where it returns a value
//! - `names`: what a script may call, and what a name that it lacks was meant to be
//! - `hint`: syntax errors in better words; `typescript` recognises TypeScript for it
//! - `lint`: what a run would ignore or refuse, as far as the text tells
//! - `lex`, `string`, `tokens`: the text as characters, as values and as tokens, for all of the above
//! - `words`: pieces of messages

mod calls;
mod culprit;
mod header;
mod hint;
mod lex;
mod lint;
mod literal;
mod names;
mod returns;
mod source;
mod stack;
mod string;
#[cfg(test)]
mod tests;
mod tokens;
mod typescript;
mod words;

use std::ops::Range;
use std::sync::Arc;

use fanfold_types::{ErrorCode, Meta, WorkflowError};
use serde_json::Value;

use header::Header;
use source::Source;
pub(crate) use stack::Thrown;

use crate::agent_types::AgentTypes;
use crate::schema::{Ignored, Schema};

/// How a script's metadata is given, which decides what globals the script has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// The metadata stands beside the script.
    Body,
    /// The script begins with `export const meta = {…}`. It additionally gets `console`, timers and `URL`.
    Header,
}

/// A script whose metadata is known.
///
/// Lines end with `\n`, `\r\n` or `\r` and count from 1; columns are characters (Unicode scalar values) and
/// count from 1, without the byte order mark that the text may begin with.
#[derive(Clone, Debug)]
pub struct Script {
    /// What the script says it is, or what was said of it.
    pub meta: Meta,
    /// What the sandbox compiles: the text, with spaces in place of the byte order mark, the `#!` line and the
    /// header, so that every byte is where the author put it. All its lines end with `\n` or `\r\n`.
    pub body: String,
    /// How the metadata was given.
    pub dialect: Dialect,
    source: Source,
    /// Fields of the header that are ignored, as warnings.
    ignored: Vec<WorkflowError>,
    /// `meta.args`.
    args: Option<Arc<Schema>>,
}

impl Script {
    /// Whether a script begins with a header, be it a valid one or not: then the script names itself, and a
    /// caller need not make up metadata for it.
    pub fn has_header(text: &str) -> bool {
        header::begins(text)
    }

    /// Reads a script whose metadata stands beside it, in its header, or in both.
    ///
    /// # Errors
    /// `META_INVALID` when there is no metadata, it is not what [`Meta`] asks for (a header may have fields that are
    /// not known), its `args` are no schema that can be enforced, the header is not a plain literal, or header and
    /// `meta` differ. `SCRIPT_PARSE` when the text is Markdown. Any other text is taken:
    /// whether it is JavaScript is for the sandbox to find out.
    pub fn read(text: &str, meta: Option<Meta>) -> Result<Self, WorkflowError> {
        let source = Source::new(text);
        if let Some(fence) = header::markdown_fence(text) {
            let message = "the script is wrapped in a Markdown code fence; pass the code alone, without the \
                           lines of backquotes around it";
            return Err(source.error(ErrorCode::ScriptParse, fence, message));
        }
        if let Some(meta) = &meta {
            meta.validate()?;
        }
        let header = header::read(&source)?;
        let (meta, dialect) = match (meta, &header) {
            (None, None) => return Err(header::missing(&source)),
            (Some(meta), None) => (meta, Dialect::Body),
            (None, Some(header)) => (header.meta.clone(), Dialect::Header),
            (Some(meta), Some(header)) => {
                header.check_same(&source, &meta)?;
                (meta, Dialect::Header)
            }
        };
        let args = match meta.args.clone().map(|args| Schema::of_args(&args.into())).transpose() {
            Ok(schema) => schema.map(Arc::new),
            Err(error) => return Err(header.map_or(error.clone(), |header| header.place(&source, error))),
        };
        let body = blanked(text, header::opening(text), header.as_ref().map(Header::span));
        let ignored = header.map(|header| header.ignored).unwrap_or_default();
        Ok(Self { meta, body, dialect, source, ignored, args })
    }

    /// Warnings of fields of the header that are ignored, for people, each with its line.
    pub(crate) fn ignored(&self) -> impl Iterator<Item = String> {
        self.ignored.iter().map(|warning| match warning.line {
            Some(line) => format!("{} (line {line})", warning.message),
            None => warning.message.clone(),
        })
    }

    /// Checks args, as JSON text, against what the metadata says of them. Without args the script has none to read, so
    /// that only what must be there is missed.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with every violation and its path.
    pub(crate) async fn check_args(&self, args: Option<&str>) -> Result<(), WorkflowError> {
        let Some(schema) = self.args.clone() else { return Ok(()) };
        let args = args.unwrap_or("{}");
        if args.len() <= SMALL_ARGS {
            let value = read_args(args)?;
            if schema.is_quick(&value) {
                return schema.check_args(&value);
            }
        }
        let args = args.to_owned();
        let check = move || schema.check_args(&read_args(&args)?);
        tokio::task::spawn_blocking(check)
            .await
            .map_err(|error| ErrorCode::Internal.error(format!("the args could not be checked: {error}")))?
    }

    /// The column in characters of a column in bytes, both from 1. A column that the line does not have becomes
    /// its nearest one, and 1 on lines that do not exist.
    pub fn column(&self, line: u32, byte_column: u32) -> u32 {
        self.source.column(line, byte_column)
    }

    /// The hooks that the text calls by their names, and in how many places. A guess: names can be shadowed.
    pub fn hook_calls(&self) -> Vec<(&'static str, usize)> {
        calls::count(&self.body)
    }

    /// The globals that scripts of this dialect have.
    pub fn globals(&self) -> Vec<&'static str> {
        names::globals(self.dialect).collect()
    }

    /// What a run would ignore or refuse, as far as the text tells it: fields of the header that mean nothing, options that `agent()` does not have or whose
    /// values it does not take, globals that scripts lack, names that nothing has, and, if `agent_types` is given, kinds of agents that it
    /// does not define. In the order of the text, each with line and column, and with the code that the run would
    /// fail with if it has one.
    ///
    /// A guess that errs on the side of silence: it sees what is written in a call or in a constant, and not what a
    /// variable holds.
    pub fn warnings(&self, agent_types: Option<&dyn AgentTypes>) -> Vec<WorkflowError> {
        let mut found = self.ignored.clone();
        found.extend(self.ignored_of_args());
        found.extend(lint::find(&self.source, &self.body, self.dialect, agent_types));
        found.truncate(lint::MAX_WARNINGS);
        found
    }

    /// What `meta.args` has that has no effect on which args are taken.
    fn ignored_of_args(&self) -> Vec<WorkflowError> {
        let header = header::read(&self.source).ok().flatten();
        self.args
            .iter()
            .flat_map(|schema| schema.ignored())
            .map(|Ignored { path, message }| {
                let warning = WorkflowError::thrown(format!("{path} {message}")).on(path);
                match &header {
                    // It is a warning: a run does not fail with the code.
                    Some(header) => WorkflowError { code: None, ..header.place(&self.source, warning) },
                    None => warning,
                }
            })
            .collect()
    }

    /// The error a script threw, from the text QuickJS makes of it: `name: message`, then its stack.
    ///
    /// Frames of the hooks, of native functions and of the function around the script are dropped, and those
    /// that stay count columns in characters. The error's place is that of the first frame that stays.
    pub fn thrown(&self, text: &str) -> WorkflowError {
        Thrown::by(self).read(text)
    }

    /// The line on which the script returns a value that has something at this path, if the text tells.
    pub(crate) fn line_of_return(&self, path: &str) -> Option<u32> {
        returns::find(&self.body, path).map(|offset| self.source.line_of(offset))
    }

    /// `SCRIPT_PARSE` from a syntax error of QuickJS: in better words, with a column, and with a hint where the
    /// text shows what the author meant.
    ///
    /// QuickJS tells the line where it stopped, but not the column: that is found again from the message.
    pub fn syntax_error(&self, message: &str, line: u32) -> WorkflowError {
        hint::explain(&self.source, &self.body, message, line)
    }
}

/// Args up to this size, in bytes, are read on whatever thread it is.
const SMALL_ARGS: usize = 64 << 10;

fn read_args(json: &str) -> Result<Value, WorkflowError> {
    serde_json::from_str(json).map_err(|error| {
        ErrorCode::InvalidArgument.error(format!("args is not valid JSON: {error}")).on("args")
    })
}

/// The text with spaces in place of the opening (byte order mark and `#!` line) and the header.
fn blanked(text: &str, opening: usize, header: Option<Range<usize>>) -> String {
    let header = header.unwrap_or(opening..opening);
    let mut body = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            // QuickJS counts a lone carriage return as a line in some places only. It may stand nowhere where
            // JavaScript tells it from a newline.
            '\r' if !text[at + 1..].starts_with('\n') => body.push('\n'),
            '\n' | '\r' => body.push(c),
            // An empty statement, lest what stands before and behind the header grow together.
            _ if at == header.start && !header.is_empty() => body.push(';'),
            _ if at < opening || header.contains(&at) => body.extend(std::iter::repeat_n(' ', c.len_utf8())),
            _ => body.push(c),
        }
    }
    body
}
