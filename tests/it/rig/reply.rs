//! Responses of the server: their content and their faults.

use serde_json::{Value, json};

/// The end of the response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// A complete response.
    Whole,
    /// The connection closes before the end.
    Cut,
    /// The connection stays open without further data.
    Hang,
}

/// A prepared response.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The number of bytes that are sent at a time.
    pub(crate) piece: usize,
    pub(crate) end: End,
}

impl Reply {
    /// A text, streamed word by word.
    pub(crate) fn text(text: &str) -> Self {
        Self::answer(text, &[])
    }

    /// Calls by tool and arguments. Ids consist of the name of the tool and `seed`.
    pub(crate) fn calls(seed: &str, calls: &[(&str, Value)]) -> Self {
        let raw: Vec<_> = calls
            .iter()
            .map(|(tool, args)| (*tool, args.to_string()))
            .collect();
        Self::raw_calls(seed, &raw)
    }

    /// Calls with any text as arguments.
    pub(crate) fn raw_calls(seed: &str, calls: &[(&str, String)]) -> Self {
        let calls: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(at, (tool, args))| (format!("call_{seed}_{at}"), *tool, args.clone()))
            .collect();
        Self::answer("", &calls)
    }

    /// A text followed by calls (id, tool, arguments), in many deltas, with usage.
    pub(crate) fn answer(text: &str, calls: &[(String, &str, String)]) -> Self {
        let mut body = String::new();
        for word in text.split_inclusive(' ') {
            body += &event(&json!({ "content": word }), None);
        }
        for (at, (id, tool, args)) in calls.iter().enumerate() {
            let function = json!({ "name": tool, "arguments": "" });
            let call = json!({ "index": at, "id": id, "type": "function", "function": function });
            body += &event(&json!({ "tool_calls": [call] }), None);
            let chars: Vec<char> = args.chars().collect();
            for piece in chars.chunks(7) {
                let function = json!({ "arguments": piece.iter().collect::<String>() });
                let call = json!({ "index": at, "function": function });
                body += &event(&json!({ "tool_calls": [call] }), None);
            }
        }
        let reason = if calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        body += &event(&json!({}), Some(reason));
        let usage = json!({
            "prompt_tokens": 1000,
            "completion_tokens": 20,
            "prompt_tokens_details": { "cached_tokens": 600 },
        });
        body += &format!("data: {}\n\n", json!({ "choices": [], "usage": usage }));
        body += "data: [DONE]\n\n";
        Self::raw(200, "text/event-stream", body)
    }

    /// An error in the format of OpenAI.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        let error = json!({ "error": { "message": message, "type": code, "code": code } });
        Self::raw(status, "application/json", error.to_string())
    }

    /// Any body.
    pub(crate) fn raw(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.into(),
            piece: usize::MAX,
            end: End::Whole,
        }
    }

    /// Sets the number of prompt tokens that Chat Completions or Ollama reports, which is 1000 by default.
    pub(crate) fn usage(mut self, prompt_tokens: usize) -> Self {
        let body = String::from_utf8_lossy(&self.body).into_owned();
        let said = format!("\"prompt_tokens\":{prompt_tokens},");
        let body = body.replace("\"prompt_tokens\":1000,", &said);
        let said = format!("\"prompt_eval_count\":{prompt_tokens}");
        self.body = body
            .replace("\"prompt_eval_count\":1000", &said)
            .into_bytes();
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a few bytes at a time.
    pub(crate) fn trickle(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    /// Closes the connection directly after the first occurrence of `mark` in the body.
    pub(crate) fn cut_after(mut self, mark: &str) -> Self {
        self.keep_through(mark);
        self.end = End::Cut;
        self
    }

    /// Stops sending after the first occurrence of `mark`; the connection stays open.
    pub(crate) fn hang_after(mut self, mark: &str) -> Self {
        self.keep_through(mark);
        self.end = End::Hang;
        self
    }

    /// Accepts the request without a response.
    pub(crate) fn hang() -> Self {
        let mut reply = Self::raw(200, "text/event-stream", "");
        reply.end = End::Hang;
        reply
    }

    fn keep_through(&mut self, mark: &str) {
        let body = String::from_utf8_lossy(&self.body).into_owned();
        let at = body
            .find(mark)
            .unwrap_or_else(|| panic!("{mark:?} is not in the reply"));
        let event_end = body[at..]
            .find("\n\n")
            .map_or(body.len(), |end| at + end + 2);
        self.body.truncate(event_end);
    }
}

fn event(delta: &Value, finish_reason: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "choices": [choice] });
    format!("data: {chunk}\n\n")
}
