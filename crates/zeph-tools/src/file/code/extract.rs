//! The symbols of a text, as tree-sitter reads it.

use std::ops::ControlFlow;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tree_sitter::{Node, ParseOptions, ParseState, Parser};

use super::language::{CodeLanguage, Rule};
use super::symbol::{Kind, Symbol};

/// The time of a core for one file, whatever else the machine does.
const TIME: Duration = Duration::from_secs(2);
/// Symbols of one file.
pub(super) const MAX_SYMBOLS: usize = 200_000;
/// Bytes of a name; a longer one is no name.
pub(super) const MAX_NAME_BYTES: usize = 200;

/// The symbols of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Symbols {
    /// Those that were found, in their order.
    pub(super) found: Vec<Symbol>,
    /// Whether these are all: it takes no longer than [`TIME`], and there are at most [`MAX_SYMBOLS`].
    pub(super) whole: bool,
}

/// Something that contains, with what contains it.
struct EnclosingScope {
    depth: u32,
    /// The names from the outside in, joined by `.`; empty where that is too long.
    path: String,
    is_type: bool,
    /// Whether it is a function, or lies in one.
    in_function: bool,
}

/// The time that this thread was at work.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The symbols of `text`.
pub(super) fn symbols(tongue: &CodeLanguage, text: &[u8]) -> Symbols {
    let mut found = Found {
        text,
        outer: Vec::new(),
        symbols: Vec::new(),
    };
    let whole = found.all(tongue).is_some();
    Symbols {
        found: found.symbols,
        whole,
    }
}

struct Found<'a> {
    text: &'a [u8],
    outer: Vec<EnclosingScope>,
    symbols: Vec<Symbol>,
}

impl<'a> Found<'a> {
    /// Takes all symbols; `None` where it ends early.
    fn all(&mut self, tongue: &CodeLanguage) -> Option<()> {
        let deadline = worked() + TIME;
        let mut parser = Parser::new();
        parser.set_language(&tongue.language).ok()?;
        let mut go_on = |_: &ParseState| {
            if worked() < deadline {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut go_on);
        let text = self.text;
        let mut rest = |at: usize, _| text.get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut rest, None, Some(options))?;

        let mut cursor = tree.walk();
        let mut seen = 0_u32;
        loop {
            seen = seen.wrapping_add(1);
            if self.symbols.len() >= MAX_SYMBOLS
                || (seen.is_multiple_of(4096) && worked() >= deadline)
            {
                return None;
            }
            let node = cursor.node();
            let depth = cursor.depth();
            while self.outer.last().is_some_and(|outer| outer.depth >= depth) {
                self.outer.pop();
            }
            if let Some(rule) = tongue.rule(node.kind_id()) {
                self.take(rule, node, depth);
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Some(());
                }
            }
        }
    }

    fn text(&self, node: Node<'_>) -> &'a str {
        let bytes = self.text.get(node.byte_range()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn in_function(&self) -> bool {
        self.outer.last().is_some_and(|outer| outer.in_function)
    }

    fn in_type(&self) -> bool {
        self.outer.last().is_some_and(|outer| outer.is_type)
    }

    /// What a node means by `rule`.
    fn take(&mut self, rule: Rule, node: Node<'_>, depth: u32) {
        let field = |name: &str| node.child_by_field_name(name);
        let function = if self.in_type() {
            Kind::Method
        } else {
            Kind::Function
        };
        match rule {
            Rule::Named(kind) => self.named(field("name"), kind, depth),
            Rule::Function => self.named(field("name"), function, depth),
            Rule::WithBody(kind) if field("body").is_some() => {
                self.named(field("name"), kind, depth);
            }
            Rule::WithBody(_) => {}
            Rule::Each(kind) => {
                if !self.in_function() {
                    let mut cursor = node.walk();
                    for name in node.children_by_field_name("name", &mut cursor) {
                        // Of Go the commas have the field too.
                        if name.is_named() {
                            self.add(name, kind);
                        }
                    }
                }
            }
            Rule::Declarators(kind) => {
                let mut cursor = node.walk();
                for declarator in node.children_by_field_name("declarator", &mut cursor) {
                    self.add(innermost(declarator), kind);
                }
            }
            Rule::Declared => self.declared(field("declarator"), function, depth),
            Rule::Prototype => {
                if !self.in_function() && is_function(field("declarator")) {
                    self.declared(field("declarator"), function, depth);
                    self.outer.pop();
                }
            }
            Rule::Value(kind) => {
                let value = field("value").map_or("", |value| value.kind());
                let is_function = matches!(
                    value,
                    "arrow_function" | "function_expression" | "generator_function"
                );
                if is_function {
                    self.named(field("name"), function, depth);
                } else if !self.in_function()
                    && let Some(name) = field("name").filter(|name| is_name(*name))
                {
                    self.add(name, kind);
                }
            }
            Rule::Within(of) => {
                let name = field(of).map(|node| base_name(self.text(node)).to_owned());
                self.enter(&name.unwrap_or_default(), true, false, depth);
            }
            Rule::Received => {
                let of = field("receiver").map(|receiver| self.text(receiver));
                let of = of.unwrap_or_default().trim_matches(['(', ')']);
                let of = of.rsplit([' ', '*']).find(|word| !word.is_empty());
                let of = base_name(of.unwrap_or_default()).to_owned();
                self.enter(&of, true, false, depth);
                self.named(field("name"), Kind::Method, depth);
            }
            Rule::GoType => {
                let kind = match field("type").map_or("", |node| node.kind()) {
                    "struct_type" => Kind::Struct,
                    "interface_type" => Kind::Interface,
                    _ => Kind::Type,
                };
                self.named(field("name"), kind, depth);
            }
            Rule::Assignment => {
                let kind = if self.in_type() {
                    Kind::Field
                } else {
                    Kind::Variable
                };
                if let Some(left) = field("left").filter(|left| left.kind() == "identifier")
                    && !self.in_function()
                {
                    self.add(left, kind);
                }
            }
        }
    }

    /// A symbol called `name`, which contains what lies in its node.
    fn named(&mut self, name: Option<Node<'_>>, kind: Kind, depth: u32) {
        let Some(name) = name else { return };
        self.add(name, kind);
        let is_function = matches!(kind, Kind::Function | Kind::Method);
        let is_type = kind.is_type();
        let text = self.text(name).trim_matches(['"', '\'']);
        self.enter(text, is_type, is_function, depth);
    }

    /// A function of C or C++: `A::b` is `b` within `A`.
    fn declared(&mut self, declarator: Option<Node<'_>>, kind: Kind, depth: u32) {
        let Some(declarator) = declarator else { return };
        let mut node = innermost(declarator);
        let mut kind = kind;
        let mut scopes = 0;
        while node.kind() == "qualified_identifier" {
            if let Some(scope) = node.child_by_field_name("scope") {
                let scope = base_name(self.text(scope)).to_owned();
                self.enter(&scope, true, false, depth);
                scopes += 1;
                kind = Kind::Method;
            }
            match node.child_by_field_name("name") {
                Some(name) => node = innermost(name),
                None => break,
            }
        }
        self.add(node, kind);
        for _ in 0..scopes {
            self.outer.pop();
        }
        self.enter(self.text(node), false, true, depth);
    }

    fn enter(&mut self, name: &str, is_type: bool, is_function: bool, depth: u32) {
        let above = self.outer.last();
        let path = above.map_or("", |above| above.path.as_str());
        let path = match (path.is_empty(), name.is_empty()) {
            (_, true) => path.to_owned(),
            (true, false) => name.to_owned(),
            (false, false) => format!("{path}.{name}"),
        };
        let in_function = is_function || above.is_some_and(|above| above.in_function);
        self.outer.push(EnclosingScope {
            depth,
            path: if path.len() > MAX_NAME_BYTES {
                String::new()
            } else {
                path
            },
            is_type,
            in_function,
        });
    }

    fn add(&mut self, name: Node<'_>, kind: Kind) {
        let text = self.text(name).trim_matches(['"', '\'']);
        if text.is_empty() || text.len() > MAX_NAME_BYTES || text.contains(char::is_control) {
            return;
        }
        self.symbols.push(Symbol {
            name: text.to_owned(),
            kind,
            line: u32::try_from(name.start_position().row)
                .unwrap_or(u32::MAX - 1)
                .saturating_add(1),
            container: self
                .outer
                .last()
                .map_or_else(String::new, |outer| outer.path.clone()),
        });
    }
}

/// The declarator that holds the name: `x` of `*x[3]`.
fn innermost(mut node: Node<'_>) -> Node<'_> {
    loop {
        if let Some(inner) = node.child_by_field_name("declarator") {
            node = inner;
        } else if node.kind().ends_with("_declarator") && node.kind() != "variable_declarator" {
            match node.named_child(0) {
                Some(inner) => node = inner,
                None => return node,
            }
        } else if node.kind() == "variable_declarator" {
            return node.child_by_field_name("name").unwrap_or(node);
        } else {
            return node;
        }
    }
}

/// Whether a declarator is that of a function, and not of a pointer to one.
fn is_function(declarator: Option<Node<'_>>) -> bool {
    let mut node = declarator;
    while let Some(inner) = node {
        if inner.kind() == "function_declarator" {
            let of = inner.child_by_field_name("declarator");
            return of.is_none_or(|of| of.kind() != "parenthesized_declarator");
        }
        node = inner.child_by_field_name("declarator").or_else(|| {
            let wraps = inner.kind() == "reference_declarator";
            wraps.then(|| inner.named_child(0)).flatten()
        });
    }
    false
}

/// Whether a node is a name, not a pattern of several.
fn is_name(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "identifier" | "property_identifier" | "private_property_identifier"
    )
}

/// The name of a type without its arguments and its path: `Map` of `std::Map<K, V>`.
fn base_name(text: &str) -> &str {
    let text = text.split(['<', '[']).next().unwrap_or_default();
    let text = text.rsplit([':', '.']).next().unwrap_or_default();
    text.trim_start_matches(['&', '*']).trim()
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
