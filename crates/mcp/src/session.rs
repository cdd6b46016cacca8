//! What one client talks to, or one request of a client whose protocol has no sessions.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fanfold::CancellationToken;
use fanfold_tool::{Call, ResultPage, RunState, Stopped, ToolError, ToolKind};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, ErrorCode,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, InputRequest,
    InputRequiredResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::attend::{Attendance, Left};
use crate::delivery::{Delivery, SessionEnd};
use crate::line::{CallKey, Client, Line, NewLine};
use crate::log::Level;
use crate::outbox::Outbox;
use crate::server::{Agents, Shared};
use crate::tools::Called;
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
    id: String,
    /// The least severe log lines that the client wants to see, where the protocol has sessions.
    level: Level,
    /// The runs that end with the session, if it is one.
    owned: OnceLock<Owned>,
    /// Fires when the client has gone, or the server stops.
    gone: CancellationToken,
}

/// A call that has a run.
struct Begun {
    line: Arc<Line>,
    /// It is the run of an equal call.
    joined: bool,
}

impl Session {
    /// For a client with a connection of its own.
    pub(crate) fn of_connection(shared: Arc<Shared>) -> Self {
        let session = Self::of_http(shared, CancellationToken::new());
        session.own();
        session
    }

    /// For an HTTP client, which has a session if it begins with `initialize`. `stop` fires when the server stops.
    pub(crate) fn of_http(shared: Arc<Shared>, stop: CancellationToken) -> Self {
        let id = format!("mcp-{}", Uuid::new_v4());
        Self { shared, id, level: Level::default(), owned: OnceLock::new(), gone: stop }
    }

    fn own(&self) {
        self.owned.get_or_init(Owned::default);
    }

    /// Fire it when the client has gone.
    pub(crate) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Who makes a request.
    fn client(&self, context: &RequestContext<RoleServer>) -> Client {
        let program = context.client_info();
        match self.owned.get() {
            Some(_) => Client::of_session(&self.id, program.as_ref()),
            None => Client::of_program(program.as_ref()),
        }
    }

    /// Starts the run of a call, or finds that of an equal one: a client that gave up, or whose connection was dropped,
    /// calls again, and what it has paid for is not paid twice.
    async fn begin(
        &self,
        tool: &str,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<Begun, ToolError> {
        let (call, client) = (CallKey::new(tool, arguments), self.client(context));
        let lines = &self.shared.lines;
        let turn = lines.turn(&call);
        let _turn = turn.lock().await;
        let runs = self.shared.tool.runs();
        let delivery = Delivery::of(&context.extensions);
        if let Some(line) = runs.and_then(|runs| lines.find(&call, &client, runs)) {
            let abandoned = line.is_abandoned();
            if line.enter(delivery.clone()) {
                self.take_over(&line, abandoned, &client, context);
                return Ok(Begun { line, joined: true });
            }
        }
        let line = self.start(call, client, arguments, context).await?;
        line.enter(delivery);
        Ok(Begun { line, joined: false })
    }

    /// Starts a run.
    async fn start(
        &self,
        key: CallKey,
        client: Client,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Line>, ToolError> {
        let outbox = Arc::new(Outbox::default());
        let samples = context.client_capabilities().is_some_and(|client| client.sampling.is_some());
        let (sampling, notice) = match &self.shared.options.agents {
            Agents::Engine => (None, None),
            Agents::Client(sampling) => (Some(sampling), None),
            Agents::ClientOr(sampling, _) if samples => (Some(sampling), None),
            Agents::ClientOr(_, notice) => (None, Some(notice.clone())),
        };
        let mut call = Call::by(Arc::new(client.clone())).observe(outbox.observer());
        call = call.cancel_with(context.ct.clone());
        if let Some(sampling) = sampling {
            let parent = format!("mcp-{}", Uuid::new_v4());
            if samples {
                sampling.connect(&parent, &outbox);
            }
            call = call.provider(crate::Sampling::NAME).parent(parent);
        }
        let started = self.shared.tool.start(arguments, call).await?;
        let run_id = started.value.run_id.clone();
        let clerk = (!modern(context)).then(|| {
            let (peer, origin) = (context.peer.clone(), context.id.clone());
            clerk::employ(outbox.clone(), peer, origin, self.level.clone(), run_id.clone())
        });
        let hold = self.owned.get().map(|_| Arc::new(Hold { shared: self.shared.clone(), run_id }));
        let line = Arc::new(Line::new(NewLine {
            outbox,
            notice,
            asks_client: sampling.is_some(),
            started,
            call: key,
            client,
            clerk,
            hold: hold.as_ref().map(Arc::downgrade).unwrap_or_default(),
        }));
        self.shared.lines.add(line.clone(), self.shared.tool.runs());
        if let (Some(owned), Some(hold)) = (self.owned.get(), hold) {
            owned.add(line.clone(), hold);
        }
        Ok(line)
    }

    /// Makes an equal call's run the run of this request too.
    fn take_over(
        &self,
        line: &Arc<Line>,
        abandoned: bool,
        client: &Client,
        context: &RequestContext<RoleServer>,
    ) {
        if line.client.id != client.id {
            if let (Some(owned), Some(hold)) = (self.owned.get(), line.hold()) {
                owned.add(line.clone(), hold);
            }
            if let Some(runs) = self.shared.tool.runs() {
                runs.share(&line.run_id, &client.id);
            }
        } else if let Some(clerk) = &line.clerk
            && abandoned
        {
            clerk.origin.send_replace(context.id.clone());
        }
    }

    /// Stops a run; when this returns it has stopped.
    pub(crate) async fn stop(&self, run_id: &str) -> Result<fanfold_tool::Answer<Stopped>, ToolError> {
        if let Some(line) = self.shared.lines.get(run_id) {
            line.stop();
        }
        self.shared.tool.cancel(&json!({"runId": run_id}), self.call()).await
    }

    /// A call of the tool on behalf of whoever knows a run's id.
    pub(crate) fn call(&self) -> Call {
        Call::by(Arc::new(Client::of_session(&self.id, None)))
    }

    /// A tool that runs a workflow: starts a run and waits for it, or waits on for one that had questions.
    async fn workflow(
        &self,
        tool: &str,
        round: Round,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let Begun { line, joined } = match &round.run_id {
            Some(run_id) => {
                let line = self.shared.lines.get(run_id).ok_or_else(|| unknown(run_id))?;
                Begun { line, joined: false }
            }
            // The model called `tool`, and knows nothing of what that is made of.
            None => self.begin(tool, arguments, context).await.map_err(|error| renamed(error, tool))?,
        };
        let tasks = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        let patience = if tasks { Some(TASK_AFTER) } else { self.patience(context) };
        let reader = self.shared.tools.name(ToolKind::Result);
        match self.attend(&line, patience, context).await {
            Left::Ended => {
                line.leave();
                let first = json!({"runId": line.run_id, "waitMs": UNTIL_IT_ENDS_MS});
                Ok(match self.read(&line, &first, context).await {
                    Ok(page) => answer::completed(page, &line, reader, joined),
                    Err(error) => answer::failed(&error, &line, joined),
                }
                .into())
            }
            Left::Cancelled => {
                if !line.leave_cancelled() {
                    return Err(ToolError::CallCancelled { run_id: line.run_id.clone() });
                }
                // Waits until the run and its agents have stopped. Only a client that does not know that the server
                // stops hears the answer.
                self.stop(&line.run_id).await?;
                let page = self.read(&line, &json!({"runId": line.run_id}), context).await?;
                Ok(answer::completed(page, &line, reader, joined).into())
            }
            Left::Questions | Left::Late if tasks => {
                line.leave_knowing();
                Ok(tasks::create(self, &line).await?.into())
            }
            // The call goes on with the next round.
            Left::Questions if round.number < MAX_ROUNDS => Ok(round.ask(&line).into()),
            Left::Questions | Left::Late => {
                line.leave_knowing();
                Ok(answer::running(&line, self.shared.tools.name(ToolKind::Workflow), joined).into())
            }
        }
    }

    /// The tool that starts a run in the background.
    async fn background(
        &self,
        tool: &str,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let Begun { line, joined } = self.begin(tool, arguments, context).await?;
        line.leave_knowing();
        Ok(answer::started(&line, self.shared.tools.name(ToolKind::Result), joined).into())
    }

    /// The tool that tells how a run is doing, or which there are.
    async fn status(
        &self,
        tool: &str,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ToolError> {
        let call = Call::by(Arc::new(self.client(context))).cancel_with(context.ct.clone());
        let line = arguments["runId"].as_str().and_then(|run_id| self.shared.lines.get(run_id));
        let Some(line) = line else {
            return Ok(answer::plain(self.shared.tool.call(tool, arguments, call).await?).into());
        };
        let status = self.shared.tool.status(arguments, call).await?;
        if matches!(status.value.state, RunState::Error | RunState::Cancelled) {
            // That is its result: whoever calls again wants another run.
            Delivery::of(&context.extensions).then(move || line.read());
        }
        Ok(answer::plain(status.into_json()).into())
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
            let call = Call::by(Arc::new(self.client(context))).cancel_with(context.ct.clone());
            let name = self.shared.tools.name(ToolKind::Result);
            return Ok(answer::plain(self.shared.tool.call(name, arguments, call).await?).into());
        };
        let left = self.attend(&line, Some(Duration::from_millis(wait_ms)), context).await;
        if left == Left::Questions && round.number < MAX_ROUNDS {
            return Ok(round.ask(&line).into());
        }
        let mut arguments = arguments.clone();
        arguments["waitMs"] = if left == Left::Ended { json!(UNTIL_IT_ENDS_MS) } else { json!(0) };
        let page = self.read(&line, &arguments, context).await?;
        Ok(answer::page(page, &line).into())
    }

    /// Reads a part of a run's value. It counts as read once the client has it.
    async fn read(
        &self,
        line: &Arc<Line>,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<fanfold_tool::Answer<ResultPage>, ToolError> {
        let call = Call::by(Arc::new(self.client(context))).cancel_with(context.ct.clone());
        let read = self.shared.tool.result(arguments, call.confirms_reading()).await;
        let (ended, whole) = match &read {
            Ok(page) => (page.value.page.is_some(), page.value.next_offset.is_none()),
            Err(error) => (matches!(error, ToolError::Run { .. }), true),
        };
        if ended {
            // Not the server itself: an answer that is never fetched must not keep it.
            let (line, shared) = (line.clone(), Arc::downgrade(&self.shared));
            Delivery::of(&context.extensions).then(move || {
                line.read();
                let shared = shared.upgrade();
                if let (true, Some(runs)) = (whole, shared.as_ref().and_then(|shared| shared.tool.runs())) {
                    runs.mark_read(&line.run_id);
                }
            });
        }
        read
    }

    /// Waits for a run on behalf of a request.
    async fn attend(
        &self,
        line: &Line,
        patience: Option<Duration>,
        context: &RequestContext<RoleServer>,
    ) -> Left {
        let modern = modern(context);
        let never = CancellationToken::new();
        let session = context.extensions.get::<SessionEnd>();
        let attendance = Attendance {
            context,
            gone: &self.gone,
            session_ended: session.map_or(&never, |SessionEnd(ended)| ended),
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
}

/// The error in the name of the tool that was called.
fn renamed(error: ToolError, tool: &str) -> ToolError {
    match error {
        ToolError::Arguments { error, .. } => ToolError::Arguments { tool: tool.to_owned(), error },
        error => error,
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

/// The methods that are served here, besides notifications. `rmcp` takes one whose parameters it cannot read for a method
/// that it does not know.
const METHODS: [&str; 9] = [
    "initialize",
    "server/discover",
    "ping",
    "logging/setLevel",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// What is wrong with the parameters of a method that is served.
fn unreadable(request: &CustomRequest) -> String {
    let method = &request.method;
    let params = request.params.clone().unwrap_or(Value::Null);
    let reason = match (&params, params.get("arguments")) {
        (Value::Object(_), Some(arguments)) if method == "tools/call" && !arguments.is_object() => {
            "arguments must be an object".to_owned()
        }
        (Value::Object(_), _) if method == "tools/call" => {
            serde_json::from_value::<CallToolRequestParams>(params)
                .map_or_else(|error| error.to_string(), |_| "they are not what it takes".to_owned())
        }
        (Value::Object(_), _) => "they are not what it takes".to_owned(),
        (Value::Null, _) => "they are missing".to_owned(),
        _ => "they must be an object".to_owned(),
    };
    format!("the parameters of {method} are not valid: {reason}")
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
        let called = self.shared.tools.called(&name).ok_or_else(|| {
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
        let called = match called {
            Called::Saved(saved) => self.workflow(&name, round, &saved.arguments(arguments), &context).await,
            Called::Tool(ToolKind::Workflow) => self.workflow(&name, round, &arguments, &context).await,
            Called::Tool(ToolKind::Start) => self.background(&name, &arguments, &context).await,
            Called::Tool(ToolKind::Status) => self.status(&name, &arguments, &context).await,
            Called::Tool(ToolKind::Result) => self.result(round, &arguments, &context).await,
            Called::Tool(kind) => {
                let stopped =
                    arguments.get("runId").and_then(Value::as_str).filter(|_| kind == ToolKind::Cancel);
                if let Some(line) = stopped.and_then(|run_id| self.shared.lines.get(run_id)) {
                    line.stop();
                }
                let call = Call::by(Arc::new(self.client(&context))).cancel_with(context.ct.clone());
                self.shared.tool.call(&name, &arguments, call).await.map(|it| answer::plain(it).into())
            }
        };
        Ok(called.unwrap_or_else(|error| answer::error(&error).into()))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if METHODS.contains(&request.method.as_str()) {
            return Err(ErrorData::invalid_params(unreadable(&request), None));
        }
        let message = format!("there is no method {:?}", request.method);
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
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

/// The runs of a session, which go on while one of their sessions does.
#[derive(Default)]
struct Owned(Mutex<Vec<(Arc<Line>, Arc<Hold>)>>);

impl Owned {
    fn add(&self, line: Arc<Line>, hold: Arc<Hold>) {
        // Nothing that holds the lock can leave the list half-written.
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|(line, _)| !line.outbox.closed().is_cancelled());
        runs.push((line, hold));
    }
}

/// Keeps a run going: it is cancelled when the last one is dropped.
pub(crate) struct Hold {
    shared: Arc<Shared>,
    run_id: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Without a runtime there are no runs either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (shared, run_id) = (self.shared.clone(), std::mem::take(&mut self.run_id));
        if let Some(line) = shared.lines.get(&run_id) {
            line.stop();
        }
        runtime.spawn(async move {
            let call = Call::by(Arc::new(Client::of_program(None)));
            // One that has ended, or was forgotten, is as good.
            let _ = shared.tool.cancel(&json!({"runId": run_id}), call).await;
        });
    }
}
