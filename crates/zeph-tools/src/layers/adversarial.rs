//! The `adversarial` layer: a model judges the call before it runs.
//!
//! A call passes here twice if the user is asked about it. The first pass judges it and stores the decision in
//! the trace of the call. The model that made the call only learns that policy denied it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::future::FutureExt as _;

use super::{Next, SharedRegistry, ToolLayer};
use crate::cache::CacheKey;
use crate::call::ToolCall;
use crate::context::{CallContext, JudgeResult};
use crate::error::ToolError;
use crate::event::ToolEvent;
use crate::feedback::ToolResult;
use crate::gate::llm_judge::{
    AdversarialGate, AdversarialPolicyConfig, Asked, JudgeDecision, JudgeError, JudgeFailure,
    Verdict, claim, question,
};
use crate::secrets::SecurityPatterns;
/// The complete error text that the model receives for a denied call.
const DENIED: &str = "policy denied this call";

/// The layer that runs the adversarial gate.
pub struct AdversarialLayer {
    gate: AdversarialGate,
    registry: SharedRegistry,
    secrets: Arc<SecurityPatterns>,
}

/// The outcome of a judgment; without a verdict, the reason for the user.
type Outcome = Result<Verdict, (JudgeFailure, String)>;

impl AdversarialLayer {
    /// Creates a layer that has calls judged by `gate`, without the values of known `secrets`.
    #[must_use]
    pub fn new(
        gate: AdversarialGate,
        registry: SharedRegistry,
        secrets: Arc<SecurityPatterns>,
    ) -> Self {
        Self {
            gate,
            registry,
            secrets,
        }
    }

    fn config(&self) -> &AdversarialPolicyConfig {
        &self.gate.config
    }

    /// Asks the judge with each group of policies, until one denies.
    async fn ask(&self, call: &ToolCall, cx: &CallContext, claim_source: Option<&str>) -> Outcome {
        let judge = match &self.gate.judge {
            Ok(judge) => judge,
            Err(why) => return Err((JudgeFailure::Unavailable, why.clone())),
        };
        let asked = Asked {
            call,
            directory: &self.gate.directory,
            origin: cx.origin,
            claim_source,
        };
        for policies in &self.gate.groups {
            let mark = uuid::Uuid::new_v4().simple().to_string();
            let question = question(policies, asked, &self.secrets, &mark);
            let answer = judge.judge(&question).await.map_err(|error| match error {
                JudgeError::Failed(why) => (JudgeFailure::Error, why),
                JudgeError::NoAnswer(why) => (JudgeFailure::NoAnswer, why),
            })?;
            match Verdict::of(&answer) {
                Some(Verdict::Allow) => {}
                Some(Verdict::Deny) => return Ok(Verdict::Deny),
                None => {
                    let said = shown(&self.secrets.redact_known(&answer));
                    let why = format!("it responded with {said} instead of ALLOW or DENY");
                    return Err((JudgeFailure::NoAnswer, why));
                }
            }
        }
        // Without policies, nothing was judged.
        match self.gate.groups.is_empty() {
            true => Err((JudgeFailure::Unavailable, "`policies` is empty".to_owned())),
            false => Ok(Verdict::Allow),
        }
    }

    /// Decides about the call; `None` if it was cancelled meanwhile.
    async fn decide(&self, call: &ToolCall, cx: &CallContext) -> Option<JudgeDecision> {
        let claim_source = match self.registry.load().get(&call.tool) {
            Some(def) => claim(call, def),
            None => None,
        };
        let config = self.config();
        let limit = Duration::from_millis(config.timeout_ms);
        let asking = self.ask(call, cx, claim_source.as_deref()).timeout(limit);
        let outcome = cx.cancel.run_until_cancelled(asking).await?;
        let outcome = outcome.unwrap_or_else(|_| {
            let limit = config.timeout_ms;
            let key = "`[tools.adversarial_policy] timeout_ms`";
            let why = format!("it did not respond within {limit} ms ({key})");
            Err((JudgeFailure::Timeout, why))
        });
        cx.trace().claim_source = claim_source;
        Some(self.conclude(call, cx, outcome))
    }

    /// Converts the outcome to a decision, and reports the details to the user; the model does not receive them.
    fn conclude(&self, call: &ToolCall, cx: &CallContext, outcome: Outcome) -> JudgeDecision {
        let (tool, call_id) = (&call.tool, call.id.clone());
        match outcome {
            Ok(verdict) => {
                if verdict == Verdict::Deny {
                    let judge = self.judge_name();
                    let text =
                        format!("{tool} did not run: the adversarial policy denied it ({judge})");
                    cx.emit(ToolEvent::Warning { call_id, text });
                }
                JudgeDecision::Judged(verdict)
            }
            Err((why, words)) => {
                let config = self.config();
                let fail_open = config.fail_open;
                let done = match fail_open {
                    true => "runs without a check (`[tools.adversarial_policy] fail_open`)",
                    false => "did not run",
                };
                let judge = self.judge_name();
                let text = format!(
                    "{tool} {done}: the adversarial policy could not be applied ({judge}): {words}"
                );
                cx.emit(ToolEvent::Warning { call_id, text });
                JudgeDecision::Unjudged { why, fail_open }
            }
        }
    }

    fn judge_name(&self) -> String {
        match &self.gate.judge {
            Ok(judge) => judge.name(),
            Err(_) => "no judge".to_owned(),
        }
    }
}

#[async_trait]
impl ToolLayer for AdversarialLayer {
    fn name(&self) -> &'static str {
        "adversarial"
    }

    fn is_gate(&self) -> bool {
        true
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let config = self.config();
        if config.exempt_tools.contains(&call.tool) {
            return next.run(call, cx).await;
        }
        let key = CacheKey::new(&call.tool, &call.params);
        let noted = cx
            .trace()
            .judged
            .as_ref()
            .filter(|judged| judged.of == key)
            .map(|judged| judged.decision);
        let decision = match noted {
            Some(decision) => decision,
            None => {
                let Some(decision) = self.decide(call, cx).await else {
                    return Err(ToolError::cancelled());
                };
                cx.trace().judged = Some(JudgeResult { of: key, decision });
                decision
            }
        };
        if !decision.allows() {
            return Err(ToolError::blocked(DENIED));
        }
        next.run(call, cx).await
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// Returns the start of a response, quoted for the user.
fn shown(answer: &str) -> String {
    const MAX_CHARS: usize = 80;
    let text: String = answer.trim().chars().take(MAX_CHARS + 1).collect();
    match text.chars().count() {
        0 => "nothing".to_owned(),
        count if count > MAX_CHARS => {
            format!("{:?}…", text.chars().take(MAX_CHARS).collect::<String>())
        }
        _ => format!("{text:?}"),
    }
}
