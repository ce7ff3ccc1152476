//! Symbols and their kinds.

/// The kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolKind {
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
    /// A value of an enumeration.
    Variant,
    /// A trait.
    Trait,
    /// An interface or annotation.
    Interface,
    /// An alias of a type, or a concept.
    Type,
    /// A constant.
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

impl SymbolKind {
    /// All kinds. The positions are the numbers in stored indexes.
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

    /// Returns the name of the kind in results.
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

    /// Returns the kinds that a word of a query denotes: `function` includes methods, `class` includes structs.
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

    /// Whether functions in a symbol of this kind are methods.
    pub(crate) fn is_type(self) -> bool {
        use SymbolKind::{Class, Enum, Interface, Struct, Trait, Union, Variant};
        matches!(
            self,
            Class | Enum | Interface | Struct | Trait | Union | Variant
        )
    }

    /// The position of the kind in [`SymbolKind::ALL`].
    #[must_use]
    pub fn number(self) -> i64 {
        let place = Self::ALL.iter().position(|kind| *kind == self);
        place
            .and_then(|place| i64::try_from(place).ok())
            .unwrap_or_default()
    }

    /// The kind at a position of [`SymbolKind::ALL`].
    #[must_use]
    pub fn of_number(number: i64) -> Option<Self> {
        let place = usize::try_from(number).ok()?;
        Self::ALL.get(place).copied()
    }
}

/// A symbol of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name without its container.
    pub name: String,
    /// The kind.
    pub kind: SymbolKind,
    /// The line of the name, from 1.
    pub line: u32,
    /// The names of the enclosing symbols from the outside in, joined by `.`; empty at the top level.
    pub container: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_and_numbers() {
        for kind in SymbolKind::ALL {
            assert_eq!(SymbolKind::of_number(kind.number()), Some(kind));
            let asked = SymbolKind::asked_for(kind.word());
            assert!(asked.is_some_and(|kinds| kinds.contains(&kind)));
        }
        assert_eq!(SymbolKind::asked_for("thing"), None);
        assert_eq!(SymbolKind::of_number(99), None);
    }
}
