//! Spans of sub-agents, embeddings, retries and failed turns.

use serde_json::{Value, json};

use super::collector::{Behaviour, Collector};
use super::export::{all_points, all_spans, home, named};
use crate::rig::{Home, OpenAi, Reply, openai_config};

/// Proves OPS-5: the turn of a sub-agent is below the call that started it, with its own name and conversation.
#[test]
fn turn_of_a_sub_agent_is_below_its_call() {
    let collector = Collector::start(Behaviour::Accepts);
    let task = json!({ "description": "Look", "prompt": "Find it.", "agent": "explore" });
    let server = OpenAi::start(move |_, request| {
        let messages = request.messages();
        let system = messages[0]["content"].as_str().unwrap_or_default();
        let has_results = messages.iter().any(|message| message["role"] == "tool");
        match (system.contains("You are the sub-agent `"), has_results) {
            (true, _) => Reply::text("found"),
            (false, false) => Reply::calls("t", &[("task", task.clone())]),
            (false, true) => Reply::text("All done."),
        }
    });
    home(&server, &collector).zeph(["-p", "go"]).code(0);
    let spans = all_spans(&collector);
    let turn = named(&spans, "invoke_agent zeph")[0];
    let call = named(&spans, "execute_tool task")[0];
    assert_eq!(call.parent, turn.id);
    let sub = named(&spans, "invoke_agent explore")[0];
    assert_eq!(sub.attributes["gen_ai.agent.name"], "explore");
    let conversation = |span: &super::otlp::Span| span.attributes["gen_ai.conversation.id"].clone();
    assert_ne!(conversation(sub), conversation(turn));
    // Only layers are between the call and the turn of its sub-agent.
    let mut outer = sub;
    while outer.id != call.id {
        let parent = spans.iter().find(|span| span.id == outer.parent);
        outer = parent.expect("the turn is within the call");
        let is_layer = outer.attributes.contains_key("zeph.layer");
        assert!(is_layer || outer.id == call.id, "{}", outer.name);
    }
    let parents: Vec<&[u8]> = named(&spans, "chat test-model")
        .iter()
        .map(|request| request.parent.as_slice())
        .collect();
    let count = |id: &[u8]| parents.iter().filter(|parent| **parent == id).count();
    assert_eq!((count(&turn.id), count(&sub.id)), (2, 1));
    assert!(spans.iter().all(|span| span.trace == turn.trace));
    let durations = all_points(&collector).into_iter().filter(|point| {
        point.metric == "gen_ai.invoke_agent.duration"
            && point.attributes["gen_ai.agent.name"] == "explore"
    });
    assert_eq!(durations.count(), 1);
}

/// Proves OPS-5: requests for embeddings have spans within the turn.
#[test]
fn embeddings_are_spans_of_the_turn() {
    let collector = Collector::start(Behaviour::Accepts);
    let server = OpenAi::start(|_, request| {
        if request.path.contains("chat") {
            return Reply::text("hi");
        }
        let inputs = request.json()["input"].as_array().unwrap().len();
        let data: Vec<Value> = (0..inputs)
            .map(|at| json!({ "index": at, "embedding": [0.5, at] }))
            .collect();
        let body = json!({ "data": data, "usage": { "prompt_tokens": 7, "total_tokens": 7 } });
        Reply::raw(200, "application/json", body.to_string())
    });
    let home = Home::new();
    let config = openai_config(&server.url());
    let config = config.replacen("model = ", "embedding_model = \"vec-1\"\nmodel = ", 1);
    home.config(&format!(
        "[agent.tool_filter]\nenabled = true\ntop_k = 2\nmin_description_words = 0\nalways_on = []\n\
         [telemetry]\nendpoint = \"{}\"\n{config}",
        collector.url()
    ));
    home.zeph(["-p", "find the needle"]).code(0);
    let spans = all_spans(&collector);
    let turn = named(&spans, "invoke_agent zeph")[0];
    for request in named(&spans, "embeddings vec-1") {
        assert_eq!(request.parent, turn.id);
        assert_eq!(request.attributes["gen_ai.operation.name"], "embeddings");
        assert_eq!(request.attributes["gen_ai.provider.name"], "openai");
        assert_eq!(request.attributes["gen_ai.request.model"], "vec-1");
        assert_eq!(request.attributes["gen_ai.usage.input_tokens"], 7);
        assert!(!request.has_failed);
    }
    let tokens = all_points(&collector).into_iter().find(|point| {
        point.metric == "gen_ai.client.token.usage"
            && point.attributes["gen_ai.operation.name"] == "embeddings"
            && point.attributes["gen_ai.token.type"] == "input"
    });
    assert!(tokens.is_some_and(|point| point.sum >= 7.0));
}

/// Proves OPS-5: a request that is sent again is one span, which contains the wait and does not fail.
#[test]
fn retries_and_their_waits_are_one_span() {
    let collector = Collector::start(Behaviour::Accepts);
    let server = OpenAi::replies([
        Reply::error(429, "rate_limit_exceeded", "wait").header("retry-after", "1"),
        Reply::text("hi"),
    ]);
    home(&server, &collector).zeph(["-p", "go"]).code(0);
    assert_eq!(server.requests().len(), 2);
    let spans = all_spans(&collector);
    let requests = named(&spans, "chat test-model");
    assert_eq!(requests.len(), 1);
    assert!(!requests[0].has_failed);
    assert!(requests[0].nanos >= 1_000_000_000, "{}", requests[0].nanos);
    let errors = all_points(&collector).into_iter();
    let mut errors = errors.filter(|point| point.metric == "zeph.errors");
    assert!(errors.next().is_none());
}

/// Proves OPS-5: a turn that fails has the status `error` and the end of the turn, and its request the class of the failure.
#[test]
fn failed_turn_has_its_end() {
    let collector = Collector::start(Behaviour::Accepts);
    let server = OpenAi::start(|_, _| Reply::error(401, "invalid_api_key", "no"));
    let output = home(&server, &collector).zeph(["-p", "go"]).run();
    assert_ne!(output.code, Some(0), "{output}");
    let spans = all_spans(&collector);
    let turn = named(&spans, "invoke_agent zeph")[0];
    assert!(turn.has_failed);
    assert_eq!(turn.attributes["error.type"], "error");
    let request = named(&spans, "chat test-model")[0];
    assert!(request.has_failed);
    assert_eq!(request.attributes["error.type"], "auth");
    let points = all_points(&collector);
    let mut failed: Vec<(String, String)> = points
        .iter()
        .filter(|point| point.metric == "zeph.errors")
        .map(|point| {
            let text = |name: &str| point.attributes[name].as_str().unwrap().to_owned();
            (text("gen_ai.operation.name"), text("error.type"))
        })
        .collect();
    failed.sort();
    let expect = [("chat", "auth"), ("invoke_agent", "error")];
    let expect = expect.map(|(operation, kind)| (operation.to_owned(), kind.to_owned()));
    assert_eq!(failed, expect);
}
