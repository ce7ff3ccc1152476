//! One client on standard input and output.
//!
//! One thread reads lines and one writes messages, so that neither blocks a call. Bad lines get an error and end nothing.

use std::collections::HashSet;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta as _,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::message::{BadMessage, read};
use super::order::Arrivals;

/// Bytes of the longest line.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;
/// Requests that are open at the same time.
const MAX_OPEN_REQUESTS: usize = 256;
/// Messages that wait for standard output.
const MAX_QUEUED_MESSAGES: usize = 64;
/// The time that running calls have after the end of input.
const GRACE: Duration = Duration::from_secs(1);
/// The time to write the last messages.
const FLUSH: Duration = Duration::from_secs(2);

/// A line of the client.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// The messages of one client.
pub(super) struct StdioTransport {
    lines: mpsc::Receiver<Line>,
    messages: Option<mpsc::Sender<Vec<u8>>>,
    /// Ends when all messages are written.
    written: Option<oneshot::Receiver<()>>,
    /// Requests without a response.
    open: HashSet<RequestId>,
    arrivals: Arrivals,
    /// Whether the first request arrived. Before it, the protocol library accepts nothing else.
    is_opened: bool,
    /// An error that is sent before the next line is read.
    refusal: Option<Vec<u8>>,
    /// The end of the grace period, after the end of input.
    ends_at: Option<Instant>,
    /// Ends all calls.
    ending: CancellationToken,
    /// The program ends, or the client reads no longer.
    stop: CancellationToken,
}

impl StdioTransport {
    /// Reads from `input` and writes to `output`. After the end of input, `ending` is cancelled. `stop` ends the connection.
    pub(super) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        ending: CancellationToken,
        stop: CancellationToken,
    ) -> Self {
        let (messages, written) = write_lines(output, stop.clone());
        Self {
            lines: read_lines(input),
            messages: Some(messages),
            written: Some(written),
            open: HashSet::new(),
            arrivals: Arrivals::default(),
            is_opened: false,
            refusal: None,
            ends_at: None,
            ending,
            stop,
        }
    }

    /// The message of a line, if the server has to see it.
    fn accept(&mut self, line: Line) -> Option<ClientJsonRpcMessage> {
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong => {
                let error = format!("a line is longer than {MAX_LINE_BYTES} bytes");
                self.refuse(None, ErrorData::invalid_request(error, None));
                return None;
            }
        };
        let mut message = match read(&text) {
            Ok(message) => message?,
            Err(bad) => {
                let BadMessage { id, error } = *bad;
                self.refuse(id, error);
                return None;
            }
        };
        match &mut message {
            JsonRpcMessage::Request(request) => {
                let error = if self.open.contains(&request.id) {
                    Some((
                        None,
                        format!("the id {} belongs to a running request", request.id),
                    ))
                } else if self.open.len() >= MAX_OPEN_REQUESTS {
                    let text = format!("{MAX_OPEN_REQUESTS} requests are open; wait for a result");
                    Some((Some(request.id.clone()), text))
                } else {
                    None
                };
                if let Some((id, text)) = error {
                    self.refuse(id, ErrorData::invalid_request(text, None));
                    return None;
                }
                self.is_opened |= opens(&request.request);
                self.open.insert(request.id.clone());
                if let ClientRequest::CallToolRequest(call) = &mut request.request {
                    call.extensions.insert(self.arrivals.next());
                }
            }
            _ if !self.is_opened => return None,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // The protocol library sends no response for it.
                    self.open.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        self.refusal = Some(encoded(&ServerJsonRpcMessage::error(error, id)));
    }
}

/// Whether a request starts the session: `initialize`, or a request with its own metadata.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => request
            .get_meta()
            .missing_required_keys(&ProtocolVersion::V_2026_07_28)
            .is_empty(),
    }
}

/// A message as a line.
fn encoded(message: &ServerJsonRpcMessage) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "standard output is closed")
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => {
                self.open.remove(&response.id);
            }
            JsonRpcMessage::Error(error) => {
                error.id.as_ref().map(|id| self.open.remove(id));
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        let line = encoded(&message);
        let messages = self.messages.clone();
        async move {
            let messages = messages.ok_or_else(closed)?;
            messages.send(line).await.map_err(|_| closed())
        }
    }

    /// The protocol library drops this future at any await point, so no await point has a side effect.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(messages) = self.messages.as_ref().filter(|_| self.refusal.is_some()) {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => {}
                    room = messages.reserve() => {
                        if let (Ok(room), Some(line)) = (room, self.refusal.take()) {
                            room.send(line);
                        }
                    }
                }
            }
            if let Some(ends_at) = self.ends_at {
                let is_idle = self.open.is_empty();
                tokio::select! {
                    () = self.stop.cancelled() => {}
                    () = tokio::time::sleep_until(ends_at), if !is_idle => {}
                    () = std::future::ready(()), if is_idle => {}
                }
                self.ending.cancel();
                return None;
            }
            let line = tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    self.ending.cancel();
                    return None;
                }
                line = self.lines.recv() => line,
            };
            match line {
                None => self.ends_at = Some(Instant::now() + GRACE),
                Some(line) => {
                    if let Some(message) = self.accept(line) {
                        return Some(message);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.messages = None;
        if let Some(written) = self.written.take() {
            let _ = tokio::time::timeout(FLUSH, written).await;
        }
        Ok(())
    }
}

/// Writes messages on a thread. If the client no longer reads, `stop` is cancelled.
fn write_lines(
    mut output: impl Write + Send + 'static,
    stop: CancellationToken,
) -> (mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>) {
    let (messages, mut queue) = mpsc::channel::<Vec<u8>>(MAX_QUEUED_MESSAGES);
    let (ended, written) = oneshot::channel();
    std::thread::spawn(move || {
        while let Some(line) = queue.blocking_recv() {
            if let Err(error) = output.write_all(&line).and_then(|()| output.flush()) {
                tracing::debug!(%error, "the client no longer reads");
                stop.cancel();
                break;
            }
        }
        drop(ended);
    });
    (messages, written)
}

/// Reads lines on a thread, because a read of standard input cannot be cancelled.
fn read_lines(input: impl Read + Send + 'static) -> mpsc::Receiver<Line> {
    // A line can be long, so few wait.
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        while let Ok(Some(line)) = next_line(&mut input) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads the next line; `None` is the end. The rest of a line that is too long is skipped.
fn next_line(input: &mut BufReader<impl Read>) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let read = input
        .by_ref()
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || (read as u64) < MAX_LINE_BYTES {
        return Ok(Some(Line::Text(line)));
    }
    drop(line);
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (skipped, is_end) = (
            end.map_or(buffer.len(), |end| end + 1),
            end.is_some() || buffer.is_empty(),
        );
        input.consume(skipped);
        if is_end {
            return Ok(Some(Line::TooLong));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves MCP-10: a line that is too long is skipped, and the next one is read.
    #[test]
    fn line_that_is_too_long_is_skipped() {
        let long = usize::try_from(MAX_LINE_BYTES).unwrap() + 5;
        let text = [b"a\n".to_vec(), vec![b'x'; long], b"\nb".to_vec()].concat();
        let mut input = BufReader::new(&text[..]);
        let mut next = || next_line(&mut input).unwrap();
        assert_eq!(next(), Some(Line::Text(b"a\n".to_vec())));
        assert_eq!(next(), Some(Line::TooLong));
        assert_eq!(next(), Some(Line::Text(b"b".to_vec())));
        assert_eq!(next(), None);
    }
}
