//! Configuration of the web tools: `[tools.scrape]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far `fetch` and `web_scrape` go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScrapeConfig {
    /// Seconds after which a request is given up, redirects included.
    #[schemars(range(min = 1, max = 600))]
    pub timeout: u64,
    /// Bytes of a page that are read, counted after decompression; what follows is cut.
    #[schemars(range(min = 1024, max = 16_777_216))]
    pub max_body_bytes: u64,
    /// Domains (with all below them) that may be reached; empty means every public one.
    pub allowed_domains: Vec<String>,
    /// Domains (with all below them) that are never reached; stronger than `allowed_domains`.
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
