//! The state of the session that the status line and the Resources panel show.

use zeph_llm::{Usage, Usd};
use zeph_tools::{FilterStats, Mode};

/// The state of the session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SessionStatus {
    /// The permission mode; `None` before the first event.
    pub(crate) mode: Option<Mode>,
    /// The model's name.
    pub(crate) model: String,
    /// The branch of the directory's repository.
    pub(crate) branch: Option<String>,
    /// The title of the session.
    pub(crate) title: Option<String>,
    /// Estimated tokens of the conversation.
    pub(crate) context_used: usize,
    /// The tokens that the conversation may take; 0 if they are unknown.
    pub(crate) context_size: usize,
    /// The costs of the session; `None` if a price is unknown.
    pub(crate) cost: Option<Usd>,
    /// The tokens of all requests.
    pub(crate) usage: Usage,
    /// The effect of the output filters so far.
    pub(crate) filters: FilterTotals,
    /// The decisions about calls so far.
    pub(crate) gates: GateTotals,
}

/// The numbers of decisions about calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GateTotals {
    /// Questions that the user answered.
    pub(crate) asked: usize,
    /// Calls that a gate or the user refused.
    pub(crate) refused: usize,
}

/// The sum of the effects of output filters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FilterTotals {
    /// Outputs that were understood in full.
    pub(crate) full: usize,
    /// Outputs that were understood in part.
    pub(crate) partial: usize,
    /// Outputs of the fallback filter.
    pub(crate) fallback: usize,
    /// Bytes that the model did not receive.
    pub(crate) bytes_saved: usize,
}

impl FilterTotals {
    /// Adds the effect on one output.
    pub(super) fn add(&mut self, filter: &FilterStats) {
        match filter.confidence.as_str() {
            "full" => self.full += 1,
            "partial" => self.partial += 1,
            _ => self.fallback += 1,
        }
        self.bytes_saved += filter.bytes_before.saturating_sub(filter.bytes_after);
    }
}

impl SessionStatus {
    /// The part of the context that is free, in percent.
    pub(crate) fn context_left(&self) -> Option<u8> {
        let used = self.context_used.checked_mul(100)?;
        let percent = used.checked_div(self.context_size)?.min(100);
        u8::try_from(100 - percent).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_left_is_a_percentage() {
        let check = |context_used, context_size, expect| {
            let status = SessionStatus {
                context_used,
                context_size,
                ..SessionStatus::default()
            };
            assert_eq!(status.context_left(), expect);
        };
        check(0, 0, None);
        check(0, 1000, Some(100));
        check(250, 1000, Some(75));
        check(5000, 1000, Some(0));
    }
}
