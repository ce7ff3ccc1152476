//! The permission mode of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mode of a session. A denied call stays denied in every mode.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Only read-only tools and read-only commands run.
    Plan,
    /// The user is asked before any change.
    #[default]
    Ask,
    /// Changes of files inside the sandbox need no confirmation.
    AutoEdit,
    /// Commands need no confirmation either, while the OS sandbox confines them to the project without network.
    Auto,
    /// Nothing needs confirmation.
    Full,
}

impl Mode {
    /// Returns the name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Auto => "auto",
            Self::Full => "full",
        }
    }
}

impl Mode {
    /// All modes, from the strictest.
    pub const ALL: [Self; 5] = [
        Self::Plan,
        Self::Ask,
        Self::AutoEdit,
        Self::Auto,
        Self::Full,
    ];

    /// Returns the mode with this name in the configuration.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// The mode of a running session, which the user can change. Clones share it.
#[derive(Debug, Clone)]
pub struct SessionMode(Arc<AtomicU8>);

impl SessionMode {
    /// Creates a mode that only its clones share.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self(Arc::new(AtomicU8::new(mode as u8)))
    }

    /// Returns the current mode.
    #[must_use]
    pub fn get(&self) -> Mode {
        let number = usize::from(self.0.load(Ordering::Relaxed));
        Mode::ALL.get(number).copied().unwrap_or(Mode::Plan)
    }

    /// Changes the mode for the calls that follow.
    pub fn set(&self, mode: Mode) {
        self.0.store(mode as u8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PERM-8: the modes are ordered, and each has one name.
    #[test]
    fn modes_are_ordered_and_named() {
        assert!(Mode::ALL.is_sorted());
        for mode in Mode::ALL {
            assert_eq!(Mode::from_name(mode.as_str()), Some(mode));
            let session = SessionMode::new(Mode::Ask);
            session.clone().set(mode);
            assert_eq!(session.get(), mode);
        }
        assert_eq!(Mode::from_name("yolo"), None);
    }
}
