//! Pages as Markdown, and their parts by selectors.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use zeph_web::{
    CancellationToken, CssSelector, HtmlDocument, PageError, PageLimit, SelectorError, Url,
};

fn limit() -> PageLimit {
    PageLimit::new(CancellationToken::new(), Duration::from_secs(60))
}

fn parse(html: &str) -> HtmlDocument {
    HtmlDocument::parse(html, &limit()).unwrap()
}

fn as_markdown(html: &str) -> String {
    let base = Url::parse("https://example.org/a/b").unwrap();
    parse(html).markdown(&base, 100_000, &limit()).unwrap()
}

/// Proves WEB-1.
#[test]
fn pages_become_markdown() {
    let check = |html: &str, expect: &str| assert_eq!(as_markdown(html), expect, "{html}");
    check("<p>a <b>b</b> <i>c</i>,d</p><p>e", "a **b** *c*,d\n\ne");
    check("<b> a </b>b<i> </i><em></em>c", "**a** b c");
    check("a<br>b<div>c</div>d<hr>e", "a\nb\nc\nd\n\n---\n\ne");
    check(
        "<h1>A\n <b>b</b></h1>t<h3>C</h3>",
        "# A **b**\n\nt\n\n### C",
    );
    check(
        "<a href=c>x <b>y</b></a>",
        "[x **y**](https://example.org/a/c)",
    );
    check(
        "<a href='/c?d=(e)'>x</a>",
        "[x](https://example.org/c?d=%28e%29)",
    );
    check("<a href=http://o.net/>x</a>", "[x](http://o.net/)");
    check("<a href='mailto:a@b.c'>x</a>", "[x](mailto:a@b.c)");
    check(
        "<a href='javascript:x()'>x</a> <a href=#y>y</a> <a>z</a>",
        "x y z",
    );
    check(
        "<a href=c><div>x</div><div>y</div></a>",
        "[x y](https://example.org/a/c)",
    );
    check("<a href=c> </a>x", "x");
    check(
        "<img src=i.png alt=I><img src=j.png><img alt=K>",
        "![I](https://example.org/a/i.png)",
    );
    check(
        "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>",
        "- a\n- b\n  - c\n- d",
    );
    check(
        "<ol start=9><li>a<li>b<p>c</ol>",
        "9. a\n10. b\n    \n    c".replace("    \n", "\n").as_str(),
    );
    check("<blockquote>a<p>b</blockquote>c", "> a\n\n> b\n\nc");
    check("<pre>a\n  b &lt;</pre>c", "```\na\n  b <\n```\n\nc");
    check("<pre><code>a\n```\n</code></pre>", "````\na\n```\n````");
    check("<pre><span>a</span><br>  b</pre>", "```\na\n  b\n```");
    check("<ul><li><pre>a\nb</pre></ul>", "- ```\n  a\n  b\n  ```");
    check("a <code>b  c</code>", "a `b c`");
    check(
        "<table><tr><th>a<th>b<tr><td>c<p>d</p><td>e</table>f",
        "| a | b |\n| --- | --- |\n| c d | e |\n\nf",
    );
    check(
        "a<script>x</script><style>y</style><noscript>z</noscript>b",
        "ab",
    );
    check(
        "<title>t</title><p hidden>x<p>y<template>z</template><svg><text>w</text></svg>",
        "y",
    );
    check("<dialog>x</dialog><dialog open>y</dialog>", "y");
    check(
        "a&nbsp;b &amp; &lt;c&gt; \u{200b}",
        "a\u{a0}b & <c> \u{200b}",
    );
    check("<p>un<p>closed<div>x", "un\n\nclosed\n\nx");
    check("x", "x");
}

/// Proves WEB-1.
#[test]
fn parts_become_lines() {
    let check = |html: &str, expect: &str| {
        let document = parse(html);
        let found = document
            .elements()
            .find(|element| element.attribute("x").is_some())
            .expect("an element with x");
        assert_eq!(found.text(100_000, &limit()).unwrap(), expect, "{html}");
    };
    check("<p x> a <b>b</b>\n c<br>d", "a b c\nd");
    check("<ul x><li>a<li><a href=y>b</a></ul>", "a\nb");
    check("<table><tr x><td>a<td>b</table>", "a b");
    check("<div x>a<script>no</script><style>no</style></div>", "a");
    check("<script x>{\"a\": 1}</script>", "{\"a\": 1}");
    check("<pre x>a\n  b</pre>", "a\n  b");
    check("<textarea x> a\n b</textarea>", "a\n b");
    check("<p x hidden>a", "a");
    check("<p x>", "");
}

/// Proves WEB-1: attributes come in one order.
#[test]
fn parts_become_html() {
    let check = |html: &str, expect: &str| {
        let document = parse(html);
        let mut elements = document.elements();
        elements.find(|element| element.name() == "body");
        let first = elements.next().expect("an element");
        assert_eq!(first.html(100_000, &limit()).unwrap(), expect);
    };
    check(
        "<P z=1 b='\"&' a>x &lt; y<br><img src=i></p>",
        "<p a=\"\" b=\"&quot;&amp;\" z=\"1\">x &lt; y<br><img src=\"i\"></p>",
    );
    check(
        "<div><script>a < b</script></div>",
        "<div><script>a < b</script></div>",
    );
    check(
        "<svg><use xlink:href='#a'/></svg>",
        "<svg><use xlink:href=\"#a\"></use></svg>",
    );
}

/// Proves WEB-1: the texts are large, nested and broken, and it comes to an end.
#[test]
fn hostile_pages_are_parsed_in_bounded_time() {
    let repeat = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    let numbered = |text: &str, count: usize| -> String {
        (0..count)
            .map(|n| text.replace('N', &n.to_string()))
            .collect()
    };
    let megabyte = 1 << 20;
    let deep = |html: &str, name: &str| {
        let start = Instant::now();
        let error = HtmlDocument::parse(html, &limit())
            .err()
            .unwrap_or_else(|| panic!("{name} was parsed"));
        let is_refusal = matches!(error, PageError::TooDeep { .. } | PageError::TooCostly);
        let is_parser = matches!(&error, PageError::Parser(text) if text.contains("nest"));
        assert!(is_refusal || is_parser, "{name}: {error}");
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{name}: {:?}",
            start.elapsed()
        );
    };
    deep(&repeat("<div>", megabyte), "nested blocks");
    deep(&repeat("<div>", 3000), "a nesting of 600");
    deep(
        &repeat("<div><object></div></object>", megabyte),
        "ends out of scope",
    );
    deep(&repeat("<svg><style><div>", megabyte), "foreign content");
    deep(&repeat("<table><td>", megabyte), "nested tables");
    deep(&repeat("<a>", megabyte), "many elements");
    deep(&numbered("<b a=N>", 50_000), "nested formatting");
    let formatting = numbered("<b a=N>", 3000) + &repeat("<p>x</p>", megabyte / 2);
    deep(&formatting, "repeated formatting");
    let moving =
        numbered("<b a=N>", 400) + "<div>" + &repeat("<hr>", 400_000) + &"</b>".repeat(400);
    deep(&moving, "moving subtrees");
    // Large, but harmless.
    for html in [
        repeat("<p>", megabyte / 4),
        repeat("text ", megabyte),
        repeat("<!-- c -->", megabyte),
        repeat("&amp;", megabyte),
        repeat("<", megabyte),
        "<script>".to_owned() + &repeat("<div>", megabyte),
        repeat("<div>", 2000) + "x",
        repeat("<li>", megabyte / 8),
    ] {
        assert!(parse(&html).elements().next().is_some());
    }
}

/// Proves WEB-1: work that takes too long is stopped, also inside one tag.
#[test]
fn page_time_is_limited() {
    let attributes: String = (0..200_000).map(|n| format!(" a{n}")).collect();
    let html = format!("<p{attributes}>x");
    let time = Duration::from_millis(50);
    let short = PageLimit::new(CancellationToken::new(), time);
    let start = Instant::now();
    let error = HtmlDocument::parse(&html, &short).expect_err("too slow");
    assert_eq!(error, PageError::Timeout(time));
    assert!(start.elapsed() < Duration::from_secs(5));

    let cancel = CancellationToken::new();
    cancel.cancel();
    let cancelled = PageLimit::new(cancel, Duration::from_secs(60));
    let error = HtmlDocument::parse("<p>x", &cancelled).expect_err("cancelled");
    assert_eq!(error, PageError::Cancelled);
}

/// Proves WEB-1.
#[test]
fn title_and_base_are_those_of_the_page() {
    let url = Url::parse("https://example.org/a/b").unwrap();
    let check = |html: &str, title: Option<&str>, base: &str| {
        let document = parse(html);
        assert_eq!(
            document.title(9, &limit()).unwrap().as_deref(),
            title,
            "{html}"
        );
        assert_eq!(document.base(&url).as_str(), base, "{html}");
    };
    check("<p>x", None, "https://example.org/a/b");
    check("<title> </title>", None, "https://example.org/a/b");
    check(
        "<title> A\n <b></title><base href=/c/>",
        Some("A <b>"),
        "https://example.org/c/",
    );
    check(
        "<title>12345678é</title>",
        Some("12345678"),
        "https://example.org/a/b",
    );
}

/// Proves WEB-1.
#[test]
fn selector_matches_elements_in_document_order() {
    let document = parse("<ul><li>a<ol><li>b<li>c</ol><li>d<ol><li>e<li>f</ol></ul>");
    let check = |select: &str, expect: &[&str]| {
        let selector = CssSelector::parse(select).unwrap();
        let mut matcher = selector.matcher(&document);
        let matched = document
            .elements()
            .filter(|element| matcher.matches(element));
        let texts: Vec<String> = matched
            .map(|element| element.text(100, &limit()).unwrap())
            .collect();
        assert_eq!(texts, expect, "{select}");
    };
    check("ol > li", &["b", "c", "e", "f"]);
    // The counts of one element are not used for another.
    check("li:nth-child(1) li:nth-child(2)", &["c"]);
    check("h9", &[]);
}

/// Proves WEB-1.
#[test]
fn invalid_selector_is_an_error() {
    for text in ["", "[", "li >", "a,,b", "::before"] {
        let error = CssSelector::parse(text).expect_err(text);
        assert!(matches!(error, SelectorError::Invalid { .. }), "{error}");
    }
    let error = CssSelector::parse(&"a".repeat(2000)).expect_err("too long");
    let (bytes, limit) = (2000, 1024);
    assert_eq!(error, SelectorError::TooLong { bytes, limit });
}

proptest! {
    /// Proves WEB-1: any page is read, and none breaks the reader.
    #[test]
    fn any_page_is_parsed(html in "(<(p|b|a href=x|ul|li|table|td|tr|pre|h1|script|template|svg|select|form|title|math|br|blockquote)>|</(p|b|a|ul|table|pre|script|template|svg|math|blockquote)>|x|é| |\n|&amp;|<!--|-->|`){0,40}") {
        let document = parse(&html);
        as_markdown(&html);
        if let Some(root) = document.elements().next() {
            root.text(100_000, &limit()).unwrap();
            let once = root.html(100_000, &limit()).unwrap();
            prop_assert!(once.starts_with("<html>") && once.ends_with("</html>"), "{}", once);
        }
    }
}
