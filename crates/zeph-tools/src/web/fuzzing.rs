//! Entry points for fuzz targets of the parts that parse web input; not part of the public interface.

use std::net::IpAddr;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use url::Url;

use super::address::AddressRule;
use super::config::ScrapeConfig;
use super::limit::Limit;
use super::select::Selector;
use super::url_guard::{TargetHost, UrlGuard};
use super::{html, render};

/// Returns a URL that may be requested, and its address if the host is one. `allowed` and `denied` are lists of
/// domains; `None` also if one of those is not a domain.
#[must_use]
pub fn allowed_url(
    url: &str,
    allowed: &[String],
    denied: &[String],
) -> Option<(String, Option<IpAddr>)> {
    let config = ScrapeConfig {
        allowed_domains: allowed.to_vec(),
        denied_domains: denied.to_vec(),
        ..ScrapeConfig::default()
    };
    let guard = UrlGuard::new(&config, AddressRule::Public).ok()?;
    let target = guard.check(url).ok()?;
    let address = match target.host {
        TargetHost::Name(_) => None,
        TargetHost::Address(address) => Some(address),
    };
    Some((target.url.into(), address))
}

/// Returns a page as Markdown and as text, each of about `most` bytes, and the number of elements that `select`
/// matches; `None` if the page or the selector is refused.
#[must_use]
pub fn page(text: &str, select: &str, most: usize) -> Option<(String, String, usize)> {
    let limit = Limit::new(CancellationToken::new(), Duration::from_secs(5));
    let document = html::parse(text, &limit).ok()?;
    let root = document.root()?;
    let base = Url::parse("https://example.org/a/b").ok()?;
    let markdown = render::markdown(&document, root, &base, most, &limit).ok()?;
    let plain = render::plain(&document, root, most, &limit).ok()?;
    let selector = Selector::parse(select).ok();
    let matched = selector.map_or(0, |selector| {
        let mut matcher = selector.matcher(&document);
        let nodes = document.nodes().map(|(id, _)| id);
        nodes.filter(|id| matcher.matches(*id)).count()
    });
    Some((markdown, plain, matched))
}
