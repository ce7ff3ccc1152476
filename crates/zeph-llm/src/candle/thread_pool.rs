//! The number of cores for the computation of a model.
//!
//! The kernels divide every product among threads that wait for each other in a loop. If other programs run too, a
//! thread without a core delays all others at each of thousands of products: a response then takes many times as long
//! as on one core. Therefore the default is one core, and all cores only if the configuration says so.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use candle_core::utils::barrier_pool;

/// Computes on this many cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cores {
    /// One core: divided work runs on the same thread.
    One,
    /// All cores that candle detects (`CANDLE_NUM_THREADS`, otherwise those of the machine).
    All,
}

impl Cores {
    /// Runs something on these cores and waits for it. One thing at a time runs on one core, so
    /// that several models do not take turns at each product.
    pub(super) fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::All => work(),
            Self::One => on_one(work),
        }
    }
}

/// Runs the work on one worker of the pool, in place, since no worker may wait for the others. The other workers have
/// no work and sleep.
fn on_one<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = barrier_pool();
    let caller = pool.n_workers();
    let work = Mutex::new(Some(work));
    let (sender, done) = channel::<()>();
    let (sender, done) = (Mutex::new(Some(sender)), Mutex::new(done));
    let outcome = Mutex::new(None);
    pool.execute(|thread| {
        if thread == 0 {
            // Taken here, so that it ends with the work, however that ends.
            let finished = take(&sender);
            alone();
            if let Some(work) = take(&work) {
                let result = catch_unwind(AssertUnwindSafe(work));
                *outcome.lock().unwrap_or_else(|it| it.into_inner()) = Some(result);
            }
            drop(finished);
        } else if thread == caller {
            // Sleeps until the sender is dropped: the pool itself would wait in a loop.
            let _ = done.lock().unwrap_or_else(|it| it.into_inner()).recv();
        }
    });
    let outcome = take(&outcome);
    match outcome {
        Some(Ok(result)) => result,
        Some(Err(panic)) => resume_unwind(panic),
        None => resume_unwind(Box::new("the work was not done")),
    }
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(|it| it.into_inner()).take()
}

/// Makes this thread a rayon pool of one thread.
fn alone() {
    if rayon::current_thread_index().is_none() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .use_current_thread()
            .build();
        // The thread remains a member of the pool. If the pool cannot be built, the work is only slower.
        drop(pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_in_one_place_and_panics_are_returned() {
        for cores in [Cores::One, Cores::All] {
            let text = String::from("moved");
            assert_eq!(cores.run(|| text + " back"), "moved back");
            let failed = catch_unwind(|| cores.run(|| -> u8 { panic!("as asked") }));
            assert!(failed.is_err());
            assert_eq!(cores.run(|| 2), 2);
        }
        // Divided work runs on the calling thread.
        let threads = Mutex::new(std::collections::HashSet::new());
        let note = || {
            threads
                .lock()
                .map(|mut it| it.insert(std::thread::current().id()))
        };
        Cores::One.run(|| {
            barrier_pool().execute_chunked(64, |_| drop(note()));
            rayon::scope(|scope| (0..64).for_each(|_| scope.spawn(|_| drop(note()))));
        });
        assert_eq!(threads.lock().map(|it| it.len()).ok(), Some(1));
    }
}
