//! `fanfold check`: what a script says it is, without running it.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use fanfold::{Engine, ErrorCode, Meta, Script, WorkflowError};

use crate::agent_types::AgentFiles;
use crate::args::{CheckArgs, MetaArg};
use crate::input::Source;
use crate::workflows::Workflows;
use crate::{display, engine, input, status};

/// Checks a script and prints what was found.
pub(crate) async fn check(args: &CheckArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("failed to tell the current folder")?;
    let source = input::source(&args.script, &Workflows::read(&here))?;
    let engine = engine::make(Engine::builder()).await?;
    let checked = match meta(&args.meta, &source) {
        Ok(meta) => engine.check(&source.text, meta).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(script) => {
            display::script(&script)?;
            let warnings = script.warnings(Some(&AgentFiles::read(&here)));
            for warning in &warnings {
                display::warning(warning, &source.path, &source.text);
            }
            let failed = args.strict && !warnings.is_empty();
            Ok(if failed { ExitCode::from(status::FAILED) } else { ExitCode::SUCCESS })
        }
        Err(error) => {
            display::workflow_error(&error, &source.path, &source.text);
            Ok(ExitCode::from(status::COULD_NOT_START))
        }
    }
}

/// The metadata that stands beside a script: given, or its file's name where it has no header.
pub(crate) fn meta(arg: &MetaArg, source: &Source) -> Result<Option<Meta>, WorkflowError> {
    let Some(given) = &arg.meta else {
        let name = input::name(&source.path);
        let description = format!("the script {}", source.path.display());
        return Ok((!Script::has_header(&source.text)).then(|| Meta::new(name, description)));
    };
    let invalid = |error: String| ErrorCode::MetaInvalid.error(error).on("meta");
    let json = input::text_or_file("--meta", given).map_err(|error| invalid(format!("{error:#}")))?;
    let value =
        serde_json::from_str(&json).map_err(|error| invalid(format!("--meta is not JSON: {error}")))?;
    Meta::from_value(&value).map(Some)
}
