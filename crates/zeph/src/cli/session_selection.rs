//! The sessions from which the user selects one to resume.

use std::path::Path;

use anyhow::bail;
use zeph_memory::Store;
use zeph_tui::{PickerEntry, SessionPicker, TerminalOptions, pick};

use super::args::TurnArgs;
use super::session_choice;
use crate::assemble::{SessionChoice, open_store};
use crate::config::{Environment, Loaded};
use crate::output::local_time::date;
use crate::output::redact::redacted;
use crate::output::stderr_line;

/// Sessions that are offered, the latest first.
const MAX_OFFERED: u32 = 2000;

/// The stored sessions with messages, the latest first.
///
/// # Errors
/// A failure of the database.
pub(super) async fn stored_sessions(
    store: &Store,
    project: &Path,
) -> anyhow::Result<Vec<PickerEntry>> {
    let sessions = store.list_conversations(None, MAX_OFFERED).await?;
    let entries = sessions.into_iter().map(|session| PickerEntry {
        date: date(session.updated_at),
        title: redacted(session.title.as_deref().unwrap_or("(no title)")).into_owned(),
        directory: session.project.display().to_string(),
        is_here: session.project == project,
        id: session.id,
    });
    Ok(entries.collect())
}

/// The session that the command line chooses, or else the user. `None` if the user selects none.
///
/// # Errors
/// If the list cannot be shown.
pub(super) async fn choose_session(
    turn: &TurnArgs,
    loaded: &Loaded,
    env: &Environment,
    terminal: TerminalOptions,
) -> anyhow::Result<Option<SessionChoice>> {
    if !turn.selects_session() {
        return session_choice(turn).map(Some);
    }
    let selected = select_session(loaded, env, terminal).await?;
    Ok(selected.map(SessionChoice::Resume))
}

/// Prints the command that resumes the session that ended, if it has messages.
pub(super) fn print_resume_hint(session: Option<&str>, is_quiet: bool) {
    if let (Some(session), false) = (session, is_quiet) {
        stderr_line(&format!("zeph --resume {session} resumes this session"));
    }
}

/// Lets the user select a session before the conversation starts. `None` if the user selects none.
///
/// # Errors
/// No stored session, a terminal without escape sequences, or a failure of the database.
async fn select_session(
    loaded: &Loaded,
    env: &Environment,
    terminal: TerminalOptions,
) -> anyhow::Result<Option<String>> {
    let store = open_store(loaded).await?;
    let entries = stored_sessions(&store, &env.cwd).await;
    store.close().await?;
    let entries = entries?;
    if entries.is_empty() {
        bail!("there is no stored session to resume; `zeph` starts a new one");
    }
    pick(SessionPicker::new(entries), terminal).await
}
