//! A loaded model that generates a response to a conversation, token by token.

use llguidance::Matcher;

use super::grammar::{Form, Grammars};
use super::model::Network;
use super::prompt;
use super::template::{ChatMessage, Template};
use super::text::Utf8;
use super::vocabulary::Vocabulary;
use crate::error::LlmErrorKind;
use crate::provider::StopReason;
use crate::usage::Usage;

/// The number of prompt tokens that are computed between two checks whether the caller still waits.
const PREFILL: usize = 64;

/// A loaded model.
#[derive(Debug)]
pub(super) struct Engine {
    network: Network,
    vocabulary: Vocabulary,
    template: Template,
    grammars: Grammars,
    /// The maximum number of tokens of a request and its response.
    window: usize,
}

/// A request to the model.
#[derive(Debug)]
pub(super) struct CompletionRequest {
    pub(super) chat: Vec<ChatMessage>,
    pub(super) form: Form,
    /// The maximum number of tokens of the response.
    pub(super) most: usize,
}

/// The end of a response.
#[derive(Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
}

/// The reason for a missing response.
#[derive(Debug, PartialEq)]
pub(super) enum Failure {
    /// The caller no longer waits.
    Cancelled,
    /// The class and the text of the error.
    Error(LlmErrorKind, String),
}

impl Failure {
    fn inner(error: impl std::fmt::Display) -> Self {
        let message = format!("the local model failed: {}", super::words(error));
        Self::Error(LlmErrorKind::Protocol, message)
    }
}

/// Chooses a token by the logits of all.
pub(super) type Choose<'a> = &'a mut dyn FnMut(&[f32]) -> u32;

/// The most likely token.
pub(super) fn greedy(logits: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, logit) in logits.iter().enumerate() {
        if *logit > best.1 {
            best = (token, *logit);
        }
    }
    u32::try_from(best.0).unwrap_or(u32::MAX)
}

impl Engine {
    /// Creates an engine from the parts of a model.
    ///
    /// # Errors
    /// A vocabulary that grammars cannot work with.
    pub(super) fn new(
        network: Network,
        vocabulary: Vocabulary,
        template: Template,
        window: usize,
    ) -> Result<Self, String> {
        let grammars = Grammars::new(&vocabulary.environment())?;
        Ok(Self {
            network,
            vocabulary,
            template,
            grammars,
            window,
        })
    }

    /// Generates a response. `show` gets each piece of text, and returns whether the caller still waits.
    ///
    /// # Errors
    /// [`Failure`]; a conversation that is longer than the window fails before any computation.
    pub(super) fn answer(
        &mut self,
        question: CompletionRequest,
        choose: Choose<'_>,
        show: &mut dyn FnMut(String) -> bool,
    ) -> Result<Ended, Failure> {
        let refused = |message| Failure::Error(LlmErrorKind::BadRequest, message);
        let prompt = prompt::tokens(question.chat, &self.template, &self.vocabulary);
        let prompt = prompt.map_err(refused)?;
        if prompt.len() >= self.window {
            return Err(Failure::Error(
                LlmErrorKind::ContextOverflow,
                format!(
                    "the conversation has {} tokens, and the window of the model is {}",
                    prompt.len(),
                    self.window
                ),
            ));
        }
        let most = question.most.min(self.window - prompt.len());
        let mut matcher = self.grammars.matcher(question.form);
        let reused = self.network.keep_prefix(&prompt);
        let mut usage = Usage {
            input_tokens: prompt.len() as u64,
            cached_tokens: reused as u64,
            ..Usage::default()
        };
        let mut logits = Vec::new();
        for part in prompt[reused..].chunks(PREFILL) {
            if !show(String::new()) {
                return Err(Failure::Cancelled);
            }
            logits = self.network.append(part).map_err(Failure::inner)?;
        }
        let mut utf8 = Utf8::default();
        let mut written = 0;
        let stop = loop {
            let Some(next) = self.next(&mut logits, matcher.as_mut(), choose) else {
                break StopReason::EndTurn;
            };
            // Tokens that the grammar forces are added without sampling.
            let mut run = vec![next];
            if let Some(matcher) = &mut matcher {
                run.extend(matcher.consume_ff_tokens());
            }
            let cut = run.len() > most - written;
            run.truncate(most - written);
            written += run.len();
            usage.output_tokens = written as u64;
            let bytes: Vec<u8> = run
                .iter()
                .flat_map(|token| self.vocabulary.bytes(*token))
                .copied()
                .collect();
            if !show(utf8.push(&bytes)) {
                return Err(Failure::Cancelled);
            }
            if !cut && matcher.as_ref().is_some_and(Matcher::is_stopped) {
                break StopReason::EndTurn;
            }
            if written >= most {
                break StopReason::MaxTokens;
            }
            logits = self.network.append(&run).map_err(Failure::inner)?;
        };
        Ok(Ended { stop, usage })
    }

    /// The tokens of a conversation.
    #[cfg(test)]
    pub(super) fn prompt(&self, chat: Vec<ChatMessage>) -> Vec<u32> {
        prompt::tokens(chat, &self.template, &self.vocabulary).unwrap_or_default()
    }

    /// The next token of the response; `None` at its end.
    fn next(
        &self,
        logits: &mut Vec<f32>,
        matcher: Option<&mut Matcher>,
        choose: Choose<'_>,
    ) -> Option<u32> {
        // Beyond the vocabulary there is padding.
        logits.truncate(self.vocabulary.size());
        let Some(matcher) = matcher else {
            let token = choose(logits);
            return (!self.vocabulary.ends(token)).then_some(token);
        };
        // A grammar that exceeds its limits ends the response; no unchecked text is written.
        let mask = matcher.compute_mask().ok()?;
        for (token, logit) in (0u32..).zip(logits.iter_mut()) {
            if !mask.is_allowed(token) {
                *logit = f32::NEG_INFINITY;
            }
        }
        let token = choose(logits);
        let goes_on = mask.is_allowed(token) && !self.vocabulary.ends(token);
        (goes_on && matcher.consume_token(token).is_ok()).then_some(token)
    }
}
