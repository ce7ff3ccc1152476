//! Removal of the reasoning field from the arguments of calls, before the calls are stored.

use std::collections::HashSet;

use serde_json::{Map, Value};
use zeph_llm::{Message, MessagePart, ToolUseRequest};
use zeph_tools::ToolRegistry;
use zeph_tools::tafc::{Stripped, strip_tafc_fields};

/// The result of a call that held only reasoning.
pub(super) const ONLY_REASONING: &str = "The call had only reasoning and no arguments, so it did \
    not run. Call the tool again with its arguments.";

/// The calls of one response, in order.
pub(super) struct ResponseCalls {
    /// All of them.
    pub(super) requests: Vec<ToolUseRequest>,
    /// The ids of calls that held only reasoning. They are not run.
    pub(super) skipped: HashSet<String>,
}

impl ResponseCalls {
    /// The calls that are run.
    pub(super) fn runnable(&self) -> impl Iterator<Item = &ToolUseRequest> {
        let requests = self.requests.iter();
        requests.filter(|request| !self.skipped.contains(&request.id))
    }
}

/// Returns `message` without reasoning in arguments, and its calls. A call of a tool without parameters is never skipped,
/// because it needs no arguments.
pub(super) fn strip_reasoning(
    mut message: Message,
    registry: &ToolRegistry,
) -> (Message, ResponseCalls) {
    let mut skipped = HashSet::new();
    for part in &mut message.parts {
        let MessagePart::ToolUse(request) = part else {
            continue;
        };
        request.input = match strip_tafc_fields(std::mem::take(&mut request.input)) {
            Stripped::Arguments(arguments) => arguments,
            Stripped::OnlyReasoning => {
                if takes_arguments(registry, &request.name) {
                    skipped.insert(request.id.clone());
                }
                Value::Object(Map::new())
            }
        };
    }
    let requests = message.tool_uses().cloned().collect();
    (message, ResponseCalls { requests, skipped })
}

fn takes_arguments(registry: &ToolRegistry, tool: &str) -> bool {
    let properties = registry.get(tool).map(|def| &def.parameters["properties"]);
    properties
        .and_then(Value::as_object)
        .is_some_and(|properties| !properties.is_empty())
}
