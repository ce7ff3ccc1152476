//! Responses of servers: the response and the shown text do not depend on the chunks of the stream.

use arbitrary::Arbitrary;
use zeph_llm::fuzzing::{Api, read_answer};
use zeph_llm::{ChatResponse, StreamEvent};

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    cuts: Vec<u8>,
    bytes: &'a [u8],
}

/// The response without generated ids, and the text that was shown.
fn read<'a>(
    api: Api,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Option<String>, String) {
    let (answer, events) = read_answer(api, pieces);
    let shown = events.iter().filter_map(|event| match event {
        StreamEvent::TextDelta(text) => Some(text.as_str()),
        _ => None,
    });
    let shown: String = shown.collect();
    let answer = answer.map(|answer| {
        let mut ids: Vec<String> = answer.tool_uses().map(|call| call.id.clone()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(
            ids.len(),
            answer.tool_uses().count(),
            "two calls with one id"
        );
        without_ids(&answer)
    });
    (answer, shown)
}

fn without_ids(answer: &ChatResponse) -> String {
    let mut text = format!("{answer:?}");
    for call in answer
        .tool_uses()
        .filter(|call| call.id.starts_with("call_"))
    {
        text = text.replace(&call.id, "ID");
    }
    text
}

/// Reads the bytes in one piece, byte by byte, and in the given pieces.
pub fn check(api: Api, input: &Input<'_>) {
    let whole = read(api, [input.bytes]);
    assert_eq!(whole, read(api, input.bytes.chunks(1)), "byte by byte");
    let mut rest = input.bytes;
    let mut pieces = Vec::new();
    for length in &input.cuts {
        let (piece, after) = rest.split_at(rest.len().min(usize::from(*length)));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    assert_eq!(whole, read(api, pieces), "in pieces");
}
