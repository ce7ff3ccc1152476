//! Runs the slash commands without arguments: one match arm for each command.

use tokio_util::sync::CancellationToken;

use super::history::HistoryError;
use super::slash_commands::{self, Command};
use super::{Agent, Reply, SessionSwitch};
use crate::reload::ConfigUpdate;

impl Agent {
    /// Runs a command.
    pub(super) async fn run_slash_command(
        &mut self,
        command: Command,
        cancel: &CancellationToken,
    ) -> Reply {
        match self.reply_to(command, cancel).await {
            Ok(reply) => reply,
            Err(error) => Reply::Failed(error.to_string()),
        }
    }

    async fn reply_to(
        &mut self,
        command: Command,
        cancel: &CancellationToken,
    ) -> Result<Reply, HistoryError> {
        let (session, tools) = (&mut self.session, &mut self.tools);
        let output = match command {
            Command::Help => {
                tools.wait_for_servers().await;
                let built_in = slash_commands::help(self.unavailable);
                Ok(built_in + &tools.prompt_help() + &self.commands.help())
            }
            Command::Clear => {
                session.clear().await?;
                tools.clear(session);
                self.model.selection.forget();
                Ok("A new conversation starts. The old messages stay in the store.".to_owned())
            }
            Command::Compact => self.compact_on_command(cancel).await,
            Command::Init => return Ok(self.init(cancel).await),
            Command::Review => return Ok(self.review(None, cancel).await),
            Command::Diff => return Ok(self.diff(cancel).await),
            Command::DiffSession => return Ok(self.session_diff().await),
            Command::Status => Ok(self.status().await),
            Command::Cost => Ok(self.cost()),
            Command::Tools => Ok(tools.listing(session.id())),
            Command::Skills => Ok(tools.skills.listing()),
            Command::Unblock => Err(tools.blocked_hint(session.id())),
            Command::Mcp => {
                tools.wait_for_servers().await;
                Ok(tools.server_listing())
            }
            Command::McpApprove => {
                Err("/mcp approve NAME takes the name of a server; /mcp lists them".to_owned())
            }
            Command::Jobs => self.jobs(cancel).await,
            Command::StopJob => {
                Err("/jobs stop N takes the number of a job; /jobs lists them".to_owned())
            }
            Command::Sessions => Ok(self.session_list().await?),
            Command::Reload => match &tools.dispatcher.reload {
                Some(reload) => {
                    let update = reload.reload().await;
                    let with_commands = |text: String| {
                        let lines = std::iter::once(text).chain(self.commands.reload());
                        lines.collect::<Vec<_>>().join("\n")
                    };
                    match update {
                        ConfigUpdate::Taken(text) => Ok(with_commands(text)),
                        ConfigUpdate::Refused(text) => Err(with_commands(text)),
                    }
                }
                None => Err("this session has no configuration files to read again".to_owned()),
            },
            Command::Modes => Ok(tools.mode_listing()),
            Command::Models => return Ok(Reply::Switch(SessionSwitch::Models)),
            Command::Undo => tools.undo_last(session).await?,
            Command::UndoForget => tools.forget_last_change(session.id()).await,
            Command::Rename => Err("/rename TITLE takes the new title of this session".to_owned()),
            Command::Rewind => Ok(self.rewind_list().await?),
            Command::Permissions => tools.list_permissions(session.id()).await,
            Command::PermissionsRemove(number) => {
                tools.remove_permission(session.id(), number).await
            }
            Command::Copy => {
                let response = self.last_response();
                let missing = || Reply::Failed("there is no response to copy yet".to_owned());
                return Ok(response.map_or_else(missing, Reply::Copy));
            }
            Command::Resume => return Ok(Reply::Switch(SessionSwitch::ChooseSession)),
            Command::Fork => return Ok(Reply::Switch(SessionSwitch::Fork)),
            Command::Export => return Ok(Reply::Switch(SessionSwitch::Export(None))),
            Command::Quit => return Ok(Reply::Quit),
        };
        Ok(output.into())
    }
}
