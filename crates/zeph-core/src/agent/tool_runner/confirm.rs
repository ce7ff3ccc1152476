//! Confirmation of a call: asks the user, and records approvals for more than this call.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use zeph_tools::gate::ApprovalProposal;
use zeph_tools::layers::grants::{Grants, SessionGrant};
use zeph_tools::question::{
    QuestionPort, SamplingRequest, SamplingResponse, ServerAnswer, ServerQuestion,
};
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::{AccessPrompt, Confirmation, ToolCall};

use super::sampling::{Sampler, consent};
use crate::channel::{Channel, LoopbackEvent, UserAnswer};
use crate::redacted::without_secret_rules;

/// Asks the user about the calls of one conversation. Clones share the open question.
#[derive(Clone)]
pub(super) struct Confirmer {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) grants: Arc<Grants>,
    /// Secrets that no stored rule may contain.
    pub(super) secrets: Arc<SecurityPatterns>,
    conversation: String,
    /// Only one question is open at a time.
    asking: Arc<Mutex<()>>,
}

/// The outcome of a question.
pub(super) enum QuestionOutcome {
    /// The user answered.
    Answered(UserAnswer),
    /// The turn was cancelled before an answer.
    Cancelled,
    /// The question was not asked, because the grants changed while another question was open.
    GrantsChanged,
}

impl Confirmer {
    /// A confirmer that asks through `channel`, without stored grants and without secrets.
    pub(super) fn new(channel: Arc<dyn Channel>, conversation: String) -> Self {
        Self {
            channel,
            grants: Arc::default(),
            secrets: Arc::default(),
            conversation,
            asking: Arc::default(),
        }
    }

    /// The lock that a question holds while it is open.
    pub(super) fn question_lock(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.asking)
    }

    /// Waits until no other question is open, then asks whether `call` may run with `params`.
    ///
    /// `changes` is the change counter of the grants before the call was judged. If it has changed since, the call must be
    /// judged again, because an approval of another call may cover it.
    pub(super) async fn ask(
        &self,
        question: &Confirmation,
        call: &ToolCall,
        params: &Value,
        changes: u64,
        cancel: &CancellationToken,
    ) -> QuestionOutcome {
        let _open = self.asking.lock().await;
        if cancel.is_cancelled() {
            return QuestionOutcome::Cancelled;
        }
        if self.grants.changes() != changes {
            return QuestionOutcome::GrantsChanged;
        }
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return QuestionOutcome::Cancelled,
            answer = self.channel.confirm(&call.id, question, params) => answer,
        };
        if cancel.is_cancelled() {
            return QuestionOutcome::Cancelled;
        }
        self.channel.emit(LoopbackEvent::Permission {
            id: call.id.clone(),
            tool: call.tool.clone(),
            allowed: !matches!(answer, UserAnswer::No(_)),
            answer: answer.as_str(),
        });
        QuestionOutcome::Answered(answer)
    }

    /// Records the grants of an answer that approves more than one call.
    pub(super) async fn record(&self, answer: UserAnswer, question: &Confirmation) {
        match answer {
            UserAnswer::Once | UserAnswer::No(_) => {}
            UserAnswer::Session => {
                let grants = session_grants(question);
                self.grants.for_session(&self.conversation, grants);
            }
            UserAnswer::Always(grants, scope) => {
                if let Err(error) = self.grants.keep(grants, scope).await {
                    self.channel.emit(LoopbackEvent::Error(format!(
                        "the approval applies only to this call, because it could not be stored: \
                         {error}"
                    )));
                }
            }
        }
    }

    /// The digest of the preview that the user saw; `None` if the question has no preview or the channel shows no questions.
    pub(super) fn seen_preview(&self, question: &Confirmation) -> Option<[u8; 32]> {
        let preview = question.preview.as_ref();
        let seen = preview.filter(|_| self.channel.shows_questions());
        seen.map(|preview| preview.basis)
    }
}

/// Asks the user during one call: about accesses that the sandbox refused, and questions of MCP servers.
pub(super) struct CallPrompts {
    confirmer: Confirmer,
    sampler: Option<Sampler>,
    cancel: CancellationToken,
    waited: std::sync::Mutex<Duration>,
}

impl CallPrompts {
    pub(super) fn new(
        confirmer: Confirmer,
        sampler: Option<Sampler>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            confirmer,
            sampler,
            cancel,
            waited: std::sync::Mutex::default(),
        }
    }

    /// The time that the call waited for the user.
    pub(super) fn waited(&self) -> Duration {
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl AccessPrompt for CallPrompts {
    async fn ask(&self, call: &ToolCall, question: &Confirmation) -> bool {
        let grants = &self.confirmer.grants;
        let offer = question.offer.clone().for_project(grants.project());
        let question = Confirmation {
            offer: offer.shared_in(grants.shared_place()),
            ..question.clone()
        };
        let question = &*without_secret_rules(&question, &self.confirmer.secrets);
        let asked = Instant::now();
        // Other grants do not change the refused access.
        let changes = self.confirmer.grants.changes();
        let confirmer = &self.confirmer;
        let outcome = confirmer
            .ask(question, call, &call.params, changes, &self.cancel)
            .await;
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) += asked.elapsed();
        match outcome {
            QuestionOutcome::Answered(UserAnswer::No(_))
            | QuestionOutcome::Cancelled
            | QuestionOutcome::GrantsChanged => false,
            QuestionOutcome::Answered(answer) => {
                confirmer.record(answer, question).await;
                true
            }
        }
    }
}

#[async_trait]
impl QuestionPort for CallPrompts {
    async fn ask(&self, question: &ServerQuestion) -> ServerAnswer {
        let asked = Instant::now();
        let _open = self.confirmer.asking.lock().await;
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => ServerAnswer::Cancel,
            answer = self.confirmer.channel.ask_for_server(question) => answer,
        };
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) += asked.elapsed();
        answer
    }

    async fn sample(&self, request: &SamplingRequest) -> Result<SamplingResponse, String> {
        let Some(sampler) = &self.sampler else {
            return Err("this session has no model".to_owned());
        };
        let question = consent(request, sampler.provider.model());
        match QuestionPort::ask(self, &question).await {
            ServerAnswer::Accept(_) => {}
            ServerAnswer::Decline | ServerAnswer::Cancel => {
                return Err("the user declined".to_owned());
            }
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err("the turn was cancelled".to_owned()),
            response = sampler.sample(request) => response,
        }
    }
}

/// The grants of an answer for the session: exactly those that the question offered.
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
