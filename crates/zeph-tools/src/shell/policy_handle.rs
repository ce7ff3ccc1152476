//! The handle of the command policy, which a configuration reload replaces while calls run.

use std::sync::Arc;

use arc_swap::ArcSwap;

use zeph_bash::{BlocklistOptions, PolicyError, ShellPolicy};

use super::config::ShellConfig;

impl From<&ShellConfig> for BlocklistOptions {
    fn from(config: &ShellConfig) -> Self {
        Self {
            blocked_commands: config.blocked_commands.clone(),
            blocked_constructs: config.blocked_constructs.clone(),
            block_network: !config.allow_network,
        }
    }
}

/// A handle of the current policy. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ShellPolicyHandle(Arc<ArcSwap<ShellPolicy>>);

impl ShellPolicyHandle {
    /// Returns a handle with the policy of `config`.
    ///
    /// # Errors
    /// All [`PolicyError`]s of `config`.
    pub fn new(config: &ShellConfig) -> Result<Self, Vec<PolicyError>> {
        let policy = ShellPolicy::new(&config.into())?;
        Ok(Self(Arc::new(ArcSwap::from_pointee(policy))))
    }

    /// The current policy. A call loads it once and uses it until its end.
    #[must_use]
    pub fn load(&self) -> Arc<ShellPolicy> {
        self.0.load_full()
    }

    /// Replaces the policy for the calls that follow.
    ///
    /// # Errors
    /// All [`PolicyError`]s of `config`; the old policy then stays.
    pub fn rebuild(&self, config: &ShellConfig) -> Result<(), Vec<PolicyError>> {
        self.0.store(Arc::new(ShellPolicy::new(&config.into())?));
        Ok(())
    }

    /// The part of a command that the current policy blocks.
    #[must_use]
    pub fn find_blocked_command(&self, command: &str) -> Option<String> {
        self.load().find_blocked_command(command)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    /// Proves SH-13.
    #[test]
    fn policy_is_replaced_while_another_is_in_use() {
        let handle = ShellPolicyHandle::new(&ShellConfig::default()).unwrap();
        let held = handle.load();
        let other = handle.clone();
        assert_eq!(handle.find_blocked_command("terraform destroy"), None);
        let mut config = ShellConfig {
            blocked_commands: vec!["terraform destroy".into()],
            ..ShellConfig::default()
        };
        handle.rebuild(&config).unwrap();
        let found: Option<String> = other.find_blocked_command("terraform destroy");
        assert_eq!(
            found.as_deref(),
            Some("`terraform destroy` is on the blocklist")
        );
        assert_eq!(held.find_blocked_command("terraform destroy"), None);
        config.blocked_constructs = vec!["evil".into()];
        config.blocked_commands = vec![" ".into()];
        let errors = handle.rebuild(&config).unwrap_err();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(other.find_blocked_command("terraform destroy").is_some());
    }
}
