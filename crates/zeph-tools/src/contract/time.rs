//! The clock of durations and timestamps.

use std::time::Instant;

/// Returns the milliseconds since `start`.
pub(crate) fn millis(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the milliseconds since the Unix epoch.
#[must_use]
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
