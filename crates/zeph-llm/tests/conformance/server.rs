//! An HTTP/1.1 server on loopback that sends prepared bytes and records its requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A prepared response.
#[derive(Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The number of bytes that are written at a time.
    piece: usize,
    end: End,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    /// The body is complete.
    Whole,
    /// The connection closes at the end of a body without length.
    Eof,
    /// The connection closes within a chunked body.
    Abort,
    /// The connection stays open without further data.
    Hang,
}

impl Reply {
    pub(crate) fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: body.into(),
            piece: usize::MAX,
            end: End::Whole,
        }
    }

    /// An event stream.
    pub(crate) fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200, body).header("Content-Type", "text/event-stream")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without_content_type(mut self) -> Self {
        self.headers.retain(|(known, _)| known != "Content-Type");
        self
    }

    pub(crate) fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    pub(crate) fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) raw: Vec<u8>,
    /// The number of the connection.
    pub(crate) connection: usize,
}

impl Request {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Request>>,
    closed_by_client: tokio::sync::Notify,
    answering: tokio::sync::Notify,
}

pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts a server that responds with `replies` in order, and with status 418 after the last.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into_iter().collect()),
            ..Shared::default()
        });
        let state = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for connection in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                connections.spawn(serve(socket, connection, Arc::clone(&state)));
            }
        });
        Self { url, shared, task }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until all bytes of a hanging response are written.
    pub(crate) async fn answering(&self) {
        self.shared.answering.notified().await;
    }

    /// Waits until the client has closed the connection of a hanging response.
    pub(crate) async fn closed_by_client(&self) {
        self.shared.closed_by_client.notified().await;
    }
}

async fn serve(mut socket: TcpStream, connection: usize, shared: Arc<Shared>) {
    socket.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut socket, connection).await {
        shared.requests.lock().unwrap().push(request);
        let reply = shared.replies.lock().unwrap().pop_front();
        let reply = reply.unwrap_or_else(|| Reply::status(418, "no reply is left"));
        let end = reply.end;
        if write_reply(&mut socket, reply).await.is_err() || matches!(end, End::Eof | End::Abort) {
            return;
        }
        if end == End::Hang {
            shared.answering.notify_one();
            let mut rest = [0; 64];
            while socket.read(&mut rest).await.is_ok_and(|count| count > 0) {}
            shared.closed_by_client.notify_one();
            return;
        }
    }
}

async fn read_request(socket: &mut TcpStream, connection: usize) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut raw = bytes[head_end + 4..].to_vec();
    while raw.len() < length {
        if socket.read_buf(&mut raw).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request {
        path,
        headers,
        raw,
        connection,
    })
}

async fn write_reply(socket: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    let chunked = reply.end != End::Eof;
    let mut head = format!("HTTP/1.1 {} Status\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(if chunked {
        "Transfer-Encoding: chunked\r\n\r\n"
    } else {
        "Connection: close\r\n\r\n"
    });
    socket.write_all(head.as_bytes()).await?;
    for piece in reply.body.chunks(reply.piece) {
        if chunked {
            let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            socket.write_all(&framed).await?;
        } else {
            socket.write_all(piece).await?;
        }
        socket.flush().await?;
        tokio::task::yield_now().await;
    }
    if reply.end == End::Whole {
        socket.write_all(b"0\r\n\r\n").await?;
    }
    Ok(())
}
