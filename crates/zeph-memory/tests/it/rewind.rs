//! The way back to an earlier message, with compactions before it.

use zeph_memory::{Compaction, CompressionStrategy, NewSummary, Store};

use super::{message, store};

async fn append(store: &Store, texts: &[&str]) {
    let messages = texts.iter().map(|text| message("user", text)).collect();
    store.append_messages("s", messages).await.unwrap();
}

/// Replaces the messages from `first` to `last` by a summary. `pinned` remains.
async fn compact(store: &Store, first: i64, last: i64, pinned: Option<i64>) {
    let summary = NewSummary {
        content: format!("{first}-{last}"),
        method: CompressionStrategy::Manual,
        first_seq: first,
        last_seq: last,
        messages: 1,
        tokens_before: 0,
        tokens_after: 0,
        provider: "p".to_owned(),
        model: "m".to_owned(),
    };
    let compaction = Compaction {
        summary: Some(summary),
        window_start: Some(last + 1),
        pinned,
        shown: Vec::new(),
    };
    store.compact_window("s", &compaction).await.unwrap();
}

async fn window(store: &Store) -> Vec<i64> {
    let messages = store.messages("s").await.unwrap();
    messages.iter().map(|message| message.seq).collect()
}

async fn summaries(store: &Store) -> Vec<String> {
    let summaries = store.summaries("s").await.unwrap();
    summaries
        .into_iter()
        .map(|summary| summary.content)
        .collect()
}

/// Proves CLI-6: rewound messages are marked, and later ones get new numbers.
#[tokio::test]
async fn rewound_messages_leave_the_window_and_stay_in_the_store() {
    let (_folder, store) = store().await;
    append(&store, &["1", "2", "3", "4"]).await;
    store.rewind("s", 3).await.unwrap();
    append(&store, &["5"]).await;
    assert_eq!(window(&store).await, [1, 2, 5]);
    let all = store.all_messages("s").await.unwrap();
    let rewound: Vec<_> = all
        .iter()
        .filter(|it| it.rewound)
        .map(|it| it.seq)
        .collect();
    assert_eq!((all.len(), rewound), (5, vec![3, 4]));
    let known = store.known_messages("s").await.unwrap();
    assert_eq!(known.iter().map(|it| it.seq).collect::<Vec<_>>(), [1, 2, 5]);
    assert!(store.rewind("unknown", 1).await.is_err());
}

/// Proves CLI-6: a summary of a rewound message is dropped, and the window is the one before that compaction.
#[tokio::test]
async fn rewind_restores_the_window_before_a_compaction() {
    let texts: Vec<String> = (1..=12).map(|seq| seq.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (to, expect_window, expect_summaries) in [
        (11, &[1_i64, 9, 10][..], &["2-4", "5-8"][..]),
        (9, &[1], &["2-4", "5-8"]),
        // The second summary contains message 7. The prompt 1 was pinned before it, and still is.
        (7, &[1, 5, 6], &["2-4"]),
        (5, &[1], &["2-4"]),
        (3, &[1, 2], &[]),
        (1, &[], &[]),
    ] {
        let (_folder, store) = store().await;
        append(&store, &texts).await;
        compact(&store, 2, 4, Some(1)).await;
        compact(&store, 5, 8, Some(1)).await;
        store.rewind("s", to).await.unwrap();
        assert_eq!(window(&store).await, expect_window, "{to}");
        assert_eq!(summaries(&store).await, expect_summaries, "{to}");
    }
    // The pinned prompt left the window with the second compaction.
    let (_folder, store) = store().await;
    append(&store, &texts).await;
    compact(&store, 2, 4, Some(1)).await;
    compact(&store, 1, 8, None).await;
    assert_eq!(window(&store).await, [9, 10, 11, 12]);
    store.rewind("s", 7).await.unwrap();
    assert_eq!(window(&store).await, [1, 5, 6]);
    assert_eq!(summaries(&store).await, ["2-4"]);
}

/// Proves CLI-6: a rewind does not go beyond `/clear`.
#[tokio::test]
async fn rewind_restores_nothing_from_before_a_clear() {
    let (_folder, store) = store().await;
    append(&store, &["1", "2", "3"]).await;
    compact(&store, 1, 2, None).await;
    store.clear_window("s").await.unwrap();
    append(&store, &["4", "5", "6", "7"]).await;
    compact(&store, 4, 6, None).await;
    store.rewind("s", 6).await.unwrap();
    assert_eq!(window(&store).await, [4, 5]);
    assert_eq!(store.known_messages("s").await.unwrap().len(), 2);
    let copied = store.copy_session("s", "copy", std::path::Path::new("/p"));
    copied.await.unwrap();
    let copy = store.all_messages("copy").await.unwrap();
    assert!(copy.iter().all(|message| !message.rewound) && copy.len() == 5);
}
