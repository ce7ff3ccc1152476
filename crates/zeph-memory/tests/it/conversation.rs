//! Sessions and messages.

use std::path::Path;

use proptest::prelude::*;
use zeph_memory::{
    ChosenModel, NewMessage, SessionChoices, Store, StoreError, TaskStatus, Usage, new_session_id,
};

use crate::{message, open, place, store};

async fn contents(store: &Store, session: &str) -> Vec<String> {
    let messages = store.messages(session).await.unwrap();
    messages.into_iter().map(|m| m.content).collect()
}

#[tokio::test]
async fn session_is_created_once() {
    let (_folder, store) = store().await;
    let first = store.session("s").await.unwrap();
    assert_eq!(first.project, Path::new("/project"));
    assert_eq!((first.messages, first.calls), (0, 0));
    assert_eq!((&first.title, &first.model), (&None, &None));
    store
        .append_message("s", message("user", "hello"))
        .await
        .unwrap();
    let again = store
        .ensure_session("s", Path::new("/elsewhere"))
        .await
        .unwrap();
    assert_eq!(again.project, first.project, "it stays where it began");
    assert_eq!(again.created_at, first.created_at);
    assert_eq!(again.messages, 1);

    store.set_title("s", "Hello").await.unwrap();
    store.set_model("s", "openai", "m-1").await.unwrap();
    let named = store.session("s").await.unwrap();
    assert_eq!(named.title.as_deref(), Some("Hello"));
    assert_eq!(named.provider.as_deref(), Some("openai"));
    assert_eq!(named.model.as_deref(), Some("m-1"));
}

/// Proves ACP-1: choices belong to a session and its copies.
#[tokio::test]
async fn choices_are_stored_and_copied() {
    let (_folder, store) = store().await;
    let none = SessionChoices::default();
    assert_eq!(store.session_choices("s").await.unwrap(), none);
    let model = ChosenModel {
        provider: "openai".to_owned(),
        model: "m-1".to_owned(),
        effort: None,
    };
    let choices = SessionChoices {
        mode: Some("plan".to_owned()),
        model: Some(model),
    };
    store.set_session_choices("s", &choices).await.unwrap();
    let copied = store.copy_session("s", "copy", Path::new("/p"));
    copied.await.unwrap();
    assert_eq!(store.session_choices("copy").await.unwrap(), choices);
    store.set_session_choices("s", &none).await.unwrap();
    assert_eq!(store.session_choices("s").await.unwrap(), none);
    assert_eq!(store.session_choices("copy").await.unwrap(), choices);
    for error in [
        store.session_choices("x").await.unwrap_err(),
        store.set_session_choices("x", &none).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::UnknownSession { .. }));
    }
}

/// Proves ACP-1: empty sessions are deleted, except new ones and those in use.
#[tokio::test]
async fn old_empty_sessions_are_deleted() {
    let (_folder, store) = store().await;
    for id in ["held", "empty", "other"] {
        store.ensure_session(id, Path::new("/p")).await.unwrap();
    }
    let sub = store.create_sub_session("task", "s", Path::new("/p"));
    sub.await.unwrap();
    let said = store.append_message("s", message("user", "hello"));
    said.await.unwrap();
    let lock = store.lock_session("held").await.unwrap();
    assert_eq!(store.delete_empty_sessions(0).await.unwrap(), 0);
    assert_eq!(store.delete_empty_sessions(i64::MAX).await.unwrap(), 2);
    store.session("held").await.unwrap();
    store.session("s").await.unwrap();
    store.session("task").await.unwrap();
    lock.release().await;
    assert_eq!(store.delete_empty_sessions(i64::MAX).await.unwrap(), 1);
}

#[tokio::test]
async fn ids_are_checked() {
    let (_folder, store) = store().await;
    for id in ["", "a\nb", "a\0", &"x".repeat(257)] {
        let error = store.ensure_session(id, Path::new("/p")).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidSessionId { .. }), "{id}");
    }
    for id in ["x", "../../etc/passwd", "mit ä und '", &"x".repeat(256)] {
        store.ensure_session(id, Path::new("/p")).await.unwrap();
        assert_eq!(store.session(id).await.unwrap().id, id);
    }
    assert_ne!(new_session_id(), new_session_id());
}

#[tokio::test]
async fn unknown_sessions_are_reported_everywhere() {
    let (_folder, store) = store().await;
    let errors = [
        store.session("x").await.unwrap_err(),
        store.find_session("xxxx").await.unwrap_err(),
        store.messages("x").await.unwrap_err(),
        store.all_messages("x").await.unwrap_err(),
        store
            .append_message("x", message("user", "m"))
            .await
            .unwrap_err(),
        store.append_messages("x", vec![]).await.unwrap_err(),
        store.set_title("x", "t").await.unwrap_err(),
        store.set_model("x", "p", "m").await.unwrap_err(),
        store.clear_window("x").await.unwrap_err(),
        store.delete_session("x").await.unwrap_err(),
        store.lock_session("x").await.unwrap_err(),
        store.add_task("x", "do").await.unwrap_err(),
        store.tasks("x").await.unwrap_err(),
        store
            .update_task("x", "task_1", TaskStatus::Pending)
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(error, StoreError::UnknownSession { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("zeph sessions list"), "{error}");
    }
}

/// The session to continue is the one of this folder with the most recent message, not the one with the
/// latest start.
///
/// Proves D-26.
#[tokio::test]
async fn latest_session_is_the_most_active_of_the_folder() {
    let (_folder, path) = place();
    let store = open(&path).await;
    let (here, there) = (Path::new("/here"), Path::new("/there"));
    assert_eq!(store.latest_session(here).await.unwrap(), None);
    for (id, project) in [("a", here), ("b", here), ("c", there)] {
        store.ensure_session(id, project).await.unwrap();
    }
    let latest = |project| {
        let store = store.clone();
        async move {
            let found = store.latest_session(project).await.unwrap();
            found.map(|session| session.id)
        }
    };
    assert_eq!(latest(here).await, None, "nothing was said yet");
    for id in ["c", "a"] {
        store
            .append_message(id, message("user", "hi"))
            .await
            .unwrap();
    }
    assert_eq!(latest(here).await.as_deref(), Some("a"), "spoken in last");
    assert_eq!(latest(there).await.as_deref(), Some("c"));
    assert_eq!(latest(Path::new("/here/below")).await, None);

    let ids = |sessions: Vec<zeph_memory::SessionInfo>| -> Vec<String> {
        sessions.into_iter().map(|session| session.id).collect()
    };
    let all = ids(store.list_sessions(None, 10).await.unwrap());
    assert_eq!(all, ["a", "c", "b"]);
    assert_eq!(
        ids(store.list_sessions(Some(here), 10).await.unwrap()),
        ["a", "b"]
    );
    assert_eq!(store.list_sessions(None, 2).await.unwrap().len(), 2);
    for nth in 0..3 {
        let id = format!("call {nth}");
        store.ensure_session(&id, here).await.unwrap();
    }
    let conversations = store.list_conversations(None, 2).await.unwrap();
    assert!(
        conversations.iter().all(|session| session.messages > 0),
        "sessions without messages do not count towards the limit: {conversations:?}"
    );
    assert_eq!(conversations.len(), 2);
}

#[tokio::test]
async fn unique_id_prefix_finds_the_session() {
    let (_folder, store) = store().await;
    for id in ["abcd-1", "abcd-2", "abcd-22", "wxyz_1", "wxyzA1", "100%_x"] {
        store.ensure_session(id, Path::new("/p")).await.unwrap();
    }
    let check = |prefix: &'static str, expect: Result<&'static str, &'static str>| {
        let store = store.clone();
        async move {
            match (store.find_session(prefix).await, expect) {
                (Ok(found), Ok(id)) => assert_eq!(found.id, id),
                (Err(error), Err(text)) => {
                    assert!(error.to_string().contains(text), "{prefix}: {error}");
                }
                (found, _) => panic!("{prefix}: {found:?}"),
            }
        }
    };
    check("s", Ok("s")).await;
    check("abcd-1", Ok("abcd-1")).await;
    check("abcd-2", Ok("abcd-2")).await;
    check("abcd-22", Ok("abcd-22")).await;
    check("wxyz_", Ok("wxyz_1")).await;
    check("wxyzA", Ok("wxyzA1")).await;
    check("100%", Ok("100%_x")).await;
    check("abcd", Err("abcd-1, abcd-2, abcd-22")).await;
    check("abc", Err("at least 4 characters")).await;
    check("", Err("at least 4 characters")).await;
    check("ABCD-1", Err("there is no session")).await;
    check("abcd-3", Err("there is no session")).await;
    check("%%%%", Err("there is no session")).await;
}

#[tokio::test]
async fn messages_are_restored_unchanged() {
    let (_folder, store) = store().await;
    let usage = Some(Usage {
        input_tokens: 1200,
        output_tokens: 80,
        cached_tokens: 1000,
    });
    let texts = ["", "plain", "nul \0 within", "ä𝄞\r\n", r#"{"a":"\u0000"}"#];
    let batch: Vec<NewMessage> = texts.iter().map(|text| message("tool", text)).collect();
    assert_eq!(store.append_messages("s", batch).await.unwrap(), 1..6);
    let answer = NewMessage {
        usage,
        ..message("assistant", "done")
    };
    assert_eq!(store.append_message("s", answer).await.unwrap(), 6);
    assert_eq!(store.append_messages("s", vec![]).await.unwrap(), 7..7);

    let stored = store.messages("s").await.unwrap();
    for (place, text) in texts.iter().enumerate() {
        assert_eq!(stored[place].content, *text);
        assert_eq!(stored[place].role, "tool");
        assert_eq!(stored[place].usage, None);
    }
    assert_eq!(stored[5].usage, usage);
    let info = store.session("s").await.unwrap();
    assert_eq!(info.updated_at, stored[5].created_at);
}

#[tokio::test]
async fn batch_is_stored_atomically() {
    let (_folder, store) = store().await;
    let many = |count| vec![message("user", "m"); count];
    assert_eq!(
        store.append_messages("s", many(4096)).await.unwrap(),
        1..4097
    );
    let error = store.append_messages("s", many(4097)).await.unwrap_err();
    assert!(matches!(error, StoreError::BatchTooLarge { .. }), "{error}");
    let stored = store.messages("s").await.unwrap();
    assert_eq!(
        stored.iter().map(|m| m.seq).collect::<Vec<_>>(),
        (1..=4096).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn cleared_window_hides_and_stores_messages() {
    let (_folder, path) = place();
    let store = open(&path).await;
    for id in ["other", "s"] {
        store.ensure_session(id, Path::new("/p")).await.unwrap();
        for text in ["one", "two"] {
            store
                .append_message(id, message("user", text))
                .await
                .unwrap();
        }
    }
    store.clear_window("s").await.unwrap();
    assert_eq!(contents(&store, "s").await, [""; 0]);
    assert_eq!(
        store
            .append_message("s", message("user", "three"))
            .await
            .unwrap(),
        3
    );
    assert_eq!(contents(&store, "s").await, ["three"]);
    assert_eq!(store.all_messages("s").await.unwrap().len(), 3);
    assert_eq!(store.session("s").await.unwrap().messages, 3);
    assert_eq!(contents(&store, "other").await, ["one", "two"]);
    store.close().await.unwrap();
    assert_eq!(contents(&open(&path).await, "s").await, ["three"]);
}

#[tokio::test]
async fn session_deletion_removes_all_its_rows() {
    let (_folder, store) = store().await;
    store.ensure_session("t", Path::new("/p")).await.unwrap();
    for id in ["s", "t"] {
        store
            .append_message(id, message("user", "hi"))
            .await
            .unwrap();
        store.add_task(id, "do").await.unwrap();
    }
    store.delete_session("s").await.unwrap();
    assert!(store.session("s").await.is_err());
    assert_eq!(contents(&store, "t").await, ["hi"]);
    assert_eq!(store.tasks("t").await.unwrap().len(), 1);

    let again = store.ensure_session("s", Path::new("/p")).await.unwrap();
    assert_eq!(again.messages, 0);
    assert!(store.tasks("s").await.unwrap().is_empty());
    for table in ["message", "task"] {
        let count = format!("SELECT count(*) FROM {table}");
        let left = crate::backend::number(store.path(), &count).await;
        assert_eq!(left, 1, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_of_two_connections_append_without_gaps() {
    let (_folder, path) = place();
    let stores = [open(&path).await, open(&path).await];
    stores[0]
        .ensure_session("s", Path::new("/p"))
        .await
        .unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let store = stores[n % 2].clone();
            tokio::spawn(async move {
                let batch = vec![message("user", &n.to_string()); 1 + n % 3];
                store.append_messages("s", batch).await.unwrap()
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (1..=all.len() as i64).collect::<Vec<_>>());
    // The messages of each batch are consecutive.
    let stored = contents(&stores[1], "s").await;
    let mut runs = stored.clone();
    runs.dedup();
    assert_eq!((stored.len(), runs.len()), (all.len(), 40));
}

/// An operation on the messages of two sessions.
#[derive(Debug, Clone)]
enum Step {
    Append(usize, Vec<String>),
    Clear(usize),
    Delete(usize),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let texts = prop::collection::vec(".{0,40}", 0..6);
    prop_oneof![
        6 => (0..2usize, texts).prop_map(|(session, texts)| Step::Append(session, texts)),
        1 => (0..2usize).prop_map(Step::Clear),
        1 => (0..2usize).prop_map(Step::Delete),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn store_is_a_list_for_each_session(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_folder, path) = place();
            let mut store = open(&path).await;
            let ids = ["one", "two"];
            // All texts, and the start of the window.
            let mut model: [(Vec<String>, usize); 2] = Default::default();
            for step in steps {
                for id in ids {
                    store.ensure_session(id, Path::new("/p")).await.unwrap();
                }
                match step {
                    Step::Append(session, texts) => {
                        let batch = texts.iter().map(|text| message("user", text)).collect();
                        let places = store.append_messages(ids[session], batch).await.unwrap();
                        let list = &mut model[session].0;
                        assert_eq!(places.start, list.len() as i64 + 1);
                        list.extend(texts);
                        assert_eq!(places.end, list.len() as i64 + 1);
                    }
                    Step::Clear(session) => {
                        store.clear_window(ids[session]).await.unwrap();
                        model[session].1 = model[session].0.len();
                    }
                    Step::Delete(session) => {
                        store.delete_session(ids[session]).await.unwrap();
                        store.ensure_session(ids[session], Path::new("/p")).await.unwrap();
                        model[session] = Default::default();
                    }
                    Step::Reopen => {
                        store.close().await.unwrap();
                        store = open(&path).await;
                    }
                }
                for (id, (all, start)) in ids.iter().zip(&model) {
                    assert_eq!(contents(&store, id).await, all[*start..]);
                    let stored = store.all_messages(id).await.unwrap();
                    assert!(stored.iter().map(|m| &m.content).eq(all));
                    assert!(stored.iter().zip(1..).all(|(m, seq)| m.seq == seq));
                }
            }
        });
    }
}

/// Proves ACP-1, ACP-1a: a copy has the conversation with its window, tasks and views, and changes of one do not change
/// the other.
#[tokio::test]
async fn copy_of_a_session_is_independent() {
    let (_folder, store) = store().await;
    for text in ["one", "two"] {
        store
            .append_message("s", message("user", text))
            .await
            .unwrap();
    }
    store.clear_window("s").await.unwrap();
    let seq = store
        .append_message("s", message("user", "three"))
        .await
        .unwrap();
    store.set_result_view("s", seq, "view").await.unwrap();
    store.set_title("s", "Title").await.unwrap();
    store.add_task("s", "task").await.unwrap();

    store
        .copy_session("s", "copy", Path::new("/elsewhere"))
        .await
        .unwrap();
    let copy = store.session("copy").await.unwrap();
    assert_eq!(
        (copy.messages, copy.title.as_deref()),
        (3, Some("Title (copy)"))
    );
    assert_eq!(copy.project, Path::new("/elsewhere"));
    assert_eq!(contents(&store, "copy").await, ["three"]);
    assert_eq!(store.tasks("copy").await.unwrap()[0].content, "task");
    assert_eq!(store.result_views("copy").await.unwrap()[&seq], "view");

    store
        .append_message("copy", message("user", "four"))
        .await
        .unwrap();
    store.delete_session("s").await.unwrap();
    assert_eq!(contents(&store, "copy").await, ["three", "four"]);
    assert!(store.result_views("s").await.unwrap().is_empty());
    let unknown = store.copy_session("s", "t", Path::new("/")).await;
    assert!(
        matches!(unknown, Err(StoreError::UnknownSession { .. })),
        "{unknown:?}"
    );
    let taken = store.copy_session("copy", "copy", Path::new("/")).await;
    assert!(taken.is_err());
    let view = store.set_result_view("s", 1, "view").await;
    assert!(
        matches!(view, Err(StoreError::UnknownSession { .. })),
        "{view:?}"
    );
}
