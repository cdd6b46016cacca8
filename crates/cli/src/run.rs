//! `fanfold run`: one script, from its text to its value.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use fanfold::{CancellationToken, Engine, RunResult, StartRequest, StopReason, WorkflowError, text};

use crate::args::RunArgs;
use crate::provider::{Requests, WithDefaults};
use crate::settings::Settings;
use crate::signals::Interrupts;
use crate::{check, display, engine, input, lines, status, view};

/// Runs a script and prints what became of it.
pub(crate) async fn run(args: &RunArgs) -> Result<ExitCode> {
    let settings = Settings::read(&args.settings)?;
    let script = input::script(&args.script)?;
    let requests = args.with_requests.then(Arc::<Requests>::default);
    let provider = WithDefaults::new(&settings, requests.clone())?;
    let engine =
        engine::make(Engine::builder().provider("spawn", provider).limits(settings.limits.clone())).await?;

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
    let watch = view::watch(args, &script, &settings.limits, &cancel).await?;
    let mut request = StartRequest::new(&script).cancel_with(cancel);
    if let Some(watch) = &watch {
        request = request.observe(watch.clone());
    }
    if let Some(seed) = args.seed {
        request = request.seed(seed);
    }
    if let Some(start_time_ms) = args.start_time_ms {
        request = request.start_time_ms(start_time_ms);
    }
    if let Some(json) = arguments(args)? {
        request = request.args_json(json);
    }
    let printed = CancellationToken::new();
    let display = (!args.json).then(display::Display::start);
    request = match &display {
        Some(display) => request.observe(display.observer()),
        None => request.observe(lines::EventLines { requests, printed: printed.clone() }),
    };

    let mut interrupts = Interrupts::listen().context("failed to listen for Ctrl-C")?;
    let started = match check::meta(&args.meta, &args.script, &script) {
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
            refuse(&error, args, display, &script);
            if let Some(watch) = watch {
                watch.refuse(&error);
                view::stay(&mut interrupts).await;
            }
            return Ok(ExitCode::from(status::COULD_NOT_START));
        }
    };
    let mut interrupted = false;
    let result = loop {
        tokio::select! {
            result = run.result() => break result,
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
    }
    if let Some(watch) = &watch {
        watch.finish(&run, &result);
    }
    let status = finish(&run, &result, args, &settings, display, &script)?;
    if watch.is_some() && !interrupted {
        view::stay(&mut interrupts).await;
    }
    Ok(status)
}

/// The script's args as JSON text.
fn arguments(args: &RunArgs) -> Result<Option<String>> {
    match (&args.args, &args.args_text) {
        (Some(json), _) => input::text_or_file("--args", json).map(Some),
        (None, Some(text)) => Ok(Some(serde_json::to_string(text)?)),
        (None, None) => Ok(None),
    }
}

fn refuse(error: &WorkflowError, args: &RunArgs, display: Option<display::Display>, script: &str) {
    match display {
        Some(display) => {
            display.stop();
            display::workflow_error(error, &args.script, script);
        }
        None => lines::refused(error),
    }
}

fn finish(
    run: &fanfold::Run,
    result: &RunResult,
    args: &RunArgs,
    settings: &Settings,
    display: Option<display::Display>,
    script: &str,
) -> Result<ExitCode> {
    match display {
        None => lines::finished(run.id(), &run.meta().name, result, settings.max_result_chars),
        Some(display) => {
            display.finish(result);
            match &result.error {
                Some(error) => display::workflow_error(error, &args.script, script),
                None => print(&text::pretty(result.value.get()))?,
            }
        }
    }
    Ok(match result.stop_reason {
        StopReason::Completed => ExitCode::SUCCESS,
        StopReason::Cancelled => ExitCode::from(status::CANCELLED),
        StopReason::Error => ExitCode::from(status::FAILED),
    })
}

/// Prints the value. A reader that has gone is no error.
fn print(value: &str) -> Result<()> {
    match writeln!(io::stdout(), "{value}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("failed to print the value")
        }
        _ => Ok(()),
    }
}
