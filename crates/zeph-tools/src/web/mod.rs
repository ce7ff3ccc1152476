//! Web tools: `fetch` and `web_scrape`, for pages of the public web over HTTPS (crate `zeph-web`).
//!
//! Neither the configuration nor the environment widens their reach: only tests can replace the rule for addresses, the
//! resolver and the certificates.

use std::sync::Arc;
use std::time::Duration;

use crate::def::{Annotations, Risk};
use crate::error::ToolError;
use crate::tool_set::{Tool, ToolGroup, ToolSet};

mod answer;
pub mod config;
mod error;
mod fetch;
mod refusals;
mod request;
mod scrape;
// Builds without debug assertions cannot replace the rule for addresses.
#[cfg(all(test, debug_assertions))]
mod tests;

pub use config::{DomainError, ScrapeConfig};
pub use refusals::UrlRefusals;
pub use zeph_web::*;

/// The time limit for parsing and searching a page.
const PARSE_TIME: Duration = Duration::from_secs(5);

/// The nature of both tools: they only read, but reach beyond this machine.
const LOOKS_OUT: Annotations = Annotations {
    open_world: true,
    risk: Risk::Medium,
    ..Annotations::READ
};

/// The executor of the web tools.
#[derive(Clone)]
pub struct WebScrapeExecutor {
    tools: ToolSet,
}

impl WebScrapeExecutor {
    /// Creates web tools with the limits of `config`.
    ///
    /// # Errors
    /// [`DomainError`] for an entry of `allowed_domains` or `denied_domains` that is not a domain.
    pub fn new(config: &ScrapeConfig) -> Result<Self, DomainError> {
        Ok(Self::with_client(WebClient::new(&limits(config))?))
    }

    fn with_client(client: WebClient) -> Self {
        let client = Arc::new(client);
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(scrape::ScrapeTool::new(Arc::clone(&client), PARSE_TIME)),
            Arc::new(fetch::FetchTool::new(client, PARSE_TIME)),
        ];
        Self {
            tools: ToolSet::new(tools),
        }
    }
}

impl ToolGroup for WebScrapeExecutor {
    fn tools(&self) -> &ToolSet {
        &self.tools
    }
}

/// The limits of requests.
fn limits(config: &ScrapeConfig) -> WebConfig {
    WebConfig {
        timeout: Duration::from_secs(config.timeout.max(1)),
        max_body_bytes: usize::try_from(config.max_body_bytes).unwrap_or(usize::MAX),
        allowed_domains: config.allowed_domains.clone(),
        denied_domains: config.denied_domains.clone(),
    }
}

/// Runs work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(error::broke_off(&error)),
    }
}
