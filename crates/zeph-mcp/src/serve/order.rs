//! The order of concurrent calls: calls that only read run together, all others run alone and in order of arrival.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit};

/// The order of the calls of one conversation. Waiting calls are served in order of arrival.
#[derive(Debug)]
pub(super) struct CallOrder {
    turn: RwLock<()>,
    parallel: Semaphore,
}

/// The permission to run a call now.
#[derive(Debug)]
pub(super) enum Turn<'o> {
    /// Other calls that only read may run.
    Shared {
        _turn: RwLockReadGuard<'o, ()>,
        _permit: Option<SemaphorePermit<'o>>,
    },
    /// No other call runs.
    Alone { _turn: RwLockWriteGuard<'o, ()> },
}

impl CallOrder {
    /// At most `parallel` calls run concurrently.
    pub(super) fn new(parallel: usize) -> Self {
        Self {
            turn: RwLock::default(),
            parallel: Semaphore::new(parallel.max(1)),
        }
    }

    /// Waits until a call may run.
    pub(super) async fn wait(&self, is_read_only: bool) -> Turn<'_> {
        match is_read_only {
            true => Turn::Shared {
                _turn: self.turn.read().await,
                // The semaphore is never closed.
                _permit: self.parallel.acquire().await.ok(),
            },
            false => Turn::Alone {
                _turn: self.turn.write().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use futures_util::FutureExt as _;

    use super::*;

    fn waits(order: &CallOrder, is_read_only: bool) -> bool {
        order.wait(is_read_only).now_or_never().is_none()
    }

    /// Proves MCP-10, EXE-12: reads run together up to the limit, a change runs alone.
    #[tokio::test]
    async fn reads_share_the_turn_and_a_change_has_it_alone() {
        let order = CallOrder::new(2);
        let first = order.wait(true).await;
        let second = order.wait(true).await;
        assert!(waits(&order, true) && waits(&order, false));
        drop((first, second));
        let change = order.wait(false).await;
        assert!(waits(&order, true) && waits(&order, false));
        drop(change);
        assert!(!waits(&order, true));
    }

    /// Proves MCP-10: a read does not overtake a change that waits.
    #[tokio::test]
    async fn read_after_a_waiting_change_waits_too() {
        let order = CallOrder::new(8);
        let reading = order.wait(true).await;
        let mut change = std::pin::pin!(order.wait(false));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(change.as_mut().poll(&mut cx).is_pending());
        assert!(waits(&order, true));
        drop(reading);
        drop(change.await);
        assert!(!waits(&order, true));
    }
}
