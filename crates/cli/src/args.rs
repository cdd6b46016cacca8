//! What the command line takes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

/// Runs workflow scripts: plain JavaScript that fans work out to many subagents and folds their answers into one
/// value, in a sandbox that can do nothing else.
#[derive(Debug, Parser)]
#[command(
    name = "fanfold",
    version,
    max_term_width = 100,
    after_help = "\
Exit status: 0 completed, 1 failed, 2 could not start, 130 cancelled.

Settings are read from the nearest fanfold.toml up to the repository's root; options win over it."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Plan(Box<PlanArgs>),
    Check(CheckArgs),
    List(ListArgs),
    /// Remove git worktrees that killed runs have left, and say which hold changes
    Clean,
    Mcp(Box<McpArgs>),
    View(ViewArgs),
}

/// Run a script and print its value
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fanfold run examples/review.js --args '{\"offline\": true}'
      offline, with scripted agents
  fanfold run review.js --args @args.json --agent-command \"claude -p\"
      each agent is a process: prompt on its standard input, answer on its standard output
  echo 'return await agent(\"hi\")' | fanfold run - --json
      one JSON object a line: every event, and at last the result
  fanfold run review.js | jq .findings
      the value is the only thing on standard output")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) script: ScriptArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Cancel the run after this time; 0 cancels before the first instruction
    #[arg(long, value_name = "N")]
    pub(crate) cancel_after_ms: Option<u64>,

    /// Characters of the value in the text that a model is shown (--json) [default: 50000]
    #[arg(long, value_name = "N")]
    pub(crate) max_result_chars: Option<usize>,

    /// Print one JSON object a line: every event, then the result
    #[arg(long)]
    pub(crate) json: bool,

    /// With --json: add to each agent's start what its provider was asked
    #[arg(long, requires = "json")]
    pub(crate) with_requests: bool,

    /// Show the run on a page, which stays until Ctrl-C; the address is printed
    #[arg(long)]
    pub(crate) view: bool,

    /// As --view, and the page may cancel the run
    #[arg(long)]
    pub(crate) view_cancel: bool,

    #[command(flatten)]
    pub(crate) listen: ListenArgs,
}

/// Which script, and what it is given.
#[derive(Debug, Args)]
pub(crate) struct ScriptArgs {
    /// The script, or the name of a saved workflow; `-` reads standard input
    pub(crate) script: PathBuf,

    #[command(flatten)]
    pub(crate) meta: MetaArg,

    /// The script's `args`: JSON, or @FILE with JSON
    #[arg(long, value_name = "JSON|@FILE", conflicts_with = "args_text", allow_negative_numbers = true)]
    pub(crate) args: Option<String>,

    /// The script's `args` as one string
    #[arg(long, value_name = "TEXT")]
    pub(crate) args_text: Option<String>,

    /// Seed of `Math.random`, for a run that repeats another
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// What the script's `Date` says, in milliseconds since 1970, for a run that repeats another
    #[arg(long, value_name = "N")]
    pub(crate) start_time_ms: Option<u64>,
}

/// What may also stand in `fanfold.toml`.
#[derive(Debug, Default, Args)]
pub(crate) struct SettingsArgs {
    /// Who runs `agent()`. Default: what fanfold.toml says, `command` where there is a command, else `scripted`
    #[arg(long, value_enum)]
    pub(crate) agents: Option<Agents>,

    /// The program that is one agent, such as "claude -p"; split into words as a shell does
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent_command: Option<String>,

    /// Model provider for agents that name none
    #[arg(long)]
    pub(crate) provider: Option<String>,

    /// Model for agents that name none
    #[arg(long)]
    pub(crate) model: Option<String>,

    /// Limits by their setting names, such as {"maxConcurrentAgents": 8}: JSON, or @FILE with JSON
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) limits: Option<String>,

    /// The commit that agents with a git worktree of their own start from [default: HEAD]
    #[arg(long, value_name = "REVISION")]
    pub(crate) worktree_base: Option<String>,

    /// Read settings from this file instead of the nearest fanfold.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Play a script through with made-up answers, and show what it would do
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is spent: each agent answers at once with what its schema asks for. The script may go another way with real
answers.

Examples:
  fanfold plan examples/review.js --args @examples/review.args.json
  fanfold plan review --json | jq .agents")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) script: ScriptArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give the workflow tool to the models of an MCP client
#[derive(Debug, Args)]
#[command(after_help = "\
The client's model writes scripts and calls the tool `workflow`. Its subagents are, unless --agents or
--agent-command says otherwise, the client's own model where the client offers sampling, else canned answers with
a notice in each result.

Examples:
  fanfold mcp
      over standard input and output, as most clients start a server
  claude mcp add fanfold -- fanfold mcp --agent-command \"claude -p\"
      in Claude Code, with Claude Code as the subagents
  fanfold mcp --name triage --name review
      with two saved workflows as tools of their own; `fanfold list` shows which there are
  fanfold mcp --transport http --listen 127.0.0.1:8321
      over HTTP on this machine alone; prints the address, and the token that clients must send
  FANFOLD_TOKEN=… fanfold mcp --transport http --listen 127.0.0.1:8321 --token-env FANFOLD_TOKEN
      the same with a token of your own

It ends, and every run with it, when its standard input is closed, or on Ctrl-C, SIGTERM or SIGHUP.")]
pub(crate) struct McpArgs {
    /// How clients reach the server
    #[arg(long, value_enum, default_value = "stdio")]
    pub(crate) transport: Transport,

    #[command(flatten)]
    pub(crate) http: HttpArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Make this saved workflow a tool of its own, whose arguments are the workflow's args; may be given again
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,

    /// Make every saved workflow a tool of its own
    #[arg(long, conflicts_with = "name")]
    pub(crate) all_workflows: bool,

    /// Answer a call of `workflow` after this time even if its run goes on, with the run's id. Default: 50000 for
    /// clients that ask for no progress, since they give up after a minute; no limit for others
    #[arg(long, value_name = "N")]
    pub(crate) answer_within_ms: Option<u64>,

    /// Characters of the value in the text that the model is shown [default: 50000]
    #[arg(long, value_name = "N")]
    pub(crate) max_result_chars: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --transport http")]
pub(crate) struct HttpArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,

    /// Environment variable with the token that clients must send. Default: a new token, which is printed
    #[arg(long, value_name = "NAME", conflicts_with = "no_token")]
    pub(crate) token_env: Option<String>,

    /// Ask for no token: whoever reaches the port can run agents
    #[arg(long)]
    pub(crate) no_token: bool,

    /// How long a client's session lives while it has no connection open
    #[arg(long, value_name = "N", default_value_t = 300_000)]
    pub(crate) session_idle_ms: u64,
}

/// How MCP clients reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Standard input and output
    Stdio,
    /// Streamable HTTP
    Http,
}

/// List the saved workflows and the kinds of agents that are defined here
#[derive(Debug, Args)]
#[command(after_help = "\
Workflows are .js files in the nearest .fanfold/workflows, the nearest .claude/workflows up to the repository's root, and
the same in the user's folders; the first of a name counts. Kinds of agents are .md files in `agents` folders there.")]
pub(crate) struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Read a script without running it: print what it says it is, or the error with its place
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fanfold check examples/review.js
  fanfold check --strict examples/review.js
      before a commit: exit status 1 if anything is warned of

Exit status: 0, also with warnings unless --strict is given; 1 with it; 2 if the script cannot be run")]
pub(crate) struct CheckArgs {
    /// The script, or the name of a saved workflow; `-` reads standard input
    pub(crate) script: PathBuf,

    /// Fail on warnings too
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) meta: MetaArg,
}

#[derive(Debug, Args)]
pub(crate) struct MetaArg {
    /// What the script is, where it has no header: JSON with name and description, or @FILE. Default: its file's
    /// name
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) meta: Option<String>,
}

/// Show runs that have ended on a page, which stays until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fanfold run review.js --json > runs/review.jsonl; fanfold view runs/review.jsonl
  fanfold view runs
      all runs in the .jsonl files of a folder, as they come")]
pub(crate) struct ViewArgs {
    /// Files of what `fanfold run --json` printed, or folders of .jsonl files. A .js file of the same name is shown
    /// as the script
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) listen: ListenArgs,
}

/// Where a page or a server is found.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Where the page or server listens; port 0 is any that is free [default: 127.0.0.1:0]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,

    /// A name that the page or server is asked for by, besides localhost and the address; may be given again
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
}

impl ListenArgs {
    /// Where to listen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }
}

/// Who runs `agent()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Agents {
    /// Canned answers by prompt, for trying scripts offline
    Scripted,
    /// A process for each agent
    Command,
    /// A request to an OpenAI-compatible API for each agent
    #[value(name = "openai")]
    OpenAi,
    /// A request to Anthropic's API for each agent
    Anthropic,
    /// A coding agent that speaks the Agent Client Protocol for each agent
    Acp,
    /// The MCP client's own model (fanfold mcp)
    Sampling,
}
