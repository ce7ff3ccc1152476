//! What persons agreed to for more than once: for a session, in memory, and for good, in a store.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gate::Grant;

/// Where a grant that is kept holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantScope {
    /// In the project with this directory.
    Project(PathBuf),
    /// Everywhere.
    Global,
}

/// A grant that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistedGrant {
    /// What it lets run.
    pub grant: Grant,
    /// Where.
    pub scope: GrantScope,
    /// When it was given (RFC 3339).
    pub added: String,
}

/// Where grants are kept for good. Its methods block.
pub trait GrantStore: Send + Sync {
    /// Those that hold in this project.
    ///
    /// # Errors
    /// When they cannot be read.
    fn holding(&self) -> io::Result<Vec<Grant>>;

    /// All, in the order in which they were given.
    ///
    /// # Errors
    /// When they cannot be read.
    fn all(&self) -> io::Result<Vec<PersistedGrant>>;

    /// Keeps `grants`; those that are kept already stay as they are.
    ///
    /// # Errors
    /// When they cannot be kept; none of them is.
    fn keep(&self, grants: &[Grant], scope: &GrantScope) -> io::Result<()>;

    /// Drops a grant; whether it was there.
    ///
    /// # Errors
    /// When it cannot be dropped.
    fn remove(&self, kept: &PersistedGrant) -> io::Result<bool>;

    /// The directory of this project; canonical.
    fn project(&self) -> PathBuf;

    /// Where they are kept, for a person.
    fn place(&self) -> String;
}

/// What was agreed to for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionGrant {
    /// Whatever this covers.
    Grant(Grant),
    /// The very same call.
    Call {
        /// The tool.
        tool: String,
        /// What it is about, for a person.
        subject: String,
        /// What identifies it.
        digest: [u8; 32],
    },
}

/// Something that was agreed to, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActiveGrant {
    /// For good.
    Kept(PersistedGrant),
    /// For the session.
    Session(SessionGrant),
}

/// See the module.
#[derive(Default)]
pub struct Grants {
    store: Option<Arc<dyn GrantStore>>,
    sessions: Mutex<HashMap<String, Vec<SessionGrant>>>,
    changes: AtomicU64,
}

impl Grants {
    /// Grants of which those for good are kept in `store`.
    #[must_use]
    pub fn kept_in(store: Arc<dyn GrantStore>) -> Self {
        Self {
            store: Some(store),
            ..Self::default()
        }
    }

    /// What holds in a conversation, and whether the call with this digest was agreed to as it is.
    /// What cannot be read does not hold.
    #[must_use]
    pub fn holding(&self, conversation: &str, digest: &[u8; 32]) -> (Vec<Grant>, bool) {
        let mut grants = match self.store.as_ref().map(|store| store.holding()) {
            None => Vec::new(),
            Some(Ok(grants)) => grants,
            Some(Err(error)) => {
                tracing::warn!(%error, "saved approvals could not be read and are ignored");
                Vec::new()
            }
        };
        let mut this_call = false;
        for given in self.sessions().get(conversation).into_iter().flatten() {
            match given {
                SessionGrant::Grant(grant) => grants.push(grant.clone()),
                SessionGrant::Call { digest: of, .. } => this_call |= of == digest,
            }
        }
        (grants, this_call)
    }

    /// Lets `given` run in a conversation from now on, until it starts over or the program ends.
    pub fn for_session(&self, conversation: &str, given: Vec<SessionGrant>) {
        let mut sessions = self.sessions();
        let held = sessions.entry(conversation.to_owned()).or_default();
        for grant in given {
            if !held.contains(&grant) {
                held.push(grant);
            }
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps `grants` for good.
    ///
    /// # Errors
    /// When they cannot be kept; none of them is.
    pub async fn keep(&self, grants: Vec<Grant>, scope: GrantScope) -> io::Result<()> {
        let Some(store) = self.store.clone() else {
            return Err(io::Error::other("there is no place where it could be kept"));
        };
        blocking(move || store.keep(&grants, &scope)).await?;
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The directory of the project that grants can be for; `None` where none can be kept.
    #[must_use]
    pub fn project(&self) -> Option<PathBuf> {
        Some(self.store.as_ref()?.project())
    }

    /// Where grants are kept for good, for a person.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        Some(self.store.as_ref()?.place())
    }

    /// All that holds or could hold: what is kept, then what was agreed to in a conversation.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub async fn all(&self, conversation: &str) -> io::Result<Vec<ActiveGrant>> {
        let kept = match self.store.clone() {
            Some(store) => blocking(move || store.all()).await?,
            None => Vec::new(),
        };
        let sessions = self.sessions();
        let held = sessions.get(conversation).into_iter().flatten();
        let kept = kept.into_iter().map(ActiveGrant::Kept);
        Ok(kept
            .chain(held.cloned().map(ActiveGrant::Session))
            .collect())
    }

    /// Takes back what was given; whether it still held.
    ///
    /// # Errors
    /// When it cannot be taken back.
    pub async fn remove(&self, conversation: &str, given: &ActiveGrant) -> io::Result<bool> {
        match given {
            ActiveGrant::Session(given) => {
                let mut sessions = self.sessions();
                let held = sessions.entry(conversation.to_owned()).or_default();
                let before = held.len();
                held.retain(|held| held != given);
                Ok(held.len() < before)
            }
            ActiveGrant::Kept(kept) => {
                let (store, kept) = (self.store.clone(), kept.clone());
                blocking(move || store.map_or(Ok(false), |store| store.remove(&kept))).await
            }
        }
    }

    /// Forgets what was agreed to in a conversation.
    pub fn clear(&self, conversation: &str) {
        self.sessions().remove(conversation);
    }

    /// Changes when something more is agreed to.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Vec<SessionGrant>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Grants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grants")
            .field("place", &self.place())
            .finish_non_exhaustive()
    }
}

#[cfg(any(feature = "file", feature = "shell", feature = "web"))]
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}

/// Without a runtime of its own the contract waits.
#[cfg(not(any(feature = "file", feature = "shell", feature = "web")))]
#[allow(clippy::unused_async, reason = "as with a runtime")]
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(pattern: &str) -> SessionGrant {
        SessionGrant::Grant(Grant {
            tool: "bash".to_owned(),
            pattern: pattern.to_owned(),
        })
    }

    #[test]
    fn a_session_has_its_own_grants() {
        let grants = Grants::default();
        let call = SessionGrant::Call {
            tool: "bash".to_owned(),
            subject: "sudo x".to_owned(),
            digest: [7; 32],
        };
        grants.for_session("one", vec![grant("a"), grant("a"), call]);
        assert_eq!(grants.changes(), 1);
        let held = |conversation, digest| {
            let (grants, this_call) = grants.holding(conversation, &[digest; 32]);
            (grants.len(), this_call)
        };
        assert_eq!(held("one", 7), (1, true));
        assert_eq!(held("one", 8), (1, false));
        assert_eq!(held("two", 7), (0, false));
        grants.clear("one");
        assert_eq!(held("one", 7), (0, false));
    }
}
