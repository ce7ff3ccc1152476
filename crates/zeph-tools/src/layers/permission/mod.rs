//! The `permission` layer: allow, ask or deny. The confirmed path skips only the question, and runs only the call
//! that the user saw. `command` runs a decided command.

pub(super) mod command;
mod reason;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use command::after_refusal;
use reason::{refusal, remembered, rewritten, without_approvals};

use super::grants::Grants;
use super::{CallPath, Next, SharedRegistry, ToolLayer};
use crate::call::{Phase, ToolCall};
use crate::confirmation::Confirmation;
use crate::context::{ApprovedBy, CallContext, UserDecision};
use crate::contract::confinement::{SandboxProfile, SandboxSupport};
use crate::contract::effective_trust::EffectiveTrust;
use crate::def::{Risk, ToolDef};
use crate::error::ToolError;
use crate::feedback::ToolResult;
use crate::gate::approval_options::shown_pieces;
use crate::gate::approvals::apply;
use crate::gate::command::ParsedCommandCache;
use crate::gate::decision::as_toml;
use crate::gate::parsed_call::{SubjectUrl, redirected, subject_after};
use crate::gate::{
    Action, ApprovalOptions, CallSubject, DecidedBy, Decision, Effect, Grant, KnownRefusals,
    PathResolver, PermissionContext, RuleSet, ToolTarget, approval_options, decide, subject_of,
};
use crate::permission_mode::{Mode, SessionMode};
use crate::preview::PreviewProvider;
use crate::trust::TrustLevel;

/// The inputs of the decision about calls.
#[derive(Debug, Clone)]
pub struct Permissions {
    /// The mode of the session.
    pub mode: SessionMode,
    /// The parts of the OS sandbox around commands that this machine enforces.
    pub sandbox: SandboxSupport,
    /// Whether the user may select mode `full` in a session.
    pub allows_full: bool,
    /// The rules of `[tools.permissions]`.
    pub rules: Arc<RuleSet>,
    /// The start directory of paths, and the directories of the sandbox.
    pub places: Arc<PathResolver>,
    /// The file for the rules of the user.
    pub file: Option<PathBuf>,
    /// The approvals for more than one call.
    pub grants: Arc<Grants>,
    /// Whether a call that needs a question is refused in an unattended run ([`Phase::Autonomous`]); else it
    /// runs.
    pub refuses_unattended: bool,
    /// The provider of previews of changes.
    pub previews: Option<Arc<dyn PreviewProvider>>,
    /// The calls that tools refuse in any case. They are refused before the question.
    pub refusals: Vec<Arc<dyn KnownRefusals>>,
}

impl Permissions {
    /// Whether the session can have this mode.
    #[must_use]
    pub fn can_have(&self, mode: Mode) -> bool {
        mode != Mode::Full || self.allows_full
    }

    /// Creates settings without rules and with an empty sandbox: the mode and the nature of tools decide.
    #[must_use]
    pub fn of(mode: Mode) -> Self {
        Self {
            mode: SessionMode::new(mode),
            sandbox: SandboxSupport::default(),
            allows_full: false,
            rules: Arc::default(),
            places: Arc::new(PathResolver::without_sandbox(Path::new("/"))),
            file: None,
            grants: Arc::default(),
            refuses_unattended: false,
            previews: None,
            refusals: Vec::new(),
        }
    }
}

impl Default for Permissions {
    fn default() -> Self {
        Self::of(Mode::default())
    }
}

/// The path on which an allowed call continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// The path of the call itself, with this sandbox.
    Unchanged(SandboxProfile),
    /// The confirmed path, because of an earlier approval.
    Approved,
}

/// The layer that decides whether calls may run.
#[derive(Clone)]
pub struct PermissionLayer {
    permissions: Permissions,
    registry: SharedRegistry,
    trust: EffectiveTrust,
}

impl PermissionLayer {
    /// Creates a layer that decides by `permissions` at the level of `trust`.
    #[must_use]
    pub fn new(permissions: Permissions, registry: SharedRegistry, trust: EffectiveTrust) -> Self {
        Self {
            permissions,
            registry,
            trust,
        }
    }

    fn given_in(&self, call: &ToolCall, cx: &CallContext) -> PermissionContext {
        let trace = cx.trace();
        let given = self.given(call, trace.trust, trace.sandbox_refusal.is_some());
        let given = PermissionContext {
            mode: cx.capped_mode(given.mode),
            ..given
        };
        match trace.sandbox_missing {
            true => PermissionContext {
                sandbox: SandboxSupport::default(),
                ..given
            },
            false => given,
        }
    }

    fn given(
        &self,
        call: &ToolCall,
        trust: TrustLevel,
        ignores_read_only: bool,
    ) -> PermissionContext {
        // The call is asked about as in any other phase, and no user is present.
        let phase = match call.phase {
            Phase::Autonomous if self.permissions.refuses_unattended => Phase::Executor,
            phase => phase,
        };
        PermissionContext {
            mode: self.permissions.mode.get(),
            trust,
            phase,
            sandbox: self.permissions.sandbox,
            ignores_read_only,
        }
    }

    /// Applies earlier approvals to a decision. Returns the grants that were used.
    fn remembering<'r>(
        &self,
        subject: &CallSubject<'_>,
        decision: Decision<'r>,
        call: &ToolCall,
    ) -> (Decision<'r>, Vec<Grant>) {
        if decision.effect != Effect::Ask {
            return (decision, Vec::new());
        }
        let digest = subject.digest();
        let (grants, this_call) = self.permissions.grants.holding(&call.conversation, &digest);
        apply(subject, decision, &grants, this_call)
    }

    /// Decides whether a call may run, and on which path.
    fn judge(
        &self,
        call: &ToolCall,
        def: &ToolDef,
        cx: &CallContext,
        next: &Next<'_>,
    ) -> Result<Pass, ToolError> {
        let path = next.path();
        let subject = subject_after(
            call,
            def,
            &self.permissions.places,
            &cx.extensions().get::<ParsedCommandCache>(),
        );
        // No later gate uses the parsed command.
        cx.extensions().get::<ParsedCommandCache>().forget();
        let given = self.given_in(call, cx);
        let decision = decide(&subject, &self.permissions.rules, given);
        if let Some(rule) = decision.policy_match() {
            cx.trace().record_rule_match(&rule);
        }
        if path == CallPath::Confirmed {
            approved(&subject, cx, decision.effect)?;
        }
        match decision.effect {
            Effect::Deny => Err(ToolError::blocked(decision.reason(&subject))),
            Effect::Allow => {
                let profile = decision.sandbox_profile();
                let is_exact = cx.trace().can_be_allowed_exactly;
                let rule = decision.rule();
                if rule.is_some_and(|rule| rule.action() == Action::Allow) {
                    cx.trace().approved_by = ApprovedBy::Policy;
                }
                match path {
                    CallPath::Confirmed => Ok(Pass::Unchanged(profile)),
                    CallPath::Normal if decision.replaces_confirmation(is_exact) => {
                        Ok(Pass::Approved)
                    }
                    CallPath::Normal => self.honour_executor(call, def, cx, next, profile),
                }
            }
            Effect::Ask if path == CallPath::Confirmed => {
                cx.trace().approved_by = ApprovedBy::User;
                Ok(Pass::Unchanged(SandboxProfile::Configured))
            }
            Effect::Ask => {
                if let UserDecision::No(told) = &cx.answer {
                    return Err(ToolError::blocked(refusal(told.as_deref())));
                }
                let (decision, used) = self.remembering(&subject, decision, call);
                if decision.effect == Effect::Allow {
                    {
                        let mut trace = cx.trace();
                        trace.approved_by = ApprovedBy::Remembered;
                        trace.policy_match = Some(remembered(&used));
                    }
                    // A stored rule does not cover the confirmation that the executor requires; an approved call
                    // does.
                    return match used.is_empty() {
                        true => Ok(Pass::Approved),
                        false => {
                            let profile = SandboxProfile::Configured;
                            self.honour_executor(call, def, cx, next, profile)
                        }
                    };
                }
                let mut refusals = self.permissions.refusals.iter();
                if let Some(error) = refusals.find_map(|tools| tools.known_refusal(&subject, cx)) {
                    return Err(error);
                }
                let hint = match cx.answer {
                    UserDecision::Nobody => self.hint(call.phase, &decision, &subject),
                    _ => String::new(),
                };
                Err(ToolError::ConfirmationRequired(Box::new(Confirmation {
                    tool: def.id.to_string(),
                    subject: shown(def, &call.params),
                    risk: def.annotations.risk,
                    reason: format!(
                        "{}.{}{}{}",
                        decision.reason(&subject),
                        rewritten(&subject),
                        after_refusal(cx),
                        without_approvals(cx),
                    ),
                    hint,
                    digest: subject.digest(),
                    ..self.details(&subject, &decision, (call, def), cx)
                })))
            }
        }
    }

    /// Asks for the confirmation that the executor of a call requires, regardless of the rules and the mode. In
    /// phase [`Phase::Autonomous`] the call takes the confirmed path instead.
    fn honour_executor(
        &self,
        call: &ToolCall,
        def: &ToolDef,
        cx: &CallContext,
        next: &Next<'_>,
        profile: SandboxProfile,
    ) -> Result<Pass, ToolError> {
        if !next.requires_confirmation(call) {
            return Ok(Pass::Unchanged(profile));
        }
        if self.given_in(call, cx).phase == Phase::Autonomous {
            return Ok(Pass::Approved);
        }
        if let UserDecision::No(told) = &cx.answer {
            return Err(ToolError::blocked(refusal(told.as_deref())));
        }
        let reason = cx.trace().confirmation_reason.clone();
        let hint = match cx.answer {
            UserDecision::CanAsk => String::new(),
            _ => format!("{}.", call.phase.without_questions()),
        };
        Err(ToolError::ConfirmationRequired(Box::new(Confirmation {
            tool: def.id.to_string(),
            subject: shown(def, &call.params),
            risk: def.annotations.risk,
            reason: match reason {
                Some(reason) => format!("{reason}."),
                None => format!("{} requires confirmation of this call.", def.id),
            },
            hint,
            digest: subject_of(call, def, &self.permissions.places).digest(),
            offer: ApprovalOptions::nothing("the tool requires confirmation each time"),
            ..Confirmation::default()
        })))
    }

    /// Returns a refusal instead of a question about an unread file, or adds a preview of the
    /// changes, if a user can see it.
    async fn final_error(&self, error: ToolError, call: &ToolCall, cx: &CallContext) -> ToolError {
        let mut question = match error {
            ToolError::ConfirmationRequired(question) => question,
            error => return error,
        };
        for tools in &self.permissions.refusals {
            if let Some(refusal) = tools.unread_refusal(call).await {
                return refusal;
            }
        }
        if let (Some(previews), UserDecision::CanAsk) = (&self.permissions.previews, &cx.answer) {
            question.preview = previews.preview(call).await;
        }
        ToolError::ConfirmationRequired(question)
    }

    /// Decides whether a redirect of a call for a URL may be followed. If the new URL needs a question, it is
    /// refused, except on the host that the user approved, and for approved calls of the user.
    fn judge_redirect(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        path: CallPath,
        url: &str,
    ) -> Result<(), ToolError> {
        let registry = self.registry.load_full();
        let def = registry.get(&call.tool);
        let there = def.and_then(|def| Some((def, redirected(call, def, url)?)));
        let Some((def, there)) = there else {
            return Err(ToolError::blocked("no tool has this name"));
        };
        let places = &self.permissions.places;
        let subject = subject_of(&there, def, places);
        let given = self.given_in(call, cx);
        let decision = decide(&subject, &self.permissions.rules, given);
        if decision.effect == Effect::Deny
            && let Some(rule) = decision.policy_match()
        {
            cx.trace().record_rule_match(&rule);
        }
        let (decision, _) = self.remembering(&subject, decision, &there);
        let agreed = || {
            let asked = subject_of(call, def, places);
            let same_host = asked.url.as_ref().and_then(SubjectUrl::host)
                == subject.url.as_ref().and_then(SubjectUrl::host);
            path == CallPath::Confirmed && (same_host || cx.origin.is_user())
        };
        match decision.effect {
            Effect::Allow => Ok(()),
            Effect::Ask if agreed() => Ok(()),
            Effect::Deny => Err(ToolError::blocked(decision.reason(&subject))),
            Effect::Ask => Err(ToolError::blocked(format!(
                "that URL needs confirmation first; call {} with it",
                def.id
            ))),
        }
    }

    /// Returns the details of a confirmation in addition to the arguments, if a user can be asked.
    fn details(
        &self,
        subject: &CallSubject<'_>,
        decision: &Decision<'_>,
        of: (&ToolCall, &ToolDef),
        cx: &CallContext,
    ) -> Confirmation {
        if cx.answer != UserDecision::CanAsk {
            return Confirmation::default();
        }
        let Permissions { places, grants, .. } = &self.permissions;
        Confirmation {
            pieces: shown_pieces(subject, decision),
            offer: approval_options(subject, decision, of, places)
                .for_project(grants.project())
                .shared_in(grants.shared_place()),
            ..Confirmation::default()
        }
    }

    /// Returns a hint how to allow the call if no user can answer: a flag, or the exact rules.
    fn hint(&self, phase: Phase, decision: &Decision<'_>, subject: &CallSubject<'_>) -> String {
        let mut hint = phase.without_questions().to_owned();
        let nature = &subject.nature;
        let edits = !nature.read_only && !nature.open_world && nature.risk <= Risk::Medium;
        let by_mode = matches!(decision.by, DecidedBy::NoRule | DecidedBy::Mode(_));
        if edits && by_mode {
            hint.push_str(match phase {
                Phase::Autonomous => {
                    ", `zeph scheduler run --mode auto-edit` allows changes of \
                    files"
                }
                _ => ", --mode auto-edit allows changes of files",
            });
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
            DecidedBy::Rule(rule) => format!(" before the rule at {}", rule.origin),
            _ => String::new(),
        };
        format!(
            "{hint}; this {place}{before} allows it permanently:\n{}",
            as_toml(&rules)
        )
    }
}

/// Checks that a confirmed call is the one that the user saw or wrote.
fn approved(subject: &CallSubject<'_>, cx: &CallContext, effect: Effect) -> Result<(), ToolError> {
    match cx.approved {
        Some(approved) if approved == subject.digest() => Ok(()),
        Some(_) => Err(ToolError::blocked(
            "the arguments differ from those that the user approved",
        )),
        None if effect == Effect::Allow || cx.origin.is_user() => Ok(()),
        None => Err(ToolError::blocked("this call was not approved")),
    }
}

#[async_trait]
impl ToolLayer for PermissionLayer {
    fn name(&self) -> &'static str {
        "permission"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let registry = self.registry.load_full();
        // The `known` layer precedes this one; an unknown tool fails closed.
        let Some(def) = registry.get(&call.tool) else {
            return Err(ToolError::blocked("no tool has this name"));
        };
        // Another process may have revoked an approval meanwhile.
        let unread = self.permissions.grants.refresh().await;
        cx.trace().unread_approvals = unread;
        if matches!(def.about, ToolTarget::Command { .. }) {
            return self.run_command(call, def, cx, &next).await;
        }
        let next = match self.judge(call, def, cx, &next) {
            Ok(Pass::Unchanged(_)) => next,
            Ok(Pass::Approved) => next.confirmed(),
            Err(error) => return Err(self.final_error(error, call, cx).await),
        };
        if !matches!(def.about, ToolTarget::Url(_)) {
            return next.run(call, cx).await;
        }
        let (layer, of, path) = (self.clone(), call.clone(), next.path());
        let judge = move |cx: &CallContext, url: &str| layer.judge_redirect(&of, cx, path, url);
        next.run(call, &cx.with_redirect_guard(Arc::new(judge)))
            .await
    }

    fn requires_confirmation(&self, call: &ToolCall) -> bool {
        let registry = self.registry.load();
        registry.get(&call.tool).is_some_and(|def| {
            let subject = subject_of(call, def, &self.permissions.places);
            let given = self.given(call, self.trust.get(), false);
            let decision = decide(&subject, &self.permissions.rules, given);
            self.remembering(&subject, decision, call).0.effect == Effect::Ask
        })
    }
}

/// Returns the target of a call for the user: the first required argument, or all arguments.
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
