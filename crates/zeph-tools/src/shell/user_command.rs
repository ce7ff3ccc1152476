//! Commands that the user typed (`!command`).
//!
//! They run as in the user's own shell: no blocklist, no read rules, no sandbox and no time limit. A command gets the terminal of
//! the user if the channel has one. `cd` alone changes the directory of the commands that follow. It does not change the
//! directory of the model's commands.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use zeph_bash::{Connector, Kind, List, parse};

use crate::call::ToolCall;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::event::OutputStream;
use crate::output::ToolOutput;
use crate::provenance;
use crate::user_terminal::LentTerminal;

use super::bash::BashParams;
use super::executor::ShellExecutor;
use super::output_pipeline::Recorder;
use zeph_exec::StdStream;
use zeph_exec::runner::{CommandOutcome, CommandSpec, RunError, RunningCommand};

/// The directories of the user's commands, by conversation.
#[derive(Default)]
pub(super) struct UserDirectories(Mutex<HashMap<String, UserDirectory>>);

/// The directory of the user's commands in one conversation.
#[derive(Debug, Clone)]
struct UserDirectory {
    current: PathBuf,
    previous: PathBuf,
}

impl UserDirectories {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, UserDirectory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, conversation: &str) -> Option<UserDirectory> {
        self.lock().get(conversation).cloned()
    }

    fn set(&self, conversation: &str, directory: UserDirectory) {
        self.lock().insert(conversation.to_owned(), directory);
    }
}

impl ShellExecutor {
    /// Runs a command that the user typed.
    pub(super) async fn user_command(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
    ) -> Result<ToolOutput, ToolError> {
        self.commands.check(params)?;
        cx.trace().claim_source = provenance::of_command(&params.command);
        let parsed = parse(&params.command).ok();
        if parsed.as_ref().is_some_and(is_change_of_directory) {
            return self.change_directory(call, cx, params).await;
        }
        // Background processes would lose the terminal with their shell. Without one, they become a job.
        let has_background = parsed.as_ref().is_some_and(has_background);
        let terminal = cx.terminal().filter(|_| !has_background);
        let lent = terminal.and_then(|terminal| terminal.lend().ok());
        let command =
            self.prepare_user_command(call, &params.command, self.user_directory(call))?;
        self.run_unconfined(call, cx, params, &command, lent).await
    }

    /// The directory of the user's commands.
    fn user_directory(&self, call: &ToolCall) -> PathBuf {
        let directory = self.user_directories.get(&call.conversation);
        directory.map_or_else(|| self.commands.cwd.clone(), |it| it.current)
    }

    /// Prepares `text` to run in `cwd` with the previous directory of the user's commands.
    fn prepare_user_command(
        &self,
        call: &ToolCall,
        text: &str,
        cwd: PathBuf,
    ) -> Result<CommandSpec, ToolError> {
        let mut command = self.commands.prepare_for_user(text, cwd)?;
        if let Some(directory) = self.user_directories.get(&call.conversation) {
            command.env.retain(|(name, _)| name != "OLDPWD");
            let previous = OsString::from(directory.previous);
            command.env.push(("OLDPWD".into(), previous));
        }
        Ok(command)
    }

    /// Runs a command of the user at the terminal. The user sees its output directly.
    pub(super) async fn run_at_terminal(
        &self,
        command: CommandSpec,
        mut lent: Box<dyn LentTerminal>,
        cx: &CallContext,
        recorder: &mut Recorder<'_>,
    ) -> Result<(Box<dyn RunningCommand>, CommandOutcome), RunError> {
        let side = lent.side().map_err(RunError::Spawn)?;
        let mut running = self.runner.start_for_user(command, Some(side)).await?;
        let mut no_output = |_: StdStream, _: &[u8]| {};
        let ended = {
            let mut end = std::pin::pin!(running.wait(&cx.cancel, &mut no_output));
            let mut is_open = true;
            loop {
                tokio::select! {
                    ended = &mut end => break ended,
                    bytes = lent.read(), if is_open => match bytes {
                        Some(bytes) => recorder.record(OutputStream::Stdout, &bytes),
                        None => is_open = false,
                    },
                }
            }
        };
        lent.close();
        while let Some(bytes) = lent.read().await {
            recorder.record(OutputStream::Stdout, &bytes);
        }
        Ok((running, ended?))
    }

    /// Runs a `cd` command, and stores the new directory.
    async fn change_directory(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        params: &BashParams,
    ) -> Result<ToolOutput, ToolError> {
        // The shell resolves `~`, variables, `-` and CDPATH. A comment may end the first line.
        let text = format!("{}\n[ $? -eq 0 ] && pwd", params.command);
        let previous = self.user_directory(call);
        // A removed directory is left from the nearest directory above it that exists.
        let mut above = previous.ancestors();
        let cwd = above.find(|dir| dir.is_dir()).unwrap_or(&previous);
        let command = self.prepare_user_command(call, &text, cwd.to_path_buf())?;
        let output = self
            .run_unconfined(call, cx, params, &command, None)
            .await?;
        let raw = output.raw_response.clone();
        let field = |name: &str| raw.as_ref().and_then(|raw| raw.get(name));
        let stdout = field("stdout").and_then(Value::as_str).unwrap_or_default();
        let reached = stdout.lines().last().filter(|line| line.starts_with('/'));
        let (Some(reached), Some(0)) = (reached, field("exit_code").and_then(Value::as_i64)) else {
            return Ok(output);
        };
        let current = PathBuf::from(reached);
        let directory = UserDirectory { current, previous };
        self.user_directories.set(&call.conversation, directory);
        let told = format!("[the next ! commands run in {reached}]");
        let output = ToolOutput::text(told);
        Ok(match raw {
            Some(raw) => output.with_raw(raw),
            None => output,
        })
    }
}

/// Whether a text is one `cd` command and nothing else.
fn is_change_of_directory(list: &List) -> bool {
    let [pipeline] = list.pipelines.as_slice() else {
        return false;
    };
    let ([command], Connector::Next) = (pipeline.commands.as_slice(), pipeline.then) else {
        return false;
    };
    let Kind::Simple { words, assignments } = &command.kind else {
        return false;
    };
    let is_cd = words.first().and_then(|word| word.known()) == Some("cd");
    is_cd && assignments.is_empty() && command.redirects.is_empty()
}

/// Whether a part of a text runs in the background.
fn has_background(list: &List) -> bool {
    let mut pipelines = list.pipelines.iter();
    pipelines.any(|pipeline| pipeline.then == Connector::Background)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves D-42.
    #[test]
    fn cd_alone_changes_the_directory() {
        let check = |text, expect| {
            assert_eq!(
                is_change_of_directory(&parse(text).unwrap()),
                expect,
                "{text}"
            );
        };
        check("cd", true);
        check("cd -", true);
        check("cd \"a b\" # there", true);
        check("cd ~/$X", true);
        check("cd a && ls", false);
        check("(cd a)", false);
        check("cd a > b", false);
        check("cd a &", false);
        check("X=1 cd a", false);
        check("ls cd", false);
    }

    /// Proves SH-3a.
    #[test]
    fn background_is_found() {
        let check = |text, expect| assert_eq!(has_background(&parse(text).unwrap()), expect);
        check("sleep 9 &", true);
        check("sleep 9 & echo x", true);
        check("echo a && echo b", false);
        check("echo 2>&1 x", false);
    }
}
