//! The dependencies between tools: tools that need the success of others, and tools that others make more
//! relevant.
//!
//! It has no I/O: the succeeded tools of a session are an input. [`crate::gate::dependencies`] stores them and
//! uses this graph, so that the offer to the model and the permission to run follow the same rules.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::schema_filter::{InclusionReason, ToolFilterResult, nearest};
pub use crate::selection::dependency_config::{DependencyConfig, DependencyMode, ToolDependency};

/// An excluded tool, with the tools that have to succeed first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DependencyExclusion {
    /// The tool.
    pub tool: String,
    /// Its unmet requirements, in the order of the rule.
    pub unmet: Vec<String>,
}

/// The dependencies between tools, without cycles.
#[derive(Debug, Clone, Default)]
pub struct ToolDependencyGraph {
    rules: BTreeMap<String, ToolDependency>,
    boost_per_dep: f64,
    max_total_boost: f64,
}

impl ToolDependencyGraph {
    /// Creates a graph from the rules of `config`. Tools that require each other in a cycle could never be
    /// called: their `requires` are cleared, and the members of each cycle are returned, sorted.
    #[must_use]
    pub fn new(config: &DependencyConfig) -> (Self, Vec<Vec<String>>) {
        let mut rules = config.rules.clone();
        let cycles = cycles(&rules);
        for member in cycles.iter().flatten() {
            if let Some(rule) = rules.get_mut(member) {
                rule.requires.clear();
            }
        }
        let graph = Self {
            rules,
            boost_per_dep: config.boost_per_dep,
            max_total_boost: config.max_total_boost,
        };
        (graph, cycles)
    }

    /// Returns the ids in rules that are not `known`, sorted.
    #[must_use]
    pub fn unknown(&self, known: impl Fn(&str) -> bool) -> Vec<String> {
        let named = self.rules.iter().flat_map(|(tool, rule)| {
            [tool]
                .into_iter()
                .chain(&rule.requires)
                .chain(&rule.prefers)
        });
        let unknown: std::collections::BTreeSet<&String> = named.filter(|id| !known(id)).collect();
        unknown.into_iter().cloned().collect()
    }

    /// Whether some tool depends on the success of `tool`.
    #[must_use]
    pub fn matters(&self, tool: &str) -> bool {
        let mut rules = self.rules.values();
        rules.any(|rule| {
            rule.requires
                .iter()
                .chain(&rule.prefers)
                .any(|id| id == tool)
        })
    }

    /// Returns the requirements of `tool` that are not completed.
    #[must_use]
    pub fn unmet(&self, tool: &str, completed: &HashSet<String>) -> Vec<String> {
        let rule = self.rules.get(tool);
        let requires = rule.map_or(&[][..], |rule| &rule.requires);
        let unmet = requires.iter().filter(|id| !completed.contains(*id));
        unmet.cloned().collect()
    }

    /// Returns the tools of `tools` that may not be called yet; `exempt` tools always may. Returns `None` if all
    /// other tools would be locked: then all may be called.
    #[must_use]
    pub fn gated<'a>(
        &self,
        tools: impl Iterator<Item = &'a str>,
        exempt: impl Fn(&str) -> bool,
        completed: &HashSet<String>,
    ) -> Option<Vec<DependencyExclusion>> {
        let mut gated = Vec::new();
        let mut free = 0_usize;
        for tool in tools.filter(|tool| !exempt(tool)) {
            let unmet = self.unmet(tool, completed);
            if unmet.is_empty() {
                free += 1;
            } else {
                gated.push(DependencyExclusion {
                    tool: tool.to_owned(),
                    unmet,
                });
            }
        }
        (gated.is_empty() || free > 0).then_some(gated)
    }

    /// Applies the rules to the result of the schema filter: preferred tools get a higher score and the `top_k`
    /// nearest are selected again; then `gated` tools are excluded. A tool that is included because of a rule
    /// gets the reason [`InclusionReason::PreferenceBoost`] or [`InclusionReason::DependencyMet`].
    pub fn apply(
        &self,
        result: &mut ToolFilterResult,
        top_k: usize,
        completed: &HashSet<String>,
        gated: &[DependencyExclusion],
    ) {
        self.rank_again(result, top_k, completed);
        for exclusion in gated {
            if result.included.remove(&exclusion.tool) {
                result.reasons.retain(|(id, _)| *id != exclusion.tool);
                result.excluded.push(exclusion.tool.clone());
                result.dependency_exclusions.push(exclusion.clone());
            }
        }
        for (tool, reason) in &mut result.reasons {
            let by_choice = matches!(
                reason,
                InclusionReason::SimilarityRank
                    | InclusionReason::ShortDescription
                    | InclusionReason::NoEmbedding
                    | InclusionReason::Unfiltered
            );
            let rule = self.rules.get(tool.as_str());
            let requires = rule.is_some_and(|rule| !rule.requires.is_empty());
            if by_choice && requires && self.unmet(tool, completed).is_empty() {
                *reason = InclusionReason::DependencyMet;
            }
        }
    }

    fn rank_again(&self, result: &mut ToolFilterResult, top_k: usize, completed: &HashSet<String>) {
        let boosts: Vec<(&String, f32)> = self
            .rules
            .keys()
            .map(|tool| (tool, self.boost(tool, completed)))
            .filter(|(tool, boost)| *boost > 0.0 && result.scores.contains_key(*tool))
            .collect();
        if boosts.is_empty() {
            return;
        }
        for (tool, boost) in boosts {
            if let Some(score) = result.scores.get_mut(tool) {
                *score += boost;
            }
        }
        let ranked = result.reasons.iter();
        let ranked = ranked.filter(|(_, reason)| *reason == InclusionReason::SimilarityRank);
        let open = ranked.map(|(id, _)| id).chain(&result.excluded);
        let near = nearest(open.map(String::as_str), &result.scores, top_k);
        let (scores, included) = (&result.scores, &mut result.included);
        let mut left = Vec::new();
        result.reasons.retain(|(id, reason)| {
            let stays = *reason != InclusionReason::SimilarityRank || near.contains(id);
            if !stays {
                included.remove(id);
                left.push(id.clone());
            }
            stays
        });
        let mut excluded = std::mem::take(&mut result.excluded);
        excluded.retain(|id| {
            let comes = near.contains(id) && scores.contains_key(id);
            if comes {
                included.insert(id.clone());
                let reason = (id.clone(), InclusionReason::PreferenceBoost);
                result.reasons.push(reason);
            }
            !comes
        });
        excluded.append(&mut left);
        result.excluded = excluded;
    }

    /// Returns the addition to the score of `tool`.
    #[allow(clippy::cast_possible_truncation)]
    fn boost(&self, tool: &str, completed: &HashSet<String>) -> f32 {
        let Some(rule) = self.rules.get(tool) else {
            return 0.0;
        };
        let met = rule.prefers.iter().filter(|id| completed.contains(*id));
        let each = met.map(|_| self.boost_per_dep);
        each.sum::<f64>().min(self.max_total_boost) as f32
    }
}

/// Returns the sets of tools that require each other, by a depth-first search (Tarjan, "Depth-first search and
/// linear graph algorithms", 1972), without recursion, because there may be many rules.
fn cycles(rules: &BTreeMap<String, ToolDependency>) -> Vec<Vec<String>> {
    let ids: HashMap<&str, usize> = rules
        .keys()
        .enumerate()
        .map(|(at, id)| (id.as_str(), at))
        .collect();
    let edges: Vec<Vec<usize>> = rules
        .values()
        .map(|rule| {
            let targets = rule.requires.iter();
            targets
                .filter_map(|id| ids.get(id.as_str()).copied())
                .collect()
        })
        .collect();
    let names: Vec<&String> = rules.keys().collect();
    let mut search = Search {
        order: vec![None; edges.len()],
        low: vec![0; edges.len()],
        open: vec![false; edges.len()],
        path: Vec::new(),
        next: 0,
    };
    let mut found = Vec::new();
    for start in 0..edges.len() {
        if search.order[start].is_none() {
            search.from(start, &edges, &mut found);
        }
    }
    let mut cycles: Vec<Vec<String>> = found
        .into_iter()
        .filter(|members| match members.as_slice() {
            [only] => edges[*only].contains(only),
            _ => true,
        })
        .map(|members| {
            let mut members: Vec<String> =
                members.into_iter().map(|at| names[at].clone()).collect();
            members.sort();
            members
        })
        .collect();
    cycles.sort();
    cycles
}

struct Search {
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    open: Vec<bool>,
    path: Vec<usize>,
    next: usize,
}

impl Search {
    fn enter(&mut self, node: usize) {
        self.order[node] = Some(self.next);
        self.low[node] = self.next;
        self.open[node] = true;
        self.path.push(node);
        self.next += 1;
    }

    /// Finds the strongly connected components that can be reached from `start`.
    fn from(&mut self, start: usize, edges: &[Vec<usize>], found: &mut Vec<Vec<usize>>) {
        self.enter(start);
        let mut work = vec![(start, 0)];
        while let Some((node, edge)) = work.pop() {
            if let Some(&target) = edges[node].get(edge) {
                work.push((node, edge + 1));
                match self.order[target] {
                    None => {
                        self.enter(target);
                        work.push((target, 0));
                    }
                    Some(order) if self.open[target] => {
                        self.low[node] = self.low[node].min(order);
                    }
                    Some(_) => {}
                }
                continue;
            }
            if let Some((parent, _)) = work.last() {
                self.low[*parent] = self.low[*parent].min(self.low[node]);
            }
            if Some(self.low[node]) == self.order[node] {
                let at = self
                    .path
                    .iter()
                    .rposition(|member| *member == node)
                    .unwrap_or(0);
                let members = self.path.split_off(at);
                members.iter().for_each(|member| self.open[*member] = false);
                found.push(members);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config(rules: &[(&str, &[&str], &[&str])]) -> DependencyConfig {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let rule = |(tool, requires, prefers): &(&str, &[&str], &[&str])| {
            let rule = ToolDependency {
                requires: owned(requires),
                prefers: owned(prefers),
            };
            ((*tool).to_owned(), rule)
        };
        DependencyConfig {
            enabled: true,
            rules: rules.iter().map(rule).collect(),
            ..DependencyConfig::default()
        }
    }

    fn set(ids: &[&str]) -> HashSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    /// Proves DEP-2.
    #[test]
    fn cycles_are_found_and_cleared() {
        let check = |rules: &[(&str, &[&str], &[&str])], expect: &[&[&str]]| {
            let (graph, cycles) = ToolDependencyGraph::new(&config(rules));
            assert_eq!(cycles, expect, "{rules:?}");
            for member in expect.iter().copied().flatten() {
                assert_eq!(graph.unmet(member, &set(&[])), Vec::<String>::new());
            }
        };
        check(&[], &[]);
        check(&[("a", &["b"], &[]), ("b", &["c"], &[])], &[]);
        check(&[("a", &["a"], &[])], &[&["a"]]);
        check(
            &[("a", &["b"], &[]), ("b", &["a"], &[]), ("c", &["a"], &[])],
            &[&["a", "b"]],
        );
        check(
            &[
                ("a", &["b"], &[]),
                ("b", &["c"], &[]),
                ("c", &["a"], &[]),
                ("x", &["y"], &[]),
                ("y", &["x", "a"], &[]),
            ],
            &[&["a", "b", "c"], &["x", "y"]],
        );
        // A preference does not make a cycle.
        check(&[("a", &[], &["b"]), ("b", &["a"], &["a"])], &[]);
        let (graph, _) = ToolDependencyGraph::new(&config(&[
            ("a", &["b"], &[]),
            ("b", &["a"], &[]),
            ("c", &["a"], &[]),
        ]));
        assert_eq!(
            graph.unmet("c", &set(&[])),
            ["a"],
            "outside the cycle it still holds"
        );
    }

    /// Proves DEP-2.
    #[test]
    fn unknown_names_are_reported() {
        let (graph, _) = ToolDependencyGraph::new(&config(&[
            ("a", &["b", "no"], &["nor"]),
            ("never", &[], &[]),
        ]));
        assert_eq!(
            graph.unknown(|id| id == "a" || id == "b"),
            ["never", "no", "nor"]
        );
    }

    /// Proves DEP-1, DEP-3.
    #[test]
    fn gate_is_closed_until_all_requirements_are_met() {
        let rules: &[(&str, &[&str], &[&str])] = &[
            ("deploy", &["build", "test"], &[]),
            ("test", &["build"], &[]),
        ];
        let (graph, _) = ToolDependencyGraph::new(&config(rules));
        let check = |completed: &[&str], exempt: &[&str], expect: Option<&[(&str, &[&str])]>| {
            let tools = ["build", "test", "deploy"].into_iter();
            let gated = graph.gated(tools, |id| exempt.contains(&id), &set(completed));
            let gated = gated.map(|gated| {
                let pair = |one: DependencyExclusion| (one.tool, one.unmet);
                gated.into_iter().map(pair).collect::<Vec<_>>()
            });
            let expect = expect.map(|expect| {
                let pair = |(tool, unmet): &(&str, &[&str])| {
                    (
                        (*tool).to_owned(),
                        unmet.iter().map(|id| (*id).to_owned()).collect(),
                    )
                };
                expect
                    .iter()
                    .map(pair)
                    .collect::<Vec<(String, Vec<String>)>>()
            });
            assert_eq!(gated, expect, "{completed:?} {exempt:?}");
        };
        check(
            &[],
            &[],
            Some(&[("test", &["build"]), ("deploy", &["build", "test"])]),
        );
        check(&["build"], &[], Some(&[("deploy", &["test"])]));
        check(&["build", "test"], &[], Some(&[]));
        check(&["test"], &["test"], Some(&[("deploy", &["build"])]));
        // No other tool would be left.
        check(&[], &["build"], None);
        check(&[], &["build", "test", "deploy"], Some(&[]));
    }

    /// Proves DEP-1, DEP-3.
    #[test]
    fn preferred_tools_rank_higher() {
        let scored = |scores: &[(&str, f32)], top: &[&str]| {
            let mut result = ToolFilterResult::default();
            for (id, score) in scores {
                result.scores.insert((*id).to_owned(), *score);
                if top.contains(id) {
                    result.included.insert((*id).to_owned());
                    result
                        .reasons
                        .push(((*id).to_owned(), InclusionReason::SimilarityRank));
                } else {
                    result.excluded.push((*id).to_owned());
                }
            }
            result
        };
        let scores = [("a", 0.9_f32), ("b", 0.5), ("c", 0.4), ("d", 0.31)];
        let check = |prefers: &[&str], completed: &[&str], expect: &[&str]| {
            let (graph, _) = ToolDependencyGraph::new(&config(&[("d", &[], prefers)]));
            let mut result = scored(&scores, &["a", "b"]);
            graph.apply(&mut result, 2, &set(completed), &[]);
            assert_eq!(result.included, set(expect), "{prefers:?} {completed:?}");
            assert_eq!(result.included.len() + result.excluded.len(), 4);
            assert_eq!(result.reasons.len(), 2);
            let boosted = result.reason("d");
            let expect = expect.contains(&"d");
            assert_eq!(boosted, expect.then_some(InclusionReason::PreferenceBoost));
        };
        check(&["x"], &[], &["a", "b"]);
        check(&["x"], &["x"], &["a", "b"]); // 0.46
        check(&["x", "y"], &["x", "y"], &["a", "d"]); // 0.51, not 0.61
        check(&["x", "y", "z"], &["x", "y", "z"], &["a", "d"]);
    }

    /// Proves DEP-4.
    #[test]
    fn gated_tool_is_excluded_with_its_reason() {
        let (graph, _) = ToolDependencyGraph::new(&config(&[("b", &["a"], &[])]));
        let mut result = ToolFilterResult::default();
        for id in ["a", "b"] {
            result.included.insert(id.to_owned());
            result
                .reasons
                .push((id.to_owned(), InclusionReason::Unfiltered));
        }
        let gated = graph.gated(["a", "b"].into_iter(), |_| false, &set(&[]));
        graph.apply(&mut result, 9, &set(&[]), &gated.unwrap_or_default());
        assert_eq!(result.included, set(&["a"]));
        let expect = DependencyExclusion {
            tool: "b".to_owned(),
            unmet: vec!["a".to_owned()],
        };
        assert_eq!(result.dependency_exclusions, [expect]);
    }

    /// Proves SCH-2, DEP-3: a tool that was locked has the reason that its requirements are met.
    #[test]
    fn met_requirements_are_a_separate_reason() {
        use InclusionReason::{
            AlwaysOn, Called, DependencyMet, NameMentioned, NoEmbedding, ShortDescription,
            SimilarityRank, Unfiltered,
        };
        let check = |before, requires: &[&str], completed: &[&str], expect| {
            let (graph, _) = ToolDependencyGraph::new(&config(&[("b", requires, &[])]));
            let mut result = ToolFilterResult::default();
            result.included.insert("b".to_owned());
            result.reasons.push(("b".to_owned(), before));
            graph.apply(&mut result, 9, &set(completed), &[]);
            assert_eq!(result.reason("b"), Some(expect), "{before:?} {requires:?}");
        };
        for before in [Unfiltered, SimilarityRank, NoEmbedding, ShortDescription] {
            check(before, &["a"], &["a"], DependencyMet);
            check(before, &["a", "c"], &["a", "c", "d"], DependencyMet);
            check(before, &["a", "c"], &["a"], before);
            check(before, &["a"], &[], before);
            check(before, &[], &["a"], before);
        }
        // These bypass the gate: the requirements are not the reason.
        for before in [AlwaysOn, NameMentioned, Called] {
            check(before, &["a"], &["a"], before);
        }
    }

    proptest! {
        /// Proves DEP-2: without the rules of the cycles, every tool can be reached by a sequence of calls.
        #[test]
        fn no_tool_is_hidden_permanently(edges in prop::collection::vec((0usize..12, 0usize..12), 0..40)) {
            let mut rules = DependencyConfig::default();
            for (from, to) in edges {
                let rule = rules.rules.entry(format!("t{from}")).or_default();
                rule.requires.push(format!("t{to}"));
            }
            let (graph, cycles) = ToolDependencyGraph::new(&rules);
            let mut completed = HashSet::new();
            for _ in 0..13 {
                for at in 0..12 {
                    let tool = format!("t{at}");
                    if graph.unmet(&tool, &completed).is_empty() {
                        completed.insert(tool);
                    }
                }
            }
            prop_assert_eq!(completed.len(), 12);
            let mut members: Vec<&String> = cycles.iter().flatten().collect();
            members.sort();
            members.dedup();
            prop_assert_eq!(members.len(), cycles.iter().flatten().count());
        }
    }
}
