//! Processes that die, and concurrent writers.

use crate::backend::check_integrity;
use crate::child::Other;
use crate::{open, place};

/// Five processes are killed in sequence during their work, each at another point. All messages that were
/// reported as stored are present.
///
/// Proves D-14.
#[tokio::test]
async fn appended_messages_survive_kill_9() {
    let (_folder, path) = place();
    open(&path)
        .await
        .ensure_session("s", std::path::Path::new("/p"))
        .await
        .unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        let mut other = Other::run("append", &path);
        for _ in 0..(40 + 97 * round) {
            acknowledged.push(other.hear().unwrap().parse::<i64>().unwrap());
        }
        other.kill();
        // Messages that it printed before its death count too.
        while let Some(Ok(seq)) = other.hear().map(|said| said.parse()) {
            acknowledged.push(seq);
        }
        check_integrity(&path).await;
        let messages = open(&path).await.messages("s").await.unwrap();
        let stored: Vec<i64> = messages.iter().map(|message| message.seq).collect();
        assert!(stored.len() >= acknowledged.len());
        assert!(
            stored.len() <= acknowledged.len() + round + 1,
            "one unheard a kill"
        );
        assert_eq!(stored, (1..=stored.len() as i64).collect::<Vec<_>>());
        assert!(acknowledged.iter().all(|seq| stored.contains(seq)));
        assert!(messages.iter().all(|message| message.content.len() >= 3002));
    }
}

#[tokio::test]
async fn concurrent_processes_share_one_numbering() {
    let (_folder, path) = place();
    let store = open(&path).await;
    store
        .ensure_session("s", std::path::Path::new("/p"))
        .await
        .unwrap();
    let mut others = [
        Other::run("append-200", &path),
        Other::run("append-200", &path),
    ];
    let mut all = Vec::new();
    for other in &mut others {
        while let Some(said) = other.hear() {
            all.push(said.parse::<i64>().unwrap());
        }
    }
    all.sort_unstable();
    assert_eq!(all, (1..=400).collect::<Vec<_>>());
    assert_eq!(store.messages("s").await.unwrap().len(), 400);
    check_integrity(&path).await;
}
