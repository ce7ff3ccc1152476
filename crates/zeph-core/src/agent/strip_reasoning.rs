//! What a model reasoned in the arguments of a call is taken out before anything keeps the call.

use std::collections::HashSet;

use serde_json::{Map, Value};
use zeph_llm::{Message, MessagePart};
use zeph_tools::ToolRegistry;
use zeph_tools::tafc::{Stripped, strip_tafc_fields};

/// What the model reads in the place of a result.
pub(super) const ONLY_REASONING: &str = "Only reasoning came, and no arguments: nothing was run. Call the tool again with its arguments.";

/// `message` without the reasoning, and the ids of the calls that held nothing else. A tool without
/// parameters needs none: its call is made.
pub(super) fn strip_reasoning(
    mut message: Message,
    registry: &ToolRegistry,
) -> (Message, HashSet<String>) {
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
    (message, skipped)
}

fn takes_arguments(registry: &ToolRegistry, tool: &str) -> bool {
    let properties = registry.get(tool).map(|def| &def.parameters["properties"]);
    properties
        .and_then(Value::as_object)
        .is_some_and(|properties| !properties.is_empty())
}
