//! Entry points to the response parsers for fuzz targets and benchmarks; not a part of the public interface.

use std::ops::Range;

use serde_json::Value;

use crate::claude::wire::Messages;
use crate::http_provider::ndjson::LineDecoder;
use crate::http_provider::test_support::read;
use crate::ollama::wire::OllamaChat;
use crate::openai::wire::ChatCompletions;
use crate::provider::{ChatResponse, StreamEvent};
use crate::responses::wire::Responses;
use crate::text_tools::parse::calls;

/// An API with a response parser.
#[derive(Debug, Clone, Copy)]
pub enum Api {
    /// OpenAI Chat Completions.
    ChatCompletions,
    /// Anthropic's Messages API.
    Messages,
    /// OpenAI's Responses API.
    Responses,
    /// Ollama's chat.
    Ollama,
}

/// The response in a body that arrives in `pieces`, and the events during it. The response is `None` if the body is
/// invalid.
#[must_use]
pub fn read_answer<'a>(
    api: Api,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Option<ChatResponse>, Vec<StreamEvent>) {
    let (answer, events) = match api {
        Api::ChatCompletions => read::<ChatCompletions>(pieces),
        Api::Messages => read::<Messages>(pieces),
        Api::Responses => read::<Responses>(pieces),
        Api::Ollama => read::<OllamaChat>(pieces),
    };
    (answer.ok(), events)
}

/// The calls in the text of a response, each with its tool, its arguments and its position. The tools are `bash`,
/// `web_scrape` and `read`.
#[must_use]
pub fn text_calls(answer: &str) -> Vec<(String, Value, Range<usize>)> {
    let offers = |name: &str| ["bash", "web_scrape", "read"].contains(&name);
    let calls = calls(answer, offers).calls.into_iter();
    calls
        .map(|call| (call.name, call.input, call.span))
        .collect()
}

/// Passes on the lines of a stream that arrives in `pieces`, up to one that is too long.
pub fn split_lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, mut on_line: impl FnMut(&str)) {
    let mut decoder = LineDecoder::new(1 << 20);
    for piece in pieces {
        let pushed = decoder.push(piece, |line| {
            on_line(line);
            Ok(())
        });
        if pushed.is_err() {
            return;
        }
    }
    if let Some(line) = decoder.finish() {
        on_line(&line);
    }
}
