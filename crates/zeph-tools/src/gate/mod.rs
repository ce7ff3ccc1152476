//! Whether a call may run: pure deciders on one parsed view of it.
//!
//! [`call_targets`] names the parameters that matter, [`parsed_call`] is that view: the paths, the parts of the command ([`command`]), the URL of a call. [`pattern`] compiles
//! what rules say of them (`path_pattern` of paths, `glob` does the matching), [`rule`] keeps rules with the places where they
//! were written, [`permissions`] decides, and [`decision`] says what was decided, by what, and what
//! would have allowed it. [`policy`] decides before, about whole calls. [`path_resolver`] is where paths are made
//! real ([`path_cache`]: for one decision); nothing else here looks at a disk. [`llm_judge`] is what a model is asked about a call, and
//! what its answer means. [`approvals`] is what a person agreed to for more than one call, [`approval_options`] what a
//! question shows of it.
//!
//! What limits calls: [`quota`] (how many), [`anomaly`] (tools that fail too often), [`utility`] (calls
//! of no use, by [`reputation`] and what is known already), [`dependencies`] (tools that need others first);
//! [`limits`] holds them together.

pub mod anomaly;
pub mod approval_options;
pub mod approvals;
pub mod call_targets;
pub mod command;
pub mod config;
pub mod decision;
pub mod dependencies;
mod glob;
pub mod limits;
pub mod llm_judge;
pub mod parsed_call;
pub mod path_cache;
pub mod path_pattern;
pub mod path_resolver;
pub mod pattern;
pub mod permissions;
pub mod policy;
pub mod quota;
pub mod reputation;
pub mod rule;
#[cfg(test)]
mod tests;
pub mod utility;

/// What texts are made of when rules look at them.
#[cfg(feature = "shell")]
pub(crate) mod symbols {
    pub(crate) use super::glob::{BLANK, HOLE, Symbol, Text, fold};
}

pub use approval_options::{ApprovalOptions, DisplayPart};
pub use approvals::{ApprovalProposal, Grant, propose};
pub use call_targets::{PathParam, PathRole, ToolTarget};
pub use command::{CommandPart, CommandSubject, ParsedCommand, PartKind};
pub use decision::{CallPart, DecidedBy, Decision, Effect, PieceDecision};
pub use limits::CallLimits;
pub use parsed_call::{CallSubject, SubjectPath, subject_of};
pub use path_cache::CachedPathResolver;
pub use path_resolver::{FileSystem, PathResolver};
pub use pattern::{PatternError, PatternKind};
pub use permissions::{PermissionContext, decide};
#[cfg(all(feature = "policy-enforcer", feature = "shell"))]
pub(crate) use policy::{ReferencedPath, ReferencedPaths};
pub use rule::{Action, PermissionRule, Rule, RuleError, RuleOrigin, RuleSet, ToolRules};
