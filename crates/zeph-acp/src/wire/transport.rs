//! The transport of the connection: lines on two streams.
//!
//! The protocol library has a transport too, which ends at the first line that is not UTF-8, has no maximum size of a
//! line, and repeats a malformed line in its error.

use agent_client_protocol::schema::MaybeUndefined;
use agent_client_protocol::{Error, RawJsonRpcMessage, RawJsonRpcResponse, TransportFrame};
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _};

use crate::input::{InputLine, MAX_LINE_BYTES, next_line};

/// Bytes of a text in the data of an error.
const MAX_DATA_BYTES: usize = 500;
/// The key of the reason of a parse error, which may quote the input.
const REASON: &str = "error";
/// Keys of error data that repeat the input.
const ECHOES: [&str; 3] = ["json", "line", "params"];

/// Passes the lines of `input` to the connection until the end of input.
pub(super) async fn read(
    mut input: impl AsyncBufRead + Unpin,
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
        if !connection(frame) {
            return;
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

/// Writes the frames of the connection to `output` until the connection ends.
///
/// # Errors
/// If the output cannot be written, for example because the client ended.
pub(super) async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut frames: impl Stream<Item = TransportFrame> + Unpin,
) -> std::io::Result<()> {
    while let Some(mut frame) = frames.next().await {
        without_echo(&mut frame);
        let Ok(mut line) = frame.to_json() else {
            tracing::error!("a message of the protocol cannot be written as JSON");
            continue;
        };
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
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
