//! Time and memory to build the request of a long conversation: `cargo bench -p zeph-llm --bench request`.
//!
//! The history has a million tokens (4 MB of text in 4,000 messages). Nothing is sent,
//! because the connection is refused. Targets: 200 ms; memory of one copy of the history.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::TcpListener;
use std::sync::Arc;

use divan::{AllocProfiler, Bencher, black_box};
use serde_json::json;
use zeph_llm::{
    ChatRequest, LlmErrorKind, LlmProvider, Message, MessagePart, OpenaiApi, ProviderConfig,
    ProviderKind, RetryConfig, Role, ToolChoice, ToolDefinition, ToolUseRequest, build_provider,
};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// The number of rounds of the conversation, with four messages each.
const ROUNDS: usize = 1000;
/// A line of source code with characters that JSON escapes.
const LINE: &str = "    println!(\"{name}:\\t{}\", values.join(\", \"));\n";

fn main() {
    divan::main();
}

/// An API, and whether it uses text tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Chat,
    Claude,
    Responses,
    Ollama,
    OllamaByText,
}

const APIS: [Api; 5] = [
    Api::Chat,
    Api::Claude,
    Api::Responses,
    Api::Ollama,
    Api::OllamaByText,
];

/// The messages of a conversation of a million tokens, at four bytes each.
fn history() -> Vec<Message> {
    let text = |text: &str| MessagePart::Text {
        text: text.to_owned(),
    };
    let message = |role, parts| Message { role, parts };
    let file = LINE.repeat(3500 / LINE.len());
    let round = |n: usize| {
        let id = format!("call_{n:08}");
        let input = json!({ "path": format!("src/part_{n}.rs") });
        [
            message(
                Role::User,
                vec![text("What does the next one print? Look into it.")],
            ),
            message(
                Role::Assistant,
                vec![
                    text("I look into the file."),
                    MessagePart::ToolUse(ToolUseRequest::new(id.clone(), "read", input)),
                ],
            ),
            message(
                Role::User,
                vec![MessagePart::ToolResult {
                    tool_use_id: id,
                    content: file.clone(),
                    is_error: false,
                }],
            ),
            message(
                Role::Assistant,
                vec![text(&"It prints the name and its values. ".repeat(12))],
            ),
        ]
    };
    let mut messages: Vec<_> = (0..ROUNDS).flat_map(round).collect();
    messages.push(Message::user("And the last one?"));
    messages
}

fn provider(api: Api) -> Arc<dyn LlmProvider> {
    let kind = match api {
        Api::Chat | Api::Responses => ProviderKind::Openai,
        Api::Claude => ProviderKind::Claude,
        Api::Ollama | Api::OllamaByText => ProviderKind::Ollama,
    };
    // A closed port.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let config = ProviderConfig {
        model: "bench".to_owned(),
        api: (api == Api::Responses).then_some(OpenaiApi::Responses),
        base_url: Some(format!("http://{}", address.unwrap())),
        tool_use: (api == Api::OllamaByText).then_some(false),
        ..ProviderConfig::new("bench", kind)
    };
    let once = RetryConfig {
        max_attempts: Some(1),
        ..RetryConfig::default()
    };
    build_provider(&config, once, None).unwrap()
}

struct Asked {
    runtime: tokio::runtime::Runtime,
    provider: Arc<dyn LlmProvider>,
    messages: Vec<Message>,
    tools: Vec<ToolDefinition>,
}

impl Asked {
    fn new(api: Api) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let asked = Self {
            runtime,
            provider: provider(api),
            messages: history(),
            tools: vec![ToolDefinition {
                name: "read".to_owned(),
                description: "Reads a file.".to_owned(),
                parameters: Arc::new(schema),
            }],
        };
        // The first request creates the client.
        asked.build(&asked.messages[..1]);
        asked
    }

    fn build(&self, messages: &[Message]) {
        let request = ChatRequest {
            system: "You are Zeph.",
            messages: black_box(messages),
            tools: &self.tools,
            tool_choice: ToolChoice::Auto,
            cache_key: Some("session"),
            response_schema: None,
            json_object: false,
            max_output_tokens: None,
        };
        let answer = self.provider.chat_with_tools(request);
        let error = self.runtime.block_on(answer).unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Network);
    }
}

#[divan::bench(args = APIS, sample_count = 20)]
fn build(bencher: Bencher<'_, '_>, api: Api) {
    let asked = Asked::new(api);
    bencher.bench_local(|| asked.build(&asked.messages));
}
