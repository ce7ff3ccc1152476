//! The two paths of a call through the stack.

/// The path of a call. The two paths are never merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallPath {
    /// Questions are asked.
    Normal,
    /// The user has approved the call: only the questions are skipped.
    Confirmed,
}
