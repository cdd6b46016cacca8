//! The Messages API of Anthropic.
//! <https://platform.claude.com/docs/en/api/messages>

use fanfold::Usage;
use serde_json::{Value, json};

use crate::http::protocol::{Protocol, Reply, Turn, cost, tokens};
use crate::http::stop::{MESSAGES, Stops};
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
    const STOPS: &'static Stops = &MESSAGES;

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
            "content_block_start" => read(reply, event.get("content_block")),
            "content_block_delta" => read(reply, event.get("delta")),
            "message_delta" => {
                stop(reply, event.get("delta"));
                count(reply, event.get("usage"));
            }
            "message_stop" => reply.end(),
            // Ends of blocks, and what is yet to be invented.
            _ => {}
        }
    }

    fn whole(reply: &mut Reply, body: &Value) {
        let blocks = body.get("content").and_then(Value::as_array);
        blocks.into_iter().flatten().for_each(|block| read(reply, Some(block)));
        count(reply, body.get("usage"));
        stop(reply, Some(body));
    }
}

/// Reads a block, or a piece of one.
fn read(reply: &mut Reply, block: Option<&Value>) {
    let Some(block) = block else { return };
    match block["type"].as_str().unwrap_or_default() {
        "text" | "text_delta" => reply.say(block["text"].as_str().unwrap_or_default()),
        "thinking" | "thinking_delta" | "redacted_thinking" => reply.think(true),
        "tool_use" => reply.call(true),
        _ => {}
    }
}

fn stop(reply: &mut Reply, place: Option<&Value>) {
    let Some(place) = place else { return };
    // A refusal says more: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
    let detail = |name: &str| place.get("stop_details")?.get(name)?.as_str();
    if detail("type") == Some("refusal") {
        reply.decline(detail("explanation").unwrap_or_default());
        detail("category").into_iter().for_each(|category| reply.decline_as(category));
    }
    reply.stop::<Messages>(place.get("stop_reason"));
}

/// Counts are those of the whole answer so far; a later one may leave out what an earlier one said.
fn count(reply: &mut Reply, usage: Option<&Value>) {
    let Some(usage) = usage else { return };
    let [read, created] =
        ["cache_read_input_tokens", "cache_creation_input_tokens"].map(|name| tokens(usage, name));
    let all = tokens(usage, "input_tokens").saturating_add(read).saturating_add(created);
    let mut counted = Usage::new(all, tokens(usage, "output_tokens")).cached(read, created);
    counted.cost_usd = cost(usage);
    reply.count(counted);
}
