//! Languages whose symbols are known, and what in their grammars makes a symbol.

use std::path::Path;
use std::sync::LazyLock;

use tree_sitter::Language;

use super::cpp;
use super::extract::{self, Symbols};
use super::symbol::Kind;

/// What a node of a grammar means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A symbol, called as its field `name` says. What lies in it is contained in it.
    Named(Kind),
    /// A function; a method within a type.
    Function,
    /// A symbol only where it has a `body`: `struct x` alone is a mention.
    WithBody(Kind),
    /// A symbol for each of its fields `name`, unless it lies in a function.
    Each(Kind),
    /// A symbol for each of its fields `declarator`, which are C's: the name lies within.
    Declarators(Kind),
    /// A function of C or C++, called as its `declarator` says.
    Declared,
    /// A declaration of C or C++: a function where its `declarator` is one.
    Prototype,
    /// A value: a function where it holds one, else of this kind, unless it lies in a function.
    Value(Kind),
    /// No symbol: what lies in it is contained in the type that this field names.
    Within(&'static str),
    /// A method of Go: contained in the type of its `receiver`.
    Received,
    /// A type of Go: its `type` says which.
    GoType,
    /// An assignment of Python: a symbol outside of functions.
    Assignment,
}

/// A language.
pub(super) struct CodeLanguage {
    pub(super) language: Language,
    /// By the number of the node's kind.
    rules: Vec<Option<Rule>>,
}

impl CodeLanguage {
    fn new(language: Language, rules: &[(&str, Rule)]) -> Self {
        let mut by_kind = vec![None; language.node_kind_count()];
        for (kind, rule) in rules {
            let id = language.id_for_node_kind(kind, true);
            if let Some(place) = by_kind.get_mut(usize::from(id)).filter(|_| id != 0) {
                *place = Some(*rule);
            }
        }
        Self {
            language,
            rules: by_kind,
        }
    }

    /// What a node of the kind `id` means.
    pub(super) fn rule(&self, id: u16) -> Option<Rule> {
        self.rules.get(usize::from(id)).copied().flatten()
    }
}

use Kind as K;
use Rule as R;

static RUST: LazyLock<CodeLanguage> = LazyLock::new(|| {
    CodeLanguage::new(
        tree_sitter_rust::LANGUAGE.into(),
        &[
            ("function_item", R::Function),
            ("function_signature_item", R::Function),
            ("struct_item", R::Named(K::Struct)),
            ("union_item", R::Named(K::Union)),
            ("enum_item", R::Named(K::Enum)),
            ("enum_variant", R::Named(K::Variant)),
            ("trait_item", R::Named(K::Trait)),
            ("type_item", R::Named(K::Type)),
            ("associated_type", R::Named(K::Type)),
            ("const_item", R::Named(K::Const)),
            ("static_item", R::Named(K::Variable)),
            ("mod_item", R::Named(K::Module)),
            ("macro_definition", R::Named(K::Macro)),
            ("impl_item", R::Within("type")),
        ],
    )
});

static PYTHON: LazyLock<CodeLanguage> = LazyLock::new(|| {
    CodeLanguage::new(
        tree_sitter_python::LANGUAGE.into(),
        &[
            ("function_definition", R::Function),
            ("class_definition", R::Named(K::Class)),
            ("assignment", R::Assignment),
        ],
    )
});

/// What JavaScript and TypeScript have.
const SCRIPT: &[(&str, Rule)] = &[
    ("function_declaration", R::Function),
    ("generator_function_declaration", R::Function),
    ("function_signature", R::Function),
    ("class_declaration", R::Named(K::Class)),
    ("abstract_class_declaration", R::Named(K::Class)),
    ("method_definition", R::Named(K::Method)),
    ("method_signature", R::Named(K::Method)),
    ("abstract_method_signature", R::Named(K::Method)),
    ("interface_declaration", R::Named(K::Interface)),
    ("type_alias_declaration", R::Named(K::Type)),
    ("enum_declaration", R::Named(K::Enum)),
    ("internal_module", R::Named(K::Module)),
    ("module", R::Named(K::Module)),
    ("variable_declarator", R::Value(K::Const)),
    ("public_field_definition", R::Value(K::Field)),
];

static SCRIPTS: LazyLock<CodeLanguage> =
    LazyLock::new(|| CodeLanguage::new(tree_sitter_typescript::LANGUAGE_TSX.into(), SCRIPT));

static GO: LazyLock<CodeLanguage> = LazyLock::new(|| {
    CodeLanguage::new(
        tree_sitter_go::LANGUAGE.into(),
        &[
            ("function_declaration", R::Named(K::Function)),
            ("method_declaration", R::Received),
            ("method_elem", R::Named(K::Method)),
            ("type_spec", R::GoType),
            ("type_alias", R::Named(K::Type)),
            ("const_spec", R::Each(K::Const)),
            ("var_spec", R::Each(K::Variable)),
        ],
    )
});

static JAVA: LazyLock<CodeLanguage> = LazyLock::new(|| {
    CodeLanguage::new(
        tree_sitter_java::LANGUAGE.into(),
        &[
            ("class_declaration", R::Named(K::Class)),
            ("record_declaration", R::Named(K::Class)),
            ("interface_declaration", R::Named(K::Interface)),
            ("annotation_type_declaration", R::Named(K::Interface)),
            ("enum_declaration", R::Named(K::Enum)),
            ("enum_constant", R::Named(K::Variant)),
            ("method_declaration", R::Named(K::Method)),
            ("constructor_declaration", R::Named(K::Method)),
            ("field_declaration", R::Declarators(K::Field)),
            ("constant_declaration", R::Declarators(K::Const)),
        ],
    )
});

static C: LazyLock<CodeLanguage> = LazyLock::new(|| {
    CodeLanguage::new(
        tree_sitter_c::LANGUAGE.into(),
        &[
            ("function_definition", R::Declared),
            ("declaration", R::Prototype),
            ("field_declaration", R::Prototype),
            ("struct_specifier", R::WithBody(K::Struct)),
            ("union_specifier", R::WithBody(K::Union)),
            ("enum_specifier", R::WithBody(K::Enum)),
            ("enumerator", R::Named(K::Variant)),
            ("type_definition", R::Declarators(K::Type)),
            ("preproc_def", R::Named(K::Macro)),
            ("preproc_function_def", R::Named(K::Macro)),
        ],
    )
});

/// How symbols of a file are found.
#[derive(Clone, Copy)]
pub(super) enum Reader {
    /// By a grammar.
    Grammar(&'static LazyLock<CodeLanguage>),
    /// By the scanner of C++.
    Cpp,
    /// By the scanner where it holds what C does not have, else by the grammar of C.
    Header,
}

impl Reader {
    /// The symbols of `text`.
    pub(super) fn symbols(self, text: &[u8]) -> Symbols {
        match self {
            Self::Grammar(tongue) => extract::symbols(tongue, text),
            Self::Header if !cpp::is_cpp(text) => extract::symbols(&C, text),
            Self::Header | Self::Cpp => cpp::symbols(text),
        }
    }
}

/// The language that the name of a file stands for.
pub(super) fn of(path: &Path) -> Option<Reader> {
    Some(match path.extension()?.to_str()? {
        "rs" => Reader::Grammar(&RUST),
        "py" | "pyi" => Reader::Grammar(&PYTHON),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => Reader::Grammar(&SCRIPTS),
        "go" => Reader::Grammar(&GO),
        "java" => Reader::Grammar(&JAVA),
        "c" => Reader::Grammar(&C),
        "h" => Reader::Header,
        "cc" | "cpp" | "cxx" | "c++" | "C" | "cppm" | "ixx" | "hh" | "hpp" | "hxx" | "h++"
        | "H" | "ipp" | "inl" | "tpp" | "txx" | "cu" | "cuh" => Reader::Cpp,
        _ => return None,
    })
}
