//! A writer of text lines: it collapses white space, merges breaks, and omits marks around nothing.

/// The separator between the last word and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Separator {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

/// The prefix of lines inside a list item or a quotation.
struct Indent {
    /// The prefix of the first line, until it is written.
    first: Option<String>,
    /// The prefix of the other lines.
    rest: String,
}

/// An open mark such as `**`.
struct Mark {
    text: &'static str,
    written: bool,
}

/// The text so far.
#[derive(Default)]
pub(crate) struct Writer {
    out: String,
    gap: Separator,
    indents: Vec<Indent>,
    marks: Vec<Mark>,
    /// The number of open elements that must stay on one line.
    one_line: usize,
    /// The number of open elements that preserve white space.
    keep_spaces: usize,
}

impl Writer {
    /// Returns the number of written bytes.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Returns the text, without white space at its end.
    pub(crate) fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    /// Adds a space before the next word, unless a line ends there.
    pub(crate) fn space(&mut self) {
        self.gap = self.gap.max(Separator::Space);
    }

    /// Adds a line break before the next word.
    pub(crate) fn line(&mut self) {
        self.widen(Separator::Line);
    }

    /// Adds an empty line before the next word.
    pub(crate) fn paragraph(&mut self) {
        self.widen(Separator::Paragraph);
    }

    fn widen(&mut self, gap: Separator) {
        let gap = if self.one_line > 0 {
            Separator::Space
        } else {
            gap
        };
        self.gap = self.gap.max(gap);
    }

    /// Sets whether line ends become spaces, as in headings, links and cells; may be nested.
    pub(crate) fn one_line(&mut self, on: bool) {
        count(&mut self.one_line, on);
    }

    /// Sets whether white space is preserved; may be nested.
    pub(crate) fn keep_spaces(&mut self, on: bool) {
        count(&mut self.keep_spaces, on);
    }

    /// Sets the prefix of the next lines: `first`, then `rest`.
    pub(crate) fn indent(&mut self, first: String, rest: &str) {
        self.indents.push(Indent {
            first: Some(first),
            rest: rest.to_owned(),
        });
    }

    /// Ends the innermost [`Writer::indent`].
    pub(crate) fn outdent(&mut self) {
        self.indents.pop();
    }

    /// Writes text of the page.
    pub(crate) fn text(&mut self, text: &str) {
        if self.keep_spaces > 0 && self.one_line == 0 {
            return self.lines(text);
        }
        for (at, word) in text.split(is_space).enumerate() {
            if at > 0 {
                self.space();
            }
            if !word.is_empty() {
                self.begin();
                self.out.push_str(word);
            }
        }
    }

    /// Writes text with its lines and spaces.
    fn lines(&mut self, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.begin();
                self.break_line();
            }
            if !line.is_empty() {
                self.begin();
                self.out.push_str(line);
            }
        }
    }

    /// Writes text in a Markdown fence that is longer than any run of backticks in it.
    pub(crate) fn fenced(&mut self, text: &str) {
        let text = text.strip_prefix('\n').unwrap_or(text).trim_end();
        if text.is_empty() {
            return;
        }
        if self.one_line > 0 {
            return self.text(text);
        }
        let longest = text.split(|c| c != '`').map(str::len).max();
        let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
        self.paragraph();
        self.begin();
        self.out.push_str(&fence);
        for line in text.lines() {
            self.break_line();
            self.out.push_str(line);
        }
        self.break_line();
        self.out.push_str(&fence);
        self.paragraph();
    }

    /// Writes a part of the format: `| `, `---`.
    pub(crate) fn mark(&mut self, text: &str) {
        self.begin();
        self.out.push_str(text);
    }

    /// Opens a mark that is written before the next word, if there is one.
    pub(crate) fn open(&mut self, text: &'static str) {
        self.marks.push(Mark {
            text,
            written: false,
        });
    }

    /// Closes the last open mark with `text`, if anything was written inside it.
    pub(crate) fn close(&mut self, text: &str) {
        if self.marks.pop().is_some_and(|mark| mark.written) {
            self.out.push_str(text);
        }
    }

    /// Writes the separator between the last word and the next, and pending marks.
    fn begin(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        if self.out.is_empty() {
            self.begin_line();
        } else {
            match gap {
                Separator::None => {}
                Separator::Space if self.out.ends_with([' ', '\n']) => {}
                Separator::Space => self.out.push(' '),
                Separator::Line => self.break_line(),
                Separator::Paragraph => {
                    self.out.push('\n');
                    self.break_line();
                }
            }
        }
        for mark in self.marks.iter_mut().filter(|mark| !mark.written) {
            self.out.push_str(mark.text);
            mark.written = true;
        }
    }

    fn break_line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        self.out.push('\n');
        self.begin_line();
    }

    fn begin_line(&mut self) {
        for indent in &mut self.indents {
            match indent.first.take() {
                Some(first) => self.out.push_str(&first),
                None => self.out.push_str(&indent.rest),
            }
        }
    }
}

fn count(level: &mut usize, on: bool) {
    *level = if on {
        *level + 1
    } else {
        level.saturating_sub(1)
    };
}

/// Whether HTML collapses a character; a no-break space is preserved.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}
