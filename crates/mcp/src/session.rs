//! What one client talks to, or one request of a client whose protocol has no sessions.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fanfold::CancellationToken;
use fanfold_tool::{Call, ToolError, ToolKind};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, InputRequest, InputRequiredResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SetLevelRequestParams, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use crate::attend::{Attendance, Left};
use crate::line::{Caller, Line};
use crate::log::Level;
use crate::outbox::Outbox;
use crate::server::{Agents, Shared};
use crate::{answer, clerk, tasks};

/// How long a client that asks for no progress is kept waiting; the official clients give up after 60 seconds.
const PATIENCE: Duration = Duration::from_secs(50);

/// A call that takes longer is a task, where the client knows tasks.
const TASK_AFTER: Duration = Duration::from_secs(1);

/// How often a call can come back with questions: clients give up at the eleventh time.
const MAX_ROUNDS: u32 = 9;

/// Longer than any run that has been told to end takes.
const UNTIL_IT_ENDS_MS: u64 = 600_000;

pub(crate) struct Session {
    shared: Arc<Shared>,
    /// The least severe log lines that the client wants to see, where the protocol has sessions.
    level: Level,
    /// The runs that end with the session, if it is one.
    owned: OnceLock<Owned>,
    /// Fires when the client has gone.
    gone: CancellationToken,
}

impl Session {
    /// For a client with a connection of its own.
    pub(crate) fn of_connection(shared: Arc<Shared>) -> Self {
        let session = Self::of_http(shared);
        session.own();
        session
    }

    /// For an HTTP client, which has a session if it begins with `initialize`.
    pub(crate) fn of_http(shared: Arc<Shared>) -> Self {
        Self { shared, level: Level::default(), owned: OnceLock::new(), gone: CancellationToken::new() }
    }

    fn own(&self) {
        self.owned.get_or_init(|| Owned { shared: self.shared.clone(), runs: Mutex::default() });
    }

    /// Fire it when the client has gone.
    pub(crate) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Starts a run.
    async fn start(
        &self,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Arc<Line>, fanfold_tool::Answer<fanfold_tool::Started>), ToolError> {
        let (caller, outbox) = (Caller::new(), Arc::new(Outbox::default()));
        let client = context.client_capabilities().is_some_and(|client| client.sampling.is_some());
        let (sampling, notice) = match &self.shared.options.agents {
            Agents::Engine => (None, None),
            Agents::Client(sampling) => (Some(sampling), None),
            Agents::ClientOr(sampling, _) if client => (Some(sampling), None),
            Agents::ClientOr(_, notice) => (None, Some(notice.clone())),
        };
        let mut call = Call::by(caller.clone()).observe(outbox.observer()).cancel_with(context.ct.clone());
        if let Some(sampling) = sampling {
            call = call.provider(crate::Sampling::NAME);
            if client {
                sampling.connect(&caller, &outbox);
            }
        }
        let started = self.shared.tool.start(arguments, call).await?;
        let run_id = started.value.run_id.clone();
        let clerk = (!modern(context)).then(|| {
            let (peer, origin) = (context.peer.clone(), context.id.clone());
            clerk::employ(outbox.clone(), peer, origin, self.level.clone(), run_id.clone())
        });
        let asks_in_answers = sampling.is_some() && clerk.is_none();
        let line = Line::new(run_id, outbox, notice, asks_in_answers, clerk);
        let line = self.shared.lines.add(line, self.shared.tool.runs());
        if let Some(owned) = self.owned.get() {
            owned.add(line.clone());
        }
        Ok((line, started))
    }

    /// The workflow tool: starts a run and waits for it, or waits on for one that had questions.
    async fn workflow(
        &self,
        round: Round,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let line = match &round.run_id {
            Some(run_id) => self.shared.lines.get(run_id).ok_or_else(|| unknown(run_id))?,
            // The model called `workflow`, and knows nothing of what that is made of.
            None => self.start(arguments, context).await.map_err(|error| self.renamed(error))?.0,
        };
        let tasks = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        let patience = if tasks { Some(TASK_AFTER) } else { self.patience(context) };
        let left = self.attend(&line, patience, context).await;
        if left == Left::Cancelled {
            // Waits until the run and its agents have stopped. Nobody hears the answer.
            let run = json!({"runId": line.run_id});
            self.shared.tool.cancel(&run, Call::by(Caller::new())).await?;
        }
        Ok(match left {
            Left::Ended | Left::Cancelled => {
                let reader = self.shared.tools.name(ToolKind::Result);
                let first = json!({"runId": line.run_id, "waitMs": UNTIL_IT_ENDS_MS});
                let page = self.shared.tool.result(&first, Call::by(Caller::new())).await?;
                answer::completed(page, &line, reader).into()
            }
            Left::Questions | Left::Late if tasks => tasks::create(self, &line).await?.into(),
            Left::Questions if round.number < MAX_ROUNDS => round.ask(&line).into(),
            Left::Questions | Left::Late => {
                answer::running(&line, self.shared.tools.name(ToolKind::Workflow)).into()
            }
        })
    }

    /// The tool that reads a result: waits for the run, if it is asked to.
    async fn result(
        &self,
        round: Round,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let wait_ms = arguments.get("waitMs").and_then(Value::as_u64).unwrap_or_default();
        let run_id = arguments.get("runId").and_then(Value::as_str).unwrap_or_default();
        let valid = wait_ms <= UNTIL_IT_ENDS_MS;
        let Some(line) = self.shared.lines.get(run_id).filter(|_| valid) else {
            // It says what is wrong.
            let call = Call::by(Caller::new()).cancel_with(context.ct.clone());
            let name = self.shared.tools.name(ToolKind::Result);
            return Ok(answer::plain(self.shared.tool.call(name, arguments, call).await?).into());
        };
        let left = self.attend(&line, Some(Duration::from_millis(wait_ms)), context).await;
        if left == Left::Questions && round.number < MAX_ROUNDS {
            return Ok(round.ask(&line).into());
        }
        let mut arguments = arguments.clone();
        arguments["waitMs"] = if left == Left::Ended { json!(UNTIL_IT_ENDS_MS) } else { json!(0) };
        let call = Call::by(Caller::new()).cancel_with(context.ct.clone());
        let page = self.shared.tool.result(&arguments, call).await?;
        Ok(answer::page(page, &line).into())
    }

    /// Waits for a run on behalf of a request.
    async fn attend(
        &self,
        line: &Line,
        patience: Option<Duration>,
        context: &RequestContext<RoleServer>,
    ) -> Left {
        let modern = modern(context);
        let attendance = Attendance {
            context,
            gone: &self.gone,
            run_id: &line.run_id,
            log_level: context.meta.log_level().filter(|_| modern),
            takes_questions: modern,
            patience,
        };
        let left = attendance.wait(&line.outbox).await;
        if left == Left::Ended {
            line.said().await;
        }
        left
    }

    /// How long the client can be kept waiting.
    fn patience(&self, context: &RequestContext<RoleServer>) -> Option<Duration> {
        let hears_nothing = context.meta.get_progress_token().is_none();
        self.shared.options.answer_within.or_else(|| hears_nothing.then_some(PATIENCE))
    }

    fn renamed(&self, error: ToolError) -> ToolError {
        match error {
            ToolError::Arguments { error, .. } => {
                ToolError::Arguments { tool: self.shared.tools.name(ToolKind::Workflow).to_owned(), error }
            }
            error => error,
        }
    }
}

/// Which time a call comes, for clients that answer questions by calling again.
#[derive(Default)]
struct Round {
    run_id: Option<String>,
    number: u32,
}

impl Round {
    /// Reads the state that the client brings back. It is no secret, and forging it gains nothing: knowing a run's id
    /// is the right to read it, and the number decides when the client is sent away.
    fn read(state: Option<&str>) -> Self {
        let Some((number, run_id)) = state.and_then(|state| state.split_once(' ')) else {
            return Self::default();
        };
        Self { run_id: Some(run_id.to_owned()), number: number.parse().unwrap_or(MAX_ROUNDS) }
    }

    /// Puts the questions of the run's agents, to come back with the answers.
    fn ask(&self, line: &Line) -> InputRequiredResult {
        let state = format!("{} {}", self.number + 1, line.run_id);
        InputRequiredResult::new(Some(questions(line)), Some(state))
    }
}

/// What a run's agents ask, as the protocol puts it.
pub(crate) fn questions(line: &Line) -> std::collections::BTreeMap<String, InputRequest> {
    let questions = line.outbox.show_questions().into_iter();
    questions
        .map(|(name, params)| (name, InputRequest::CreateMessage(rmcp::model::Request::new(params))))
        .collect()
}

/// Hands the client's answers to those who asked.
pub(crate) fn take_answers(line: &Line, answers: impl IntoIterator<Item = (String, Value)>) {
    for (name, answer) in answers {
        let answer = serde_json::from_value(answer)
            .map_err(|error| format!("the MCP client's answer is none of a model's: {error}"));
        line.outbox.answer(&name, answer);
    }
}

fn unknown(run_id: &str) -> ToolError {
    ToolError::UnknownRun { run_id: run_id.to_owned(), own: Vec::new() }
}

/// Whether the request is of a protocol without sessions.
fn modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_logging().enable_tasks().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("fanfold", env!("CARGO_PKG_VERSION")).with_title("Fanfold"))
            .with_instructions(self.shared.tool.guidance().text)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.own();
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.level.set(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shared.tools.list().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.tools.get(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let kind = self.shared.tools.kind(&name).ok_or_else(|| {
            let known: Vec<&str> = self.shared.tools.list().iter().map(|tool| &*tool.name).collect();
            ErrorData::invalid_params(
                format!("there is no tool {name:?} (there are: {})", known.join(", ")),
                None,
            )
        })?;
        let arguments = Value::Object(arguments.unwrap_or_default());
        let round = Round::read(request_state.as_deref());
        if let (Some(run_id), Some(answers)) = (&round.run_id, input_responses)
            && let Some(line) = self.shared.lines.get(run_id)
        {
            take_answers(&line, answers);
        }
        let called = match kind {
            ToolKind::Workflow => self.workflow(round, &arguments, &context).await,
            ToolKind::Start => self.start(&arguments, &context).await.map(|(line, started)| {
                answer::started(started, &line, self.shared.tools.name(ToolKind::Result)).into()
            }),
            ToolKind::Result => self.result(round, &arguments, &context).await,
            _ => {
                let call = Call::by(Caller::new()).cancel_with(context.ct.clone());
                self.shared.tool.call(&name, &arguments, call).await.map(|it| answer::plain(it).into())
            }
        };
        Ok(called.unwrap_or_else(|error| answer::error(&error).into()))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(self, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::update(self, request)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(self, request.task_id).await
    }
}

/// Runs that are cancelled when it is dropped.
struct Owned {
    shared: Arc<Shared>,
    runs: Mutex<Vec<Arc<Line>>>,
}

impl Owned {
    fn add(&self, line: Arc<Line>) {
        // Nothing that holds the lock can leave the list half-written.
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|line| !line.outbox.closed().is_cancelled());
        runs.push(line);
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Without a runtime there are no runs either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let runs = self.runs.get_mut().unwrap_or_else(PoisonError::into_inner);
        for line in runs.drain(..) {
            let shared = self.shared.clone();
            runtime.spawn(async move {
                // One that has ended, or was forgotten, is as good.
                let _ = shared.tool.cancel(&json!({"runId": line.run_id}), Call::by(Caller::new())).await;
            });
        }
    }
}
