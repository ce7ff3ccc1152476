//! The calls in a response, in a pure parser that is linear in the length of the text.
//!
//! A call is a closed fence at the top level of the response, at the start of a line, with one of these tags:
//!
//! - `bash`: the command;
//! - `scrape`: the parameters of `web_scrape` as JSON;
//! - `json`: an object with the `tool_id` of an available tool and its `params`, or, as many models have learned it,
//!   with `name` and `arguments`;
//!
//! An object like that of `json` may also be the complete response. Everything else is text. Invalid JSON that looks
//! like a call becomes a call with the text as its arguments, so that its result can report the error.

use std::ops::Range;

use serde_json::{Map, Value};

use super::markdown::{Block, blocks, without_end};
use super::{BASH, RESULT, SCRAPE};
use crate::http_provider::response_builder::arguments;

/// The tags around the thinking of some models before the response.
const THOUGHT: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The tool.
    pub(crate) name: String,
    /// Its arguments: an object, or a text that should have been one.
    pub(crate) input: Value,
    /// Its position in the response.
    pub(crate) span: Range<usize>,
}

/// The calls of a response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Calls {
    /// The calls, in order.
    pub(crate) calls: Vec<Call>,
    /// Whether a block that would have been a call was not closed.
    pub(crate) unclosed: bool,
}

/// The calls in a response; `offers` returns whether a tool is available.
pub(crate) fn calls(answer: &str, offers: impl Fn(&str) -> bool) -> Calls {
    let start = spoken(answer);
    let text = answer.get(start..).unwrap_or_default();
    if let Some(calls) = whole(text, start, &offers) {
        return calls;
    }
    let found = blocks(text, RESULT);
    let calls = found.closed.into_iter().filter_map(|block| {
        let (name, input) = of_block(&block, &offers)?;
        let span = block.span.start + start..block.span.end + start;
        Some(Call { name, input, span })
    });
    Calls {
        calls: calls.collect(),
        unclosed: found.unclosed.is_some_and(|(info, body)| match info {
            "bash" => offers(BASH),
            "scrape" => offers(SCRAPE),
            "json" => amiss(body, &offers).is_some(),
            _ => false,
        }),
    }
}

/// The start of the response after the thinking. Some templates open the tag of the thinking before the response
/// begins.
fn spoken(answer: &str) -> usize {
    let begin = answer.len() - answer.trim_start().len();
    for (open, close) in THOUGHT {
        if answer[begin..].starts_with(open) {
            let end = answer.find(close);
            return end.map_or(answer.len(), |at| at + close.len());
        }
        if let Some(at) = answer.find(close) {
            let line = answer[..at].rfind('\n').map_or(0, |at| at + 1);
            let after = at + close.len();
            let rest = answer[after..].lines().next().unwrap_or_default();
            let is_alone = answer[line..at].trim().is_empty() && rest.trim().is_empty();
            if is_alone && !answer[..at].contains(open) {
                return after;
            }
        }
    }
    0
}

/// The call that is the whole text, if that is an object, or should have been one. `None`: it
/// may have blocks.
fn whole(text: &str, start: usize, offers: &impl Fn(&str) -> bool) -> Option<Calls> {
    let before = text.len() - text.trim_start().len();
    let object = without_end(text);
    if !object.starts_with('{') {
        return None;
    }
    let (name, input) = match read(object) {
        // An object that is not a call has no blocks either.
        Some(value) => match of_value(value, offers) {
            Some(call) => call,
            None => return Some(Calls::default()),
        },
        None => amiss(object, offers)?,
    };
    let span = start + before..start + before + object.len();
    Some(Calls {
        calls: vec![Call { name, input, span }],
        unclosed: false,
    })
}

fn of_block(block: &Block<'_>, offers: &impl Fn(&str) -> bool) -> Option<(String, Value)> {
    match block.info {
        "bash" if offers(BASH) => {
            let command = Value::String(block.body.replace("\r\n", "\n"));
            let input = Map::from_iter([("command".to_owned(), command)]);
            Some((BASH.to_owned(), Value::Object(input)))
        }
        "scrape" if offers(SCRAPE) => {
            let object = read(block.body).filter(Value::is_object);
            let input = object.unwrap_or_else(|| Value::String(block.body.to_owned()));
            Some((SCRAPE.to_owned(), input))
        }
        "json" => match read(block.body) {
            Some(value) => of_value(value, offers),
            None => amiss(block.body, offers),
        },
        _ => None,
    }
}

/// A value of JSON. Many models write line feeds into strings as they are, which means one thing
/// only.
fn read(text: &str) -> Option<Value> {
    let mended = || {
        let mut out = String::with_capacity(text.len() + 16);
        let (mut in_string, mut escaped) = (false, false);
        for c in text.chars() {
            match c {
                '\n' if in_string => out.push_str("\\n"),
                '\r' if in_string => out.push_str("\\r"),
                '\t' if in_string => out.push_str("\\t"),
                c => out.push(c),
            }
            in_string ^= c == '"' && !escaped;
            escaped = in_string && c == '\\' && !escaped;
        }
        serde_json::from_str(&out)
    };
    serde_json::from_str(text).or_else(|_| mended()).ok()
}

/// The call in an object.
fn of_value(value: Value, offers: &impl Fn(&str) -> bool) -> Option<(String, Value)> {
    let Value::Object(mut object) = value else {
        return None;
    };
    for (name, params) in [("tool_id", "params"), ("name", "arguments")] {
        let tool = object.get(name).and_then(Value::as_str);
        let Some(tool) = tool.filter(|tool| offers(tool)).map(str::to_owned) else {
            continue;
        };
        return match object.remove(params)? {
            Value::String(text) => Some((tool, arguments(&text))),
            Value::Null => Some((tool, Value::Object(Map::new()))),
            params => Some((tool, params)),
        };
    }
    None
}

/// The tool of a call that is not valid JSON; the text becomes the arguments.
fn amiss(text: &str, offers: &impl Fn(&str) -> bool) -> Option<(String, Value)> {
    let named = |key: &str| {
        let (_, rest) = text.split_once(key)?;
        let rest = rest.trim_start_matches(['"', '\'', ':', '=', ' ', '\t', '\r', '\n']);
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
        let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        rest.get(..length).filter(|name| !name.is_empty())
    };
    let name = if text.contains("tool_id") {
        named("tool_id").unwrap_or("json")
    } else {
        let name = named("\"name\"").filter(|name| offers(name))?;
        text.contains("\"arguments\"").then_some(name)?
    };
    Some((name.to_owned(), Value::String(text.to_owned())))
}
