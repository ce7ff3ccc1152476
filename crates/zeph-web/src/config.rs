//! The limits of requests.

use std::time::Duration;

/// The limits of a [`WebClient`](crate::WebClient). They only restrict it further: no value permits other than public
/// addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebConfig {
    /// The time limit of a request with its redirects.
    pub timeout: Duration,
    /// The maximum size of a body in bytes, after decompression; the rest is cut.
    pub max_body_bytes: usize,
    /// The domains, with their subdomains, that may be reached; empty means every public one.
    pub allowed_domains: Vec<String>,
    /// The domains, with their subdomains, that are never reached; stronger than `allowed_domains`.
    pub denied_domains: Vec<String>,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15),
            max_body_bytes: 1 << 20,
            allowed_domains: Vec::new(),
            denied_domains: Vec::new(),
        }
    }
}
