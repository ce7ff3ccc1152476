//! The tool `fetch`: reads a page of the public web.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use scrape_core::{Document, NodeId};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::answer::{MAX_CONTENT, head, untrusted};
use super::body::{Kind, decode, essence, kind};
use super::client::{HttpPage, WebClient};
use super::html::{attribute, name, parse};
use super::limit::Limit;
use super::render::{markdown, plain};
use super::{LOOKS_OUT, blocking};
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
        let page = self.client.get(&params.url, cx).await?;
        let limit = Limit::new(cx.cancel.clone(), self.time);
        blocking(move || read(&page, &limit)).await
    }
}

/// Converts a page to a result.
fn read(page: &HttpPage, limit: &Limit) -> Result<ToolOutput, ToolError> {
    let kind = kind(&page.content_type, &page.body);
    let text = match kind {
        Kind::Other => return Err(page.unreadable("fetch reads HTML, JSON and text")),
        Kind::Html | Kind::Text => decode(&page.body, &page.content_type, kind, page.cut),
    };
    let (title, text) = match kind {
        Kind::Html => {
            let document = parse(&text, limit)?;
            let base = base(&document, &page.url);
            let title = title(&document, limit)?;
            let text = match document.root() {
                Some(root) => markdown(&document, root, &base, MAX_CONTENT, limit)?,
                None => String::new(),
            };
            (title, text)
        }
        Kind::Text | Kind::Other => (None, text),
    };
    let shown = head(&text, MAX_CONTENT);
    let mut notes = Vec::new();
    if shown.len() < text.len() {
        notes.push(format!(
            "only the first {} bytes are shown; web_scrape gets single parts of a page",
            shown.len()
        ));
    }
    notes.extend(page.cut_note());
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
        "content_type": essence(&page.content_type),
        "title": title,
        "text": shown,
        "truncated": !notes.is_empty(),
        "claim_source": of_host(page.host()),
    });
    Ok(ToolOutput::text(untrusted(page.host(), &content, &notes))
        .with_raw(raw)
        .with_cache_validity(page.basis()))
}

/// Returns the base of relative links: `<base href>`, or the URL of the page.
fn base(document: &Document, url: &Url) -> Url {
    first(document, "base")
        .and_then(|id| attribute(document, id, "href"))
        .and_then(|href| url.join(href).ok())
        .unwrap_or_else(|| url.clone())
}

/// Returns the title of a page, in one line.
fn title(document: &Document, limit: &Limit) -> Result<Option<String>, ToolError> {
    let Some(id) = first(document, "title") else {
        return Ok(None);
    };
    let text = plain(document, id, MAX_TITLE_BYTES, limit)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let title = words.join(" ");
    Ok((!title.is_empty()).then(|| head(&title, MAX_TITLE_BYTES).to_owned()))
}

/// Returns the first element with this name.
fn first(document: &Document, wanted: &str) -> Option<NodeId> {
    let mut all = document.descendants(document.root()?);
    all.find(|id| name(document, *id) == wanted)
}
