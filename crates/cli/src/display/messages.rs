//! What the command itself says: errors, with the place in the script, notices, and what a script says it is.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use anstyle::Style;
use anyhow::{Context as _, Result};
use fanfold::{Meta, Script, WorkflowError};

use super::palette::Palette;
use super::text;

/// Characters of a script's line that are shown on either side of the place of an error.
const CONTEXT: usize = 60;

/// Says why something did not work.
pub(crate) fn error(text: &str) {
    print(&worded("error", Palette::new(true).bad, text));
}

/// Says something that a person may wonder about.
pub(crate) fn notice(text: &str) {
    print(&worded("notice", Palette::new(true).odd, text));
}

/// Says why a script did not start or did not complete, with the line of it that is to blame where that is
/// known. `path` is where `script`, the text its author wrote, was read; `-` is standard input.
pub(crate) fn workflow_error(error: &WorkflowError, path: &Path, script: &str) {
    print(&report(error, path, script, &Palette::new(true)));
}

/// Says what of a script would be ignored or refused, with the line of it.
pub(crate) fn warning(warning: &WorkflowError, path: &Path, script: &str) {
    let palette = Palette::new(true);
    print(&worded_report(("warning", palette.odd), warning, path, script, &palette));
}

/// Prints a line on standard output. A reader that has gone is not an error.
///
/// # Errors
/// When it cannot be written, as on a full disk.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut to = anstream::stdout();
    match to.write_all(format!("{line}\n").as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write to standard output"),
    }
}

/// Prints what a script says it is, on standard output.
///
/// # Errors
/// As [`say`].
pub(crate) fn script(script: &Script) -> Result<()> {
    say(described(&script.meta, &script.hook_calls(), &Palette::new(true)).trim_end())
}

/// Standard error as `anstream` has it takes out the colours that it must not show.
fn print(text: &str) {
    // There is no other place to complain.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

fn worded(word: &str, style: Style, text: &str) -> String {
    let mut out = format!("{style}{word}{style:#}: ");
    let mut lines = text::lines(text);
    let _ = writeln!(out, "{}", lines.next().unwrap_or_default());
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
    out
}

fn described(meta: &Meta, hooks: &[(&str, usize)], palette: &Palette) -> String {
    let (strong, faint) = (palette.strong, palette.faint);
    let (name, description) = (text::line(&meta.name), text::line(&meta.description));
    let mut out = format!("{strong}{name}{strong:#}: {description}\n");
    if let Some(when) = &meta.when_to_use {
        let _ = writeln!(out, "{faint}when to use:{faint:#} {}", text::line(when));
    }
    let phases = meta.phases.as_deref().unwrap_or_default();
    if !phases.is_empty() {
        let _ = writeln!(out, "{faint}phases:{faint:#}");
    }
    for phase in phases {
        let _ = write!(out, "  {}", text::line(&phase.title));
        let facts = [("", &phase.detail), ("provider ", &phase.provider), ("model ", &phase.model)];
        let facts =
            facts.iter().filter_map(|(what, fact)| Some(format!("{what}{}", text::line(fact.as_ref()?))));
        let facts: Vec<String> = facts.collect();
        let colon = if facts.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "{faint}{colon}{}{faint:#}", facts.join(", "));
    }
    if !hooks.is_empty() {
        let hooks: Vec<String> = hooks.iter().map(|(hook, calls)| format!("{hook} ({calls})")).collect();
        let _ = writeln!(out, "{faint}calls:{faint:#} {}", hooks.join(", "));
    }
    out
}

fn report(error: &WorkflowError, path: &Path, script: &str, palette: &Palette) -> String {
    worded_report(("error", palette.bad), error, path, script, palette)
}

fn worded_report(
    (word, style): (&str, Style),
    error: &WorkflowError,
    path: &Path,
    script: &str,
    palette: &Palette,
) -> String {
    let mut text = match error.code {
        Some(code) => format!("{code}: {}", error.message),
        None => error.message.clone(),
    };
    if let Some(path) = &error.path
        && !error.message.contains(path.as_str())
    {
        let _ = write!(text, " (at {path})");
    }
    let mut out = worded(word, style, &text);
    let Some(line) = error.line else { return out };
    let path = if path == Path::new("-") { "<stdin>".into() } else { text::line(&path.to_string_lossy()) };
    let column = error.column.map(|column| format!(":{column}")).unwrap_or_default();
    let faint = palette.faint;
    let _ = writeln!(out, "{faint} -->{faint:#} {path}:{line}{column}");
    let source = usize::try_from(line).ok().and_then(|line| script.lines().nth(line.checked_sub(1)?));
    let Some(source) = source.filter(|source| !source.trim().is_empty()) else { return out };
    let (source, offset) = window(source, error.column);
    let gutter = " ".repeat(line.to_string().len());
    let _ = writeln!(out, "{faint}{line} |{faint:#} {source}");
    if let Some(offset) = offset {
        let (blanks, bad) = (" ".repeat(offset), style);
        let _ = writeln!(out, "{faint}{gutter} |{faint:#} {blanks}{bad}^{bad:#}");
    }
    out
}

/// The part of a line around a column (from 1, in characters), and how far in it the column is.
fn window(source: &str, column: Option<u32>) -> (String, Option<usize>) {
    let at = column.and_then(|column| usize::try_from(column).ok()?.checked_sub(1));
    let split = source.char_indices().nth(at.unwrap_or(0)).map_or(source.len(), |(split, _)| split);
    let (before, after) = source.split_at(split);
    let before = text::line(before);
    let before: String = match before.char_indices().rev().nth(CONTEXT) {
        Some((start, _)) => format!("…{}", &before[start..]),
        None => before,
    };
    let after = text::line(after);
    let shown = format!("{before}{}", text::cut(&after, CONTEXT));
    (shown, at.map(|_| text::width(&before)))
}

#[cfg(test)]
mod tests {
    use fanfold::{ErrorCode, Phase};

    use super::*;

    fn shown(error: &WorkflowError, script: &str) -> String {
        report(error, Path::new("review.js"), script, &Palette::default())
    }

    #[test]
    fn an_error_points_at_its_place() {
        let error = ErrorCode::ScriptParse.error("expected an expression").at(2, 11);
        insta::assert_snapshot!(shown(&error, "// one\n\tconst x = ;\n"), @r"
        error: SCRIPT_PARSE: expected an expression
         --> review.js:2:11
        2 |  const x = ;
          |           ^
        ");
    }

    #[test]
    fn a_place_in_a_value_is_named_once() {
        let error = |message| ErrorCode::ResultUnserializable.error(message).on("findings[2]");
        let cases = [
            ("a function is not JSON", "a function is not JSON (at findings[2])"),
            ("findings[2] is a function", "findings[2] is a function"),
        ];
        for (message, expected) in cases {
            assert_eq!(shown(&error(message), ""), format!("error: RESULT_UNSERIALIZABLE: {expected}\n"));
        }
    }

    #[test]
    fn a_script_is_described_by_its_meta() {
        let phase = |title: &str, detail: Option<&str>, model: Option<&str>| Phase {
            title: title.into(),
            detail: detail.map(Into::into),
            provider: None,
            model: model.map(Into::into),
        };
        let meta = Meta {
            when_to_use: Some("before a release".into()),
            phases: Some(vec![
                phase("Read", Some("what each file is for"), Some("small")),
                phase("Verify", None, None),
            ]),
            ..Meta::new("review", "Reviews \u{1b}[31mfiles")
        };
        insta::assert_snapshot!(described(&meta, &[("agent", 2), ("log", 1)], &Palette::default()), @r"
        review: Reviews ␛[31mfiles
        when to use: before a release
        phases:
          Read: what each file is for, model small
          Verify
        calls: agent (2), log (1)
        ");
    }

    #[test]
    fn a_thrown_error_keeps_its_stack() {
        let error = WorkflowError::thrown("TypeError: x is not a function\n    at workflow:1:7").at(1, 7);
        insta::assert_snapshot!(shown(&error, "await x()"), @r"
        error: TypeError: x is not a function
              at workflow:1:7
         --> review.js:1:7
        1 | await x()
          |       ^
        ");
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let script = format!("{}await 漢字{}", "x;".repeat(500), ";y".repeat(500));
        let error = ErrorCode::InvalidArgument.error("no").at(1, 1_009);
        let shown = shown(&error, &script);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[2].chars().count() <= 4 + 2 * CONTEXT + 2, "{shown}");
        let before = lines[2].split(";y").next().unwrap();
        assert_eq!(text::width(before), text::width(lines[3]) - 1, "{shown}");
    }

    #[test]
    fn a_place_outside_the_script_is_only_named() {
        for (line, column) in [(0, 0), (9, 9), (u32::MAX, u32::MAX)] {
            let error = ErrorCode::Internal.error("odd").at(line, column);
            let expected = format!("error: INTERNAL: odd\n --> review.js:{line}:{column}\n");
            assert_eq!(shown(&error, "one line"), expected);
        }
        let error = ErrorCode::Internal.error("odd").at(1, u32::MAX);
        assert!(shown(&error, "one line").ends_with("1 | one line\n  |         ^\n"));
    }

    #[test]
    fn scripts_and_messages_cannot_order_the_terminal_about() {
        let error = WorkflowError::thrown("Error: \u{1b}[2J\n\u{1b}]0;title\u{7}").at(1, 3);
        let shown = shown(&error, "a\u{1b}[31m\u{202e}");
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
}
