//! The `permission` layer: allow, ask or deny. The confirmed path skips asking alone, and runs only
//! what was shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{CallPath, Next, SharedRegistry, ToolLayer};
use crate::call::ToolCall;
use crate::context::{Answer, ApprovedBy, CallContext, Origin};
use crate::def::{Risk, ToolDef};
use crate::error::{Confirmation, ToolError};
use crate::feedback::ToolResult;
use crate::gate::decision::as_toml;
use crate::gate::{
    Action, By, CallSubject, Circumstances, Decision, Effect, Places, RuleSet, decide, subject_of,
};
use crate::mode::Mode;
use crate::trust::TrustLevel;

/// What decides about calls.
#[derive(Debug, Clone)]
pub struct Permissions {
    /// How freely the agent acts.
    pub mode: Mode,
    /// The rules of `[tools.permissions]`.
    pub rules: Arc<RuleSet>,
    /// Where paths begin, and what lies inside the sandbox.
    pub places: Arc<Places>,
    /// The file where the user writes rules.
    pub file: Option<PathBuf>,
}

impl Permissions {
    /// Without rules, where nothing lies inside the sandbox: the mode and the nature of tools decide.
    #[must_use]
    pub fn of(mode: Mode) -> Self {
        Self {
            mode,
            rules: Arc::default(),
            places: Arc::new(Places::without_sandbox(Path::new("/"))),
            file: None,
        }
    }
}

impl Default for Permissions {
    fn default() -> Self {
        Self::of(Mode::default())
    }
}

/// See the module.
pub struct PermissionLayer {
    permissions: Permissions,
    registry: SharedRegistry,
}

impl PermissionLayer {
    /// A layer that decides by `permissions`.
    #[must_use]
    pub fn new(permissions: Permissions, registry: SharedRegistry) -> Self {
        Self {
            permissions,
            registry,
        }
    }

    fn given(&self, call: &ToolCall, trust: TrustLevel) -> Circumstances {
        Circumstances {
            mode: self.permissions.mode,
            trust,
            phase: call.phase,
        }
    }

    /// Lets a call go on, or says why not.
    fn judge(
        &self,
        call: &ToolCall,
        def: &ToolDef,
        cx: &CallContext,
        path: CallPath,
    ) -> Result<(), ToolError> {
        let subject = subject_of(call, def, &self.permissions.places);
        let given = self.given(call, cx.trace().trust);
        let decision = decide(&subject, &self.permissions.rules, given);
        if let Some(rule) = decision.policy_match() {
            cx.trace().note_match(&rule);
        }
        if path == CallPath::Confirmed {
            approved(&subject, cx, decision.effect)?;
        }
        match decision.effect {
            Effect::Deny => Err(ToolError::blocked(decision.reason(&subject))),
            Effect::Allow => {
                let by_rule =
                    matches!(decision.rule(), Some(rule) if rule.action() == Action::Allow);
                if by_rule {
                    cx.trace().approved_by = ApprovedBy::Policy;
                }
                Ok(())
            }
            Effect::Ask if path == CallPath::Confirmed => {
                cx.trace().approved_by = ApprovedBy::User;
                Ok(())
            }
            Effect::Ask => {
                if let Answer::No(told) = &cx.answer {
                    return Err(ToolError::blocked(refusal(told.as_deref())));
                }
                let hint = match cx.answer {
                    Answer::Nobody => self.hint(&decision, &subject),
                    _ => String::new(),
                };
                Err(ToolError::ConfirmationRequired(Box::new(Confirmation {
                    tool: def.id.to_string(),
                    subject: shown(def, &call.params),
                    risk: def.annotations.risk,
                    reason: format!("{}.", decision.reason(&subject)),
                    hint,
                    digest: subject.digest(),
                })))
            }
        }
    }

    /// What would let the call run where nobody can be asked: a flag, or the very rules.
    fn hint(&self, decision: &Decision<'_>, subject: &CallSubject<'_>) -> String {
        let mut hint = "Nobody can be asked here: --yes allows every question once".to_owned();
        let nature = &subject.nature;
        let edits = !nature.read_only && !nature.open_world && nature.risk <= Risk::Medium;
        let by_mode = matches!(decision.by, By::NoRule | By::Mode(_));
        if edits && by_mode {
            hint.push_str(", --mode auto-edit allows changes of files");
        }
        let rules = decision.would_allow(subject);
        if rules.is_empty() {
            hint.push('.');
            return hint;
        }
        let place = match &self.permissions.file {
            Some(file) => format!("in {}", file.display()),
            None => "in the configuration".to_owned(),
        };
        let before = match decision.by {
            By::Rule(rule) => format!(" before the rule at {}", rule.origin),
            _ => String::new(),
        };
        format!(
            "{hint}; this {place}{before} allows it for good:\n{}",
            as_toml(&rules)
        )
    }
}

/// A confirmed call is what a person was shown, or what a person wrote.
fn approved(subject: &CallSubject<'_>, cx: &CallContext, effect: Effect) -> Result<(), ToolError> {
    match cx.approved {
        Some(approved) if approved == subject.digest() => Ok(()),
        Some(_) => Err(ToolError::blocked(
            "the arguments are not those that the user agreed to",
        )),
        None if effect == Effect::Allow || cx.origin == Origin::User => Ok(()),
        None => Err(ToolError::blocked("nobody agreed to this call")),
    }
}

#[async_trait]
impl ToolLayer for PermissionLayer {
    fn name(&self) -> &'static str {
        "permission"
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let registry = self.registry.load_full();
        // The `known` layer stands before this one; a tool that is unknown here fails closed.
        let Some(def) = registry.get(&call.tool) else {
            return Err(ToolError::blocked("no permission rule knows this tool"));
        };
        self.judge(call, def, cx, next.path())?;
        next.run(call, cx).await
    }

    fn would_ask(&self, call: &ToolCall) -> bool {
        let registry = self.registry.load();
        registry.get(&call.tool).is_some_and(|def| {
            let subject = subject_of(call, def, &self.permissions.places);
            let given = self.given(call, TrustLevel::Trusted);
            decide(&subject, &self.permissions.rules, given).effect == Effect::Ask
        })
    }
}

fn refusal(told: Option<&str>) -> String {
    match told {
        Some(told) => format!("the user refused this call and says: {told}"),
        None => "the user refused this call".to_owned(),
    }
}

/// What a call is about, in a line or in the lines of its command: the first required argument,
/// else all arguments.
#[must_use]
pub fn shown(def: &ToolDef, params: &Value) -> String {
    let first = def
        .parameters
        .get("required")
        .and_then(Value::as_array)
        .and_then(|names| names.first())
        .and_then(Value::as_str)
        .and_then(|name| params.get(name))
        .and_then(Value::as_str);
    match first {
        Some(text) => text.to_owned(),
        None if params.as_object().is_none_or(serde_json::Map::is_empty) => String::new(),
        None => params.to_string(),
    }
}
