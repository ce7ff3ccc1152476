//! The messages of a conversation, independent of any wire format.

use serde::{Deserialize, Serialize};

use crate::tool::ToolUseRequest;

/// The author of a message. Tool results are in a [`Role::User`] message, as in the Messages API; wires with a
/// separate role for them split such a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the results of the model's calls.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name under which the role is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// MIME type, `image/png` for one.
        media_type: String,
        /// The bytes in standard base64.
        data: String,
    },
    /// A call of the model.
    ToolUse(ToolUseRequest),
    /// The result of a call.
    ToolResult {
        /// The id of the [`ToolUseRequest`] with this result.
        tool_use_id: String,
        /// The text for the model.
        content: String,
        /// Whether the call failed or was refused.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// Reasoning that an API wants back unchanged.
    Reasoning {
        /// The reasoning as text; empty if the API encrypts it.
        text: String,
        /// Signature or sealed content, as the API gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<MessagePart>,
}

impl Message {
    /// A message of the user with one text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            parts: vec![MessagePart::Text { text: text.into() }],
        }
    }

    /// A message of the model with one text.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            parts: vec![MessagePart::Text { text: text.into() }],
        }
    }

    /// All text parts, joined without a separator.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                MessagePart::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The calls of this message, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUseRequest> {
        self.parts.iter().filter_map(|part| match part {
            MessagePart::ToolUse(request) => Some(request),
            _ => None,
        })
    }
}

/// The seal of reasoning that goes back to a server with its calls, before the host of the server. Other servers may
/// refuse a request with it.
pub(crate) const CHAT_REASONING: &str = "chat-reasoning:";

/// Whether a signature belongs to the exact text of its reasoning. Otherwise it names the server that gets the
/// reasoning back.
#[must_use]
pub fn signs_text(signature: &str) -> bool {
    !signature.starts_with(CHAT_REASONING)
}
