//! A collector on loopback that stores each request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The response to each request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Behaviour {
    Accepts,
    Fails,
    /// No response; the connection stays open.
    Hangs,
}

/// A stored request.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

pub(super) struct Collector {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    pub(super) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                std::thread::spawn(move || serve(stream, behaviour, &all));
            }
        });
        Self { port, received }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The bodies for a path.
    pub(super) fn bodies(&self, path: &str) -> Vec<Vec<u8>> {
        let received = self.received().into_iter();
        let of_path = received.filter(|one| one.path == path);
        of_path.map(|one| one.body).collect()
    }

    /// All received bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let parts = self.received().into_iter();
        let parts = parts.flat_map(|one| [one.head.into_bytes(), one.body]);
        parts.flatten().collect()
    }
}

/// Reads requests until the client closes the connection.
fn serve(stream: TcpStream, behaviour: Behaviour, all: &Mutex<Vec<Received>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line == "\r\n" => break,
                Ok(_) => head.push_str(&line),
            }
        }
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(0, |(_, value)| value.trim().parse().unwrap());
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let path = head
            .split_whitespace()
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        all.lock().unwrap().push(Received { path, head, body });
        let status = match behaviour {
            Behaviour::Accepts => "200 OK",
            Behaviour::Fails => "500 Internal Server Error",
            Behaviour::Hangs => continue,
        };
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}
