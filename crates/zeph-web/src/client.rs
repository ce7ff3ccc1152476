//! A client for one `GET` of a public page, with checked and pinned addresses and a size limit.
//!
//! Every hop, the first and each redirect, is handled in the same way: [`UrlGuard`] checks the URL, its name is
//! resolved and every address is checked, and a new client can reach only those addresses. [`HopRules`] of the caller
//! also check each redirect. Only the URL passes from hop to hop.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, ClientBuilder, Response, StatusCode};
use url::Url;

#[cfg(debug_assertions)]
use crate::address::AddressRule;
use crate::config::WebConfig;
use crate::error::{RequestErrorKind, WebError};
use crate::page::HttpPage;
use crate::resolve::{HickoryResolver, HostResolver, resolve_and_validate};
use crate::text::printable_start;
use crate::url_guard::{InvalidDomain, TargetHost, UrlGuard, UrlTarget};

/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 3;
/// The time limit for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Rules of the caller for the hops of a request, in addition to those of the client.
pub trait HopRules: Send + Sync {
    /// Receives the URL of each hop before its check, and again before its request.
    fn visit(&self, url: &Url) {
        let _ = url;
    }

    /// Decides about a redirect that the guard allows.
    ///
    /// # Errors
    /// The refusal, which becomes [`WebError::RefusedByCaller`].
    fn check_redirect(&self, url: &Url) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _ = url;
        Ok(())
    }
}

/// The rules of a caller without rules.
struct NoHopRules;

impl HopRules for NoHopRules {}

/// The root certificates for the check of servers.
#[derive(Clone)]
enum TlsRoots {
    /// The certificates of the machine.
    Platform,
    /// The certificate of a test server only.
    #[cfg(debug_assertions)]
    Only(reqwest::Certificate),
}

/// A client for pages of the public web.
pub struct WebClient {
    guard: UrlGuard,
    resolver: Arc<dyn HostResolver>,
    roots: TlsRoots,
    timeout: Duration,
    max_body: usize,
}

impl WebClient {
    /// Creates a client with the limits of `config`, which reaches only public addresses.
    ///
    /// # Errors
    /// [`InvalidDomain`] for an entry of a list that is not a domain.
    pub fn new(config: &WebConfig) -> Result<Self, InvalidDomain> {
        Ok(Self {
            guard: UrlGuard::new(config)?,
            resolver: Arc::new(HickoryResolver::default()),
            roots: TlsRoots::Platform,
            timeout: config.timeout,
            max_body: config.max_body_bytes,
        })
    }

    /// Creates a client for a test server.
    #[cfg(debug_assertions)]
    pub(crate) fn for_test(
        config: &WebConfig,
        rule: AddressRule,
        resolver: Arc<dyn HostResolver>,
        root: reqwest::Certificate,
    ) -> Result<Self, InvalidDomain> {
        Ok(Self {
            guard: UrlGuard::for_rule(config, rule)?,
            resolver,
            roots: TlsRoots::Only(root),
            ..Self::new(config)?
        })
    }

    /// Requests `url` and follows redirects.
    ///
    /// # Errors
    /// [`WebError`]: a refused URL, redirect or address; a network failure; a status other than success; a timeout.
    pub async fn get(&self, url: &str) -> Result<HttpPage, WebError> {
        self.get_with(url, &NoHopRules).await
    }

    /// Requests `url` and follows the redirects that `rules` allow as well.
    ///
    /// # Errors
    /// Those of [`WebClient::get`], and refusals by `rules`.
    pub async fn get_with(&self, url: &str, rules: &dyn HopRules) -> Result<HttpPage, WebError> {
        match tokio::time::timeout(self.timeout, self.follow(url, rules)).await {
            Ok(result) => result,
            Err(_) => Err(WebError::Timeout {
                url: url.to_owned(),
                limit: self.timeout,
            }),
        }
    }

    async fn follow(&self, url: &str, rules: &dyn HopRules) -> Result<HttpPage, WebError> {
        if let Ok(url) = Url::parse(url.trim()) {
            rules.visit(&url);
        }
        let mut target = self.guard.check(url).map_err(WebError::Refused)?;
        let mut redirects = 0;
        loop {
            rules.visit(&target.url);
            let hop = self.hop(&target).await;
            let response = hop.map_err(|error| name_hop(redirects, &target.url, error))?;
            let Some(location) = location(&response)? else {
                return self
                    .page(target.url.clone(), response)
                    .await
                    .map_err(|error| name_hop(redirects, &target.url, error));
            };
            redirects += 1;
            if redirects > MAX_REDIRECTS {
                return Err(WebError::TooManyRedirects {
                    number: redirects,
                    from: printable_start(target.url.as_str()),
                    to: printable_start(location.as_str()),
                });
            }
            rules.visit(&location);
            let checked = self.guard.check_url(location.clone());
            target = checked
                .map_err(|refusal| name_hop(redirects, &location, WebError::Refused(refusal)))?;
            rules.check_redirect(&target.url).map_err(|refusal| {
                name_hop(redirects, &location, WebError::RefusedByCaller(refusal))
            })?;
        }
    }

    /// Requests one URL; a redirect is a response here.
    async fn hop(&self, target: &UrlTarget) -> Result<Response, WebError> {
        let pinned = match &target.host {
            // An address in a URL is used directly, without a lookup.
            TargetHost::Address(_) => None,
            TargetHost::Name(name) => {
                let found = resolve_and_validate(self.resolver.as_ref(), &self.guard, name).await?;
                // Port 0 means the port of the URL.
                let addresses = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
                Some((name.clone(), addresses.collect::<Vec<_>>()))
            }
        };
        let mut builder = self.builder();
        if let Some((name, addresses)) = &pinned {
            builder = builder.resolve_to_addrs(name, addresses);
        }
        let client = build(builder).await?;
        let request = client.get(target.url.clone()).header(
            ACCEPT,
            "text/html,application/xhtml+xml,application/json,text/*;q=0.9,*/*;q=0.1",
        );
        request.send().await.map_err(|error| failed(&error))
    }

    fn builder(&self) -> ClientBuilder {
        #[allow(
            clippy::disallowed_methods,
            reason = "the one builder for pages of the public web"
        )]
        let builder = Client::builder()
            .user_agent(concat!("zeph/", env!("CARGO_PKG_VERSION")))
            .https_only(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .dns_resolver(NoOtherName)
            .connect_timeout(CONNECT_TIME.min(self.timeout));
        match &self.roots {
            TlsRoots::Platform => builder,
            #[cfg(debug_assertions)]
            TlsRoots::Only(root) => builder.tls_certs_only([root.clone()]),
        }
    }

    /// Reads the body of a success; returns an error for any other status.
    async fn page(&self, url: Url, mut response: Response) -> Result<HttpPage, WebError> {
        let status = response.status();
        if !status.is_success() {
            return Err(WebError::Status {
                url,
                status,
                retry_after: header(&response, RETRY_AFTER),
            });
        }
        // reqwest removes the header if it decompresses.
        if let Some(coding) = header(&response, CONTENT_ENCODING)
            && !coding.eq_ignore_ascii_case("identity")
        {
            let coding = printable_start(&coding);
            return Err(WebError::Coding { url, coding });
        }
        let content_type = header(&response, CONTENT_TYPE).unwrap_or_default();
        let is_cacheable = !forbids_caching(&response);
        let mut body = Vec::new();
        let mut is_cut = false;
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            let room = self.max_body - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                is_cut = true;
                break;
            }
        }
        Ok(HttpPage {
            url,
            content_type,
            body,
            is_cut,
            is_cacheable,
        })
    }
}

/// Converts the failure of a request.
fn failed(error: &reqwest::Error) -> WebError {
    let kind = if error.is_timeout() {
        RequestErrorKind::Timeout
    } else if error.is_builder() || is_garbled(error) {
        RequestErrorKind::Invalid
    } else {
        RequestErrorKind::Network
    };
    let host = error.url().and_then(Url::host_str).unwrap_or("the server");
    WebError::Request {
        host: host.to_owned(),
        kind,
        // The server chooses the names in its certificate, so the text is limited.
        cause: innermost(error).chars().take(300).collect(),
    }
}

/// The resolver behind the pinned addresses: it does not find any other name.
struct NoOtherName;

impl Resolve for NoOtherName {
    fn resolve(&self, name: Name) -> Resolving {
        let message = format!("{} was not resolved for this request", name.as_str());
        Box::pin(std::future::ready(Err(message.into())))
    }
}

/// Builds a client on a blocking thread, because that reads the certificates of the machine.
async fn build(builder: ClientBuilder) -> Result<Client, WebError> {
    static RING: Once = Once::new();
    RING.call_once(|| {
        // An error means that another provider is already installed, which then serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    match tokio::task::spawn_blocking(move || builder.build()).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(WebError::Client(innermost(&error))),
        Err(error) => Err(WebError::Defect(error)),
    }
}

/// Returns the target of a redirect; `None` for other responses.
fn location(response: &Response) -> Result<Option<Url>, WebError> {
    let status = response.status();
    let redirects = matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let (true, Some(value)) = (redirects, response.headers().get(LOCATION)) else {
        return Ok(None);
    };
    let base = response.url();
    let text = String::from_utf8_lossy(value.as_bytes());
    let next = base.join(text.trim());
    next.map(Some).map_err(|error| WebError::InvalidRedirect {
        from: base.clone(),
        to: printable_start(&text),
        error,
    })
}

/// Whether the server forbids a reuse of the response.
fn forbids_caching(response: &Response) -> bool {
    let said = response.headers().get_all(CACHE_CONTROL).iter();
    let said = said.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    said.flat_map(|value| {
        value
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect::<Vec<_>>()
    })
    .any(|part| matches!(part.as_str(), "no-store" | "no-cache" | "max-age=0"))
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Adds the number of the redirect to `error`; not for the first URL.
fn name_hop(redirects: usize, url: &Url, error: WebError) -> WebError {
    if redirects == 0 {
        return error;
    }
    WebError::Redirect {
        number: redirects,
        url: printable_start(url.as_str()),
        error: Box::new(error),
    }
}

/// Whether a body cannot be decompressed; a body that ends too early is a network failure.
fn is_garbled(error: &reqwest::Error) -> bool {
    let mut inner: Option<&dyn Error> = Some(error);
    while let Some(error) = inner {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            let kind = error.kind();
            return matches!(
                kind,
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput
            );
        }
        inner = error.source();
    }
    false
}

/// Returns the innermost error, which is the most specific one.
fn innermost(error: &reqwest::Error) -> String {
    let mut inner: &dyn Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
