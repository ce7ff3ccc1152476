//! The constructor of HTTP clients for servers. Requests of a login use the client of the protocol library.

use std::sync::Once;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 3;

/// Whether an address is `http` or `https`. No other address may be opened in a browser.
#[must_use]
pub fn is_web(url: &str) -> bool {
    let parsed = Url::parse(url);
    parsed.is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// A client for the server at `url`. Redirects to another origin are refused: the headers are for this one. There is
/// no limit to silence, since a server may have nothing to send for hours.
///
/// # Errors
/// The reason why the client cannot be built.
pub(crate) async fn client(url: &str, connect_timeout: Duration) -> Result<Client, String> {
    let target = Url::parse(url).map_err(|_| "its `url` is not an address".to_owned())?;
    if target.scheme() == "http" {
        // No certificates are read.
        let built = builder(&target, connect_timeout).build();
        return built.map_err(|error| error.to_string());
    }
    let built = tokio::task::spawn_blocking(move || builder(&target, connect_timeout).build());
    match built.await {
        Ok(built) => built.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn builder(target: &Url, connect_timeout: Duration) -> ClientBuilder {
    static RING: Once = Once::new();
    RING.call_once(|| {
        // An error means that another crypto provider is already installed, which also works.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    #[allow(clippy::disallowed_methods, reason = "the one builder of this crate")]
    let mut builder = Client::builder()
        .user_agent(concat!("zeph/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .gzip(false)
        .redirect(Policy::custom(|attempt| {
            let from = attempt.previous().first().map(Url::origin);
            if attempt.previous().len() > MAX_REDIRECTS {
                attempt.error("it redirects too often")
            } else if from.is_none_or(|from| from != attempt.url().origin()) {
                attempt.error("it redirects to another server, which is refused")
            } else {
                attempt.follow()
            }
        }));
    if target.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(target) {
        builder = builder.no_proxy();
    }
    builder
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
