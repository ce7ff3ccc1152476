//! Declarators of C and C++: the declared name inside of them.

use tree_sitter::Node;

/// The part of a declarator that is the name: `x` of `*x[3]`.
pub(crate) fn innermost(mut node: Node<'_>) -> Node<'_> {
    loop {
        let inner = match node.kind() {
            // The declarator of a conversion operator holds its parameters.
            "operator_cast" => None,
            "variable_declarator" => node.child_by_field_name("name"),
            kind => node.child_by_field_name("declarator").or_else(|| {
                let wraps = kind.ends_with("_declarator");
                wraps.then(|| node.named_child(0)).flatten()
            }),
        };
        match inner {
            Some(inner) => node = inner,
            None => return node,
        }
    }
}

/// Whether a declarator is that of a function, and not of a pointer to one.
pub(crate) fn is_function(declarator: Option<Node<'_>>) -> bool {
    let mut node = declarator;
    while let Some(inner) = node {
        match inner.kind() {
            "operator_cast" => return true,
            "function_declarator" => {
                let of = inner.child_by_field_name("declarator");
                return of.is_none_or(|of| of.kind() != "parenthesized_declarator");
            }
            // `A::operator bool()`
            "qualified_identifier" => node = inner.child_by_field_name("name"),
            kind => {
                node = inner.child_by_field_name("declarator").or_else(|| {
                    let wraps = matches!(kind, "reference_declarator" | "attributed_declarator");
                    wraps.then(|| inner.named_child(0)).flatten()
                });
            }
        }
    }
    false
}

/// The name in a node: without template arguments, and without white space that does not separate words.
pub(crate) fn name(node: Node<'_>, text: &[u8]) -> String {
    let node = match node.kind() {
        "template_function" | "template_method" | "template_type" => {
            node.child_by_field_name("name").unwrap_or(node)
        }
        _ => node,
    };
    let end = match node.kind() {
        "operator_cast" => node.child_by_field_name("declarator"),
        _ => None,
    };
    let end = end.map_or(node.end_byte(), |declarator| declarator.start_byte());
    let text = text.get(node.start_byte()..end).unwrap_or_default();
    let mut name = String::with_capacity(text.len());
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    for part in std::str::from_utf8(text)
        .unwrap_or_default()
        .split_whitespace()
    {
        if name.ends_with(is_word) && part.starts_with(is_word) {
            name.push(' ');
        }
        name.push_str(part);
    }
    name
}
