//! What an agent says while it works on a prompt: its answer so far, and the tools it calls.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{ToolCallUpdate, ToolKind};
use serde_json::Value;

use crate::halves;

/// Tools whose kind is remembered. An agent with more is told what those of unknown kind are told.
const MAX_TOOLS: usize = 1000;
/// The longest id of a tool call that is kept, in bytes: a longer one is told, and its kind is not known later.
const MAX_TOOL_ID: usize = 256;

/// What an agent said or did in one update.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Text(String),
    Reasoning(String),
    /// It called a tool of this name.
    Tool(String),
    Nothing,
}

/// What was said so far. Halves of characters are [kept](halves::kept) until the answer is taken.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// What the agent said since its last call of a tool.
    text: String,
    /// What it said before that.
    before: String,
    tools: HashMap<String, ToolKind>,
}

impl Updates {
    /// Takes the parameters of a `session/update`, and gives what the agent said or did. Kinds of updates that are not
    /// known here are passed over.
    ///
    /// # Errors
    /// What is wrong with a piece of the answer: it must not be passed over.
    pub(super) fn take_in(&mut self, params: &Value) -> Result<Said, &'static str> {
        let update = params.get("update").unwrap_or(&Value::Null);
        let text_of = |name: &str| update.get(name).and_then(Value::as_str);
        match text_of("sessionUpdate") {
            Some("agent_message_chunk") => {
                let content = update.get("content").ok_or("a piece of the answer has no content")?;
                match content.get("type").and_then(Value::as_str) {
                    Some("text") => {
                        let text = content.get("text").and_then(Value::as_str);
                        let text = text.ok_or("a piece of the answer has no text")?;
                        self.text.push_str(text);
                        return Ok(Said::Text(halves::joined(text).into_owned()));
                    }
                    // Pictures, sound, and links: nothing that a script could use.
                    Some(_) => {}
                    None => return Err("a piece of the answer has no type"),
                }
            }
            // What was said before a tool is called is talk about the work, not its result.
            Some("tool_call") => {
                if !self.text.trim().is_empty() {
                    self.before = std::mem::take(&mut self.text);
                }
                if let Some(id) =
                    text_of("toolCallId").filter(|id| self.tools.len() < MAX_TOOLS && id.len() <= MAX_TOOL_ID)
                {
                    let kind = update.get("kind").cloned().and_then(|kind| serde_json::from_value(kind).ok());
                    self.tools.insert(halves::joined(id).into_owned(), kind.unwrap_or_default());
                }
                let name = ["title", "kind", "toolCallId"].into_iter().find_map(text_of);
                return Ok(Said::Tool(halves::joined(name.unwrap_or("a tool")).into_owned()));
            }
            Some("agent_thought_chunk") => {
                let text = update.pointer("/content/text").and_then(Value::as_str);
                return Ok(Said::Reasoning(halves::joined(text.unwrap_or_default()).into_owned()));
            }
            Some(_) => {}
            None => return Err("an update says nothing of its kind"),
        }
        Ok(Said::Nothing)
    }

    /// How long the answer is so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The kind of a tool that wants permission: its own words, else what was said when it was called.
    pub(super) fn kind(&self, call: &ToolCallUpdate) -> ToolKind {
        let told = || self.tools.get(&*call.tool_call_id.0).copied();
        call.fields.kind.or_else(told).unwrap_or_default()
    }

    /// The last thing that the agent said, and forgets it.
    pub(super) fn take(&mut self) -> String {
        let (text, before) = (std::mem::take(&mut self.text), std::mem::take(&mut self.before));
        halves::joined(if text.trim().is_empty() { &before } else { &text }).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(updates: &mut Updates, text: &str) {
        let content = json!({"type": "text", "text": text});
        let update = json!({"update": {"sessionUpdate": "agent_message_chunk", "content": content}});
        assert_eq!(updates.take_in(&update).unwrap(), Said::Text(text.into()));
    }

    fn calls(updates: &mut Updates) {
        let call =
            json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "tool", "kind": "search"});
        assert_eq!(updates.take_in(&json!({"update": call})).unwrap(), Said::Tool("tool".into()));
    }

    #[test]
    fn the_answer_is_what_was_said_last() {
        let mut updates = Updates::default();
        says(&mut updates, "Let me ");
        says(&mut updates, "look.");
        calls(&mut updates);
        says(&mut updates, "It is 4");
        says(&mut updates, "2.");
        assert_eq!(updates.take(), "It is 42.");
        says(&mut updates, "Done.");
        calls(&mut updates);
        says(&mut updates, "\n");
        calls(&mut updates);
        assert_eq!(updates.take(), "Done.", "work afterwards does not undo the answer");
        assert_eq!(updates.take(), "");
    }

    #[test]
    fn a_tool_is_of_the_kind_that_was_told_last() {
        let mut updates = Updates::default();
        let mut call = ToolCallUpdate::new("t", Default::default());
        assert_eq!(updates.kind(&call), ToolKind::Other);
        calls(&mut updates);
        assert_eq!(updates.kind(&call), ToolKind::Search);
        call.fields.kind = Some(ToolKind::Delete);
        assert_eq!(updates.kind(&call), ToolKind::Delete);
    }

    #[test]
    fn a_piece_of_the_answer_is_never_passed_over() {
        let update = |update: Value| Updates::default().take_in(&json!({"sessionId": "s", "update": update}));
        for wrong in [
            json!(null),
            json!({}),
            json!({"sessionUpdate": "agent_message_chunk"}),
            json!({"sessionUpdate": "agent_message_chunk", "content": "text"}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 1}}),
        ] {
            assert!(update(wrong.clone()).is_err(), "{wrong}");
        }
        let image = json!({"type": "image", "data": ""});
        let thought = json!({"type": "text", "text": "hm"});
        for (other, said) in [
            (json!({"sessionUpdate": "agent_message_chunk", "content": image}), Said::Nothing),
            (
                json!({"sessionUpdate": "agent_thought_chunk", "content": thought}),
                Said::Reasoning("hm".into()),
            ),
            (json!({"sessionUpdate": "tool_call"}), Said::Tool("a tool".into())),
            (json!({"sessionUpdate": "yet_to_be_invented", "x": 1}), Said::Nothing),
        ] {
            assert_eq!(update(other.clone()), Ok(said), "{other}");
        }
    }
}
