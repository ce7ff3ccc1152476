//! The cost of sixty tools in a conversation of twenty turns, with the schema filter and without.
//!
//! A provider records its requests in the order in which prompt caches read them: tools, system prompt, messages.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use zeph_core::{
    AgentBuilder, AgentConfig, Channel, CheckIn, CheckInAnswer, IterationPolicy, LoopbackEvent,
    UserAnswer,
};
use zeph_llm::{
    ChatRequest, ChatResponse, LlmError, LlmProvider, MessagePart, StopReason, StreamSink, Usage,
};
use zeph_memory::{Store, Synchronous};
use zeph_tools::gate::CallLimits;
use zeph_tools::question::{ServerAnswer, ServerQuestion};
use zeph_tools::schema_filter::ToolFilterConfig;
use zeph_tools::stack::{self, StackParts};
use zeph_tools::undo::NoJournal;
use zeph_tools::{
    Annotations, CallContext, Confirmation, ExecutorResult, Permissions, SkillEnv, ToolCall,
    ToolDef, ToolError, ToolExecutor, TrustLevel,
};

/// The prompts of the turns.
const TURNS: [&str; 20] = [
    "what files are in the src directory?",
    "read the file Cargo.toml",
    "search all files for the word legacy",
    "edit main.rs: replace the text foo by bar",
    "run the tests",
    "does it compile? show errors and warnings",
    "find every file whose name ends with _test.rs",
    "edit the test: the new name is expected",
    "run the tests again",
    "write a file CHANGES.md with what was done",
    "move the directory docs into website/",
    "open an issue in the repo about the slow parser",
    "which issues with the label bug are open?",
    "read lib.rs",
    "search the contents for parse_header",
    "edit the parser: replace the loop",
    "run the tests",
    "comment on issue 7 that it is fixed",
    "propose this branch for merging into main",
    "did the pipeline pass on the branch?",
];

struct Silent;

#[async_trait]
impl Channel for Silent {
    fn emit(&self, _event: LoopbackEvent) {}
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

/// Records the tools and the rest of each request.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<(String, String)>>);

#[async_trait]
impl LlmProvider for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }
    fn model(&self) -> &str {
        "none"
    }
    fn context_window(&self) -> usize {
        1_000_000
    }
    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        _sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": *tool.parameters }))
            .collect();
        let tools = serde_json::to_string(&tools).unwrap();
        let messages = serde_json::to_string(request.messages).unwrap();
        let rest = request.system.to_owned() + messages.trim_end_matches(']');
        self.0.lock().unwrap().push((tools, rest));
        let text = "Done; here is what I found. ".repeat(12);
        let parts = vec![MessagePart::Text { text }];
        Ok(ChatResponse::from_parts(
            parts,
            StopReason::EndTurn,
            Usage::default(),
        ))
    }
}

/// The tools of the schema filter's own measurement. None of them runs.
struct Sixty(Vec<ToolDef>);

/// No parameters: the schema is replaced.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

impl Sixty {
    fn new() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../zeph-tools/tests/schema_filter/tools.json");
        let tools: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let text = |tool: &Value, key: &str| tool[key].as_str().unwrap().to_owned().into();
        let def = |tool: &Value| ToolDef {
            id: text(tool, "name"),
            description: text(tool, "description"),
            parameters: Arc::new(tool["parameters"].clone()),
            ..ToolDef::new::<Nothing>("", "", Annotations::READ)
        };
        Self(tools.iter().map(def).collect())
    }
}

impl ToolExecutor for Sixty {
    async fn execute_tool_call(&self, call: &ToolCall, _cx: &CallContext) -> ExecutorResult {
        Err(ToolError::ToolNotFound {
            id: call.tool.to_string(),
            near: Vec::new(),
        })
    }
    async fn execute_tool_call_confirmed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ExecutorResult {
        self.execute_tool_call(call, cx).await
    }
    fn tool_definitions(&self) -> Vec<ToolDef> {
        self.0.clone()
    }
    fn set_skill_env(&self, _env: Option<SkillEnv>) {}
    fn set_effective_trust(&self, _trust: TrustLevel) {}
    fn is_tool_retryable(&self, _tool_id: &str) -> bool {
        false
    }
    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}

/// The size of all requests of a conversation.
struct Sent {
    /// Bytes of tool definitions.
    tools: usize,
    /// Bytes of all parts.
    all: usize,
    /// Bytes of the common prefix with the request before.
    cached: usize,
    /// Requests whose tools differ from those of the request before.
    changes: usize,
}

async fn converse(tool_filter: ToolFilterConfig) -> Sent {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zeph.db");
    let store = Store::open(&file, Synchronous::Normal).await.unwrap();
    store.ensure_session("s1", folder.path()).await.unwrap();
    let tools = stack::build(StackParts {
        executors: vec![("sixty", Arc::new(Sixty::new()))],
        ..StackParts::default()
    });
    let recorder = Arc::new(Recorder::default());
    let mut agent = AgentBuilder {
        config: AgentConfig {
            tool_filter,
            ..AgentConfig::default()
        },
        iterations: IterationPolicy::default(),
        tafc: Default::default(),
        provider: Arc::clone(&recorder) as _,
        executor: Arc::new(tools.unwrap()),
        channel: Arc::new(Silent),
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
    for words in TURNS {
        agent.run_turn(words, &CancellationToken::new()).await;
    }
    let requests = recorder.0.lock().unwrap();
    assert_eq!(requests.len(), TURNS.len());
    let mut sent = Sent {
        tools: 0,
        all: 0,
        cached: 0,
        changes: 0,
    };
    let mut before: Option<&(String, String)> = None;
    for request in requests.iter() {
        let (tools, rest) = request;
        sent.tools += tools.len();
        sent.all += tools.len() + rest.len();
        if let Some((old_tools, old_rest)) = before {
            sent.changes += usize::from(old_tools != tools);
            let shared =
                |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            sent.cached += match old_tools == tools {
                true => tools.len() + shared(old_rest, rest),
                false => shared(old_tools, tools),
            };
        }
        before = Some(request);
    }
    sent
}

/// Proves SCH-6: offered tools remain at their positions. A request with the same tools is read from the cache as a
/// whole; a request with more tools shares the earlier ones. `docs/tools-offered.md` has the figures.
#[tokio::test]
async fn definitions_of_sixty_tools_are_small_and_stay_cached() {
    let all = converse(ToolFilterConfig::default()).await;
    let filtered = converse(ToolFilterConfig {
        enabled: true,
        ..ToolFilterConfig::default()
    })
    .await;
    for (name, sent) in [("all", &all), ("filtered", &filtered)] {
        println!(
            "{name}: definitions {} B, all {} B, cached {} %, {} changes",
            sent.tools,
            sent.all,
            sent.cached * 100 / sent.all,
            sent.changes
        );
    }
    assert_eq!(all.changes, 0);
    assert!(
        filtered.tools * 10 < all.tools * 7,
        "{} of {}",
        filtered.tools,
        all.tools
    );
    assert!(filtered.changes < 12, "{}", filtered.changes);
    // Bytes that are not in the cache, including definitions.
    let new = |sent: &Sent| sent.all - sent.cached;
    println!(
        "not cached: all {} B, filtered {} B",
        new(&all),
        new(&filtered)
    );
}
