//! The text that the user types while a turn runs, and the inputs that wait.

use super::key_press::KeyPress;
use super::line::Line;
use super::queue::Queue;

/// The line that is typed, and the submitted inputs that no turn has taken.
#[derive(Debug)]
pub(super) struct TypedInput {
    pub(super) line: Line,
    queue: Queue,
    /// The taken inputs that are not in the history yet.
    sent: Vec<String>,
}

impl Default for TypedInput {
    fn default() -> Self {
        Self {
            line: Line::prompt(),
            queue: Queue::default(),
            sent: Vec::new(),
        }
    }
}

impl TypedInput {
    /// Handles a key. Enter submits the line, and Up takes the last submitted input back into an empty line.
    pub(super) fn press(&mut self, key: KeyPress) {
        match key {
            KeyPress::Enter => {
                let text = self.line.take();
                self.queue.push(text);
            }
            KeyPress::Up if self.line.is_empty() => {
                if let Some(text) = self.queue.take_last() {
                    self.line.press(KeyPress::Paste(text));
                }
            }
            key => {
                self.line.press(key);
            }
        }
    }

    /// The submitted inputs, the oldest first.
    pub(super) fn queued(&self) -> impl ExactSizeIterator<Item = &str> {
        self.queue.texts()
    }

    /// Takes the oldest submitted input if it is a prompt. A command waits for the end of the turn.
    pub(super) fn take_prompt(&mut self) -> Option<String> {
        let text = self.queue.take_prompt();
        self.sent.extend(text.clone());
        text
    }

    /// Adds a prompt that a turn took and did not store, as the oldest input.
    pub(super) fn return_prompt(&mut self, text: String) {
        // It is not sent.
        self.sent.pop();
        self.queue.push_front(text);
    }

    /// Takes the oldest submitted input.
    pub(super) fn take_first(&mut self) -> Option<String> {
        let text = self.queue.take_first();
        self.sent.extend(text.clone());
        text
    }

    /// Takes the inputs for the history: those that were taken one by one, in their order.
    pub(super) fn take_sent(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sent)
    }

    /// Puts the submitted inputs back into the line.
    pub(super) fn unqueue(&mut self) {
        let text = self.take_all();
        self.line.press(KeyPress::Paste(text));
    }

    /// Takes everything as one text for the prompt.
    pub(super) fn take_all(&mut self) -> String {
        let mut texts = self.queue.take_all();
        if !self.line.is_empty() {
            texts.push(self.line.take());
        }
        texts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(texts: &[&str]) -> TypedInput {
        let mut input = TypedInput::default();
        for text in texts {
            input.press(KeyPress::Paste((*text).to_owned()));
            input.press(KeyPress::Enter);
        }
        input
    }

    /// Proves CLI-4d: prompts are sent at the next step, and commands wait for the end of the turn.
    #[test]
    fn only_prompts_before_a_command_are_taken() {
        let mut input = typed(&["one", "  ", "two\nlines", "/status", "three"]);
        assert_eq!(input.take_prompt().as_deref(), Some("one"));
        assert_eq!(input.take_prompt().as_deref(), Some("two\nlines"));
        assert_eq!(input.take_prompt(), None);
        assert_eq!(input.take_first().as_deref(), Some("/status"));
        assert_eq!(input.take_prompt().as_deref(), Some("three"));
        assert_eq!(input.take_sent(), ["one", "two\nlines", "/status", "three"]);
        assert!(input.take_sent().is_empty());
    }

    /// Proves CLI-4d: no typed text is lost.
    #[test]
    fn typed_inputs_are_joined() {
        let mut input = typed(&["one", "/mode plan"]);
        input.press(KeyPress::Char('x'));
        assert_eq!(input.take_all(), "one\n/mode plan\nx");
        assert_eq!(input.take_all(), "");
        assert!(input.take_sent().is_empty(), "they were not sent");
    }

    #[test]
    fn up_recalls_the_last_input() {
        let mut input = typed(&["one", "two"]);
        input.press(KeyPress::Up);
        assert_eq!(input.line.text(), "two");
        input.press(KeyPress::Up);
        assert_eq!(input.queued().collect::<Vec<_>>(), ["one"]);
    }
}
