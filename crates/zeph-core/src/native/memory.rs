//! `memory_save`, `memory_search`: what is known beyond the session.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use zeph_memory::{Memory, Store, StoreError};
use zeph_tools::{
    Annotations, CallContext, Tool, ToolCall, ToolDef, ToolError, ToolErrorCategory, ToolOutput,
};

/// How many facts are found where it is not said.
const DEFAULT_LIMIT: u64 = 10;
/// How many at most.
const MOST: u64 = 100;

#[derive(Debug, Deserialize, JsonSchema)]
struct SaveParams {
    content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchParams {
    query: String,
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// Keeps a fact.
pub struct MemorySave {
    def: ToolDef,
    store: Store,
}

impl MemorySave {
    /// The tool over `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            def: ToolDef::new::<SaveParams>(
                "memory_save",
                "Keep a lasting fact for later sessions.",
                Annotations::SESSION_STATE,
            )
            .with_param_aliases(&[("text", "content"), ("fact", "content")]),
            store,
        }
    }
}

#[async_trait]
impl Tool for MemorySave {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: SaveParams = call.parse()?;
        let saved = self.store.save_memory(&call.conversation, &params.content);
        let memory = saved.await.map_err(|error| failure(&error))?;
        Ok(ToolOutput::text(format!("Kept as {}.", memory.id))
            .with_raw(json!({ "memory": memory })))
    }
}

/// Finds facts.
pub struct MemorySearch {
    def: ToolDef,
    store: Store,
}

impl MemorySearch {
    /// The tool over `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            def: ToolDef::new::<SearchParams>(
                "memory_search",
                "Find facts kept earlier.",
                Annotations {
                    idempotent: false,
                    ..Annotations::READ
                },
            )
            .with_param_aliases(&[("text", "query"), ("max_results", "limit")]),
            store,
        }
    }
}

#[async_trait]
impl Tool for MemorySearch {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: SearchParams = call.parse()?;
        let most = params.limit.unwrap_or(DEFAULT_LIMIT).min(MOST);
        let found = self.store.search_memory(&params.query, most).await;
        let found = found.map_err(|error| failure(&error))?;
        let lines: Vec<String> = found.iter().map(line).collect();
        let summary = if lines.is_empty() {
            "Nothing that is kept fits these words.".to_owned()
        } else {
            lines.join("\n")
        };
        Ok(ToolOutput::text(summary).with_raw(json!({ "memories": found })))
    }
}

/// A fact with its date, the session that kept it and where that was.
fn line(memory: &Memory) -> String {
    let date = jiff::Timestamp::from_millisecond(memory.saved_at)
        .map(|time| time.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default();
    format!(
        "{} ({date}, session {}, in {}): {}",
        memory.id, memory.session, memory.project, memory.content
    )
}

fn failure(error: &StoreError) -> ToolError {
    match error {
        StoreError::EmptyMemory | StoreError::LongMemory { .. } => {
            ToolError::invalid(error.to_string())
        }
        _ => ToolError::Failed {
            category: ToolErrorCategory::PermanentFailure,
            message: error.to_string(),
        },
    }
}
