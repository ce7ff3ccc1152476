//! Completion of slash commands and paths. A thread searches, so that a slow directory or server delays no key.

use std::io;
use std::sync::mpsc::{Sender, channel};

use reedline::Completer;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::sanitize::visible;
use crate::terminal::{Words, open_quote};

/// A text that can be inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// The text.
    pub(super) value: String,
    /// Its description, which is safe.
    pub(super) description: String,
    /// The replaced range, in bytes.
    pub(super) span: (usize, usize),
    /// A space follows the text: it is complete.
    pub(super) append_whitespace: bool,
}

impl Suggestion {
    /// The text, with the space that follows it.
    pub(super) fn inserted(&self) -> String {
        let space = if self.append_whitespace { " " } else { "" };
        format!("{}{space}", self.value)
    }
}

/// The suggestions for a text.
#[derive(Debug)]
pub(super) struct Suggestions {
    /// The text that was completed.
    pub(super) text: String,
    /// The suggestions, the best first.
    pub(super) all: Vec<Suggestion>,
}

/// Searches suggestions.
pub(super) struct Completion {
    requests: Sender<(String, usize)>,
    results: UnboundedReceiver<Suggestions>,
}

impl Completion {
    /// Starts the thread.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(mut words: Words) -> io::Result<Self> {
        let (requests, received) = channel::<(String, usize)>();
        let (sender, results) = unbounded_channel();
        std::thread::Builder::new()
            .name("completion".to_owned())
            .spawn(move || {
                while let Ok(request) = received.recv() {
                    // Only the last text is of interest.
                    let (text, cursor) = received.try_iter().last().unwrap_or(request);
                    let all = complete(&mut words, &text, cursor);
                    if sender.send(Suggestions { text, all }).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { requests, results })
    }

    /// Requests suggestions for the text before the cursor, a position in bytes.
    pub(super) fn request(&self, text: &str, cursor: usize) {
        // Without the thread there are no suggestions.
        let _ = self.requests.send((text.to_owned(), cursor));
    }

    /// The next result. If the future is dropped, no result is lost.
    pub(super) async fn next(&mut self) -> Option<Suggestions> {
        self.results.recv().await
    }
}

fn complete(words: &mut Words, text: &str, cursor: usize) -> Vec<Suggestion> {
    let result = words.complete(text, cursor);
    let all = result.suggestions().iter().map(|it| Suggestion {
        value: it.value.clone(),
        description: visible(it.description.as_deref().unwrap_or_default()),
        span: (it.span.start, it.span.end),
        append_whitespace: it.append_whitespace,
    });
    all.collect()
}

/// Whether the text before the cursor may have suggestions.
pub(super) fn is_completable(before: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    word.starts_with('@') || before.trim_start().starts_with('/') || open_quote(before).is_some()
}

/// The list of suggestions below the prompt.
#[derive(Debug)]
pub(super) struct Popup {
    /// The suggestions.
    pub(super) all: Vec<Suggestion>,
    /// The highlighted one.
    pub(super) selected: usize,
    /// The user has moved the selection, so Enter takes it.
    pub(super) is_chosen: bool,
}

impl Popup {
    /// A list, if there are suggestions that differ from the text.
    pub(super) fn new(suggestions: Suggestions) -> Option<Self> {
        let Suggestions { text, mut all } = suggestions;
        all.retain(|it| text.get(it.span.0..it.span.1) != Some(it.value.as_str()));
        (!all.is_empty()).then_some(Self {
            all,
            selected: 0,
            is_chosen: false,
        })
    }

    /// Selects the next or the previous suggestion.
    pub(super) fn go(&mut self, is_forward: bool) {
        let count = self.all.len().max(1);
        let step = if is_forward { 1 } else { count - 1 };
        self.selected = (self.selected + step) % count;
        self.is_chosen = true;
    }

    /// The selected suggestion.
    pub(super) fn chosen(&self) -> Option<&Suggestion> {
        self.all.get(self.selected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_and_paths_are_completed() {
        let check = |text, expect| assert_eq!(is_completable(text), expect, "{text:?}");
        check("/mo", true);
        check("/model x", true);
        check("see @src", true);
        check("see @", true);
        check("see @\"my dir/", true);
        check("see @\"my dir/a b\" now", false);
        check("mail@host", false);
        check("see /etc", false);
        check("", false);
    }

    #[test]
    fn complete_word_opens_no_popup() {
        let suggestions = |values: &[&str]| Suggestions {
            text: "/help".to_owned(),
            all: values
                .iter()
                .map(|value| Suggestion {
                    value: (*value).to_owned(),
                    description: String::new(),
                    span: (0, 5),
                    append_whitespace: true,
                })
                .collect(),
        };
        assert!(Popup::new(suggestions(&["/help"])).is_none());
        let mut popup = Popup::new(suggestions(&["/help", "/helper", "/helping"])).unwrap();
        assert_eq!(popup.all.len(), 2);
        popup.go(false);
        assert_eq!((popup.selected, popup.is_chosen), (1, true));
        popup.go(true);
        assert_eq!(popup.chosen().unwrap().value, "/helper");
    }
}
