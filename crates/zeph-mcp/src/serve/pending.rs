//! Questions that wait for the next request of a client.
//!
//! From revision 2026-07-28 on, a server sends no requests. It returns the question as the result of the call. The client repeats
//! the call with the decision and the state of the question, which is an unguessable handle that is valid once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::host::CallQuestion;

/// The number of questions that wait. A further question replaces the oldest one, whose call is then asked about again.
const MAX_PENDING: usize = 64;

/// A question and the conversation of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingQuestion {
    pub(super) question: CallQuestion,
    pub(super) conversation: String,
}

/// The questions that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct PendingQuestions(Mutex<VecDeque<(String, PendingQuestion)>>);

impl PendingQuestions {
    /// Stores a question, and returns its handle.
    pub(super) fn store(&self, question: PendingQuestion) -> String {
        let handle = uuid::Uuid::new_v4().simple().to_string();
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() == MAX_PENDING {
            pending.pop_front();
        }
        pending.push_back((handle.clone(), question));
        handle
    }

    /// Removes the question of a handle, if it belongs to this conversation.
    pub(super) fn take(&self, handle: &str, conversation: &str) -> Option<CallQuestion> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pending
            .iter()
            .position(|(known, stored)| known == handle && stored.conversation == conversation)?;
        Some(pending.remove(at)?.1.question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(n: u8, conversation: &str) -> PendingQuestion {
        PendingQuestion {
            question: CallQuestion {
                digest: [n; 32],
                ..CallQuestion::default()
            },
            conversation: conversation.to_owned(),
        }
    }

    /// Proves MCP-10: a handle is valid once, and only in its conversation.
    #[test]
    fn handle_is_valid_once_in_its_conversation() {
        let pending = PendingQuestions::default();
        let handle = pending.store(question(1, "a"));
        assert_eq!(pending.take(&handle, "b"), None);
        assert_eq!(pending.take("guess", "a"), None);
        assert_eq!(
            pending.take(&handle, "a").map(|it| it.digest),
            Some([1; 32])
        );
        assert_eq!(pending.take(&handle, "a"), None);
    }

    /// Proves MCP-10: a flood of questions replaces the oldest ones.
    #[test]
    fn flood_of_questions_replaces_the_oldest() {
        let pending = PendingQuestions::default();
        let first = pending.store(question(1, "a"));
        let second = pending.store(question(2, "a"));
        for _ in 1..MAX_PENDING {
            pending.store(question(3, "a"));
        }
        assert_eq!(pending.take(&first, "a"), None);
        assert!(pending.take(&second, "a").is_some());
    }
}
