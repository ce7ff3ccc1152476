//! The parser of responses and the writer of bodies without a network, for tests and fuzz targets.

use super::error_mapping::{Failure, RequestKind, Target};
use super::response_builder::ResponseBuilder;
use super::stream_reader::AnswerReader;
use super::wire::Wire;
use crate::provider::{ChatResponse, StreamEvent};

/// The response in a body that arrives in `pieces`, and the events during it. The id `taken` counts as used before.
pub(crate) fn read<'a, W: Wire>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<ChatResponse, Failure>, Vec<StreamEvent>) {
    let target = Target {
        url: "http://h/path",
        model: "m",
        api: W::NAME,
        key_env: None,
        purpose: RequestKind::Answer,
    };
    let mut events = Vec::new();
    let mut sink = |event| events.push(event);
    let mut answer = ResponseBuilder::default();
    let mut reader = AnswerReader::<W>::new(&mut answer, target);
    let outcome = pieces
        .into_iter()
        .try_for_each(|piece| reader.push(piece, &mut sink))
        .and_then(|()| reader.end(&mut sink))
        .and_then(|()| answer.finish(|id| id == "taken", &mut sink));
    (outcome, events)
}
