//! What was read of skills in a conversation that goes on.

use serde_json::Value;
use zeph_tools::skill::{INVOKE_SKILL, LOAD_SKILL, SkillRegistry};

use super::history::History;

/// Notes the skills that the calls in the window read: what they say is in it still.
pub(super) fn read_before(skills: &SkillRegistry, history: &History) {
    if skills.is_empty() {
        return;
    }
    let calls = history
        .messages()
        .iter()
        .flat_map(zeph_llm::Message::tool_uses);
    for call in calls.filter(|call| [LOAD_SKILL, INVOKE_SKILL].contains(&call.name.as_str())) {
        let name = call.input.get("name").and_then(Value::as_str);
        if let Some(skill) = name.and_then(|name| skills.get(name)) {
            skills.note_read(history.session(), skill);
        }
    }
}
