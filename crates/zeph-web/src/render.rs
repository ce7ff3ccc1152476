//! HTML to text: Markdown with links for reading a page, plain lines for a part of it.

use scrape_core::{Document, NodeId, NodeKind};
use url::Url;

use crate::error::PageError;
use crate::html::{self, Step, Walk, attribute, is_raw};
use crate::limit::PageLimit;
use crate::writer::Writer;

/// Elements without visible text.
const UNSEEN: &[&str] = &[
    "head", "template", "svg", "object", "embed", "canvas", "audio", "video", "datalist",
];
/// Elements that begin on a new line.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "body",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "html",
    "legend",
    "main",
    "menu",
    "nav",
    "ol",
    "option",
    "optgroup",
    "section",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "tr",
    "caption",
    "ul",
    "li",
];
/// Blocks with an empty line around them.
const PARAGRAPHS: &[&str] = &[
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "pre",
    "hr",
    "ul",
    "ol",
    "dl",
    "table",
    "figure",
    "section",
    "article",
];

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form<'a> {
    /// Lines of plain text.
    Plain,
    /// Markdown; links are relative to this URL.
    Markdown(&'a Url),
}

/// Renders an element as Markdown, with links made absolute by `base`, until `most` bytes are written.
pub(crate) fn markdown(
    document: &Document,
    start: NodeId,
    base: &Url,
    most: usize,
    limit: &PageLimit,
) -> Result<String, PageError> {
    render(document, start, Form::Markdown(base), most, limit)
}

/// Renders the text of an element, one line for each block, until `most` bytes are written. For elements such as
/// `<script>` it returns the contents.
pub(crate) fn plain(
    document: &Document,
    start: NodeId,
    most: usize,
    limit: &PageLimit,
) -> Result<String, PageError> {
    let name = html::name(document, start);
    if is_raw(name) || matches!(name, "title" | "textarea") {
        let text = html::text_with_line_breaks(document, start, limit)?;
        return Ok(text.trim().to_owned());
    }
    render(document, start, Form::Plain, most, limit)
}

fn render(
    document: &Document,
    start: NodeId,
    form: Form<'_>,
    most: usize,
    limit: &PageLimit,
) -> Result<String, PageError> {
    let mut renderer = Renderer {
        document,
        form,
        out: Writer::default(),
        lists: Vec::new(),
        cells: Vec::new(),
    };
    let mut walk = Walk::new(document, start);
    while let Some(step) = walk.next() {
        limit.check()?;
        if renderer.out.len() > most {
            break;
        }
        match step {
            Step::Enter(id) => {
                if id != start && renderer.is_unseen(id) {
                    walk.leave_out(id);
                    // Skips the end of the element as well.
                    walk.next();
                } else if html::name(document, id) == "pre" && renderer.is_markdown() {
                    let text = html::text_with_line_breaks(document, id, limit)?;
                    renderer.out.fenced(&text);
                    walk.leave_out(id);
                    walk.next();
                } else {
                    renderer.enter(id);
                }
            }
            Step::Leave(id) => renderer.leave(id),
        }
    }
    Ok(renderer.out.finish())
}

/// The state of a table.
#[derive(Default)]
struct Row {
    /// The number of cells of the row.
    cells: usize,
    /// Whether the separator line below the first row is written.
    headed: bool,
}

struct Renderer<'a> {
    document: &'a Document,
    form: Form<'a>,
    out: Writer,
    /// The number of the next item of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    /// The open tables.
    cells: Vec<Row>,
}

impl Renderer<'_> {
    fn is_markdown(&self) -> bool {
        self.form != Form::Plain
    }

    fn is_unseen(&self, id: NodeId) -> bool {
        let name = html::name(self.document, id);
        let closed = name == "dialog" && attribute(self.document, id, "open").is_none();
        closed
            || UNSEEN.contains(&name)
            || is_raw(name)
            || attribute(self.document, id, "hidden").is_some()
    }

    fn enter(&mut self, id: NodeId) {
        let name = match self.document.get(id).map(|node| &node.kind) {
            Some(NodeKind::Element { name, .. }) => name.as_str(),
            Some(NodeKind::Text { content }) => return self.out.text(content),
            Some(NodeKind::Comment { .. }) | None => return,
        };
        self.space(name);
        match name {
            "br" => self.out.line(),
            "pre" | "textarea" => self.out.keep_spaces(true),
            "td" | "th" if !self.is_markdown() => self.out.space(),
            _ => {}
        }
        if self.is_markdown() {
            self.enter_markdown(name, id);
        }
    }

    fn leave(&mut self, id: NodeId) {
        let name = html::name(self.document, id);
        if self.is_markdown() {
            self.leave_markdown(name, id);
        }
        if matches!(name, "pre" | "textarea") {
            self.out.keep_spaces(false);
        }
        self.space(name);
    }

    /// Adds the line ends around an element.
    fn space(&mut self, name: &str) {
        // Nested lists have no empty lines around them.
        let is_list = matches!(name, "ul" | "ol" | "menu" | "dl");
        let is_close = is_list && !self.lists.is_empty();
        if PARAGRAPHS.contains(&name) && self.is_markdown() && !is_close {
            self.out.paragraph();
        } else if PARAGRAPHS.contains(&name) || BLOCKS.contains(&name) {
            self.out.line();
        }
    }

    fn enter_markdown(&mut self, name: &str, id: NodeId) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.out.indent(format!("{} ", "#".repeat(level)), "");
                self.out.one_line(true);
            }
            "hr" => self.out.mark("---"),
            "blockquote" => self.out.indent("> ".to_owned(), "> "),
            "ul" | "menu" => self.lists.push(None),
            "ol" => {
                let start = attribute(self.document, id, "start");
                self.lists
                    .push(Some(start.and_then(|text| text.parse().ok()).unwrap_or(1)));
            }
            "li" => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "- ".to_owned(),
                };
                let rest = " ".repeat(mark.len());
                self.out.indent(mark, &rest);
            }
            "table" => self.cells.push(Row::default()),
            "tr" => {
                if let Some(row) = self.cells.last_mut() {
                    row.cells = 0;
                }
            }
            "td" | "th" => {
                if let Some(row) = self.cells.last_mut() {
                    row.cells += 1;
                    self.out.mark("| ");
                    self.out.one_line(true);
                }
            }
            "b" | "strong" => self.out.open("**"),
            "i" | "em" => self.out.open("*"),
            "code" | "kbd" | "samp" | "tt" => self.out.open("`"),
            "del" | "s" => self.out.open("~~"),
            "a" if self.link(id).is_some() => {
                self.out.open("[");
                self.out.one_line(true);
            }
            "img" => self.image(id),
            _ => {}
        }
    }

    fn leave_markdown(&mut self, name: &str, id: NodeId) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.out.one_line(false);
                self.out.outdent();
            }
            "blockquote" | "li" => self.out.outdent(),
            "ul" | "ol" | "menu" => {
                self.lists.pop();
            }
            "table" => {
                self.cells.pop();
            }
            "tr" => {
                if let Some(row) = self.cells.last_mut()
                    && row.cells > 0
                {
                    self.out.space();
                    self.out.mark("|");
                    if !row.headed {
                        row.headed = true;
                        self.out.line();
                        self.out.mark(&format!("|{}", " --- |".repeat(row.cells)));
                    }
                }
            }
            "td" | "th" if !self.cells.is_empty() => {
                self.out.one_line(false);
                self.out.space();
            }
            "b" | "strong" => self.out.close("**"),
            "i" | "em" => self.out.close("*"),
            "code" | "kbd" | "samp" | "tt" => self.out.close("`"),
            "del" | "s" => self.out.close("~~"),
            "a" => {
                if let Some(url) = self.link(id) {
                    self.out.one_line(false);
                    self.out.close(&format!("]({url})"));
                }
            }
            _ => {}
        }
    }

    /// Returns the target of a link, if it is another page.
    fn link(&self, id: NodeId) -> Option<String> {
        let target = attribute(self.document, id, "href")?.trim();
        if target.starts_with('#') {
            return None;
        }
        self.absolute(target)
    }

    fn absolute(&self, target: &str) -> Option<String> {
        let Form::Markdown(base) = self.form else {
            return None;
        };
        let url = base.join(target).ok()?;
        let known = matches!(url.scheme(), "http" | "https" | "mailto");
        // A parenthesis would end the link.
        known.then(|| url.as_str().replace('(', "%28").replace(')', "%29"))
    }

    fn image(&mut self, id: NodeId) {
        let alt = attribute(self.document, id, "alt")
            .unwrap_or_default()
            .trim();
        let source = attribute(self.document, id, "src").and_then(|src| self.absolute(src.trim()));
        let (false, Some(source)) = (alt.is_empty(), source) else {
            return;
        };
        self.out.open("![");
        self.out.text(alt);
        self.out.close(&format!("]({source})"));
    }
}
