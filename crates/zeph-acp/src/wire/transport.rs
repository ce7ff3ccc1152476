//! The transport of the connection: lines on two streams.
//!
//! The protocol library has a transport too, which ends at the first line that is not UTF-8, has no maximum size of a
//! line, and repeats a malformed line in its error.

use std::io;
use std::time::Duration;

use agent_client_protocol::schema::MaybeUndefined;
use agent_client_protocol::{Error, RawJsonRpcMessage, RawJsonRpcResponse, TransportFrame};
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::backlog::Backlog;
use super::handshake::Handshake;
use super::outbox::{Outbox, is_update};
use crate::input::{InputLine, MAX_LINE_BYTES, next_line};

/// Bytes that the client has to read at least within its time limit.
const PIECE_BYTES: usize = 16 * 1024;
/// Bytes of messages that may wait for the client.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a text in the data of an error.
const MAX_DATA_BYTES: usize = 500;
/// The key of the reason of a parse error, which may quote the input.
const REASON: &str = "error";
/// Keys of error data that repeat the input.
const ECHOES: [&str; 3] = ["json", "line", "params"];

/// Passes the lines of `input` to the connection until the end of input. Lines after `initialize` wait for its response.
pub(super) async fn read(
    mut input: impl AsyncBufRead + Unpin,
    handshake: &Handshake,
    connection: impl Fn(TransportFrame) -> bool,
) {
    loop {
        let frame = match next_line(&mut input, MAX_LINE_BYTES).await {
            Ok(Some(line)) => frame(line),
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "the input of the protocol cannot be read");
                return;
            }
        };
        let is_handshake = handshake.begin(&frame);
        if !connection(frame) {
            return;
        }
        if is_handshake {
            handshake.end().await;
        }
    }
}

/// The frame of a line. A malformed line is not repeated in its error.
fn frame(line: InputLine) -> TransportFrame {
    let reason = match line {
        InputLine::Text(text) => match TransportFrame::parse_json(&text) {
            TransportFrame::Malformed { raw, error } => {
                return TransportFrame::Malformed {
                    raw,
                    error: Error::new(error.code, error.message),
                };
            }
            frame => return frame,
        },
        InputLine::TooLong => format!("a line has more than {MAX_LINE_BYTES} bytes"),
        InputLine::NotUtf8 => "a line is not UTF-8".to_owned(),
    };
    TransportFrame::Malformed {
        raw: String::new(),
        error: Error::parse_error().data(Value::String(reason)),
    }
}

/// Writes the frames of the connection to `output` until the connection ends. `unread` is the time within which the
/// client has to continue to read.
///
/// # Errors
/// If the output cannot be written, for example because the client ended. [`io::ErrorKind::TimedOut`] if the client does
/// not read.
pub(super) async fn write(
    output: impl AsyncWrite + Unpin,
    frames: impl Stream<Item = TransportFrame> + Unpin,
    backlog: &Backlog,
    unread: Duration,
) -> io::Result<()> {
    write_lines(output, frames, backlog, unread, line).await
}

/// Writes the line that `line` makes of each frame.
async fn write_lines(
    mut output: impl AsyncWrite + Unpin,
    mut frames: impl Stream<Item = TransportFrame> + Unpin,
    backlog: &Backlog,
    unread: Duration,
    line: impl Fn(TransportFrame) -> String,
) -> io::Result<()> {
    let mut outbox = Outbox::default();
    loop {
        let next = match outbox.pop() {
            Some(next) => next,
            None => match frames.next().await {
                Some(next) => next,
                None => return Ok(()),
            },
        };
        let is_update = is_update(&next);
        let line = line(next);
        let writing = write_line(&mut output, &line, unread);
        tokio::pin!(writing);
        let mut has_more = true;
        loop {
            tokio::select! {
                biased;
                written = &mut writing => break written?,
                frame = frames.next(), if has_more => match frame {
                    Some(frame) => {
                        if outbox.push(frame) {
                            backlog.shrink();
                        }
                        if outbox.bytes() > MAX_WAITING_BYTES {
                            return Err(not_read(&format!("{MAX_WAITING_BYTES} bytes wait for it")));
                        }
                    }
                    None => has_more = false,
                },
            }
        }
        if is_update {
            backlog.shrink();
        }
    }
}

/// A frame as a line; empty if it is not valid JSON.
fn line(mut frame: TransportFrame) -> String {
    without_echo(&mut frame);
    let Ok(mut line) = frame.to_json() else {
        tracing::error!("a message of the protocol cannot be written as JSON");
        return String::new();
    };
    line.push('\n');
    line
}

/// Writes a line. The client has to read a part of it in each period of `unread`.
async fn write_line(
    output: &mut (impl AsyncWrite + Unpin),
    line: &str,
    unread: Duration,
) -> io::Result<()> {
    let late = |_| not_read(&format!("it read nothing for {} s", unread.as_secs()));
    let mut rest = line.as_bytes();
    while let Some(piece) = rest
        .get(..rest.len().min(PIECE_BYTES))
        .filter(|it| !it.is_empty())
    {
        let written = timeout(unread, output.write(piece)).await.map_err(late)??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rest = rest.get(written..).unwrap_or_default();
    }
    timeout(unread, output.flush()).await.map_err(late)?
}

fn not_read(reason: &str) -> io::Error {
    let text = format!(
        "the client does not read: {reason}; its sessions are stored, and it can load them again"
    );
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Removes the input from the data of an error response, and shortens the rest.
fn without_echo(frame: &mut TransportFrame) {
    let TransportFrame::Single(RawJsonRpcMessage::Response(RawJsonRpcResponse::Error {
        error,
        ..
    })) = frame
    else {
        return;
    };
    let MaybeUndefined::Value(data) = &mut error.data else {
        return;
    };
    if let Value::Object(fields) = data {
        fields.retain(|name, _| !ECHOES.contains(&name.as_str()));
        if let Some(Value::String(reason)) = fields.get_mut(REASON) {
            without_quotes(reason);
        }
        fields.values_mut().for_each(shorten);
    } else {
        shorten(data);
    }
}

/// Removes the part of a parse error that quotes the input. Names of missing fields are those of the protocol.
fn without_quotes(reason: &mut String) {
    if !reason.starts_with("missing field")
        && let Some(quote) = reason.find(['"', '`'])
    {
        reason.truncate(quote);
    }
}

fn shorten(value: &mut Value) {
    if let Value::String(text) = value
        && text.len() > MAX_DATA_BYTES
    {
        text.truncate(text.floor_char_boundary(MAX_DATA_BYTES));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    /// More than a time limit of the tests.
    const UNREAD: Duration = Duration::from_secs(60);

    fn chunk(number: usize, bytes: usize) -> TransportFrame {
        let content = json!({ "type": "text", "text": "x".repeat(bytes) });
        let update = json!({
            "sessionUpdate": "agent_message_chunk",
            "messageId": number.to_string(),
            "content": content,
        });
        let message = json!({
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": { "sessionId": "s", "update": update },
        });
        TransportFrame::parse_json(&message.to_string())
    }

    /// Proves ACP-7: a client that does not read is a client that ended, after a time or with too much for it.
    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_read_ends() {
        for (count, bytes, reason) in [
            (2, 100_000, "it read nothing for 60 s"),
            (40, 1 << 20, "bytes wait for it"),
        ] {
            let (output, _client) = duplex(1024);
            let frames = stream::iter((0..count).map(|number| chunk(number, bytes)));
            let frames = frames.chain(stream::pending());
            let written = write(output, frames, &Backlog::default(), UNREAD).await;
            let error = written.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    /// Proves ACP-7: a dropped update does not count as one that waits.
    #[tokio::test]
    async fn update_without_a_line_leaves_the_backlog() {
        let backlog = Backlog::default();
        (0..3).for_each(|_| backlog.grow());
        let frames = stream::iter((0..3).map(|number| chunk(number, 10)));
        let no_line = |_| String::new();
        let written = write_lines(tokio::io::sink(), frames, &backlog, UNREAD, no_line);
        written.await.unwrap();
        assert_eq!(backlog.waiting(), 0);
    }

    /// Proves ACP-7: a slow client receives everything, and the backlog is empty at the end.
    #[tokio::test(start_paused = true)]
    async fn slow_client_receives_everything() {
        let (output, mut client) = duplex(1024);
        let backlog = Backlog::default();
        (0..40).for_each(|_| backlog.grow());
        let frames = stream::iter((0..40).map(|number| chunk(number / 4, 10_000)));
        let read = async {
            let mut bytes = vec![0; 4096];
            let mut text = Vec::new();
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                match client.read(&mut bytes).await.unwrap() {
                    0 => return String::from_utf8(text).unwrap(),
                    read => text.extend_from_slice(&bytes[..read]),
                }
            }
        };
        let (written, text) = tokio::join!(write(output, frames, &backlog, UNREAD), read);
        written.unwrap();
        assert_eq!(text.matches(&"x".repeat(10)).count(), 40_000);
        backlog.room().await;
        assert_eq!(backlog.waiting(), 0);
    }
}
