//! The contract of the tool system: the types and traits that tools, layers and channels share.
//!
//! - A call: [`call`], [`call_key`], [`def`] (the definition of a tool), [`call_path`], [`call_targets`] (the parameters that rules
//!   compare), [`schema`], [`params`] (check and repair of arguments), [`foreign_schema`] (JSON Schemas of MCP
//!   servers), [`tafc`].
//! - A result: [`output`], [`error`], [`category`] (the error taxonomy), [`feedback`] (error text for the model),
//!   [`preview`], [`confirmation`], [`cache_validity`].
//! - The execution: [`executor`] (the two traits), [`tool_set`], [`function_tool`], [`registry`], [`context`], [`extensions`], [`event`],
//!   [`permission_mode`], [`confinement`] (the sandbox of a command), [`trust`], [`effective_trust`], [`quota`],
//!   [`judge_decision`], [`time`].
//! - Ports: [`argument_repair`], [`call_hooks`] (programs of the user), [`embedding_cache`], [`read_tracking`], [`question`] (questions of MCP servers).
//!
//! It has no I/O, and depends on no other folder except the data types of [`crate::overflow`].

pub mod argument_repair;
pub(crate) mod cache_policy;
pub mod cache_validity;
pub mod call;
pub mod call_hooks;
pub mod call_key;
pub mod call_path;
pub mod call_targets;
pub mod category;
pub mod confinement;
pub mod confirmation;
pub mod context;
pub mod def;
pub mod effective_trust;
pub mod embedding_cache;
pub mod error;
pub mod event;
pub mod executor;
pub mod extensions;
pub mod feedback;
pub mod foreign_schema;
pub mod function_tool;
pub mod hidden;
pub(crate) mod json_pointer;
pub mod judge_decision;
pub mod mcp;
pub mod output;
pub mod params;
pub mod percent_encoding;
pub mod permission_mode;
pub mod plural;
pub mod preview;
pub mod provenance;
pub mod question;
pub mod quota;
pub mod read_tracking;
pub mod registry;
pub mod schema;
pub mod tafc;
pub mod time;
pub mod tool_set;
pub mod trust;
pub mod user_terminal;
pub mod words;
