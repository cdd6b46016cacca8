//! `fanfold check`: what a script says it is, without running it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use fanfold::{Engine, ErrorCode, Meta, Script, WorkflowError};

use crate::args::{CheckArgs, MetaArg};
use crate::{display, engine, input, status};

/// Checks a script and prints what was found.
pub(crate) async fn check(args: &CheckArgs) -> Result<ExitCode> {
    let text = input::script(&args.script)?;
    let engine = engine::make(Engine::builder()).await?;
    let checked = match meta(&args.meta, &args.script, &text) {
        Ok(meta) => engine.check(&text, meta).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(script) => {
            display::script(&script);
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            display::workflow_error(&error, &args.script, &text);
            Ok(ExitCode::from(status::COULD_NOT_START))
        }
    }
}

/// The metadata that stands beside a script: given, or its file's name where it has no header.
pub(crate) fn meta(arg: &MetaArg, path: &Path, text: &str) -> Result<Option<Meta>, WorkflowError> {
    let Some(given) = &arg.meta else {
        let name = input::name(path);
        let description = format!("the script {}", path.display());
        return Ok((!Script::has_header(text)).then(|| Meta::new(name, description)));
    };
    let invalid = |error: String| ErrorCode::MetaInvalid.error(error).on("meta");
    let json = input::text_or_file("--meta", given).map_err(|error| invalid(format!("{error:#}")))?;
    let value =
        serde_json::from_str(&json).map_err(|error| invalid(format!("--meta is not JSON: {error}")))?;
    Meta::from_value(&value).map(Some)
}
