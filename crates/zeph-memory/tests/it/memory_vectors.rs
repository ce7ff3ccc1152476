//! Embeddings of facts, which are compared by meaning.

use std::collections::BTreeSet;

use zeph_memory::{Memory, Near, Store, Synchronous};

use crate::backend::number;
use crate::{open, place, raw, store};

const MODEL: &str = "p/m";

/// A pseudo-random embedding that depends on a text.
fn vector(text: &str, length: usize) -> Vec<f32> {
    let mut bits = text.bytes().fold(7_u64, |bits, byte| {
        (bits ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut next = || {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        f32::from(u16::try_from(bits >> 48).unwrap()) / 65536.0 - 0.5
    };
    (0..length).map(|_| next()).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Stores the embeddings of up to `most` facts without one, and returns their number.
async fn fill(store: &Store, length: usize, most: u64) -> usize {
    let gap = store.vector_gap(MODEL, most).await.unwrap();
    let vectors: Vec<_> = gap
        .memories
        .iter()
        .map(|fact| vector(&fact.content, length))
        .collect();
    let filled = store.fill_vector_gap(MODEL, &gap, &vectors).await;
    filled.unwrap();
    vectors.len()
}

async fn fill_all(store: &Store, length: usize) {
    while fill(store, length, 300).await > 0 {}
}

async fn save(store: &Store, facts: impl IntoIterator<Item = usize>) {
    for fact in facts {
        store.save_memory("s", &fact.to_string()).await.unwrap();
    }
}

async fn near(store: &Store, query: &str, length: usize, most: usize) -> Vec<Near> {
    let vector = vector(query, length);
    let found = store.near_memories(MODEL, &vector, most);
    found.await.unwrap().unwrap()
}

/// Asserts that the results are stored facts, without duplicates, with the correct cosine, in order.
#[track_caller]
fn right(found: &[Near], query: &str, length: usize, kept: &[Memory]) {
    let query = vector(query, length);
    let mut ids = BTreeSet::new();
    for near in found {
        assert!(kept.contains(&near.memory), "{near:?}");
        assert!(ids.insert(&near.memory.id), "{near:?}");
        let exact = cosine(&query, &vector(&near.memory.content, length));
        assert!((exact - near.cosine).abs() < 0.001, "{near:?} {exact}");
    }
    assert!(found.is_sorted_by(|a, b| a.cosine >= b.cosine), "{found:?}");
}

/// Proves NAT-1: all of several thousand facts are compared, regardless of the order of their embeddings.
#[tokio::test]
async fn all_facts_are_compared() {
    let (_folder, store) = store().await;
    let length = 24;
    save(&store, 0..2500).await;
    assert_eq!(near(&store, "query", length, 10).await, []);
    assert_eq!(fill(&store, length, 900).await, 900);
    save(&store, 2500..2600).await;
    assert_eq!(fill(&store, length, 60).await, 60);
    save(&store, 2600..2700).await;
    fill_all(&store, length).await;
    let kept = store.list_memories(10_000).await.unwrap();
    assert_eq!(kept.len(), 2700);
    let mut hits = 0;
    for query in 0..20 {
        let query = format!("query {query}");
        let found = near(&store, &query, length, 10).await;
        right(&found, &query, length, &kept);
        assert_eq!(found.len(), 10);
        let exact = |fact: &&Memory| {
            let cosine = cosine(&vector(&query, length), &vector(&fact.content, length));
            std::cmp::Reverse(i64::from((cosine * 1e6).round() as i32))
        };
        let mut all: Vec<&Memory> = kept.iter().collect();
        all.sort_by_key(exact);
        let found: Vec<&Memory> = found.iter().map(|it| &it.memory).collect();
        hits += all[..10].iter().filter(|it| found.contains(it)).count();
    }
    assert!(hits >= 195, "{hits} of 200");
    // Other models and texts without an embedding are not compared.
    let found = store.near_memories("p/other", &[1.0; 24], 10).await;
    assert_eq!(found.unwrap(), Some(Vec::new()));
}

/// A removed fact is not found, and a new one is, regardless of the process.
#[tokio::test]
async fn embeddings_follow_added_and_removed_facts() {
    let (_folder, path) = place();
    let (store, other) = (open(&path).await, open(&path).await);
    store.ensure_session("s", &path).await.unwrap();
    let length = 8;
    save(&store, 0..400).await;
    fill_all(&store, length).await;
    let first = near(&store, "query", length, 5).await;
    for near in &first[..2] {
        other.remove_memory(&near.memory.id).await.unwrap().unwrap();
    }
    let again = near(&store, "query", length, 3).await;
    assert_eq!(again, first[2..]);
    // The same text, saved again, is another fact.
    let content = &first[0].memory.content;
    let saved = other.save_memory("s", content).await.unwrap();
    fill_all(&other, length).await;
    let found = near(&store, "query", length, 2).await;
    assert_eq!(found[0].memory, saved);
    assert_eq!(found[1], first[2]);
    // Its embedding has its own row; no row of removed facts remains.
    let count = "SELECT count(*) FROM memory_vector";
    assert_eq!(number(&path, count).await, 399);
    // A fact that is removed while its embedding is computed gets none.
    let late = store.save_memory("s", "late").await.unwrap();
    let gap = store.vector_gap(MODEL, 10).await.unwrap();
    assert_eq!(gap.memories.first(), Some(&late));
    other.remove_memory(&late.id).await.unwrap().unwrap();
    let vectors = [vector("query", length)];
    store.fill_vector_gap(MODEL, &gap, &vectors).await.unwrap();
    assert_eq!(near(&store, "query", length, 2).await, found);
}

/// Two processes fill the same gap: each fact has one embedding, and none is missing.
#[tokio::test]
async fn two_processes_store_one_embedding_per_fact() {
    let (_folder, path) = place();
    let (store, other) = (open(&path).await, open(&path).await);
    store.ensure_session("s", &path).await.unwrap();
    save(&store, 0..700).await;
    let begun = store.vector_gap(MODEL, 100).await.unwrap();
    tokio::join!(fill_all(&store, 8), fill_all(&other, 8));
    // A gap that was read before these changes adds and removes nothing.
    let vectors = vec![vec![1.0; 8]; begun.memories.len()];
    store
        .fill_vector_gap(MODEL, &begun, &vectors)
        .await
        .unwrap();
    let kept = store.list_memories(1000).await.unwrap();
    let found = near(&other, "query", 8, 1000).await;
    right(&found, "query", 8, &kept);
    assert_eq!(found.len(), 500, "as many as are read");
    let count = "SELECT count(DISTINCT fact) FROM memory_vector";
    assert_eq!(number(&path, count).await, 700);
}

/// Embeddings of another length from the same model name replace all others.
#[tokio::test]
async fn embeddings_of_another_length_replace_all() {
    let (_folder, store) = store().await;
    save(&store, 0..50).await;
    fill_all(&store, 8).await;
    save(&store, 50..60).await;
    assert_eq!(fill(&store, 12, 300).await, 10);
    assert_eq!(near(&store, "query", 8, 100).await.len(), 50);
    let found = store
        .near_memories(MODEL, &vector("query", 12), 100)
        .await
        .unwrap();
    assert_eq!(found, None);
    assert_eq!(fill(&store, 12, 300).await, 60);
    assert_eq!(near(&store, "query", 12, 100).await.len(), 60);
    // An outdated gap fills nothing.
    let gap = store.vector_gap("p/other", 5).await.unwrap();
    for model in ["p/other", "p/third", "p/fourth"] {
        let gap = store.vector_gap(model, 300).await.unwrap();
        assert_eq!(gap.memories.len(), 60, "{model}");
        let vectors = vec![vec![1.0]; 60];
        store.fill_vector_gap(model, &gap, &vectors).await.unwrap();
    }
    let left = store.vector_gap("p/fourth", 300).await.unwrap();
    assert_eq!(left.memories, []);
    let gone = store.vector_gap(MODEL, 300).await.unwrap();
    assert_eq!(gone.memories.len(), 60, "of three models the first went");
    let again = store.vector_gap("p/other", 300).await.unwrap();
    assert_eq!(again.memories.len(), 60);
    store
        .fill_vector_gap("p/other", &gap, &[vec![1.0]])
        .await
        .unwrap();
}

/// Damaged facts are not found, and all results are correct. If only sign bits are damaged, they are computed
/// again.
#[tokio::test]
async fn damaged_facts_are_not_found() {
    let damages = [
        ("UPDATE memory_signs SET signs = x'00'", 300),
        ("UPDATE memory_signs SET facts = x'', signs = NULL", 300),
        (
            "UPDATE memory_signs SET signs = zeroblob(length(signs))",
            300,
        ),
        // Numbers of facts that do not exist.
        (
            "UPDATE memory_signs SET facts = zeroblob(length(facts)) WHERE block = 1",
            173,
        ),
        (
            "UPDATE memory_signs SET facts = CAST(hex(facts) AS BLOB)",
            300,
        ),
        ("UPDATE memory_signs SET block = block + 1000", 0),
        (
            "UPDATE memory_signs SET block = 9223372036854775807 WHERE block = 0",
            173,
        ),
        ("DELETE FROM memory_signs WHERE block = 1", 172),
        (
            "UPDATE memory_vector SET vector = x'00' WHERE fact <= 100",
            200,
        ),
        (
            "UPDATE memory_vector SET vector = zeroblob(32) WHERE fact <= 100",
            200,
        ),
        (
            "UPDATE memory_vector SET vector = CAST(vector || x'00000000' AS BLOB) WHERE fact <= 100",
            200,
        ),
        (
            "UPDATE memory_vector SET vector = CAST(substr(vector, 1, 28) || x'0000c07f' AS BLOB) WHERE fact <= 100",
            200,
        ),
        ("DELETE FROM memory_vector WHERE fact <= 100", 200),
        ("UPDATE memory_model SET oldest = 200", 300),
        ("UPDATE memory_model SET newest = 9223372036854775807", 300),
    ];
    for (damage, expect) in damages {
        let (_folder, path) = place();
        let store = Store::open(&path, Synchronous::Normal).await.unwrap();
        store.ensure_session("s", &path).await.unwrap();
        save(&store, 0..300).await;
        fill_all(&store, 8).await;
        near(&store, "query", 8, 5).await;
        let damaged = sqlx::raw_sql(damage).execute(&mut raw(&path).await).await;
        damaged.unwrap();
        let kept = store.list_memories(1000).await.unwrap();
        let found = near(&store, "query", 8, 1000).await;
        right(&found, "query", 8, &kept);
        assert_eq!(found.len(), expect, "{damage}");
    }
}
