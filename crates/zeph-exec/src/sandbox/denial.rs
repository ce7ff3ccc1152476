//! The accesses of a command that the sandbox refused.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// The maximum number of different denials that are recorded for a command.
const MAX_DENIALS: usize = 32;

/// An access that the sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// The use of the network.
    Network,
    /// A change of this path (absolute, links resolved), which the user could make without the sandbox.
    Write(PathBuf),
    /// The creation of this directory, likewise.
    CreateDirectory(PathBuf),
}

/// The denials of one command so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Denials(Arc<Mutex<BTreeSet<Denial>>>);

impl Denials {
    /// The denials, in order.
    pub(crate) fn all(&self) -> Vec<Denial> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().cloned().collect()
    }

    /// Locks the denials. [`Denials::all`] waits until the lock is released.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "other systems report none")
    )]
    pub(super) fn lock(&self) -> DenialsGuard<'_> {
        DenialsGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Locked denials.
pub(super) struct DenialsGuard<'a>(MutexGuard<'a, BTreeSet<Denial>>);

impl DenialsGuard<'_> {
    /// Adds a denial, up to the limit.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "other systems report none")
    )]
    pub(super) fn record(&mut self, denial: Denial) {
        if self.0.len() < MAX_DENIALS {
            self.0.insert(denial);
        }
    }
}
