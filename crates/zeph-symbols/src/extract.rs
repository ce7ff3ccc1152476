//! The symbols of a text: a walk through its syntax tree with the rules of the grammar.

use std::borrow::Cow;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tree_sitter::{Node, Tree};

use crate::cpp_macros::blank_macros;
use crate::declarator::{innermost, is_function, name};
use crate::grammar::{Grammar, Rule};
use crate::language::Language;
use crate::parse::parse;
use crate::symbol::{Symbol, SymbolKind};

/// The CPU time limit for one file.
const TIME: Duration = Duration::from_secs(2);
/// The maximum number of symbols of one file.
const MAX_SYMBOLS: usize = 200_000;
/// The maximum length of a name. Longer names are not symbols.
const MAX_NAME_BYTES: usize = 200;

/// The symbols of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symbols {
    /// The symbols in the order of the text.
    pub found: Vec<Symbol>,
    /// Whether these are all symbols: parsing takes at most two seconds of CPU time, and there are at most 200,000.
    pub whole: bool,
}

/// Finds the symbols of `text`, which is UTF-8, possibly with invalid bytes.
#[must_use]
pub fn symbols(text: &[u8], language: Language) -> Symbols {
    let deadline = cpu_time() + TIME;
    let mut walk = TreeWalk {
        text: match language {
            Language::CHeader | Language::Cpp => blank_macros(text),
            _ => text.into(),
        },
        outer: Vec::new(),
        symbols: Vec::new(),
        deadline,
    };
    let whole = walk.run(language).is_some();
    Symbols {
        found: walk.symbols,
        whole,
    }
}

/// The CPU time of this thread. Unlike a clock, it does not depend on the load of the machine.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A node that contains symbols.
struct EnclosingScope {
    depth: u32,
    /// The names from the outside in, joined by `.`; empty if that is too long.
    path: String,
    is_type: bool,
    /// Whether the node is a function or inside of one.
    in_function: bool,
}

/// The state of a walk.
struct TreeWalk<'a> {
    text: Cow<'a, [u8]>,
    outer: Vec<EnclosingScope>,
    symbols: Vec<Symbol>,
    deadline: Duration,
}

impl TreeWalk<'_> {
    fn is_late(&self) -> bool {
        cpu_time() >= self.deadline
    }

    /// Takes all symbols; `None` if the walk ends early.
    fn run(&mut self, language: Language) -> Option<()> {
        let Some(grammar) = Grammar::of(language) else {
            return Some(());
        };
        let tree = parse(&grammar.language, &self.text, || self.is_late())?;
        // A header is C++, unless only the grammar of C reads all of it.
        if language == Language::CHeader
            && tree.root_node().has_error()
            && let Some(grammar) = Grammar::of(Language::C)
        {
            let c_tree = parse(&grammar.language, &self.text, || self.is_late())?;
            if !c_tree.root_node().has_error() {
                return self.walk(&c_tree, grammar);
            }
        }
        self.walk(&tree, grammar)
    }

    fn walk(&mut self, tree: &Tree, grammar: &Grammar) -> Option<()> {
        let mut cursor = tree.walk();
        let mut seen = 0_u32;
        loop {
            seen = seen.wrapping_add(1);
            if self.symbols.len() >= MAX_SYMBOLS || (seen.is_multiple_of(4096) && self.is_late()) {
                return None;
            }
            let node = cursor.node();
            let depth = cursor.depth();
            while self.outer.last().is_some_and(|outer| outer.depth >= depth) {
                self.outer.pop();
            }
            if let Some(rule) = grammar.rule(node.kind_id()) {
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

    fn text(&self, node: Node<'_>) -> &str {
        let bytes = self.text.get(node.byte_range()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn in_function(&self) -> bool {
        self.outer.last().is_some_and(|outer| outer.in_function)
    }

    fn in_type(&self) -> bool {
        self.outer.last().is_some_and(|outer| outer.is_type)
    }

    /// Applies `rule` to a node.
    fn take(&mut self, rule: Rule, node: Node<'_>, depth: u32) {
        let field = |name: &str| node.child_by_field_name(name);
        let function = if self.in_type() {
            SymbolKind::Method
        } else {
            SymbolKind::Function
        };
        match rule {
            Rule::Named(kind) => self.named(field("name"), kind, depth),
            Rule::Function => self.named(field("name"), function, depth),
            Rule::WithBody(kind) if field("body").is_some() => {
                if let Some(node) = field("name") {
                    self.qualified(node, kind, depth);
                }
            }
            Rule::WithBody(_) => {}
            Rule::Each(kind) => {
                if !self.in_function() {
                    let mut cursor = node.walk();
                    for name in node.children_by_field_name("name", &mut cursor) {
                        // In Go, the commas have the field too.
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
            Rule::Declared => {
                if let Some(declarator) = field("declarator") {
                    self.qualified(innermost(declarator), function, depth);
                }
            }
            Rule::Prototype => {
                let declarator = field("declarator").filter(|node| is_function(Some(*node)));
                if let Some(declarator) = declarator.filter(|_| !self.in_function()) {
                    let outer = self.outer.len();
                    self.qualified(innermost(declarator), function, depth);
                    self.outer.truncate(outer);
                }
            }
            Rule::Namespace => {
                let mut next = field("name");
                while let Some(node) = next {
                    let first = node.named_child(0);
                    self.named(first.or(Some(node)), SymbolKind::Module, depth);
                    next = first.and_then(|first| first.next_named_sibling());
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
                self.named(field("name"), SymbolKind::Method, depth);
            }
            Rule::GoType => {
                let kind = match field("type").map_or("", |node| node.kind()) {
                    "struct_type" => SymbolKind::Struct,
                    "interface_type" => SymbolKind::Interface,
                    _ => SymbolKind::Type,
                };
                self.named(field("name"), kind, depth);
            }
            Rule::Assignment => {
                let kind = if self.in_type() {
                    SymbolKind::Field
                } else {
                    SymbolKind::Variable
                };
                if let Some(left) = field("left").filter(|left| left.kind() == "identifier")
                    && !self.in_function()
                {
                    self.add(left, kind);
                }
            }
        }
    }

    /// Adds a symbol called `name`, which contains the symbols in its node.
    fn named(&mut self, name: Option<Node<'_>>, kind: SymbolKind, depth: u32) {
        let Some(name) = name else { return };
        self.add(name, kind);
        let is_function = matches!(kind, SymbolKind::Function | SymbolKind::Method);
        let is_type = kind.is_type();
        let text = self.text(name).trim_matches(['"', '\'']).to_owned();
        self.enter(&text, is_type, is_function, depth);
    }

    /// Adds a type or a function of C or C++, which contains the symbols in its node: `A::b` is `b` in `A`.
    fn qualified(&mut self, mut node: Node<'_>, mut kind: SymbolKind, depth: u32) {
        while node.kind() == "qualified_identifier" {
            if let Some(scope) = node.child_by_field_name("scope") {
                self.enter(&name(scope, &self.text), true, false, depth);
                if kind == SymbolKind::Function {
                    kind = SymbolKind::Method;
                }
            }
            match node.child_by_field_name("name") {
                Some(inner) => node = innermost(inner),
                None => break,
            }
        }
        let text = name(node, &self.text);
        self.push(&text, node, kind);
        let is_function = matches!(kind, SymbolKind::Function | SymbolKind::Method);
        self.enter(&text, kind.is_type(), is_function, depth);
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

    fn add(&mut self, name: Node<'_>, kind: SymbolKind) {
        let text = self.text(name).trim_matches(['"', '\'']).to_owned();
        self.push(&text, name, kind);
    }

    /// Adds a symbol with the name `text`, which is in the line of `node`.
    fn push(&mut self, text: &str, node: Node<'_>, kind: SymbolKind) {
        if text.is_empty() || text.len() > MAX_NAME_BYTES || text.contains(char::is_control) {
            return;
        }
        self.symbols.push(Symbol {
            name: text.to_owned(),
            kind,
            line: u32::try_from(node.start_position().row)
                .unwrap_or(u32::MAX - 1)
                .saturating_add(1),
            container: self
                .outer
                .last()
                .map_or_else(String::new, |outer| outer.path.clone()),
        });
    }
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
