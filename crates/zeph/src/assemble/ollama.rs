//! Detection of an Ollama server on this machine, and the choice of its model.
//!
//! The check runs only if nothing names a model. Any program could listen on the port, so the requests are few, have
//! short timeouts, and use loopback only.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use zeph_llm::{ProviderConfig, ProviderKind};

use crate::config::Environment;

/// The port of Ollama, unless `OLLAMA_HOST` names another.
const PORT: u16 = 11434;
/// The time limit of all requests together.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_millis(200);
/// The maximum number of models that are inspected.
const MAX_MODELS: usize = 12;
/// The maximum number of bytes of a response.
const MAX_BYTES: u64 = 4 << 20;

/// The models that a server has (`/api/tags`).
#[derive(Debug, Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Debug, Deserialize)]
struct Tag {
    name: String,
}

/// The capabilities of a model (`/api/show`); older servers do not send them.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct Shown {
    #[serde(default)]
    capabilities: Option<Vec<String>>,
}

impl Shown {
    /// Whether the model has this capability, if that is known.
    fn can(&self, what: &str) -> Option<bool> {
        let known = self.capabilities.as_ref()?;
        Some(known.iter().any(|capability| capability == what))
    }
}

/// A provider for the Ollama on this machine: with the model that is named, or the first one it
/// has that calls tools, or the first that chats.
pub(super) fn find(env: &Environment, model: Option<&str>) -> Option<ProviderConfig> {
    let host = env.var("OLLAMA_HOST").and_then(|host| host.to_str());
    find_at(host.unwrap_or_default(), model)
}

/// Whether an Ollama responds at this address of this machine. Other servers have `/api/tags` too.
pub(crate) fn is_ollama(base_url: &str) -> bool {
    #[derive(Deserialize)]
    struct Version {
        #[allow(dead_code, reason = "the server must have the field")]
        version: String,
    }
    let Some(address) = address(base_url) else {
        return false;
    };
    let server = Server {
        address,
        until: Instant::now() + PATIENCE,
    };
    server.ask::<Version>("GET /api/version", "").is_some()
}

/// A configured provider without a model, with the model that [`find`] would choose on its server. `None` if
/// the server is not on this machine, does not respond, or has no model.
pub(crate) fn with_model(config: &ProviderConfig) -> Option<ProviderConfig> {
    let base_url = config.base_url.as_deref().unwrap_or_default().trim();
    let base_url = base_url.trim_end_matches('/').trim_end_matches("/api");
    let found = find_at(base_url, None)?;
    Some(ProviderConfig {
        model: found.model,
        images: config.images.or(found.images),
        tool_use: config.tool_use.or(found.tool_use),
        ..config.clone()
    })
}

/// The reason why [`with_model`] finds no model, with its remedy.
pub(crate) fn why_no_model(config: &ProviderConfig) -> String {
    let base_url = config.base_url.as_deref().unwrap_or_default().trim();
    let server = base_url.trim_end_matches('/').trim_end_matches("/api");
    match address(server) {
        Some(address) => {
            format!("no Ollama with a model responds at {address}: start it, or set `model`")
        }
        None => {
            "Zeph selects a model automatically only from an Ollama on this machine: set `model`"
                .to_owned()
        }
    }
}

fn find_at(host: &str, model: Option<&str>) -> Option<ProviderConfig> {
    let address = address(host)?;
    let server = Server {
        address,
        until: Instant::now() + PATIENCE,
    };
    let names: Vec<String> = match model {
        Some(name) => server.models().map(|_| vec![name.to_owned()])?,
        None => server.models()?,
    };
    let shown = names.into_iter().take(MAX_MODELS).map(|name| {
        let shown = server.show(&name);
        (name, shown)
    });
    let (name, shown) = choose(shown)?;
    Some(ProviderConfig {
        model: name,
        base_url: Some(format!("http://{address}")),
        images: shown.can("vision").filter(|can| *can),
        tool_use: shown.can("tools").filter(|can| !*can),
        ..ProviderConfig::new("ollama", ProviderKind::Ollama)
    })
}

/// Whether an Ollama on this machine responds and does not have a model of this name. For any other server the result
/// is false.
pub(crate) fn lacks(base_url: &str, model: &str) -> bool {
    let base_url = base_url.trim().trim_end_matches('/');
    let Some(address) = address(base_url.trim_end_matches("/api")) else {
        return false;
    };
    let server = Server {
        address,
        until: Instant::now() + PATIENCE,
    };
    let latest = format!("{model}:latest");
    let has = |names: Vec<String>| names.iter().any(|name| *name == model || *name == latest);
    server.models().is_some_and(|names| !has(names))
}

/// The first model that calls tools, otherwise the first that chats. The models after it are not inspected.
fn choose(models: impl Iterator<Item = (String, Shown)>) -> Option<(String, Shown)> {
    let mut first = None;
    for (name, shown) in models {
        if shown.can("completion") == Some(false) {
            continue;
        }
        if shown.can("tools") == Some(true) {
            return Some((name, shown));
        }
        first = first.or(Some((name, shown)));
    }
    first
}

/// The address that `OLLAMA_HOST` means, if that is on this machine: `host:port`, in the forms
/// that Ollama itself takes. A server that listens everywhere is reached here too.
fn address(host: &str) -> Option<SocketAddr> {
    let host = host.trim();
    let host = host.strip_prefix("http://").unwrap_or(host);
    let host = host.trim_end_matches('/');
    if let Ok(address) = host.parse::<SocketAddr>() {
        return on_this_machine(address.ip(), address.port());
    }
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (host, PORT),
    };
    let ip = match name {
        "" | "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        name => name.parse().ok()?,
    };
    on_this_machine(ip, port)
}

fn on_this_machine(ip: IpAddr, port: u16) -> Option<SocketAddr> {
    let ip = match ip {
        ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    ip.is_loopback().then(|| SocketAddr::new(ip, port))
}

struct Server {
    address: SocketAddr,
    until: Instant,
}

impl Server {
    fn models(&self) -> Option<Vec<String>> {
        let tags: Tags = self.ask("GET /api/tags", "")?;
        Some(tags.models.into_iter().map(|tag| tag.name).collect())
    }

    fn show(&self, model: &str) -> Shown {
        let request = json!({ "model": model }).to_string();
        self.ask("POST /api/show", &request).unwrap_or_default()
    }

    /// Sends one request; `None` unless a valid response arrives in time.
    fn ask<T: DeserializeOwned>(&self, what: &str, body: &str) -> Option<T> {
        let mut socket =
            TcpStream::connect_timeout(&self.address, CONNECT.min(self.left()?)).ok()?;
        socket.set_write_timeout(Some(self.left()?)).ok()?;
        // In HTTP/1.0 the end of the connection ends the response. A server may still keep it open: then the end of
        // the document counts.
        let request = format!(
            "{what} HTTP/1.0\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        socket.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        let mut piece = [0; 16 << 10];
        while answer.len() as u64 <= MAX_BYTES {
            socket.set_read_timeout(Some(self.left()?)).ok()?;
            let count = socket.read(&mut piece).ok()?;
            answer.extend_from_slice(&piece[..count]);
            let found = parse(&answer);
            if found.is_some() || count == 0 {
                return found;
            }
        }
        None
    }

    /// The time that is left, if any.
    fn left(&self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// The document in a response of status 200. Bytes around it, from a server that sends chunks anyway, are ignored.
fn parse<T: DeserializeOwned>(answer: &[u8]) -> Option<T> {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n")?;
    let status = answer.get(..head)?.split(|byte| *byte == b' ').nth(1)?;
    let body = answer.get(head..)?;
    let begin = body.iter().position(|byte| *byte == b'{')?;
    let end = body.iter().rposition(|byte| *byte == b'}')?;
    let document = body.get(begin..=end).filter(|_| status == b"200")?;
    serde_json::from_slice(document).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// Proves LLM-2: only this machine gets requests.
    #[test]
    fn only_loopback_addresses_are_queried() {
        for (host, expect) in [
            ("", Some("127.0.0.1:11434")),
            ("127.0.0.1", Some("127.0.0.1:11434")),
            ("localhost:1234", Some("127.0.0.1:1234")),
            (" http://localhost:1234/ ", Some("127.0.0.1:1234")),
            (":1234", Some("127.0.0.1:1234")),
            ("0.0.0.0", Some("127.0.0.1:11434")),
            ("0.0.0.0:1234", Some("127.0.0.1:1234")),
            ("[::1]:1234", Some("[::1]:1234")),
            ("127.9.9.9:1", Some("127.9.9.9:1")),
            ("192.168.0.1", None),
            ("example.org:11434", None),
            ("https://localhost", None),
            ("localhost:x", None),
            ("localhost.example.org", None),
        ] {
            let found = address(host).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expect, "{host:?}");
        }
    }

    #[test]
    fn missing_model_names_the_server_that_was_asked() {
        let check = |base_url: &str, expect: &str| {
            let config = ProviderConfig {
                base_url: Some(base_url.to_owned()),
                ..ProviderConfig::new("o", ProviderKind::Ollama)
            };
            let reason = why_no_model(&config);
            assert!(reason.contains(expect), "{base_url}: {reason}");
        };
        check(
            "http://localhost:1/api",
            "responds at 127.0.0.1:1: start it",
        );
        check("http://10.0.0.1:1", "only from an Ollama on this machine");
    }

    fn shown(capabilities: Option<&[&str]>) -> Shown {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Shown {
            capabilities: capabilities.map(owned),
        }
    }

    /// Proves LLM-2.
    #[test]
    fn model_with_tools_is_preferred() {
        let chat: Option<&[&str]> = Some(&["completion"]);
        let tools: Option<&[&str]> = Some(&["completion", "tools"]);
        let embedding: Option<&[&str]> = Some(&["embedding"]);
        for (models, expect) in [
            (vec![chat, tools, tools], Some("1")),
            (vec![embedding, chat], Some("1")),
            (vec![None, chat], Some("0")),
            (vec![None, tools], Some("1")),
            (vec![embedding], None),
            (vec![], None),
        ] {
            let numbered = models.iter().enumerate();
            let numbered = numbered.map(|(at, it)| (at.to_string(), shown(*it)));
            let found = choose(numbered).map(|(name, _)| name);
            assert_eq!(found.as_deref(), expect, "{models:?}");
        }
    }

    #[test]
    fn only_complete_responses_are_parsed() {
        let tags = |answer: &str| parse::<Tags>(answer.as_bytes()).map(|tags| tags.models.len());
        let body = "{\"models\":[{\"name\":\"a\",\"size\":1}]}";
        assert_eq!(
            tags(&format!("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{body}")),
            Some(1)
        );
        let chunks = format!(
            "HTTP/1.1 200 OK\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        );
        assert_eq!(tags(&chunks), Some(1));
        for answer in [
            "",
            "HTTP/1.0 200 OK",
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\n}{",
            "HTTP/1.0 404 Not Found\r\n\r\n{\"models\":[]}",
            "HTTP/1.0 200 OK\r\n\r\n{\"other\":[]}",
            "\r\n\r\n\r\n\r\n",
        ] {
            assert_eq!(tags(answer), None, "{answer:?}");
        }
    }
}
