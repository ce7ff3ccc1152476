//! The definition of a tool: its id, its description, its schema, its nature.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use crate::contract::cache_policy::CachePolicy;
use crate::contract::call_targets::ToolTarget;
use crate::foreign_schema::ForeignSchema;
use crate::schema;

/// The way in which the text protocol (for models without native tool calls) invokes a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationHint {
    /// A fenced block with this tag; the text of the block is the first required parameter.
    FencedBlock(Cow<'static, str>),
    /// A JSON object with `tool_id` and `params`.
    ToolCall,
}

/// The risk of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Affects nothing outside the session: no question is needed.
    Safe,
    /// Makes changes that can be reverted.
    Medium,
    /// May destroy data, or reaches beyond the sandbox.
    #[default]
    High,
}

/// The nature of a tool; the four booleans have the meaning of the MCP tool annotations with the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy existing data.
    pub destructive: bool,
    /// A second call has no additional effect.
    pub idempotent: bool,
    /// Reaches beyond this machine.
    pub open_world: bool,
    /// The risk of a call.
    pub risk: Risk,
}

impl Annotations {
    /// The nature of a read-only tool.
    pub const READ: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
        risk: Risk::Safe,
    };
    /// The nature of a tool that changes files and can overwrite them.
    pub const MUTATE: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: false,
        risk: Risk::Medium,
    };
    /// The nature of a tool that can do anything.
    pub const ANYTHING: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
        risk: Risk::High,
    };
    /// The nature of a tool that changes only the state of the session.
    pub const SESSION_STATE: Self = Self {
        read_only: false,
        destructive: false,
        idempotent: false,
        open_world: false,
        risk: Risk::Safe,
    };
}

/// The time at which a tool is offered to a model with native tool calls. It can be called at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// With the first request.
    #[default]
    AtOnce,
    /// After the result of a call has named this tool: before that, it has no use.
    OnceNamed(&'static str),
    /// Not now, because its server does not respond. A call fails with that reason.
    NotNow,
}

/// The definition of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDef {
    /// The id for calls by the model.
    pub id: Cow<'static, str>,
    /// The description: when to use it and when not.
    pub description: Cow<'static, str>,
    /// The JSON Schema of the parameters, generated from the struct that a call is deserialized into.
    pub parameters: Arc<Value>,
    /// The invocation in the text protocol.
    pub invocation: InvocationHint,
    /// The nature.
    pub annotations: Annotations,
    /// Other ids that a call may use; never offered.
    pub aliases: &'static [&'static str],
    /// The values of parameters that are missing in a call under an alias: `(alias, parameter, value)`.
    pub alias_defaults: &'static [(&'static str, &'static str, &'static str)],
    /// Other accepted names of parameters: `(alias, parameter)`; never offered.
    pub param_aliases: &'static [(&'static str, &'static str)],
    /// The parameters that carry contents of files: they are omitted from audit entries.
    pub content_params: &'static [&'static str],
    /// The compiled schema if a server wrote it; arguments of built-in tools are checked without it.
    #[serde(skip)]
    pub foreign: Option<ForeignSchema>,
    /// The parameters that hold the target of a call; permission rules are compared with these.
    #[serde(skip)]
    pub about: ToolTarget,
    /// The time at which it is offered.
    pub offered: Availability,
    /// The effect of a call on cached results.
    pub cache: CachePolicy,
}

impl ToolDef {
    /// Creates a definition with the schema of `P`, called as structured JSON, without aliases.
    #[must_use]
    pub fn new<P: JsonSchema>(
        id: &'static str,
        description: &'static str,
        annotations: Annotations,
    ) -> Self {
        Self {
            id: Cow::Borrowed(id),
            description: Cow::Borrowed(description),
            parameters: Arc::new(schema::of::<P>()),
            invocation: InvocationHint::ToolCall,
            annotations,
            aliases: &[],
            alias_defaults: &[],
            param_aliases: &[],
            content_params: &[],
            foreign: None,
            about: ToolTarget::Arguments,
            offered: Availability::AtOnce,
            cache: CachePolicy::default(),
        }
    }

    /// Sets the parameters that hold the target of a call.
    #[must_use]
    pub fn about(mut self, about: ToolTarget) -> Self {
        self.about = about;
        self
    }

    /// Sets the effect of a call on cached results.
    #[must_use]
    pub fn with_cache(mut self, cache: CachePolicy) -> Self {
        self.cache = cache;
        self
    }

    /// Sets the time at which the tool is offered.
    #[must_use]
    pub fn offered(mut self, offered: Availability) -> Self {
        self.offered = offered;
        self
    }

    /// Sets the parameters that carry contents of files.
    #[must_use]
    pub fn with_content_params(mut self, params: &'static [&'static str]) -> Self {
        self.content_params = params;
        self
    }

    /// Sets the aliases of the id of the tool.
    #[must_use]
    pub fn with_aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the values of parameters that are missing in a call under an alias, `(alias, parameter, value)`.
    #[must_use]
    pub fn with_alias_defaults(
        mut self,
        defaults: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        self.alias_defaults = defaults;
        self
    }

    /// Sets the aliases of parameters, `(alias, parameter)`.
    #[must_use]
    pub fn with_param_aliases(mut self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        self.param_aliases = aliases;
        self
    }

    /// Makes the text protocol invoke it by a fenced block with `tag`.
    #[must_use]
    pub fn with_fence(mut self, tag: &'static str) -> Self {
        self.invocation = InvocationHint::FencedBlock(Cow::Borrowed(tag));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    struct Params {}

    /// Proves OUT-41 in part: a tool that states no policy is not cached, and may change files.
    #[test]
    fn tool_without_a_policy_is_not_cached_and_may_change_files() {
        let Params {} = Params {};
        let def = ToolDef::new::<Params>("t", "", Annotations::READ);
        assert!(!def.cache.is_cacheable && def.cache.changes_files);
    }
}
