#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
//! # Structure
//! - [`kind`]: the table from a tool's id to the kind of work it does.
//! - [`notify`]: the messages that announce a tool call and report its progress.

pub mod kind;
pub mod notify;

pub use kind::ToolKind;
pub use notify::{
    ContentBlock, SessionNotification, SessionUpdate, ToolCall, ToolCallContent, ToolCallId,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate,
};
