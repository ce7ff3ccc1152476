//! The check of URLs before a request, without a lookup of names.
//!
//! The guard checks the URL as the URL standard parses it, because the HTTP client uses the same parser:
//! `https://①②⑦.1/`, `https://0x7f000001/` and `https://2130706433/` are all the address 127.0.0.1 here.

use std::net::IpAddr;

use url::{Host, Url};

use super::address::AddressRule;
use super::config::ScrapeConfig;

/// The last labels of names that do not exist on the public Internet.
const LOCAL_ENDINGS: &[&str] = &["localhost", "local", "internal"];
/// The maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;
/// The maximum length of a host name in bytes (RFC 1035, 2.3.4), without the trailing dot.
pub(super) const MAX_NAME_BYTES: usize = 253;

/// A URL that passed all checks that need no lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The URL, without a trailing dot of its host and without a fragment.
    pub(super) url: Url,
    /// The host.
    pub(super) host: TargetHost,
}

/// The host of a [`Target`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetHost {
    /// A name in lower case, which is not resolved yet.
    Name(String),
    /// An address that passed the check.
    Address(IpAddr),
}

/// The reason why a URL is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// It is not a URL.
    #[error("{0:?} is no URL ({1}); write it as in https://example.org/page")]
    NoUrl(String, String),
    /// A rule forbids it.
    #[error("{0}")]
    Forbidden(String),
}

/// The error of an entry of `allowed_domains` or `denied_domains` that is not a domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`tools.scrape.{key}`: {entry:?} is no domain; write it as in \"example.org\"")]
pub struct DomainError {
    key: &'static str,
    entry: String,
}

/// The rules for URLs.
#[derive(Debug, Clone)]
pub(super) struct UrlGuard {
    rule: AddressRule,
    allowed: Vec<Host>,
    denied: Vec<Host>,
}

impl UrlGuard {
    /// Creates a guard for `rule` and the domains of `config`.
    pub(super) fn new(config: &ScrapeConfig, rule: AddressRule) -> Result<Self, DomainError> {
        Ok(Self {
            rule,
            allowed: domains("allowed_domains", &config.allowed_domains)?,
            denied: domains("denied_domains", &config.denied_domains)?,
        })
    }

    /// Checks a URL in the form that a model wrote.
    pub(super) fn check(&self, text: &str) -> Result<Target, Refusal> {
        let text = text.trim();
        if text.len() > MAX_URL_BYTES {
            return Err(forbidden(format!(
                "the URL has {} bytes; {MAX_URL_BYTES} is the limit",
                text.len()
            )));
        }
        let url =
            Url::parse(text).map_err(|error| Refusal::NoUrl(text.to_owned(), error.to_string()))?;
        self.check_url(url)
    }

    /// Checks a URL.
    pub(super) fn check_url(&self, mut url: Url) -> Result<Target, Refusal> {
        if url.scheme() != "https" {
            let scheme = url.scheme();
            return Err(forbidden(format!(
                "only https:// is allowed, not {scheme}:"
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(forbidden(
                "a URL with a user name or a password is not allowed",
            ));
        }
        url.set_fragment(None);
        let (host, judged) = match url.host() {
            None => return Err(forbidden("the URL has no host")),
            Some(Host::Domain(name)) => {
                let name = public_name(name)?.to_owned();
                (TargetHost::Name(name.clone()), Host::Domain(name))
            }
            Some(Host::Ipv4(address)) => (TargetHost::Address(address.into()), Host::Ipv4(address)),
            Some(Host::Ipv6(address)) => (TargetHost::Address(address.into()), Host::Ipv6(address)),
        };
        match &host {
            TargetHost::Address(address) => self.check_address(*address)?,
            // A client resolves the name exactly as in the URL, so a trailing dot would miss the pinned
            // addresses.
            TargetHost::Name(name) => url
                .set_host(Some(name))
                .map_err(|error| Refusal::NoUrl(url.to_string(), error.to_string()))?,
        }
        self.check_domain(&judged)?;
        Ok(Target { url, host })
    }

    /// Checks an address.
    pub(super) fn check_address(&self, address: IpAddr) -> Result<(), Refusal> {
        if self.rule.allows(address) {
            return Ok(());
        }
        Err(forbidden(format!(
            "{address} is not an address of the public Internet"
        )))
    }

    fn check_domain(&self, host: &Host) -> Result<(), Refusal> {
        if self.denied.iter().any(|domain| covers(domain, host)) {
            return Err(forbidden(format!(
                "{host} is among `tools.scrape.denied_domains`"
            )));
        }
        if self.allowed.is_empty() || self.allowed.iter().any(|domain| covers(domain, host)) {
            return Ok(());
        }
        Err(forbidden(format!(
            "{host} is not among `tools.scrape.allowed_domains`"
        )))
    }
}

fn forbidden(reason: impl Into<String>) -> Refusal {
    Refusal::Forbidden(reason.into())
}

/// Returns the name without the trailing dot, if it can be a name of the public Internet.
fn public_name(name: &str) -> Result<&str, Refusal> {
    let bare = name.strip_suffix('.').unwrap_or(name);
    if bare.is_empty() {
        return Err(forbidden("the URL has no host"));
    }
    if bare.len() > MAX_NAME_BYTES
        || bare
            .split('.')
            .any(|label| label.is_empty() || label.len() > 63)
    {
        return Err(forbidden(format!("{name:?} is no name of a host")));
    }
    let last = bare.rsplit('.').next().unwrap_or(bare);
    if LOCAL_ENDINGS
        .iter()
        .any(|ending| last.eq_ignore_ascii_case(ending))
    {
        return Err(forbidden(format!("{bare} is a name of the local network")));
    }
    if !bare.contains('.') {
        return Err(forbidden(format!(
            "{bare} is a name of the local network: it has one part only"
        )));
    }
    Ok(bare)
}

/// Parses the entries of a list to the form of hosts in URLs.
fn domains(key: &'static str, entries: &[String]) -> Result<Vec<Host>, DomainError> {
    entries
        .iter()
        .map(|entry| {
            let bare = entry.trim();
            let bare = bare.strip_prefix("*.").unwrap_or(bare);
            let bare = bare.strip_suffix('.').unwrap_or(bare);
            let is_list = bare.contains([' ', ',', '*']);
            match Host::parse(bare) {
                Ok(Host::Domain(name)) if is_list || name.split('.').any(str::is_empty) => None,
                Ok(host) => Some(host),
                Err(_) => None,
            }
            .ok_or_else(|| DomainError {
                key,
                entry: entry.clone(),
            })
        })
        .collect()
}

/// Whether `host` is `domain` or a subdomain of it.
fn covers(domain: &Host, host: &Host) -> bool {
    match (domain, host) {
        (Host::Domain(domain), Host::Domain(name)) => {
            name == domain
                || name
                    .strip_suffix(domain.as_str())
                    .is_some_and(|rest| rest.ends_with('.'))
        }
        _ => domain == host,
    }
}
