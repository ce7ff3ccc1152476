//! What requests cost that are made beside a conversation: by the judge of calls, for arguments that
//! fit. They count to the turn in which they end.

use std::sync::{Mutex, PoisonError};

use zeph_llm::Usage;

/// Tokens that were used beside a conversation's own requests.
#[derive(Debug, Default)]
pub struct SideUsage(Mutex<Usage>);

impl SideUsage {
    /// Adds those of a request.
    pub fn add(&self, usage: Usage) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add(usage);
    }

    /// Those since the last look.
    #[must_use]
    pub fn take(&self) -> Usage {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *sum)
    }
}
