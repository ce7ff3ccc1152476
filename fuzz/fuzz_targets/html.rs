//! Untrusted pages, which are rendered within their limits or refused.
#![no_main]

use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_tools::web::fuzzing::page;

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
    let Some((markdown, plain, _)) = page else {
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
