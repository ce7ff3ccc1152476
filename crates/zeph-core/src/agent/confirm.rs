//! A call about which a person may have to be asked, and what their answer makes of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_tools::argument_repair::RepairOutcome;
use zeph_tools::gate::ApprovalProposal;
use zeph_tools::gate::quota::BatchQuota;
use zeph_tools::layers::grants::SessionGrant;
use zeph_tools::{CallContext, Confirmation, ToolCall, ToolError, ToolResult, UserDecision};

use super::dispatch::{Dispatcher, owned};
use crate::channel::{LoopbackEvent, UserAnswer};
use crate::redacted::without_secret_rules;

impl Dispatcher {
    /// Runs a call, and asks the person where the stack asks. What is suspicious in it they are told first.
    pub(super) async fn run_with_confirmation(
        &self,
        call: &ToolCall,
        seats: Arc<BatchQuota>,
        suspects: Vec<String>,
        cancel: &CancellationToken,
    ) -> ToolResult {
        self.refresh().await;
        self.emit_started(call);
        let start = Instant::now();
        let can_ask = self.channel.can_ask();
        let cx = self.context(
            cancel,
            if can_ask {
                UserDecision::CanAsk
            } else {
                UserDecision::Nobody
            },
        );
        let cx = cx
            .with_batch_quota(seats)
            .with_argument_repair(self.reformat.clone());
        for suspect in &suspects {
            self.channel.emit(LoopbackEvent::Warning(suspect.clone()));
        }
        cx.trace().suspects = suspects;
        let mut waited = Duration::ZERO;
        let result = loop {
            let changes = self.grants.changes();
            let answer = self.executor.execute_tool_call_erased(call, &cx).await;
            let result = owned(call, answer);
            let Err(ToolError::ConfirmationRequired(question)) = &result else {
                break result;
            };
            if !can_ask {
                break result;
            }
            let question = &*without_secret_rules(question, &self.secrets);
            let asked = Instant::now();
            let turn = self.asking.lock().await;
            if self.grants.changes() != changes && !cancel.is_cancelled() {
                // What was answered meanwhile may hold for this call, too.
                waited += asked.elapsed();
                continue;
            }
            let reformatted = cx.trace().reformatted.clone();
            let params = match &reformatted {
                RepairOutcome::To(params) => params,
                RepairOutcome::No | RepairOutcome::InVain => &call.params,
            };
            let answer = self.ask(question, call, params, cancel).await;
            drop(turn);
            waited += asked.elapsed();
            self.refresh().await;
            break self.apply_user_answer(answer, question, call, &cx).await;
        };
        self.emit_finished(call, &result, start.elapsed().saturating_sub(waited));
        result
    }

    /// Does with a call what was answered.
    async fn apply_user_answer(
        &self,
        answer: Option<UserAnswer>,
        question: &Confirmation,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ToolResult {
        match answer {
            Some(UserAnswer::Once) => {}
            Some(UserAnswer::Session) => {
                let conversation = &self.caller.conversation;
                self.grants
                    .for_session(conversation, session_grants(question));
            }
            Some(UserAnswer::Always(grants, scope)) => {
                if let Err(error) = self.grants.keep(grants, scope).await {
                    self.channel.emit(LoopbackEvent::Error(format!(
                        "the answer holds this once, it could not be kept: {error}"
                    )));
                }
            }
            Some(UserAnswer::No(told)) => {
                let cx = cx.with_answer(UserDecision::No(told));
                let answer = self.executor.execute_tool_call_erased(call, &cx).await;
                return owned(call, answer);
            }
            // Cancelled while the question stood: the stack says so, and audits it.
            None => {
                let answer = self.executor.execute_tool_call_erased(call, cx).await;
                return owned(call, answer);
            }
        }
        // Nobody is held to what nobody saw.
        let seen = question.preview.as_ref();
        let seen = seen.filter(|_| self.channel.shows_questions());
        let basis = seen.map(|preview| preview.basis);
        let cx = cx.with_approval(question.digest).with_preview_digest(basis);
        let answer = self.executor.execute_tool_call_confirmed_erased(call, &cx);
        owned(call, answer.await)
    }

    /// `None` when the turn was cancelled before an answer came.
    async fn ask(
        &self,
        question: &Confirmation,
        call: &ToolCall,
        params: &Value,
        cancel: &CancellationToken,
    ) -> Option<UserAnswer> {
        if cancel.is_cancelled() {
            return None;
        }
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            answer = self.channel.confirm(question, params) => answer,
        };
        if cancel.is_cancelled() {
            return None;
        }
        self.channel.emit(LoopbackEvent::Permission {
            id: call.id.clone(),
            tool: call.tool.clone(),
            allowed: !matches!(answer, UserAnswer::No(_)),
            answer: answer.as_str(),
        });
        Some(answer)
    }
}

/// What an answer for the session holds for: what the question offered, and no more.
fn session_grants(question: &Confirmation) -> Vec<SessionGrant> {
    match &question.offer.proposal {
        ApprovalProposal::Grants(grants) => {
            grants.iter().cloned().map(SessionGrant::Grant).collect()
        }
        ApprovalProposal::ThisCall { .. } => vec![SessionGrant::Call {
            tool: question.tool.clone(),
            subject: question.subject.clone(),
            digest: question.digest,
        }],
        ApprovalProposal::Nothing { .. } => Vec::new(),
    }
}
