//! The current trust level of the origin of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::def::Annotations;
use crate::trust::TrustLevel;

/// The trust level for the next calls; clones share it. The default is [`TrustLevel::Trusted`].
#[derive(Debug, Clone)]
pub struct EffectiveTrust(Arc<AtomicU8>);

impl Default for EffectiveTrust {
    fn default() -> Self {
        let level = Self(Arc::default());
        level.set(TrustLevel::default());
        level
    }
}

impl EffectiveTrust {
    /// Sets the level.
    pub fn set(&self, level: TrustLevel) {
        let number = match level {
            TrustLevel::Untrusted => 0,
            TrustLevel::Provisional => 1,
            TrustLevel::Trusted => 2,
        };
        self.0.store(number, Ordering::Relaxed);
    }

    /// Whether a call of a tool of this nature requires confirmation at the level.
    #[must_use]
    pub fn requires_confirmation(&self, nature: &Annotations) -> bool {
        !self.get().allows(nature)
    }

    /// Returns the level.
    #[must_use]
    pub fn get(&self) -> TrustLevel {
        match self.0.load(Ordering::Relaxed) {
            0 => TrustLevel::Untrusted,
            1 => TrustLevel::Provisional,
            _ => TrustLevel::Trusted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_level() {
        let level = EffectiveTrust::default();
        let other = level.clone();
        assert_eq!(other.get(), TrustLevel::Trusted);
        for wanted in [
            TrustLevel::Untrusted,
            TrustLevel::Provisional,
            TrustLevel::Trusted,
        ] {
            level.set(wanted);
            assert_eq!(other.get(), wanted);
        }
    }
}
