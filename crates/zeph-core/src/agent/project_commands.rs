//! The commands about the project and its changes: `/init`, `/review`, `/diff`, `/jobs` and `/copy`.
//!
//! `git` runs as a call of the user, so that the gates, the OS sandbox and the audit trail include it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use zeph_llm::Role;
use zeph_tools::file::unified_diff;
use zeph_tools::{FileChange, ToolCall, ToolError, ToolResult, content_for_llm};

use super::tool_runner::user_call_id;
use super::{Agent, CommandOutput, Reply, replay};

const INIT: &str = include_str!("prompts/init.md");
const REVIEW: &str = include_str!("prompts/review.md");

/// The file that `/init` writes.
const AGENTS_FILE: &str = "AGENTS.md";
/// Entries of the project's directory that `/init` lists.
const MAX_ENTRIES: usize = 100;
/// Lines of a diff that `/diff` shows.
const MAX_DIFF_LINES: usize = 500;
/// Bytes of a diff in the prompt of `/review`. The model reads the rest itself.
const MAX_REVIEW_BYTES: usize = 96 * 1024;
/// The start of each `git` command: it starts no pager and no program of the repository's configuration,
/// and prints paths without quotes for other characters than ASCII.
const GIT: &str = "git --no-pager -c core.fsmonitor=false -c core.quotePath=false";
/// The exit code of the shell for a program that is not on `PATH`.
const COMMAND_NOT_FOUND: i32 = 127;
/// The options of each diff.
const DIFF: &str = "diff --no-color --no-ext-diff --no-textconv";

impl Agent {
    /// `/init`: the model drafts or improves `AGENTS.md`. Its calls pass the gates.
    pub(super) async fn init(&mut self, cancel: &CancellationToken) -> Reply {
        let prompt = format!("{INIT}\n{}", facts(&self.session.project));
        Reply::Turn(self.run_turn(&prompt, cancel).await)
    }

    /// `/review`: the model reviews the uncommitted changes, or the changes since `target`.
    pub(super) async fn review(
        &mut self,
        target: Option<&str>,
        cancel: &CancellationToken,
    ) -> Reply {
        let changes = match target {
            Some(target) if target.starts_with('-') => Err(format!(
                "/review takes a commit, a branch, a range or a path, not {target:?}"
            )),
            Some(target) => self.changes_since(target, cancel).await,
            None => self.uncommitted(cancel).await,
        };
        let changes = match changes {
            Ok(changes) if changes.trim().is_empty() => {
                return Reply::Failed("there are no changes to review".to_owned());
            }
            Ok(changes) => changes,
            Err(_) if !is_in_repository(&self.session.project) => {
                return Reply::Failed(
                    "this directory is not in a Git repository: start zeph in one, or run `git init`"
                        .to_owned(),
                );
            }
            Err(reason) => return Reply::Failed(reason),
        };
        let name = target.map_or_else(
            || "the uncommitted changes".to_owned(),
            |target| format!("`git diff {target}`"),
        );
        let end = changes.floor_char_boundary(MAX_REVIEW_BYTES);
        let rest = match changes.len() - end {
            0 => String::new(),
            omitted => format!("\n[{omitted} bytes omitted; read the rest with `git diff`]"),
        };
        let prompt = format!(
            "{REVIEW}\nThe changes are {name}:\n\n```diff\n{}{rest}\n```",
            changes[..end].trim_end()
        );
        Reply::Turn(self.run_turn(&prompt, cancel).await)
    }

    /// `/diff`: the uncommitted changes; outside of a repository, those of this session.
    pub(super) async fn diff(&self, cancel: &CancellationToken) -> Reply {
        match self.uncommitted(cancel).await {
            Ok(changes) if changes.trim().is_empty() => {
                Reply::Text("there are no uncommitted changes".to_owned())
            }
            Ok(changes) => Reply::Diff(bounded(&changes)),
            Err(_) if !is_in_repository(&self.session.project) => self.session_diff().await,
            Err(reason) => Reply::Failed(reason),
        }
    }

    /// `/diff session`: the changes that the file tools made in this session.
    pub(super) async fn session_diff(&self) -> Reply {
        let session = &self.session;
        let views = match session.store.result_views(session.id()).await {
            Ok(views) => views,
            Err(error) => return Reply::Failed(error.to_string()),
        };
        let changes = replay::changes(&views);
        let changes = joined(without_undone(changes, |path| {
            std::fs::read_to_string(path).ok()
        }));
        let mut text = String::new();
        for change in &changes {
            let name = change.path.strip_prefix(&session.project);
            let name = name.unwrap_or(&change.path).display().to_string();
            let before = change.before.as_deref().unwrap_or_default();
            let diff = unified_diff(&name, before.as_bytes(), change.after.as_bytes());
            text.push_str(&diff.unwrap_or_default());
        }
        match text.is_empty() {
            true => Reply::Text("no file tool changed a file in this session".to_owned()),
            false => Reply::Diff(bounded(&text)),
        }
    }

    /// `/jobs`: the background jobs.
    pub(super) async fn jobs(&self, cancel: &CancellationToken) -> CommandOutput {
        let result = self.user_call("job_list", json!({}), cancel).await;
        let text = content_for_llm(&result);
        result.map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// `/jobs stop N`: ends a background job.
    pub(super) async fn stop_job(&self, job: &str, cancel: &CancellationToken) -> CommandOutput {
        let id = match job.parse::<u32>() {
            Ok(number) => format!("job-{number}"),
            Err(_) => job.to_owned(),
        };
        let result = self
            .user_call("job_kill", json!({ "job_id": id }), cancel)
            .await;
        let text = content_for_llm(&result);
        result.map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// `/copy`: the last response, as Markdown.
    pub(super) fn last_response(&self) -> Option<String> {
        let messages = self.session.history.messages().iter().rev();
        let mut texts = messages
            .filter(|message| message.role == Role::Assistant)
            .map(zeph_llm::Message::text);
        texts.find(|text| !text.trim().is_empty())
    }

    /// The changes of tracked files since the last commit, and the names of new files.
    async fn uncommitted(&self, cancel: &CancellationToken) -> Result<String, String> {
        // A repository without a commit has no HEAD.
        let diff = format!("{GIT} {DIFF} HEAD -- 2>/dev/null || {GIT} {DIFF} --cached");
        let mut changes = self.shell(&diff, cancel).await?;
        // As in a diff: the new files of the whole repository, relative to its root.
        let new = format!("{GIT} ls-files --others --exclude-standard --full-name :/");
        for name in self.shell(&new, cancel).await?.lines() {
            let _ = writeln!(changes, "new file, not in the repository: {name}");
        }
        Ok(changes)
    }

    async fn changes_since(
        &self,
        target: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let target = shlex::try_quote(target).map_err(|error| error.to_string())?;
        self.shell(&format!("{GIT} {DIFF} {target}"), cancel).await
    }

    /// The output of a command that only reads.
    ///
    /// # Errors
    /// The reason why it did not run, or the first line of its error output.
    async fn shell(&self, command: &str, cancel: &CancellationToken) -> Result<String, String> {
        let params = json!({ "command": command });
        let output = match self.user_call("bash", params, cancel).await {
            Ok(output) => output,
            Err(ToolError::Shell {
                exit_code: Some(COMMAND_NOT_FOUND),
                ..
            }) => return Err("git is not on PATH: install Git, or add it to PATH".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let raw = output.raw_response.unwrap_or_default();
        let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default();
        match raw.get("exit_code").and_then(Value::as_i64) {
            Some(0) => Ok(text("stdout").to_owned()),
            _ => {
                let first = text("stderr").trim().lines().next().unwrap_or_default();
                Err(format!("git failed: {first}"))
            }
        }
    }

    /// Runs a call of the user whose result the command shows.
    async fn user_call(&self, tool: &str, params: Value, cancel: &CancellationToken) -> ToolResult {
        let id = user_call_id();
        let call = ToolCall::new(id, tool, params, self.session.id());
        self.tools
            .dispatcher
            .run_silent_user_call(&call, cancel)
            .await
    }
}

/// The facts about a project that the prompt of `/init` has.
fn facts(project: &Path) -> String {
    let mut names: Vec<String> = std::fs::read_dir(project)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_shown = name != ".git" && !name.chars().any(char::is_control);
            is_shown.then(|| {
                if is_directory {
                    format!("{name}/")
                } else {
                    name
                }
            })
        })
        .collect();
    names.sort();
    let more = match names.len().saturating_sub(MAX_ENTRIES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let existing = match names.iter().any(|name| name == AGENTS_FILE) {
        true => {
            "AGENTS.md exists. Read it, preserve its correct statements, and improve it with edits. Do not replace it."
        }
        false => "AGENTS.md does not exist.",
    };
    names.truncate(MAX_ENTRIES);
    format!(
        "The directory is {}. Its entries: {}{more}.\n{existing}",
        project.display(),
        names.join(", ")
    )
}

fn is_in_repository(project: &Path) -> bool {
    let mut directories = project.ancestors();
    directories.any(|directory| directory.join(".git").symlink_metadata().is_ok())
}

/// The first lines of a diff.
fn bounded(diff: &str) -> String {
    let lines = diff.lines().count();
    if lines <= MAX_DIFF_LINES {
        return diff.trim_end().to_owned();
    }
    let shown: Vec<&str> = diff.lines().take(MAX_DIFF_LINES).collect();
    format!(
        "{}\n… {} more lines; `!git diff` shows all",
        shown.join("\n"),
        lines - MAX_DIFF_LINES
    )
}

/// The changes without those that were undone. `current` reads the text of a file, if there is one.
///
/// The changes of a file after the last one with its current text are undone. If the file has the text before its first
/// change, all of them are.
fn without_undone(
    changes: Vec<FileChange>,
    current: impl Fn(&Path) -> Option<String>,
) -> Vec<FileChange> {
    let mut by_path: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        by_path.entry(&change.path).or_default().push(index);
    }
    let mut undone = BTreeSet::new();
    for (path, indexes) in by_path {
        let text = current(path);
        let has_text = |index: &usize| Some(&changes[*index].after) == text.as_ref();
        let remaining = match indexes.iter().rposition(has_text) {
            Some(last) => last + 1,
            None if changes[indexes[0]].before == text => 0,
            // The user changed the file.
            None => indexes.len(),
        };
        undone.extend(indexes[remaining..].iter().copied());
    }
    let changes = changes.into_iter().enumerate();
    let remaining = changes.filter(|(index, _)| !undone.contains(index));
    remaining.map(|(_, change)| change).collect()
}

/// The changes of each file as one change, if the later one starts with the result of the earlier one.
fn joined(changes: Vec<FileChange>) -> Vec<FileChange> {
    let mut found: Vec<FileChange> = Vec::new();
    for change in changes {
        let earlier = found
            .iter_mut()
            .rfind(|earlier| earlier.path == change.path);
        match earlier {
            Some(earlier) if change.before.as_ref() == Some(&earlier.after) => {
                earlier.after = change.after;
            }
            _ => found.push(change),
        }
    }
    found.retain(|change| change.before.as_ref() != Some(&change.after));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, before: Option<&str>, after: &str) -> FileChange {
        FileChange {
            path: path.into(),
            before: before.map(str::to_owned),
            after: after.to_owned(),
        }
    }

    /// Proves CLI-8: several changes of one file are one diff.
    #[test]
    fn consecutive_changes_are_joined() {
        let found = joined(vec![
            change("a", None, "1"),
            change("b", Some("x"), "y"),
            change("a", Some("1"), "2"),
            change("b", Some("y"), "x"),
            change("a", Some("other"), "3"),
        ]);
        let expect = [change("a", None, "2"), change("a", Some("other"), "3")];
        assert_eq!(found, expect);
    }

    /// Proves CLI-8: a diff shows no change that was undone.
    #[test]
    fn undone_changes_are_left_out() {
        let changes = || {
            vec![
                change("a", None, "1"),
                change("b", Some("x"), "y"),
                change("a", Some("1"), "2"),
            ]
        };
        let check = |a: Option<&str>, b: &str, expect: &[FileChange]| {
            let found = without_undone(changes(), |path| match path.to_str() {
                Some("a") => a.map(str::to_owned),
                _ => Some(b.to_owned()),
            });
            assert_eq!(found, expect, "{a:?} {b}");
        };
        check(Some("2"), "y", &changes());
        check(Some("1"), "y", &changes()[..2]);
        check(None, "y", &changes()[1..2]);
        check(None, "x", &[]);
        check(Some("of the user"), "of the user", &changes());
    }

    #[test]
    fn long_diff_is_cut() {
        let diff = "+x\n".repeat(MAX_DIFF_LINES + 3);
        let shown = bounded(&diff);
        assert_eq!(shown.lines().count(), MAX_DIFF_LINES + 1);
        assert!(
            shown.ends_with("… 3 more lines; `!git diff` shows all"),
            "{shown}"
        );
        assert_eq!(bounded("+x\n"), "+x");
    }

    /// Proves CLI-8: `/init` improves an existing file.
    #[test]
    fn facts_name_an_existing_file() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("src")).unwrap();
        assert!(facts(temp.path()).contains("Its entries: src/.\nAGENTS.md does not exist."));
        std::fs::write(temp.path().join(AGENTS_FILE), "x").unwrap();
        assert!(facts(temp.path()).contains("AGENTS.md exists. Read it"));
    }
}
