//! The forms of `${…}`.

use super::parse::is_name;

/// The form of a parameter expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Every POSIX shell has it.
    Posix,
    /// Bash has it.
    Bash,
}

/// Operators of every POSIX shell.
const POSIX: &[&str] = &[":-", ":=", ":?", ":+", "-", "=", "?", "+", "#", "%"];

/// The form of the text between `${` and `}`; `None` if bash has no such form.
pub(crate) fn form(inner: &str) -> Option<Form> {
    if let Some(rest) = inner.strip_prefix('#').filter(|rest| !rest.is_empty()) {
        let (_, after) = parameter(rest)?;
        return match after {
            "" => Some(Form::Posix),
            _ => subscript(after)
                .filter(|after| after.is_empty())
                .map(|_| Form::Bash),
        };
    }
    let indirect = inner.strip_prefix('!').filter(|rest| !rest.is_empty());
    let (_, mut after) = parameter(indirect.unwrap_or(inner))?;
    let mut form = if indirect.is_some() {
        Form::Bash
    } else {
        Form::Posix
    };
    if after.starts_with('[') {
        after = subscript(after)?;
        form = Form::Bash;
    }
    if indirect.is_some() && matches!(after, "*" | "@") {
        return Some(Form::Bash);
    }
    if after.is_empty() || POSIX.iter().any(|operator| after.starts_with(operator)) {
        return Some(form);
    }
    after
        .starts_with([':', '/', '^', ',', '@'])
        .then_some(Form::Bash)
}

/// The parameter at the start of a text, and the text after it.
fn parameter(text: &str) -> Option<(&str, &str)> {
    let first = text.chars().next()?;
    let length = if first.is_ascii_digit() {
        text.find(|c: char| !c.is_ascii_digit())
    } else if "@*#?-$!".contains(first) {
        Some(1)
    } else {
        text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
    };
    let (name, after) = text.split_at(length.unwrap_or(text.len()));
    let known = !first.is_ascii_alphabetic() && first != '_' || is_name(name);
    (known && !name.is_empty()).then_some((name, after))
}

/// The text after the subscript at the start of `text`.
fn subscript(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then(|| text.get(at + 1..)).flatten();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-12.
    #[test]
    fn parameter_expansion_has_a_known_form() {
        let check = |inner, expect| assert_eq!(form(inner), expect, "{inner}");
        for inner in [
            "x", "x_1", "1", "10", "@", "*", "#", "?", "!", "$", "-", "#x", "#@", "x:-y", "x-",
            "x:=a b", "x?no", "x:+y", "x#*/", "x##*/", "x%.rs", "x%%.*", "@:-a",
        ] {
            check(inner, Some(Form::Posix));
        }
        for inner in [
            "x[0]", "x[@]", "#x[@]", "!x", "!x*", "!x@", "!x[@]", "x:0:3", "x: -1", "x/a/b",
            "x//a", "x^^", "x,", "x@Q", "x[$i]:-y", "x[a[0]]", "@:2",
        ] {
            check(inner, Some(Form::Bash));
        }
        for inner in [
            "", " x", "x y", "x;y", "x&", "x(", "x{", "x[0", "x~~", "é", "x'a'", "#x y", "x|y",
            "x<y",
        ] {
            check(inner, None);
        }
    }
}
