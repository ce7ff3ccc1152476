//! The port to the configuration, as far as it may change while a session runs.

use async_trait::async_trait;

/// What became of a configuration that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigUpdate {
    /// It holds for the calls that follow, as far as it can; the text says what changed.
    Taken(String),
    /// It is wrong, or looser than it may be: what held before still holds. The text says why, and
    /// where.
    Refused(String),
}

/// Keeps what the tools go by in step with the configuration.
#[async_trait]
pub trait ConfigReload: Send + Sync {
    /// Looks whether the configuration changed since it was last looked at, and if so takes it
    /// over. Asked before every call, so it has to be quick when nothing changed; `None` then.
    async fn refresh(&self) -> Option<ConfigUpdate>;

    /// Takes the configuration over because the person says so.
    async fn reload(&self) -> ConfigUpdate;
}
