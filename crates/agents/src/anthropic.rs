//! The Messages API of Anthropic.
//! <https://platform.claude.com/docs/en/api/messages>

use fanfold::Usage;
use serde_json::{Value, json};

use crate::failure::FailureKind;
use crate::http::protocol::{Protocol, Reply, Stop, Turn, tokens};
use crate::http::{ApiKey, HttpAgents, HttpError, closed};

/// The API wants to be told.
const MAX_TOKENS: u32 = 16_384;

/// A provider that asks Claude, by the Messages API.
///
/// Streams. Schemas go into `output_config.format` where the API can take them. `effort` becomes
/// `output_config.effort`. [`max_tokens`](HttpAgents::max_tokens) is 16,384 by default.
///
/// ```no_run
/// use fanfold_agents::{Anthropic, ApiKey};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let key = ApiKey::from_env("ANTHROPIC_API_KEY")?;
/// let agents = Anthropic::new(Anthropic::BASE_URL, Some(key))?.model("claude-sonnet-4-6");
/// # Ok(())
/// # }
/// ```
pub type Anthropic = HttpAgents<Messages>;

/// The protocol of [`Anthropic`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Messages;

impl HttpAgents<Messages> {
    /// Anthropic's own API.
    pub const BASE_URL: &str = "https://api.anthropic.com/v1";

    /// A provider for the API at this base URL, the part before `/messages`.
    ///
    /// # Errors
    /// A URL that cannot be used, or would send the key unencrypted to another machine; no root certificates.
    pub fn new(base_url: &str, key: Option<ApiKey>) -> Result<Self, HttpError> {
        Self::at(base_url, key)
    }
}

impl Protocol for Messages {
    const NAME: &'static str = "anthropic";
    const OPERATION: &'static str = "messages";
    const KEY: (&'static str, &'static str) = ("x-api-key", "");
    const HEADERS: &'static [(&'static str, &'static str)] = &[("anthropic-version", "2023-06-01")];

    fn body(turn: &Turn<'_>) -> Value {
        let mut body = json!({
            "model": turn.model,
            "max_tokens": turn.max_tokens.unwrap_or(MAX_TOKENS),
            "messages": [{"role": "user", "content": turn.prompt}],
            "stream": true,
        });
        if let Some(system) = turn.system {
            body["system"] = system.into();
        }
        if let Some(schema) = turn.schema.and_then(|schema| closed(schema, false)) {
            body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema});
        }
        if let Some(effort) = turn.effort {
            body["output_config"]["effort"] = effort.into();
        }
        body
    }

    fn event(reply: &mut Reply, event: &Value) {
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => count(reply, event.pointer("/message/usage")),
            "content_block_start" => {
                reply.text.push_str(text_of(event.get("content_block")));
            }
            "content_block_delta" => {
                reply.text.push_str(text_of(event.get("delta")));
            }
            "message_delta" => {
                stop(reply, event.get("delta"));
                count(reply, event.get("usage"));
            }
            "message_stop" => reply.complete = true,
            // Pings, ends of blocks, and what is yet to be invented.
            _ => {}
        }
    }

    fn whole(reply: &mut Reply, body: &Value) {
        let blocks = body.get("content").and_then(Value::as_array);
        reply.text.extend(blocks.into_iter().flatten().map(|block| text_of(Some(block))));
        count(reply, body.get("usage"));
        stop(reply, Some(body));
    }

    fn stop(reason: &str) -> Stop {
        match reason {
            "max_tokens" => Stop::Early(FailureKind::Length, "the model reached maxTokens before the end"),
            "model_context_window_exceeded" => {
                Stop::Early(FailureKind::Length, "the model's context was full before the end")
            }
            "refusal" => Stop::Early(FailureKind::Refusal, "the model declined"),
            "tool_use" | "pause_turn" => {
                Stop::Early(FailureKind::Protocol, "the model called a tool, and it was given none")
            }
            _ => Stop::Done,
        }
    }
}

/// The text of a block or of a piece of one; thinking is not part of the answer.
fn text_of(block: Option<&Value>) -> &str {
    let is_text = |block: &&Value| matches!(block["type"].as_str(), Some("text" | "text_delta"));
    block.filter(is_text).and_then(|block| block.get("text")?.as_str()).unwrap_or_default()
}

fn stop(reply: &mut Reply, place: Option<&Value>) {
    if let Some(reason) = place.and_then(|place| place.get("stop_reason")?.as_str()) {
        reply.stop = Some(reason.into());
    }
}

/// Counts are those of the whole answer so far; a later one may leave out what an earlier one said.
fn count(reply: &mut Reply, usage: Option<&Value>) {
    let Some(usage) = usage else { return };
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let read = read.iter().map(|name| tokens(usage, name)).fold(0, u64::saturating_add);
    let before = reply.usage.unwrap_or_default();
    let written = tokens(usage, "output_tokens");
    reply.usage = Some(Usage::new(read.max(before.input_tokens), written.max(before.output_tokens)));
}
