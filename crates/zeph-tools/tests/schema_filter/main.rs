//! Recall of the schema filter with keyword matching, over labelled queries.
//!
//! `tools.json` has sixty definitions: those of this program, and typical ones of tool servers.
//! `queries.json` lists the required tools of each query.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use zeph_tools::schema_filter::{ToolFilterConfig, ToolSchemaFilter};
use zeph_tools::{Annotations, ToolDef};

#[derive(Deserialize)]
struct Definition {
    name: String,
    description: String,
    parameters: Value,
}

#[derive(Deserialize)]
struct Labelled {
    query: String,
    tools: Vec<String>,
}

/// Empty parameters, which are replaced.
#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn tools() -> Vec<ToolDef> {
    let definitions: Vec<Definition> = serde_json::from_str(include_str!("tools.json")).unwrap();
    let def = |one: Definition| ToolDef {
        id: one.name.into(),
        description: one.description.into(),
        parameters: Arc::new(one.parameters),
        ..ToolDef::new::<Nothing>("", "", Annotations::READ)
    };
    definitions.into_iter().map(def).collect()
}

/// The ids in the order of their scores.
fn ranked(scores: &HashMap<String, f32>, tools: &[ToolDef]) -> Vec<String> {
    let mut ids: Vec<String> = tools.iter().map(|def| def.id.to_string()).collect();
    ids.sort_by(|a, b| scores[b].total_cmp(&scores[a]));
    ids
}

/// Proves SCH-2, SCH-5: for sixty labelled tools, keyword matching ranks most required tools among the first
/// ten, and nearly all of them are exposed. The figures are in `docs/tools-offered.md`.
#[test]
fn keywords_find_the_needed_tools() {
    let tools = tools();
    assert_eq!(tools.len(), 60);
    let queries: Vec<Labelled> = serde_json::from_str(include_str!("queries.json")).unwrap();
    let filter = ToolSchemaFilter::new(ToolFilterConfig::default(), HashMap::new());
    let (mut wanted, mut near, mut offered, mut sent) = (0, 0, 0, 0);
    for one in &queries {
        let result = filter.filter_by_words(&one.query, &tools);
        sent += result.included.len();
        let first: Vec<String> = match result.scores.is_empty() {
            true => Vec::new(),
            false => ranked(&result.scores, &tools)
                .into_iter()
                .take(10)
                .collect(),
        };
        for tool in &one.tools {
            wanted += 1;
            near += usize::from(first.contains(tool));
            let is_offered = result.included.contains(tool);
            offered += usize::from(is_offered);
            if !first.contains(tool) {
                println!(
                    "not near: {tool} for {:?}, offered: {is_offered}",
                    one.query
                );
            }
        }
    }
    println!(
        "{} queries, {wanted} tools: {near} among the first ten, {offered} offered, {:.1} tools a query",
        queries.len(),
        sent as f64 / queries.len() as f64
    );
    assert!(near * 100 >= wanted * 80, "{near} of {wanted}");
}
