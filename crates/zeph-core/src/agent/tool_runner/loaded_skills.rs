//! The skills that the calls of a stored conversation loaded. Pure.
//!
//! Compaction removes calls from the window, but the summary may contain their text. So all
//! messages count.

use std::collections::HashMap;

use serde_json::Value;
use zeph_llm::MessagePart;
use zeph_memory::StoredMessage;
use zeph_tools::skill::{INVOKE_SKILL, LOAD_SKILL};

/// The names of the skills that successful calls in `messages` loaded, in order. `None` is a skill
/// without a readable name.
pub(super) fn loaded_skills(messages: &[StoredMessage]) -> Vec<Option<String>> {
    let mut loaded = Vec::new();
    let mut open: HashMap<String, Option<String>> = HashMap::new();
    for message in messages {
        let Ok(parts) = serde_json::from_str::<Vec<MessagePart>>(&message.content) else {
            // A damaged message may have loaded any skill.
            loaded.push(None);
            continue;
        };
        for part in parts {
            match part {
                MessagePart::ToolUse(call)
                    if [LOAD_SKILL, INVOKE_SKILL].contains(&call.name.as_str()) =>
                {
                    let name = call.input.get("name").and_then(Value::as_str);
                    open.insert(call.id, name.map(str::to_owned));
                }
                MessagePart::ToolResult {
                    tool_use_id,
                    is_error: false,
                    ..
                } => loaded.extend(open.remove(&tool_use_id)),
                _ => {}
            }
        }
    }
    loaded
}
