//! `fanfold mcp`: the workflow tool for the models of MCP clients.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use fanfold::CancellationToken;
use fanfold_agents::Scripted;
use fanfold_mcp::{Agents, HttpOptions, Sampling, SavedWorkflow, Server, ServerOptions, http_url};
use fanfold_tool::ToolConfig;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::agent_types::AgentFiles;
use crate::agents::AgentSettings;
use crate::args::{HttpArgs, McpArgs, Transport};
use crate::provider::WithDefaults;
use crate::settings::Settings;
use crate::signals::Interrupts;
use crate::workflows::{Saved, Workflows};
use crate::{display, engine, status};

/// What is told of canned answers, since a model that takes them for real ones would pass them on.
const NOTICE: &str = "no agents were set up and this client offers no sampling, so the agents' answers are canned: \
                      examples, not work. Give `fanfold mcp` real agents, for example with --agent-command \"claude -p\"";

/// Serves MCP clients until they have gone or the process is told to end.
pub(crate) async fn mcp(args: &McpArgs) -> Result<ExitCode> {
    let mut interrupts = Interrupts::listen().context("failed to listen for Ctrl-C")?;
    let stop = CancellationToken::new();
    let server = server(args).await?;
    let serving = serve(&server, args, stop.clone());
    let ending = async {
        tokio::pin!(serving);
        let served = tokio::select! {
            served = &mut serving => served,
            () = interrupts.next() => {
                stop.cancel();
                serving.await
            }
        };
        server.shutdown().await;
        served
    };
    tokio::pin!(ending);
    tokio::select! {
        served = &mut ending => served.map(|()| ExitCode::SUCCESS),
        // The runtime is dropped on the way out, and every child with it.
        () = forced(&stop) => Ok(ExitCode::from(status::CANCELLED)),
    }
}

/// Returns when the user insists that it ends.
async fn forced(stop: &CancellationToken) {
    stop.cancelled().await;
    match Interrupts::listen() {
        Ok(mut interrupts) => interrupts.next().await,
        Err(_) => std::future::pending().await,
    }
}

async fn server(args: &McpArgs) -> Result<Server> {
    let settings = Settings::read(&args.settings)?;
    let here = env::current_dir().context("failed to tell the current folder")?;
    let sampling = Sampling::new();
    let (spawn, agents) = match &settings.agents {
        AgentSettings::Sampling => {
            let agents = WithDefaults::of(Box::new(sampling.clone()), &settings, None)?;
            (agents, Agents::Client(sampling.clone()))
        }
        AgentSettings::Scripted { by_default: true } => {
            let agents = WithDefaults::of(Box::new(Scripted::new()), &settings, None)?;
            (agents, Agents::ClientOr(sampling.clone(), NOTICE.into()))
        }
        _ => (WithDefaults::new(&settings, None).await?, Agents::Engine),
    };
    let workflows = Workflows::read(&here);
    let saved = saved(&workflows, args)?;
    let builder = engine::builder(AgentFiles::read(&here), workflows, settings.limits.clone())
        .provider("spawn", spawn)
        .provider(Sampling::NAME, sampling);
    let engine = engine::make(builder).await?;
    let mut config = ToolConfig::default();
    if let Some(max_result_chars) = args.max_result_chars.or(settings.max_result_chars) {
        config.max_result_chars = max_result_chars;
    }
    let mut options = ServerOptions::default();
    options.agents = agents;
    options.saved = saved;
    options.answer_within = args.answer_within_ms.map(Duration::from_millis);
    Server::new(engine, config, options).context("failed to make the server")
}

/// The saved workflows that are tools of their own, as they are now.
fn saved(workflows: &Workflows, args: &McpArgs) -> Result<Vec<SavedWorkflow>> {
    if !args.all_workflows {
        let tool = |name: &String| tool(workflows, workflows.find(name).map_err(anyhow::Error::msg)?);
        return args.name.iter().map(tool).collect();
    }
    let visible = workflows.all().iter().filter(|saved| !saved.hidden);
    // One that cannot be run is no reason to offer none.
    let tool = |saved| tool(workflows, saved).map_err(|error| display::notice(&format!("{error:#}"))).ok();
    Ok(visible.filter_map(tool).collect())
}

fn tool(workflows: &Workflows, saved: &Saved) -> Result<SavedWorkflow> {
    let shown = || format!("{} is no tool", workflows.shown(&saved.path));
    if let Some(problem) = &saved.problem {
        return Err(anyhow!("{problem}")).with_context(shown);
    }
    let script = saved.text().map_err(anyhow::Error::msg).with_context(shown)?;
    SavedWorkflow::new(saved.meta.clone(), script).with_context(shown)
}

async fn serve(server: &Server, args: &McpArgs, stop: CancellationToken) -> Result<()> {
    match args.transport {
        Transport::Stdio => server.serve_stdio(stop).await.context("failed to serve the client"),
        Transport::Http => {
            let address = args.http.listen.address();
            let listener = TcpListener::bind(address)
                .await
                .with_context(|| format!("failed to listen on {address}; choose another with --listen"))?;
            let url = http_url(listener.local_addr()?);
            let options = http_options(&args.http, &url)?;
            server.serve_http(listener, options, stop).await.context("failed to serve")
        }
    }
}

/// What HTTP clients must send; tells people where, and a token that nobody knows yet.
fn http_options(args: &HttpArgs, url: &str) -> Result<HttpOptions> {
    let options = HttpOptions::default().session_idle(Duration::from_millis(args.session_idle_ms));
    let ip = args.listen.address().ip();
    let options = args.listen.host.iter().fold(options.host(ip.to_string()), HttpOptions::host);
    let serving = || display::notice(&format!("serving MCP at {url}"));
    if args.no_token {
        ensure!(
            ip.is_loopback(),
            "--no-token is for this machine alone: whoever reaches {ip} could run agents; leave it out, or listen on \
             127.0.0.1"
        );
        serving();
        return Ok(options);
    }
    if let Some(name) = &args.token_env {
        let token = env::var(name).unwrap_or_default();
        ensure!(
            !token.trim().is_empty(),
            "--token-env {name}: that variable is not set, or has no text in it"
        );
        serving();
        return Ok(options.token(token.trim()));
    }
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let header = format!("\"Authorization: Bearer {token}\"");
    serving();
    display::notice(&format!("clients must send the header {header}"));
    display::notice(&format!(
        "in Claude Code: claude mcp add --transport http fanfold {url} --header {header}"
    ));
    Ok(options.token(token))
}
