//! A policy that can be replaced while calls run.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::blocklist::{PolicyError, ShellPolicy};
use crate::shell::config::ShellConfig;

/// The policy that holds; clones share it.
#[derive(Debug, Clone, Default)]
pub struct ShellPolicyHandle(Arc<ArcSwap<ShellPolicy>>);

impl ShellPolicyHandle {
    /// A handle on what `config` says.
    ///
    /// # Errors
    /// [`PolicyError`]s, all of them.
    pub fn new(config: &ShellConfig) -> Result<Self, Vec<PolicyError>> {
        let policy = ShellPolicy::new(config)?;
        Ok(Self(Arc::new(ArcSwap::from_pointee(policy))))
    }

    /// The policy that holds now; a call asks once and keeps it to its end.
    #[must_use]
    pub fn load(&self) -> Arc<ShellPolicy> {
        self.0.load_full()
    }

    /// Replaces the policy for the calls that follow.
    ///
    /// # Errors
    /// [`PolicyError`]s, all of them; the old policy then stays.
    pub fn rebuild(&self, config: &ShellConfig) -> Result<(), Vec<PolicyError>> {
        self.0.store(Arc::new(ShellPolicy::new(config)?));
        Ok(())
    }

    /// What in a command is blocked by the policy that holds now.
    #[must_use]
    pub fn find_blocked_command(&self, command: &str) -> Option<String> {
        self.load().find_blocked_command(command)
    }
}
