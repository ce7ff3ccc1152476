//! The permanent grants of the user on the server of a shared store.
//!
//! A grant of a project applies on every machine where the project has the same real path, for the same role. Every decision
//! reads the grants again, so a revoked one applies nowhere. If they cannot be read, none applies.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use zeph_memory::{Approval, Store};
use zeph_tools::gate::Grant;
use zeph_tools::layers::grants::{GrantScope, GrantStore, PersistedGrant};

/// The grants on a server.
pub(crate) struct SharedGrants {
    store: Store,
    project: PathBuf,
    /// The grants of the project, as they were last read, or the error.
    read: Mutex<Result<Vec<Grant>, String>>,
}

impl SharedGrants {
    /// The grants in `store` for the project with this real path. None applies before the first refresh.
    pub(crate) fn new(store: Store, project: PathBuf) -> Self {
        Self {
            store,
            project,
            read: Mutex::new(Ok(Vec::new())),
        }
    }

    fn set(&self, read: Result<Vec<Grant>, String>) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = read;
    }
}

#[async_trait]
impl GrantStore for SharedGrants {
    async fn refresh(&self) -> io::Result<()> {
        match self.store.approvals_in(&self.project).await {
            Ok(approvals) => {
                self.set(Ok(approvals.into_iter().map(grant).collect()));
                Ok(())
            }
            Err(error) => {
                self.set(Err(error.to_string()));
                Err(io::Error::other(error))
            }
        }
    }

    fn holding(&self) -> io::Result<Vec<Grant>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.clone().map_err(io::Error::other)
    }

    async fn all(&self) -> io::Result<Vec<PersistedGrant>> {
        let approvals = self.store.approvals().await.map_err(io::Error::other)?;
        Ok(approvals.into_iter().map(persisted).collect())
    }

    async fn keep(&self, grants: &[Grant], scope: &GrantScope) -> io::Result<()> {
        let calls: Vec<(&str, &str)> = grants
            .iter()
            .map(|grant| (grant.tool.as_str(), grant.pattern.as_str()))
            .collect();
        let project = match scope {
            GrantScope::Project(project) => Some(project.as_path()),
            GrantScope::Global => None,
        };
        self.store
            .approve(&calls, project)
            .await
            .map_err(io::Error::other)
    }

    async fn remove(&self, kept: &PersistedGrant) -> io::Result<bool> {
        // None applies until they are read again, even if the server does not respond now.
        self.set(Ok(Vec::new()));
        let approval = approval(kept)?;
        self.store
            .revoke_approval(&approval)
            .await
            .map_err(io::Error::other)
    }

    fn project(&self) -> PathBuf {
        self.project.clone()
    }

    fn place(&self) -> String {
        self.store.name()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

fn grant(approval: Approval) -> Grant {
    Grant {
        tool: approval.tool,
        pattern: approval.pattern,
    }
}

fn persisted(approval: Approval) -> PersistedGrant {
    let added = Timestamp::from_millisecond(approval.added_at);
    PersistedGrant {
        scope: match &approval.project {
            Some(project) => GrantScope::Project(project.clone()),
            None => GrantScope::Global,
        },
        added: added.unwrap_or(Timestamp::UNIX_EPOCH).to_string(),
        grant: grant(approval),
    }
}

fn approval(kept: &PersistedGrant) -> io::Result<Approval> {
    let added: Timestamp = kept.added.parse().map_err(io::Error::other)?;
    Ok(Approval {
        tool: kept.grant.tool.clone(),
        pattern: kept.grant.pattern.clone(),
        project: match &kept.scope {
            GrantScope::Project(project) => Some(project.clone()),
            GrantScope::Global => None,
        },
        added_at: added.as_millisecond(),
    })
}
