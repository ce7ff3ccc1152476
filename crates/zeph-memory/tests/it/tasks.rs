//! The task list of a session.

use std::path::Path;

use zeph_memory::{StoreError, TaskStatus};

use crate::{open, store};

#[tokio::test]
async fn tasks_are_numbered_and_stored_per_session() {
    let (_folder, store) = store().await;
    store.ensure_session("t", Path::new("/p")).await.unwrap();
    let first = store.add_task("s", "look").await.unwrap();
    assert_eq!(
        (first.id.as_str(), first.status),
        ("task_1", TaskStatus::Pending)
    );
    assert_eq!(store.add_task("s", "mend").await.unwrap().id, "task_2");
    assert_eq!(store.add_task("t", "else").await.unwrap().id, "task_1");
    for status in TaskStatus::ALL {
        let task = store.update_task("s", "task_1", status).await.unwrap();
        assert_eq!((task.content.as_str(), task.status), ("look", status));
        assert_eq!(task.created_at, first.created_at);
    }
    store.close().await.unwrap();
    let list = open(store.path()).await.tasks("s").await.unwrap();
    let seen: Vec<_> = list
        .iter()
        .map(|task| (task.id.as_str(), task.content.as_str(), task.status))
        .collect();
    assert_eq!(
        seen,
        [
            ("task_1", "look", TaskStatus::Completed),
            ("task_2", "mend", TaskStatus::Pending)
        ]
    );
}

#[tokio::test]
async fn more_than_nine_tasks_stay_in_order() {
    let (_folder, store) = store().await;
    for n in 1..=12 {
        store.add_task("s", &n.to_string()).await.unwrap();
    }
    let contents: Vec<_> = store.tasks("s").await.unwrap();
    let contents: Vec<_> = contents.into_iter().map(|task| task.content).collect();
    assert_eq!(
        contents,
        (1..=12).map(|n| n.to_string()).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn invalid_task_input_is_refused_with_valid_values() {
    let (_folder, store) = store().await;
    let wrong = |id: &'static str| {
        let store = store.clone();
        async move {
            let result = store.update_task("s", id, TaskStatus::Completed).await;
            result.unwrap_err().to_string()
        }
    };
    assert!(wrong("task_1").await.contains("has no tasks yet"));
    store.add_task("s", "a").await.unwrap();
    store.add_task("s", "b").await.unwrap();
    for id in ["task_3", "task_0", "task_-1", "task_01", "1", "", "b"] {
        let text = wrong(id).await;
        assert!(text.contains("it has task_1, task_2"), "{text}");
        assert!(text.contains(&format!("{id:?}")), "{text}");
    }
    assert!(matches!(
        store.add_task("s", " \n").await.unwrap_err(),
        StoreError::EmptyTask
    ));
    let error = "done".parse::<TaskStatus>().unwrap_err().to_string();
    assert!(
        error.contains("`pending`, `in_progress` or `completed`"),
        "{error}"
    );
    for status in TaskStatus::ALL {
        assert_eq!(status.as_str().parse::<TaskStatus>().unwrap(), status);
    }
}
