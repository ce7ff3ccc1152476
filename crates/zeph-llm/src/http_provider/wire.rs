//! The properties of an API that do not depend on HTTP: the shape of its requests and responses. No I/O.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use super::embeddings::EmbeddingsApi;
use super::error_mapping::{Failure, Target};
use super::models::ModelsApi;
use super::response_builder::ResponseBuilder;
use crate::endpoint::ApiPath;
use crate::provider::{ChatRequest, StreamSink};

/// The framing of a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document per line.
    Lines,
}

/// One API. The provider around it ([`super::RemoteProvider`]) connects, sends, retries, and continues after a broken
/// stream.
pub(crate) trait Wire: fmt::Debug + Send + Sync + 'static {
    /// The state between two pieces of a response.
    type StreamState: fmt::Debug + Default + Send;

    /// The API's name for display.
    const NAME: &'static str;
    /// The location of the API on a server.
    const PLACE: ApiPath;
    /// The framing of its responses.
    const FRAMING: Framing;
    /// The header with the key, and the prefix of the key in it.
    const KEY_HEADER: (&'static str, &'static str);
    /// The headers of every request.
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    /// The list of models of a server.
    const MODELS: ModelsApi;
    /// The embeddings API, if the servers have one.
    const EMBEDDINGS: Option<EmbeddingsApi> = None;

    /// The body of a request. The fields that never change in a conversation come first, then the messages, then the
    /// fields that may differ between two requests, so that a provider's prompt cache finds the prefix again. `shown`
    /// is the part of a response that a broken stream had already delivered: it follows the messages, with the
    /// instruction to continue.
    fn body<'r>(&'r self, request: &'r ChatRequest<'r>, shown: Option<&'r str>) -> impl Serialize;

    /// Reads the data of one event, or one line.
    ///
    /// # Errors
    /// `Protocol` for data that does not belong to a response, or the class of an error in the data.
    fn piece(
        reading: &mut Self::StreamState,
        data: &str,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure>;

    /// Reads a complete response as one JSON document. `None` if it is not a response.
    ///
    /// # Errors
    /// As [`Wire::piece`].
    fn document(
        body: &[u8],
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<Option<()>, Failure>;
}

/// The instruction to continue after a broken stream.
pub(crate) const GO_ON: &str = "The network cut off your response. Continue exactly where it \
    stopped: do not repeat any of it, do not comment on the interruption.";

/// The replacement for an image that the model does not take.
pub(crate) const IMAGE_LEFT_OUT: &str = "[image omitted: this model does not accept images]";

/// The lower of the provider's limit of response tokens and the request's.
pub(crate) fn output_limit(configured: Option<u32>, request: &ChatRequest<'_>) -> Option<u32> {
    match (configured, request.max_output_tokens) {
        (Some(most), Some(asked)) => Some(most.min(asked)),
        (most, asked) => most.or(asked),
    }
}

/// A name or an id as the APIs take it: letters, digits, `_` and `-`. A model may have made up one
/// that they refuse, which would spoil every later request.
pub(crate) fn plain_name(name: &str, longest: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=longest).contains(&name.len()) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mut mended: String = name
        .chars()
        .take(longest)
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    if mended.is_empty() {
        mended.push('_');
    }
    Cow::Owned(mended)
}
