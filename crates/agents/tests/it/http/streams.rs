//! Answers byte for byte, in `streams/`, and what becomes of each.
//!
//! A file's name begins with its API. `NAME.sse` is sent as an event stream, `NAME.html` as a page, `NAME.txt` as text;
//! then the connection is closed, or reset (`NAME.reset.…`), or keep-alives come for ever (`NAME.hold.…`).

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, ChildError, Subagents as _};
use fanfold_agents::{Anthropic, FailureKind, OpenAi};

use super::raw::{End, Raw};
use super::server::Api;

/// What has to become of an answer.
enum Fate {
    /// It is this text.
    Says(&'static str),
    /// It is a failure of this kind, whose reason holds these words.
    Fails(FailureKind, &'static str),
}

use FailureKind::*;
use Fate::{Fails, Says};

async fn check(name: &str, body: &[u8], fate: Fate) {
    let api = if name.starts_with("openai-") { Api::OpenAi } else { Api::Anthropic };
    let end = match name {
        _ if name.contains(".reset.") => End::Reset,
        _ if name.contains(".hold.") => End::KeepAlive,
        _ => End::Close,
    };
    let content_type = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("txt") => "text/plain",
        _ => "text/event-stream",
    };
    let server = Raw::body(content_type, body, end).await;
    let (url, request, cancel) = (server.url(), AgentRequest::new("p"), CancellationToken::new());
    // Tried again once shows that it is tried again.
    let starting = match api {
        Api::OpenAi => {
            OpenAi::new(&url, None).unwrap().model("m").transient_retries(1).start(request, cancel)
        }
        Api::Anthropic => {
            Anthropic::new(&url, None).unwrap().model("m").transient_retries(1).start(request, cancel)
        }
    };
    let child = starting.await.unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(60), child.result).await.expect("an end");
    let tries = match fate {
        Says(text) => {
            assert_eq!(outcome, Ok(Answer::text(text)));
            1
        }
        Fails(kind, words) => {
            let reason = match outcome {
                Err(ChildError::Failed(reason)) if !kind.is_fatal() => reason,
                Err(ChildError::Fatal(reason)) if kind.is_fatal() => reason,
                other => panic!("{other:?}"),
            };
            assert_eq!(reason.kind.as_deref(), Some(kind.as_str()), "{reason}");
            assert!(reason.message.contains(words), "{reason}");
            if kind.is_transient() { 2 } else { 1 }
        }
    };
    assert_eq!(server.requests(), tries);
}

macro_rules! streams {
    ($($test:ident: $file:literal => $fate:expr;)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                check($file, include_bytes!(concat!("streams/", $file)), $fate).await;
            }
        )*

        /// The files that have a test.
        const FILES: &[&str] = &[$($file,)*];
    };
}

#[test]
fn every_file_has_a_test_of_its_own() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/http/streams");
    let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let names: BTreeSet<_> = names.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(FILES.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>(), names);
}

streams! {
    // Whole answers.
    good: "openai-good.sse" => Says("whole");
    pieces_of_other_choices: "openai-second-choice.sse" => Says("A1 A2");
    no_blank_line: "openai-no-blank-line.sse" => Says("hello world");
    done_and_a_space: "openai-done-space.sse" => Says("whole");
    keep_alives_after_the_reason: "openai-whole.hold.sse" => Says("whole");
    half_an_event_after_the_reason: "openai-stop-half-event.sse" => Says("whole");
    half_an_event_after_the_reason_and_a_reset: "openai-stop-half-event.reset.sse" => Says("whole");
    no_json_after_the_reason: "openai-stop-no-json.sse" => Says("whole");
    stop_and_then_an_empty_reason: "openai-stop-then-empty.sse" => Says("whole");
    stop_with_each_piece: "openai-stop-each.sse" => Says("whole");
    every_field_but_empty: "openai-empty-fields.sse" => Says("whole");
    thinking_among_the_parts: "openai-thinking-parts.sse" => Says("whole");
    json_for_an_event_stream: "openai-json-whole.sse" => Says("whole");
    anthropic_caches: "anthropic-cached.sse" => Says("whole");
    anthropic_stop_sequence: "anthropic-stop_sequence.sse" => Says("whole");
    anthropic_no_blank_line: "anthropic-no-blank-line.sse" => Says("whole");
    anthropic_keep_alives_after_the_reason: "anthropic-whole.hold.sse" => Says("whole");
    anthropic_end_after_the_reason: "anthropic-stop-end.sse" => Says("whole");
    anthropic_reset_after_the_reason: "anthropic-stop.reset.sse" => Says("whole");

    // Too long.
    length: "openai-length-limit.sse" => Fails(Length, "finish_reason \"length\"");
    length_and_then_an_empty_reason: "openai-length-then-empty.sse" => Fails(Length, "finish_reason \"length\"");
    length_and_then_stop: "openai-length-then-stop.sse" => Fails(Length, "finish_reason \"length\"");
    model_length: "openai-finish-model_length.sse" => Fails(Length, "finish_reason \"model_length\"");
    max_tokens: "openai-finish-MAX_TOKENS.sse" => Fails(Length, "finish_reason \"MAX_TOKENS\"");
    length_in_an_object: "openai-finish-object.sse" => Fails(Length, "finish_reason \"length\"");
    anthropic_max_tokens: "anthropic-max_tokens.sse" => Fails(Length, "stop_reason \"max_tokens\"");
    anthropic_context_window: "anthropic-context-window.sse"
        => Fails(Length, "stop_reason \"model_context_window_exceeded\"");

    // Declined and filtered.
    refusal: "openai-refusal.sse" => Fails(Refusal, "the model declined: I cannot help with that.");
    refusal_as_a_reason: "openai-finish-refusal.sse" => Fails(Refusal, "the model declined: I will not.");
    safety: "openai-finish-SAFETY.sse" => Fails(ContentFilter, "finish_reason \"SAFETY\"");
    filter_with_a_detail: "openai-finish-gemini-filter.sse" => Fails(ContentFilter, "content_filter: RECITATION");
    sensitive: "openai-finish-sensitive.sse" => Fails(ContentFilter, "finish_reason \"sensitive\"");
    stop_and_then_a_filter: "openai-stop-then-filter.sse" => Fails(ContentFilter, "finish_reason \"content_filter\"");
    anthropic_refusal: "anthropic-refusal.sse" => Fails(Refusal, "the model declined (cyber): asks for malware");
    anthropic_refusal_with_text_alone: "anthropic-refusal-text.sse" => Fails(Refusal, "the model declined: I will not.");

    // Tools, pauses, and reasons that are not known.
    tool_calls: "openai-finish-tool_calls.sse" => Fails(Protocol, "called a tool");
    tool_and_stop: "openai-tool-stop.sse" => Fails(Protocol, "called a tool");
    text_tool_and_stop: "openai-text-tool-stop.sse" => Fails(Protocol, "called a tool");
    broken_call: "openai-finish-gemini-call.sse" => Fails(Protocol, "MALFORMED_FUNCTION_CALL");
    reason_that_is_a_number: "openai-finish-number.sse" => Fails(Protocol, "finish_reason \"3\"");
    anthropic_tool: "anthropic-tool_use.sse" => Fails(Protocol, "called a tool");
    anthropic_tool_and_end_turn: "anthropic-tool-end_turn.sse" => Fails(Protocol, "called a tool");
    anthropic_pause: "anthropic-pause_turn.sse" => Fails(Protocol, "stop_reason \"pause_turn\"");
    anthropic_unknown: "anthropic-stop-unknown.sse" => Fails(Protocol, "stop_reason \"banana\"");
    anthropic_compaction: "anthropic-compaction.sse" => Fails(Protocol, "stop_reason \"compaction\"");

    // The API failed.
    error: "openai-finish-error.sse" => Fails(Server, "finish_reason \"error\"");
    abort: "openai-finish-abort.sse" => Fails(Server, "finish_reason \"abort\"");
    no_resources: "openai-finish-insufficient_system_resource.sse"
        => Fails(Server, "finish_reason \"insufficient_system_resource\"");
    network_error: "openai-finish-network_error.sse" => Fails(Server, "finish_reason \"network_error\"");
    error_without_a_message: "openai-error-no-message.sse" => Fails(Server, r#"broke the answer off: {"code":503}"#);
    error_and_a_choice: "openai-error-code-and-choice.sse" => Fails(Server, r#"broke the answer off: {"code":502}"#);
    error_event: "openai-error-event.sse" => Fails(Server, "broke the answer off: boom");
    error_object: "openai-error-object.sse" => Fails(Server, "broke the answer off: out of memory");
    error_in_the_choice: "openai-error-choice.sse" => Fails(Server, "broke the answer off: upstream died");
    error_in_a_place_of_its_own: "openai-error-groq.sse" => Fails(Server, "broke the answer off: over capacity");
    error_text: "openai-error-text.sse" => Fails(Server, "broke the answer off: the model crashed");
    error_in_words: "openai-error-words.sse" => Fails(Server, "broke the answer off: the model crashed");
    error_without_a_blank_line: "openai-error-no-blank-line.sse"
        => Fails(Server, "broke the answer off: the model crashed");
    error_without_anything: "openai-error-nothing.sse" => Fails(Server, "an error without words");
    error_after_the_reason: "openai-stop-then-error.sse" => Fails(Server, "broke the answer off: the worker died");
    error_in_json_for_an_event_stream: "openai-json-error.sse" => Fails(Server, "broke the answer off: busy");
    rate_limit_bare: "openai-error-bare.sse" => Fails(RateLimit, "broke the answer off: slow down");
    refused_key: "openai-error-key.sse" => Fails(Authentication, "No auth credentials found");
    refused_request: "openai-error-request.sse" => Fails(InvalidRequest, "too long");
    anthropic_error_without_a_message: "anthropic-error-no-message.sse" => Fails(Server, "overloaded_error");
    anthropic_overloaded: "anthropic-half-overloaded.sse" => Fails(Server, "broke the answer off: Overloaded");
    anthropic_error_in_an_error: "anthropic-error-nested.sse" => Fails(Server, "broke the answer off: Overloaded");
    anthropic_rate_limit: "anthropic-error-rate.sse" => Fails(RateLimit, "broke the answer off: slow down");
    anthropic_refused_request: "anthropic-error-request.sse" => Fails(InvalidRequest, "broke the answer off: no");
    anthropic_refused_key: "anthropic-error-key.sse" => Fails(Authentication, "invalid x-api-key");

    // The answer broke off.
    half_and_an_end: "openai-half-end.sse" => Fails(CutOff, "finish_reason is null");
    half_and_a_reset: "openai-half.reset.sse" => Fails(CutOff, "broke off: ");
    half_an_event: "openai-half-event.sse" => Fails(CutOff, "finish_reason is null");
    empty_reasons: "openai-finish-empty.sse" => Fails(CutOff, r#"finish_reason is """#);
    done_without_a_reason: "openai-done-no-reason.sse" => Fails(CutOff, "finish_reason is null");
    done_with_an_empty_reason: "openai-done-empty-reason.sse" => Fails(CutOff, r#"finish_reason is """#);
    stop_with_each_piece_and_a_reset: "openai-stop-each.reset.sse" => Fails(CutOff, "broke off: ");
    half_of_json_for_an_event_stream: "openai-json-half.sse" => Fails(CutOff, "broke off: ");
    anthropic_half_and_an_end: "anthropic-half-end.sse" => Fails(CutOff, "stop_reason is null");
    anthropic_half_and_a_reset: "anthropic-half.reset.sse" => Fails(CutOff, "broke off: ");
    anthropic_start_and_an_end: "anthropic-start-end.sse" => Fails(CutOff, "stop_reason is null");
    anthropic_start_and_a_reset: "anthropic-start.reset.sse" => Fails(CutOff, "broke off: ");
    anthropic_stop_null: "anthropic-stop-null.sse" => Fails(CutOff, "stop_reason is null");
    anthropic_stop_missing: "anthropic-stop-missing.sse" => Fails(CutOff, "stop_reason is null");
    anthropic_stop_empty: "anthropic-stop-empty.sse" => Fails(CutOff, r#"stop_reason is """#);

    // It never began.
    headers_and_a_reset: "openai-headers.reset.sse" => Fails(Connection, "before its answer began: ");
    headers_and_an_end: "openai-headers-end.sse" => Fails(Connection, "before its answer began");
    comments_and_a_reset: "openai-comments.reset.sse" => Fails(Connection, "only keep-alives came");
    anthropic_headers_and_a_reset: "anthropic-headers.reset.sse" => Fails(Connection, "before its answer began: ");
    anthropic_headers_and_an_end: "anthropic-headers-end.sse" => Fails(Connection, "before its answer began");
    anthropic_pings_alone: "anthropic-ping-only.sse" => Fails(Connection, "only keep-alives came");

    // It has no text, or is none.
    only_done: "openai-only-done.sse" => Fails(Protocol, "no text, it is empty (finish_reason is null)");
    only_thinking: "openai-reasoning-only.sse" => Fails(Protocol, "no text, only thinking");
    only_blanks: "openai-blank.sse" => Fails(Protocol, "no text, it is empty");
    no_json: "openai-no-json.sse" => Fails(Protocol, "<html>bye</html>");
    html_for_an_event_stream: "openai-html.sse" => Fails(Protocol, "<title>Sign in</title>");
    page: "openai-page.html" => Fails(Protocol, "200 with text/html");
    text: "openai-text.txt" => Fails(Protocol, "text/plain, which is neither JSON nor an event stream: upstream");
    anthropic_empty: "anthropic-empty.sse" => Fails(Protocol, "no text, it is empty");
    anthropic_only_thinking: "anthropic-thinking-only.sse" => Fails(Protocol, "no text, only thinking");
    anthropic_page: "anthropic-page.html" => Fails(Protocol, "<title>Sign in to the network</title>");
}
