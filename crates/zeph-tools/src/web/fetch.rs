//! The tool `fetch`: reads a page of the public web.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use zeph_web::{BodyKind, HtmlDocument, HttpPage, PageError, PageLimit, WebClient};

use super::answer::{MAX_CONTENT, cut_note, head, unreadable, untrusted, validity};
use super::error::page_error;
use super::{LOOKS_OUT, blocking, request};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::gate::ToolTarget;
use crate::output::ToolOutput;
use crate::provenance::of_host;
use crate::tool_set::Tool;

/// The maximum size of a title in bytes.
const MAX_TITLE_BYTES: usize = 300;

/// Parameters of `fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FetchParams {
    url: String,
}

/// The tool `fetch`.
pub(super) struct FetchTool {
    client: Arc<WebClient>,
    definition: ToolDef,
    time: Duration,
}

impl FetchTool {
    /// Creates the tool; it processes a page for at most `time`.
    pub(super) fn new(client: Arc<WebClient>, time: Duration) -> Self {
        Self {
            client,
            definition: ToolDef::new::<FetchParams>(
                "fetch",
                "Read a public https:// page, not a local one.",
                LOOKS_OUT,
            )
            .with_cache(CachePolicy::CACHED)
            .with_param_aliases(&[("uri", "url"), ("link", "url")])
            .about(ToolTarget::Url("url")),
            time,
        }
    }
}

#[async_trait]
impl Tool for FetchTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: FetchParams = call.parse()?;
        let page = request::get(&self.client, &params.url, cx).await?;
        let limit = PageLimit::new(cx.cancel.clone(), self.time);
        blocking(move || read(&page, &limit)).await
    }
}

/// Converts a page to a result.
fn read(page: &HttpPage, limit: &PageLimit) -> Result<ToolOutput, ToolError> {
    let (title, text) = match page.kind() {
        BodyKind::Other => return Err(unreadable(page, "fetch reads HTML, JSON and text")),
        BodyKind::Html => read_html(page, limit).map_err(page_error)?,
        BodyKind::Text => (None, page.text()),
    };
    let shown = head(&text, MAX_CONTENT);
    let mut notes = Vec::new();
    if shown.len() < text.len() {
        notes.push(format!(
            "only the first {} bytes are shown; web_scrape returns parts of a page",
            shown.len()
        ));
    }
    notes.extend(cut_note(page));
    let mut content = page.url.to_string();
    if let Some(title) = &title {
        content.push_str("\nTitle: ");
        content.push_str(title);
    }
    content.push_str("\n\n");
    content.push_str(if shown.trim().is_empty() {
        "(no text)"
    } else {
        shown
    });
    let raw = json!({
        "url": page.url.as_str(),
        "content_type": page.media_type(),
        "title": title,
        "text": shown,
        "truncated": !notes.is_empty(),
        "claim_source": of_host(page.host()),
    });
    Ok(ToolOutput::text(untrusted(page.host(), &content, &notes))
        .with_raw(raw)
        .with_cache_validity(validity(page)))
}

/// Returns the title of a page, and the page as Markdown.
fn read_html(page: &HttpPage, limit: &PageLimit) -> Result<(Option<String>, String), PageError> {
    let document = HtmlDocument::parse(&page.text(), limit)?;
    let title = document.title(MAX_TITLE_BYTES, limit)?;
    let text = document.markdown(&document.base(&page.url), MAX_CONTENT, limit)?;
    Ok((title, text))
}
