//! The decision whether a call may run: pure deciders on one parsed view of the call.
//!
//! - [`parsed_call`] is the view of the call: the paths, the URL and the
//!   parts of the command ([`command`]).
//! - [`pattern`] compiles the patterns of rules (`path_pattern` for paths; `glob` matches). [`rule`] stores rules
//!   with their origin. [`permissions`] decides, and [`decision`] states the decision, the rule, and how to allow
//!   the call. `read_only` finds commands that only read.
//! - [`known_refusals`] is the port to tools that refuse a call in any case.
//! - [`policy`] decides about whole calls before the rules.
//! - [`path_resolver`] resolves paths ([`path_cache`] for one decision). Nothing else here accesses a disk.
//! - [`mod@llm_judge`] holds the request to the judge and the meaning of its verdict.
//! - [`approvals`] holds approvals for more than one call, [`mod@approval_options`] their part of the confirmation.
//! - [`limits`] combines the limits: [`quota`] (number of calls), [`anomaly`] (failing tools), [`utility`]
//!   (useless calls, by [`reputation`] and known results) and [`dependencies`] (tools that need others first).

pub mod anomaly;
pub mod approval_options;
pub mod approvals;
pub mod command;
pub mod config;
pub mod decision;
pub mod dependencies;
mod glob;
pub mod known_refusals;
pub mod limits;
pub mod llm_judge;
pub mod parsed_call;
pub mod path_cache;
#[cfg(feature = "file")]
pub(crate) mod path_globs;
pub mod path_pattern;
pub mod path_resolver;
pub mod pattern;
pub mod permissions;
pub mod policy;
#[cfg(feature = "shell")]
mod read_only;
#[cfg(not(feature = "shell"))]
#[path = "read_only_disabled.rs"]
mod read_only;
pub mod reputation;
pub mod rule;
#[cfg(test)]
mod tests;
pub mod utility;

/// The symbols of texts that rules are compared with.
#[cfg(feature = "shell")]
pub(crate) mod symbols {
    pub(crate) use super::glob::{BLANK, HOLE, Symbol, Text, fold};
}

pub use crate::contract::call_targets::{PathParam, PathRole, ToolTarget};
pub use crate::contract::confirmation::{ApprovalOptions, ApprovalProposal, DisplayPart, Grant};
pub use crate::contract::quota;
pub use approval_options::approval_options;
pub use approvals::propose;
pub use command::{CommandPart, CommandSubject, ParsedCommand, PartKind};
pub use decision::{CallPart, DecidedBy, Decision, Effect, PieceDecision};
pub use known_refusals::KnownRefusals;
pub use limits::CallLimits;
pub use parsed_call::{CallSubject, SubjectPath, subject_of};
pub use path_cache::CachedPathResolver;
pub use path_resolver::{FileSystem, PathResolver};
pub use pattern::{PatternError, PatternKind};
pub use permissions::{PermissionContext, decide};
#[cfg(all(feature = "policy-enforcer", feature = "shell"))]
pub(crate) use policy::{ReferencedPath, ReferencedPaths};
pub use rule::{Action, PermissionRule, Rule, RuleError, RuleOrigin, RuleSet, ToolRules};
