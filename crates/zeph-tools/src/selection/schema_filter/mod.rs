//! The schema filter: the selection of the tools that a model is offered for a message of the user.
//!
//! It has no I/O: scores come from embeddings, or from words ([`lexical`]). The agent decides how the offer
//! changes over a session (it only grows).

mod config;
pub mod lexical;

use std::collections::{HashMap, HashSet};

use serde::Serialize;

pub use config::ToolFilterConfig;

use crate::def::ToolDef;
use crate::dependency_graph::DependencyExclusion;

/// The reason why a tool is offered. The schema filter returns the first reason that applies. The dependency
/// graph then replaces it by [`InclusionReason::PreferenceBoost`] or [`InclusionReason::DependencyMet`] if the
/// tool would otherwise be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InclusionReason {
    /// The configuration lists it.
    AlwaysOn,
    /// The user named it.
    NameMentioned,
    /// Its description is too short for a comparison.
    ShortDescription,
    /// It has no embedding to compare.
    NoEmbedding,
    /// It is among the nearest.
    SimilarityRank,
    /// It is among the nearest because tools that it prefers succeeded in this session.
    PreferenceBoost,
    /// It requires other tools, and all of them succeeded in this session.
    DependencyMet,
    /// The model called it in this turn.
    Called,
    /// Nothing is filtered: there is nothing to compare with, or the filter is off.
    Unfiltered,
}

/// The result of the filter for a set of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolFilterResult {
    /// The ids of the offered tools.
    pub included: HashSet<String>,
    /// The ids of the other tools, in the order of the tools.
    pub excluded: Vec<String>,
    /// The reason for each offered tool, in the order of the tools.
    pub reasons: Vec<(String, InclusionReason)>,
    /// The similarity of each compared tool, in [-1, 1].
    pub scores: HashMap<String, f32>,
    /// The tools that the dependency graph excluded.
    pub dependency_exclusions: Vec<DependencyExclusion>,
}

impl ToolFilterResult {
    /// Returns the reason why `tool` is offered; `None` if it is not.
    #[must_use]
    pub fn reason(&self, tool: &str) -> Option<InclusionReason> {
        let found = self.reasons.iter().find(|(id, _)| id == tool);
        found.map(|(_, reason)| *reason)
    }

    /// Includes the excluded tools of `called`: a tool that the model called in this turn stays.
    pub fn keep(&mut self, called: &HashSet<&str>) {
        let (back, out) = std::mem::take(&mut self.excluded)
            .into_iter()
            .partition(|id| called.contains(id.as_str()));
        self.excluded = out;
        let back: Vec<String> = back;
        self.included.extend(back.iter().cloned());
        let reasons = back.into_iter().map(|id| (id, InclusionReason::Called));
        self.reasons.extend(reasons);
    }

    /// Whether tools were compared. If not, nothing was filtered.
    #[must_use]
    pub fn compared(&self) -> bool {
        !self.scores.is_empty()
    }

    /// Combines the result with the previous one. If nothing was compared, the previous selection stays, and only
    /// tools that are always on or named join it.
    #[must_use]
    pub fn after(self, mut before: Self) -> Self {
        if self.compared() {
            return self;
        }
        for (id, reason) in self.reasons {
            if before.included.contains(&id) {
                continue;
            }
            before.excluded.retain(|excluded| *excluded != id);
            if reason == InclusionReason::Unfiltered {
                before.excluded.push(id);
            } else {
                before.included.insert(id.clone());
                before.reasons.push((id, reason));
            }
        }
        before
    }
}

/// The filter of the tools that a model is offered.
#[derive(Debug, Clone, Default)]
pub struct ToolSchemaFilter {
    config: ToolFilterConfig,
    embeddings: HashMap<String, Vec<f32>>,
}

impl ToolSchemaFilter {
    /// Creates a filter with the embeddings of the descriptions of tools, by id.
    #[must_use]
    pub fn new(config: ToolFilterConfig, embeddings: HashMap<String, Vec<f32>>) -> Self {
        Self { config, embeddings }
    }

    /// Selects the tools to offer for `query` by the similarity of embeddings. Without an embedding of the query,
    /// nothing is filtered.
    #[must_use]
    pub fn filter(
        &self,
        query: &str,
        query_embedding: Option<&[f32]>,
        tools: &[ToolDef],
    ) -> ToolFilterResult {
        let Some(query_embedding) = query_embedding else {
            return self.everything(query, tools);
        };
        let embedded = tools.iter().filter_map(|def| {
            let embedding = self.embeddings.get(def.id.as_ref())?;
            Some((def.id.to_string(), cosine(query_embedding, embedding)?))
        });
        self.select(query, embedded.collect(), tools)
    }

    /// Selects the tools to offer by the words of `query` and of the tools. Without common words, nothing is
    /// filtered.
    #[must_use]
    pub fn filter_by_words(&self, query: &str, tools: &[ToolDef]) -> ToolFilterResult {
        match lexical::scores(query, tools) {
            Some(scores) => self.select(query, scores, tools),
            None => self.everything(query, tools),
        }
    }

    /// Returns all of `tools`, with the reasons of those that are always on or named.
    #[must_use]
    pub fn everything(&self, query: &str, tools: &[ToolDef]) -> ToolFilterResult {
        let mut result = ToolFilterResult::default();
        for def in tools {
            let reason = self
                .by_name(query, def)
                .unwrap_or(InclusionReason::Unfiltered);
            result.included.insert(def.id.to_string());
            result.reasons.push((def.id.to_string(), reason));
        }
        result
    }

    fn by_name(&self, query: &str, def: &ToolDef) -> Option<InclusionReason> {
        if self.config.always_on.iter().any(|id| *id == def.id) {
            Some(InclusionReason::AlwaysOn)
        } else if mentions(query, &def.id) {
            Some(InclusionReason::NameMentioned)
        } else {
            None
        }
    }

    fn select(
        &self,
        query: &str,
        scores: HashMap<String, f32>,
        tools: &[ToolDef],
    ) -> ToolFilterResult {
        let words = |def: &ToolDef| def.description.split_whitespace().count();
        let settled = |def: &ToolDef| {
            self.by_name(query, def).or_else(|| {
                if words(def) < self.config.min_description_words {
                    Some(InclusionReason::ShortDescription)
                } else if !scores.contains_key(def.id.as_ref()) {
                    Some(InclusionReason::NoEmbedding)
                } else {
                    None
                }
            })
        };
        let reasons: Vec<Option<InclusionReason>> = tools.iter().map(settled).collect();
        let open = tools.iter().zip(&reasons);
        let open = open.filter(|(_, reason)| reason.is_none());
        let near = nearest(
            open.map(|(def, _)| def.id.as_ref()),
            &scores,
            self.config.top_k,
        );
        let mut result = ToolFilterResult::default();
        for (def, reason) in tools.iter().zip(reasons) {
            let ranked = || near.contains(def.id.as_ref());
            let reason = reason.or_else(|| ranked().then_some(InclusionReason::SimilarityRank));
            match reason {
                Some(reason) => {
                    result.included.insert(def.id.to_string());
                    result.reasons.push((def.id.to_string(), reason));
                }
                None => result.excluded.push(def.id.to_string()),
            }
        }
        result.scores = scores;
        result
    }

    /// Returns the configuration `[agent.tool_filter]`.
    #[must_use]
    pub fn config(&self) -> &ToolFilterConfig {
        &self.config
    }

    /// Returns the number of tools with an embedding.
    #[must_use]
    pub fn embedded(&self) -> usize {
        self.embeddings.len()
    }
}

/// Returns the `most` of `ids` with the highest scores; of equal scores the first.
pub(crate) fn nearest<'a>(
    ids: impl Iterator<Item = &'a str>,
    scores: &HashMap<String, f32>,
    most: usize,
) -> HashSet<String> {
    let score = |id: &str| scores.get(id).copied().unwrap_or(f32::NEG_INFINITY);
    let mut ranked: Vec<&str> = ids.collect();
    ranked.sort_by(|a, b| score(b).total_cmp(&score(a)));
    ranked.into_iter().take(most).map(str::to_owned).collect()
}

/// The number of bytes at the start of a message that the filter uses. The rest is probably data.
const MAX_INPUT_BYTES: usize = 32 * 1024;

/// Returns the part of `text` that is used to select tools.
#[must_use]
pub fn telling(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_INPUT_BYTES)]
}

/// Whether `text` names `tool`, as a whole word and without case.
#[must_use]
pub fn mentions(text: &str, tool: &str) -> bool {
    let inside = |byte: Option<&u8>| byte.is_some_and(|byte| is_word(*byte));
    let (text, tool) = (text.as_bytes(), tool.as_bytes());
    if tool.is_empty() || text.len() < tool.len() {
        return false;
    }
    text.windows(tool.len()).enumerate().any(|(at, window)| {
        window.eq_ignore_ascii_case(tool)
            && !inside(at.checked_sub(1).and_then(|before| text.get(before)))
            && !inside(text.get(at + tool.len()))
    })
}

/// Whether a byte is a letter, a digit, `_`, or not ASCII.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Returns the cosine of the angle between two vectors; `None` if they differ in length, one is null, or a number
/// is not finite.
#[must_use]
pub fn cosine(a: &[f32], b: &[f32]) -> Option<f32> {
    if a.len() != b.len() {
        return None;
    }
    let dot = |a: &[f32], b: &[f32]| {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        products.sum::<f64>()
    };
    let cosine = dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt());
    #[allow(clippy::cast_possible_truncation)] // within [-1, 1]
    cosine.is_finite().then_some(cosine as f32)
}

#[cfg(test)]
mod tests;
