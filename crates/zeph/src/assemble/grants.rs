//! The store of permanent grants: a file of the user, or the server of a shared store.

use std::sync::Arc;

use anyhow::Context as _;
use zeph_memory::Store;
use zeph_tools::ToolRegistry;
use zeph_tools::gate::Grant;
use zeph_tools::layers::grants::GrantStore;

use super::policies::{FileGrants, Policies, real_project};
use super::shared_grants::SharedGrants;
use super::store::open_store_for_reading;
use crate::config::{ConfigError, ConfigErrors, Environment, Loaded};

/// The permanent grants.
pub(super) enum PermanentGrants {
    File(Arc<Policies>),
    Server(Arc<SharedGrants>),
}

impl PermanentGrants {
    /// The grants that belong to `store`: those of a server are on it too.
    ///
    /// # Errors
    /// If the project's directory cannot be reached.
    pub(super) fn of_store(
        loaded: &Loaded,
        env: &Environment,
        store: &Store,
    ) -> anyhow::Result<Self> {
        match loaded.config.memory.url {
            Some(_) => {
                let project = real_project(env).context(UNREACHABLE)?;
                let grants = SharedGrants::new(store.clone(), project);
                Ok(Self::Server(Arc::new(grants)))
            }
            None => Self::of_file(loaded, env),
        }
    }

    fn of_file(loaded: &Loaded, env: &Environment) -> anyhow::Result<Self> {
        let policies = Policies::new(&loaded.paths, env).context(UNREACHABLE)?;
        Ok(Self::File(Arc::new(policies)))
    }

    /// Checks that the file is valid for the tools of `registry`. On a server, a pattern that is not valid matches no call.
    ///
    /// # Errors
    /// The error states the problem with the file and the position in it.
    pub(super) fn check(&self, registry: &ToolRegistry, loaded: &Loaded) -> anyhow::Result<()> {
        let Self::File(policies) = self else {
            return Ok(());
        };
        let kind = |tool: &str| Some(registry.get(tool)?.about.pattern_kind());
        let checked = policies.check(kind, &loaded.places);
        checked.map_err(|error| ConfigErrors::from(ConfigError::general(error.to_string())))?;
        Ok(())
    }

    pub(super) fn store(&self) -> Arc<dyn GrantStore> {
        match self {
            Self::File(policies) => Arc::new(FileGrants(Arc::clone(policies))),
            Self::Server(grants) => Arc::clone(grants) as _,
        }
    }
}

const UNREACHABLE: &str = "the project's directory cannot be reached";

/// The permanent grants that apply in this project. Nothing is written.
///
/// # Errors
/// The file of grants cannot be parsed, or the server cannot be reached.
pub(crate) async fn lasting_grants(
    loaded: &Loaded,
    env: &Environment,
    registry: &ToolRegistry,
) -> anyhow::Result<Vec<Grant>> {
    if loaded.config.memory.url.is_none() {
        let grants = PermanentGrants::of_file(loaded, env)?;
        grants.check(registry, loaded)?;
        return Ok(grants.store().holding()?);
    }
    let Some(store) = open_store_for_reading(loaded).await? else {
        return Ok(Vec::new());
    };
    let grants = PermanentGrants::of_store(loaded, env, &store)?.store();
    grants.refresh().await?;
    let holding = grants.holding()?;
    store.close().await?;
    Ok(holding)
}

#[cfg(test)]
mod tests {
    use zeph_tools::layers::grants::GrantScope;

    use super::*;

    fn grant(pattern: &str) -> Grant {
        Grant {
            tool: "bash".to_owned(),
            pattern: pattern.to_owned(),
        }
    }

    /// A store of a process in a project.
    type Process = Arc<dyn GrantStore>;

    async fn applying(process: &Process) -> Vec<Grant> {
        process.refresh().await.unwrap();
        process.holding().unwrap()
    }

    /// Checks two processes with one store, in `/here` and in `/there`.
    async fn check(here: Process, there: Process) {
        assert_eq!(applying(&here).await, []);
        let project = GrantScope::Project("/here".into());
        here.keep(&[grant("a"), grant("b")], &project)
            .await
            .unwrap();
        here.keep(&[grant("a")], &project).await.unwrap();
        there
            .keep(&[grant("c")], &GrantScope::Global)
            .await
            .unwrap();
        let all_here = [grant("a"), grant("b"), grant("c")];
        assert_eq!(applying(&here).await, all_here);
        assert_eq!(applying(&there).await, [grant("c")]);
        let all = there.all().await.unwrap();
        let listed: Vec<_> = all.iter().map(|kept| kept.grant.clone()).collect();
        assert_eq!(listed, all_here);
        assert_eq!(
            (&all[0].scope, &all[2].scope),
            (&project, &GrantScope::Global)
        );
        for kept in &all {
            assert!(
                kept.added.ends_with('Z') && kept.added.len() == 20,
                "{kept:?}"
            );
        }
        // Another process revokes it.
        assert!(there.remove(&all[0]).await.unwrap());
        assert!(!here.remove(&all[0]).await.unwrap());
        assert_eq!(applying(&here).await, [grant("b"), grant("c")]);
        assert_eq!(here.project(), std::path::Path::new("/here"));
    }

    /// Proves PERM-7, OPS-1: a file stores the grants.
    #[tokio::test]
    async fn file_passes_the_checks_of_all_stores() {
        let folder = tempfile::tempdir().unwrap();
        let open = |project: &str| -> Process {
            let file = folder.path().join("policies.json");
            Arc::new(FileGrants(Arc::new(Policies::at(file, project.into()))))
        };
        check(open("/here"), open("/there")).await;
    }

    /// Proves PERM-7, OPS-1: without its store, no grant applies or is stored.
    #[tokio::test]
    async fn no_grant_applies_without_its_store() {
        let store = Store::unopened(std::path::Path::new("/absent/zeph.db"));
        let grants = SharedGrants::new(store, "/here".into());
        assert_eq!(grants.holding().unwrap(), []);
        grants.refresh().await.unwrap_err();
        grants.holding().unwrap_err();
        grants.all().await.unwrap_err();
        let kept = grants.keep(&[grant("a")], &GrantScope::Global).await;
        kept.unwrap_err();
    }

    #[cfg(feature = "postgres")]
    mod postgres {
        use super::*;

        /// Proves PERM-7, OPS-1: a server stores the grants as a file does.
        #[tokio::test]
        async fn server_passes_the_checks_of_all_stores() {
            // The lane of the server names it.
            let Some(url) = option_url() else { return };
            let folder = tempfile::tempdir().unwrap();
            let wait = std::time::Duration::from_secs(10);
            let server = zeph_memory::Server::new(&url, wait).unwrap();
            let open = async |project: &str| {
                let path = folder.path().join("zeph.db");
                let store = Store::connect(&server, &path).await.unwrap();
                Arc::new(SharedGrants::new(store, project.into()))
            };
            check(open("/here").await, open("/there").await).await;
        }

        #[allow(clippy::disallowed_methods, reason = "the lane of the server names it")]
        fn option_url() -> Option<String> {
            std::env::var("ZEPH_TEST_POSTGRES").ok()
        }
    }
}
