//! Untrusted pages, which are rendered within their limits or refused.
#![no_main]

use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_web::{CancellationToken, CssSelector, HtmlDocument, PageLimit, Url};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    most: u16,
    select: &'a str,
    /// The number of repetitions of the page, because costly parts are noticeable in large pages.
    times: u8,
    text: &'a str,
}

fuzz_target!(|input: Input<'_>| {
    let times = 1 + usize::from(input.times);
    let text = input.text.repeat(times);
    if text.len() > 256 * 1024 {
        return;
    }
    let most = usize::from(input.most);
    let begun = Instant::now();
    let page = page(&text, input.select, most);
    let took = begun.elapsed();
    assert!(
        took < Duration::from_secs(8),
        "{} bytes took {took:?}",
        text.len()
    );
    let Some((markdown, plain)) = page else {
        return;
    };
    // One piece may extend past the limit: an address, or a text node.
    let room = most + 2 * text.len() + 4096;
    assert!(
        markdown.len() <= room,
        "{} bytes of Markdown",
        markdown.len()
    );
    assert!(plain.len() <= room, "{} bytes of text", plain.len());
});

/// Returns a page as Markdown and as text, each of about `most` bytes; `None` if the page is refused.
fn page(text: &str, select: &str, most: usize) -> Option<(String, String)> {
    let limit = PageLimit::new(CancellationToken::new(), Duration::from_secs(5));
    let document = HtmlDocument::parse(text, &limit).ok()?;
    let root = document.elements().next()?;
    let base = Url::parse("https://example.org/a/b").ok()?;
    let markdown = document.markdown(&base, most, &limit).ok()?;
    let plain = root.text(most, &limit).ok()?;
    if let Ok(selector) = CssSelector::parse(select) {
        let mut matcher = selector.matcher(&document);
        for element in document.elements() {
            matcher.matches(&element);
        }
    }
    Some((markdown, plain))
}
