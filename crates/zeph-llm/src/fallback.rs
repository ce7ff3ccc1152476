//! Several providers as one: if the current one fails permanently, the next gets the request.
//!
//! That applies to failures that do not depend on the request: the server cannot be reached, it is busy for longer
//! than a request may wait, the key is refused, the credit is used up, or the model is not known there. A wrong or
//! too long request would fail everywhere. After a part of a response was shown, a failure is final: another model
//! would use other words.
//!
//! Later requests go to the provider that responded last. That preserves its prompt cache and avoids a wait for a
//! dead server at each request. After some time, the first provider is tried again.
//!
//! Name, model and prices are those of the provider that responded last: its response is billed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::error::{LlmError, LlmErrorKind};
use crate::provider::{
    ChatRequest, ChatResponse, EmbeddingModel, Embeddings, LlmProvider, ServerModel, StreamEvent,
    StreamSink,
};
use crate::usage::Prices;

/// The time for which a failed provider is skipped.
const PASSED_OVER: Duration = Duration::from_secs(300);

/// A chain of providers: if one fails permanently, the next one is asked.
#[derive(Debug)]
pub struct Fallback {
    first: Arc<dyn LlmProvider>,
    others: Vec<Arc<dyn LlmProvider>>,
    /// The number of the provider that gets requests first, and since when it is not the first one.
    current: Mutex<Option<(usize, Instant)>>,
    /// The number of the provider that responded last.
    responded: AtomicUsize,
}

impl Fallback {
    /// Creates a fallback chain: `first`, then `others` in this order.
    #[must_use]
    pub fn new(first: Arc<dyn LlmProvider>, others: Vec<Arc<dyn LlmProvider>>) -> Self {
        Self {
            first,
            others,
            current: Mutex::new(None),
            responded: AtomicUsize::new(0),
        }
    }

    /// The number of the provider that gets the next request first.
    fn start(&self) -> usize {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_some_and(|(_, since)| since.elapsed() >= PASSED_OVER) {
            *current = None;
        }
        current.map_or(0, |(number, _)| number)
    }

    /// Records the provider that responded.
    fn stay_with(&self, number: usize) {
        self.responded.store(number, Ordering::Relaxed);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match *current {
            Some((known, _)) if known == number => {}
            _ => *current = (number > 0).then(|| (number, Instant::now())),
        }
    }

    fn get(&self, number: usize) -> &Arc<dyn LlmProvider> {
        number
            .checked_sub(1)
            .and_then(|at| self.others.get(at))
            .unwrap_or(&self.first)
    }

    /// The provider that gets the next request first.
    fn now(&self) -> &dyn LlmProvider {
        &**self.get(self.start())
    }

    /// The provider that responded last.
    fn last(&self) -> &dyn LlmProvider {
        &**self.get(self.responded.load(Ordering::Relaxed))
    }
}

/// Whether another provider may succeed after this failure.
fn is_worth_another(kind: LlmErrorKind) -> bool {
    match kind {
        LlmErrorKind::Network
        | LlmErrorKind::Timeout
        | LlmErrorKind::StreamCut
        | LlmErrorKind::RateLimited
        | LlmErrorKind::Server
        | LlmErrorKind::Auth
        | LlmErrorKind::NoCredit
        | LlmErrorKind::UnknownModel => true,
        LlmErrorKind::ContextOverflow
        | LlmErrorKind::BadRequest
        | LlmErrorKind::Protocol
        | LlmErrorKind::Config
        | LlmErrorKind::Scenario => false,
    }
}

#[async_trait]
impl LlmProvider for Fallback {
    fn name(&self) -> &str {
        self.last().name()
    }

    fn model(&self) -> &str {
        self.last().model()
    }

    fn supports_tool_use(&self) -> bool {
        self.now().supports_tool_use()
    }

    fn supports_images(&self) -> bool {
        self.now().supports_images()
    }

    fn context_window(&self) -> usize {
        self.now().context_window()
    }

    async fn learn_window(&self) {
        self.now().learn_window().await;
    }

    fn prices(&self) -> Option<Prices> {
        self.last().prices()
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let (start, count) = (self.start(), self.others.len() + 1);
        let mut tried = 1;
        loop {
            let number = (start + tried - 1) % count;
            let mut shown = false;
            let mut watch = |event| {
                shown |= !matches!(event, StreamEvent::Notice(_) | StreamEvent::Retry(_));
                sink(event);
            };
            let error = match self.get(number).chat_stream(request, &mut watch).await {
                Ok(response) => {
                    self.stay_with(number);
                    return Ok(response);
                }
                Err(error) => error,
            };
            if shown || tried == count || !is_worth_another(error.kind) {
                return Err(error);
            }
            let next = self.get((number + 1) % count);
            let (name, model) = (next.name(), next.model());
            sink(StreamEvent::Notice(format!(
                "{error} The request goes to {name} ({model}) instead."
            )));
            tried += 1;
        }
    }

    async fn models(&self) -> Result<Vec<ServerModel>, LlmError> {
        self.now().models().await
    }

    /// The model of the first provider: embeddings of another model could not be compared with its own.
    fn embedding_model(&self) -> Option<&EmbeddingModel> {
        self.first.embedding_model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Option<Embeddings>, LlmError> {
        self.first.embed(texts).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::collections::BTreeMap;

    use super::*;
    use crate::message::Message;
    use crate::scripted::{Scenario, ScriptedProvider};

    /// A provider that plays these steps.
    fn scripted(name: &str, steps: &[&str]) -> Arc<dyn LlmProvider> {
        let steps: Vec<String> = steps
            .iter()
            .map(|step| format!("[[steps]]\n{step}\n"))
            .collect();
        let scenario = Scenario::from_toml(&steps.concat(), BTreeMap::new()).unwrap();
        Arc::new(ScriptedProvider::new(name, scenario))
    }

    async fn ask(provider: &Fallback) -> (Result<String, LlmError>, Vec<String>) {
        let messages = [Message::user("Hi")];
        let request = ChatRequest::alone("", &messages);
        let mut notices = Vec::new();
        let answer = provider
            .chat_stream(request, &mut |event| {
                if let StreamEvent::Notice(text) = event {
                    notices.push(text);
                }
            })
            .await;
        (answer.map(|it| it.into_message().text()), notices)
    }

    /// Proves LLM-2.
    #[tokio::test]
    async fn falls_back_on_permanent_failure() {
        for fault in ["auth", "server", "rate_limited"] {
            let fault = format!("fault = \"{fault}\"");
            let first = scripted("a", &[&fault]);
            let second = scripted("b", &[&fault]);
            let third = scripted("c", &["text = \"done\""]);
            let provider = Fallback::new(first, vec![second, third]);
            let (answer, notices) = ask(&provider).await;
            assert_eq!(answer.unwrap(), "done");
            assert_eq!(notices.len(), 2, "{notices:?}");
            assert!(notices[0].starts_with("a: "), "{notices:?}");
            assert!(notices[0].contains("The request goes to b (scripted) instead"));
            assert_eq!(provider.name(), "c");
        }
    }

    /// Proves LLM-2: a failure that depends on the request, or follows displayed text, is final.
    #[tokio::test]
    async fn some_failures_are_final() {
        for step in [
            "fault = \"context_overflow\"",
            "fault = \"garbage\"",
            "text = \"Hel\"\nfault = \"stream_cut\"",
        ] {
            let other = scripted("b", &["text = \"not asked\""]);
            let provider = Fallback::new(scripted("a", &[step]), vec![other]);
            let (answer, notices) = ask(&provider).await;
            assert_eq!(answer.unwrap_err().provider, "a", "{step}");
            assert_eq!(notices, [""; 0], "{step}");
        }
    }

    /// If all providers fail, the last failure is returned.
    #[tokio::test]
    async fn last_failure_is_returned_if_all_providers_fail() {
        let fault = "fault = \"server\"";
        let provider = Fallback::new(scripted("a", &[fault]), vec![scripted("b", &[fault])]);
        let (answer, notices) = ask(&provider).await;
        assert_eq!(answer.unwrap_err().provider, "b");
        assert_eq!(notices.len(), 1);
    }

    /// The provider that responded gets the next requests, until the first one is tried again.
    #[tokio::test(start_paused = true)]
    async fn responding_provider_stays_until_the_first_is_retried() {
        let first = scripted("a", &["fault = \"server\"", "text = \"a again\""]);
        let second = scripted("b", &["text = \"b\"", "text = \"b again\""]);
        let provider = Fallback::new(first, vec![second]);
        assert_eq!(ask(&provider).await.0.unwrap(), "b");
        let (answer, notices) = ask(&provider).await;
        assert_eq!((answer.unwrap().as_str(), notices.len()), ("b again", 0));
        assert_eq!(provider.name(), "b");
        tokio::time::advance(PASSED_OVER).await;
        assert_eq!(ask(&provider).await.0.unwrap(), "a again");
        assert_eq!(provider.name(), "a");
    }

    /// Proves LLM-11: a response that ends after the first provider is due again is billed to its own provider.
    #[tokio::test(start_paused = true)]
    async fn response_across_the_boundary_belongs_to_its_provider() {
        let first = scripted("a", &["fault = \"server\"", "text = \"a again\""]);
        let second = scripted("b", &["text = \"b\"", "text = \"slow\"\ndelay_ms = 300000"]);
        let provider = Fallback::new(first, vec![second]);
        assert_eq!(ask(&provider).await.0.unwrap(), "b");
        assert_eq!(ask(&provider).await.0.unwrap(), "slow");
        assert_eq!(provider.name(), "b");
        assert_eq!(ask(&provider).await.0.unwrap(), "a again");
        assert_eq!(provider.name(), "a");
    }
}
