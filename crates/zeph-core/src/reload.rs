//! The port to the configuration, which may change while a session runs.

use async_trait::async_trait;

/// The outcome of a configuration change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigUpdate {
    /// The change applies to the following calls, as far as possible. The text lists the differences.
    Taken(String),
    /// The change is invalid or less strict than allowed. The previous configuration remains valid. The text says why
    /// and where.
    Refused(String),
}

/// Applies configuration changes to the tools.
#[async_trait]
pub trait ConfigReload: Send + Sync {
    /// Applies a change since the last check. Returns `None` without a change. It is called before every call, so the
    /// check is fast.
    async fn refresh(&self) -> Option<ConfigUpdate>;

    /// Applies the configuration at the user's request.
    async fn reload(&self) -> ConfigUpdate;
}
