//! HTML documents and their elements: the parts of a page as Markdown, text and HTML.

use scrape_core::{Document, NodeId};
use url::Url;

use crate::error::PageError;
use crate::html;
use crate::limit::PageLimit;
use crate::render;

/// A parsed page.
#[derive(Debug)]
pub struct HtmlDocument(Document);

impl HtmlDocument {
    /// Parses a page.
    ///
    /// # Errors
    /// [`PageError`] if it is too large or too deeply nested, or if `limit` is reached.
    pub fn parse(text: &str, limit: &PageLimit) -> Result<Self, PageError> {
        html::parse(text, limit).map(Self)
    }

    /// Returns the base of relative links: `<base href>`, or the URL of the page.
    #[must_use]
    pub fn base(&self, url: &Url) -> Url {
        self.first("base")
            .and_then(|base| base.attribute("href"))
            .and_then(|href| url.join(href).ok())
            .unwrap_or_else(|| url.clone())
    }

    /// Returns the title in one line of at most `most` bytes.
    ///
    /// # Errors
    /// [`PageError`] if `limit` is reached.
    pub fn title(&self, most: usize, limit: &PageLimit) -> Result<Option<String>, PageError> {
        let Some(title) = self.first("title") else {
            return Ok(None);
        };
        let text = title.text(most, limit)?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut title = words.join(" ");
        title.truncate(title.floor_char_boundary(most));
        Ok((!title.is_empty()).then_some(title))
    }

    /// Renders the page as Markdown, with links made absolute by `base`, until `most` bytes are written.
    ///
    /// # Errors
    /// [`PageError`] if `limit` is reached.
    pub fn markdown(
        &self,
        base: &Url,
        most: usize,
        limit: &PageLimit,
    ) -> Result<String, PageError> {
        match self.0.root() {
            Some(root) => render::markdown(&self.0, root, base, most, limit),
            None => Ok(String::new()),
        }
    }

    /// Returns all elements in document order.
    pub fn elements(&self) -> impl Iterator<Item = HtmlElement<'_>> {
        let document = &self.0;
        let root = document.root().into_iter();
        let nodes = root.flat_map(|root| std::iter::once(root).chain(document.descendants(root)));
        nodes
            .filter(|id| document.get(*id).is_some_and(|node| node.kind.is_element()))
            .map(|id| HtmlElement { document, id })
    }

    pub(crate) fn tree(&self) -> &Document {
        &self.0
    }

    fn first(&self, wanted: &str) -> Option<HtmlElement<'_>> {
        self.elements().find(|element| element.name() == wanted)
    }
}

/// An element of an [`HtmlDocument`].
#[derive(Debug, Clone, Copy)]
pub struct HtmlElement<'a> {
    document: &'a Document,
    id: NodeId,
}

impl<'a> HtmlElement<'a> {
    /// Returns the name in lower case.
    #[must_use]
    pub fn name(&self) -> &'a str {
        html::name(self.document, self.id)
    }

    /// Returns the value of an attribute. `name` is its name in serialized HTML, in any case, such
    /// as `viewbox` or `xlink:href`.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        html::attribute(self.document, self.id, name)
    }

    /// Renders the text, one line for each block, until `most` bytes are written. For elements such as `<script>` it
    /// returns the contents.
    ///
    /// # Errors
    /// [`PageError`] if `limit` is reached.
    pub fn text(&self, most: usize, limit: &PageLimit) -> Result<String, PageError> {
        render::plain(self.document, self.id, most, limit)
    }

    /// Serializes the element as HTML, with attributes sorted by name, until `most` bytes are written.
    ///
    /// # Errors
    /// [`PageError`] if `limit` is reached.
    pub fn html(&self, most: usize, limit: &PageLimit) -> Result<String, PageError> {
        html::outer_html(self.document, self.id, most, limit)
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }
}
