//! Selection of the tools that requests offer: all tools, or those that the schema filter and the dependency rules
//! leave.
//!
//! An offered tool remains at its position until the window is cleared or compacted, and new tools are appended, so
//! that the provider's prompt cache remains valid. If tools are filtered, the list is stored with the session.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use memchr::memmem;
use uuid::Uuid;
use zeph_llm::{LlmProvider, Message, MessagePart, Role, ToolDefinition};
use zeph_memory::Store;
use zeph_tools::gate::dependencies::Dependencies;
use zeph_tools::schema;
use zeph_tools::schema_filter::{ToolFilterConfig, ToolFilterResult, ToolSchemaFilter, telling};
use zeph_tools::tafc::{self, TafcConfig};
use zeph_tools::{Availability, ToolDef, ToolRegistry};

use super::history::History;
use crate::embedding::Embedder;

/// The time limit for embeddings. A model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a text that are embedded.
const MAX_EMBEDDED_BYTES: usize = 1024;

/// Selects the tools of a session.
pub(super) struct ToolSelection {
    filter: ToolSchemaFilter,
    tafc: TafcConfig,
    /// The embeddings of tool descriptions, by text.
    embeddings: HashMap<String, Vec<f32>>,
    /// Computes embeddings; `None` means that keywords are compared.
    embedder: Option<Embedder>,
    /// Whether an embedding failed. It is tried again after the window was cleared.
    failed: bool,
    /// The result of the filter for the turn's prompt; `None` if it is off.
    filtered: Option<ToolFilterResult>,
    query: String,
    /// The offered tools, in order.
    offered: Vec<String>,
    /// Whether the list of an earlier process was loaded.
    looked_up: bool,
    mentioned: MentionedTools,
}

impl ToolSelection {
    pub(super) fn new(
        filter: ToolFilterConfig,
        tafc: TafcConfig,
        embedder: Option<Embedder>,
    ) -> Self {
        Self {
            filter: ToolSchemaFilter::new(filter, HashMap::new()),
            tafc,
            embeddings: HashMap::new(),
            embedder,
            failed: false,
            filtered: None,
            query: String::new(),
            offered: Vec::new(),
            looked_up: false,
            mentioned: MentionedTools::default(),
        }
    }

    /// The tools of `registry` for a provider. If the provider calls tools natively, complex tools get a reasoning
    /// field.
    fn augmented(&self, registry: &ToolRegistry, provider: &dyn LlmProvider) -> Vec<ToolDef> {
        let mut tools = registry.tools().to_vec();
        tools.retain(|def| def.offered != Availability::NotNow);
        if provider.supports_tool_use() {
            tools
                .iter_mut()
                .for_each(|def| tafc::apply(&self.tafc, def));
        }
        tools
    }

    /// Filters the tools for the prompt `query`. Providers without native tool calls get all tools. Returns a
    /// warning.
    pub(super) async fn begin_turn(
        &mut self,
        query: &str,
        registry: &ToolRegistry,
        provider: &dyn LlmProvider,
    ) -> Option<String> {
        let query = telling(query);
        query.clone_into(&mut self.query);
        let before = self.filtered.take();
        if !self.filter.config().enabled || !provider.supports_tool_use() {
            return None;
        }
        let tools = self.augmented(registry, provider);
        let embedding = self.embed(query, &tools).await;
        let (embedding, warning) = match embedding {
            Ok(embedding) => (embedding, None),
            Err(warning) => (None, Some(warning)),
        };
        let result = match embedding {
            Some(embedding) => self.filter.filter(query, Some(&embedding), &tools),
            None => self.filter.filter_by_words(query, &tools),
        };
        for (tool, reason) in &result.reasons {
            tracing::debug!(%tool, ?reason, score = result.scores.get(tool), "offered");
        }
        tracing::debug!(excluded = ?result.excluded, "not near enough");
        // A prompt such as "continue" refers to the prompt before it.
        self.filtered = Some(match before.filter(ToolFilterResult::compared) {
            Some(before) => result.after(before),
            None => result,
        });
        warning
    }

    /// The embedding of `query`, with the embeddings of all tools in the filter; `None` if keywords are compared. The
    /// error is a warning: keywords are compared from then on.
    async fn embed(&mut self, query: &str, tools: &[ToolDef]) -> Result<Option<Vec<f32>>, String> {
        let Some(embedder) = self.embedder.as_ref().filter(|_| !self.failed) else {
            return Ok(None);
        };
        let texts: Vec<String> = tools.iter().map(described).collect();
        let new = texts.iter().map(String::as_str);
        let new: Vec<&str> = new
            .filter(|text| !self.embeddings.contains_key(*text))
            .collect();
        let query = [beginning(query)];
        let asked = tokio::time::timeout(PATIENCE, embedder.embed(&query, &new)).await;
        let embedded = match asked {
            Ok(embedded) => embedded.map_err(|error| error.to_string()),
            Err(_) => Err(format!(
                "{} did not answer in {} s",
                embedder.provider(),
                PATIENCE.as_secs()
            )),
        };
        let embedded = embedded.map_err(|error| {
            self.failed = true;
            format!("there are no embeddings, so tools are selected by keywords: {error}")
        })?;
        for (text, vector) in new.into_iter().zip(embedded.lasting) {
            self.embeddings.insert(text.to_owned(), vector);
        }
        let known = tools.iter().zip(&texts).filter_map(|(def, text)| {
            let vector = self.embeddings.get(text)?;
            Some((def.id.to_string(), vector.clone()))
        });
        self.filter = ToolSchemaFilter::new(self.filter.config().clone(), known.collect());
        Ok(embedded.passing.into_iter().next())
    }

    /// The tools of the next request, and a warning at most once a turn.
    pub(super) async fn definitions(
        &mut self,
        store: &Store,
        history: &History,
        registry: &ToolRegistry,
        provider: &dyn LlmProvider,
        dependencies: Option<&Dependencies>,
    ) -> (Vec<ToolDefinition>, Option<String>) {
        let session = history.session();
        let mut tools = self.augmented(registry, provider);
        self.mentioned.read(history, &tools);
        tools.retain(|def| !provider.supports_tool_use() || self.mentioned.allows(def));
        let hiding = dependencies.filter(|dependencies| dependencies.hides());
        let mut warning = self.look_up(store, session).await;
        let mut result = match (&self.filtered, hiding) {
            // Without a comparison, the offered tools still fit.
            (Some(result), _) if !self.offered.is_empty() => {
                result.clone().after(ToolFilterResult::default())
            }
            (Some(result), _) => result.clone(),
            (None, Some(_)) => self.filter.everything(&self.query, &tools),
            (None, None) => {
                self.keep(|_| true, &tools);
                return (self.in_order(&tools), None);
            }
        };
        result.keep(&called_in_turn(history.messages()));
        if let Some(dependencies) = hiding {
            let ids = tools.iter().map(|def| def.id.as_ref());
            match dependencies.gated(session, ids).await {
                Ok(gated) => {
                    // `gated` has loaded the completed tools, so this cannot fail.
                    let completed = dependencies.completed(session).await.unwrap_or_default();
                    let top_k = self.filter.config().top_k;
                    let graph = dependencies.graph();
                    graph.apply(&mut result, top_k, &completed, &gated.exclusions);
                    for exclusion in &result.dependency_exclusions {
                        tracing::debug!(tool = %exclusion.tool, unmet = ?exclusion.unmet, "left out");
                    }
                    warning = warning.or(gated.warning);
                }
                // Calls are still refused, because the layer cannot load them either.
                Err(error) => warning = Some(error.to_string()),
            }
        }
        let before = self.offered.len();
        self.keep(|id| result.included.contains(id), &tools);
        if self.offered.len() > before
            && let Err(error) = store.set_offered_tools(session, &self.offered).await
        {
            warning = warning.or(Some(error.to_string()));
        }
        (self.in_order(&tools), warning)
    }

    /// Loads the list of an earlier process of this session. Returns a warning.
    async fn look_up(&mut self, store: &Store, session: &str) -> Option<String> {
        if std::mem::replace(&mut self.looked_up, true) {
            return None;
        }
        match store.offered_tools(session).await {
            Ok(offered) => {
                let known: HashSet<String> = offered.iter().cloned().collect();
                let before = std::mem::replace(&mut self.offered, offered);
                let new = before.into_iter().filter(|tool| !known.contains(tool));
                self.offered.extend(new);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Appends included tools that are new, in the order of `tools`. Tools that become available after a mention come
    /// last, as in the process in which they were mentioned.
    fn keep(&mut self, included: impl Fn(&str) -> bool, tools: &[ToolDef]) {
        let known: HashSet<&str> = self.offered.iter().map(String::as_str).collect();
        let new = tools.iter();
        let new = new.filter(|def| included(&def.id) && !known.contains(def.id.as_ref()));
        let (at_once, later): (Vec<&ToolDef>, Vec<&ToolDef>) =
            new.partition(|def| def.offered == Availability::AtOnce);
        let new = at_once.into_iter().chain(later);
        let new: Vec<String> = new.map(|def| def.id.to_string()).collect();
        self.offered.extend(new);
    }

    /// The offered tools that still exist, in order.
    fn in_order(&self, tools: &[ToolDef]) -> Vec<ToolDefinition> {
        let by_id: HashMap<&str, &ToolDef> =
            tools.iter().map(|def| (def.id.as_ref(), def)).collect();
        let offered = self.offered.iter();
        let offered = offered.filter_map(|id| by_id.get(id.as_str()).copied());
        offered.map(definition).collect()
    }

    /// Allows a new order, because a compaction has invalidated the provider's cache.
    pub(super) fn allow_new_order(&mut self) {
        self.offered.clear();
        self.looked_up = true;
    }

    /// Allows a new order after the window was cleared.
    pub(super) fn forget(&mut self) {
        self.allow_new_order();
        self.mentioned = MentionedTools::default();
        self.failed = false;
    }

    /// The text for `/status`; empty if the filter is off.
    pub(super) fn status(&self, provider: &dyn LlmProvider) -> String {
        let config = self.filter.config();
        if !config.enabled {
            return String::new();
        }
        let how = match &self.embedder {
            _ if !provider.supports_tool_use() => {
                "not in use: the model does not call tools natively".to_owned()
            }
            Some(embedder) if self.failed => format!(
                "keyword search with BM25, because {} of {} failed",
                embedder.model().name,
                embedder.provider()
            ),
            Some(embedder) => format!("{} of {}", embedder.model().name, embedder.provider()),
            None => "keyword search with BM25, because no provider of embeddings is set".to_owned(),
        };
        format!(
            "Filter: top_k={}, always_on={}, embeddings={} ({how})\n",
            config.top_k,
            config.always_on.len(),
            self.filter.embedded(),
        )
    }
}

/// The tools that become available after a mention in a result, and were mentioned.
#[derive(Default)]
struct MentionedTools {
    tools: HashSet<&'static str>,
    window: Option<Uuid>,
    /// The number of messages of the window that were searched.
    read: usize,
}

impl MentionedTools {
    /// Searches new messages.
    fn read(&mut self, history: &History, tools: &[ToolDef]) {
        let messages = history.messages();
        if self.window.replace(history.id()) != Some(history.id()) {
            self.read = 0;
        }
        let waiting = tools.iter().filter_map(|def| match def.offered {
            Availability::OnceNamed(tool) if !self.tools.contains(tool) => Some(tool),
            _ => None,
        });
        let waiting: HashSet<&'static str> = waiting.collect();
        // The last message may still be replaced.
        let settled = messages.len().saturating_sub(1);
        let from = std::mem::replace(&mut self.read, settled).min(messages.len());
        for tool in waiting {
            let finder = memmem::Finder::new(tool);
            let new = messages.iter().skip(from).flat_map(|one| &one.parts);
            let names = |part: &MessagePart| match part {
                MessagePart::ToolResult { content, .. } => {
                    finder.find(content.as_bytes()).is_some()
                }
                _ => false,
            };
            if new.into_iter().any(names) {
                self.tools.insert(tool);
            }
        }
    }

    fn allows(&self, def: &ToolDef) -> bool {
        match def.offered {
            Availability::AtOnce => true,
            Availability::OnceNamed(tool) => self.tools.contains(tool),
            Availability::NotNow => false,
        }
    }
}

/// The tools that were called since the last prompt.
fn called_in_turn(messages: &[Message]) -> HashSet<&str> {
    let spoken = messages.iter().rposition(|message| {
        let is_result = |part: &MessagePart| matches!(part, MessagePart::ToolResult { .. });
        message.role == Role::User && !message.parts.iter().any(is_result)
    });
    let turn = messages.get(spoken.unwrap_or(0)..).unwrap_or_default();
    let calls = turn.iter().flat_map(Message::tool_uses);
    calls.map(|call| call.name.as_str()).collect()
}

/// The text of a tool that is embedded.
fn described(def: &ToolDef) -> String {
    let mut text = format!("{}: {}", def.id.replace('_', " "), def.description);
    text.truncate(beginning(&text).len());
    text
}

/// The part of a text that is embedded. Embedding models have small windows.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_EMBEDDED_BYTES)]
}

fn definition(def: &ToolDef) -> ToolDefinition {
    ToolDefinition {
        name: def.id.to_string(),
        description: def.description.to_string(),
        parameters: schema::sent(&def.parameters),
    }
}
