//! What a symbol is, and how a name is found.

/// What a symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A function outside of types.
    Function,
    /// A function of a type.
    Method,
    /// A class or record.
    Class,
    /// A struct.
    Struct,
    /// A union.
    Union,
    /// An enumeration.
    Enum,
    /// One of its values.
    Variant,
    /// A trait.
    Trait,
    /// An interface or annotation.
    Interface,
    /// Another name of a type, or a concept.
    Type,
    /// A value that does not change, or is declared so.
    Const,
    /// A variable outside of functions.
    Variable,
    /// A field.
    Field,
    /// A module or namespace.
    Module,
    /// A macro.
    Macro,
}

impl Kind {
    /// All kinds; their places are how the index has them.
    pub const ALL: [Self; 15] = [
        Self::Function,
        Self::Method,
        Self::Class,
        Self::Struct,
        Self::Union,
        Self::Enum,
        Self::Variant,
        Self::Trait,
        Self::Interface,
        Self::Type,
        Self::Const,
        Self::Variable,
        Self::Field,
        Self::Module,
        Self::Macro,
    ];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Method => "method",
            Self::Class => "class",
            Self::Struct => "struct",
            Self::Union => "union",
            Self::Enum => "enum",
            Self::Variant => "variant",
            Self::Trait => "trait",
            Self::Interface => "interface",
            Self::Type => "type",
            Self::Const => "const",
            Self::Variable => "variable",
            Self::Field => "field",
            Self::Module => "module",
            Self::Macro => "macro",
        }
    }

    /// The kinds that a word asks for: `function` asks for methods too, `class` for structs.
    #[must_use]
    pub fn asked_for(word: &str) -> Option<Vec<Self>> {
        let word = word.trim().to_ascii_lowercase();
        Some(match word.as_str() {
            "function" | "fn" | "func" | "def" => vec![Self::Function, Self::Method],
            "class" => vec![Self::Class, Self::Struct],
            "constant" => vec![Self::Const],
            "var" | "static" => vec![Self::Variable],
            "mod" | "namespace" => vec![Self::Module],
            other => vec![Self::ALL.into_iter().find(|kind| kind.word() == other)?],
        })
    }

    /// Whether functions in it are methods.
    pub(super) fn is_type(self) -> bool {
        use Kind::{Class, Enum, Interface, Struct, Trait, Union, Variant};
        matches!(
            self,
            Class | Enum | Interface | Struct | Trait | Union | Variant
        )
    }

    /// Its place in [`Kind::ALL`].
    #[must_use]
    pub fn number(self) -> i64 {
        let place = Self::ALL.iter().position(|kind| *kind == self);
        place
            .and_then(|place| i64::try_from(place).ok())
            .unwrap_or_default()
    }

    /// The kind at a place of [`Kind::ALL`].
    #[must_use]
    pub fn of_number(number: i64) -> Option<Self> {
        let place = usize::try_from(number).ok()?;
        Self::ALL.get(place).copied()
    }
}

/// A symbol of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its own name.
    pub name: String,
    /// What it names.
    pub kind: Kind,
    /// The line of its name, from 1 on.
    pub line: u32,
    /// What it lies in, from the outside in, joined by `.`; empty at the top.
    pub container: String,
}

/// How well a name fits a query: less is better. `None` where it does not.
///
/// Ranks: the same, the same but for case, a beginning, the initials of its parts, a piece, and
/// at last all letters in their order. Of two with the same rank the shorter one fits better.
#[must_use]
pub fn rank(query: &str, name: &str) -> Option<(u8, usize)> {
    let (low_query, low) = (query.to_lowercase(), name.to_lowercase());
    let rank = if query == name {
        0
    } else if low_query == low {
        1
    } else if name.starts_with(query) {
        2
    } else if low.starts_with(&low_query) {
        3
    } else if low_query.len() > 1 && initials(name).starts_with(&low_query) {
        4
    } else if low.contains(&low_query) {
        5
    } else {
        let mut left = low.chars();
        let mut query = low_query.chars().filter(|c| *c != '_');
        if !query.all(|wanted| left.any(|c| c == wanted)) {
            return None;
        }
        6
    };
    Some((rank, name.len()))
}

/// The first letters of the parts of a name, in lower case: `gcr` for `getCodeRank`.
fn initials(name: &str) -> String {
    let mut before = '_';
    let mut initials = String::new();
    for character in name.chars() {
        let begins = before == '_' || (character.is_uppercase() && !before.is_uppercase());
        if begins && character != '_' {
            initials.extend(character.to_lowercase());
        }
        before = character;
    }
    initials
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves NAT-5 in part.
    #[test]
    fn better_fitting_names_come_first() {
        let names = [
            "parse",
            "Parse",
            "parse_config",
            "ParseConfig",
            "reparse",
            "prepare_use",
            "other",
        ];
        let mut found: Vec<_> = names
            .iter()
            .filter_map(|name| rank("parse", name).map(|rank| (rank, *name)))
            .collect();
        found.sort();
        let found: Vec<_> = found.into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, names[..6]);
        let check = |query, name, expect| {
            assert_eq!(
                rank(query, name).map(|rank| rank.0),
                expect,
                "{query} {name}"
            );
        };
        check("gcr", "getCodeRank", Some(4));
        check("gcr", "get_code_rank", Some(4));
        check("hs", "HTTPServer", Some(6));
        check("coderank", "getCodeRank", Some(5));
        check("get_rank", "getCodeRank", Some(6));
        check("x", "getCodeRank", None);
        check("straße", "STRASSE", None);
        check("é", "É", Some(1));
    }

    #[test]
    fn kinds_have_words_and_numbers() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_number(kind.number()), Some(kind));
            let asked = Kind::asked_for(kind.word());
            assert!(asked.is_some_and(|kinds| kinds.contains(&kind)));
        }
        assert_eq!(Kind::asked_for("thing"), None);
        assert_eq!(Kind::of_number(99), None);
    }
}
