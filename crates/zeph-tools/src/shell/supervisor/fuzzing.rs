//! The frames between agent and supervisor as the fuzz targets drive them; no part of the public
//! interface.

use super::protocol::{Frames, Reply, Request, encode};

/// The messages in bytes that arrive in `pieces`, written again, and whether the bytes ended in an
/// error. `replies` says which side reads.
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
