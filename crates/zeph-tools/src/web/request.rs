//! Requests of calls: the gates check each redirect, and the last host becomes the source of the data.

use std::error::Error;

use zeph_web::{HopRules, HttpPage, MAX_NAME_BYTES, Url, WebClient};

use super::error::tool_error;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::provenance::of_host;

/// Requests `url` and follows redirects. The host of the last checked URL becomes the source of the call, for any
/// outcome.
///
/// # Errors
/// A refused URL, redirect or address; a network failure; a status other than success; a timeout; a cancellation.
pub(super) async fn get(
    client: &WebClient,
    url: &str,
    cx: &CallContext,
) -> Result<HttpPage, ToolError> {
    let rules = CallRules(cx);
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::cancelled()),
        page = client.get_with(url, &rules) => page.map_err(tool_error),
    }
}

/// Records the host of `url` as the source of the data of a call; not for a URL without a host, or with a host that is too
/// long.
pub(super) fn record_source(url: &Url, cx: &CallContext) {
    let host = url.host_str().unwrap_or_default();
    if (1..=MAX_NAME_BYTES).contains(&host.len()) {
        cx.trace().claim_source = Some(of_host(host));
    }
}

/// The gates of a call as rules for redirects.
struct CallRules<'a>(&'a CallContext);

impl HopRules for CallRules<'_> {
    fn visit(&self, url: &Url) {
        record_source(url, self.0);
    }

    fn check_redirect(&self, url: &Url) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.0.judge_redirect(url.as_str())?)
    }
}
