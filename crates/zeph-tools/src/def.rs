//! What a tool is: its id, its words, its schema, its nature.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::foreign_schema::ForeignSchema;
use crate::gate::ToolTarget;
use crate::schema;

/// How the text path (models that do not call tools natively) invokes a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationHint {
    /// A fenced block with this tag; the block's text is the first required parameter.
    FencedBlock(Cow<'static, str>),
    /// A JSON object with `tool_id` and `params`.
    ToolCall,
}

/// How much a call can harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Touches nothing outside the session: no question is needed.
    Safe,
    /// Changes something that can be brought back.
    Medium,
    /// May destroy, or reaches beyond the sandbox.
    #[default]
    High,
}

/// The nature of a tool; the four booleans mean what MCP's tool annotations of the same names mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy what was there.
    pub destructive: bool,
    /// Calling it twice does what calling it once does.
    pub idempotent: bool,
    /// Reaches beyond this machine.
    pub open_world: bool,
    /// How much a call can harm.
    pub risk: Risk,
}

impl Annotations {
    /// A tool that only looks.
    pub const READ: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
        risk: Risk::Safe,
    };
    /// A tool that changes files and can overwrite.
    pub const MUTATE: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: false,
        risk: Risk::Medium,
    };
    /// A tool that can do anything.
    pub const ANYTHING: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
        risk: Risk::High,
    };
    /// A tool that changes the session's own state and nothing else.
    pub const SESSION_STATE: Self = Self {
        read_only: false,
        destructive: false,
        idempotent: false,
        open_world: false,
        risk: Risk::Safe,
    };
}

/// When a model that calls tools natively is offered a tool. It can be called at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// With the first request.
    #[default]
    AtOnce,
    /// Once the result of a call has named this tool: before, there is nothing to use it for.
    OnceNamed(&'static str),
    /// Not now: what serves it does not answer. A call fails, and says so.
    NotNow,
}

/// A tool's definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDef {
    /// The id the model calls.
    pub id: Cow<'static, str>,
    /// When to use it and when not.
    pub description: Cow<'static, str>,
    /// JSON Schema of the parameters, made from the struct that a call is deserialized into.
    pub parameters: Arc<Value>,
    /// How the text path invokes it.
    pub invocation: InvocationHint,
    /// Its nature.
    pub annotations: Annotations,
    /// Other ids under which a call is taken; never offered.
    pub aliases: &'static [&'static str],
    /// Values of parameters that a call under an alias leaves out: `(alias, parameter, value)`.
    pub alias_defaults: &'static [(&'static str, &'static str, &'static str)],
    /// Other names of parameters that are taken: `(alias, parameter)`; never offered.
    pub param_aliases: &'static [(&'static str, &'static str)],
    /// Parameters that carry contents of files: they stay out of audit entries.
    pub content_params: &'static [&'static str],
    /// The compiled schema if a server wrote it; arguments of our own tools are checked without.
    #[serde(skip)]
    pub foreign: Option<ForeignSchema>,
    /// Which parameters say what a call is about; rules of permissions are compared with these.
    #[serde(skip)]
    pub about: ToolTarget,
    /// When it is offered.
    pub offered: Availability,
}

impl ToolDef {
    /// A definition whose schema is that of `P`, called as structured JSON, without aliases.
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
        }
    }

    /// Says which parameters a call is about.
    #[must_use]
    pub fn about(mut self, about: ToolTarget) -> Self {
        self.about = about;
        self
    }

    /// Says when the tool is offered.
    #[must_use]
    pub fn offered(mut self, offered: Availability) -> Self {
        self.offered = offered;
        self
    }

    /// Names the parameters that carry contents of files.
    #[must_use]
    pub fn with_content_params(mut self, params: &'static [&'static str]) -> Self {
        self.content_params = params;
        self
    }

    /// Sets the aliases of the tool's id.
    #[must_use]
    pub fn with_aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the values of parameters that a call under an alias leaves out, `(alias, parameter, value)`.
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

    /// Makes the text path call it by a fenced block with `tag`.
    #[must_use]
    pub fn with_fence(mut self, tag: &'static str) -> Self {
        self.invocation = InvocationHint::FencedBlock(Cow::Borrowed(tag));
        self
    }
}
