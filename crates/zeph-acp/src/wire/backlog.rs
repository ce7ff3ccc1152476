//! The number of updates that the client has not read, so that a producer can wait for it.

use tokio::sync::watch;

/// Updates that may wait before a producer does.
const MAX_WAITING: usize = 256;

/// The updates of a connection that wait for the client.
pub(super) struct Backlog(watch::Sender<State>);

#[derive(Default)]
struct State {
    waiting: usize,
    is_closed: bool,
}

impl Default for Backlog {
    fn default() -> Self {
        Self(watch::Sender::new(State::default()))
    }
}

impl Backlog {
    /// An update was made.
    pub(super) fn grow(&self) {
        self.0.send_modify(|state| state.waiting += 1);
    }

    /// An update was written, or became a part of another one.
    pub(super) fn shrink(&self) {
        self.0
            .send_modify(|state| state.waiting = state.waiting.saturating_sub(1));
    }

    /// No further update is written. No one waits any longer.
    pub(super) fn close(&self) {
        self.0.send_modify(|state| state.is_closed = true);
    }

    /// Waits until few updates wait, or the connection has ended.
    pub(super) async fn room(&self) {
        let mut state = self.0.subscribe();
        // The sender is this value.
        let _ = state
            .wait_for(|state| state.is_closed || state.waiting <= MAX_WAITING)
            .await;
    }

    /// Waits until no update waits, or the connection has ended. A large update follows.
    pub(super) async fn drained(&self) {
        let mut state = self.0.subscribe();
        // The sender is this value.
        let _ = state
            .wait_for(|state| state.is_closed || state.waiting == 0)
            .await;
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.0.borrow().waiting
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Proves ACP-7: a producer waits until updates are read, or the connection ends.
    #[tokio::test]
    async fn producer_waits_for_room() {
        for end in [Backlog::shrink, Backlog::close] {
            let backlog = Arc::new(Backlog::default());
            (0..=MAX_WAITING).for_each(|_| backlog.grow());
            let waiting = Arc::clone(&backlog);
            let mut waiting = tokio::spawn(async move { waiting.room().await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            end(&backlog);
            (&mut waiting).await.unwrap();
        }
    }

    /// Proves ACP-7: a large update waits until the client has read all others, or the connection ends.
    #[tokio::test]
    async fn large_update_waits_for_all_others() {
        for end in [Backlog::shrink, Backlog::close] {
            let backlog = Arc::new(Backlog::default());
            backlog.grow();
            let waiting = Arc::clone(&backlog);
            let mut waiting = tokio::spawn(async move { waiting.drained().await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            end(&backlog);
            (&mut waiting).await.unwrap();
        }
    }
}
