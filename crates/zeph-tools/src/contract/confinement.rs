//! The sandbox of a command: the profile that the permission layer chooses, and the accesses that the user added.

use std::path::PathBuf;

use async_trait::async_trait;

use super::call::ToolCall;
use super::confirmation::{Confirmation, Grant};

/// The tool of grants for write access of commands. The pattern is an absolute path.
pub const WRITE_ACCESS: &str = "sandbox.write";
/// The tool of grants for network access of commands. The pattern is `*`.
pub const NETWORK_ACCESS: &str = "sandbox.network";

/// The limits of the sandbox of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxProfile {
    /// The limits of the configuration.
    #[default]
    Configured,
    /// The limits of the configuration without the network, for commands that no one confirmed.
    Unconfirmed,
    /// No writes except to a private temporary directory, and no network: the command only reads.
    ReadOnly,
}

/// An access that the user adds to the limits of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxAccess {
    /// Writes to this path (absolute) and everything below it.
    Write(PathBuf),
    /// The network.
    Network,
    /// No sandbox.
    Everything,
}

impl SandboxAccess {
    /// The access as a phrase after "run the command again".
    #[must_use]
    pub fn phrase(&self) -> String {
        match self {
            Self::Write(path) => format!("with write access to {}", path.display()),
            Self::Network => "with network access".to_owned(),
            Self::Everything => "without the OS sandbox".to_owned(),
        }
    }

    /// The grant that stores the access; `None` if it is never stored.
    #[must_use]
    pub fn to_grant(&self) -> Option<Grant> {
        let (tool, pattern) = match self {
            Self::Write(path) => (WRITE_ACCESS, path.to_str()?),
            Self::Network => (NETWORK_ACCESS, "*"),
            Self::Everything => return None,
        };
        Some(Grant {
            tool: tool.to_owned(),
            pattern: pattern.to_owned(),
        })
    }

    /// The access that a grant stores; `None` if the grant is about calls.
    #[must_use]
    pub fn from_grant(grant: &Grant) -> Option<Self> {
        match grant.tool.as_str() {
            WRITE_ACCESS => Some(PathBuf::from(&grant.pattern))
                .filter(|path| path.is_absolute())
                .map(Self::Write),
            NETWORK_ACCESS => Some(Self::Network),
            _ => None,
        }
    }
}

/// The sandbox of the command of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The limits.
    pub profile: SandboxProfile,
    /// The accesses in addition.
    pub access: Vec<SandboxAccess>,
}

/// The parts of the sandbox that this machine enforces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxSupport {
    /// Writes outside of the permitted paths are refused.
    pub confines_writes: bool,
    /// The network is refused.
    pub cuts_network: bool,
}

impl SandboxSupport {
    /// Whether a command can be limited to reading, and an unconfirmed one to its project.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.confines_writes && self.cuts_network
    }
}

/// Asks the user whether a running call gets an additional access.
#[async_trait]
pub trait AccessPrompt: Send + Sync {
    /// Asks, and records the approval if it is for more than this call. Returns whether the user approved.
    async fn ask(&self, call: &ToolCall, question: &Confirmation) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-22: a stored access is exactly the approved one.
    #[test]
    fn stored_access_is_the_approved_access() {
        for access in [
            SandboxAccess::Write("/a b/*".into()),
            SandboxAccess::Network,
        ] {
            let grant = access.to_grant().unwrap();
            assert_eq!(SandboxAccess::from_grant(&grant), Some(access));
        }
        assert_eq!(SandboxAccess::Everything.to_grant(), None);
        let other = |tool: &str, pattern: &str| {
            SandboxAccess::from_grant(&Grant {
                tool: tool.to_owned(),
                pattern: pattern.to_owned(),
            })
        };
        assert_eq!(other("bash", "*"), None);
        assert_eq!(other(WRITE_ACCESS, "relative"), None);
    }
}
