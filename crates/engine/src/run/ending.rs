//! How a script ended, from what its guest says of it. The guest is not trusted: all is checked.

use std::collections::BTreeSet;

use fanfold_types::{ErrorCode, WorkflowError};
use serde_json::value::RawValue;

use super::books::{LooseEnds, ScriptEnd};
use crate::bindings::fanfold::workflow::types as wit;
use crate::json;
use crate::limits::Limits;
use crate::script::Script;

/// Most errors of a kind that are told of one script: rejections without a handler, errors that became null.
const MAX_ERRORS: usize = 10;

/// Reads a guest's report, or what stopped it before it could make one.
pub(super) fn read(
    report: Result<wit::Report, WorkflowError>,
    script: &Script,
    limits: &Limits,
) -> ScriptEnd {
    match report {
        Err(error) => ScriptEnd::stopped(error),
        Ok(report) => ScriptEnd {
            outcome: outcome(report.outcome, script, limits),
            loose_ends: LooseEnds {
                never_awaited: report.never_awaited,
                never_awaited_lines: lines(&report.never_awaited_places, script),
                errors: rejections(&report.unhandled_rejections, script)
                    .chain(swallowed(&report.swallowed_errors, report.swallowed_count, script))
                    .collect(),
            },
        },
    }
}

/// The lines of calls that were made there, in order, each once.
fn lines(places: &[String], script: &Script) -> Vec<u32> {
    let places = places.iter().take(MAX_ERRORS);
    let lines: BTreeSet<u32> = places.filter_map(|place| script.line(place)).collect();
    lines.into_iter().collect()
}

fn rejections(texts: &[String], script: &Script) -> impl Iterator<Item = String> {
    let texts = texts.iter().take(MAX_ERRORS);
    texts.map(|text| format!("unhandled rejection: {}", script.thrown(text).message))
}

fn swallowed(errors: &[wit::SwallowedError], count: u32, script: &Script) -> impl Iterator<Item = String> {
    let told = errors.iter().take(MAX_ERRORS);
    let more = (count as usize).saturating_sub(told.len());
    let more =
        (more > 0).then(|| format!("{more} more items of parallel() and pipeline() became null by errors"));
    told.map(|swallowed| {
        format!("{} became null: {}", swallowed.item, script.thrown(&swallowed.error).message)
    })
    .chain(more)
}

fn outcome(
    outcome: Result<String, wit::Failure>,
    script: &Script,
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
            let mut error = script.thrown(&format!("{}\n{}", failure.message, failure.stack));
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
