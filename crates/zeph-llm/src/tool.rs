//! Tools for a provider: a name, a description, a schema.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name the model calls.
    pub name: String,
    /// The purpose of the tool and its limits.
    pub description: String,
    /// JSON Schema of the arguments: an object schema. Shared, never copied per request.
    pub parameters: Arc<Value>,
}

/// A call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUseRequest {
    /// The provider's id of the call; generated if the provider sends none.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments. An object if the model followed the protocol. Invalid JSON is [`Value::String`] with the
    /// unchanged text, so that the caller can report it.
    pub input: Value,
    /// Content that a server attached to the call and requires back unchanged, by the host of the
    /// server. Other servers may refuse it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_content: Option<Value>,
}

impl ToolUseRequest {
    /// A call without content of a server.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input,
            extra_content: None,
        }
    }
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The tools stay in the request (the cached prefix survives), but none may be called.
    None,
}
