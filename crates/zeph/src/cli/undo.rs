//! `zeph undo`: undoes changes of the file tools, in a separate process.

use std::fmt::Write as _;

use anyhow::bail;
use zeph_core::{History, undo_note};
use zeph_llm::Message;
use zeph_memory::{Store, StoredChange};
use zeph_tools::UndoError;

use super::args::{GlobalArgs, UndoArgs};
use super::{Exit, load_config, print};
use crate::assemble::{App, AuditLines};
use crate::output::local_time::date;
use crate::output::redact::redacted;
use crate::output::stderr_line;

/// How many changes `--list` shows.
const LISTED: u32 = 1000;

/// Runs the command.
pub(crate) async fn run(global: &GlobalArgs, args: UndoArgs) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let off = loaded.config.tools.undo.max_bytes == 0;
    let assembly = App::new(loaded, env, global.build_options(), AuditLines::Stdout).await?;
    let session = match &args.session {
        Some(prefix) => Some(assembly.store.find_session(prefix).await?.id),
        None => {
            let project = &assembly.env.cwd;
            assembly.store.last_changed_session(project).await?
        }
    };
    let exit = match session {
        Some(session) if args.list => {
            let changes = assembly.store.undo_changes(&session, LISTED).await?;
            print(&redacted(&list(&session, &changes)))?;
            Exit::Done
        }
        Some(session) => undo(&assembly, &session, args.forget).await?,
        None if args.list => {
            print("nothing to undo in this directory")?;
            Exit::Done
        }
        None if off => bail!("nothing was recorded: `[tools.undo] max_bytes` is 0"),
        None => {
            bail!("there is nothing to undo in this directory; --session ID names another session")
        }
    };
    assembly.close().await?;
    Ok(exit)
}

async fn undo(assembly: &App, session: &str, forget: bool) -> anyhow::Result<Exit> {
    // An agent that works on the session would not know of it.
    let _lock = assembly.store.lock_session(session).await?;
    let result = if forget {
        assembly.undo.forget_last(session).await
    } else {
        let undone = assembly.undo.undo_last(session).await;
        if let Some(note) = undo_note(&undone) {
            tell(&assembly.store, session, note).await?;
        }
        undone
    };
    match result {
        Ok(undone) => {
            print(&redacted(&undone.lines.join("\n")))?;
            Ok(Exit::Done)
        }
        Err(error @ UndoError::Refused(_)) => {
            stderr_line(&format!(
                "refused: {error}\nCorrect this and repeat the undo, or skip these changes with \
                 --forget."
            ));
            Ok(Exit::Refused)
        }
        Err(error) => Err(error.into()),
    }
}

/// Notifies the model of a continued conversation about the undone changes.
async fn tell(store: &Store, session: &str, note: String) -> anyhow::Result<()> {
    if store.session(session).await?.messages > 0 {
        let mut history = History::open(store.clone(), session, 0).await?;
        history.push(Message::user(note), None).await?;
    }
    Ok(())
}

/// The changes by batch, the latest first.
fn list(session: &str, changes: &[StoredChange]) -> String {
    let mut text = format!("session {session}\n");
    let mut batch = None;
    for change in changes {
        if batch != Some(&change.batch) {
            batch = Some(&change.batch);
            let _ = writeln!(text, "\n{}", date(change.created_at));
        }
        let _ = write!(text, "  {} {}", change.tool, change.what);
        if let Some(reason) = &change.lost {
            let _ = write!(text, "  (cannot be undone: {reason})");
        }
        text.push('\n');
    }
    if changes.is_empty() {
        text.push_str("nothing to undo\n");
    }
    text
}
