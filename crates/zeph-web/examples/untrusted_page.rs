//! Refuses URLs that lead inside, and renders a page as Markdown and by a CSS selector.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use zeph_web::{CancellationToken, CssSelector, HtmlDocument, PageLimit, Url, UrlGuard, WebConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let guard = UrlGuard::new(&WebConfig::default())?;
    for url in [
        "http://example.org/",
        "https://2130706433/",
        "https://db.internal/",
    ] {
        if let Err(refusal) = guard.check(url) {
            println!("{refusal}");
        }
    }
    let limit = PageLimit::new(CancellationToken::new(), Duration::from_secs(5));
    let html = "<h1>Shop</h1><ul><li><a href=1>One</a><li>Two</ul>";
    let page = HtmlDocument::parse(html, &limit)?;
    let base = Url::parse("https://example.org/")?;
    println!("{}", page.markdown(&base, 1000, &limit)?);
    let selector = CssSelector::parse("li:nth-child(2)")?;
    let mut matcher = selector.matcher(&page);
    for element in page.elements() {
        if matcher.matches(&element) {
            println!("second: {}", element.text(100, &limit)?);
        }
    }
    Ok(())
}

// Prints:
// only https:// is allowed, not http:
// 127.0.0.1 is not an address of the public Internet
// db.internal is a name of the local network
// # Shop
//
// - [One](https://example.org/1)
// - Two
// second: Two
