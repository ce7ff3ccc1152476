//! The title of a session across a compaction.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_core::{
    AgentBuilder, AgentConfig, Channel, CheckIn, CheckInAnswer, IterationPolicy, LoopbackEvent,
    UserAnswer,
};
use zeph_llm::scripted::{Scenario, ScriptedProvider};
use zeph_memory::{Store, Synchronous};
use zeph_tools::gate::CallLimits;
use zeph_tools::question::{ServerAnswer, ServerQuestion};
use zeph_tools::stack::{self, StackParts};
use zeph_tools::undo::NoJournal;
use zeph_tools::{Confirmation, Permissions};

/// Records the titles.
#[derive(Default)]
struct Titles(Mutex<Vec<String>>);

#[async_trait]
impl Channel for Titles {
    fn emit(&self, event: LoopbackEvent) {
        if let LoopbackEvent::Title(title) = event {
            self.0.lock().unwrap().push(title);
        }
    }
    fn can_ask(&self) -> bool {
        false
    }
    async fn confirm(&self, _call: &str, _question: &Confirmation, _params: &Value) -> UserAnswer {
        UserAnswer::No(None)
    }
    async fn ask_for_server(&self, _question: &ServerQuestion) -> ServerAnswer {
        ServerAnswer::Decline
    }
    async fn check_in(&self, _question: &CheckIn) -> CheckInAnswer {
        CheckInAnswer::Stop
    }
}

/// Proves CLI-6: a compaction that removes all messages does not make the next prompt the title.
#[tokio::test]
async fn title_after_a_compaction_remains() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zeph.db");
    let store = Store::open(&file, Synchronous::Normal).await.unwrap();
    store.ensure_session("s1", folder.path()).await.unwrap();
    let steps = "[[steps]]\ntext = \"Fine.\"\nrepeat = 9\n";
    let scenario = Scenario::from_toml(steps, BTreeMap::new()).unwrap();
    let channel = Arc::new(Titles::default());
    let mut agent = AgentBuilder {
        config: AgentConfig::default(),
        iterations: IterationPolicy::default(),
        tafc: Default::default(),
        provider: Arc::new(ScriptedProvider::new("p", scenario)),
        executor: Arc::new(stack::build(StackParts::default()).unwrap()),
        channel: Arc::clone(&channel) as _,
        undo: Arc::new(NoJournal),
        reformatter: None,
        compressor: Default::default(),
        embedder: None,
        caches: None,
        limits: CallLimits::default(),
        side_usage: Arc::default(),
        result_format: zeph_tools::ResultFormat::Text,
        permissions: Permissions::default(),
        more_status: Vec::new(),
        instructions: String::new(),
        skills: Default::default(),
        hooks: None,
        sub_agents: None,
        parent: None,
        servers: None,
        store,
        session: "s1".to_owned(),
        project: "/project".into(),
        caller_id: None,
        phase: Default::default(),
        reload: None,
        response_schema: None,
        span_content: Default::default(),
    }
    .build()
    .await
    .unwrap();
    let cancel = CancellationToken::new();
    agent.run_turn("alpha", &cancel).await;
    agent.handle("/compact", &cancel).await;
    assert!(agent.messages().is_empty());
    agent.run_turn("continue", &cancel).await;
    assert_eq!(agent.messages().len(), 2);
    assert_eq!(*channel.0.lock().unwrap(), ["alpha"]);
}
