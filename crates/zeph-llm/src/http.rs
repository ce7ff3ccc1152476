//! Construction of all HTTP clients, with lazy creation.
//!
//! Building a client for `https://` reads the root certificates (figures at [`http_client_builder`]). Therefore a
//! provider builds its client at its first request ([`LazyClient`]), off the threads that drive the terminal. For
//! `http://` no certificate is read.

use std::sync::Once;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Client, ClientBuilder, Response, Url};
use tokio::sync::OnceCell;

use crate::config::RetryConfig;

/// The builder of every client in this crate, for requests to `target`.
///
/// - TLS is rustls with ring, installed once per process (a provider installed earlier stays).
/// - For `https://` the roots are those of the platform (`SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured). reqwest
///   0.13.5 reads them while it builds the client. Measured in a release build with 144 roots: 1 ms from a bundle, 5
///   to 7 ms from a directory, 300 ms from a directory on a cold disk. For `http://` no certificate is ever checked,
///   so the set of roots is empty: 0.1 ms for the first client, 5 µs for the next.
/// - A total timeout would end a healthy stream. Therefore only the connection and the silence between two reads have
///   one.
/// - Redirects are not followed: a `POST` would become a `GET` or take the key elsewhere.
/// - Responses are uncompressed: a compressing proxy delays a stream's events.
/// - Loopback is never reached through a proxy.
pub fn http_client_builder(target: &Url, retry: &RetryConfig) -> ClientBuilder {
    static RING: Once = Once::new();
    RING.call_once(|| {
        // An error means that another crypto provider is already installed, which also works.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    #[allow(clippy::disallowed_methods)] // This is the one builder.
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("zeph/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(retry.connect_timeout_secs.max(1)))
        .read_timeout(Duration::from_secs(retry.read_timeout_secs.max(1)))
        .redirect(reqwest::redirect::Policy::none())
        .gzip(false);
    if target.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(target) {
        builder = builder.no_proxy();
    }
    builder
}

/// The host and port of the proxy that a client of [`http_client_builder`] uses for `target`. `None` if
/// it connects directly, or if the URL is invalid. Reads the proxy variables of the environment, as
/// reqwest does.
#[must_use]
pub fn proxy_for(target: &str) -> Option<String> {
    let target = Url::parse(target).ok()?;
    if is_loopback(&target) {
        return None;
    }
    let uri = target.as_str().parse().ok()?;
    // reqwest builds its clients with this matcher.
    let proxy = Matcher::from_system().intercept(&uri)?;
    let uri = proxy.uri();
    let port = uri.port_u16().unwrap_or(match uri.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => 1080,
    });
    Some(format!("{}:{port}", uri.host()?))
}

/// A client that is built at its first use.
#[derive(Debug, Default)]
pub struct LazyClient(OnceCell<Client>);

impl LazyClient {
    /// The client for `target`, built by the first call.
    ///
    /// # Errors
    /// The error of reqwest if there are no root certificates for `https://`. The next call tries again.
    pub async fn get(&self, target: &Url, retry: &RetryConfig) -> Result<&Client, reqwest::Error> {
        let build = async || {
            let builder = http_client_builder(target, retry);
            if target.scheme() == "http" {
                return builder.build();
            }
            match tokio::task::spawn_blocking(move || builder.build()).await {
                Ok(built) => built,
                // The thread pool is closed: the runtime shuts down, or the thread panicked.
                Err(_) => http_client_builder(target, retry).build(),
            }
        };
        self.0.get_or_try_init(build).await
    }
}

/// Reads at most `limit` bytes of a body; the rest is not read. A broken connection ends it.
pub(crate) async fn read_capped(mut response: Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < limit {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = limit - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(None) | Err(_) => break,
        }
    }
    body
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn loopback_is_recognized() {
        for (url, expect) in [
            ("http://localhost:11434/v1", true),
            ("http://127.0.0.1:8080", true),
            ("http://127.8.9.1/", true),
            ("http://[::1]:8080/", true),
            ("http://10.0.0.1/", false),
            ("https://localhost.example.org/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expect, "{url}");
        }
    }

    #[test]
    fn plain_http_client_builds_without_certificates() {
        let url = Url::parse("http://127.0.0.1:1/").unwrap();
        http_client_builder(&url, &RetryConfig::default())
            .build()
            .unwrap();
    }
}
