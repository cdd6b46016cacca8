//! The ACP provider against agents that are shell scripts: nothing but a shell is needed, and no code is shared.
//! `tests/acp` has one that is written with the protocol's TypeScript SDK.

mod frames;
mod heard;

use std::fs;
use std::path::Path;
use std::time::Duration;

use fanfold::{AgentRequest, AgentType, Answer, CancellationToken, Child, ChildError, Subagents as _, Usage};
use fanfold_agents::{Acp, Command, FailureKind, Permissions};
use serde_json::json;
use tempfile::TempDir;

/// An agent that does what the prompt says, in its folder.
const AGENT: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
stop() { reply '{"stopReason":"'"$1"'"}'; }
note() { printf '%s\n' "$2" >> "$1"; }
note pids $$
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) note hello "$line"; reply '{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"method":"session/new"'*)
      note session "$line"
      [ -e login ] && refuse -32000 'Authentication required' && continue
      reply '{"sessionId":"s1"}' ;;
    *'"method":"session/cancel"'*) note cancelled yes; id=$turn; stop cancelled ;;
    *'"method":"session/prompt"'*)
      turn=$id
      note prompts "$line"
      case "$line" in
        *greet*) say Hel; say 'lo, 🌍'; reply '{"stopReason":"end_turn","usage":{"totalTokens":20,"inputTokens":10,"outputTokens":3,"thoughtTokens":4,"cachedReadTokens":1}}' ;;
        *work*) say 'Let me look.'; update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}'
          update '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"look","kind":"read"}'; say 'It is 42.'; stop end_turn ;;
        *permission*)
          case "$line" in *edit*) kind=edit ;; *) kind=read ;; esac
          printf '{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","kind":"%s"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}\n' $kind
          read -r answer
          case "$answer" in *'"yes"'*) say allowed ;; *'"no"'*) say rejected ;; *) say odd ;; esac
          stop end_turn ;;
        *files*) printf '{"jsonrpc":"2.0","id":"f1","method":"fs/read_text_file","params":{"sessionId":"s1","path":"/etc/passwd"}}\n'
          read -r answer; case "$answer" in *error*) say refused ;; *) say read ;; esac; stop end_turn ;;
        *crash*) [ -e mended ] && say mended && stop end_turn && continue; touch mended; echo boom >&2; exit 3 ;;
        *vanish*) exit 0 ;;
        *endless*) say 'The full answer is 42.' ;;
        *break*) say 'Half of it'; echo boom >&2; exit 4 ;;
        *half*full*) say 'Half of it'; stop max_tokens ;;
        *complain*) echo deprecated >&2; say done; stop end_turn; read -r line; echo bye >&2; exit 5 ;;
        *noise*) echo 'Loading…'; say 'in spite of it'; stop end_turn ;;
        *flood*) cat /dev/zero | tr '\0' x ;;
        *essay*) for n in 1 2 3 4 5; do say 0123456789; done; stop end_turn ;;
        *muse*) say '<think>perhaps {\"n\": 1}'; say '</think>{\"n\": 2}'; stop end_turn ;;
        *decline*) say 'I will not.'; stop refusal ;;
        *full*) stop max_tokens ;;
        *turns*) stop max_turn_requests ;;
        *idle*) stop cancelled ;;
        *error*) refuse -32603 'Internal error' ;;
        *stubborn*) trap '' TERM; sleep 1000 & note pids $!; note waiting yes; wait; sleep 1000 ;;
        *hang*) note waiting yes ;;
        *How*many*)
          case "$line" in *'asked this before'*) say '{\"n\": 4}' ;; *) say '{\"n\": \"four\"}' ;; esac; stop end_turn ;;
      esac ;;
  esac
done
note ended yes
"#;

/// An agent in a folder of its own.
struct Bench {
    folder: TempDir,
    agents: Acp,
}

impl Bench {
    fn new() -> Self {
        Self::with(|command| command, Permissions::Deny)
    }

    fn with(change: impl FnOnce(Command) -> Command, permissions: Permissions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = Command::new(["sh", "-c", AGENT]).unwrap().directory(folder.path());
        let command = change(command.stop_grace(Duration::from_secs(1)));
        Self { agents: Acp::new(command).permissions(permissions), folder }
    }

    async fn start(&self, request: AgentRequest, cancel: CancellationToken) -> Child {
        self.agents.start(request, cancel).await.unwrap()
    }

    async fn run(&self, request: AgentRequest) -> Result<Answer, ChildError> {
        self.start(request, CancellationToken::new()).await.result.await
    }

    async fn ask(&self, prompt: &str) -> Result<Answer, ChildError> {
        self.run(AgentRequest::new(prompt)).await
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns once the agents have noted so many lines under this name.
    async fn noticed(&self, name: &str, lines: usize) {
        let noticed = async {
            while self.noted(name).lines().count() < lines {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), noticed).await.expect(name);
    }

    /// Returns once none of the noted processes is left.
    async fn all_gone(&self) {
        for pid in self.noted("pids").lines() {
            let gone = async {
                while Path::new("/proc").join(pid).exists() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(30), gone).await.expect("no process is left");
        }
    }
}

fn failure(outcome: Result<Answer, ChildError>) -> (FailureKind, String) {
    match outcome {
        Err(ChildError::Failed(reason)) => (
            FailureKind::named(reason.kind.as_ref().expect("a kind")).expect("one of ours"),
            reason.to_string(),
        ),
        other => panic!("no failure: {other:?}"),
    }
}

#[tokio::test]
async fn an_agent_is_greeted_asked_and_counted() {
    let bench = Bench::new();
    let child = bench.start(AgentRequest::new("greet"), CancellationToken::new()).await;
    assert!(child.id.starts_with("sh-"), "{}", child.id);
    assert_eq!(child.result.await, Ok(Answer::text("Hello, 🌍")));
    assert_eq!(child.meter.total(), Some(Usage::new(11, 7).cached(1, 0)));
    assert!(bench.noted("hello").contains(r#""protocolVersion":1"#));
    let folder = bench.folder.path().to_str().unwrap();
    assert!(bench.noted("session").contains(folder), "{}", bench.noted("session"));
    // It could end by itself.
    assert_eq!(bench.noted("ended"), "yes\n");
    bench.all_gone().await;
}

#[tokio::test]
async fn the_instructions_of_a_kind_of_agent_come_before_the_prompt() {
    let bench = Bench::new();
    assert!(bench.agents.supports().instructions);
    let mut request = AgentRequest::new("greet");
    request.options.agent_type = Some("reviewer".into());
    request.options.definition = Some(AgentType::new("reviewer", "Be strict.").into());
    bench.run(request).await.unwrap();
    let prompts = bench.noted("prompts");
    let place = |text: &str| prompts.find(text).unwrap_or_else(|| panic!("{text}: {prompts}"));
    assert!(place("Be strict.") < place("greet"));
}

#[tokio::test]
async fn the_answer_is_what_was_said_after_the_work() {
    assert_eq!(Bench::new().ask("work").await, Ok(Answer::text("It is 42.")));
}

#[tokio::test]
async fn the_policy_answers_for_the_person_who_is_not_there() {
    for (permissions, prompt, expected) in [
        (Permissions::Deny, "permission to read", "rejected"),
        (Permissions::Deny, "permission to edit", "rejected"),
        (Permissions::Read, "permission to read", "allowed"),
        (Permissions::Read, "permission to edit", "rejected"),
        (Permissions::Allow, "permission to edit", "allowed"),
    ] {
        let bench = Bench::with(|command| command, permissions);
        assert_eq!(bench.ask(prompt).await, Ok(Answer::text(expected)), "{permissions:?}: {prompt}");
    }
}

#[tokio::test]
async fn our_files_are_not_offered() {
    assert_eq!(
        Bench::with(|command| command, Permissions::Allow).ask("files").await,
        Ok(Answer::text("refused"))
    );
}

#[tokio::test]
async fn a_bad_value_is_asked_for_again_in_the_same_session() {
    let bench = Bench::new();
    let mut request = AgentRequest::new("How many?");
    request.options.schema =
        Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}));
    assert_eq!(bench.run(request).await.unwrap().structured, Some(json!({"n": 4})));
    assert_eq!((bench.noted("session").lines().count(), bench.noted("prompts").lines().count()), (1, 2));
}

#[tokio::test]
async fn reasoning_is_no_part_of_an_answer() {
    let bench = Bench::new();
    assert_eq!(bench.ask("muse").await, Ok(Answer::text("{\"n\": 2}")));
    let mut request = AgentRequest::new("muse");
    request.options.schema = Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    assert_eq!(bench.run(request).await.unwrap().structured, Some(json!({"n": 2})));
}

#[tokio::test]
async fn every_other_end_has_its_kind() {
    for (prompt, kind, words) in [
        (
            "crash",
            FailureKind::Exit,
            "exit: the agent closed its output; exit status 3; standard error: boom",
        ),
        ("vanish", FailureKind::Exit, "exit: the agent closed its output; exit status 0"),
        ("decline", FailureKind::Refusal, "refusal: the agent declined: I will not."),
        ("full", FailureKind::Length, ""),
        ("turns", FailureKind::Length, ""),
        ("idle", FailureKind::Protocol, ""),
        ("error", FailureKind::Server, "server: the agent answered with an error: Internal error"),
    ] {
        let bench = Bench::new();
        let (found, reason) = failure(bench.ask(prompt).await);
        assert_eq!(found, kind, "{prompt}: {reason}");
        assert!(words.is_empty() || reason == words, "{reason}");
        assert_eq!(bench.noted("prompts").lines().count(), 1, "it is not asked twice");
        bench.all_gone().await;
    }
}

#[tokio::test]
async fn a_program_that_is_no_agent_is_told_so() {
    let agents = Acp::new(Command::parse("sh -c 'echo usage: frob >&2; exit 2'").unwrap());
    let child = agents.start(AgentRequest::new("p"), CancellationToken::new()).await.unwrap();
    let (kind, reason) = failure(child.result.await);
    assert_eq!(kind, FailureKind::Exit);
    assert!(reason.ends_with("exit status 2; standard error: usage: frob"), "{reason}");

    let agents = Acp::new(Command::parse("./does-not-exist").unwrap());
    assert!(agents.start(AgentRequest::new("p"), CancellationToken::new()).await.is_err());
}

#[tokio::test]
async fn an_agent_that_wants_a_login_is_fatal() {
    let bench = Bench::new();
    fs::write(bench.path("login"), "").unwrap();
    match bench.ask("greet").await {
        Err(ChildError::Fatal(reason)) => assert_eq!(reason.kind.as_deref(), Some("authentication")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_crash_is_tried_again_if_the_call_says_so() {
    let bench = Bench::new();
    let mut request = AgentRequest::new("crash");
    request.options.retries = Some(1);
    assert_eq!(bench.run(request).await, Ok(Answer::text("mended")));
    assert_eq!(bench.noted("pids").lines().count(), 2);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_survived() {
    assert_eq!(Bench::new().ask("noise").await, Ok(Answer::text("in spite of it")));
}

#[tokio::test]
async fn what_is_too_long_is_not_kept() {
    let bench = Bench::with(|command| command.max_answer_bytes(40), Permissions::Deny);
    let (kind, reason) = failure(bench.ask("essay").await);
    assert_eq!((kind, &*reason), (FailureKind::AnswerSize, "answerSize: the answer is longer than 40 bytes"));
    let (kind, reason) = failure(bench.ask("flood").await);
    assert_eq!(kind, FailureKind::Protocol, "{reason}");
    assert!(reason.starts_with("protocol: a line is longer than 1048816 bytes: xxx"), "{reason}");
    bench.all_gone().await;
}

#[tokio::test]
async fn a_cancelled_agent_is_told_and_may_end_its_turn() {
    let bench = Bench::new();
    let cancel = CancellationToken::new();
    let child = bench.start(AgentRequest::new("hang"), cancel.clone()).await;
    let result = tokio::spawn(child.result);
    bench.noticed("waiting", 1).await;
    cancel.cancel();
    assert_eq!(result.await.unwrap(), Err(ChildError::Cancelled));
    assert_eq!((&*bench.noted("cancelled"), &*bench.noted("ended")), ("yes\n", "yes\n"));
    bench.all_gone().await;
}

#[tokio::test]
async fn an_agent_that_does_not_listen_is_ended_with_all_it_started() {
    let bench = Bench::new();
    let cancel = CancellationToken::new();
    let child = bench.start(AgentRequest::new("stubborn"), cancel.clone()).await;
    let result = tokio::spawn(child.result);
    bench.noticed("waiting", 1).await;
    cancel.cancel();
    assert_eq!(result.await.unwrap(), Err(ChildError::Cancelled));
    assert_eq!(bench.noted("pids").lines().count(), 2);
    bench.all_gone().await;
}

#[tokio::test]
async fn a_dropped_agent_is_ended_with_all_it_started() {
    let bench = Bench::new();
    let child = bench.start(AgentRequest::new("stubborn"), CancellationToken::new()).await;
    let result = tokio::spawn(child.result);
    bench.noticed("waiting", 1).await;
    result.abort();
    assert!(result.await.is_err());
    bench.all_gone().await;
}

#[tokio::test]
async fn time_and_patience_end() {
    for (timeout, stall, kind) in
        [(Some(1000), None, FailureKind::Timeout), (None, Some(1000), FailureKind::Stall)]
    {
        let bench = Bench::new();
        let mut request = AgentRequest::new("hang");
        (request.options.timeout_ms, request.options.stall_ms) = (timeout, stall);
        assert_eq!(failure(bench.run(request).await).0, kind);
        assert_eq!(bench.noted("cancelled"), "yes\n");
        bench.all_gone().await;
    }
}

#[tokio::test]
async fn forty_at_once_leave_nobody_behind() {
    let bench = Bench::new();
    let cancel = CancellationToken::new();
    let mut results = Vec::new();
    for n in 0..40 {
        let prompt = ["greet", "hang", "stubborn", "crash"][n % 4];
        let child = bench.start(AgentRequest::new(prompt), cancel.clone()).await;
        results.push((n, tokio::spawn(child.result)));
    }
    bench.noticed("waiting", 20).await;
    bench.noticed("prompts", 40).await;
    cancel.cancel();
    for (n, result) in results {
        let outcome = result.await.unwrap();
        // The others were about to end by themselves.
        if matches!(n % 4, 1 | 2) {
            assert_eq!(outcome, Err(ChildError::Cancelled));
        }
    }
    assert_eq!(bench.noted("pids").lines().count(), 50);
    bench.all_gone().await;
}
