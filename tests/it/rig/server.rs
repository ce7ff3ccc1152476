//! A Chat Completions server on loopback, which records every request.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::DEADLINE;
use super::reply::{End, Reply};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) raw: Vec<u8>,
    pub(crate) at: Instant,
}

impl Request {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).expect("a request is JSON")
    }

    /// Whether it is a repair request: only these have no tools.
    pub(crate) fn is_reformat(&self) -> bool {
        self.json().get("tools").is_none()
    }

    pub(crate) fn messages(&self) -> Vec<Value> {
        self.json()["messages"]
            .as_array()
            .expect("a request has messages")
            .clone()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

type Script = Box<dyn FnMut(usize, &Request) -> Reply + Send>;

struct Shared {
    script: Mutex<Script>,
    requests: Mutex<Vec<Request>>,
    about_models: Mutex<Vec<(String, Reply)>>,
    has_models: AtomicBool,
    came: Condvar,
    stopped: AtomicBool,
}

/// A server that ends when it is dropped.
pub(crate) struct OpenAi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl OpenAi {
    /// Responds with `replies` in order, and with status 418 after the last.
    pub(crate) fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: std::collections::VecDeque<Reply> = replies.into_iter().collect();
        Self::start(move |_, _| {
            let none = || Reply::error(418, "no_reply", "the test has no reply left");
            replies.pop_front().unwrap_or_else(none)
        })
    }

    /// Calls `script` for each reply, with the number of the request from 0.
    pub(crate) fn start(script: impl FnMut(usize, &Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            requests: Mutex::default(),
            about_models: Mutex::default(),
            has_models: AtomicBool::new(false),
            came: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let state = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { return };
                if state.stopped.load(Ordering::Acquire) {
                    return;
                }
                let state = Arc::clone(&state);
                std::thread::spawn(move || serve(socket, &state));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets the script answer requests about models, such as `/api/show`. Otherwise they get 404 and are not recorded.
    pub(crate) fn with_scripted_models(self) -> Self {
        self.shared.has_models.store(true, Ordering::Release);
        self
    }

    /// Sets the response to a request about models.
    pub(crate) fn about_models(&self, path: &str, reply: Reply) {
        let mut known = self.shared.about_models.lock().unwrap();
        known.insert(0, (path.to_owned(), reply));
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The last request.
    #[track_caller]
    pub(crate) fn last(&self) -> Request {
        self.requests().pop().expect("a request came")
    }

    /// Waits until `count` requests have arrived.
    #[track_caller]
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let requests = self.shared.requests.lock().unwrap();
        let (requests, timeout) = self
            .shared
            .came
            .wait_timeout_while(requests, DEADLINE, |requests| requests.len() < count)
            .unwrap();
        assert!(
            !timeout.timed_out(),
            "{} of {count} requests came",
            requests.len()
        );
    }
}

impl Drop for OpenAi {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        // Unblocks the listener.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

fn serve(mut socket: TcpStream, shared: &Shared) {
    let _ = socket.set_nodelay(true);
    while let Some(request) = read_request(&mut socket) {
        if let Some(reply) = about_models(shared, &request) {
            if write_reply(&mut socket, &reply).is_err() || reply.end != End::Whole {
                return;
            }
            continue;
        }
        // The number equals the index in the list, because one lock covers both.
        let reply = {
            let mut script = shared.script.lock().unwrap();
            let mut requests = shared.requests.lock().unwrap();
            let reply = script(requests.len(), &request);
            requests.push(request);
            shared.came.notify_all();
            reply
        };
        if write_reply(&mut socket, &reply).is_err() || reply.end == End::Cut {
            return;
        }
        if reply.end == End::Hang {
            let mut rest = [0; 64];
            while socket.read(&mut rest).is_ok_and(|count| count > 0) {}
            return;
        }
    }
}

/// The response to a request about models that the script does not get.
fn about_models(shared: &Shared, request: &Request) -> Option<Reply> {
    let asked = request.path.split('?').next()?;
    let known = shared.about_models.lock().unwrap();
    let known = known.iter().find(|(path, _)| path == asked);
    let is_asked = ["/v1/models", "/props", "/api/show"].contains(&asked)
        && !shared.has_models.load(Ordering::Acquire);
    let none = || Reply::error(404, "not_found", "no such path");
    let reply = known.map(|(_, reply)| reply.clone());
    reply.or_else(|| is_asked.then(none))
}

fn read_request(socket: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        read_more(socket, &mut bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap_or(0));
    let mut raw = bytes[head_end + 4..].to_vec();
    while raw.len() < length {
        read_more(socket, &mut raw)?;
    }
    Some(Request {
        path,
        headers,
        raw,
        at: Instant::now(),
    })
}

fn read_more(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 16 * 1024];
    let count = socket.read(&mut buffer).ok().filter(|count| *count > 0)?;
    bytes.extend_from_slice(&buffer[..count]);
    Some(())
}

fn write_reply(socket: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} Status\r\nTransfer-Encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    socket.write_all(head.as_bytes())?;
    for piece in reply.body.chunks(reply.piece) {
        socket.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
        socket.write_all(piece)?;
        socket.write_all(b"\r\n")?;
    }
    if reply.end == End::Whole {
        socket.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}
