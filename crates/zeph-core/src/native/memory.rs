//! `memory_save`, `memory_search`: saved facts, and text of earlier conversations.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use zeph_memory::{FoundMessage, Memory, Store, StoreError};
use zeph_tools::def::CachePolicy;
use zeph_tools::{
    Annotations, CallContext, Tool, ToolCall, ToolDef, ToolError, ToolErrorCategory, ToolOutput,
};

use super::rank_fusion::{Identified, fused};
use crate::embedding::Embedder;

/// The default number of results.
const DEFAULT_LIMIT: u64 = 10;
/// The maximum number of results.
const MAX_RESULTS: u64 = 100;
/// Facts without an embedding that one search embeds. The others are found by keywords until then.
const MADE: u64 = 1000;
/// Facts that a search by meaning returns.
const MAX_NEAR: usize = 500;
/// The cosine similarity below which a fact does not match.
const MIN_SIMILARITY: f32 = 0.3;

#[derive(Debug, Deserialize, JsonSchema)]
struct SaveParams {
    content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchParams {
    query: String,
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    all_projects: Option<bool>,
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Hit {
    /// A saved fact.
    Fact(Memory),
    /// A message of an earlier conversation.
    Conversation(FoundMessage),
}

impl Identified for Hit {
    fn identity(&self) -> String {
        match self {
            Self::Fact(fact) => fact.id.clone(),
            Self::Conversation(message) => format!("{}/{}", message.session, message.seq),
        }
    }
}

impl Hit {
    /// The result on one line: kind, date, session, project, text.
    fn line(&self) -> String {
        let date = |time| {
            jiff::Timestamp::from_millisecond(time)
                .map(|time| time.strftime("%Y-%m-%d").to_string())
                .unwrap_or_default()
        };
        match self {
            Self::Fact(fact) => format!(
                "[fact] {} ({}, session {}, in {}): {}",
                fact.id,
                date(fact.saved_at),
                fact.session,
                fact.project,
                fact.content
            ),
            Self::Conversation(message) => format!(
                "[conversation] {} ({}, session {}, in {}): {}",
                message.role,
                date(message.created_at),
                message.session,
                message.project,
                message.excerpt
            ),
        }
    }
}

/// The tool `memory_save`, which stores a fact.
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
                "Save a fact for later; no secrets.",
                Annotations::SESSION_STATE,
            )
            .with_cache(CachePolicy::LEAVES_FILES)
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
        Ok(ToolOutput::text(format!("Stored as {}.", memory.id))
            .with_raw(json!({ "memory": memory })))
    }
}

/// The tool `memory_search`, which finds facts and text of earlier conversations.
pub struct MemorySearch {
    def: ToolDef,
    store: Store,
    embedder: Option<Embedder>,
}

impl MemorySearch {
    /// The tool over `store`. With an `embedder`, keywords and embeddings are combined.
    #[must_use]
    pub fn new(store: Store, embedder: Option<Embedder>) -> Self {
        Self {
            def: ToolDef::new::<SearchParams>(
                "memory_search",
                "Find saved facts and earlier conversations, before you ask the user.",
                Annotations {
                    idempotent: false,
                    ..Annotations::READ
                },
            )
            .with_cache(CachePolicy::LEAVES_FILES)
            .with_param_aliases(&[("text", "query"), ("max_results", "limit")]),
            store,
            embedder,
        }
    }

    async fn find(
        &self,
        session: &str,
        params: &SearchParams,
        most: u64,
    ) -> Result<Vec<Hit>, StoreError> {
        let query = params.query.as_str();
        let by_words = self.store.search_memory(query, MAX_RESULTS).await?;
        let near = match &self.embedder {
            None => Vec::new(),
            Some(embedder) => self.near(embedder, query).await.unwrap_or_else(|reason| {
                tracing::warn!(%reason, "facts are searched by keywords: there are no embeddings");
                Vec::new()
            }),
        };
        let everywhere = params.all_projects == Some(true);
        let said = self.store.search_messages(session, query, everywhere, most);
        let facts = |facts: Vec<Memory>| facts.into_iter().map(Hit::Fact).collect();
        let orders = vec![
            facts(by_words),
            facts(near),
            said.await?.into_iter().map(Hit::Conversation).collect(),
        ];
        Ok(fused(orders, usize::try_from(most).unwrap_or(usize::MAX)))
    }

    /// The facts that are similar to `query`, the nearest first.
    async fn near(&self, embedder: &Embedder, query: &str) -> Result<Vec<Memory>, String> {
        let model = embedder.model().key.as_str();
        // Tries again if the cached embeddings were computed by another model with the same name.
        for _ in 0..2 {
            let gap = self.store.vector_gap(model, MADE).await;
            let gap = gap.map_err(|error| error.to_string())?;
            let contents = gap.memories.iter().map(|fact| fact.content.as_str());
            let texts: Vec<&str> = contents.collect();
            let made = embedder.embed_apart(&[query], &texts).await;
            let made = made.map_err(|error| error.to_string())?;
            let query = made.passing.first().map_or(&[][..], Vec::as_slice);
            if let Err(error) = self.store.fill_vector_gap(model, &gap, &made.lasting).await {
                tracing::warn!(%error, "embeddings of facts cannot be stored");
            }
            let near = self.store.near_memories(model, query, MAX_NEAR).await;
            if let Some(near) = near.map_err(|error| error.to_string())? {
                let near = near.into_iter().filter(|it| it.cosine >= MIN_SIMILARITY);
                return Ok(near.map(|it| it.memory).collect());
            }
        }
        Err("their length changes from one time to the next".to_owned())
    }
}

#[async_trait]
impl Tool for MemorySearch {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: SearchParams = call.parse()?;
        let most = params.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_RESULTS);
        let found = self.find(&call.conversation, &params, most).await;
        let found = found.map_err(|error| failure(&error))?;
        let lines: Vec<String> = found.iter().map(Hit::line).collect();
        let summary = if lines.is_empty() {
            "No saved fact and no earlier conversation matches these words.".to_owned()
        } else {
            lines.join("\n")
        };
        let facts: Vec<&Memory> = found
            .iter()
            .filter_map(|hit| match hit {
                Hit::Fact(fact) => Some(fact),
                Hit::Conversation(_) => None,
            })
            .collect();
        let raw = json!({ "memories": facts, "results": found });
        Ok(ToolOutput::text(summary).with_raw(raw))
    }
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
