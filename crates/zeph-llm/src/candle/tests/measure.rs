//! Measurement of valid and correct calls of a real model, with and without a grammar. It runs if
//! `ZEPH_MEASURE_MODEL` names the path of a model, prints the results, and asserts the minimum.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::config::{ProviderConfig, ProviderKind};
use crate::error::LlmError;
use crate::message::Message;
use crate::provider::{ChatRequest, ChatResponse, LlmProvider, StreamSink};
use crate::text_tools::TextTools;
use crate::tool::{ToolChoice, ToolDefinition};

/// A model without a list of tools in its request, so that no grammar restricts it.
#[derive(Debug)]
struct UnconstrainedModel(Arc<dyn LlmProvider>);

#[async_trait]
impl LlmProvider for UnconstrainedModel {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn model(&self) -> &str {
        self.0.model()
    }

    fn supports_tool_use(&self) -> bool {
        false
    }

    fn context_window(&self) -> usize {
        self.0.context_window()
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let tools = &[];
        self.0
            .chat_stream(ChatRequest { tools, ..request }, sink)
            .await
    }
}

/// The prompt, the expected tool, and a word that its arguments need.
const TASKS: [(&str, &str, &str); 24] = [
    ("Read the file src/main.rs.", "read", "src/main.rs"),
    ("Show me what is in README.md.", "read", "README.md"),
    ("Open Cargo.toml and read it.", "read", "Cargo.toml"),
    ("What does docs/guide.md say?", "read", "docs/guide.md"),
    ("Read tests/it.rs for me.", "read", "tests/it.rs"),
    ("Please read config.json.", "read", "config.json"),
    (
        "Search the code for the word deprecated.",
        "grep",
        "deprecated",
    ),
    ("Find all places with unwrap in the code.", "grep", "unwrap"),
    ("Grep for the pattern main.", "grep", "main"),
    (
        "Where does the text HttpClient occur?",
        "grep",
        "HttpClient",
    ),
    ("Search for panic in src.", "grep", "panic"),
    ("Run git status.", "bash", "git status"),
    ("Run the tests with cargo test.", "bash", "cargo test"),
    ("Execute the command ls -la.", "bash", "ls"),
    ("Print the working directory with pwd.", "bash", "pwd"),
    ("Run the command uname -a.", "bash", "uname"),
    ("How much disk space is free? Use df -h.", "bash", "df"),
    ("Run make build.", "bash", "make"),
    ("What time is it now? Use the clock.", "clock", ""),
    ("Tell me today's date with the clock tool.", "clock", ""),
    (
        "Fetch https://example.org/news.",
        "fetch",
        "example.org/news",
    ),
    (
        "Download the page https://rust-lang.org.",
        "fetch",
        "rust-lang.org",
    ),
    ("Get https://example.org/data.json.", "fetch", "data.json"),
    (
        "Fetch the address https://docs.rs/serde.",
        "fetch",
        "docs.rs/serde",
    ),
];

fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, description: &str, argument: Option<&str>| {
        let (mut properties, mut required) = (json!({}), Vec::new());
        if let Some(argument) = argument {
            properties[argument] = json!({ "type": "string", "minLength": 1 });
            required.push(argument);
        }
        ToolDefinition {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: Arc::new(json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })),
        }
    };
    vec![
        tool("bash", "Runs a shell command.", Some("command")),
        tool("clock", "Says the date and the time.", None),
        tool("fetch", "Fetches a web page.", Some("url")),
        tool("grep", "Searches the code for a pattern.", Some("pattern")),
        tool("read", "Reads a file.", Some("path")),
    ]
}

/// Whether there was a call, whether all calls are valid, and whether the first one is right.
fn judge(answer: &ChatResponse, tools: &[ToolDefinition], tool: &str, word: &str) -> [bool; 3] {
    let calls: Vec<_> = answer.tool_uses().collect();
    let is_valid = |name: &str, input: &Value| {
        let known = tools.iter().find(|tool| tool.name == name);
        known.is_some_and(|tool| jsonschema::is_valid(&tool.parameters, input))
    };
    let valid = calls.iter().all(|call| is_valid(&call.name, &call.input));
    let right = calls
        .first()
        .is_some_and(|call| call.name == tool && call.input.to_string().contains(word));
    [
        !calls.is_empty(),
        valid && !calls.is_empty(),
        valid && right,
    ]
}

#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement on demand"
)]
async fn calls_of_a_real_model() {
    let Some(model) = std::env::var_os("ZEPH_MEASURE_MODEL") else {
        return;
    };
    let config = ProviderConfig {
        model: model.into_string().unwrap(),
        max_output_tokens: Some(96),
        ..ProviderConfig::new("local", ProviderKind::Candle)
    };
    let inner = super::super::provider(&config).unwrap();
    let tools = tools();
    let watched = TextTools::wrap_if_needed(Arc::clone(&inner));
    let unwatched = TextTools::wrap_if_needed(Arc::new(UnconstrainedModel(inner)));
    for (what, provider) in [("with a grammar", watched), ("without", unwatched)] {
        let mut sums = [0; 3];
        for (task, tool, word) in TASKS {
            let messages = [Message::user(task)];
            let request = ChatRequest {
                system: "You are an assistant that answers by calling one tool.",
                messages: &messages,
                tools: &tools,
                tool_choice: ToolChoice::Auto,
                cache_key: None,
                response_schema: None,
                json_object: false,
                max_output_tokens: None,
            };
            let answer = provider.chat_with_tools(request).await.unwrap();
            let judged = judge(&answer, &tools, tool, word);
            for (sum, it) in sums.iter_mut().zip(judged) {
                *sum += usize::from(it);
            }
            println!("{judged:?} {task} -> {:?}", answer.into_message().text());
        }
        let [called, valid, right] = sums;
        println!(
            "{what}: of {} requests {called} call, {valid} validly, {right} rightly",
            TASKS.len()
        );
        assert!(what == "without" || valid == called);
    }
}
