//! The model of the measurements: a Chat Completions server on loopback with scripted responses.
//!
//! The responses are rendered before the first request, and only `Content-Length` determines the end of a
//! request, so that the measured time is that of the client.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// The read timeout of a connection.
const SILENCE: Duration = Duration::from_secs(60);
/// The initial buffer size, enough for the head and an ordinary body.
pub(crate) const BUFFER: usize = 64 * 1024;
/// The size of the read that detects a request, in bytes.
const FIRST_READ: usize = 256;
/// The maximum size of a request in bytes.
const MAX_REQUEST: usize = 256 * 1024 * 1024;

/// A response of the script, ready to be sent.
#[derive(Clone)]
pub(crate) struct Answer {
    /// The parts of the response, each in one write.
    pieces: Vec<Vec<u8>>,
    /// The time between two pieces.
    pause: Duration,
    held: bool,
}

impl Answer {
    /// A call of `tool` with an id from `nth`.
    pub(crate) fn call(nth: usize, tool: &str, arguments: &Value) -> Self {
        let call = json!([{
            "index": 0,
            "id": format!("call_{nth}"),
            "type": "function",
            "function": { "name": tool, "arguments": arguments.to_string() },
        }]);
        Self::stream(
            &json!({ "role": "assistant", "tool_calls": call }),
            "tool_calls",
        )
    }

    /// A text, which ends the turn.
    pub(crate) fn text(text: &str) -> Self {
        Self::stream(&json!({ "role": "assistant", "content": text }), "stop")
    }

    /// The same response, which is sent after [`Model::release`].
    pub(super) fn held(self) -> Self {
        Self { held: true, ..self }
    }

    /// A text that arrives in pieces with a pause between them.
    pub(super) fn paced(texts: &[String], pause: Duration) -> Self {
        let deltas = texts.iter().map(|text| json!({ "content": text }));
        let chunks = deltas.map(|delta| http_chunk(&event(&choice(&delta, None), &Value::Null)));
        let mut pieces = vec![HEAD.as_bytes().to_vec()];
        pieces.extend(chunks.map(String::into_bytes));
        pieces.push(format!("{}{LAST_CHUNK}", http_chunk(&end("stop"))).into_bytes());
        Self {
            pieces,
            pause,
            held: false,
        }
    }

    /// The bytes of the response.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    fn stream(delta: &Value, finish: &str) -> Self {
        let body = event(&choice(delta, None), &Value::Null) + &end(finish);
        let bytes = format!("{HEAD}{}{LAST_CHUNK}", http_chunk(&body));
        Self {
            pieces: vec![bytes.into_bytes()],
            pause: Duration::ZERO,
            held: false,
        }
    }
}

/// The head of a response.
const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// The end of a body.
const LAST_CHUNK: &str = "0\r\n\r\n";

fn http_chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// An event of the stream.
fn event(choices: &Value, usage: &Value) -> String {
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench",
        "choices": choices, "usage": usage,
    });
    format!("data: {chunk}\n\n")
}

fn choice(delta: &Value, finish: Option<&str>) -> Value {
    json!([{ "index": 0, "delta": delta, "finish_reason": finish }])
}

/// The events at the end of a response.
fn end(finish: &str) -> String {
    // The usage is small, so that the scripted numbers do not increase the context estimate.
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 });
    event(&choice(&json!({}), Some(finish)), &Value::Null)
        + &event(&json!([]), &usage)
        + "data: [DONE]\n\n"
}

/// A request and its response.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    /// The arrival of the first byte of the request.
    pub(super) arrived: Instant,
    /// The time just before the response was written in one piece. The client's time starts here.
    pub(super) answered: Instant,
    /// The time just after the response was written.
    pub(super) ended: Instant,
    /// The length of the request body in bytes.
    pub(super) body: usize,
}

/// The observations of the server.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) exchanges: Vec<Exchange>,
    /// The body of the first request.
    pub(super) first_body: Vec<u8>,
    /// The number of opened connections.
    pub(super) connections: usize,
    /// Errors of the server.
    errors: Vec<String>,
}

struct Shared {
    script: Vec<Answer>,
    observed: Mutex<Observed>,
    held: Mutex<Sender<usize>>,
    released: Mutex<Receiver<()>>,
    stopped: AtomicBool,
}

/// A server that ends when it is dropped.
pub(super) struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    held: Receiver<usize>,
    release: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    /// Starts a server that responds to the n-th request with the n-th item of `script`.
    pub(super) fn start(script: Vec<Answer>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a listener on loopback")?;
        let address = listener.local_addr()?;
        let (held_sender, held) = channel();
        let (release, released) = channel();
        let shared = Arc::new(Shared {
            script,
            observed: Mutex::default(),
            held: Mutex::new(held_sender),
            released: Mutex::new(released),
            stopped: AtomicBool::new(false),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Self {
            address,
            shared,
            held,
            release,
            thread: Some(thread),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits up to `limit` for a request whose response is held, and returns its number from 0.
    pub(super) fn next_held(&self, limit: Duration) -> Option<usize> {
        self.held.recv_timeout(limit).ok()
    }

    /// Sends the held response.
    pub(super) fn release(&self) {
        // If the server has ended, the response is not needed.
        let _ = self.release.send(());
    }

    /// Returns the observations.
    ///
    /// # Errors
    /// The client did not request exactly the whole script.
    pub(super) fn observed(&self) -> Result<Observed> {
        let observed = std::mem::take(&mut *lock(&self.shared.observed));
        if let Some(error) = observed.errors.first() {
            bail!("the measuring server: {error}");
        }
        let (asked, script) = (observed.exchanges.len(), self.shared.script.len());
        ensure!(
            asked == script,
            "{asked} requests came, the script has {script} answers"
        );
        Ok(observed)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.release();
        // Unblocks the accepting thread, which joins the serving threads.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut serving = Vec::new();
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        lock(&shared.observed).connections += 1;
        let Ok(other) = stream.try_clone() else {
            continue;
        };
        let shared = Arc::clone(shared);
        let thread = std::thread::spawn(move || {
            if let Err(error) = serve(stream, &shared) {
                lock(&shared.observed).errors.push(format!("{error:#}"));
            }
        });
        serving.push((thread, other));
    }
    for (thread, stream) in serving {
        // Ends the connection of a client that is still connected.
        let _ = stream.shutdown(Shutdown::Both);
        let _ = thread.join();
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let Some(request) = next_request(&mut stream, &mut buffer)? else {
            return Ok(());
        };
        let nth = {
            let mut observed = lock(&shared.observed);
            let nth = observed.exchanges.len();
            if nth == 0 {
                observed.first_body = buffer[request.head..request.head + request.body].to_vec();
            }
            observed.exchanges.push(Exchange {
                arrived: request.arrived,
                answered: request.arrived,
                ended: request.arrived,
                body: request.body,
            });
            nth
        };
        let Some(answer) = shared.script.get(nth) else {
            stream.write_all(b"HTTP/1.1 500 Script Over\r\ncontent-length: 0\r\n\r\n")?;
            bail!("request {nth} came, and the script has no answer to it");
        };
        if answer.held {
            lock(&shared.held).send(nth)?;
            lock(&shared.released).recv_timeout(SILENCE)?;
        }
        let answered = Instant::now();
        lock(&shared.observed).exchanges[nth].answered = answered;
        for (nth, piece) in answer.pieces.iter().enumerate() {
            let due = answered + answer.pause * u32::try_from(nth)?;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            stream.write_all(piece)?;
        }
        // The client may have read the last response, and its observations may be taken already.
        if let Some(exchange) = lock(&shared.observed).exchanges.get_mut(nth) {
            exchange.ended = Instant::now();
        }
    }
}

pub(crate) struct Request {
    arrived: Instant,
    pub(crate) head: usize,
    pub(crate) body: usize,
}

/// Reads one request into `buffer`; `None` if the client closed the connection before it.
pub(crate) fn next_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Result<Option<Request>> {
    // A short read returns before the kernel has copied more.
    let mut filled = match stream.read(&mut buffer[..FIRST_READ]) {
        Ok(0) => return Ok(None),
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
        Err(error) => return Err(error).context("waiting for a request"),
    };
    let arrived = Instant::now();
    let (head, body) = loop {
        if let Some(ends) = ends(&buffer[..filled])? {
            break ends;
        }
        ensure!(filled < buffer.len(), "a head of over {BUFFER} bytes");
        let read = stream.read(&mut buffer[filled..])?;
        ensure!(read > 0, "the connection closed within a head");
        filled += read;
    };
    ensure!(body <= MAX_REQUEST, "a request of {body} bytes");
    let whole = head + body;
    ensure!(filled <= whole, "bytes after the end of a request");
    if buffer.len() < whole {
        // Twice the size, because each request of a conversation is longer than the last.
        buffer.resize(whole * 2, 0);
    }
    stream
        .read_exact(&mut buffer[filled..whole])
        .context("the body of a request")?;
    Ok(Some(Request {
        arrived,
        head,
        body,
    }))
}

/// The lengths of the head and the body in bytes, if the head is complete.
fn ends(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end]).context("the head of a request")?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let body = match length {
        Some((_, length)) => length.trim().parse().context("Content-Length")?,
        None => bail!(
            "a request without Content-Length: {}",
            head.lines().next().unwrap_or_default()
        ),
    };
    Ok(Some((end + 4, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_a_request_is_found() {
        let check = |bytes: &str, expect: Option<(usize, usize)>| {
            assert_eq!(ends(bytes.as_bytes()).unwrap(), expect, "{bytes:?}");
        };
        check("POST / HTTP/1.1\r\nContent-Len", None);
        check(
            "POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n{",
            Some((39, 12)),
        );
        check("POST / HTTP/1.1\r\ncontent-length:0\r\n\r\n", Some((37, 0)));
        assert!(ends(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").is_err());
    }

    #[test]
    fn scripted_responses_are_sent_in_order() {
        let script = vec![
            Answer::call(0, "read", &json!({"path": "a"})),
            Answer::text("bye").held(),
        ];
        let model = Model::start(script).unwrap();
        let client = std::thread::spawn({
            let address = model.address();
            move || {
                let mut stream = TcpStream::connect(address).unwrap();
                let mut answers = Vec::new();
                for _ in 0..2 {
                    stream
                        .write_all(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
                        .unwrap();
                    let mut answer = Vec::new();
                    while !answer.ends_with(b"\r\n0\r\n\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        answer.push(byte[0]);
                    }
                    answers.push(String::from_utf8(answer).unwrap());
                }
                answers
            }
        });
        assert_eq!(model.next_held(SILENCE), Some(1));
        model.release();
        let answers = client.join().unwrap();
        assert!(answers[0].contains(r#""name":"read""#), "{}", answers[0]);
        assert!(answers[1].contains(r#""content":"bye""#), "{}", answers[1]);
        let observed = model.observed().unwrap();
        assert_eq!(observed.first_body, b"{}");
        assert_eq!(observed.connections, 1);
        assert!(observed.exchanges[1].arrived >= observed.exchanges[0].answered);
        assert!(
            model.observed().is_err(),
            "the script was not asked for again"
        );
    }
}
