//! The title of a session across a compaction.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use zeph_core::{AgentBuilder, EventChannel, LoopbackEvent};
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_memory::{Store, Synchronous};
use zeph_tools::stack::{self, StackParts};

/// Proves CLI-6: a compaction that removes all messages does not make the next prompt the title.
#[tokio::test]
async fn title_after_a_compaction_remains() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zeph.db");
    let store = Store::open(&file, Synchronous::Normal).await.unwrap();
    store.ensure_session("s1", folder.path()).await.unwrap();
    let steps = "[[steps]]\ntext = \"Fine.\"\nrepeat = 9\n";
    let scenario = Scenario::from_toml(steps, BTreeMap::new()).unwrap();
    let model = Arc::new(ScriptedProvider::new("p", scenario));
    let tools = stack::build(StackParts::default()).unwrap();
    let titles = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&titles);
    let record = move |event| {
        if let LoopbackEvent::Title(title) = event {
            seen.lock().unwrap().push(title);
        }
    };
    let agent = AgentBuilder::new(model, tools, &store, "s1", folder.path());
    let agent = agent.with_channel(EventChannel::new(record)).build();
    let mut agent = agent.await.unwrap();
    let cancel = CancellationToken::new();
    agent.run_turn("alpha", &cancel).await;
    agent.handle("/compact", &cancel).await;
    assert!(agent.messages().is_empty());
    agent.run_turn("continue", &cancel).await;
    assert_eq!(agent.messages().len(), 2);
    assert_eq!(*titles.lock().unwrap(), ["alpha"]);
}
