//! All tools of a turn, by id.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::def::{CachePolicy, ToolDef};
use crate::params;

/// The tools of a turn, sorted by id, so that equal sets are sent as equal bytes.
#[derive(Debug, Clone, Default)]
pub struct ToolRegistry {
    tools: Vec<ToolDef>,
    /// The positions in `tools` by id and alias.
    index: HashMap<String, usize>,
    /// The ids that no message names.
    hidden: HashSet<String>,
}

impl ToolRegistry {
    /// Creates a registry of all `definitions`.
    #[must_use]
    pub fn new(mut definitions: Vec<ToolDef>) -> Self {
        definitions.sort_by(|a, b| a.id.cmp(&b.id));
        definitions.dedup_by(|a, b| a.id == b.id);
        let mut index = HashMap::new();
        for (position, def) in definitions.iter().enumerate() {
            for alias in def.aliases {
                index.insert((*alias).to_owned(), position);
            }
        }
        for (position, def) in definitions.iter().enumerate() {
            index.insert(def.id.to_string(), position);
        }
        Self {
            tools: definitions,
            index,
            hidden: HashSet::new(),
        }
    }

    /// Marks the tools that are `hidden`: they stay in the registry, but no message names them.
    #[must_use]
    pub fn without_hidden(mut self, hidden: impl Fn(&ToolDef) -> bool) -> Self {
        let ids = self.tools.iter().filter(|def| hidden(def));
        self.hidden = ids.map(|def| def.id.to_string()).collect();
        self
    }

    /// Returns all tools, sorted by id.
    #[must_use]
    pub fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    /// Returns the tool with this id or alias.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ToolDef> {
        self.index.get(id).and_then(|at| self.tools.get(*at))
    }

    /// Returns the effect of a call of the tool `id` on cached results; that of an unknown tool by default.
    #[must_use]
    pub fn cache_policy(&self, id: &str) -> CachePolicy {
        self.get(id)
            .map_or_else(CachePolicy::default, |def| def.cache)
    }

    /// Whether the tool exists and the arguments fit, or can be repaired.
    #[must_use]
    pub fn accepts(&self, id: &str, params: &Value) -> bool {
        self.get(id)
            .is_some_and(|def| params::prepare_as(def, id, params).is_ok())
    }

    /// Returns up to three ids similar to `id`, the nearest first.
    #[must_use]
    pub fn suggestions(&self, id: &str) -> Vec<String> {
        let ids = self.tools.iter().map(|def| def.id.as_ref());
        nearest(id, ids.filter(|id| !self.hidden.contains(*id)), 3)
    }
}

/// The maximum length of a name for a comparison in bytes: its cost depends on the length.
const MAX_NAME_BYTES: usize = 256;

/// Returns up to `most` candidates similar to `name`, the nearest first; ties in the given order. The similarity
/// is the normalized Damerau-Levenshtein similarity without case, at least one half, or containment.
#[must_use]
pub fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<String> {
    if name.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            let mut score = strsim::normalized_damerau_levenshtein(&wanted, &other);
            let contained = wanted.len() >= 3
                && other.len() >= 3
                && (other.contains(&wanted) || wanted.contains(&other));
            if contained {
                score = score.max(0.6);
            }
            (score >= 0.5).then_some((score, candidate))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored
        .into_iter()
        .take(most)
        .map(|(_, candidate)| candidate.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::def::Annotations;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Command {
        command: String,
    }

    fn def(id: &'static str) -> ToolDef {
        ToolDef::new::<Command>(id, "Does it.", Annotations::READ)
    }

    /// Proves EXE-7.
    #[test]
    fn equal_sets_are_equal_in_any_order() {
        let bash = || def("bash").with_fence("bash");
        let one = ToolRegistry::new(vec![def("read"), bash(), def("grep")]);
        let other = ToolRegistry::new(vec![bash(), def("grep"), def("read")]);
        assert_eq!(one.tools(), other.tools());
    }

    #[test]
    fn near_names_are_near() {
        let names = ["read", "grep", "list_directory", "find_path", "write"];
        let check = |name: &str, expect: &[&str]| {
            assert_eq!(nearest(name, names.into_iter(), 3), expect, "{name}");
        };
        check("raed", &["read"]);
        check("READ", &["read"]);
        check("list_dir", &["list_directory"]);
        check("write_file", &["write"]);
        check("xyzzy", &[]);
        check("", &[]);
    }

    #[test]
    fn aliases_resolve_to_their_tool() {
        let registry = ToolRegistry::new(vec![def("find_path").with_aliases(&["glob"])]);
        assert_eq!(
            registry.get("glob").map(|def| def.id.as_ref()),
            Some("find_path")
        );
        assert!(registry.get("globs").is_none());
    }
}
