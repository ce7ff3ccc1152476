//! The lines of one unit of a document.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use ratatui_core::style::Modifier;
use ratatui_core::text::{Line, Span};

use super::Head;
use super::inline::{Inline, decoded};
use super::table::{Layout, Table};
use super::units::{EXTENSIONS, is_blank_before, line_start};
use crate::view::render::highlight::CodeLines;
use crate::view::render::styled_text::{BOLD, CYAN, DIM, StyledText};
use crate::view::render::wrap::{Hanging, wrap};

/// The marks of a quote.
const QUOTE: &str = "│ ";
/// The longest horizontal rule.
const MAX_RULE_COLUMNS: usize = 80;

/// The lines of a unit.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The lines.
    pub(crate) lines: Vec<Line<'static>>,
    /// The lines before the last block. No text that is added to the unit changes them.
    pub(crate) fixed: usize,
    /// The text of a paragraph at the top level, and the places of its parts in the source.
    pub(crate) paragraph: Option<(StyledText, Vec<Origin>)>,
    /// The layout of a table at the top level.
    pub(crate) table: Option<Layout>,
}

/// Text of a paragraph that is the same in the source and has the style of the paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The start in the text.
    pub(crate) start: usize,
    /// The end in the text.
    pub(crate) end: usize,
    /// The start in the source.
    pub(crate) source: usize,
}

/// A block that contains others.
#[derive(Debug)]
enum Container {
    Quote,
    /// The columns of the mark, and the mark until it is shown.
    Item(usize, Option<Vec<Span<'static>>>),
}

/// Renders a unit.
pub(crate) fn write(source: &str, width: usize, head: &Head) -> Written {
    let mut writer = Writer {
        source,
        width,
        head,
        out: Written::default(),
        containers: Vec::new(),
        lists: Vec::new(),
        inline: Inline::default(),
        text: StyledText::default(),
        origins: Vec::new(),
        code: None,
        table: None,
        block_line: None,
        is_first_text: true,
    };
    let mut parser = Parser::new_ext(source, EXTENSIONS).into_offset_iter();
    for (event, range) in parser.by_ref() {
        writer.event(event, range.start, range.len());
    }
    writer.flush();
    let mut definitions: Vec<_> = parser.reference_definitions().iter().collect();
    definitions.sort_by_key(|(_, definition)| definition.span.start);
    for (label, definition) in definitions {
        let text = format!("[{}]: {}", decoded(label), decoded(&definition.dest));
        let lines = wrap(&StyledText::new(&text, DIM), width, &Hanging::default());
        writer.out.lines.extend(lines);
    }
    writer.out
}

struct Writer<'a> {
    source: &'a str,
    width: usize,
    head: &'a Head,
    out: Written,
    containers: Vec<Container>,
    /// The next number of each open list.
    lists: Vec<Option<u64>>,
    inline: Inline,
    text: StyledText,
    origins: Vec<Origin>,
    /// The open block of code: its info and its text.
    code: Option<(String, String)>,
    table: Option<Table>,
    /// The start of the line in which the last block began.
    block_line: Option<usize>,
    is_first_text: bool,
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>, start: usize, len: usize) {
        match event {
            Event::Start(tag) => self.start(tag, start),
            Event::End(tag) => self.end(tag),
            Event::Rule => {
                self.begin_block(start);
                let mut spans = self.prefix();
                let columns: usize = spans.iter().map(Span::width).sum();
                let rule = self
                    .width
                    .saturating_sub(columns)
                    .clamp(3, MAX_RULE_COLUMNS);
                spans.push(Span::styled("─".repeat(rule), DIM));
                self.out.lines.push(Line::from(spans));
            }
            Event::TaskListMarker(is_done) => {
                if let Some(Container::Item(columns, mark)) = self.containers.last_mut() {
                    let (text, style) = if is_done {
                        ("☑ ", CYAN)
                    } else {
                        ("☐ ", DIM)
                    };
                    (*columns, *mark) = (2, Some(vec![Span::styled(text, style)]));
                }
            }
            Event::Text(text) => self.add_text(&text, start, len),
            event => self.inline.event(event, &mut self.text),
        }
    }

    fn start(&mut self, tag: Tag<'_>, start: usize) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(start),
            Tag::Heading { level, .. } => {
                self.begin_block(start);
                self.inline.base = match level {
                    HeadingLevel::H1 => BOLD.add_modifier(Modifier::UNDERLINED),
                    HeadingLevel::H2 => BOLD,
                    _ => BOLD.add_modifier(Modifier::ITALIC),
                };
                let marks = "#".repeat(level as usize);
                self.text.push(&format!("{marks} "), DIM);
            }
            Tag::BlockQuote(_) => {
                self.begin_block(start);
                self.containers.push(Container::Quote);
            }
            Tag::List(first) => {
                self.begin_block(start);
                let number = match self.head {
                    Head::Item(number) if self.lists.is_empty() => first.map(|_| *number),
                    _ => first,
                };
                self.lists.push(number);
            }
            Tag::Item => {
                self.begin_block(start);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                let columns = mark.chars().count();
                let mark = vec![Span::styled(mark, CYAN)];
                self.containers.push(Container::Item(columns, Some(mark)));
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(start);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((info, String::new()));
            }
            Tag::Table(alignments) => {
                self.begin_block(start);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                let is_head = matches!(tag, Tag::TableHead);
                self.inline.base = if is_head {
                    BOLD
                } else {
                    ratatui_core::style::Style::new()
                };
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            tag => self.inline.event(Event::Start(tag), &mut self.text),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                if self.containers.is_empty() {
                    let origins = std::mem::take(&mut self.origins);
                    self.out.paragraph = Some((self.text.clone(), origins));
                }
                self.flush();
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.inline = Inline::default();
            }
            TagEnd::HtmlBlock => self.flush(),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                if self.has_mark() {
                    let spans = self.hanging().first;
                    self.out.lines.push(Line::from(without_space(spans)));
                }
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::TableCell => {
                let text = self.text.take();
                if let Some(table) = &mut self.table {
                    table.push_cell(text);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead | TagEnd::TableRow => {}
            tag => self.inline.event(Event::End(tag), &mut self.text),
        }
    }

    /// Adds text of a paragraph, a cell or a block of code.
    fn add_text(&mut self, text: &str, source: usize, len: usize) {
        let (mut text, mut source, mut len) = (text, source, len);
        if std::mem::take(&mut self.is_first_text)
            && *self.head == Head::Paragraph
            && let Some(rest) = text.strip_prefix(super::CONTINUATION)
        {
            source += text.len() - rest.len();
            len = len.saturating_sub(text.len() - rest.len());
            text = rest;
        }
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
            return;
        }
        let start = self.text.as_str().len();
        self.inline.event(Event::Text(text.into()), &mut self.text);
        let added = self.text.as_str().get(start..).unwrap_or_default();
        if self.containers.is_empty()
            && self.inline.is_plain()
            && len == text.len()
            && added == text
        {
            self.origins.push(Origin {
                start,
                end: start + len,
                source,
            });
        }
    }

    /// Ends the block before, and separates the next one from it as in the source.
    fn begin_block(&mut self, start: usize) {
        self.flush();
        self.out.fixed = self.out.lines.len();
        let line = line_start(self.source, start);
        let is_new = self.block_line.replace(line) != Some(line);
        if is_new
            && !self.out.lines.is_empty()
            && !self.has_mark()
            && is_blank_before(self.source, line)
        {
            let spans = self.prefix();
            self.out.lines.push(Line::from(without_space(spans)));
        }
    }

    /// Whether the mark of an item is not shown yet.
    fn has_mark(&self) -> bool {
        let is_mark = |container: &Container| matches!(container, Container::Item(_, Some(_)));
        self.containers.iter().any(is_mark)
    }

    /// Wraps the text so far, if there is any.
    fn flush(&mut self) {
        let text = self.text.take();
        self.origins.clear();
        if text.is_empty() {
            return;
        }
        let hanging = self.hanging();
        self.out
            .lines
            .extend(wrap(&text.trimmed_end(), self.width, &hanging));
    }

    /// The prefixes of the next lines. The marks of items are used up.
    fn hanging(&mut self) -> Hanging {
        let mut hanging = Hanging::default();
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    hanging.first.push(Span::styled(QUOTE, DIM));
                    hanging.rest.push(Span::styled(QUOTE, DIM));
                }
                Container::Item(columns, mark) => {
                    let space = Span::raw(" ".repeat(*columns));
                    hanging
                        .first
                        .extend(mark.take().unwrap_or_else(|| vec![space.clone()]));
                    hanging.rest.push(space);
                }
            }
        }
        hanging
    }

    /// The prefix of lines after the mark. A mark that is not shown yet becomes a line of its own.
    fn prefix(&mut self) -> Vec<Span<'static>> {
        let had_mark = self.has_mark();
        let hanging = self.hanging();
        if had_mark {
            self.out
                .lines
                .push(Line::from(without_space(hanging.first)));
        }
        hanging.rest
    }

    /// Code has no indent, so that copied text is the original text. In a quote it has the mark of the quote.
    fn end_code(&mut self) {
        let Some((info, code)) = self.code.take() else {
            return;
        };
        let mut prefix = self.prefix();
        prefix.retain(|span| span.content.as_ref() == QUOTE);
        let mut lines = CodeLines::new(&info);
        for line in code.lines() {
            let mut spans = prefix.clone();
            spans.extend(lines.push(line).spans);
            self.out.lines.push(Line::from(spans));
        }
    }

    fn end_table(&mut self) {
        self.inline = Inline::default();
        let Some(table) = self.table.take() else {
            return;
        };
        let is_top = self.containers.is_empty();
        let prefix = self.prefix();
        let columns: usize = prefix.iter().map(Span::width).sum();
        let (layout, with_header) = match self.head {
            Head::Table(layout) if is_top => (layout.clone(), false),
            _ => (table.layout(self.width.saturating_sub(columns)), true),
        };
        self.out
            .lines
            .extend(table.lines(&layout, with_header, self.width, &prefix));
        if is_top {
            self.out.table = Some(layout);
        }
    }
}

/// A prefix without white space at its end.
fn without_space(mut spans: Vec<Span<'static>>) -> Vec<Span<'static>> {
    while let Some(span) = spans.last_mut() {
        let len = span.content.trim_end().len();
        if len > 0 {
            span.content.to_mut().truncate(len);
            break;
        }
        spans.pop();
    }
    spans
}
