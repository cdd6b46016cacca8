//! How a script ended, from what its guest says of it. The guest is not trusted: all is checked.

use std::collections::BTreeSet;

use fanfold_types::{ErrorCode, WorkflowError};
use serde_json::value::RawValue;

use super::books::{LooseEnds, ScriptEnd};
use crate::bindings::fanfold::workflow::types as wit;
use crate::json;
use crate::limits::Limits;
use crate::script::{Script, Thrown};

/// Most errors of a kind that are told of one script: rejections without a handler, errors that became null.
const MAX_ERRORS: usize = 10;

/// Most repaired parts of values that are told of one script.
const MAX_REPAIRS: usize = 20;

/// Most lines of lost calls that are told of one script, and most places that its guest tells.
const MAX_LINES: usize = 10;
const MAX_PLACES: usize = 50;

/// Reads a guest's report, or what stopped it before it could make one.
pub(super) fn read(
    report: Result<wit::Report, WorkflowError>,
    script: &Script,
    limits: &Limits,
) -> ScriptEnd {
    match report {
        Err(error) => ScriptEnd::stopped(error),
        Ok(report) => {
            let thrown = Thrown::by(script);
            ScriptEnd {
                loose_ends: LooseEnds {
                    never_awaited: report.never_awaited,
                    lost_calls: lost_calls(report.never_awaited, &report.never_awaited_places, &thrown),
                    errors: rejections(&report.unhandled_rejections, &thrown)
                        .chain(swallowed(&report.swallowed_errors, report.swallowed_count, &thrown))
                        .chain(repaired(&report.repairs, script, &thrown))
                        .collect(),
                },
                outcome: outcome(report.outcome, &thrown, limits),
            }
        }
    }
}

/// What to say of calls whose answer is lost.
fn lost_calls(count: u32, places: &[String], thrown: &Thrown<'_>) -> Option<String> {
    let what = match count {
        0 => return None,
        1 => "1 agent() call was never awaited: its answer is lost".to_owned(),
        n => format!("{n} agent() calls were never awaited: their answers are lost"),
    };
    let lines = places.iter().take(MAX_PLACES).filter_map(|place| thrown.line(place));
    let lines: BTreeSet<u32> = lines.collect();
    let others = if lines.len() > MAX_LINES || places.len() >= MAX_PLACES { " and others" } else { "" };
    let lines: Vec<String> = lines.iter().take(MAX_LINES).map(u32::to_string).collect();
    Some(match &lines[..] {
        [] => what,
        [line] => format!("{what} (line {line}{others})"),
        _ => format!("{what} (lines {}{others})", lines.join(", ")),
    })
}

fn rejections(texts: &[String], thrown: &Thrown<'_>) -> impl Iterator<Item = String> {
    let texts = texts.iter().take(MAX_ERRORS);
    texts.map(|text| format!("unhandled rejection: {}", thrown.read(text).message))
}

fn swallowed(
    errors: &[wit::SwallowedError],
    count: u32,
    thrown: &Thrown<'_>,
) -> impl Iterator<Item = String> {
    let told = errors.iter().take(MAX_ERRORS);
    let more = (count as usize).saturating_sub(told.len());
    let more =
        (more > 0).then(|| format!("{more} more items of parallel() and pipeline() became null by errors"));
    told.map(|swallowed| format!("{} became null: {}", swallowed.item, thrown.read(&swallowed.error).message))
        .chain(more)
}

/// What to say of values that were not plain data, and of which something else was made.
fn repaired(repairs: &[wit::Repair], script: &Script, thrown: &Thrown<'_>) -> impl Iterator<Item = String> {
    let told = repairs.iter().take(MAX_REPAIRS).map(|repair| {
        let line = match &repair.stack {
            Some(stack) => thrown.line(stack),
            None => script.line_of_return(&repair.path),
        };
        let place = line.map(|line| format!(" (line {line})")).unwrap_or_default();
        let subject = if repair.path.is_empty() { "it" } else { &repair.path };
        format!("{}: {subject} {}{place}", repair.value, repair.message)
    });
    let more =
        (repairs.len() > MAX_REPAIRS).then(|| "more parts of values were not plain JSON data".to_owned());
    told.chain(more)
}

fn outcome(
    outcome: Result<String, wit::Failure>,
    thrown: &Thrown<'_>,
    limits: &Limits,
) -> Result<Box<RawValue>, WorkflowError> {
    match outcome {
        Ok(value) => {
            let (size, most) = (value.len() as u64, limits.max_result_bytes);
            if size > most {
                return Err(ErrorCode::OutputLimit.error(format!(
                    "the value has {size} bytes as JSON, more than {most} (maxResultBytes); return less, or a summary"
                )));
            }
            if value.bytes().any(|byte| byte < 0x20) {
                return Err(ErrorCode::Internal.error("the sandbox gave a value that it cannot have made"));
            }
            json::read("value", value).map_err(|error| ErrorCode::Internal.error(error.message))
        }
        Err(failure) => {
            // The script's text tells where each frame is, in the author's columns.
            let mut error = thrown.read(&format!("{}\n{}", failure.message, failure.stack));
            if let Some(code) = failure.code {
                error.code = Some(ErrorCode::from_wire(&code).unwrap_or(ErrorCode::Internal));
                // Its place is told; the stack is for errors of the script's own.
                error.message = failure.message;
                error.path = failure.path;
            }
            Err(error)
        }
    }
}
