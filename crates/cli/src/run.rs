//! `fanfold run`: one script, from its text to its value.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use fanfold::{CancellationToken, RunResult, StartRequest, StopReason, WorkflowError, text};

use crate::agent_types::AgentFiles;
use crate::agents::AgentSettings;
use crate::args::{RunArgs, ScriptArgs};
use crate::input::Source;
use crate::provider::{Requests, WithDefaults};
use crate::settings::Settings;
use crate::signals::Interrupts;
use crate::workflows::Workflows;
use crate::{check, display, engine, input, lines, status, view};

/// Runs a script and prints what became of it.
pub(crate) async fn run(args: &RunArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("failed to tell the current folder")?;
    let settings = Settings::read(&args.settings)?;
    let workflows = Workflows::read(&here);
    let source = input::source(&args.script.script, &workflows)?;
    if let AgentSettings::Scripted { by_default: true } = settings.agents {
        display::notice("no agents are set, so answers are canned; see --agents and --agent-command");
    }
    let requests = args.with_requests.then(Arc::<Requests>::default);
    let provider = WithDefaults::new(&settings, requests.clone()).await?;
    let builder = engine::builder(AgentFiles::read(&here), workflows, settings.limits.clone())
        .provider("spawn", provider);
    let engine = engine::make(builder).await?;

    let cancel = CancellationToken::new();
    match args.cancel_after_ms {
        Some(0) => cancel.cancel(),
        Some(ms) => {
            let cancel = cancel.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                cancel.cancel();
            });
        }
        None => {}
    }
    let watch = view::watch(args, &source.text, &settings.limits, &cancel).await?;
    let mut request = requested(&args.script, &source)?.cancel_with(cancel);
    if let Some(watch) = &watch {
        request = request.observe(watch.clone());
    }
    let printed = CancellationToken::new();
    let failed = CancellationToken::new();
    let failure = Arc::<OnceLock<std::io::Error>>::default();
    let display = (!args.json).then(|| display::Display::start(&settings.limits));
    request = match &display {
        Some(display) => request.observe(display.observer()),
        None => request.observe(lines::EventLines {
            requests,
            printed: printed.clone(),
            failure: failure.clone(),
            failed: failed.clone(),
        }),
    };

    let mut interrupts = Interrupts::listen().context("failed to listen for Ctrl-C")?;
    let started = match check::meta(&args.script.meta, &source) {
        Ok(meta) => {
            if let Some(meta) = meta {
                request = request.meta(meta);
            }
            engine.start(request).await
        }
        Err(error) => Err(error),
    };
    let run = match started {
        Ok(run) => run,
        Err(error) => {
            let watch = watch.map(|watch| (watch, error.clone()));
            refuse(error, args, display, &source)?;
            if let Some((watch, error)) = watch {
                watch.refuse(&error);
                view::stay(&mut interrupts).await;
            }
            return Ok(ExitCode::from(status::COULD_NOT_START));
        }
    };
    let (mut interrupted, mut unread) = (false, false);
    let result = loop {
        tokio::select! {
            result = run.result() => break result,
            () = failed.cancelled(), if !unread => {
                unread = true;
                run.cancel("nobody reads what it tells");
            }
            () = interrupts.next() => {
                if interrupted {
                    // The runtime is dropped on the way out, and every child with it.
                    return Ok(ExitCode::from(status::CANCELLED));
                }
                interrupted = true;
                run.cancel("interrupted");
                if let Some(display) = &display {
                    display.notice("cancelling; press Ctrl-C again to force");
                }
            }
        }
    };
    run.dispose().await;
    if args.json {
        // The result is the last line, however slow the reader is.
        tokio::select! {
            () = printed.cancelled() => {}
            () = interrupts.next() => return Ok(ExitCode::from(status::CANCELLED)),
        }
        if let Some(error) = failure.get() {
            display::error(&format!("failed to print the events: {error}"));
            return Ok(ExitCode::from(status::FAILED));
        }
    }
    let max_result_chars = args.max_result_chars.or(settings.max_result_chars);
    if let Some(watch) = &watch {
        watch.finish(&run, &result);
    }
    let status = finish(&run, &result, max_result_chars, display, &source)?;
    if watch.is_some() && !interrupted {
        view::stay(&mut interrupts).await;
    }
    Ok(status)
}

/// The request to run a script with its arguments.
pub(crate) fn requested(args: &ScriptArgs, source: &Source) -> Result<StartRequest> {
    let mut request = StartRequest::new(&source.text);
    if let Some(seed) = args.seed {
        request = request.seed(seed);
    }
    if let Some(start_time_ms) = args.start_time_ms {
        request = request.start_time_ms(start_time_ms);
    }
    if let Some(json) = input::arguments(args)? {
        request = request.args_json(json);
    }
    Ok(request)
}

fn refuse(
    error: WorkflowError,
    args: &RunArgs,
    display: Option<display::Display>,
    source: &Source,
) -> Result<()> {
    let error = option_named(error, &args.script);
    match display {
        Some(display) => {
            display.stop();
            display::workflow_error(&error, &source.path, &source.text);
        }
        None => lines::refused(&error)?,
    }
    Ok(())
}

/// Says which option of the command line gave what was refused.
pub(crate) fn option_named(mut error: WorkflowError, args: &ScriptArgs) -> WorkflowError {
    if let Some(given) = &args.args
        && error.path.as_deref().is_some_and(|path| path.split(['.', '[']).next() == Some("args"))
    {
        let file = if given.starts_with('@') { format!(" {given}") } else { String::new() };
        error.message = format!("--args{file}: {}", error.message);
    }
    error
}

fn finish(
    run: &fanfold::Run,
    result: &RunResult,
    max_result_chars: Option<usize>,
    display: Option<display::Display>,
    source: &Source,
) -> Result<ExitCode> {
    match display {
        None => {
            let max_result_chars = max_result_chars.unwrap_or(text::DEFAULT_MAX_RESULT_CHARS);
            if let Err(error) = lines::finished(run.id(), &run.meta().name, result, max_result_chars) {
                display::error(&format!("{error:#}"));
                return Ok(ExitCode::from(status::FAILED));
            }
        }
        Some(display) => {
            display.finish(result);
            match &result.error {
                Some(error) => display::workflow_error(error, &source.path, &source.text),
                None => display::say(&display::json(&text::pretty(result.value.get())))?,
            }
        }
    }
    Ok(match result.stop_reason {
        StopReason::Completed => ExitCode::SUCCESS,
        StopReason::Cancelled => ExitCode::from(status::CANCELLED),
        StopReason::Error => ExitCode::from(status::FAILED),
    })
}
