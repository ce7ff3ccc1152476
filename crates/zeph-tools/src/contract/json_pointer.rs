//! JSON pointers (RFC 6901) in messages about arguments.

/// Returns the JSON pointer (RFC 6901) of the field `name` of the value at `pointer`.
pub(crate) fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Formats a JSON pointer for messages.
pub(crate) fn at(pointer: &str) -> String {
    if pointer.is_empty() {
        "the object".to_owned()
    } else {
        format!("`{pointer}`")
    }
}
