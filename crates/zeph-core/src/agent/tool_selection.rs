//! What a model is offered: all tools, or those that the schema filter and the dependency rules leave.
//!
//! What was offered once stays until the window is cleared or summed up, in its place, and more is appended: the
//! provider's cache of the prompt survives. Where something chooses, it is kept with the session.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use memchr::memmem;
use zeph_llm::{HistoryId, LlmProvider, Message, MessagePart, Role, ToolDefinition};
use zeph_memory::Store;
use zeph_tools::gate::dependencies::Dependencies;
use zeph_tools::schema;
use zeph_tools::schema_filter::{ToolFilterConfig, ToolFilterResult, ToolSchemaFilter, telling};
use zeph_tools::tafc::{self, TafcConfig};
use zeph_tools::{Availability, ToolDef, ToolRegistry};

use super::history::History;
use crate::embedding::Embedder;

/// How long vectors may take; a model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(30);
/// What of a text becomes a vector, in bytes.
const MAX_EMBEDDED_BYTES: usize = 1024;

/// See the module.
pub(super) struct ToolSelection {
    filter: ToolSchemaFilter,
    tafc: TafcConfig,
    /// The vectors of texts that tools are described by.
    embeddings: HashMap<String, Vec<f32>>,
    /// Who makes vectors; `None` where words are compared.
    embedder: Option<Embedder>,
    /// Whether making vectors failed; it is tried again when the window was cleared.
    failed: bool,
    /// What the filter made of the turn's words; `None` where it is off.
    filtered: Option<ToolFilterResult>,
    query: String,
    /// What was offered, in the order in which it came.
    offered: Vec<String>,
    /// Whether it was looked up what a process before this one offered.
    looked_up: bool,
    named: Named,
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
            named: Named::default(),
        }
    }

    /// The tools of `registry` as a provider may see them: with a field to think in, where they are
    /// complex and the provider calls tools natively.
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

    /// The user said `query`: what is near to it is found out. Providers that do not call tools
    /// natively are offered all. What is returned is a warning.
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
        // "Go on" is about what was said before.
        self.filtered = Some(match before.filter(ToolFilterResult::compared) {
            Some(before) => result.after(before),
            None => result,
        });
        warning
    }

    /// The vector of `query`, with those of all tools in the filter; `None` where words are compared. The
    /// error is a warning: from then on words are compared.
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
            format!("there are no embeddings, so tools are chosen by words: {error}")
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

    /// What the next request offers. The second is a warning, once a turn.
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
        self.named.read(history, &tools);
        tools.retain(|def| !provider.supports_tool_use() || self.named.allows(def));
        let hiding = dependencies.filter(|dependencies| dependencies.hides());
        let mut warning = self.look_up(store, session).await;
        let mut result = match (&self.filtered, hiding) {
            // With nothing to compare, what was offered still fits.
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
                    // It was read for `gated`, and is known since.
                    let completed = dependencies.completed(session).await.unwrap_or_default();
                    let top_k = self.filter.config().top_k;
                    let graph = dependencies.graph();
                    graph.apply(&mut result, top_k, &completed, &gated.exclusions);
                    for exclusion in &result.dependency_exclusions {
                        tracing::debug!(tool = %exclusion.tool, unmet = ?exclusion.unmet, "left out");
                    }
                    warning = warning.or(gated.warning);
                }
                // A call is refused all the same: the layer cannot know either.
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

    /// Takes over what a process before this one offered in the session. What is returned is a warning.
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

    /// Appends what is new of those that are included, in the order of `tools`; behind them those that
    /// waited to be named, as they stand where the session goes on in the process that named them.
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

    /// What was offered and is still there, in its order.
    fn in_order(&self, tools: &[ToolDef]) -> Vec<ToolDefinition> {
        let by_id: HashMap<&str, &ToolDef> =
            tools.iter().map(|def| (def.id.as_ref(), def)).collect();
        let offered = self.offered.iter();
        let offered = offered.filter_map(|id| by_id.get(id.as_str()).copied());
        offered.map(definition).collect()
    }

    /// Older messages were summed up: the provider's cache is lost, so that what is offered may begin anew.
    pub(super) fn begin_anew(&mut self) {
        self.offered.clear();
        self.looked_up = true;
    }

    /// The window was cleared: what is offered may begin anew.
    pub(super) fn forget(&mut self) {
        self.begin_anew();
        self.named = Named::default();
        self.failed = false;
    }

    /// A line of `/status`; nothing where the filter is off.
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
                "compared by words, BM25: {} of {} failed",
                embedder.model().name,
                embedder.provider()
            ),
            Some(embedder) => format!("{} of {}", embedder.model().name, embedder.provider()),
            None => "compared by words, BM25: no provider of embeddings is set".to_owned(),
        };
        format!(
            "Filter: top_k={}, always_on={}, embeddings={} ({how})\n",
            config.top_k,
            config.always_on.len(),
            self.filter.embedded(),
        )
    }
}

/// Which of the tools that wait for it were named by a result.
#[derive(Default)]
struct Named {
    tools: HashSet<&'static str>,
    window: Option<HistoryId>,
    /// Messages of the window that were read.
    read: usize,
}

impl Named {
    /// Reads the messages that are new.
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

/// The tools that were called since the user spoke last.
fn called_in_turn(messages: &[Message]) -> HashSet<&str> {
    let spoken = messages.iter().rposition(|message| {
        let is_result = |part: &MessagePart| matches!(part, MessagePart::ToolResult { .. });
        message.role == Role::User && !message.parts.iter().any(is_result)
    });
    let turn = messages.get(spoken.unwrap_or(0)..).unwrap_or_default();
    let calls = turn.iter().flat_map(Message::tool_uses);
    calls.map(|call| call.name.as_str()).collect()
}

/// What of a tool becomes a vector.
fn described(def: &ToolDef) -> String {
    let mut text = format!("{}: {}", def.id.replace('_', " "), def.description);
    text.truncate(beginning(&text).len());
    text
}

/// What of a text becomes a vector: models of vectors have small windows.
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
