//! Short parts of foreign texts, for messages.

/// How much of a foreign text an error quotes, in characters.
const EXCERPT_CHARS: usize = 200;

/// The title or first heading of an HTML page; for any other text, or a page without both, its excerpt.
pub(crate) fn page_excerpt(text: &str) -> String {
    let is_page = text.trim_start().starts_with('<');
    let title = ["title", "h1"]
        .into_iter()
        .filter(|_| is_page)
        .find_map(|element| content_of(text, element));
    title.unwrap_or_else(|| excerpt(text))
}

/// The text of the first HTML element of this name, if it has one.
fn content_of(page: &str, element: &str) -> Option<String> {
    // ASCII case only, so that positions remain valid.
    let lower = page.to_ascii_lowercase();
    let (open, close) = (format!("<{element}"), format!("</{element}"));
    let mut starts = lower.match_indices(&open);
    let start = starts.find_map(|(at, _)| {
        let rest = &lower[at + open.len()..];
        rest.starts_with(['>', ' ', '\t', '\r', '\n'])
            .then(|| rest.find('>').map(|end| at + open.len() + end + 1))?
    })?;
    let end = lower[start..].find(&close)?;
    let mut text = String::new();
    let mut is_tag = false;
    for c in page[start..start + end].chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => {}
            c => text.push(c),
        }
    }
    for (entity, c) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, c);
    }
    Some(excerpt(&text)).filter(|text| !text.is_empty())
}

/// The first characters of a foreign text on one line, without control characters.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out = String::new();
    let mut words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut count = 0;
    for word in words.by_ref().filter(|word| !word.is_empty()) {
        if count > 0 {
            out.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count >= EXCERPT_CHARS {
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LLM-14.
    #[test]
    fn pages_are_reported_by_their_titles() {
        for (page, expect) in [
            (
                "<!DOCTYPE html>\n<html><head><meta charset=x><TITLE lang=en>\n502 Bad &amp; Gateway</TITLE></head>\
                 <body><h1>Long</h1></body>",
                "502 Bad & Gateway",
            ),
            ("<html><h1 class=a>Not <b>Found</b></h1>", "Not Found"),
            ("<title></title><h1>x</h1>", "x"),
            ("<titles>a</titles><p>", "<titles>a</titles><p>"),
            ("<title>unclosed", "<title>unclosed"),
            ("a < b <title>c</title>", "a < b <title>c</title>"),
            ("", ""),
        ] {
            assert_eq!(page_excerpt(page), expect, "{page}");
        }
    }

    #[test]
    fn excerpts_are_short_and_sanitized() {
        assert_eq!(excerpt("  a\n\tb\u{1b}[31mc\u{7f} "), "a b [31mc");
        let long = excerpt(&"ä".repeat(1000));
        assert_eq!(long.chars().count(), EXCERPT_CHARS + 1);
        assert!(long.ends_with('…'));
        assert_eq!(excerpt(&"x".repeat(EXCERPT_CHARS)).len(), EXCERPT_CHARS);
    }
}
