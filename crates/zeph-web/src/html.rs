//! HTML documents: parsing within limits, traversal without recursion, serialization.

use std::borrow::Cow;
use std::collections::BTreeMap;

use scrape_core::{
    Document, Html5everParser, NodeId, NodeKind, ParseConfig, ParseError, Parser as _, escape_attr,
    escape_text, is_void_element,
};

use crate::error::PageError;
use crate::limit::PageLimit;
use crate::measure::{MAX_DEPTH, measure};

/// Elements with text that is not part of the visible page, and that is serialized without escapes.
const RAW: &[&str] = &[
    "script", "style", "noscript", "iframe", "xmp", "noembed", "noframes",
];
/// The namespaces of XML attributes, and their prefixes in serialized HTML.
const NAMESPACES: &[(&str, &str)] = &[
    ("http://www.w3.org/1999/xlink:", "xlink:"),
    ("http://www.w3.org/XML/1998/namespace:", "xml:"),
    ("http://www.w3.org/2000/xmlns/:", "xmlns:"),
];

/// Parses a page.
///
/// # Errors
/// An error if it is too large or too deeply nested, or if `limit` is reached.
pub(crate) fn parse(text: &str, limit: &PageLimit) -> Result<Document, PageError> {
    measure(text, limit)?;
    let config = ParseConfig {
        max_depth: MAX_DEPTH,
        preserve_whitespace: true,
        include_comments: false,
    };
    match Html5everParser.parse_with_config(text, &config) {
        Ok(document) => Ok(document),
        Err(ParseError::EmptyInput) => Ok(Document::new()),
        Err(error) => Err(PageError::Parser(error.to_string())),
    }
}

/// Returns the name of an element; empty for text.
pub(crate) fn name(document: &Document, id: NodeId) -> &str {
    let node = document.get(id);
    node.and_then(|node| node.kind.tag_name())
        .unwrap_or_default()
}

/// Returns an attribute of an element. `name` is its name in serialized HTML, in any case, such as
/// `viewbox` or `xlink:href`.
pub(crate) fn attribute<'a>(document: &'a Document, id: NodeId, name: &str) -> Option<&'a str> {
    let attributes = document.get(id)?.kind.attributes()?;
    let value = attributes.get(name).or_else(|| {
        let mut all = attributes.iter();
        let found = all.find(|(key, _)| written(key).eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    });
    value.map(String::as_str)
}

/// Whether the text in an element with this name is not part of the visible page.
pub(crate) fn is_raw(name: &str) -> bool {
    RAW.contains(&name)
}

/// Returns the unchanged text of all text nodes in `id`, with a line end for each `<br>`.
pub(crate) fn text_with_line_breaks(
    document: &Document,
    id: NodeId,
    limit: &PageLimit,
) -> Result<String, PageError> {
    let mut text = String::new();
    for node in document.descendants(id) {
        limit.check()?;
        match document.get(node).map(|node| &node.kind) {
            Some(NodeKind::Text { content }) => text.push_str(content),
            Some(NodeKind::Element { name, .. }) if name == "br" => text.push('\n'),
            _ => {}
        }
    }
    Ok(text)
}

/// A step of a [`Walk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The start of a node.
    Enter(NodeId),
    /// The end of a node.
    Leave(NodeId),
}

/// A traversal of a node and its descendants, in document order.
pub(crate) struct Walk<'a> {
    document: &'a Document,
    start: NodeId,
    next: Option<Step>,
}

impl<'a> Walk<'a> {
    /// Creates a traversal that begins and ends with `start`.
    pub(crate) fn new(document: &'a Document, start: NodeId) -> Self {
        Self {
            document,
            start,
            next: Some(Step::Enter(start)),
        }
    }

    /// Skips the descendants of the node that was just entered.
    pub(crate) fn leave_out(&mut self, entered: NodeId) {
        self.next = Some(Step::Leave(entered));
    }
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let step = self.next?;
        self.next = match step {
            Step::Enter(id) => Some(match self.document.first_child(id) {
                Some(child) => Step::Enter(child),
                None => Step::Leave(id),
            }),
            Step::Leave(id) if id == self.start => None,
            Step::Leave(id) => match self.document.next_sibling(id) {
                Some(sibling) => Some(Step::Enter(sibling)),
                None => self.document.parent(id).map(Step::Leave),
            },
        };
        Some(step)
    }
}

/// Serializes an element as HTML, with attributes sorted by name, until `most` bytes are written.
pub(crate) fn outer_html(
    document: &Document,
    start: NodeId,
    most: usize,
    limit: &PageLimit,
) -> Result<String, PageError> {
    let mut out = String::new();
    for step in Walk::new(document, start) {
        limit.check()?;
        if out.len() > most {
            break;
        }
        match step {
            Step::Enter(id) => match document.get(id).map(|node| &node.kind) {
                Some(NodeKind::Element {
                    name, attributes, ..
                }) => {
                    out.push('<');
                    out.push_str(name);
                    let sorted: BTreeMap<&String, &String> = attributes.iter().collect();
                    for (name, value) in sorted {
                        out.push(' ');
                        out.push_str(&written(name));
                        out.push_str("=\"");
                        out.push_str(&escape_attr(value));
                        out.push('"');
                    }
                    out.push('>');
                }
                Some(NodeKind::Text { content }) => {
                    let parent = document.parent(id);
                    if parent.is_some_and(|parent| is_raw(name(document, parent))) {
                        out.push_str(content);
                    } else {
                        out.push_str(&escape_text(content));
                    }
                }
                Some(NodeKind::Comment { .. }) | None => {}
            },
            Step::Leave(id) => {
                let name = name(document, id);
                if !name.is_empty() && !is_void_element(name) {
                    out.push_str("</");
                    out.push_str(name);
                    out.push('>');
                }
            }
        }
    }
    Ok(out)
}

/// Returns the serialized name of an attribute.
fn written(name: &str) -> Cow<'_, str> {
    for (namespace, prefix) in NAMESPACES {
        if let Some(local) = name.strip_prefix(namespace) {
            return Cow::Owned(format!("{prefix}{local}"));
        }
    }
    Cow::Borrowed(name)
}
