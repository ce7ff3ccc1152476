#![doc = include_str!("../README.md")]
//! # Structure
//!
//! The *contract* (types, traits, registry, layers) is free of I/O and works without default features (a text too
//! long for memory is written to a temporary file). The tools themselves are features: `file`, `shell`, `web`.
//!
//! A call enters [`LayeredExecutor`], passes the layers in the order of [`layers::stack`], and reaches the
//! executor that owns it.

#![deny(missing_docs)]

pub mod audit;
pub mod cache;
pub mod composite;
mod contract;
pub mod gate;
pub mod layers;
pub mod overflow;
pub mod read_overflow;
pub mod retry;
pub mod selection;
pub mod skill;
pub mod undo;

// The crates whose types and macros a tool needs.
pub use async_trait::async_trait;
pub use schemars;
pub use serde;
pub use serde_json;

#[cfg(feature = "shell")]
pub mod diagnostics;
pub use zeph_secrets as secrets;
#[cfg(feature = "syntax")]
pub use zeph_symbols::{HighlightKind, Language, LineHighlighter};

#[cfg(feature = "file")]
pub mod file;
#[cfg(feature = "shell")]
pub mod filter;
#[cfg(feature = "shell")]
pub mod shell;
#[cfg(feature = "web")]
pub mod web;

pub use contract::call_targets::ToolTarget;
pub use contract::effective_trust::EffectiveTrust;
pub use contract::{
    argument_repair, call, call_hooks, category, confinement, confirmation, context, def,
    embedding_cache, error, event, executor, feedback, foreign_schema, function_tool, hidden, mcp,
    output, params, percent_encoding, permission_mode, plural, preview, provenance, question,
    read_tracking, registry, schema, tafc, tool_set, trust, user_terminal, words,
};
pub use selection::{dependency_graph, schema_filter};

pub use audit::{AuditConfig, AuditEntry, AuditError, AuditResult, AuditSink, AuditTrail};
pub use call::{Phase, ToolCall};
pub use category::{ToolErrorCategory, classify_http_status, classify_io_error};
pub use composite::{CompositeExecutor, DuplicateTool};
pub use confinement::{AccessPrompt, Confinement, SandboxAccess, SandboxProfile, SandboxSupport};
pub use confirmation::Confirmation;
pub use context::{ApprovedBy, AuditNotes, CallContext, Origin, UserDecision};
pub use def::{Annotations, Availability, InvocationHint, Risk, ToolDef};
pub use error::{ErrorKind, ToolError};
pub use event::{EventSink, NoEvents, OutputStream, RolledBack, ToolEvent};
pub use executor::{DynExecutor, ErasedToolExecutor, ExecutorResult, SkillEnv, ToolExecutor};
pub use feedback::{
    ErrorType, MachineForm, ResultFormat, ToolErrorFeedback, ToolResult, content_for_llm,
    format_for_llm,
};
pub use function_tool::FunctionTool;
pub use layers::permission::Permissions;
pub use layers::stack::StackParts;
pub use layers::{LayeredExecutor, stack};
pub use mcp::{McpError, McpErrorCode};
pub use output::{FileChange, FileLocation, FilterStats, ImageContent, OutputMetadata, ToolOutput};
pub use permission_mode::Mode;
pub use read_tracking::{ContentDigest, InMemoryReadLedger, ReadLedger, ReadLedgerError};
pub use registry::ToolRegistry;
pub use tool_set::{Tool, ToolGroup, ToolSet};
pub use trust::TrustLevel;
pub use undo::{RewindReport, Undo, UndoError, UndoJournal, UndoReport};
