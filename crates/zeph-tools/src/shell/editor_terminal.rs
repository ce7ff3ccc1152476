//! The terminal of an editor, in which the commands of a model run.
//!
//! The editor does not confine its terminals, so each command sets up its own sandbox there. A command for which that is
//! not completely possible runs on this machine, and so do background jobs and commands that the user typed.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::time_limit::TimeLimit;
use zeph_exec::CALL_TAG;
use zeph_exec::runner::{CommandRunner, CommandSpec, RunError};

/// The terminals of an editor.
#[derive(Clone)]
pub struct EditorTerminal {
    /// Runs commands in new terminals.
    pub runner: Arc<dyn CommandRunner>,
    /// The time limit of a command there (`[acp] terminal_timeout_secs`). A shorter limit of the command applies first.
    pub timeout: Duration,
}

/// A command with the runner that runs it.
pub(super) struct PlacedCommand {
    pub(super) runner: Arc<dyn CommandRunner>,
    pub(super) command: CommandSpec,
    pub(super) limit: Option<TimeLimit>,
    /// Whether an editor shows its output.
    pub(super) is_in_editor: bool,
}

impl PlacedCommand {
    /// Chooses the terminal of the editor if there is one, and if the command has its whole sandbox there.
    ///
    /// # Errors
    /// If the command may not run at all.
    pub(super) async fn new(
        local: &Arc<dyn CommandRunner>,
        editor: Option<&EditorTerminal>,
        (command, limit): (CommandSpec, Option<TimeLimit>),
    ) -> Result<Self, RunError> {
        if let Some(editor) = editor
            && let Some(confined) = local.self_confined(tagged(command.clone())).await?
        {
            let limit = TimeLimit::in_editor(limit, editor.timeout);
            return Ok(Self {
                runner: Arc::clone(&editor.runner),
                command: CommandSpec {
                    timeout: Some(limit.duration()),
                    ..confined
                },
                limit: Some(limit),
                is_in_editor: true,
            });
        }
        Ok(Self {
            runner: Arc::clone(local),
            command,
            limit,
            is_in_editor: false,
        })
    }
}

/// The command with a tag by which all its processes are found. An editor may kill only the first one.
fn tagged(mut command: CommandSpec) -> CommandSpec {
    command.env.retain(|(name, _)| name != CALL_TAG);
    let tag = format!("editor.{}", Uuid::new_v4());
    command.env.push((CALL_TAG.into(), tag.into()));
    command
}
