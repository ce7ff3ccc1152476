//! The configuration of dependencies between tools: `[tools.dependencies]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tools that require the success of other tools (`[tools.dependencies]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DependencyConfig {
    /// Whether the rules apply.
    pub enabled: bool,
    /// The handling of a tool with unmet requirements.
    pub mode: DependencyMode,
    /// The increase of the score of a tool for each preferred tool that succeeded.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub boost_per_dep: f64,
    /// The maximum increase of the score.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_total_boost: f64,
    /// The requirements of each tool.
    pub rules: BTreeMap<String, ToolDependency>,
}

impl Default for DependencyConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            mode: DependencyMode::Hide,
            boost_per_dep: 0.15,
            max_total_boost: 0.20,
            rules: BTreeMap::new(),
        }
    }
}

/// The handling of a tool with unmet requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DependencyMode {
    /// It is not offered until they are; a call is refused.
    #[default]
    Hide,
    /// It is offered, so that the offer stays the same; a refusal names the unmet tools.
    Explain,
}

/// What one tool depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolDependency {
    /// Tools that all have to succeed in the session before it may be called.
    pub requires: Vec<String>,
    /// Tools that make it nearer to the request once they have succeeded.
    pub prefers: Vec<String>,
}
