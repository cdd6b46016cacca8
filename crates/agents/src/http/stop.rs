//! Why models stop: the one place that knows how APIs and those compatible with them spell it.
//!
//! The lists are closed. An answer is whole only if the API gives a reason that is known to mean that; a reason that is
//! in no list is a failure, which names it.

use crate::failure::FailureKind;

/// What is wrong where a model calls a tool.
pub(super) const CALLED_A_TOOL: &str = "the model called a tool, and it was given none";

/// What a reason to stop means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The model had said everything.
    Done,
    /// It reached a limit before that.
    Length,
    /// It declined.
    Refusal,
    /// A content filter stopped it.
    Filtered,
    /// It called a tool and waits for what that gives.
    Tool,
    /// It paused, and waits to be told to go on.
    Paused,
    /// The API could not go on.
    Failed,
    /// Unknown: nothing says that the answer is whole.
    Unknown,
}

impl Stop {
    /// The kind of failure that it is, and what happened; `None` for [`Stop::Done`].
    pub(crate) const fn failure(self) -> Option<(FailureKind, &'static str)> {
        Some(match self {
            Self::Done => return None,
            Self::Length => (FailureKind::Length, "the model reached its most tokens before the end"),
            Self::Refusal => (FailureKind::Refusal, "the model declined"),
            Self::Filtered => (FailureKind::ContentFilter, "a content filter stopped the answer"),
            Self::Tool => (FailureKind::Protocol, CALLED_A_TOOL),
            Self::Paused => (FailureKind::Protocol, "the model paused before the end, to be asked to go on"),
            Self::Failed => (FailureKind::Server, "the API failed in the midst of the answer"),
            Self::Unknown => (FailureKind::Protocol, "the answer stopped for a reason that is not known"),
        })
    }
}

/// The reasons of an API.
#[derive(Debug)]
pub(crate) struct Stops {
    /// The field that holds the reason.
    pub(crate) field: &'static str,
    /// Reasons in lower case, and what they mean.
    reasons: &'static [(&'static str, Stop)],
}

impl Stops {
    /// What a reason means, in upper or lower case. What follows a colon is a detail:
    /// `content_filter: RECITATION`.
    pub(crate) fn classify(&self, reason: &str) -> Stop {
        let reason = reason.trim().to_ascii_lowercase();
        let (name, detail) = reason.split_once(':').unwrap_or((&reason, ""));
        match self.reasons.iter().find(|(known, _)| *known == name) {
            Some((_, Stop::Done)) if !detail.is_empty() => Stop::Unknown,
            Some((_, stop)) => *stop,
            None => Stop::Unknown,
        }
    }
}

/// Chat completions of OpenAI, and what servers and gateways that speak like it pass on: Azure, Gemini, Mistral,
/// DeepSeek, GLM, OpenRouter, vLLM, SGLang, Text Generation Inference, and gateways to Anthropic, Cohere and Bedrock.
/// - <https://platform.openai.com/docs/api-reference/chat/object>
/// - <https://ai.google.dev/api/generate-content#FinishReason>, which its OpenAI endpoint gives after `content_filter:`
///   or `function_call_filter:`, and gateways as they are
/// - <https://docs.mistral.ai/api>, <https://api-docs.deepseek.com/api/create-chat-completion>,
///   <https://docs.bigmodel.cn/api-reference>, <https://openrouter.ai/docs/api-reference/overview>
pub(crate) const CHAT_COMPLETIONS: Stops = Stops {
    field: "finish_reason",
    reasons: &[
        ("stop", Stop::Done),
        ("eos", Stop::Done),
        ("eos_token", Stop::Done),
        ("stop_sequence", Stop::Done),
        ("end_turn", Stop::Done),
        ("complete", Stop::Done),
        ("length", Stop::Length),
        ("max_tokens", Stop::Length),
        ("max_output_tokens", Stop::Length),
        ("model_length", Stop::Length),
        ("model_context_window_exceeded", Stop::Length),
        ("error_limit", Stop::Length),
        ("refusal", Stop::Refusal),
        ("content_filter", Stop::Filtered),
        ("content_filtered", Stop::Filtered),
        ("safety", Stop::Filtered),
        ("recitation", Stop::Filtered),
        ("blocklist", Stop::Filtered),
        ("prohibited_content", Stop::Filtered),
        ("spii", Stop::Filtered),
        ("language", Stop::Filtered),
        ("model_armor", Stop::Filtered),
        ("sensitive", Stop::Filtered),
        ("guardrail_intervened", Stop::Filtered),
        ("error_toxic", Stop::Filtered),
        ("tool_calls", Stop::Tool),
        ("function_call", Stop::Tool),
        ("tool_use", Stop::Tool),
        ("function_call_filter", Stop::Tool),
        ("malformed_function_call", Stop::Tool),
        ("unexpected_tool_call", Stop::Tool),
        ("pause_turn", Stop::Paused),
        ("error", Stop::Failed),
        ("abort", Stop::Failed),
        ("aborted", Stop::Failed),
        ("insufficient_system_resource", Stop::Failed),
        ("network_error", Stop::Failed),
    ],
};

/// The Messages API. <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>
pub(crate) const MESSAGES: Stops = Stops {
    field: "stop_reason",
    reasons: &[
        ("end_turn", Stop::Done),
        ("stop_sequence", Stop::Done),
        ("max_tokens", Stop::Length),
        ("model_context_window_exceeded", Stop::Length),
        ("refusal", Stop::Refusal),
        ("content_filter", Stop::Filtered),
        ("content_filtered", Stop::Filtered),
        ("guardrail_intervened", Stop::Filtered),
        ("sensitive", Stop::Filtered),
        ("tool_use", Stop::Tool),
        ("pause_turn", Stop::Paused),
        ("error", Stop::Failed),
        ("network_error", Stop::Failed),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_means_the_same_in_either_case_and_with_a_detail() {
        for (reason, stop) in [
            ("stop", Stop::Done),
            ("STOP", Stop::Done),
            ("MAX_TOKENS", Stop::Length),
            ("SAFETY", Stop::Filtered),
            ("content_filter: RECITATION", Stop::Filtered),
            ("function_call_filter: MALFORMED_FUNCTION_CALL", Stop::Tool),
            ("OTHER", Stop::Unknown),
            ("FINISH_REASON_UNSPECIFIED", Stop::Unknown),
            ("stopped", Stop::Unknown),
            ("stop: half", Stop::Unknown),
            ("load", Stop::Unknown),
            ("null", Stop::Unknown),
            (":", Stop::Unknown),
            ("", Stop::Unknown),
        ] {
            assert_eq!(CHAT_COMPLETIONS.classify(reason), stop, "{reason}");
        }
        for (reason, stop) in [
            ("end_turn", Stop::Done),
            ("pause_turn", Stop::Paused),
            ("compaction", Stop::Unknown),
            ("banana", Stop::Unknown),
        ] {
            assert_eq!(MESSAGES.classify(reason), stop, "{reason}");
        }
    }

    #[test]
    fn only_a_whole_answer_is_no_failure() {
        use Stop::{Done, Failed, Filtered, Length, Paused, Refusal, Tool, Unknown};
        for stop in [Done, Length, Refusal, Filtered, Tool, Paused, Failed, Unknown] {
            assert_eq!(stop.failure().is_none(), stop == Done, "{stop:?}");
        }
    }

    #[test]
    fn the_documentation_lists_every_reason() {
        let document = include_str!("../../../../docs/agents.md");
        let listed = |stops: &Stops, stop: Stop| {
            let reasons = stops.reasons.iter().filter(|(_, known)| *known == stop);
            reasons.map(|(reason, _)| format!("`{reason}`")).collect::<Vec<_>>().join(", ")
        };
        for (stop, means) in [
            (Stop::Done, "the answer is whole"),
            (Stop::Length, "`length`"),
            (Stop::Refusal, "`refusal`"),
            (Stop::Filtered, "`contentFilter`"),
            (Stop::Tool, "`protocol`: a tool was called"),
            (Stop::Paused, "`protocol`: it paused"),
            (Stop::Failed, "`server`"),
        ] {
            let row =
                format!("| {means} | {} | {} |\n", listed(&CHAT_COMPLETIONS, stop), listed(&MESSAGES, stop));
            assert!(document.contains(&row), "docs/agents.md lacks the row\n{row}");
        }
    }
}
