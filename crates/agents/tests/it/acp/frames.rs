//! What gets among the messages of agents, and messages that cannot be read: the whole answer, or a failure at once
//! that shows what came. Never a piece less, and never a wait without end.

use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, ChildError, Subagents as _};
use fanfold_agents::{Acp, Command, FailureKind};

use super::failure;

/// An agent that answers "fine" in two pieces. What is before and after its messages is in the environment, in the
/// notation of `printf`.
const AGENT: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}' "$id" "$1"; }
say() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}' "$1"; }
around() { printf "$1"; shift; "$@"; printf '\n'; }
printf "$FIRST"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) around "$INIT" reply '{"protocolVersion":1}' ;;
    *'"method":"session/new"'*) around "" reply '{"sessionId":"s1"}' ;;
    *'"method":"session/prompt"'*)
      if [ -n "$SAYS" ]; then eval "$SAYS"; else around "" say fi; around "$CHUNK" say ne; fi
      around "$END" reply "${RESULT:-{\"stopReason\":\"end_turn\"\}}" ;;
  esac
done
"#;

/// What an agent answers with these variables.
async fn ask<const N: usize>(variables: [(&str, &str); N]) -> Result<Answer, ChildError> {
    let mut command = Command::new(["sh", "-c", AGENT]).unwrap().stop_grace(Duration::from_millis(200));
    for (name, value) in variables {
        command = command.env(name, value);
    }
    let mut request = AgentRequest::new("go");
    // Generous: what comes at once comes long before.
    request.options.stall_ms = Some(20_000);
    Acp::new(command).start(request, CancellationToken::new()).await.unwrap().result.await
}

async fn is_fine<const N: usize>(variables: [(&str, &str); N]) {
    assert_eq!(ask(variables).await, Ok(Answer::text("fine")), "{variables:?}");
}

/// The reason of a failure that comes at once.
async fn protocol<const N: usize>(variables: [(&str, &str); N]) -> String {
    let (kind, reason) = failure(ask(variables).await);
    assert_eq!(kind, FailureKind::Protocol, "{reason}");
    reason
}

const TITLE: &str = r"\033]0;ready\007";
const MARK: &str = r"\357\273\277";

#[tokio::test]
async fn a_title_before_the_first_message_is_taken_off() {
    is_fine([("INIT", TITLE)]).await;
}

#[tokio::test]
async fn a_title_before_the_last_message_is_taken_off() {
    is_fine([("END", TITLE)]).await;
}

#[tokio::test]
async fn a_title_before_a_piece_of_the_answer_is_taken_off() {
    is_fine([("CHUNK", TITLE)]).await;
}

#[tokio::test]
async fn a_byte_order_mark_before_the_first_message_is_taken_off() {
    is_fine([("INIT", MARK)]).await;
}

#[tokio::test]
async fn what_cannot_be_seen_is_taken_off_wherever_it_is() {
    for noise in
        [MARK, TITLE, r"\033[2K\r", r"\000", r"\033]0;busy\033\\", r"\033[?25l\357\273\277", r"\r\n\n"]
    {
        is_fine([("INIT", noise), ("CHUNK", noise), ("END", noise)]).await;
    }
}

#[tokio::test]
async fn lines_of_text_among_the_messages_are_passed_over() {
    for text in [r"Loading…\n", r"{}\n", r"[1]\n", r"\033[31mwarning\033[0m\n", r"\377\376\n"] {
        is_fine([("INIT", text), ("CHUNK", text), ("END", text)]).await;
    }
}

#[tokio::test]
async fn a_line_of_text_that_is_all_that_comes_is_in_the_reason() {
    let script = r"printf '\033[31mError: no license\033[0m\n'; read -r line; sleep 60";
    let agents = Acp::new(Command::new(["sh", "-c", script]).unwrap().stop_grace(Duration::from_millis(200)));
    let mut request = AgentRequest::new("go");
    request.options.stall_ms = Some(700);
    let (kind, reason) = failure(agents.start(request, CancellationToken::new()).await.unwrap().result.await);
    assert_eq!(kind, FailureKind::Stall);
    let expected = "stall: nothing came for 700 ms; the agent did not begin a session; besides its messages it wrote: \
                    Error: no license";
    assert_eq!(reason, expected);
}

#[tokio::test]
async fn a_character_that_is_cut_between_two_pieces_is_whole() {
    let says = r#"around "" say "Delete "; around "" say 'nothing \ud83d'; around "" say '\ude00 but the cache'; around "" say ". Done.""#;
    let expected = "Delete nothing \u{1f600} but the cache. Done.";
    assert_eq!(ask([("SAYS", says)]).await, Ok(Answer::text(expected)));
}

#[tokio::test]
async fn half_a_character_without_the_other_loses_nothing_else() {
    for (says, expected) in [
        (r#"around "" say 'a\ud83d'; around "" say b"#, "a\u{fffd}b"),
        (r#"around "" say 'a\ude00'; around "" say '\ud83d'"#, "a\u{fffd}\u{fffd}"),
        (r#"around "" say 'a\uD83D\uDE00'"#, "a\u{1f600}"),
        // The same halves as bytes, and bytes that are no text.
        (
            r#"around "" say "$(printf 'a\355\240\275')"; around "" say "$(printf '\355\270\200')""#,
            "a\u{1f600}",
        ),
        (r#"around "" say "$(printf 'caf\351')""#, "caf\u{fffd}"),
    ] {
        assert_eq!(ask([("SAYS", says)]).await, Ok(Answer::text(expected)), "{says}");
    }
}

#[tokio::test]
async fn half_a_character_in_the_answer_to_the_prompt_is_survived() {
    is_fine([("RESULT", r#"{"stopReason":"end_turn","_meta":{"last":"\ud83d"}}"#)]).await;
}

#[tokio::test]
async fn a_message_that_cannot_be_read_fails_at_once_and_is_shown() {
    for (variables, shown) in [
        // It may be a message, and it may be a log of one.
        (("CHUNK", "Saying: "), r#"a message that cannot be read: Saying: {\"jsonrpc\""#),
        (("CHUNK", r"\033]0;no end "), r#"a message that cannot be read: \u{1b}]0;no end {\"jsonrpc\""#),
        (("INIT", r#"{"jsonrpc":"2.0","me"#), r#"a message that cannot be read: {\"jsonrpc\":\"2.0\",\"me{"#),
        (("SAYS", r#"echo '[{"jsonrpc":"2.0","method":"x"}]'"#), "a message that cannot be read: [{"),
        (
            (
                "SAYS",
                r#"echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"}}}'"#,
            ),
            "a piece of the answer has no content: {",
        ),
        (("SAYS", "id=7"), "the agent answered a request that was not made: {"),
        (("RESULT", r#"{"stopped":true}"#), "the agent's answer to a request cannot be read: {"),
        (("RESULT", "null"), "the agent's answer to a request cannot be read: {"),
    ] {
        let reason = protocol([variables]).await;
        assert!(reason.contains(shown), "{reason}");
        assert!(!reason.contains('\u{1b}') && reason.len() < 1000, "{reason}");
    }
}

#[tokio::test]
async fn an_agent_that_does_not_read_its_answers_is_ended() {
    let flood = r#"n=0; while [ $n -lt 2000 ]; do n=$((n + 1)); echo "{\"jsonrpc\":\"2.0\",\"id\":\"$(printf %0200d $n)\",\"method\":\"fs/read_text_file\",\"params\":{}}"; done; sleep 60"#;
    let reason = protocol([("SAYS", flood)]).await;
    assert!(reason.starts_with("protocol: the agent has not read the answers to 1000 requests"), "{reason}");
}

#[tokio::test]
async fn an_agent_that_reads_its_answers_may_ask_as_often_as_it_likes() {
    let asks = r#"n=0; while [ $n -lt 1500 ]; do n=$((n + 1)); echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"method\":\"fs/read_text_file\",\"params\":{}}"; read -r answer; done; around "" say fine"#;
    is_fine([("SAYS", asks)]).await;
}
