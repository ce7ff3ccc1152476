//! Approvals for more than one call: for a session in memory, or permanently in a store.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::gate::Grant;

/// The scope of a stored grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantScope {
    /// The project with this directory.
    Project(PathBuf),
    /// All projects.
    Global,
}

/// A stored grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistedGrant {
    /// The grant.
    pub grant: Grant,
    /// The scope.
    pub scope: GrantScope,
    /// The time of the approval (RFC 3339).
    pub added: String,
}

/// A store of permanent grants.
#[async_trait]
pub trait GrantStore: Send + Sync {
    /// Reads the grants again for [`GrantStore::holding`]. A call is decided after it.
    ///
    /// # Errors
    /// An error if they cannot be read; then no grant applies until they can.
    async fn refresh(&self) -> io::Result<()>;

    /// Returns the grants that apply to this project, without a wait.
    ///
    /// # Errors
    /// An error if they cannot be read.
    fn holding(&self) -> io::Result<Vec<Grant>>;

    /// Returns all grants, in the order of approval.
    ///
    /// # Errors
    /// An error if they cannot be read.
    async fn all(&self) -> io::Result<Vec<PersistedGrant>>;

    /// Stores `grants`; existing ones do not change.
    ///
    /// # Errors
    /// An error if they cannot be stored; then none of them is.
    async fn keep(&self, grants: &[Grant], scope: &GrantScope) -> io::Result<()>;

    /// Removes a grant. Returns whether it existed.
    ///
    /// # Errors
    /// An error if it cannot be removed.
    async fn remove(&self, kept: &PersistedGrant) -> io::Result<bool>;

    /// Returns the canonical directory of this project.
    fn project(&self) -> PathBuf;

    /// Returns a description of the store for the user.
    fn place(&self) -> String;

    /// Returns whether other machines use the grants too.
    fn is_shared(&self) -> bool;
}

/// An approval for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionGrant {
    /// All calls that the grant covers.
    Grant(Grant),
    /// Exactly the same call.
    Call {
        /// The tool.
        tool: String,
        /// A description of the call for the user.
        subject: String,
        /// The digest of the call.
        digest: [u8; 32],
    },
}

/// An approval in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActiveGrant {
    /// A permanent one.
    Kept(PersistedGrant),
    /// One for the session.
    Session(SessionGrant),
}

/// The approvals of all sessions, with their permanent store.
#[derive(Default)]
pub struct Grants {
    store: Option<Arc<dyn GrantStore>>,
    sessions: Mutex<HashMap<String, Vec<SessionGrant>>>,
    changes: AtomicU64,
}

impl Grants {
    /// Creates approvals with permanent grants in `store`.
    #[must_use]
    pub fn kept_in(store: Arc<dyn GrantStore>) -> Self {
        Self {
            store: Some(store),
            ..Self::default()
        }
    }

    /// Reads the permanent grants again before a call is decided. Returns the reason if they cannot be read and do not apply.
    pub async fn refresh(&self) -> Option<String> {
        let store = self.store.as_ref()?;
        store.refresh().await.err().map(|error| error.to_string())
    }

    /// Returns the grants of a conversation. Grants that cannot be read do not apply.
    #[must_use]
    pub fn of_conversation(&self, conversation: &str) -> Vec<Grant> {
        let mut grants = match self.store.as_ref().map(|store| store.holding()) {
            None => Vec::new(),
            Some(Ok(grants)) => grants,
            Some(Err(error)) => {
                tracing::warn!(%error, "saved approvals could not be read and are ignored");
                Vec::new()
            }
        };
        for given in self.sessions().get(conversation).into_iter().flatten() {
            if let SessionGrant::Grant(grant) = given {
                grants.push(grant.clone());
            }
        }
        grants
    }

    /// Returns the grants of a conversation, and whether exactly the call with this digest was approved.
    #[must_use]
    pub fn holding(&self, conversation: &str, digest: &[u8; 32]) -> (Vec<Grant>, bool) {
        let grants = self.of_conversation(conversation);
        let sessions = self.sessions();
        let mut given = sessions.get(conversation).into_iter().flatten();
        let this_call = given
            .any(|given| matches!(given, SessionGrant::Call { digest: of, .. } if of == digest));
        (grants, this_call)
    }

    /// Adds approvals to a conversation, until it starts over or the program ends.
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

    /// Stores `grants` permanently.
    ///
    /// # Errors
    /// An error if they cannot be stored; then none of them is.
    pub async fn keep(&self, grants: Vec<Grant>, scope: GrantScope) -> io::Result<()> {
        let Some(store) = &self.store else {
            return Err(io::Error::other(
                "no place to store the approval is configured",
            ));
        };
        store.keep(&grants, &scope).await?;
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the directory of the project for grants; `None` without a store.
    #[must_use]
    pub fn project(&self) -> Option<PathBuf> {
        Some(self.store.as_ref()?.project())
    }

    /// Returns a description of the permanent store for the user.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        Some(self.store.as_ref()?.place())
    }

    /// Returns a description of the permanent store if other machines use it too.
    #[must_use]
    pub fn shared_place(&self) -> Option<String> {
        let store = self.store.as_ref().filter(|store| store.is_shared())?;
        Some(store.place())
    }

    /// Returns all approvals: the permanent ones, then those of a conversation.
    ///
    /// # Errors
    /// An error if the store cannot be read.
    pub async fn all(&self, conversation: &str) -> io::Result<Vec<ActiveGrant>> {
        let kept = match &self.store {
            Some(store) => store.all().await?,
            None => Vec::new(),
        };
        let sessions = self.sessions();
        let held = sessions.get(conversation).into_iter().flatten();
        let kept = kept.into_iter().map(ActiveGrant::Kept);
        Ok(kept
            .chain(held.cloned().map(ActiveGrant::Session))
            .collect())
    }

    /// Revokes an approval. Returns whether it was still active.
    ///
    /// # Errors
    /// An error if it cannot be revoked.
    pub async fn remove(&self, conversation: &str, given: &ActiveGrant) -> io::Result<bool> {
        match given {
            ActiveGrant::Session(given) => {
                let mut sessions = self.sessions();
                let held = sessions.entry(conversation.to_owned()).or_default();
                let before = held.len();
                held.retain(|held| held != given);
                Ok(held.len() < before)
            }
            ActiveGrant::Kept(kept) => match &self.store {
                Some(store) => store.remove(kept).await,
                None => Ok(false),
            },
        }
    }

    /// Removes all approvals of a conversation.
    pub fn clear(&self, conversation: &str) {
        self.sessions().remove(conversation);
    }

    /// Returns a counter that changes with each new approval.
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
    fn session_has_its_own_grants() {
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
