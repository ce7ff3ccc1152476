//! The tool `web_scrape`: the parts of a page that a CSS selector matches.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use scrape_core::{Document, NodeId};
use serde::Deserialize;
use serde_json::json;

use super::answer::{MAX_CONTENT, head, untrusted};
use super::body::{Kind, decode, kind};
use super::client::{HttpPage, WebClient};
use super::html::{attribute, outer_html, parse};
use super::limit::Limit;
use super::render::plain;
use super::select::Selector;
use super::{LOOKS_OUT, blocking};
use crate::call::ToolCall;
use crate::context::CallContext;
use crate::def::{CachePolicy, ToolDef};
use crate::error::ToolError;
use crate::gate::ToolTarget;
use crate::output::ToolOutput;
use crate::plural::counted_as;
use crate::provenance::of_host;
use crate::tool_set::Tool;

/// The default number of matches.
const DEFAULT_LIMIT: usize = 10;
/// The maximum number of matches.
const MAX_MATCHES: usize = 1000;

/// Parameters of `web_scrape`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScrapeParams {
    url: String,
    select: String,
    /// text, html, attr:NAME
    extract: Option<String>,
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// The extracted part of a match.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Extract {
    Text,
    Html,
    Attribute(String),
}

impl Extract {
    fn parse(text: Option<&str>) -> Result<Self, ToolError> {
        let text = text.unwrap_or("text").trim();
        match text.split_once(':') {
            None if text.eq_ignore_ascii_case("text") => Ok(Self::Text),
            None if text.eq_ignore_ascii_case("html") => Ok(Self::Html),
            Some((kind, name)) if kind.eq_ignore_ascii_case("attr") && !name.trim().is_empty() => {
                Ok(Self::Attribute(name.trim().to_ascii_lowercase()))
            }
            _ => Err(ToolError::invalid(format!(
                "`extract` is `text`, `html` or `attr:NAME` (as in `attr:href`), not {text:?}"
            ))),
        }
    }
}

/// The tool `web_scrape`.
pub(super) struct ScrapeTool {
    client: Arc<WebClient>,
    definition: ToolDef,
    time: Duration,
}

impl ScrapeTool {
    /// Creates the tool; it processes a page for at most `time`.
    pub(super) fn new(client: Arc<WebClient>, time: Duration) -> Self {
        Self {
            client,
            definition: ToolDef::new::<ScrapeParams>(
                "web_scrape",
                "Parts of a https:// page by CSS selector; else fetch.",
                LOOKS_OUT,
            )
            .with_cache(CachePolicy::CACHED)
            .with_fence("scrape")
            .with_param_aliases(&[("selector", "select"), ("css", "select"), ("uri", "url")])
            .about(ToolTarget::Url("url")),
            time,
        }
    }
}

#[async_trait]
impl Tool for ScrapeTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    async fn run(&self, call: &ToolCall, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let params: ScrapeParams = call.parse()?;
        // Invalid arguments are reported before any request.
        let extract = Extract::parse(params.extract.as_deref())?;
        let most = params.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_MATCHES);
        if most == 0 {
            return Err(ToolError::invalid("`limit` begins at 1"));
        }
        let selector = Selector::parse(&params.select)?;
        let page = self.client.get(&params.url, cx).await?;
        let limit = Limit::new(cx.cancel.clone(), self.time);
        blocking(move || scrape(&page, &params.select, &selector, &extract, most, &limit)).await
    }
}

/// The matches of a selector.
struct Found {
    /// The extracted parts of the first matches.
    taken: Vec<String>,
    /// The number of all matches.
    total: usize,
    /// The number of matches without the requested attribute, up to the limit.
    without: usize,
    /// Whether matches were omitted because there was too much text.
    full: bool,
}

fn scrape(
    page: &HttpPage,
    select: &str,
    selector: &Selector,
    extract: &Extract,
    most: usize,
    limit: &Limit,
) -> Result<ToolOutput, ToolError> {
    if kind(&page.content_type, &page.body) != Kind::Html {
        return Err(page.unreadable("web_scrape reads HTML; fetch reads JSON and text as well"));
    }
    let text = decode(&page.body, &page.content_type, Kind::Html, page.cut);
    let document = parse(&text, limit)?;
    let found = find(&document, selector, extract, most, limit)?;

    let mut content = format!("{}\n", page.url);
    if found.total == 0 {
        let _ = write!(content, "\nNo element matches {select:?}.");
    }
    for (at, match_) in found.taken.iter().enumerate() {
        let _ = write!(content, "\n[{}] {match_}", at + 1);
    }
    let mut notes = Vec::new();
    if found.total > 0 {
        let (shown, total) = (found.taken.len(), found.total);
        let more = if found.full {
            "; there is too much text to show more"
        } else if shown + found.without < total {
            "; set `limit` to see more"
        } else {
            ""
        };
        notes.push(format!("{shown} of {total} matches are shown{more}"));
        if let (Extract::Attribute(name), 1..) = (extract, found.without) {
            let without = counted_as(found.without, "match has", "matches have");
            notes.push(format!("{without} no `{name}`"));
        }
    }
    notes.extend(page.cut_note());
    let raw = json!({
        "url": page.url.as_str(),
        "matches": found.taken,
        "total": found.total,
        "truncated": page.cut || found.full,
        "claim_source": of_host(page.host()),
    });
    Ok(ToolOutput::text(untrusted(page.host(), &content, &notes))
        .with_raw(raw)
        .with_cache_validity(page.basis()))
}

/// Returns the matches in document order. It traverses the document itself, so that it can be stopped.
fn find(
    document: &Document,
    selector: &Selector,
    extract: &Extract,
    most: usize,
    limit: &Limit,
) -> Result<Found, ToolError> {
    let mut matcher = selector.matcher(document);
    let mut found = Found {
        taken: Vec::new(),
        total: 0,
        without: 0,
        full: false,
    };
    let mut room = MAX_CONTENT;
    let Some(root) = document.root() else {
        return Ok(found);
    };
    let below = document.descendants(root);
    for id in std::iter::once(root).chain(below) {
        limit.check()?;
        if !matcher.matches(id) {
            continue;
        }
        found.total += 1;
        if found.taken.len() + found.without >= most || room == 0 {
            found.full |= room == 0 && found.taken.len() + found.without < most;
            continue;
        }
        match take(document, id, extract, room, limit)? {
            Some(text) => {
                let shown = head(&text, room);
                found.full |= shown.len() < text.len();
                room -= shown.len();
                if found.full {
                    room = 0;
                }
                found.taken.push(shown.to_owned());
            }
            None => found.without += 1,
        }
    }
    Ok(found)
}

fn take(
    document: &Document,
    id: NodeId,
    extract: &Extract,
    most: usize,
    limit: &Limit,
) -> Result<Option<String>, ToolError> {
    Ok(match extract {
        Extract::Text => Some(plain(document, id, most, limit)?),
        Extract::Html => Some(outer_html(document, id, most, limit)?),
        Extract::Attribute(name) => attribute(document, id, name).map(str::to_owned),
    })
}
