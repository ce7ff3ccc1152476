//! The configuration sections `[tools.policy]` and `[tools.authorization]`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::trust::TrustLevel;

/// What becomes of a call by the policy.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PolicyEffect {
    /// The policy does not refuse it; whether it runs is then a matter of permissions.
    Allow,
    /// It does not run.
    #[default]
    Deny,
}

impl PolicyEffect {
    /// Returns the name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// The policy: rules about calls that apply in every mode and to approved calls; the first rule that matches decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// Whether the rules apply.
    pub enabled: bool,
    /// The decision about calls that no rule matches, also if only `[tools.authorization]` is enabled.
    pub default_effect: PolicyEffect,
    /// The rules, in order.
    pub rules: Vec<PolicyRule>,
}

/// More rules of the policy, which come after those of `[tools.policy]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuthorizationConfig {
    /// Whether the rules apply.
    pub enabled: bool,
    /// The rules, in order.
    pub rules: Vec<PolicyRule>,
}

/// A rule of the policy. It matches a call if all of its conditions match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyRule {
    /// The decision about the calls that it matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<PolicyEffect>,
    /// An alias of `effect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<PolicyEffect>,
    /// The tools: ids, or globs such as `mcp_*`.
    #[serde(skip_serializing_if = "OneOrMore::is_empty")]
    pub tools: OneOrMore,
    /// An alias of `tools`.
    #[serde(skip_serializing_if = "OneOrMore::is_empty")]
    pub tool: OneOrMore,
    /// Globs of paths (`*` stops at `/`, `**` does not): to deny, one path of the call is enough; to allow, all must match after links are resolved.
    #[serde(skip_serializing_if = "OneOrMore::is_empty")]
    pub paths: OneOrMore,
    /// A regular expression that is found in the arguments as JSON (keys in order, no blanks); to deny, also in a string among them or in a part of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_match: Option<String>,
    /// Variables of the environment that must be set.
    #[serde(skip_serializing_if = "OneOrMore::is_empty")]
    pub env: OneOrMore,
    /// For an allow rule, the minimum trust of the call; for a deny rule, the maximum trust of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<TrustLevel>,
    /// Reserved; a rule that names some is refused.
    #[serde(skip_serializing_if = "OneOrMore::is_empty")]
    pub capabilities: OneOrMore,
    /// Calls that it must match, for `zeph policy test`: `read src/a.rs`, `bash {"command": "ls"}`.
    #[serde(rename = "match", skip_serializing_if = "OneOrMore::is_empty")]
    pub matches: OneOrMore,
    /// Calls that it must not match.
    #[serde(rename = "not_match", skip_serializing_if = "OneOrMore::is_empty")]
    pub not_matches: OneOrMore,
}

/// One string, or a list of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct OneOrMore(pub Vec<String>);

impl OneOrMore {
    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(String),
    More(Vec<String>),
}

impl From<Written> for OneOrMore {
    fn from(written: Written) -> Self {
        match written {
            Written::One(text) => Self(vec![text]),
            Written::More(texts) => Self(texts),
        }
    }
}

impl JsonSchema for OneOrMore {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" } },
            ]
        })
    }
}
