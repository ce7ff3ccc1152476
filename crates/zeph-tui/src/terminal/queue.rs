//! The inputs that the user submits while a turn runs.

use std::collections::VecDeque;

use zeph_core::agent::slash_commands::{Input, parse};

/// Submitted inputs that no turn has taken, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue(VecDeque<String>);

impl Queue {
    /// Adds an input that has more than white space.
    pub(crate) fn push(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.0.push_back(text);
        }
    }

    /// Adds an input as the oldest one.
    pub(crate) fn push_front(&mut self, text: String) {
        self.0.push_front(text);
    }

    /// The inputs.
    pub(crate) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Takes the oldest input if it is a prompt. A command waits for the end of the turn.
    pub(crate) fn take_prompt(&mut self) -> Option<String> {
        let is_prompt = |text: &String| matches!(parse(text), Input::Prompt(_));
        let is_prompt = self.0.front().is_some_and(is_prompt);
        is_prompt.then(|| self.0.pop_front()).flatten()
    }

    /// Takes the oldest input.
    pub(crate) fn take_first(&mut self) -> Option<String> {
        self.0.pop_front()
    }

    /// Takes the latest input.
    pub(crate) fn take_last(&mut self) -> Option<String> {
        self.0.pop_back()
    }

    /// Takes all inputs.
    pub(crate) fn take_all(&mut self) -> Vec<String> {
        self.0.drain(..).collect()
    }
}
