//! A conversation as one HTML page: without scripts, without other files, and with all text escaped.

use std::fmt::Write as _;

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::document::{Block, Call, Document};

/// The style of the page.
const STYLE: &str = include_str!("page.css");
/// The schemes of links. Others get no target.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// Renders a conversation as an HTML page.
pub(super) fn render(document: &Document) -> String {
    let title = escaped(&document.title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<dl>\n"
    );
    for (name, value) in &document.facts {
        // Writing into a string cannot fail.
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    }
    page.push_str("</dl>\n");
    for block in &document.blocks {
        page.push_str(&of_block(block));
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn of_block(block: &Block) -> String {
    match block {
        Block::Prompt(text) => {
            format!(
                "<section class=\"user\"><h2>User</h2><pre>{}</pre></section>\n",
                escaped(text)
            )
        }
        Block::Note(text) => format!(
            "<section class=\"note\"><h2>Note to the model</h2><pre>{}</pre></section>\n",
            escaped(text)
        ),
        Block::Response(text) => {
            format!(
                "<section class=\"model\"><h2>Zeph</h2>\n{}</section>\n",
                of_markdown(text)
            )
        }
        Block::Reasoning(text) => format!(
            "<details><summary>Reasoning</summary><pre>{}</pre></details>\n",
            escaped(text)
        ),
        Block::Summary(heading, text) => format!(
            "<section class=\"summary\"><h2>{}</h2>\n{}</section>\n",
            escaped(heading),
            of_markdown(text)
        ),
        Block::Image(kind) => format!("<p class=\"note\">Image ({})</p>\n", escaped(kind)),
        Block::Call(call) => of_call(call),
    }
}

fn of_call(call: &Call) -> String {
    let (class, result) = match &call.result {
        None => ("failed", "<p class=\"note\">No result</p>".to_owned()),
        Some((text, is_error)) => {
            let class = if *is_error { "failed" } else { "done" };
            (class, format!("<pre>{}</pre>", escaped(text)))
        }
    };
    format!(
        "<details class=\"{class}\"><summary><b>{}</b> <code>{}</code></summary>\
         <pre>{}</pre>{result}</details>\n",
        escaped(&call.tool),
        escaped(&call.title),
        escaped(&call.arguments)
    )
}

/// Renders Markdown of a model. HTML in it is shown as text, images become links, and links have a known scheme.
fn of_markdown(text: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(text, options).map(harmless);
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    html
}

/// The form of an event that loads nothing and runs nothing.
fn harmless(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Event::Start(Tag::Link {
                link_type: LinkType::Inline,
                dest_url: known_target(dest_url),
                title: "".into(),
                id: "".into(),
            })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        event => event,
    }
}

fn known_target(url: CowStr<'_>) -> CowStr<'_> {
    let lower = url.trim().to_ascii_lowercase();
    match SCHEMES.iter().any(|scheme| lower.starts_with(scheme)) {
        true => url,
        false => "#".into(),
    }
}

/// A text without characters that HTML interprets, in content and in quoted attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-6: nothing in a conversation becomes markup, and nothing is loaded.
    #[test]
    fn hostile_text_is_shown_as_text() {
        let hostile = "<script>alert(1)</script>\n\n[a](javascript:alert(1)) ![b](http://x/y.png) \
                       [c](https://e.org/?a=\"b) <img src=x onerror=alert(1)>\n\n<div onclick=\"x\">\n";
        let html = of_markdown(hostile);
        for denied in ["<script", "javascript:", "<img", "<div", "src=\"http"] {
            assert!(!html.contains(denied), "{denied}: {html}");
        }
        assert!(html.contains("&lt;script&gt;"), "{html}");
        assert!(html.contains("<a href=\"http://x/y.png\">b</a>"), "{html}");
        assert!(html.contains("<a href=\"#\">a</a>"), "{html}");
        assert_eq!(
            escaped("<a b='c' d=\"&\">"),
            "&lt;a b=&#39;c&#39; d=&quot;&amp;&quot;&gt;"
        );
    }

    /// Proves CLI-6: the page has no scripts and no other files.
    #[test]
    fn page_is_self_contained() {
        let call = Call {
            id: "1".to_owned(),
            tool: "bash".to_owned(),
            title: "echo '<b>'".to_owned(),
            arguments: "{}".to_owned(),
            result: Some(("</pre><script>".to_owned(), true)),
        };
        let page = render(&Document {
            title: "</title><script>".to_owned(),
            facts: vec![("Session", "<x>".to_owned())],
            blocks: vec![
                Block::Prompt("</pre><script>".to_owned()),
                Block::Response("**bold** | `code`".to_owned()),
                Block::Call(call),
            ],
        });
        for denied in ["<script", "<link", "src=", "url(", "@import"] {
            assert!(!page.contains(denied), "{denied}: {page}");
        }
        assert!(page.contains("<strong>bold</strong>"), "{page}");
        assert!(
            page.contains("<code>echo &#39;&lt;b&gt;&#39;</code>"),
            "{page}"
        );
    }
}
