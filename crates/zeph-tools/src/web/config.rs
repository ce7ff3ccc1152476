//! Configuration of the web tools: `[tools.scrape]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_web::{DomainList, InvalidDomain};

/// The error of an entry of `allowed_domains` or `denied_domains` that is not a domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`tools.scrape.{}`: {domain}", key(.domain.list))]
pub struct DomainError {
    domain: InvalidDomain,
}

impl From<InvalidDomain> for DomainError {
    fn from(domain: InvalidDomain) -> Self {
        Self { domain }
    }
}

/// Returns the key of a list in `[tools.scrape]`.
fn key(list: DomainList) -> &'static str {
    match list {
        DomainList::Allowed => "allowed_domains",
        DomainList::Denied => "denied_domains",
    }
}

/// The limits of `fetch` and `web_scrape` (`[tools.scrape]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScrapeConfig {
    /// The time limit of a request in seconds, including redirects.
    #[schemars(range(min = 1, max = 600))]
    pub timeout: u64,
    /// The maximum number of bytes of a page that are read, after decompression; the rest is ignored.
    #[schemars(range(min = 1024, max = 16_777_216))]
    pub max_body_bytes: u64,
    /// Domains (with their subdomains) that may be reached; empty means every public domain.
    pub allowed_domains: Vec<String>,
    /// Domains (with their subdomains) that are never reached; takes precedence over `allowed_domains`.
    pub denied_domains: Vec<String>,
}

impl Default for ScrapeConfig {
    fn default() -> Self {
        Self {
            timeout: 15,
            max_body_bytes: 1 << 20,
            allowed_domains: Vec::new(),
            denied_domains: Vec::new(),
        }
    }
}
