//! Strings, comments and blocks that continue on the next line.
//!
//! A grammar does not recognize a comment or a function before its end. The highlighter therefore has to know the
//! text that would end them.

use crate::language::Language;

/// The delimiters of a string or a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delimiter {
    /// The beginning.
    pub(crate) open: &'static str,
    /// The end.
    pub(crate) close: &'static str,
    /// A backslash escapes the next character.
    has_escapes: bool,
    /// It may continue on the next line.
    is_multiline: bool,
}

/// Delimiters without escapes that may continue on the next line.
const fn raw(open: &'static str, close: &'static str) -> Delimiter {
    Delimiter {
        open,
        close,
        has_escapes: false,
        is_multiline: true,
    }
}

/// A string with escapes that may continue on the next line.
const fn long(quote: &'static str) -> Delimiter {
    Delimiter {
        open: quote,
        close: quote,
        has_escapes: true,
        is_multiline: true,
    }
}

/// A string with escapes in one line.
const fn short(quote: &'static str) -> Delimiter {
    Delimiter {
        is_multiline: false,
        ..long(quote)
    }
}

const COMMENT: Delimiter = raw("/*", "*/");
const C: &[Delimiter] = &[COMMENT, raw("R\"(", ")\""), short("\""), short("'")];
const GO: &[Delimiter] = &[COMMENT, raw("`", "`"), short("\""), short("'")];
const JAVA: &[Delimiter] = &[COMMENT, long("\"\"\""), short("\""), short("'")];
const SCRIPT: &[Delimiter] = &[COMMENT, long("`"), short("\""), short("'")];
const PYTHON: &[Delimiter] = &[long("\"\"\""), long("'''"), short("\""), short("'")];
const RUST: &[Delimiter] = &[
    COMMENT,
    raw("r##\"", "\"##"),
    raw("r#\"", "\"#"),
    raw("r\"", "\""),
    long("\""),
];

const JSON: &[Delimiter] = &[short("\"")];

/// The state at the end of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// The string or comment that continues on the next line.
    open: Option<Delimiter>,
    /// The ends of the open brackets.
    brackets: Vec<char>,
    /// A block of Python without its first line.
    needs_body: bool,
}

impl Unfinished {
    /// Adds a line.
    pub(crate) fn push(&mut self, language: Language, line: &str) {
        let (comment, delimiters) = match language {
            Language::C | Language::CHeader | Language::Cpp => ("//", C),
            Language::Go => ("//", GO),
            Language::Java => ("//", JAVA),
            Language::JavaScript | Language::TypeScript => ("//", SCRIPT),
            Language::Json => ("//", JSON),
            Language::Python => ("#", PYTHON),
            Language::Rust => ("//", RUST),
        };
        let mut rest = line;
        let mut last = None;
        while let Some(first) = rest.chars().next() {
            let mut skipped = first.len_utf8();
            if let Some(delimiter) = self.open {
                if delimiter.has_escapes && first == '\\' {
                    skipped += rest[1..].chars().next().map_or(0, char::len_utf8);
                } else if rest.starts_with(delimiter.close) {
                    skipped = delimiter.close.len();
                    self.open = None;
                }
            } else if rest.starts_with(comment) {
                break;
            } else if let Some(found) = delimiters.iter().find(|one| rest.starts_with(one.open)) {
                skipped = found.open.len();
                self.open = Some(*found);
            } else if language == Language::Rust && first == '\'' {
                skipped = char_literal(rest).unwrap_or(skipped);
            } else {
                self.bracket(first);
            }
            if !first.is_whitespace() {
                last = Some(first);
            }
            rest = &rest[skipped..];
        }
        self.open = self.open.filter(|delimiter| delimiter.is_multiline);
        if last.is_some() || self.open.is_some() {
            let is_code = self.open.is_none() && self.brackets.is_empty();
            self.needs_body = language == Language::Python && is_code && last == Some(':');
        }
    }

    fn bracket(&mut self, c: char) {
        match c {
            '(' => self.brackets.push(')'),
            '[' => self.brackets.push(']'),
            '{' => self.brackets.push('}'),
            _ if self.brackets.last() == Some(&c) => {
                self.brackets.pop();
            }
            _ => {}
        }
    }

    /// The text that ends the open string, comment and blocks.
    pub(crate) fn ending(&self) -> String {
        let mut text = self.open.map_or("", |open| open.close).to_owned();
        text.extend(self.brackets.iter().rev());
        if self.needs_body {
            // Deeper than the block itself.
            text.push_str(&" ".repeat(80));
            text.push_str("pass");
        }
        text
    }

    /// Forgets the open blocks. Returns the beginning of the open string or comment.
    pub(crate) fn restart(&mut self) -> &'static str {
        self.brackets.clear();
        self.needs_body = false;
        self.open.map_or("", |open| open.open)
    }
}

/// The length of a character literal of Rust at the start; a lifetime has none.
fn char_literal(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    match chars.next()?.1 {
        '\\' => {
            chars.next()?;
            chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
        }
        _ => chars
            .next()
            .filter(|(_, c)| *c == '\'')
            .map(|(at, _)| at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_closes_strings_comments_and_brackets() {
        let check = |language, text: &str, expect: &str| {
            let mut state = Unfinished::default();
            for line in text.split('\n') {
                state.push(language, line);
            }
            assert_eq!(state.ending().trim_start(), expect, "{text:?}");
        };
        check(Language::Rust, "/* a", "*/");
        check(Language::Rust, "/* a\n*/ b", "");
        check(Language::Rust, "// /* a {", "");
        check(Language::Rust, "let a = \"/*\";", "");
        check(Language::Rust, "let a = \"x\\\"y", "\"");
        check(Language::Rust, "let a = r#\"x\"", "\"#");
        check(Language::Rust, "let a: &'a str = '\"';", "");
        check(Language::Rust, "let a = '\\'' + '\\u{22}';", "");
        check(Language::Rust, "fn a() {\n  b([1, \"x", "\"])}");
        check(Language::Rust, "}\n)", "");
        check(Language::Python, "\"\"\"a", "\"\"\"");
        check(Language::Python, "\"\"\"a\nb\"\"\"", "");
        check(Language::Python, "x = 'it", "");
        check(Language::Python, "# '''", "");
        check(Language::Python, "def f(x): # a\n\n", "pass");
        check(Language::Python, "x = {1:", "}");
        check(Language::Go, "x := `a", "`");
        check(Language::JavaScript, "`a ${b}\n`", "");
        check(Language::Java, "x = \"\"\"", "\"\"\"");
        check(Language::Cpp, "R\"(a", ")\"");
        check(Language::Json, "{\"a[\": [", "]}");
        check(Language::C, "é'\\", "");
    }
}
