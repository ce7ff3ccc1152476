//! The order of concurrent calls: calls that only read run together, all others run alone and in order of arrival.
//!
//! The protocol library runs each request as a task, and tasks start in any order. So the transport gives each call an [`Arrival`],
//! which makes it wait until the call before it is in the queue.

use std::sync::Arc;
use std::task::Poll;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Gives calls their arrivals, in the order in which the transport reads them.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    last: Option<CancellationToken>,
}

impl Arrivals {
    /// The arrival of the next call.
    pub(super) fn next(&mut self) -> Arrival {
        let queued = CancellationToken::new();
        Arrival(Arc::new(Place {
            previous: self.last.replace(queued.clone()),
            _queued: queued.drop_guard(),
        }))
    }
}

/// The position of a call among the calls of a connection. A call that is dropped delays no other.
#[derive(Debug, Clone)]
pub(super) struct Arrival(Arc<Place>);

#[derive(Debug)]
struct Place {
    /// Is cancelled as soon as the call before this one is in the queue or has ended.
    previous: Option<CancellationToken>,
    _queued: DropGuard,
}

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

    /// Waits until a call may run. A call with an arrival joins the queue after the calls that arrived before it.
    pub(super) async fn wait(&self, is_read_only: bool, arrival: Option<Arrival>) -> Turn<'_> {
        let previous = arrival
            .as_ref()
            .and_then(|Arrival(place)| place.previous.as_ref());
        if let Some(previous) = previous {
            previous.cancelled().await;
        }
        let mut turn = std::pin::pin!(self.queue(is_read_only));
        // The first poll joins the queue. After it, the next call may join.
        let first = futures_util::poll!(turn.as_mut());
        drop(arrival);
        match first {
            Poll::Ready(turn) => turn,
            Poll::Pending => turn.await,
        }
    }

    async fn queue(&self, is_read_only: bool) -> Turn<'_> {
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
        order.wait(is_read_only, None).now_or_never().is_none()
    }

    /// Proves MCP-10, EXE-12: reads run together up to the limit, a change runs alone.
    #[tokio::test]
    async fn reads_share_the_turn_and_a_change_has_it_alone() {
        let order = CallOrder::new(2);
        let first = order.wait(true, None).await;
        let second = order.wait(true, None).await;
        assert!(waits(&order, true) && waits(&order, false));
        drop((first, second));
        let change = order.wait(false, None).await;
        assert!(waits(&order, true) && waits(&order, false));
        drop(change);
        assert!(!waits(&order, true));
    }

    /// Proves MCP-10: a read does not overtake a change that waits.
    #[tokio::test]
    async fn read_after_a_waiting_change_waits_too() {
        let order = CallOrder::new(8);
        let reading = order.wait(true, None).await;
        let mut change = std::pin::pin!(order.wait(false, None));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(change.as_mut().poll(&mut cx).is_pending());
        assert!(waits(&order, true));
        drop(reading);
        drop(change.await);
        assert!(!waits(&order, true));
    }

    /// Proves MCP-10: calls join the queue in order of arrival, whichever task runs first.
    #[tokio::test]
    async fn calls_that_start_in_reverse_run_in_order_of_arrival() {
        let (order, mut arrivals) = (CallOrder::new(8), Arrivals::default());
        let (first, second) = (arrivals.next(), arrivals.next());
        let mut second = std::pin::pin!(order.wait(false, Some(second)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        let running = order.wait(false, Some(first)).await;
        assert!(second.as_mut().poll(&mut cx).is_pending());
        drop(running);
        assert!(second.as_mut().poll(&mut cx).is_ready());
    }

    /// Proves MCP-10: a call that ends before it joins the queue delays no later call.
    #[tokio::test]
    async fn call_that_is_dropped_delays_no_other() {
        let (order, mut arrivals) = (CallOrder::new(8), Arrivals::default());
        let (first, second) = (arrivals.next(), arrivals.next());
        let mut second = std::pin::pin!(order.wait(false, Some(second)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(second.as_mut().poll(&mut cx).is_ready());
    }
}
