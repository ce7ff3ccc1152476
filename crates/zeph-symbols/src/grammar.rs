//! One table per language: the nodes of its grammar that are symbols.

use std::sync::LazyLock;

use crate::language::Language;
use crate::symbol::SymbolKind as K;

use Rule as R;

/// The meaning of a node of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A symbol with the field `name`, which contains the symbols in the node.
    Named(K),
    /// A function, or a method if it is directly in a type.
    Function,
    /// A symbol if the node has a `body`: `struct x` alone is a reference.
    WithBody(K),
    /// A symbol for each field `name`, outside of functions.
    Each(K),
    /// A symbol for each field `declarator`; the name is inside of it.
    Declarators(K),
    /// A function of C or C++ with a body; the name is in its `declarator`.
    Declared,
    /// A declaration of C or C++: a function if its `declarator` is one.
    Prototype,
    /// A namespace of C++, possibly with several names.
    Namespace,
    /// A function if the value is one; otherwise a symbol of this kind, outside of functions.
    Value(K),
    /// Not a symbol; the type in this field contains the symbols in the node.
    Within(&'static str),
    /// A method of Go; the type of its `receiver` contains it.
    Received,
    /// A type of Go; its `type` decides the kind.
    GoType,
    /// An assignment of Python: a symbol outside of functions.
    Assignment,
}

/// A grammar with its rules.
pub(crate) struct Grammar {
    pub(crate) language: tree_sitter::Language,
    /// Rules by the id of the node kind.
    rules: Vec<Option<Rule>>,
}

impl Grammar {
    fn new(language: tree_sitter::Language, tables: &[&[(&str, Rule)]]) -> Self {
        let mut by_kind = vec![None; language.node_kind_count()];
        for (kind, rule) in tables.concat() {
            let id = language.id_for_node_kind(kind, true);
            if let Some(place) = by_kind.get_mut(usize::from(id)).filter(|_| id != 0) {
                *place = Some(rule);
            }
        }
        Self {
            language,
            rules: by_kind,
        }
    }

    /// The grammar of `language`; `None` if the language has no symbols. The grammar of C++ reads headers.
    pub(crate) fn of(language: Language) -> Option<&'static Self> {
        Some(match language {
            Language::C => &C,
            Language::CHeader | Language::Cpp => &CPP,
            Language::Go => &GO,
            Language::Java => &JAVA,
            Language::JavaScript | Language::TypeScript => &SCRIPT,
            Language::Python => &PYTHON,
            Language::Rust => &RUST,
            Language::Json => return None,
        })
    }

    /// The rule for a node with the kind `id`.
    pub(crate) fn rule(&self, id: u16) -> Option<Rule> {
        self.rules.get(usize::from(id)).copied().flatten()
    }
}

static RUST: LazyLock<Grammar> = LazyLock::new(|| {
    Grammar::new(
        tree_sitter_rust::LANGUAGE.into(),
        &[&[
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
        ]],
    )
});

static PYTHON: LazyLock<Grammar> = LazyLock::new(|| {
    Grammar::new(
        tree_sitter_python::LANGUAGE.into(),
        &[&[
            ("function_definition", R::Function),
            ("class_definition", R::Named(K::Class)),
            ("assignment", R::Assignment),
        ]],
    )
});

/// The rules of JavaScript and TypeScript. The grammar of TSX reads both.
const SCRIPT_RULES: &[(&str, Rule)] = &[
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

static SCRIPT: LazyLock<Grammar> =
    LazyLock::new(|| Grammar::new(tree_sitter_typescript::LANGUAGE_TSX.into(), &[SCRIPT_RULES]));

static GO: LazyLock<Grammar> = LazyLock::new(|| {
    Grammar::new(
        tree_sitter_go::LANGUAGE.into(),
        &[&[
            ("function_declaration", R::Named(K::Function)),
            ("method_declaration", R::Received),
            ("method_elem", R::Named(K::Method)),
            ("type_spec", R::GoType),
            ("type_alias", R::Named(K::Type)),
            ("const_spec", R::Each(K::Const)),
            ("var_spec", R::Each(K::Variable)),
        ]],
    )
});

static JAVA: LazyLock<Grammar> = LazyLock::new(|| {
    Grammar::new(
        tree_sitter_java::LANGUAGE.into(),
        &[&[
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
        ]],
    )
});

/// The rules of C, which hold for C++ too.
const C_RULES: &[(&str, Rule)] = &[
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
];

/// The additional rules of C++.
const CPP_RULES: &[(&str, Rule)] = &[
    ("class_specifier", R::WithBody(K::Class)),
    ("namespace_definition", R::Namespace),
    ("alias_declaration", R::Named(K::Type)),
    ("concept_definition", R::Named(K::Type)),
];

static C: LazyLock<Grammar> =
    LazyLock::new(|| Grammar::new(tree_sitter_c::LANGUAGE.into(), &[C_RULES]));

static CPP: LazyLock<Grammar> =
    LazyLock::new(|| Grammar::new(tree_sitter_cpp::LANGUAGE.into(), &[C_RULES, CPP_RULES]));
