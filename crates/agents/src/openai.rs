//! Chat completions, as OpenAI and those compatible with it speak them.
//! <https://platform.openai.com/docs/api-reference/chat>

use fanfold::Usage;
use serde_json::{Value, json};

use crate::http::protocol::{Protocol, Reply, Turn, cost, tokens};
use crate::http::stop::{CHAT_COMPLETIONS, Stops};
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
    const STOPS: &'static Stops = &CHAT_COMPLETIONS;

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
        if let Some(choice) = first_choice(event) {
            read(reply, choice, "delta");
        }
        count(reply, event);
    }

    fn whole(reply: &mut Reply, body: &Value) {
        if let Some(choice) = first_choice(body) {
            read(reply, choice, "message");
        }
        count(reply, body);
    }
}

/// The choice that is read: one is asked for, and a server that gives more says which piece belongs to which.
fn first_choice(place: &Value) -> Option<&Value> {
    let choices = place.get("choices")?.as_array()?;
    choices.iter().find(|choice| choice.get("index").is_none_or(|index| index.is_null() || index == 0))
}

/// Reads a choice, whose words are in a delta or a message.
fn read(reply: &mut Reply, choice: &Value, place: &str) {
    // Some always send every field.
    let filled = |value: Option<&Value>| match value {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => fields.values().any(|field| !field.is_null() && field != ""),
        _ => false,
    };
    if let Some(said) = choice.get(place) {
        match said.get("content") {
            Some(Value::String(text)) => reply.say(text),
            // Some write texts in parts, and what the model thought among them.
            Some(Value::Array(parts)) => parts.iter().for_each(|part| match part["type"].as_str() {
                Some("text" | "output_text") | None => reply.say(part["text"].as_str().unwrap_or_default()),
                Some("refusal") => reply.decline(part["refusal"].as_str().unwrap_or_default()),
                Some(_) => reply.think(true),
            }),
            _ => {}
        }
        reply.decline(said.get("refusal").and_then(Value::as_str).unwrap_or_default());
        let thinking = ["reasoning_content", "reasoning", "reasoning_details"];
        reply.think(thinking.iter().any(|name| filled(said.get(name))));
        reply.call(["tool_calls", "function_call"].iter().any(|name| filled(said.get(name))));
    }
    reply.stop::<ChatCompletions>(choice.get("finish_reason"));
}

/// Counts what an event or a body tells. Some send it with every piece, counted up; Moonshot sends it with the choice,
/// Groq in a place of its own.
fn count(reply: &mut Reply, place: &Value) {
    let places = ["/usage", "/choices/0/usage", "/x_groq/usage"].iter().filter_map(|at| place.pointer(at));
    for usage in places.filter(|usage| usage.is_object()) {
        let most = |names: &[&str]| {
            let details = usage.get("prompt_tokens_details").unwrap_or(&Value::Null);
            names.iter().map(|name| tokens(usage, name).max(tokens(details, name))).max().unwrap_or_default()
        };
        // OpenAI, Moonshot (outside of the details), DeepSeek, gateways to Anthropic.
        let read = most(&["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"]);
        // OpenRouter, gateways to Anthropic.
        let created = most(&["cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens"]);
        let parts = read.saturating_add(created.max(tokens(usage, "prompt_cache_miss_tokens")));
        let all = tokens(usage, "prompt_tokens").max(parts);
        let mut counted = Usage::new(all, tokens(usage, "completion_tokens")).cached(read, created);
        counted.cost_usd = cost(usage);
        reply.count(counted);
    }
}
