//! The session of a conversation.

use std::path::Path;

use std::sync::Arc;

use zeph_core::{LoopbackEvent, replay};
use zeph_memory::{SessionInfo, SessionLock, Store, StoreError, new_session_id};
use zeph_tools::secrets::SecurityPatterns;

/// The requested session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// A new one.
    New,
    /// The last one of this directory.
    Continue,
    /// This one.
    Resume(String),
}

/// A session that is ours to work on.
#[derive(Debug)]
pub(crate) struct OpenSession {
    /// Its id.
    pub(crate) id: String,
    /// A notice for the user, if no session could be continued.
    pub(crate) notice: Option<String>,
    /// Excludes other processes until it is dropped.
    pub(crate) lock: SessionLock,
}

/// Finds or makes the session and locks it.
///
/// # Errors
/// [`StoreError`]: unknown, ambiguous, in use.
pub(crate) async fn open_session(
    store: &Store,
    choice: &SessionChoice,
    project: &Path,
) -> Result<OpenSession, StoreError> {
    let (id, notice) = match choice {
        SessionChoice::New => (new_session(store, project).await?, None),
        SessionChoice::Continue => match store.latest_session(project).await? {
            Some(session) => (session.id, None),
            None => (
                new_session(store, project).await?,
                Some("this directory has no session to continue, so a new one starts".to_owned()),
            ),
        },
        SessionChoice::Resume(prefix) => {
            let session = store.find_session(prefix).await?;
            let notice = other_directory(&session, project);
            (session.id, notice)
        }
    };
    let lock = store.lock_session(&id).await?;
    Ok(OpenSession { id, notice, lock })
}

/// A notice if a session was started in another directory than `project`.
pub(crate) fn other_directory(session: &SessionInfo, project: &Path) -> Option<String> {
    let started = session.project.display();
    (session.project != project).then(|| {
        format!(
            "this session was started in {started}; it continues in {}",
            project.display()
        )
    })
}

/// Copies the session `original` to the new session `copy`, and locks the copy.
///
/// # Errors
/// [`StoreError`]: unknown, or the copy exists.
pub(crate) async fn fork_session(
    store: &Store,
    original: &str,
    copy: &str,
    project: &Path,
) -> Result<SessionLock, StoreError> {
    // A call without a result in the copy is repaired when the copy is opened, so a running turn does no harm.
    store.copy_session(original, copy, project).await?;
    store.lock_session(copy).await
}

async fn new_session(store: &Store, project: &Path) -> Result<String, StoreError> {
    let id = new_session_id();
    store.ensure_session(&id, project).await?;
    Ok(id)
}

/// Removes a session without messages and calls when it is left. The caller holds no lock on it.
pub(crate) async fn forget_empty(
    assembly: &super::App,
    session: &str,
    empty: bool,
) -> anyhow::Result<()> {
    if !empty {
        return Ok(());
    }
    let found = assembly.store.session(session).await?;
    if found.messages == 0 && found.calls == 0 {
        assembly.store.delete_session(session).await?;
    }
    Ok(())
}

/// The stored conversation of a session as events, without secrets.
///
/// # Errors
/// If the database cannot be used.
pub(crate) async fn stored_events(
    store: &Store,
    session: &str,
    secrets: &Arc<SecurityPatterns>,
) -> Result<Vec<LoopbackEvent>, StoreError> {
    let messages = store.all_messages(session).await?;
    let views = store.result_views(session).await?;
    let mut events = replay::events(&messages, &views, secrets);
    let tasks = store.tasks(session).await?;
    if !tasks.is_empty() {
        events.push(LoopbackEvent::Tasks(tasks));
    }
    let session = store.session(session).await?;
    events.extend(session.title.map(LoopbackEvent::Title));
    Ok(events)
}
