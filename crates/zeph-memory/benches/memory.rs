//! How fast facts are found among 100,000: `cargo bench -p zeph-memory --bench memory`.
//!
//! 50 ms is the target, also for a word that every fact has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use divan::{Bencher, black_box};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use zeph_memory::{Store, Synchronous};

/// Facts that are kept.
const FACTS: usize = 100_000;

fn main() {
    divan::main();
}

/// A store with facts: each has a common word, a word of a thousand and one of its own.
fn filled() -> (Runtime, TempDir, Store) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(async {
        let path = folder.path().join("zeph.db");
        let store = Store::open(&path, Synchronous::Normal).await.unwrap();
        store.ensure_session("s", folder.path()).await.unwrap();
        for n in 0..FACTS {
            let group = n % 1000;
            let fact = format!(
                "The service group{group} listens on port {n} of the staging host and keeps its logs below /var/log/own{n}."
            );
            store.save_memory("s", &fact).await.unwrap();
        }
        store
    });
    (runtime, folder, store)
}

#[divan::bench(args = ["own77777", "group123 port", "listens on the staging host", "nothing xyzzy"], sample_count = 20, sample_size = 1)]
fn search(bencher: Bencher<'_, '_>, words: &str) {
    let (runtime, _folder, store) = filled();
    bencher.bench_local(|| {
        let found = store.search_memory(black_box(words), 10);
        runtime.block_on(found).unwrap()
    });
}
