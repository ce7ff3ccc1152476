//! Long messages in the search index: all of their words are found, in copies too, until the message is deleted.

use std::path::Path;

use serde_json::json;
use zeph_memory::{NewMessage, Store};

use crate::{message, sqlite_store, store};

/// The content of a message with `words` at its start, in its middle and at its end. It has about `bytes`.
fn content(bytes: usize, [start, middle, end]: [&str; 3]) -> String {
    let filler = "the parser reads every line of \"it\"\n".repeat(bytes / 74);
    let text = format!("{start}\n{filler}{middle}\n{filler}{end}");
    json!([
        { "type": "reasoning", "text": "thoughtful", "signature": null },
        { "type": "text", "text": text },
        { "type": "tool_use", "id": "1", "name": "read", "input": { "path": "argumentative" } },
        { "type": "text", "text": "appendix" },
    ])
    .to_string()
}

/// The places of the messages that both searches find.
async fn found(store: &Store, word: &str) -> Vec<i64> {
    let sessions = store.search_sessions(word, None, 9).await.unwrap();
    let messages = store
        .search_messages("other", word, true, 9)
        .await
        .unwrap()
        .into_iter()
        .map(|found| (found.session, found.seq));
    let messages: Vec<_> = messages.collect();
    let mut places = Vec::new();
    for it in sessions {
        let (session, seq) = (it.session.id, it.seq.unwrap());
        assert!(messages.contains(&(session, seq)), "{word}: {messages:?}");
        places.push(seq);
    }
    places.sort_unstable();
    places
}

/// The number of entries of the index.
async fn entries(store: &Store) -> i64 {
    let select = "SELECT count(*) FROM message_words_docsize";
    let mut connection = crate::raw(store.path()).await;
    let count = sqlx::query_scalar(select).fetch_one(&mut connection);
    count.await.unwrap()
}

#[tokio::test]
async fn every_word_of_a_long_message_is_found() {
    let check = async |bytes: usize| {
        let (_folder, store) = store().await;
        store
            .ensure_session("other", Path::new("/other"))
            .await
            .unwrap();
        let text = content(bytes, ["zebra", "yak", "walrus"]);
        store
            .append_message("s", message("user", "[]"))
            .await
            .unwrap();
        let seq = store.append_message("s", message("assistant", &text)).await;
        assert_eq!(seq.unwrap(), 2, "{bytes}");
        for word in ["zebra", "yak", "walrus", "parser walrus", "appendix"] {
            assert_eq!(found(&store, word).await, [2], "{bytes}: {word}");
        }
        for word in ["thoughtful", "argumentative", "zebras walruses okapi"] {
            let sessions = store.search_sessions(word, None, 9).await.unwrap();
            assert!(sessions.is_empty(), "{bytes}: {word}");
        }
        let stored = store.all_messages("s").await.unwrap();
        assert_eq!(stored[1].content, text, "{bytes}");
    };
    for bytes in [1000, 65_000, 66_000, 900_000] {
        check(bytes).await;
    }
}

#[tokio::test]
async fn long_and_short_messages_of_a_batch_are_stored_in_order() {
    let (_folder, store) = store().await;
    store
        .ensure_session("other", Path::new("/other"))
        .await
        .unwrap();
    let short = |word: &str| content(100, [word, "b", "c"]);
    let batch = vec![
        message("user", &short("zebra")),
        NewMessage {
            usage: Some(zeph_memory::Usage {
                input_tokens: 3,
                output_tokens: 2,
                cached_tokens: 1,
            }),
            ..message("assistant", &content(100_000, ["yak", "b", "c"]))
        },
        message("user", &"x".repeat(100_000)),
        message("assistant", &short("walrus")),
    ];
    let places = store.append_messages("s", batch.clone()).await.unwrap();
    assert_eq!(places, 1..5);
    let stored = store.all_messages("s").await.unwrap();
    let same = stored.iter().zip(&batch);
    assert!(same.clone().all(|(stored, new)| {
        (&stored.role, &stored.content, stored.usage) == (&new.role, &new.content, new.usage)
    }));
    for (word, seq) in [("zebra", 1), ("yak", 2), ("walrus", 4)] {
        assert_eq!(found(&store, word).await, [seq], "{word}");
    }
    let error = store.append_messages("unknown", batch).await.unwrap_err();
    assert!(error.to_string().contains("unknown"), "{error}");
}

#[tokio::test]
async fn copies_of_long_messages_are_found() {
    let (_folder, store) = store().await;
    store
        .ensure_session("other", Path::new("/other"))
        .await
        .unwrap();
    for words in [["zebra", "b", "c"], ["okapi", "b", "c"]] {
        let text = content(100_000, words);
        store
            .append_message("s", message("assistant", &text))
            .await
            .unwrap();
    }
    store.rewind("s", 2).await.unwrap();
    store
        .copy_session("s", "copy", Path::new("/project"))
        .await
        .unwrap();
    assert_eq!(found(&store, "zebra").await, [1, 1]);
    assert_eq!(found(&store, "okapi").await, [0; 0]);

    // Into another store: as a whole, and as an update.
    let (_there, there) = sqlite_store().await;
    there.delete_session("s").await.unwrap();
    there
        .ensure_session("other", Path::new("/other"))
        .await
        .unwrap();
    assert!(store.copy_into(&there).await.unwrap().copied >= 2);
    assert_eq!(found(&there, "zebra").await, [1, 1]);
    let text = content(100_000, ["walrus", "b", "c"]);
    store
        .append_message("s", message("assistant", &text))
        .await
        .unwrap();
    assert_eq!(store.copy_into(&there).await.unwrap().updated, 1);
    assert_eq!(found(&there, "walrus").await, [3]);
    assert_eq!(entries(&there).await, 4, "each message is indexed once");
}

#[tokio::test]
async fn deleted_long_message_leaves_the_index() {
    let (_folder, store) = sqlite_store().await;
    let text = content(100_000, ["zebra", "b", "c"]);
    store
        .append_message("s", message("assistant", &text))
        .await
        .unwrap();
    assert_eq!(entries(&store).await, 1);
    store.delete_session("s").await.unwrap();
    assert_eq!(entries(&store).await, 0);
    assert!(
        store
            .search_sessions("zebra", None, 9)
            .await
            .unwrap()
            .is_empty()
    );
}
