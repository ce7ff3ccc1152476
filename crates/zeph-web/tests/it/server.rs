//! A TLS server on loopback, and a resolver for its names; for the tests of this crate and of zeph-tools.
#![allow(dead_code, reason = "each crate uses a part of it")]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use zeph_web::testing::{AddressRule, HostResolver, client};
use zeph_web::{WebClient, WebConfig};

pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// The response of the server to a path.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// A head, then a byte every twenty milliseconds, without an end.
    Trickle,
    /// No response; the connection stays open.
    Silence,
    /// These responses in sequence; the last one repeats.
    Turns(Vec<Answer>),
}

pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut bytes = bytes.into_bytes();
    bytes.extend_from_slice(b"connection: close\r\n\r\n");
    bytes.extend_from_slice(body);
    Answer::Bytes(bytes)
}

pub(crate) fn page(html: impl AsRef<[u8]>) -> Answer {
    answer(
        "200 OK",
        &[("content-type", "text/html; charset=utf-8")],
        html,
    )
}

pub(crate) fn redirect(to: &str) -> Answer {
    answer("302 Found", &[("location", to), ("set-cookie", "a=b")], "")
}

/// A resolver with a list of results for each name, used in sequence; the last one repeats.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn set(&self, name: &str, answers: &[&[IpAddr]]) {
        let answers = answers.iter().map(|list| list.to_vec()).collect();
        self.answers
            .lock()
            .unwrap()
            .insert(name.to_owned(), answers);
    }
}

#[async_trait]
impl HostResolver for Names {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let lists = answers.get_mut(name).ok_or("name does not exist")?;
        Ok(if lists.len() > 1 {
            lists.remove(0)
        } else {
            lists[0].clone()
        })
    }
}

/// The server with its names and responses.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) names: Arc<Names>,
    pub(crate) connections: Arc<AtomicUsize>,
    /// The heads of requests, in lower case.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    root: Vec<u8>,
}

impl Server {
    /// Starts a server for `site.test.org` and `other.test.org`.
    pub(crate) async fn start() -> Self {
        let names = ["site.test.org".to_owned(), "other.test.org".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let root = made.cert.der().to_vec();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            names: Arc::default(),
            connections: Arc::default(),
            requests: Arc::default(),
            answers: Arc::default(),
            root,
        };
        server.names.set("site.test.org", &[&[LOOPBACK]]);
        server.names.set("other.test.org", &[&[LOOPBACK]]);
        let (connections, requests, answers) = (
            Arc::clone(&server.connections),
            Arc::clone(&server.requests),
            Arc::clone(&server.answers),
        );
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (acceptor, requests, answers) = (
                    acceptor.clone(),
                    Arc::clone(&requests),
                    Arc::clone(&answers),
                );
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    let head = String::from_utf8_lossy(&head).to_lowercase();
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    requests.lock().unwrap().push(head);
                    let found = match answers.lock().unwrap().get_mut(&path) {
                        Some(Answer::Turns(turns)) if turns.len() > 1 => Some(turns.remove(0)),
                        Some(Answer::Turns(turns)) => turns.first().cloned(),
                        found => found.cloned(),
                    };
                    match found.unwrap_or_else(|| answer("404 Not Found", &[], "")) {
                        Answer::Bytes(bytes) => {
                            let _ = stream.write_all(&bytes).await;
                            let _ = stream.shutdown().await;
                        }
                        Answer::Trickle => {
                            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
                            let _ = stream.write_all(head).await;
                            while stream.write_all(b"x").await.is_ok() {
                                let _ = stream.flush().await;
                                tokio::time::sleep(Duration::from_millis(20)).await;
                            }
                        }
                        Answer::Silence | Answer::Turns(_) => {
                            let _ = stream.read_u8().await;
                        }
                    }
                });
            }
        });
        server
    }

    pub(crate) fn on(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://site.test.org:{}{path}", self.port)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Creates a client that resolves the names of the server, and trusts only its certificate.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one client of tests that reaches a server on loopback"
    )]
    pub(crate) fn client(&self, config: &WebConfig, rule: AddressRule) -> WebClient {
        let names = Arc::clone(&self.names);
        client(config, rule, names, &self.root).unwrap()
    }
}
