//! Stores a conversation and its tasks, and continues it after a restart.
#![allow(clippy::print_stdout)]

use zeph_memory::{NewMessage, Store, StoreError, Synchronous, TaskStatus};

#[tokio::main]
async fn main() -> Result<(), StoreError> {
    let folder = std::env::temp_dir().join(format!("zeph-memory-{}", std::process::id()));
    let database = folder.join("agent.db");

    let store = Store::open(&database, Synchronous::Normal).await?;
    store.ensure_session("s1", &folder).await?;
    let content = r#"[{"type":"text","text":"Hello"}]"#.to_owned();
    store
        .append_message(
            "s1",
            NewMessage {
                role: "user".into(),
                content,
                usage: None,
            },
        )
        .await?;
    let task = store.add_task("s1", "Greet back").await?;
    store
        .update_task("s1", &task.id, TaskStatus::Completed)
        .await?;
    store.close().await?;

    let store = Store::open(&database, Synchronous::Normal).await?;
    let latest = store.latest_session(&folder).await?;
    println!("session: {:?}", latest.map(|session| session.id));
    println!("messages: {}", store.messages("s1").await?.len());
    println!("tasks: {:?}", store.tasks("s1").await?[0].status);
    store.close().await?;
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}

// Prints:
// session: Some("s1")
// messages: 1
// tasks: Completed
