//! `/undo`: reverts the last changes of files, and informs the model.

use zeph_llm::Message;
use zeph_tools::{UndoError, UndoReport};

use super::ToolRunner;
use crate::agent::CommandOutput;
use crate::agent::history::HistoryError;
use crate::agent::session::Session;

impl ToolRunner {
    /// Undoes the last changes, and adds a note to the conversation.
    pub(in crate::agent) async fn undo_last(
        &self,
        session: &mut Session,
    ) -> Result<CommandOutput, HistoryError> {
        let undone = {
            let _changing = self.caches.as_ref().map(|caches| caches.changing());
            self.undo.undo_last(session.id()).await
        };
        if let Some(utility) = &self.limits.utility {
            utility.files_changed();
        }
        if let Some(note) = undo_note(&undone) {
            session.history.push(Message::user(note), None).await?;
        }
        Ok(lines(undone))
    }

    /// Skips the last change, so that earlier changes can be undone.
    pub(in crate::agent) async fn forget_last_change(&self, session: &str) -> CommandOutput {
        lines(self.undo.forget_last(session).await)
    }
}

/// The report of an undo for the user.
fn lines(undone: Result<UndoReport, UndoError>) -> CommandOutput {
    undone
        .map(|undone| undone.lines.join("\n"))
        .map_err(|error| error.to_string())
}

/// The first line of the report for the model.
pub(in crate::agent) const UNDO_MARK: &str =
    "[the user undid the last changes; read a file again before you change it]";

/// The report of an undo for the model; `None` if nothing was changed.
#[must_use]
pub fn undo_note(result: &Result<UndoReport, UndoError>) -> Option<String> {
    let lines = match result {
        Ok(undone) => &undone.lines,
        Err(UndoError::Partial { done, .. }) => done,
        Err(_) => return None,
    };
    Some(format!("{UNDO_MARK}\n{}", lines.join("\n")))
}
