//! Search time and recall for 100,000 facts: `cargo bench -p zeph-memory --bench memory [-- FILE]`.
//!
//! The target is 50 ms, also for a word that every fact has, and for the slowest search. Both wall time and
//! processor time are printed; other programs affect the latter less. FILE contains embeddings of a real
//! model (384 little-endian floats of 32 bits each): the last 300 are searched for among the others. Without
//! it, embeddings are random, around 2,000 centres.
//!
//! `cargo bench -p zeph-memory --features postgres --bench memory -- --server URL` measures the search by meaning in 10,000
//! facts: with SQLite, and on an empty database of a PostgreSQL server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout, reason = "what a bench is for")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use zeph_memory::{Store, Synchronous};

/// The number of stored facts.
const FACTS: usize = 100_000;
/// The number of stored facts on a server, and of those with SQLite next to it.
#[cfg(feature = "postgres")]
const SERVER_FACTS: usize = 10_000;
/// The number of measurements of each search.
const SAMPLES: usize = 40;
const MODEL: &str = "provider/model";

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let file = args.next();
    #[cfg(feature = "postgres")]
    if file.as_deref() == Some("--server") {
        return on_server(&args.next().expect("--server takes a URL"));
    }
    let (runtime, _folder, store) = filled(FACTS);
    for words in [
        "own77777",
        "group123 port",
        "listens on the staging host",
        "nothing xyzzy",
        "?!",
    ] {
        timed(words, || {
            let found = store.search_memory(black_box(words), 10);
            drop(runtime.block_on(found).unwrap());
        });
    }
    for length in [384, 1536] {
        let vectors = clustered(length, FACTS + 300);
        nearness(
            &runtime,
            &store,
            &format!("{length} numbers"),
            &vectors,
            FACTS,
        );
    }
    if let Some(file) = file {
        let bytes = std::fs::read(PathBuf::from(file)).unwrap();
        let (numbers, _) = bytes.as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().map(|it| f32::from_le_bytes(*it)).collect();
        let vectors: Vec<Vec<f32>> = numbers.chunks(384).map(<[f32]>::to_vec).collect();
        let facts = (vectors.len() - 300).min(FACTS);
        nearness(&runtime, &store, "a real model", &vectors, facts);
    }
}

/// Measures the search by meaning with SQLite and on a server.
#[cfg(feature = "postgres")]
fn on_server(url: &str) {
    let (runtime, _folder, store) = filled(SERVER_FACTS);
    by_meaning(&runtime, &store, "SQLite");
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(async {
        let server = zeph_memory::Server::new(url, Duration::from_secs(30)).unwrap();
        let path = folder.path().join("zeph.db");
        let store = Store::connect(&server, &path).await.unwrap();
        fill(&store, SERVER_FACTS).await;
        store
    });
    by_meaning(&runtime, &store, "server");
}

#[cfg(feature = "postgres")]
fn by_meaning(runtime: &Runtime, store: &Store, place: &str) {
    for length in [384, 1536] {
        let vectors = clustered(length, SERVER_FACTS + 300);
        let name = format!("{length} numbers, {place}");
        nearness(runtime, store, &name, &vectors, SERVER_FACTS);
    }
}

/// A store in a file with this number of facts.
fn filled(facts: usize) -> (Runtime, TempDir, Store) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(async {
        let path = folder.path().join("zeph.db");
        let store = Store::open(&path, Synchronous::Normal).await.unwrap();
        fill(&store, facts).await;
        store
    });
    (runtime, folder, store)
}

/// Stores facts. Each has a common word, one of a thousand words, and a unique word.
async fn fill(store: &Store, facts: usize) {
    let project = std::path::Path::new("/project");
    store.ensure_session("s", project).await.unwrap();
    for n in 0..facts {
        let group = n % 1000;
        let fact = format!(
            "The service group{group} listens on port {n} of the staging host and keeps its logs below /var/log/own{n}."
        );
        store.save_memory("s", &fact).await.unwrap();
    }
}

/// Stores the first `facts` embeddings, and searches for each of the last 300.
fn nearness(runtime: &Runtime, store: &Store, name: &str, vectors: &[Vec<f32>], facts: usize) {
    let model = format!("{MODEL} {name}");
    let filling = Instant::now();
    let mut given: Vec<(String, &[f32])> = Vec::new();
    runtime.block_on(async {
        while given.len() < facts {
            let left = (facts - given.len()).min(1000);
            let gap = store.vector_gap(&model, left as u64).await.unwrap();
            let these = &vectors[given.len()..given.len() + gap.memories.len()];
            let pairs = gap.memories.iter().zip(these);
            given.extend(pairs.map(|(fact, it)| (fact.id.clone(), it.as_slice())));
            store.fill_vector_gap(&model, &gap, these).await.unwrap();
            // Like a search that had them computed.
            store.near_memories(&model, &these[0], 1).await.unwrap();
        }
    });
    println!(
        "{name}: {facts} vectors filled in {:.1?}",
        filling.elapsed()
    );
    let queries = &vectors[vectors.len() - 300..];
    let mut queries_again = queries.iter().cycle();
    timed(name, || {
        let query = queries_again.next().unwrap();
        let found = store.near_memories(&model, black_box(query), 10);
        drop(runtime.block_on(found).unwrap());
    });
    // The first search after a fact was saved.
    let saved = vectors.iter().zip(0..);
    let mut saved = saved.map(|(vector, n)| (format!("{name} {n}"), vector));
    timed(&format!("{name}, after a save"), || {
        let (content, vector) = saved.next().unwrap();
        runtime.block_on(async {
            let fact = store.save_memory("s", &content).await.unwrap();
            let gap = store.vector_gap(&model, 1).await.unwrap();
            let one = std::slice::from_ref(vector);
            store.fill_vector_gap(&model, &gap, one).await.unwrap();
            let found = store.near_memories(&model, black_box(vector), 10).await;
            drop(found.unwrap());
            store.remove_memory(&fact.id).await.unwrap();
        });
    });
    let mut hits = 0;
    for query in queries {
        let found = runtime.block_on(store.near_memories(&model, query, 10));
        let found = found.unwrap().unwrap();
        let cosine = |it: &[f32]| {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            dot(query, it) / dot(it, it).sqrt()
        };
        let mut exact: Vec<(f32, &str)> = given
            .iter()
            .map(|(id, it)| (cosine(it), id.as_str()))
            .collect();
        exact.select_nth_unstable_by(9, |a, b| b.0.total_cmp(&a.0));
        let expect = |id: &str| exact[..10].iter().any(|(_, it)| *it == id);
        hits += found.iter().filter(|it| expect(&it.memory.id)).count();
    }
    println!("{name}: recall@10 {:.4}", hits as f64 / 3000.0);
}

/// Embeddings around centres, like those of texts on the same subject, with cosines of 0.6 to 0.8.
fn clustered(length: usize, count: usize) -> Vec<Vec<f32>> {
    let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        bits
    };
    let mut vector = |length: usize| -> Vec<f32> {
        let number = |bits: u64| (bits >> 40) as f32 / 16_777_216.0 - 0.5;
        (0..length)
            .map(|_| number(next()) + number(next()))
            .collect()
    };
    let centres: Vec<Vec<f32>> = (0..2000).map(|_| vector(length)).collect();
    let around = |n: usize| {
        let (centre, own) = (&centres[n * 7919 % 2000], vector(length));
        centre.iter().zip(&own).map(|(a, b)| a * 1.5 + b).collect()
    };
    (0..count).map(around).collect()
}

fn timed(name: &str, mut search: impl FnMut()) {
    let processor = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    let mut times: Vec<(Duration, Duration)> = (0..SAMPLES)
        .map(|_| {
            let (start, before) = (Instant::now(), processor());
            search();
            (start.elapsed(), processor() - before)
        })
        .collect();
    let mut line = format!("{name:32}");
    for (clock, what) in [(true, "clock"), (false, "processor")] {
        let time = |it: &(Duration, Duration)| if clock { it.0 } else { it.1 };
        times.sort_by_key(time);
        let (median, slowest) = (time(&times[SAMPLES / 2]), time(&times[SAMPLES - 1]));
        line += &format!("  {what}: median {median:>7.1?}, slowest {slowest:>7.1?}");
    }
    println!("{line}");
}
