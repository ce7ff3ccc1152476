//! The port to background work.

/// The port to background work that may change files at any time.
pub trait BackgroundActivity: Send + Sync {
    /// Whether any background work is running.
    fn is_running(&self) -> bool;
}
