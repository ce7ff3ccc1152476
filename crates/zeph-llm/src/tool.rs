//! Tools as a provider sees them: a name, a description, a schema.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name the model calls.
    pub name: String,
    /// When to use it and when not.
    pub description: String,
    /// JSON Schema of the arguments: an object schema. Shared, never copied per request.
    pub parameters: Arc<Value>,
}

/// A call the model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUseRequest {
    /// The provider's id of the call; made up where the provider gives none.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments. An object where the model kept to the protocol; when the arguments were no
    /// JSON, [`Value::String`] with the text as it came, so that the caller can say so.
    pub input: Value,
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
