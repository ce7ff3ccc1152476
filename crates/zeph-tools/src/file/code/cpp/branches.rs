//! The branches of `#if`: each begins with what was open before the first, so that braces that stand in two of them count
//! once.

use super::lexer::Kind as Lexed;
use super::{Scanner, Scope};

/// `#if` within each other whose branches are kept apart.
const MAX_IF_DEPTH: usize = 32;

/// What a branch of `#if` begins with.
pub(super) struct Branch {
    scopes: Vec<Scope>,
    skipped: u32,
    is_body: bool,
    /// The declaration: which one, and how far it was.
    declaration: u32,
    tokens: usize,
}

impl Scanner<'_> {
    /// What the branches of an `#if` here begin with.
    pub(super) fn branch(&self) -> Option<Branch> {
        (self.branches.len() < MAX_IF_DEPTH).then(|| Branch {
            scopes: self.scopes.clone(),
            skipped: self.skipped,
            is_body: self.is_body,
            declaration: self.declaration,
            tokens: self.head.len(),
        })
    }

    /// Another branch begins with what the first one began with.
    pub(super) fn other_branch(&mut self) {
        let Some(Some(branch)) = self.branches.last() else {
            return;
        };
        self.scopes.clone_from(&branch.scopes);
        self.skipped = branch.skipped;
        self.is_body = branch.is_body;
        if self.declaration == branch.declaration {
            let tokens = branch.tokens;
            self.head.truncate(tokens);
            let count = |sign| {
                let signs = self
                    .head
                    .iter()
                    .filter(|token| token.kind == Lexed::Sign(sign));
                u32::try_from(signs.count()).unwrap_or(u32::MAX)
            };
            self.parentheses = count(b'(').saturating_sub(count(b')'));
        } else {
            self.begin();
        }
    }
}
