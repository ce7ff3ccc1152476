//! The check of URLs before a request, without a lookup of names.
//!
//! The guard checks the URL as the URL standard parses it, because the HTTP client uses the same parser:
//! `https://①②⑦.1/`, `https://0x7f000001/` and `https://2130706433/` are all the address 127.0.0.1 here.

use std::net::IpAddr;

use url::{Host, Url};

use crate::address::AddressRule;
use crate::config::WebConfig;

/// The last labels of names that do not exist on the public Internet.
const LOCAL_ENDINGS: &[&str] = &["localhost", "local", "internal"];
/// The maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;
/// The maximum length of a host name in bytes (RFC 1035, 2.3.4), without the trailing dot.
pub const MAX_NAME_BYTES: usize = 253;

/// A URL that passed all checks that need no lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTarget {
    /// The URL, without a trailing dot of its host and without a fragment.
    pub url: Url,
    /// The host.
    pub host: TargetHost,
}

/// The host of a [`UrlTarget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHost {
    /// A name in lower case, which is not resolved yet.
    Name(String),
    /// An address that passed the check.
    Address(IpAddr),
}

/// The reason why a URL is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    /// It is not a URL.
    #[error("{text:?} is not a URL ({reason}); write it as in https://example.org/page")]
    Invalid {
        /// The text.
        text: String,
        /// The error of the parser.
        reason: url::ParseError,
    },
    /// It is too long.
    #[error("the URL has {bytes} bytes; {limit} is the limit")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The maximum length.
        limit: usize,
    },
    /// It has this scheme.
    #[error("only https:// is allowed, not {0}:")]
    Scheme(String),
    /// It has a user name or a password.
    #[error("a URL with a user name or a password is not allowed")]
    Credentials,
    /// It has no host.
    #[error("the URL has no host")]
    NoHost,
    /// Its host cannot be a name.
    #[error("{0:?} is not the name of a host")]
    HostName(String),
    /// Its host is a name of the local network.
    #[error("{0} is a name of the local network")]
    LocalName(String),
    /// Its host is a name with one part only, which is a name of the local network.
    #[error("{0} is a name of the local network: it has one part only")]
    SinglePart(String),
    /// The address is not on the public Internet.
    #[error("{0} is not an address of the public Internet")]
    Address(IpAddr),
    /// The host is in [`WebConfig::denied_domains`].
    #[error("{0} is one of the denied domains")]
    Denied(String),
    /// The host is not in [`WebConfig::allowed_domains`].
    #[error("{0} is not one of the allowed domains")]
    NotAllowed(String),
}

/// A list of domains in [`WebConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainList {
    /// [`WebConfig::allowed_domains`].
    Allowed,
    /// [`WebConfig::denied_domains`].
    Denied,
}

/// The error of an entry of a list that is not a domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is not a domain; write it as in \"example.org\"")]
pub struct InvalidDomain {
    /// The list.
    pub list: DomainList,
    /// The entry.
    pub entry: String,
}

/// The rules for URLs.
#[derive(Debug, Clone)]
pub struct UrlGuard {
    rule: AddressRule,
    allowed: Vec<Host>,
    denied: Vec<Host>,
}

impl UrlGuard {
    /// Creates a guard for public addresses and the domains of `config`.
    ///
    /// # Errors
    /// [`InvalidDomain`] for an entry of a list that is not a domain.
    pub fn new(config: &WebConfig) -> Result<Self, InvalidDomain> {
        Self::for_rule(config, AddressRule::Public)
    }

    pub(crate) fn for_rule(config: &WebConfig, rule: AddressRule) -> Result<Self, InvalidDomain> {
        Ok(Self {
            rule,
            allowed: domains(DomainList::Allowed, &config.allowed_domains)?,
            denied: domains(DomainList::Denied, &config.denied_domains)?,
        })
    }

    /// Checks a URL as a text, without a lookup of its name.
    ///
    /// # Errors
    /// [`UrlRefusal`] with the reason.
    pub fn check(&self, text: &str) -> Result<UrlTarget, UrlRefusal> {
        let text = text.trim();
        if text.len() > MAX_URL_BYTES {
            return Err(UrlRefusal::TooLong {
                bytes: text.len(),
                limit: MAX_URL_BYTES,
            });
        }
        let url = Url::parse(text).map_err(|reason| UrlRefusal::Invalid {
            text: text.to_owned(),
            reason,
        })?;
        self.check_url(url)
    }

    /// Checks a URL, without a lookup of its name.
    ///
    /// # Errors
    /// [`UrlRefusal`] with the reason.
    pub fn check_url(&self, mut url: Url) -> Result<UrlTarget, UrlRefusal> {
        if url.scheme() != "https" {
            return Err(UrlRefusal::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefusal::Credentials);
        }
        url.set_fragment(None);
        let (host, judged) = match url.host() {
            None => return Err(UrlRefusal::NoHost),
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
            TargetHost::Name(name) => {
                url.set_host(Some(name))
                    .map_err(|reason| UrlRefusal::Invalid {
                        text: url.to_string(),
                        reason,
                    })?
            }
        }
        self.check_domain(&judged)?;
        Ok(UrlTarget { url, host })
    }

    /// Checks an address.
    ///
    /// # Errors
    /// [`UrlRefusal::Address`] if it is not on the public Internet.
    pub fn check_address(&self, address: IpAddr) -> Result<(), UrlRefusal> {
        if self.rule.allows(address) {
            return Ok(());
        }
        Err(UrlRefusal::Address(address))
    }

    fn check_domain(&self, host: &Host) -> Result<(), UrlRefusal> {
        if self.denied.iter().any(|domain| covers(domain, host)) {
            return Err(UrlRefusal::Denied(host.to_string()));
        }
        if self.allowed.is_empty() || self.allowed.iter().any(|domain| covers(domain, host)) {
            return Ok(());
        }
        Err(UrlRefusal::NotAllowed(host.to_string()))
    }
}

/// Returns the name without the trailing dot, if it can be a name of the public Internet.
fn public_name(name: &str) -> Result<&str, UrlRefusal> {
    let bare = name.strip_suffix('.').unwrap_or(name);
    if bare.is_empty() {
        return Err(UrlRefusal::NoHost);
    }
    if bare.len() > MAX_NAME_BYTES
        || bare
            .split('.')
            .any(|label| label.is_empty() || label.len() > 63)
    {
        return Err(UrlRefusal::HostName(name.to_owned()));
    }
    let last = bare.rsplit('.').next().unwrap_or(bare);
    if LOCAL_ENDINGS
        .iter()
        .any(|ending| last.eq_ignore_ascii_case(ending))
    {
        return Err(UrlRefusal::LocalName(bare.to_owned()));
    }
    if !bare.contains('.') {
        return Err(UrlRefusal::SinglePart(bare.to_owned()));
    }
    Ok(bare)
}

/// Parses the entries of a list to the form of hosts in URLs.
fn domains(list: DomainList, entries: &[String]) -> Result<Vec<Host>, InvalidDomain> {
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
            .ok_or_else(|| InvalidDomain {
                list,
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
