//! Tests of the schema filter.

#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::sync::Arc;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde_json::json;

use super::*;
use crate::def::Annotations;

pub(crate) fn tool(id: &str, description: &str) -> ToolDef {
    #[derive(JsonSchema)]
    struct Nothing {}
    let mut def = ToolDef::new::<Nothing>("", "", Annotations::READ);
    def.id = Cow::Owned(id.to_owned());
    def.description = Cow::Owned(description.to_owned());
    def.parameters = Arc::new(json!({ "type": "object", "properties": {} }));
    def
}

fn config(top_k: usize) -> ToolFilterConfig {
    ToolFilterConfig {
        enabled: true,
        top_k,
        ..ToolFilterConfig::default()
    }
}

fn tools() -> Vec<ToolDef> {
    [
        ("memory_save", "Keep a fact for later sessions."),
        ("deploy", "Put the site on the server now."),
        ("ping", "Says pong"),
        ("unknown_vector", "Has no embedding at all here."),
        ("near", "Something that is quite near to it."),
        ("nearer", "Something that is even nearer to it."),
        ("far", "Something that points the other way."),
    ]
    .map(|(id, words)| tool(id, words))
    .to_vec()
}

fn filter(top_k: usize) -> ToolSchemaFilter {
    let of = |id: &str, vector: [f32; 2]| (id.to_owned(), vector.to_vec());
    let embeddings = [
        of("memory_save", [0.0, 1.0]),
        of("deploy", [0.0, 1.0]),
        of("ping", [0.0, 1.0]),
        of("near", [1.0, 1.0]),
        of("nearer", [2.0, 0.1]),
        of("far", [-1.0, 0.0]),
    ];
    ToolSchemaFilter::new(config(top_k), embeddings.into_iter().collect())
}

/// Proves SCH-2.
#[test]
fn reasons_come_in_their_order() {
    use InclusionReason::{AlwaysOn, NameMentioned, NoEmbedding, ShortDescription, SimilarityRank};
    let result = filter(1).filter("please Deploy it", Some(&[1.0, 0.0]), &tools());
    let reasons: Vec<_> = result
        .reasons
        .iter()
        .map(|(id, reason)| (id.as_str(), *reason))
        .collect();
    assert_eq!(
        reasons,
        [
            ("memory_save", AlwaysOn),
            ("deploy", NameMentioned),
            ("ping", ShortDescription),
            ("unknown_vector", NoEmbedding),
            ("nearer", SimilarityRank),
        ]
    );
    assert_eq!(result.excluded, ["near", "far"]);
    assert_eq!(result.included.len(), 5);
    assert!((result.scores["far"] + 1.0).abs() < 1e-6);
    let result = filter(2).filter("", Some(&[1.0, 0.0]), &tools());
    assert_eq!(result.reason("near"), Some(SimilarityRank));
    assert_eq!(result.reason("far"), None);
    assert_eq!(result.reason("deploy"), None);
    let result = filter(0).filter("", Some(&[1.0, 0.0]), &tools());
    assert_eq!(result.reason("nearer"), None);
}

/// Proves SCH-3.
#[test]
fn missing_embedding_filters_nothing() {
    let result = filter(1).filter("deploy", None, &tools());
    assert_eq!(result.included.len(), tools().len());
    assert_eq!(result.excluded, Vec::<String>::new());
    assert_eq!(result.reason("far"), Some(InclusionReason::Unfiltered));
    assert_eq!(
        result.reason("deploy"),
        Some(InclusionReason::NameMentioned)
    );
}

/// Proves SCH-5: words instead of embeddings.
#[test]
fn keywords_rank_tools_without_embeddings() {
    let tools = [
        tool("weather_forecast", "Forecast of the weather for a city."),
        tool("send_mail", "Send an email to somebody, with attachments."),
        tool("query_database", "Run a SQL query on the orders database."),
        tool("image_resize", "Resize and crop pictures and photos."),
    ];
    let check = |query: &str, expect: &str| {
        let filter = ToolSchemaFilter::new(config(1), HashMap::new());
        let result = filter.filter_by_words(query, &tools);
        let included: Vec<_> = result.reasons.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(included, [expect], "{query:?}");
    };
    check(
        "Will it rain? Look at the forecast for Berlin",
        "weather_forecast",
    );
    check("mail the report to Ann", "send_mail");
    check("how many orders are in the databases", "query_database");
    check("crop these photos", "image_resize");
    let filter = ToolSchemaFilter::new(config(1), HashMap::new());
    let result = filter.filter_by_words("xyzzy", &tools);
    assert_eq!(result.included.len(), 4, "nothing to compare with");
}

#[test]
fn names_are_whole_words() {
    let check = |text: &str, tool: &str, expect: bool| {
        assert_eq!(mentions(text, tool), expect, "{text:?} {tool:?}")
    };
    check("use grep here", "grep", true);
    check("GREP!", "grep", true);
    check("`grep`", "grep", true);
    check("egrep", "grep", false);
    check("grep_all", "grep", false);
    check("grepö", "grep", false);
    check("read, re-read", "read", true);
    check("already", "read", false);
    check("call mcp_x_y now", "mcp_x_y", true);
    check("", "read", false);
    check("x", "", false);
}

proptest! {
    /// Proves SCH-2. each tool is offered for a reason or left out, never both, and always the same.
    #[test]
    fn each_tool_is_in_or_out(top_k in 0usize..9, query in ".{0,30}", x in -2.0f32..2.0, y in -2.0f32..2.0) {
        let (filter, tools) = (filter(top_k), tools());
        let result = filter.filter(&query, Some(&[x, y]), &tools);
        prop_assert_eq!(result.included.len() + result.excluded.len(), tools.len());
        prop_assert!(result.excluded.iter().all(|id| !result.included.contains(id)));
        prop_assert_eq!(result.reasons.len(), result.included.len());
        let ranked = result.reasons.iter().filter(|(_, reason)| *reason == InclusionReason::SimilarityRank);
        prop_assert!(ranked.count() <= top_k);
        prop_assert_eq!(filter.filter(&query, Some(&[x, y]), &tools), result);
        let result = filter.filter_by_words(&query, &tools);
        prop_assert!(result.scores.values().all(|score| (0.0..=1.0).contains(score)));
    }
}
