//! The page that shows runs: `fanfold view`, and `fanfold run --view`.

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fanfold::{CancellationToken, Limits};
use fanfold_view::{About, Server, View, ViewOptions, Watch};

use crate::args::{ListenArgs, RunArgs, ViewArgs};
use crate::display;
use crate::signals::Interrupts;

/// Shows files of runs until Ctrl-C.
pub(crate) async fn view(args: &ViewArgs) -> Result<ExitCode> {
    let view = View::new(options(&args.listen));
    let paths = args.files.clone();
    let reader = view.clone();
    let unreadable = tokio::task::spawn_blocking(move || reader.files(paths)).await??;
    if unreadable > 0 {
        display::notice(&format!("{unreadable} lines could not be read"));
    }
    let mut interrupts = Interrupts::listen().context("failed to listen for Ctrl-C")?;
    serve(&view, &args.listen).await?;
    interrupts.next().await;
    Ok(ExitCode::SUCCESS)
}

/// Shows a run that is about to start, if `--view` asks for it.
pub(crate) async fn watch(
    args: &RunArgs,
    script: &str,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<Option<Watch>> {
    if !args.view && !args.view_cancel {
        let idle = args.listen.listen.is_some() || !args.listen.host.is_empty();
        ensure!(!idle, "--listen and --host are for a page: add --view");
        return Ok(None);
    }
    let mut options = options(&args.listen);
    options.cancel = args.view_cancel;
    let view = View::new(options);
    let about = About::default().script(script).cancel(cancel.clone());
    let watch = view.watch(about.max_concurrent_agents(limits.concurrent_agents()));
    serve(&view, &args.listen).await?;
    Ok(Some(watch))
}

/// Leaves the page where it is until Ctrl-C.
pub(crate) async fn stay(interrupts: &mut Interrupts) {
    display::notice("the page stays until Ctrl-C");
    interrupts.next().await;
}

fn options(args: &ListenArgs) -> ViewOptions {
    let mut options = ViewOptions::default();
    options.hosts.clone_from(&args.host);
    options
}

/// Serves the page beside whatever else happens, and says where.
async fn serve(view: &View, args: &ListenArgs) -> Result<()> {
    let address = args.address();
    let server = Server::bind(view.clone(), address)
        .await
        .with_context(|| format!("failed to listen on {address}; choose another with --listen"))?;
    display::notice(&format!("look at {}", server.url()));
    if !address.ip().is_loopback() {
        display::notice(
            "others can reach this address; whoever has its token can look, and nothing is encrypted",
        );
    }
    tokio::spawn(server.serve());
    Ok(())
}
