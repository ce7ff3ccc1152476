//! The symbols of C++, found by a scanner: no grammar, which alone would be as large as all the others.
//!
//! As ctags does, it reads tokens, follows braces, and tells a declaration by the tokens before its body or its end. Bodies of
//! functions are passed over. Every branch of `#if` begins with what was open before the first one. It is
//! linear in the text, and what it keeps of nesting is bounded.

use std::rc::Rc;

use super::extract::{MAX_NAME_BYTES, MAX_SYMBOLS, Symbols};
use super::symbol::{Kind, Symbol};

mod branches;
mod detect;
mod head;
mod lexer;
mod types;

pub(super) use detect::is_cpp;

use branches::Branch;
use head::{DeclarationHead, MAX_TOKENS, Name, Opened};
use lexer::{Kind as Lexed, Lexer, Token};

/// Scopes within each other; what lies deeper is passed over.
const MAX_SCOPE_DEPTH: usize = 100;
/// Values in braces of one declaration; one with more of them is a value itself.
const MAX_VALUES: u32 = 64;

/// Something that holds declarations.
#[derive(Clone)]
struct Scope {
    kind: ScopeKind,
    name: Rc<str>,
    /// All names from the outside in, joined by `.`.
    path: Rc<str>,
    /// The `typedef` that it is part of.
    typedef: Option<Token>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Open,
    Type,
    Enum,
}

/// How the braces of a declaration are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// As [`DeclarationHead::opened`] says.
    New,
    /// As values.
    Values,
    /// As values of members, up to the body.
    Members,
}

struct Scanner<'a> {
    text: &'a [u8],
    symbols: Vec<Symbol>,
    scopes: Vec<Scope>,
    head: Vec<Token>,
    /// How many declarations there were.
    declaration: u32,
    mode: Mode,
    values: u32,
    /// Parentheses that are open.
    parentheses: u32,
    /// Braces that are passed over.
    skipped: u32,
    /// Whether the declaration ends with them.
    is_body: bool,
    /// Whether the next word of an enumeration is a value.
    is_next: bool,
    branches: Vec<Option<Branch>>,
}

/// The symbols of `text`.
pub(super) fn symbols(text: &[u8]) -> Symbols {
    let lexer = Lexer::new(text);
    let mut scanner = Scanner {
        text: lexer.text(),
        symbols: Vec::new(),
        scopes: Vec::new(),
        head: Vec::new(),
        declaration: 0,
        mode: Mode::New,
        values: 0,
        parentheses: 0,
        skipped: 0,
        is_body: false,
        is_next: false,
        branches: Vec::new(),
    };
    let mut whole = true;
    for token in lexer {
        scanner.take(token);
        if scanner.symbols.len() >= MAX_SYMBOLS {
            whole = false;
            break;
        }
    }
    Symbols {
        found: scanner.symbols,
        whole,
    }
}

impl Scanner<'_> {
    fn take(&mut self, token: Token) {
        match token.kind {
            Lexed::Define => {
                let name = self.text.get(token.start..token.end).unwrap_or_default();
                let name = Name {
                    text: String::from_utf8_lossy(name).into_owned(),
                    line: token.line,
                    scopes: Vec::new(),
                };
                self.add(name, Kind::Macro, "");
            }
            Lexed::If => self.branches.push(self.branch()),
            Lexed::Else => self.other_branch(),
            Lexed::Endif => drop(self.branches.pop()),
            Lexed::Sign(b'{') if self.skipped > 0 => self.skipped = self.skipped.saturating_add(1),
            Lexed::Sign(b'}') if self.skipped > 0 => {
                self.skipped -= 1;
                if self.skipped == 0 && self.is_body {
                    self.begin();
                } else if self.skipped == 0 {
                    self.push(token);
                }
            }
            _ if self.skipped > 0 => {}
            Lexed::Sign(b'}') => self.close(),
            _ if self.kind() == ScopeKind::Enum => self.value(token),
            Lexed::Sign(b'{') => self.open(token),
            Lexed::Sign(b';') => self.end(),
            Lexed::Sign(b':') if self.is_label() => self.begin(),
            kind => {
                match kind {
                    Lexed::Sign(b'(') => self.parentheses = self.parentheses.saturating_add(1),
                    Lexed::Sign(b')') => self.parentheses = self.parentheses.saturating_sub(1),
                    _ => {}
                }
                self.push(token);
            }
        }
    }

    fn kind(&self) -> ScopeKind {
        self.scopes
            .last()
            .map_or(ScopeKind::Open, |scope| scope.kind)
    }

    fn path(&self) -> Rc<str> {
        self.scopes
            .last()
            .map_or_else(|| Rc::from(""), |scope| Rc::clone(&scope.path))
    }

    fn push(&mut self, token: Token) {
        if self.head.len() < MAX_TOKENS {
            self.head.push(token);
        }
    }

    /// The next declaration begins.
    fn begin(&mut self) {
        self.head.clear();
        self.declaration = self.declaration.wrapping_add(1);
        self.mode = Mode::New;
        self.values = 0;
        self.parentheses = 0;
    }

    fn skip(&mut self, is_body: bool) {
        self.skipped = 1;
        self.is_body = is_body;
    }

    /// Passes over a value in braces, of which both remain.
    fn skip_value(&mut self, brace: Token) {
        self.values += 1;
        if self.values >= MAX_VALUES && self.mode == Mode::New {
            self.mode = Mode::Values;
        }
        self.push(brace);
        self.skip(false);
    }

    /// `public:` and its like.
    fn is_label(&self) -> bool {
        let word = |token: &Token| self.text.get(token.start..token.end).unwrap_or_default();
        let labels = [
            &b"public"[..],
            b"private",
            b"protected",
            b"signals",
            b"Q_SIGNALS",
        ];
        let mut last = self.head.iter().rev().map(word);
        let is_label = match last.next() {
            Some(b"slots" | b"Q_SLOTS") => last.next().is_some_and(|word| labels.contains(&word)),
            Some(word) => labels.contains(&word),
            None => false,
        };
        is_label && self.kind() == ScopeKind::Type
    }

    fn open(&mut self, brace: Token) {
        if self.parentheses > 0 || self.mode == Mode::Values {
            return self.skip_value(brace);
        }
        if self.mode == Mode::Members {
            let last = self.head.last().map(|token| token.kind);
            return match last {
                Some(Lexed::Word | Lexed::Sign(b'>')) => self.skip_value(brace),
                _ => self.skip(true),
            };
        }
        let opened = DeclarationHead::new(self.text, &self.head).opened();
        let path = self.path();
        match opened {
            Opened::Other if self.head.is_empty() => self.skip(true),
            Opened::Other => {
                // After `=` all is value, whatever comes.
                if self
                    .head
                    .iter()
                    .any(|token| token.kind == Lexed::Sign(b'='))
                {
                    self.mode = Mode::Values;
                }
                self.skip_value(brace);
            }
            Opened::Function(name) => {
                self.add_function(name);
                self.skip(true);
            }
            Opened::Constructor(name) => {
                self.add_function(name);
                self.mode = Mode::Members;
                self.skip_value(brace);
            }
            Opened::Same => self.enter(ScopeKind::Open, "", &path, None),
            Opened::Namespace(names) => {
                let mut path = path;
                let mut last = String::new();
                for name in names {
                    last.clone_from(&name.text);
                    self.add(name, Kind::Module, &path);
                    path = joined(&path, &last);
                }
                self.enter(ScopeKind::Open, &last, &path, None);
            }
            Opened::Type(word, name) => {
                let kind = match word {
                    "class" => Kind::Class,
                    "struct" => Kind::Struct,
                    "union" => Kind::Union,
                    _ => Kind::Enum,
                };
                let scope = if kind == Kind::Enum {
                    ScopeKind::Enum
                } else {
                    ScopeKind::Type
                };
                let first = self.head.first().copied();
                let typedef =
                    first.filter(|token| self.text.get(token.start..token.end) == Some(b"typedef"));
                let (mut path, mut last) = (path, String::new());
                if let Some(name) = name {
                    last.clone_from(&name.text);
                    let within = name
                        .scopes
                        .iter()
                        .fold(Rc::clone(&path), |path, scope| joined(&path, scope));
                    self.add(name, kind, &path);
                    path = joined(&within, &last);
                }
                self.enter(scope, &last, &path, typedef);
            }
        }
    }

    fn enter(&mut self, kind: ScopeKind, name: &str, path: &Rc<str>, typedef: Option<Token>) {
        self.begin();
        if self.scopes.len() >= MAX_SCOPE_DEPTH {
            return self.skip(true);
        }
        self.is_next = kind == ScopeKind::Enum;
        self.scopes.push(Scope {
            kind,
            name: Rc::from(name),
            path: Rc::clone(path),
            typedef,
        });
    }

    fn close(&mut self) {
        self.begin();
        if let Some(typedef) = self.scopes.pop().and_then(|scope| scope.typedef) {
            self.push(typedef);
        }
    }

    /// A token of an enumeration.
    fn value(&mut self, token: Token) {
        match token.kind {
            Lexed::Sign(b'{') => self.skip(false),
            Lexed::Sign(b'(' | b'[') => self.parentheses = self.parentheses.saturating_add(1),
            Lexed::Sign(b')' | b']') => self.parentheses = self.parentheses.saturating_sub(1),
            Lexed::Sign(b',') if self.parentheses == 0 => self.is_next = true,
            Lexed::Word if self.is_next && self.parentheses == 0 => {
                self.is_next = false;
                let name = self.text.get(token.start..token.end).unwrap_or_default();
                let name = Name {
                    text: String::from_utf8_lossy(name).into_owned(),
                    line: token.line,
                    scopes: Vec::new(),
                };
                let path = self.path();
                self.add(name, Kind::Variant, &path);
            }
            _ => {}
        }
    }

    /// A declaration ends.
    fn end(&mut self) {
        if !self.head.is_empty() && self.mode != Mode::Members {
            let class = self
                .scopes
                .last()
                .filter(|scope| scope.kind == ScopeKind::Type);
            let head = DeclarationHead::new(self.text, &self.head);
            let types = head.types();
            let function = head.prototype(class.map(|scope| &*scope.name));
            let path = self.path();
            for name in types {
                self.add(name, Kind::Type, &path);
            }
            if let Some(name) = function {
                self.add_function(name);
            }
        }
        self.begin();
    }

    fn add_function(&mut self, name: Name) {
        let kind = match self.kind() {
            ScopeKind::Open if name.scopes.is_empty() => Kind::Function,
            _ => Kind::Method,
        };
        let path = self.path();
        self.add(name, kind, &path);
    }

    fn add(&mut self, name: Name, kind: Kind, path: &str) {
        let Name { text, line, scopes } = name;
        if text.is_empty() || text.len() > MAX_NAME_BYTES || text.contains(char::is_control) {
            return;
        }
        let within = scopes
            .iter()
            .fold(Rc::from(path), |path: Rc<str>, scope| joined(&path, scope));
        self.symbols.push(Symbol {
            name: text,
            kind,
            line,
            container: within.to_string(),
        });
    }
}

/// What lies in `path` under `name`; at the top where that is too long.
fn joined(path: &Rc<str>, name: &str) -> Rc<str> {
    if path.is_empty() {
        Rc::from(name)
    } else if path.len() + name.len() < MAX_NAME_BYTES {
        Rc::from(format!("{path}.{name}"))
    } else {
        Rc::from("")
    }
}

#[cfg(test)]
mod tests;
