//! The tool `web_scrape`: the parts of a page that a CSS selector matches.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use zeph_web::{
    BodyKind, CssSelector, HtmlDocument, HtmlElement, HttpPage, PageError, PageLimit, WebClient,
};

use super::answer::{MAX_CONTENT, cut_note, head, unreadable, untrusted, validity};
use super::error::{page_error, selector_error};
use super::{LOOKS_OUT, blocking, request};
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
        let selector =
            CssSelector::parse(&params.select).map_err(|error| selector_error(&error))?;
        let page = request::get(&self.client, &params.url, cx).await?;
        let limit = PageLimit::new(cx.cancel.clone(), self.time);
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
    selector: &CssSelector,
    extract: &Extract,
    most: usize,
    limit: &PageLimit,
) -> Result<ToolOutput, ToolError> {
    if page.kind() != BodyKind::Html {
        let reads = "web_scrape only reads HTML; fetch also reads JSON and text";
        return Err(unreadable(page, reads));
    }
    let found = find(&page.text(), selector, extract, most, limit).map_err(page_error)?;

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
            "; the text limit was reached"
        } else if shown + found.without < total {
            "; a higher `limit` shows more"
        } else {
            ""
        };
        notes.push(format!("{shown} of {total} matches are shown{more}"));
        if let (Extract::Attribute(name), 1..) = (extract, found.without) {
            let without = counted_as(found.without, "match has", "matches have");
            notes.push(format!("{without} no `{name}`"));
        }
    }
    notes.extend(cut_note(page));
    let raw = json!({
        "url": page.url.as_str(),
        "matches": found.taken,
        "total": found.total,
        "truncated": page.is_cut || found.full,
        "claim_source": of_host(page.host()),
    });
    Ok(ToolOutput::text(untrusted(page.host(), &content, &notes))
        .with_raw(raw)
        .with_cache_validity(validity(page)))
}

/// Returns the matches in document order. It checks the limit before each element, so that it can be stopped.
fn find(
    html: &str,
    selector: &CssSelector,
    extract: &Extract,
    most: usize,
    limit: &PageLimit,
) -> Result<Found, PageError> {
    let document = HtmlDocument::parse(html, limit)?;
    let mut matcher = selector.matcher(&document);
    let mut found = Found {
        taken: Vec::new(),
        total: 0,
        without: 0,
        full: false,
    };
    let mut room = MAX_CONTENT;
    for element in document.elements() {
        limit.check()?;
        if !matcher.matches(&element) {
            continue;
        }
        found.total += 1;
        if found.taken.len() + found.without >= most || room == 0 {
            found.full |= room == 0 && found.taken.len() + found.without < most;
            continue;
        }
        match take(&element, extract, room, limit)? {
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
    element: &HtmlElement<'_>,
    extract: &Extract,
    most: usize,
    limit: &PageLimit,
) -> Result<Option<String>, PageError> {
    Ok(match extract {
        Extract::Text => Some(element.text(most, limit)?),
        Extract::Html => Some(element.html(most, limit)?),
        Extract::Attribute(name) => element.attribute(name).map(str::to_owned),
    })
}
