//! Colours of source code that arrives line by line.
//!
//! Each line is coloured with the lines before it as context, so the colours of a line never change. Parsing is
//! incremental, and the context is bounded: the time is linear in the length of the text.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{InputEdit, Parser, Point, Query, QueryCursor, StreamingIterator as _, Tree};

use crate::language::Language;
use crate::unfinished::Unfinished;

/// The size of the context after which a new one begins.
const MAX_CONTEXT_BYTES: usize = 4 * 1024;
/// A longer line has no colours.
const MAX_LINE_BYTES: usize = 4 * 1024;

/// The keys of objects, which are strings as well.
const JSON_KEYS: &str = "(pair key: (string) @string.special.key)";

/// The meaning of a part of source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HighlightKind {
    /// An attribute or annotation.
    Attribute,
    /// A comment.
    Comment,
    /// A constant, a number or a literal such as `true`.
    Constant,
    /// The name of a function or macro.
    Function,
    /// A keyword.
    Keyword,
    /// A key of an object in JSON.
    Key,
    /// A string or a character.
    String,
    /// The name of a type.
    Type,
}

impl HighlightKind {
    /// The meaning of a capture in the queries of the grammars.
    fn from_capture(name: &str) -> Option<Self> {
        let first = name.split('.').next().unwrap_or(name);
        Some(match (first, name) {
            (_, "string.special.key") => Self::Key,
            ("attribute", _) => Self::Attribute,
            ("comment", _) => Self::Comment,
            ("constant" | "number" | "escape" | "boolean", _) => Self::Constant,
            ("function", _) => Self::Function,
            ("keyword", _) => Self::Keyword,
            ("string", _) => Self::String,
            ("type" | "constructor", _) => Self::Type,
            _ => return None,
        })
    }
}

/// The query of a grammar.
struct Highlights {
    language: tree_sitter::Language,
    query: Query,
    /// The meaning of each capture.
    kinds: Vec<Option<HighlightKind>>,
}

impl Highlights {
    fn new(language: tree_sitter::Language, queries: &[&str]) -> Option<Self> {
        let query = Query::new(&language, &queries.join("\n")).ok()?;
        let kinds = query
            .capture_names()
            .iter()
            .map(|name| HighlightKind::from_capture(name))
            .collect();
        Some(Self {
            language,
            query,
            kinds,
        })
    }

    /// The query of a language.
    fn of(language: Language) -> Option<&'static Self> {
        let query = match language {
            Language::C => &C,
            Language::CHeader | Language::Cpp => &CPP,
            Language::Go => &GO,
            Language::Java => &JAVA,
            Language::JavaScript => &JAVASCRIPT,
            Language::Json => &JSON,
            Language::Python => &PYTHON,
            Language::Rust => &RUST,
            Language::TypeScript => &TYPESCRIPT,
        };
        query.as_ref()
    }
}

// If several patterns of a query match a node, the last one counts.

static C: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [tree_sitter_c::HIGHLIGHT_QUERY];
    Highlights::new(tree_sitter_c::LANGUAGE.into(), &queries)
});

static CPP: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [
        tree_sitter_c::HIGHLIGHT_QUERY,
        tree_sitter_cpp::HIGHLIGHT_QUERY,
    ];
    Highlights::new(tree_sitter_cpp::LANGUAGE.into(), &queries)
});

static GO: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [tree_sitter_go::HIGHLIGHTS_QUERY];
    Highlights::new(tree_sitter_go::LANGUAGE.into(), &queries)
});

static JAVA: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [tree_sitter_java::HIGHLIGHTS_QUERY];
    Highlights::new(tree_sitter_java::LANGUAGE.into(), &queries)
});

static JAVASCRIPT: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [
        tree_sitter_javascript::HIGHLIGHT_QUERY,
        tree_sitter_javascript::JSX_HIGHLIGHT_QUERY,
    ];
    Highlights::new(tree_sitter_javascript::LANGUAGE.into(), &queries)
});

static JSON: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [tree_sitter_json::HIGHLIGHTS_QUERY, JSON_KEYS];
    Highlights::new(tree_sitter_json::LANGUAGE.into(), &queries)
});

static PYTHON: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [tree_sitter_python::HIGHLIGHTS_QUERY];
    Highlights::new(tree_sitter_python::LANGUAGE.into(), &queries)
});

static RUST: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [tree_sitter_rust::HIGHLIGHTS_QUERY];
    Highlights::new(tree_sitter_rust::LANGUAGE.into(), &queries)
});

static TYPESCRIPT: LazyLock<Option<Highlights>> = LazyLock::new(|| {
    let queries = [
        tree_sitter_javascript::HIGHLIGHT_QUERY,
        tree_sitter_typescript::HIGHLIGHTS_QUERY,
    ];
    Highlights::new(tree_sitter_typescript::LANGUAGE_TSX.into(), &queries)
});

/// A highlighter that colours a text line by line.
#[derive(Clone)]
pub struct LineHighlighter {
    highlights: &'static Highlights,
    language: Language,
    /// The lines before, as far as they are context.
    context: String,
    /// The strings, comments and blocks that continue after the context.
    unfinished: Unfinished,
    /// The syntax tree of the context and the text that would end it.
    tree: Option<Tree>,
}

impl fmt::Debug for LineHighlighter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineHighlighter")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl LineHighlighter {
    /// Creates a highlighter at the start of a text. `None` if the grammar has no colours.
    #[must_use]
    pub fn new(language: Language) -> Option<Self> {
        Some(Self {
            highlights: Highlights::of(language)?,
            language,
            context: String::new(),
            unfinished: Unfinished::default(),
            tree: None,
        })
    }

    /// Adds a line without its line break. Returns the coloured parts of the line as ranges of bytes in their order.
    pub fn push(&mut self, line: &str) -> Vec<(Range<usize>, HighlightKind)> {
        if line.len() > MAX_LINE_BYTES {
            self.unfinished.push(self.language, line);
            self.restart();
            return Vec::new();
        }
        let start = self.context.len();
        let old_ending = self.unfinished.ending();
        self.context.push_str(line);
        self.context.push('\n');
        let end = self.context.len();
        self.unfinished.push(self.language, line);
        self.context.push_str(&self.unfinished.ending());
        let tree = self.parse(start, old_ending.len());
        let kinds = tree
            .as_ref()
            .map(|tree| self.kinds(tree, start..start + line.len()));
        self.context.truncate(end);
        self.tree = tree;
        if self.tree.is_none() || end > MAX_CONTEXT_BYTES {
            self.restart();
        }
        kinds.map(|kinds| ranges(&kinds)).unwrap_or_default()
    }

    /// Begins a new context, in the string or comment that is open.
    fn restart(&mut self) {
        self.tree = None;
        self.context.clear();
        self.context.push_str(self.unfinished.restart());
    }

    /// The tree of the context after the text from `start` on has replaced `removed` bytes.
    fn parse(&mut self, start: usize, removed: usize) -> Option<Tree> {
        let mut parser = Parser::new();
        parser.set_language(&self.highlights.language).ok()?;
        if let Some(tree) = &mut self.tree {
            let row = self.context[..start].matches('\n').count();
            let added = self.context[start..].rfind('\n').map_or(0, |at| at + 1);
            tree.edit(&InputEdit {
                start_byte: start,
                old_end_byte: start + removed,
                new_end_byte: self.context.len(),
                start_position: Point::new(row, 0),
                old_end_position: Point::new(row, removed),
                new_end_position: Point::new(row + 1, self.context.len() - start - added),
            });
        }
        parser.parse(self.context.as_bytes(), self.tree.as_ref())
    }

    /// The kind of each byte in a part of the context.
    fn kinds(&self, tree: &Tree, part: Range<usize>) -> Vec<Option<HighlightKind>> {
        let mut kinds = vec![None; part.len()];
        let mut cursor = QueryCursor::new();
        cursor.set_byte_range(part.clone());
        let query = &self.highlights.query;
        let mut captures = cursor.captures(query, tree.root_node(), self.context.as_bytes());
        while let Some((found, index)) = captures.next() {
            let Some(capture) = found.captures().get(*index) else {
                continue;
            };
            let name = usize::try_from(capture.index).ok();
            let kind = name.and_then(|name| self.highlights.kinds.get(name).copied().flatten());
            let range = capture.node.byte_range();
            let first = range.start.saturating_sub(part.start);
            let end = range.end.saturating_sub(part.start).min(kinds.len());
            // An inner node, and a later pattern for the same node, override an outer node.
            if let Some(covered) = kinds.get_mut(first..end) {
                covered.fill(kind);
            }
        }
        kinds
    }
}

/// The ranges of equal kinds.
fn ranges(kinds: &[Option<HighlightKind>]) -> Vec<(Range<usize>, HighlightKind)> {
    let mut ranges: Vec<(Range<usize>, HighlightKind)> = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        let Some(kind) = kind else { continue };
        match ranges.last_mut() {
            Some((range, last)) if range.end == at && last == kind => range.end = at + 1,
            _ => ranges.push((at..at + 1, *kind)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The coloured parts of the last line.
    fn last_line(language: Language, text: &str) -> Vec<(&str, HighlightKind)> {
        let mut all = LineHighlighter::new(language).unwrap();
        let mut parts = Vec::new();
        for line in text.split('\n') {
            let ranges = all.push(line);
            parts = ranges
                .into_iter()
                .map(|(range, kind)| (&line[range], kind))
                .collect();
        }
        parts
    }

    /// Proves CLI-4a: each grammar has colours.
    #[test]
    fn every_language_has_colours() {
        use HighlightKind as K;
        let check = |language, text, part: &str, kind| {
            let parts = last_line(language, text);
            assert!(parts.contains(&(part, kind)), "{language:?}: {parts:?}");
        };
        check(
            Language::C,
            "int main(void) { return 1; }",
            "return",
            K::Keyword,
        );
        check(Language::CHeader, "class A {};", "class", K::Keyword);
        check(
            Language::Cpp,
            "namespace a { int x = 1; }",
            "namespace",
            K::Keyword,
        );
        check(
            Language::Go,
            "func main() { x := \"a\" }",
            "\"a\"",
            K::String,
        );
        check(
            Language::Java,
            "class A { int x = 1; }",
            "class",
            K::Keyword,
        );
        check(
            Language::JavaScript,
            "const x = <div/>; // a",
            "// a",
            K::Comment,
        );
        check(Language::Json, "{\"a\": 1}", "\"a\"", K::Key);
        check(Language::Python, "def f(x): return 1", "def", K::Keyword);
        check(Language::Rust, "fn main() { f(1) }", "main", K::Function);
        check(
            Language::TypeScript,
            "interface A { x: string }",
            "interface",
            K::Keyword,
        );
    }

    #[test]
    fn earlier_lines_are_context() {
        use HighlightKind as K;
        let check = |text, expect: &[(&str, HighlightKind)]| {
            assert_eq!(last_line(Language::Rust, text), expect, "{text:?}");
        };
        check("/* a\nb */ fn", &[("b */", K::Comment), ("fn", K::Keyword)]);
        check("let s = \"a\nfn b\";", &[("fn b\"", K::String)]);
        check("}\n// a", &[("// a", K::Comment)]);
        check("fn a() {", &[("fn", K::Keyword), ("a", K::Function)]);
        check("fn a() {\n    b(", &[("b", K::Function)]);
    }

    #[test]
    fn long_text_begins_a_new_context_outside_of_comments() {
        let mut all = LineHighlighter::new(Language::Rust).unwrap();
        all.push("/*");
        for _ in 0..1000 {
            assert_eq!(all.push("text in it"), [(0..10, HighlightKind::Comment)]);
        }
        assert_eq!(
            all.push("*/ fn a() {"),
            [
                (0..2, HighlightKind::Comment),
                (3..5, HighlightKind::Keyword),
                (6..7, HighlightKind::Function)
            ]
        );
        for _ in 0..1000 {
            all.push("    let x = call(1);");
            assert!(all.context.len() <= MAX_CONTEXT_BYTES);
        }
        assert_eq!(all.push(&"x".repeat(MAX_LINE_BYTES + 1)), []);
    }
}
