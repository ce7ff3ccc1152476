//! A client for one `GET` of a public page, with checked and pinned addresses and a size limit.
//!
//! Every hop, the first and each redirect, is handled in the same way: [`UrlGuard`] checks the URL, its name is
//! resolved and every address is checked, and a new client can reach only those addresses. The gates that allowed
//! the call also check each redirect (`CallContext::judge_redirect`). Only the URL passes from hop to hop.

use std::net::SocketAddr;
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, ClientBuilder, Response, StatusCode};
use url::Url;
use zeph_backoff::parse_retry_after;

use super::address::AddressRule;
use super::body::essence;
use super::config::ScrapeConfig;
use super::resolve::{HickoryResolver, HostResolver, ResolveError, resolve_and_validate};
use super::url_guard::{DomainError, MAX_NAME_BYTES, Refusal, Target, TargetHost, UrlGuard};
use crate::cache::CacheValidity;
use crate::category::{ToolErrorCategory, classify_http_status};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::provenance::of_host;

/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 3;
/// The time limit for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The response of a server.
#[derive(Debug)]
pub(super) struct HttpPage {
    /// The final URL, after redirects.
    pub(super) url: Url,
    /// The header `Content-Type`, or an empty text.
    pub(super) content_type: String,
    /// The body, decompressed.
    pub(super) body: Vec<u8>,
    /// Whether the body was longer than the limit.
    pub(super) cut: bool,
    /// Whether the server allows the response to be cached.
    pub(super) may_be_kept: bool,
}

impl HttpPage {
    /// Returns the host of the final URL.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the validity of results from this page; `None` if the server forbids caching.
    pub(super) fn basis(&self) -> Option<CacheValidity> {
        self.may_be_kept.then_some(CacheValidity::Remote)
    }

    /// Returns a note if the body was cut.
    pub(super) fn cut_note(&self) -> Option<String> {
        self.cut.then(|| {
            format!(
                "the page is longer: only its first {} bytes were read \
                 (`tools.scrape.max_body_bytes`)",
                self.body.len()
            )
        })
    }

    /// Returns the error for a body of a type that `reads` does not name.
    pub(super) fn unreadable(&self, reads: &str) -> ToolError {
        let kind = match essence(&self.content_type) {
            kind if kind.is_empty() => "of no known type".to_owned(),
            kind => brief(&kind),
        };
        ToolError::permanent(format!("{} is {kind}; {reads}", self.url))
    }
}

/// The root certificates for the check of servers.
#[derive(Clone)]
enum TlsRoots {
    /// The certificates of the machine.
    Platform,
    /// The certificate of a test server only.
    #[cfg(test)]
    Only(reqwest::Certificate),
}

/// A client for pages of the public web.
pub(super) struct WebClient {
    guard: UrlGuard,
    resolver: Arc<dyn HostResolver>,
    roots: TlsRoots,
    timeout: Duration,
    max_body: usize,
}

impl WebClient {
    /// Creates a client with the limits of `config`, which reaches only public addresses.
    pub(super) fn new(config: &ScrapeConfig) -> Result<Self, DomainError> {
        Ok(Self {
            guard: UrlGuard::new(config, AddressRule::Public)?,
            resolver: Arc::new(HickoryResolver::default()),
            roots: TlsRoots::Platform,
            timeout: Duration::from_secs(config.timeout.max(1)),
            max_body: usize::try_from(config.max_body_bytes).unwrap_or(usize::MAX),
        })
    }

    /// Creates a client for a test server.
    #[cfg(test)]
    pub(super) fn for_test(
        config: &ScrapeConfig,
        rule: AddressRule,
        resolver: Arc<dyn HostResolver>,
        root: reqwest::Certificate,
    ) -> Result<Self, DomainError> {
        Ok(Self {
            guard: UrlGuard::new(config, rule)?,
            resolver,
            roots: TlsRoots::Only(root),
            ..Self::new(config)?
        })
    }

    /// Requests `url` and follows redirects. The host of the last checked URL becomes the source of the call, for
    /// any outcome.
    ///
    /// # Errors
    /// A refused URL, redirect or address; a network failure; a status other than success; a timeout; a
    /// cancellation.
    pub(super) async fn get(&self, url: &str, cx: &CallContext) -> Result<HttpPage, ToolError> {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(ToolError::cancelled()),
            answer = tokio::time::timeout(self.timeout, self.follow(url, cx)) => {
                answer.unwrap_or_else(|_| Err(self.timed_out(url)))
            }
        }
    }

    async fn follow(&self, url: &str, cx: &CallContext) -> Result<HttpPage, ToolError> {
        if let Ok(url) = Url::parse(url.trim()) {
            note_source(cx, &url);
        }
        let mut target = self.guard.check(url).map_err(refused)?;
        let mut redirects = 0;
        loop {
            note_source(cx, &target.url);
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
                return Err(ToolError::permanent(format!(
                    "redirect {redirects}, from {} to {}, is not followed: \
                     {MAX_REDIRECTS} is the limit",
                    brief(target.url.as_str()),
                    brief(location.as_str())
                )));
            }
            note_source(cx, &location);
            target = self
                .guard
                .check_url(location.clone())
                .map_err(|refusal| name_hop(redirects, &location, refused(refusal)))?;
            cx.judge_redirect(target.url.as_str())
                .map_err(|refusal| name_hop(redirects, &location, refusal))?;
        }
    }

    /// Requests one URL; a redirect is a response here.
    async fn hop(&self, target: &Target) -> Result<Response, ToolError> {
        let pinned = match &target.host {
            // An address in a URL is used directly, without a lookup.
            TargetHost::Address(_) => None,
            TargetHost::Name(name) => {
                let found = resolve_and_validate(self.resolver.as_ref(), &self.guard, name).await;
                let addresses = found.map_err(|error| match error {
                    ResolveError::NotFound(message) => network(message),
                    ResolveError::Refused(reason) => ToolError::blocked(reason),
                })?;
                // Port 0 means the port of the URL.
                let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0));
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
        request.send().await.map_err(|error| self.failed(&error))
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
            #[cfg(test)]
            TlsRoots::Only(root) => builder.tls_certs_only([root.clone()]),
        }
    }

    /// Reads the body of a success; returns an error for any other status.
    async fn page(&self, url: Url, mut response: Response) -> Result<HttpPage, ToolError> {
        let status = response.status();
        if !status.is_success() {
            let asked = header(&response, RETRY_AFTER)
                .and_then(|said| parse_retry_after(&said, jiff::Timestamp::now()));
            let category = classify_http_status(status.as_u16());
            let message = format!("{url} answers {status}");
            return Err(match asked.filter(|_| category.traits().retryable) {
                Some(retry_after) => ToolError::Deferred {
                    category,
                    message,
                    retry_after,
                },
                None => ToolError::Failed { category, message },
            });
        }
        // reqwest removes the header if it decompresses.
        if let Some(coding) = header(&response, CONTENT_ENCODING)
            && !coding.eq_ignore_ascii_case("identity")
        {
            return Err(ToolError::permanent(format!(
                "{url} is compressed with {:?}, which was not asked for",
                brief(&coding)
            )));
        }
        let content_type = header(&response, CONTENT_TYPE).unwrap_or_default();
        let may_be_kept = !forbids_keeping(&response);
        let mut body = Vec::new();
        let mut cut = false;
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.failed(&error))?
        {
            let room = self.max_body - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                cut = true;
                break;
            }
        }
        Ok(HttpPage {
            url,
            content_type,
            body,
            cut,
            may_be_kept,
        })
    }

    fn timed_out(&self, url: &str) -> ToolError {
        ToolError::Timeout {
            what: format!("the request for {url}"),
            limit: self.timeout,
        }
    }

    /// Converts the failure of a request.
    fn failed(&self, error: &reqwest::Error) -> ToolError {
        let category = if error.is_timeout() {
            ToolErrorCategory::Timeout
        } else if error.is_builder() || is_garbled(error) {
            ToolErrorCategory::PermanentFailure
        } else {
            ToolErrorCategory::NetworkError
        };
        // The server chooses the names in its certificate, so the text is limited.
        let cause: String = innermost(error).chars().take(300).collect();
        let host = error.url().and_then(Url::host_str).unwrap_or("the server");
        ToolError::Failed {
            category,
            message: format!("the request to {host} failed: {cause}"),
        }
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
async fn build(builder: ClientBuilder) -> Result<Client, ToolError> {
    static RING: Once = Once::new();
    RING.call_once(|| {
        // An error means that another provider is already installed, which then serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    super::blocking(move || {
        builder.build().map_err(|error| {
            ToolError::permanent(format!("no HTTPS client: {}", innermost(&error)))
        })
    })
    .await
}

/// Records the host of `url` as the source of the data of the call; not for a URL without a host, or with a host
/// that is too long.
fn note_source(cx: &CallContext, url: &Url) {
    let host = url.host_str().unwrap_or_default();
    if (1..=MAX_NAME_BYTES).contains(&host.len()) {
        cx.trace().claim_source = Some(of_host(host));
    }
}

/// Returns the target of a redirect; `None` for other responses.
fn location(response: &Response) -> Result<Option<Url>, ToolError> {
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
    next.map(Some).map_err(|error| {
        ToolError::permanent(format!(
            "{base} redirects to {:?}, which is no URL: {error}",
            brief(&text)
        ))
    })
}

/// Whether the server forbids a reuse of the response.
fn forbids_keeping(response: &Response) -> bool {
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

fn network(message: String) -> ToolError {
    ToolError::Failed {
        category: ToolErrorCategory::NetworkError,
        message,
    }
}

fn refused(refusal: Refusal) -> ToolError {
    match refusal {
        Refusal::NoUrl(..) => ToolError::invalid(refusal.to_string()),
        Refusal::Forbidden(reason) => ToolError::blocked(reason),
    }
}

/// Adds the number of the redirect to `error`; not for the first URL.
fn name_hop(redirects: usize, url: &Url, mut error: ToolError) -> ToolError {
    if redirects == 0 {
        return error;
    }
    let hop = format!("redirect {redirects}, to {}: ", brief(url.as_str()));
    match &mut error {
        ToolError::Deferred { message, .. } => message.insert_str(0, &hop),
        // The category stays a refusal by the guard, not by the server.
        ToolError::PolicyBlocked { reason } => reason.insert_str(0, &hop),
        _ => {
            return ToolError::Failed {
                category: error.category(),
                message: format!("{hop}{error}"),
            };
        }
    }
    error
}

/// Returns the start of a text from a server, without control characters: errors are outside of the mark that
/// declares pages as data.
fn brief(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

/// Whether a body cannot be decompressed; a body that ends too early is a network failure.
fn is_garbled(error: &reqwest::Error) -> bool {
    let mut inner: Option<&dyn std::error::Error> = Some(error);
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
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
