//! Exclusive use of the screen: by a question, and by a command that has the terminal. Nothing else moves meanwhile.

use super::{Screen, Section};
use crate::output::sanitize::clean;
use crate::terminal::style::DIM;

impl Screen {
    /// Shows a question; until [`Screen::answered`] nothing moves.
    pub(in crate::terminal) fn ask(&mut self, question: &str) {
        self.is_exclusive = true;
        self.end_text();
        self.write(question);
    }

    /// Stops the output until [`Screen::take_back`]: a command has the terminal.
    pub(in crate::terminal) fn lend(&mut self) {
        self.end_text();
        self.write("");
        self.is_exclusive = true;
        for running in self.running.values_mut() {
            running.had_terminal = true;
        }
    }

    /// Continues the output after a command had the terminal. `reset` restores the terminal, and the cursor may be after
    /// text (`midline`).
    pub(in crate::terminal) fn take_back(&mut self, reset: &str, midline: bool) {
        self.raw(reset);
        self.is_exclusive = false;
        self.midline = midline;
    }

    /// Shows more of a question.
    pub(in crate::terminal) fn ask_more(&mut self, text: &str) {
        self.write(text);
    }

    /// Prompts for a line of text.
    pub(in crate::terminal) fn ask_reason(&mut self) {
        self.write("\n  tell it why: ");
        // The terminal echoes the line and its end.
        self.midline = false;
    }

    /// Ends the question with the decision `answer`.
    pub(in crate::terminal) fn answered(&mut self, answer: &str) {
        self.is_exclusive = false;
        if self.midline {
            let answer = self.style.paint(DIM, &clean(answer));
            self.write(&answer);
            self.write("\n");
        }
        self.section = Section::Calls;
    }
}
