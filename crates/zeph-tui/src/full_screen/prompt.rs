//! The text of the prompt: inputs that wait, and the user's editor.

use std::io;

use super::run::Ui;
use crate::terminal::external_editor::{Editing, NO_EDITOR, edit, failure};
use crate::terminal::{LendableScreen as _, OutputEnd};
use crate::view::Severity;

impl Ui {
    /// The oldest input that waits, if the terminal is free for its turn.
    pub(super) fn take_queued(&self) -> Option<String> {
        match self.editing {
            Some(_) => None,
            None => self.shared.model().queue.take_first(),
        }
    }

    /// Takes the latest input that waits back into the empty prompt; without one, shows an earlier input.
    pub(super) fn take_back(&mut self) {
        match self.shared.model().queue.take_last() {
            Some(text) => self.app.input.set(&text),
            None => {
                self.app.input.recall(true);
            }
        }
    }

    /// The inputs that wait return to the prompt, because their turn was interrupted or failed.
    pub(super) fn return_queue(&mut self) {
        let mut texts = self.shared.model().queue.take_all();
        if !texts.is_empty() {
            if !self.app.input.is_empty() {
                texts.push(self.app.input.text());
            }
            self.app.input.set(&texts.join("\n"));
            self.is_dirty = true;
        }
    }

    /// Opens the prompt in the user's editor.
    pub(super) fn edit(&mut self) {
        let Some(command) = self.external_editor.clone() else {
            return self.message(Severity::Notice, NO_EDITOR.to_owned());
        };
        let text = self.app.input.text();
        self.shared.lend();
        match Editing::start(move || edit(&command, &text)) {
            Ok(editing) => self.editing = Some(editing),
            Err(error) => self.edited(Err(error)),
        }
    }

    /// Continues with the text that the user's editor has changed.
    pub(super) fn edited(&mut self, edited: io::Result<String>) {
        self.editing = None;
        self.shared.take_back(&OutputEnd::default());
        match edited {
            Ok(text) => self.app.input.set(&text),
            Err(error) => {
                let command = self.external_editor.as_deref().unwrap_or_default();
                self.message(Severity::Error, failure(command, &error));
            }
        }
    }
}
