//! Signs of double evaluation: text that bash could evaluate a second time.

use super::word::Atom;

/// Indications in a text, and in the texts nested in it, that bash could evaluate it a second time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvalFlags {
    /// A name with a subscript that contains a substitution, as in `'a[$(date)]'`. It is plain text until bash
    /// evaluates it as arithmetic.
    pub subscript: bool,
    /// A construct that evaluates arithmetic, or takes names of variables.
    pub calculates: bool,
    /// Parts of such a subscript in the values of variables. Bash could assemble it from them.
    pub fragments: Fragments,
}

/// Literal parts of the values of variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fragments {
    /// A `[`.
    bracket: bool,
    /// A substitution.
    code: bool,
    /// A `$` at the end.
    dollar: bool,
    /// A `(` or `{` at the beginning.
    opening: bool,
}

impl Fragments {
    /// A `[` alone.
    pub(crate) const BRACKET: Self = Self {
        bracket: true,
        code: false,
        dollar: false,
        opening: false,
    };
}

impl EvalFlags {
    /// Combines the flags of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            subscript: self.subscript || other.subscript,
            calculates: self.calculates || other.calculates,
            fragments: Fragments {
                bracket: self.fragments.bracket || other.fragments.bracket,
                code: self.fragments.code || other.fragments.code,
                dollar: self.fragments.dollar || other.fragments.dollar,
                opening: self.fragments.opening || other.fragments.opening,
            },
        }
    }

    /// Whether bash could run a substitution in a subscript when it evaluates arithmetic.
    #[must_use]
    pub fn evaluates_again(self) -> bool {
        let Fragments {
            bracket,
            code,
            dollar,
            opening,
        } = self.fragments;
        self.calculates && (self.subscript || bracket && (code || dollar && opening))
    }
}

/// The literal parts of a value that could be parts of a subscript.
pub(crate) fn fragments(atoms: &[Atom]) -> Fragments {
    let literal = |atom: &Atom| match atom {
        Atom::Char(character, _) => Some(*character),
        _ => None,
    };
    let text: String = atoms.iter().filter_map(literal).collect();
    Fragments {
        bracket: text.contains('['),
        code: ["$(", "${", "`", "<(", ">("]
            .iter()
            .any(|code| text.contains(code)),
        dollar: text.ends_with('$'),
        opening: text.starts_with(['(', '{']),
    }
}

/// Whether a text has a name with a subscript that contains a substitution.
pub(crate) fn has_subscript(text: impl Iterator<Item = char>) -> bool {
    let (mut before, mut inside) = (' ', false);
    for character in text {
        inside |= character == '[' && (before.is_ascii_alphanumeric() || before == '_');
        let opens = before == '$' && matches!(character, '(' | '{')
            || matches!(before, '<' | '>') && character == '(';
        if inside && (character == '`' || opens) {
            return true;
        }
        before = character;
    }
    false
}

/// Whether a word has a name with a subscript that contains a substitution.
pub(crate) fn atoms_have_subscript(atoms: &[Atom]) -> bool {
    atoms
        .iter()
        .any(|atom| atom.is('[') || *atom == Atom::Char('[', true))
        && has_subscript(atoms.iter().filter_map(|atom| match atom {
            Atom::Char(character, _) => Some(*character),
            _ => None,
        }))
}
