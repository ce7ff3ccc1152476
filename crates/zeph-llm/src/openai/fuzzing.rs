//! The reader of answers as the fuzz targets drive it; no part of the public interface.

use super::wire::ChatCompletions;
use crate::provider::{ChatResponse, StreamEvent};
use crate::remote::answer::Answer;
use crate::remote::failure::Target;
use crate::remote::reader::AnswerReader;

const TARGET: Target<'_> = Target {
    url: "http://h/v1/chat/completions",
    model: "m",
    api: "Chat Completions",
    key_env: None,
};

/// The answer in a body that arrives in `pieces`, `None` when it is none, and what was shown of
/// it meanwhile.
#[must_use]
pub fn read_answer<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Option<ChatResponse>, Vec<StreamEvent>) {
    let mut events = Vec::new();
    let mut sink = |event| events.push(event);
    let mut answer = Answer::default();
    let mut reader = AnswerReader::<ChatCompletions>::new(&mut answer, TARGET);
    let response = pieces
        .into_iter()
        .try_for_each(|piece| reader.push(piece, &mut sink))
        .and_then(|()| reader.end(&mut sink))
        .and_then(|()| answer.finish(|id| id == "taken", &mut sink))
        .ok();
    (response, events)
}
