//! Chat completions, as OpenAI and those compatible with it speak them.
//! <https://platform.openai.com/docs/api-reference/chat>

use fanfold::Usage;
use serde_json::{Value, json};

use crate::failure::FailureKind;
use crate::http::protocol::{Protocol, Reply, Stop, Turn, tokens};
use crate::http::{ApiKey, HttpAgents, HttpError, closed};

/// A provider that asks any OpenAI-compatible API: OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and others.
///
/// Streams chat completions. Schemas go into `response_format` (`json_schema`), strict where the schema allows that.
/// `effort` becomes `reasoning_effort`, [`max_tokens`](HttpAgents::max_tokens) becomes `max_completion_tokens`.
///
/// ```no_run
/// use fanfold_agents::{ApiKey, OpenAi};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hosted = OpenAi::new(OpenAi::BASE_URL, Some(ApiKey::from_env("OPENAI_API_KEY")?))?.model("gpt-5-mini");
/// let local = OpenAi::new("http://localhost:11434/v1", None)?.model("qwen3");
/// # Ok(())
/// # }
/// ```
pub type OpenAi = HttpAgents<ChatCompletions>;

/// The protocol of [`OpenAi`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ChatCompletions;

impl HttpAgents<ChatCompletions> {
    /// OpenAI's own API.
    pub const BASE_URL: &str = "https://api.openai.com/v1";

    /// A provider for the API at this base URL, the part before `/chat/completions`.
    ///
    /// # Errors
    /// A URL that cannot be used, or would send the key unencrypted to another machine; no root certificates.
    pub fn new(base_url: &str, key: Option<ApiKey>) -> Result<Self, HttpError> {
        Self::at(base_url, key)
    }
}

impl Protocol for ChatCompletions {
    const NAME: &'static str = "openai";
    const OPERATION: &'static str = "chat/completions";
    const KEY: (&'static str, &'static str) = ("authorization", "Bearer ");
    const HEADERS: &'static [(&'static str, &'static str)] = &[];

    fn body(turn: &Turn<'_>) -> Value {
        let mut body = json!({
            "model": turn.model,
            "messages": [{"role": "user", "content": turn.prompt}],
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if let (Some(system), Some(messages)) = (turn.system, body["messages"].as_array_mut()) {
            messages.insert(0, json!({"role": "system", "content": system}));
        }
        if let Some(schema) = turn.schema {
            let strict = closed(schema, true);
            let format = json!({
                "name": "answer",
                "strict": strict.is_some(),
                "schema": strict.as_ref().unwrap_or(schema),
            });
            body["response_format"] = json!({"type": "json_schema", "json_schema": format});
        }
        if let Some(effort) = turn.effort {
            body["reasoning_effort"] = effort.into();
        }
        if let Some(tokens) = turn.max_tokens {
            body["max_completion_tokens"] = tokens.into();
        }
        body
    }

    fn event(reply: &mut Reply, event: &Value) {
        if let Some(choice) = event.pointer("/choices/0") {
            read(reply, choice, "delta");
        }
        // Some send it with every piece, counted up.
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            reply.usage =
                Some(Usage::new(tokens(usage, "prompt_tokens"), tokens(usage, "completion_tokens")));
        }
    }

    fn whole(reply: &mut Reply, body: &Value) {
        if let Some(choice) = body.pointer("/choices/0") {
            read(reply, choice, "message");
        }
    }

    fn stop(reason: &str) -> Stop {
        match reason {
            "length" => Stop::Early(FailureKind::Length, "the model reached its most tokens before the end"),
            "content_filter" => {
                Stop::Early(FailureKind::ContentFilter, "a content filter stopped the answer")
            }
            "tool_calls" | "function_call" => {
                Stop::Early(FailureKind::Protocol, "the model called a tool, and it was given none")
            }
            _ => Stop::Done,
        }
    }
}

/// Reads a choice, whose words are in a delta or a message.
fn read(reply: &mut Reply, choice: &Value, place: &str) {
    if let Some(said) = choice.get(place) {
        match said.get("content") {
            Some(Value::String(text)) => reply.text.push_str(text),
            // Some write texts in parts.
            Some(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                reply.text.extend(texts);
            }
            _ => {}
        }
        reply.refusal.push_str(said.get("refusal").and_then(Value::as_str).unwrap_or_default());
    }
    if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
        reply.stop = Some(reason.into());
    }
}
