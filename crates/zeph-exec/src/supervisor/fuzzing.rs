//! The frames between agent and supervisor for the fuzz targets. This is not part of the public interface.

use super::protocol::{Frames, Reply, Request, encode};

/// Decodes messages from bytes that arrive in `pieces`. Returns the messages encoded again, and whether the bytes ended
/// in an error. `replies` is whether the agent's side reads.
#[must_use]
pub fn messages<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    replies: bool,
) -> (Vec<Vec<u8>>, bool) {
    let mut frames = Frames::default();
    let mut messages = Vec::new();
    for piece in pieces {
        frames.push(piece);
        loop {
            let next = if replies {
                frames.next::<Reply>().map(|it| it.map(|it| encode(&it)))
            } else {
                frames.next::<Request>().map(|it| it.map(|it| encode(&it)))
            };
            match next {
                Ok(Some(Ok(message))) => messages.push(message),
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) => return (messages, true),
            }
        }
    }
    (messages, false)
}
