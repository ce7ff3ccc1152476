//! The client of one call: it is asked in the way that its revision allows, and receives output as progress.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{ElicitResult, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::host::{CallClient, CallDecision, CallQuestion};
use super::question::{decision, form};

/// Bytes of output that wait for the next notification; the start of longer output is dropped.
const MAX_WAITING_BYTES: usize = 8 * 1024;
/// The time between two notifications.
const INTERVAL: Duration = Duration::from_millis(100);

/// The way in which a client is asked.
pub(super) enum AskBy {
    /// The client cannot be asked.
    Unsupported,
    /// The server sends a request to the client.
    Request(Peer<RoleServer>),
    /// The question becomes the result of the call. It is stored here, and `cancel` ends the call.
    Result {
        asked: Mutex<Option<CallQuestion>>,
        cancel: CancellationToken,
    },
    /// The client repeated the call with the response to this question.
    Response(CallQuestion, ElicitResult),
}

/// The client of one call.
pub(super) struct CallLink {
    pub(super) ask_by: AskBy,
    output: Mutex<String>,
    has_output: Notify,
}

impl CallLink {
    pub(super) fn new(ask_by: AskBy) -> Self {
        Self {
            ask_by,
            output: Mutex::default(),
            has_output: Notify::new(),
        }
    }

    /// The question that becomes the result of the call.
    pub(super) fn asked(&self) -> Option<CallQuestion> {
        match &self.ask_by {
            AskBy::Result { asked, .. } => {
                asked.lock().unwrap_or_else(PoisonError::into_inner).take()
            }
            _ => None,
        }
    }

    /// Sends output as progress until the future is dropped. Output that arrives meanwhile is sent together.
    pub(super) async fn send_progress(&self, peer: &Peer<RoleServer>, token: &ProgressToken) {
        let mut sent = 0u64;
        loop {
            self.has_output.notified().await;
            let text = {
                let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *output)
            };
            if text.is_empty() {
                continue;
            }
            sent += 1;
            #[allow(clippy::cast_precision_loss, reason = "a counter of notifications")]
            let progress = ProgressNotificationParam::new(token.clone(), sent as f64);
            if peer
                .notify_progress(progress.with_message(text))
                .await
                .is_err()
            {
                return std::future::pending().await;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

#[async_trait]
impl CallClient for CallLink {
    fn can_ask(&self) -> bool {
        !matches!(self.ask_by, AskBy::Unsupported)
    }

    fn can_ask_while_running(&self) -> bool {
        matches!(self.ask_by, AskBy::Request(_))
    }

    async fn ask(&self, question: CallQuestion) -> CallDecision {
        match &self.ask_by {
            AskBy::Unsupported => CallDecision::Reject("the client cannot ask the user".to_owned()),
            AskBy::Request(peer) => {
                let Some(form) = form(&question) else {
                    return CallDecision::Reject("the question has no form".to_owned());
                };
                match peer.create_elicitation(form).await {
                    Ok(response) => decision(&question, &response),
                    Err(error) => {
                        CallDecision::Reject(format!("the client failed to ask: {error}"))
                    }
                }
            }
            AskBy::Result { asked, cancel } => {
                *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
                cancel.cancel();
                std::future::pending().await
            }
            AskBy::Response(asked, response) => match is_same(asked, &question) {
                true => decision(&question, response),
                false => CallDecision::Reject(
                    "the call or the file that it changes differs from the preview that the user \
                     saw; repeat the call"
                        .to_owned(),
                ),
            },
        }
    }

    fn output(&self, text: String) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push_str(&text);
        if output.len() > MAX_WAITING_BYTES {
            let mut cut = output.len() - MAX_WAITING_BYTES;
            while !output.is_char_boundary(cut) {
                cut += 1;
            }
            output.replace_range(..cut, "…");
        }
        drop(output);
        self.has_output.notify_one();
    }
}

/// Whether two questions are about the same call and the same file contents.
fn is_same(asked: &CallQuestion, question: &CallQuestion) -> bool {
    asked.digest == question.digest && asked.preview == question.preview
}

#[cfg(test)]
mod tests {
    use rmcp::model::ElicitationAction;
    use serde_json::json;

    use super::*;

    fn question(digest: u8, preview: Option<u8>) -> CallQuestion {
        CallQuestion {
            digest: [digest; 32],
            preview: preview.map(|digest| [digest; 32]),
            ..CallQuestion::default()
        }
    }

    /// Proves MCP-10: a response approves only the call and the preview that the user saw.
    #[tokio::test]
    async fn response_approves_only_the_question_that_was_shown() {
        let response = ElicitResult::new(ElicitationAction::Accept)
            .with_content(json!({ "decision": "once" }));
        let link = CallLink::new(AskBy::Response(question(1, Some(1)), response));
        assert_eq!(link.ask(question(1, Some(1))).await, CallDecision::Once);
        for other in [
            question(2, Some(1)),
            question(1, Some(2)),
            question(1, None),
        ] {
            assert!(matches!(link.ask(other).await, CallDecision::Reject(_)));
        }
    }

    /// Proves MCP-10: a client that does not read gets the end of the output.
    #[test]
    fn waiting_output_is_bounded() {
        let link = CallLink::new(AskBy::Unsupported);
        for _ in 0..1000 {
            link.output("ä".repeat(100));
        }
        link.output("end".to_owned());
        let output = link.output.lock().unwrap();
        assert!(output.len() <= MAX_WAITING_BYTES + '…'.len_utf8());
        assert!(output.starts_with('…') && output.ends_with("end"));
    }
}
