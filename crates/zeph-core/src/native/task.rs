//! `task`: a prompt for a sub-agent.

use std::borrow::Cow;
use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use zeph_tools::{Annotations, CallContext, Tool, ToolCall, ToolDef, ToolError, ToolOutput};

use crate::sub_agent_port::{SubAgentRequest, SubAgentSlot};

/// The id of the tool.
pub const TASK: &str = "task";
/// Bytes of all names and descriptions of agents in the definition. More would fill each request.
const MAX_LIST_BYTES: usize = 1024;
/// Characters of the description of one agent in the definition.
const MAX_DESCRIPTION_CHARS: usize = 120;

/// The parameters of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// A few words for the user.
    #[allow(dead_code, reason = "the channels show it")]
    description: String,
    /// All that the sub-agent needs to know.
    prompt: String,
    /// An agent's name.
    #[serde(default)]
    agent: Option<String>,
}

/// The tool `task`, which runs a prompt in a separate session and returns the last text of that session.
pub struct Task {
    def: ToolDef,
}

impl Task {
    /// The tool with these agents: names and descriptions.
    #[must_use]
    pub fn new<'a>(agents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        // It changes nothing itself: every call of the sub-agent is judged.
        let mut def = ToolDef::new::<Params>(TASK, "", Annotations::SESSION_STATE);
        def.description = Cow::Owned(description(agents));
        Self { def }
    }
}

fn description<'a>(agents: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = "Run a prompt in a separate session; returns its last text. \
                    For work with details you do not need. Agents:"
        .to_owned();
    let start = text.len();
    for (name, description) in agents {
        let short: String = description.chars().take(MAX_DESCRIPTION_CHARS).collect();
        if text.len() - start + name.len() + short.len() > MAX_LIST_BYTES {
            text.push_str(" …");
            break;
        }
        let separator = if text.len() == start { "" } else { ";" };
        let _ = write!(text, "{separator} {name}: {short}");
    }
    text
}

#[async_trait]
impl Tool for Task {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let Params { prompt, agent, .. } = call.parse()?;
        let slot = cx.extensions().get::<SubAgentSlot>();
        let starter = slot.get().ok_or_else(|| {
            ToolError::permanent(
                "only the model of a conversation can call `task`; start a conversation with \
                 `zeph` or `zeph -p`",
            )
        })?;
        if prompt.trim().is_empty() {
            return Err(ToolError::invalid("/prompt is empty"));
        }
        starter
            .run(SubAgentRequest { agent, prompt }, call, cx)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-12: the definition is short, also with many agents.
    #[test]
    fn definition_of_the_tool_is_short() {
        let size = |tool: &Task| tool.def.description.len() + tool.def.parameters.to_string().len();
        let long = "x".repeat(500);
        let many = (0..50).map(|_| ("agent", long.as_str()));
        assert!(size(&Task::new([("explore", "searches and reads")])) < 600);
        assert!(size(&Task::new(many)) < 1700);
    }
}
