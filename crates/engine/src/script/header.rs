//! The `export const meta = {…}` that a script may begin with.
//!
//! Before it stand at most white space, comments, directives such as `"use strict"`, a byte order mark and a
//! `#!` line. The same words anywhere else are not a header.

use std::ops::Range;

use fanfold_types::{ErrorCode, Meta, WorkflowError};

use super::hint;
use super::lex::{self, Cursor};
use super::literal;
use super::source::{BOM, Source};
use super::words;

/// The name of the header's value in paths.
const ROOT: &str = "meta";

/// Most fields that are ignored and told of, one by one.
const MAX_IGNORED: usize = 10;

const EXAMPLE: &str = "export const meta = {name: \"short-name\", description: \"what it does\"}";

/// A header that has been read.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) meta: Meta,
    /// Warnings of fields that mean nothing, each with its place.
    pub(super) ignored: Vec<WorkflowError>,
    span: Range<usize>,
    literal: usize,
}

impl Header {
    /// The bytes it takes, from `export` to its semicolon or the end of its literal.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The same error on a value of the header, with its place.
    pub(super) fn place(&self, source: &Source, error: WorkflowError) -> WorkflowError {
        error_on(source, self.literal, error.path.unwrap_or_else(|| ROOT.into()), error.message)
    }

    /// Checks that metadata given beside the script says the same.
    pub(super) fn check_same(&self, source: &Source, beside: &Meta) -> Result<(), WorkflowError> {
        let Meta { name, description, when_to_use, phases, args } = &self.meta;
        let differences = [
            ("name", *name == beside.name),
            ("description", *description == beside.description),
            ("whenToUse", *when_to_use == beside.when_to_use),
            ("phases", *phases == beside.phases),
            ("args", *args == beside.args),
        ];
        let Some((field, _)) = differences.iter().find(|(_, same)| !same) else { return Ok(()) };
        let path = format!("{ROOT}.{field}");
        let message = format!(
            "the script's header and the metadata given beside the script differ in `{path}`; give only one of \
             them, or the same in both"
        );
        Err(error_on(source, self.literal, path, message))
    }
}

/// Whether the text begins with a header, readable or not.
pub(super) fn begins(text: &str) -> bool {
    export_meta(&mut prologue(text)).is_some()
}

/// Reads the header, if the text begins with one.
///
/// # Errors
/// `META_INVALID` when it is not a plain literal, or not what [`Meta`] asks for.
pub(super) fn read(source: &Source) -> Result<Option<Header>, WorkflowError> {
    let mut cursor = prologue(source.text());
    let start = cursor.at;
    let Some(keyword) = export_meta(&mut cursor) else { return Ok(None) };
    let refuse = |at, message: String| Err(source.error(ErrorCode::MetaInvalid, at, message));
    if keyword != "const" {
        return refuse(start, format!("the header must be a constant: write `{EXAMPLE}`"));
    }
    let at = cursor.at;
    if cursor.eat(":") {
        let message =
            "this type is TypeScript; scripts are plain JavaScript, so write `export const meta = {…}`";
        return refuse(at, message.into());
    }
    if !cursor.eat("=") || cursor.peek() == Some('=') {
        let shown = words::shown(source.text(), at);
        return refuse(at, format!("expected `= {{…}}` after `export const meta`, found {shown}"));
    }
    // A comment that does not end is the reader's to report.
    let mut value = cursor.clone();
    let literal = value.gap().map_or(cursor.at, |_| value.at);
    let (value, end) = literal::read(source, literal, ROOT)?;
    let end = ending(source, end)?;
    let (meta, ignored) = Meta::from_header(&value).map_err(|error| {
        let path = error.path.unwrap_or_else(|| ROOT.into());
        error_on(source, literal, path, error.message)
    })?;
    let ignored = placed(source, literal, ignored);
    Ok(Some(Header { meta, ignored, span: start..end, literal }))
}

/// The first warnings of fields that are ignored, with their places, and how many more there are.
fn placed(source: &Source, literal: usize, ignored: Vec<WorkflowError>) -> Vec<WorkflowError> {
    let more = ignored.len().saturating_sub(MAX_IGNORED);
    let mut warnings: Vec<WorkflowError> = ignored
        .into_iter()
        .take(MAX_IGNORED)
        .map(|WorkflowError { message, path, .. }| {
            let path = path.unwrap_or_default();
            let (line, column) = source.place(place(source, literal, &path));
            WorkflowError::thrown(words::brief(&message, words::MAX_MESSAGE))
                .at(line, column)
                .on(words::brief(&path, words::MAX_MESSAGE))
        })
        .collect();
    if more > 0 {
        warnings
            .push(WorkflowError::thrown(format!("{ROOT}: {more} more unknown fields are ignored")).on(ROOT));
    }
    warnings
}

/// An error on a value of the header.
fn error_on(source: &Source, literal: usize, path: String, message: String) -> WorkflowError {
    let at = place(source, literal, &path);
    source.error(ErrorCode::MetaInvalid, at, message).on(path)
}

/// Where the value of the header with this path stands, or else where the header's literal begins.
fn place(source: &Source, literal: usize, path: &str) -> usize {
    literal::find(source, literal, ROOT, path).unwrap_or(literal)
}

/// Checks what stands behind the literal, and says where the header ends.
fn ending(source: &Source, end: usize) -> Result<usize, WorkflowError> {
    let mut cursor = Cursor::new(source.text(), end);
    // A comment that does not end is no longer the header's: QuickJS reports it.
    let new_line = cursor.gap().unwrap_or(true);
    let at = cursor.at;
    if cursor.eat(";") {
        return Ok(cursor.at);
    }
    let word = cursor.word();
    let message = match cursor.peek().filter(|_| word.is_empty()) {
        _ if !new_line && matches!(word, "as" | "satisfies") => words::typescript(word),
        // What begins no statement goes on from the literal, on whatever line it stands.
        Some(c) if !new_line || ".,?=*%&|^".contains(c) => format!(
            "the header must end behind its literal, found {}: metadata is read without running the script",
            words::shown(source.text(), at)
        ),
        None if !word.is_empty() && !new_line => {
            let shown = words::shown(source.text(), at);
            format!("a `;` or a new line must stand between the header and {shown}")
        }
        _ => return Ok(end),
    };
    Err(source.error(ErrorCode::MetaInvalid, at, message))
}

/// Where the byte order mark and the `#!` line end; 0 when the text has neither.
pub(super) fn opening(text: &str) -> usize {
    let mut cursor = Cursor::new(text, 0);
    cursor.eat(BOM.encode_utf8(&mut [0; 4]));
    if cursor.rest().starts_with("#!") {
        cursor.skip_while(|c| !lex::ends_line(c));
    }
    cursor.at
}

/// Skips what may stand before a header.
fn prologue(text: &str) -> Cursor<'_> {
    let mut cursor = Cursor::new(text, opening(text));
    // Text that does not end properly holds no header; QuickJS reports it.
    while cursor.gap().is_ok() {
        let mut directive = cursor.clone();
        if cursor.rest().starts_with(['"', '\'']) && directive.string().is_ok() {
            cursor = directive;
        } else if !cursor.eat(";") {
            break;
        }
    }
    cursor
}

/// Reads `export const meta`, or the same with `let` or `var`, to what stands behind it. Gives the keyword.
fn export_meta<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let mut next = || {
        let word = cursor.word();
        cursor.gap().ok().map(|_| word)
    };
    (next()? == "export").then_some(())?;
    let keyword = next().filter(|keyword| matches!(*keyword, "const" | "let" | "var"))?;
    (next()? == "meta").then_some(keyword)
}

/// What to say of a script without any metadata.
pub(super) fn missing(source: &Source) -> WorkflowError {
    let text = source.text();
    let mut cursor = prologue(text);
    let start = cursor.at;
    let first = cursor.word();
    if first == "import" && line_that_begins(text, &["export", "const", "meta"]).is_some() {
        return source.error(ErrorCode::ScriptParse, start, hint::NO_MODULES);
    }
    let export = first == "export" && cursor.gap().is_ok();
    if export && cursor.word() == "default" {
        let message = format!(
            "a script has no default export: it is the body of a function, begins with `{EXAMPLE}` and returns its \
             result with `return`"
        );
        return source.error(ErrorCode::MetaInvalid, start, message);
    }
    let (at, message) = if let Some(at) = line_that_begins(text, &["export", "const", "meta"]) {
        (
            at,
            "the metadata must come first: nothing but comments and directives may stand before \
              `export const meta`",
        )
    } else if let Some(at) = line_that_begins(text, &["const", "meta"]) {
        (at, "the metadata must be exported: write `export const meta = {…}` as the first statement")
    } else {
        let message = format!(
            "the script has no metadata: give `meta` with a name and a description beside it, or let the script \
             begin with `{EXAMPLE}`"
        );
        return ErrorCode::MetaInvalid.error(message).on(ROOT);
    };
    source.error(ErrorCode::MetaInvalid, at, message)
}

/// The first line that begins with these words.
fn line_that_begins(text: &str, words: &[&str]) -> Option<usize> {
    let mut at = 0;
    text.split_inclusive(['\n', '\r']).find_map(|line| {
        let start = at;
        at += line.len();
        let mut cursor = Cursor::new(line, 0);
        let found = words.iter().all(|word| {
            cursor.skip_while(char::is_whitespace);
            cursor.word() == *word
        });
        found.then_some(start)
    })
}

/// Where the text begins with the fence that Markdown puts around code, which would be JavaScript of a sort.
pub(super) fn markdown_fence(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start_matches(|c: char| c == BOM || c.is_whitespace()).len();
    text[start..].starts_with("```").then_some(start)
}
