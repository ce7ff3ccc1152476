//! Server-sent events: the events do not depend on the chunks of the stream.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_llm::sse::{SseDecoder, SseError};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    limit: u16,
    cuts: Vec<u8>,
    bytes: &'a [u8],
}

type Events = (Vec<(String, String)>, Result<Option<String>, SseError>);

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Events {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        let pushed = decoder.push::<SseError>(piece, |event| {
            assert!(event.data.len() <= 3 * limit, "an event over the limit");
            events.push((event.event.to_owned(), event.data.to_owned()));
            Ok(())
        });
        if let Err(error) = pushed {
            return (events, Err(error));
        }
    }
    (events, Ok(decoder.finish()))
}

fn cut<'a>(mut bytes: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in cuts {
        let (piece, rest) = bytes.split_at(bytes.len().min(usize::from(*length)));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

fuzz_target!(|input: Input<'_>| {
    let limit = usize::from(input.limit);
    let whole = decode([input.bytes], limit);
    assert_eq!(whole, decode(input.bytes.chunks(1), limit), "byte by byte");
    assert_eq!(
        whole,
        decode(cut(input.bytes, &input.cuts), limit),
        "in pieces"
    );
});
