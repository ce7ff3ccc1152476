//! Times: those of opening, of one write, and of a turn late in a long session.
//! `cargo test -p zeph-memory --release latency -- --nocapture` prints them.

use std::path::Path;
use std::time::{Duration, Instant};

use zeph_memory::{SqliteAudit, Store, Synchronous};
use zeph_tools::AuditSink;

use crate::audit::entry;
use crate::{message, open, place};

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

/// One turn with one call: the question, the answer that calls, the audit entry, the result.
async fn turn(store: &Store, audit: &SqliteAudit) -> Duration {
    let text = "x".repeat(6000);
    let start = Instant::now();
    for role in ["user", "assistant"] {
        store
            .append_message("s", message(role, &text[..800]))
            .await
            .unwrap();
    }
    audit.append(&entry("s", "c")).await.unwrap();
    store
        .append_message("s", message("tool", &text))
        .await
        .unwrap();
    start.elapsed()
}

/// The last twenty of 200 turns take turns with the first twenty of a new session, so that what
/// else the machine does slows both.
#[tokio::test]
async fn a_turn_late_in_a_session_takes_no_longer() {
    let (_folder, path) = place();
    let start = Instant::now();
    let store = open(&path).await;
    println!("open, new file: {:?}", start.elapsed());
    store.ensure_session("s", Path::new("/p")).await.unwrap();
    let audit = SqliteAudit::new(store.clone());
    for _ in 0..180 {
        turn(&store, &audit).await;
    }
    let (_other_folder, other_path) = place();
    let fresh = open(&other_path).await;
    fresh.ensure_session("s", Path::new("/p")).await.unwrap();
    let fresh_audit = SqliteAudit::new(fresh.clone());
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        last.push(turn(&store, &audit).await);
        first.push(turn(&fresh, &fresh_audit).await);
    }
    let (first, last) = (median(&first), median(&last));
    println!("turn of four writes: first twenty {first:?}, last twenty {last:?}");
    assert!(last < first.mul_f64(1.5), "{first:?} grew to {last:?}");
    assert!(last < Duration::from_millis(8), "{last:?}");

    let mut opens = Vec::new();
    let mut reads = Vec::new();
    store.close().await.unwrap();
    for _ in 0..20 {
        let start = Instant::now();
        let store = open(&path).await;
        opens.push(start.elapsed());
        let start = Instant::now();
        store.messages("s").await.unwrap();
        reads.push(start.elapsed());
        store.close().await.unwrap();
    }
    println!(
        "open, existing: {:?}; reading 600 messages: {:?}",
        median(&opens),
        median(&reads)
    );
    assert!(median(&opens) < Duration::from_millis(15));
}

#[tokio::test]
async fn single_writes_are_quick() {
    for synchronous in [Synchronous::Normal, Synchronous::Full] {
        let (_folder, path) = place();
        let store = Store::open(&path, synchronous).await.unwrap();
        store.ensure_session("s", Path::new("/p")).await.unwrap();
        let audit = SqliteAudit::new(store.clone());
        let (mut appends, mut audits) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            let start = Instant::now();
            store
                .append_message("s", message("user", "hello"))
                .await
                .unwrap();
            appends.push(start.elapsed());
            let start = Instant::now();
            audit.append(&entry("s", "c")).await.unwrap();
            audits.push(start.elapsed());
        }
        let (append, audit) = (median(&appends), median(&audits));
        println!("{synchronous:?}: append_message {append:?}, audit append {audit:?}");
        if synchronous == Synchronous::Normal {
            assert!(append < Duration::from_millis(2), "{append:?}");
            assert!(audit < Duration::from_millis(2), "{audit:?}");
        }
    }
}
