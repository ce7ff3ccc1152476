//! The gates before a call, for queries without a call.

use std::sync::Arc;

use anyhow::bail;
use serde_json::Value;
use zeph_tools::gate::approvals::apply;
use zeph_tools::gate::policy::{PolicyDecision, PolicyEffect, PolicyEnforcer};
use zeph_tools::gate::{
    CallSubject, Decision, Effect, Grant, PermissionContext, decide, subject_of,
};
use zeph_tools::shell::ShellExecutor;
use zeph_tools::shell::policy::Verdict;
use zeph_tools::shell::sandbox::support;
use zeph_tools::skill::SkillRegistry;
use zeph_tools::{Phase, ToolCall, ToolDef, ToolError, ToolRegistry, TrustLevel};

use super::other_gates::{self, AuxiliaryGate, GateOpinion};
use zeph_core::SkillCatalog;

use crate::assemble::{known_tools, lasting_grants};
use crate::config::{ConfigErrors, Environment, Loaded, compile_policy};

/// The gates that decide by rules, and the tools that they know.
pub(super) struct Gates {
    pub(super) loaded: Loaded,
    pub(super) env: Environment,
    pub(super) registry: ToolRegistry,
    shell: Arc<ShellExecutor>,
    /// Whose tools are commands.
    skills: Arc<SkillRegistry>,
}

/// The decisions of all gates about a call, each independent of the others.
pub(super) struct Judgement<'g> {
    /// The shell's blocklist, for commands.
    pub(super) blocklist: Option<Verdict>,
    /// The decision of the policy, if it is enabled.
    pub(super) policy: Option<PolicyDecision<'g>>,
    /// The rules of permissions, the mode and the trust.
    pub(super) permission: Decision<'g>,
    /// The permanent grants that let a part of the call run.
    pub(super) remembered: Vec<Grant>,
    /// The gates that decide when the call is made, if they were requested.
    pub(super) beside: Vec<AuxiliaryGate>,
}

impl Gates {
    /// The gates of a configuration.
    ///
    /// # Errors
    /// If the tools cannot be listed.
    pub(super) fn new(loaded: Loaded, env: Environment) -> anyhow::Result<Self> {
        let (definitions, shell, skills) = known_tools(&loaded, &env)?;
        Ok(Self {
            loaded,
            env,
            registry: ToolRegistry::new(definitions),
            shell,
            skills: SkillCatalog::from(skills).skills,
        })
    }

    /// All rules of the policy, as if every list was switched on.
    ///
    /// # Errors
    /// Rules that cannot hold.
    pub(super) fn whole_policy(&self) -> anyhow::Result<Option<PolicyEnforcer>> {
        let mut config = self.loaded.config.clone();
        config.tools.policy.enabled = true;
        config.tools.authorization.enabled = true;
        let (provenance, places) = (&self.loaded.provenance, &self.loaded.places);
        Ok(compile_policy(&config, provenance, places, &self.env)
            .or_else(|errors| ConfigErrors::check(errors).map(|()| None))?)
    }

    /// The call that the gates decide about. For a tool of a skill, that is its command, with the trust of the skill.
    ///
    /// # Errors
    /// The arguments do not form a command.
    pub(super) fn as_judged<'g>(
        &'g self,
        call: ToolCall,
        def: &'g ToolDef,
    ) -> anyhow::Result<(ToolCall, &'g ToolDef, TrustLevel)> {
        let Some((skill, tool)) = self.skills.tool(&call.tool) else {
            return Ok((call, def, TrustLevel::default()));
        };
        let command = tool.as_command(&call)?;
        let def = self.tool(&command.tool)?;
        Ok((command, def, skill.trust))
    }

    /// The tool of this id or alias.
    ///
    /// # Errors
    /// If the tool does not exist.
    pub(super) fn tool(&self, name: &str) -> anyhow::Result<&ToolDef> {
        match self.find(name) {
            Some(def) => Ok(def),
            None => bail!(
                "{}",
                ToolError::ToolNotFound {
                    id: name.to_owned(),
                    near: self.registry.suggestions(name),
                }
            ),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<&ToolDef> {
        self.registry.get(name)
    }

    /// The arguments with `~` in paths expanded.
    ///
    /// # Errors
    /// The home directory is unknown.
    pub(super) fn expanded(&self, def: &ToolDef, params: Value) -> Result<Value, ToolError> {
        let expanded = def.about.expand_home(&params, self.loaded.places.home())?;
        Ok(expanded.unwrap_or(params))
    }

    /// A call of a tool with arguments that fit.
    pub(super) fn call(def: &ToolDef, params: Value, phase: Phase) -> ToolCall {
        let mut call = ToolCall::new("call", def.id.to_string(), params, "policy");
        call.phase = phase;
        call
    }

    /// The target of a call.
    pub(super) fn subject<'c>(&'c self, call: &'c ToolCall, def: &'c ToolDef) -> CallSubject<'c> {
        subject_of(call, def, &self.loaded.places)
    }

    /// The decisions of all rules about a call.
    pub(super) fn judge(
        &self,
        call: &ToolCall,
        subject: &CallSubject<'_>,
        trust: TrustLevel,
    ) -> Judgement<'_> {
        let given = PermissionContext {
            mode: self.loaded.config.tools.mode,
            trust,
            phase: call.phase,
            sandbox: support(&self.loaded.config.tools.shell.sandbox),
            ignores_read_only: false,
        };
        let command = subject.command.is_some();
        let policy = self.loaded.policy.as_deref();
        Judgement {
            // The caller has reported arguments that do not match the schema.
            blocklist: command
                .then(|| self.shell.verdict(&call.params).ok())
                .flatten(),
            policy: policy.map(|policy| policy.decide(subject, trust)),
            permission: decide(subject, &self.loaded.rules, given),
            remembered: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Asks every gate, with the permanent grants and the gates that decide when the call is made.
    ///
    /// # Errors
    /// The grants cannot be read, or the state of another gate cannot be read.
    pub(super) async fn judge_whole(
        &self,
        call: &ToolCall,
        subject: &CallSubject<'_>,
        trust: TrustLevel,
    ) -> anyhow::Result<Judgement<'_>> {
        let grants = lasting_grants(&self.loaded, &self.env, &self.registry).await?;
        let judgement = self.judge(call, subject, trust);
        let (permission, remembered) = apply(subject, judgement.permission, &grants, false);
        Ok(Judgement {
            permission,
            remembered,
            beside: other_gates::of(self, call, subject)?,
            ..judgement
        })
    }
}

impl Judgement<'_> {
    /// The effect of all decisions on the call.
    pub(super) fn effect(&self) -> Effect {
        let blocklist = match &self.blocklist {
            Some(Verdict::Block { .. }) => Effect::Deny,
            Some(Verdict::Ask {
                can_be_allowed_exactly,
                ..
            }) if self
                .permission
                .replaces_confirmation(*can_be_allowed_exactly) =>
            {
                Effect::Allow
            }
            Some(Verdict::Ask { .. }) => Effect::Ask,
            _ => Effect::Allow,
        };
        let policy = match self.policy.as_ref().map(|decision| decision.effect) {
            Some(PolicyEffect::Deny) => Effect::Deny,
            _ => Effect::Allow,
        };
        let beside = match self.refusal() {
            Some(_) => Effect::Deny,
            None => Effect::Allow,
        };
        let decided = blocklist.max(policy).max(self.permission.effect);
        decided.max(beside)
    }

    /// The first additional gate that refuses the call, regardless of the rules.
    fn refusal(&self) -> Option<&AuxiliaryGate> {
        let mut beside = self.beside.iter();
        beside.find(|beside| beside.says == GateOpinion::Deny)
    }

    /// The gate and rule that decided, in one line.
    pub(super) fn by(&self, subject: &CallSubject<'_>) -> String {
        if let Some(Verdict::Block { what }) = &self.blocklist {
            return format!("the blocklist refuses the command: {what}");
        }
        if let Some(decision) = &self.policy
            && decision.effect == PolicyEffect::Deny
        {
            return format!("the policy: {decision}");
        }
        if let Some(beside) = self
            .refusal()
            .filter(|_| self.permission.effect != Effect::Deny)
        {
            return format!("{}: {}", beside.gate, beside.reason);
        }
        match &self.blocklist {
            Some(Verdict::Ask {
                why,
                can_be_allowed_exactly,
            }) if self.permission.effect == Effect::Allow
                && !self
                    .permission
                    .replaces_confirmation(*can_be_allowed_exactly) =>
            {
                format!("the blocklist: {why}")
            }
            _ if self.permission.effect == Effect::Allow => match self.permission.policy_match() {
                Some(rule) => rule,
                None => "the mode and the type of the tool".to_owned(),
            },
            _ => self.permission.reason(subject),
        }
    }
}

/// The name of an effect.
pub(super) fn named(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Ask => "ask",
        Effect::Deny => "deny",
    }
}
