//! Wire formats of the model APIs other than Chat Completions: building responses and reading requests.

use serde_json::{Value, json};

use super::reply::Reply;
use super::server::Request;

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Claude,
    Responses,
    Ollama,
}

/// All APIs.
pub(crate) const APIS: [Api; 4] = [Api::Chat, Api::Claude, Api::Responses, Api::Ollama];

impl Api {
    /// A provider called `name` at `url`, with the key in `TEST_KEY`.
    pub(crate) fn config(self, name: &str, url: &str) -> String {
        let kind = match self {
            Self::Chat => "type = \"openai\"",
            Self::Claude => "type = \"claude\"",
            Self::Responses => "type = \"openai\"\napi = \"responses\"",
            Self::Ollama => "type = \"ollama\"",
        };
        format!(
            "[[llm.providers]]\nname = \"{name}\"\n{kind}\nmodel = \"test-model\"\n\
             base_url = \"{url}\"\napi_key_env = \"TEST_KEY\"\n"
        )
    }

    /// The path of requests.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Claude => "/v1/messages",
            Self::Responses => "/v1/responses",
            Self::Ollama => "/api/chat",
        }
    }

    /// The key that a request carries.
    pub(crate) fn key(self, request: &Request) -> Option<&str> {
        match self {
            Self::Claude => request.header("x-api-key"),
            _ => request.header("authorization")?.strip_prefix("Bearer "),
        }
    }

    /// The text after the messages in a request with tools.
    pub(crate) fn tail(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses => "],\"tool_choice\":\"auto\"}",
            Self::Claude => "],\"tool_choice\":{\"type\":\"auto\"}}",
            Self::Ollama => "]}",
        }
    }

    /// The text of the newest result in a request, and the id or tool of its call.
    pub(crate) fn last_result(self, request: &Request) -> Option<(String, String)> {
        let body = request.json();
        let elements = match self {
            Self::Responses => &body["input"],
            _ => &body["messages"],
        };
        let last = elements.as_array()?.last()?;
        let (of, text) = match self {
            Self::Chat => (&last["tool_call_id"], &last["content"]),
            Self::Claude => {
                let block = last["content"].as_array()?.last()?;
                (&block["tool_use_id"], &block["content"])
            }
            Self::Responses => (&last["call_id"], &last["output"]),
            Self::Ollama => (&last["tool_name"], &last["content"]),
        };
        Some((of.as_str()?.to_owned(), text.as_str()?.to_owned()))
    }

    /// A text.
    pub(crate) fn text(self, text: &str) -> Reply {
        self.answer(text, None)
    }

    /// A text and a call of id `id`.
    pub(crate) fn call(self, text: &str, id: &str, tool: &str, arguments: &Value) -> Reply {
        self.answer(text, Some((id, tool, arguments)))
    }

    fn answer(self, text: &str, call: Option<(&str, &str, &Value)>) -> Reply {
        let events = match self {
            Self::Chat => {
                let calls: Vec<_> = call
                    .map(|(id, tool, arguments)| (id.to_owned(), tool, arguments.to_string()))
                    .into_iter()
                    .collect();
                return Reply::answer(text, &calls);
            }
            Self::Claude => claude(text, call),
            Self::Responses => responses(text, call),
            Self::Ollama => {
                let lines = ollama(text, call).into_iter();
                let lines: String = lines.map(|line| format!("{line}\n")).collect();
                return Reply::raw(200, "application/x-ndjson", lines);
            }
        };
        let event = |data: Value| {
            format!(
                "event: {}\ndata: {data}\n\n",
                data["type"].as_str().unwrap()
            )
        };
        let body: String = events.into_iter().map(event).collect();
        Reply::raw(200, "text/event-stream", body)
    }

    /// An error in the format of the API.
    pub(crate) fn error(self, status: u16, kind: &str, message: &str) -> Reply {
        let error = match self {
            Self::Chat | Self::Responses => return Reply::error(status, kind, message),
            Self::Claude => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Self::Ollama => json!({ "error": message }),
        };
        Reply::raw(status, "application/json", error.to_string())
    }
}

fn claude(text: &str, call: Option<(&str, &str, &Value)>) -> Vec<Value> {
    let usage = json!({"input_tokens": 400, "cache_read_input_tokens": 600, "cache_creation_input_tokens": 0, "output_tokens": 1});
    let delta = |index: usize, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: usize| json!({"type": "content_block_stop", "index": index});
    let start = |index: usize, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": usage}}),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": text})),
        stop(1),
    ];
    if let Some((id, tool, arguments)) = call {
        events.push(start(
            2,
            json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
        ));
        let text = arguments.to_string();
        let (head, rest) = text.split_at(1);
        for piece in [head, rest] {
            events.push(delta(
                2,
                json!({"type": "input_json_delta", "partial_json": piece}),
            ));
        }
        events.push(stop(2));
    }
    let reason = call.map_or("end_turn", |_| "tool_use");
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn responses(text: &str, call: Option<(&str, &str, &Value)>) -> Vec<Value> {
    let added = |index: usize, item: &Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let done = |index: usize, item: &Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let reasoning =
        json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAseal"});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": []});
    let mut events = vec![
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        added(0, &reasoning),
        done(0, &reasoning),
        added(1, &message),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": text}),
    ];
    if let Some((id, tool, arguments)) = call {
        let item = |arguments: &str| json!({"id": "fc_1", "type": "function_call", "call_id": id, "name": tool, "arguments": arguments});
        let text = arguments.to_string();
        events.push(added(2, &item("")));
        events.push(json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": text}));
        events.push(done(2, &item(&text)));
    }
    let usage = json!({"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 600}, "output_tokens": 20});
    events.push(json!({"type": "response.completed", "response": {"status": "completed", "output": [], "usage": usage}}));
    events
}

/// This API has no call ids.
fn ollama(text: &str, call: Option<(&str, &str, &Value)>) -> Vec<Value> {
    let mut lines = vec![
        json!({"message": {"role": "assistant", "content": "", "thinking": "Hm."}, "done": false}),
        json!({"message": {"role": "assistant", "content": text}, "done": false}),
    ];
    if let Some((_, tool, arguments)) = call {
        let calls = json!([{"function": {"name": tool, "arguments": arguments}}]);
        lines.push(json!({"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": false}));
    }
    lines.push(json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 1000, "eval_count": 20}));
    lines
}
