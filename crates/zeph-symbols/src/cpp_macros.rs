//! Macros in declarations of C++, which the grammar cannot read: they are replaced by blanks of the same length.
//!
//! A macro is recognized by its capital letters.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// Macros between the keyword and the name of a definition: `class API Name {`.
static BEFORE_NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)
        \b (?: class | struct | union | enum | namespace ) \s+
        (?<macros> (?: [A-Z_][A-Z0-9_]* (?: \( [^()\n]* \) )? \s+ )+? )
        (?<name> [A-Za-z_]\w* ) (?: ::\w+ )* (?: < [^;{}]* > )? \s* (?: final \b \s* )? (?: \{ | : [^:] )",
    )
    .ok()
});

/// Macros with arguments after the parameters of a function: `void f() REQUIRES(lock);`. After a line break they must
/// be indented, because a macro at the start of a line may be a definition: `TEST(a, b) {`.
static AFTER_PARAMETERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)
        \) (?: \s* \b (?: const | final | noexcept | override ) \b )* (?: [\ \t]+ | \s* \n [\ \t]+ )
        (?<macros> (?: [A-Z_][A-Z0-9_]+ \( [^()\n]* \) \s* )+ ) [;{]",
    )
    .ok()
});

/// Macros before an access specifier: `Q_OBJECT public:`.
static BEFORE_LABELS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)
        [\{;}] \s* (?<macros> [A-Z_][A-Z0-9_]+ (?: \( [^()\n]* \) )? ) \s+
        (?: public | protected | private | signals | Q_SIGNALS ) \b",
    )
    .ok()
});

/// `text` with blanks instead of the macros. Offsets and line numbers stay valid.
pub(crate) fn blank_macros(text: &[u8]) -> Cow<'_, [u8]> {
    let patterns = [&*BEFORE_NAMES, &*AFTER_PARAMETERS, &*BEFORE_LABELS];
    let macros: Vec<_> = patterns
        .into_iter()
        .flatten()
        .flat_map(|pattern| pattern.captures_iter(text))
        // `final` is not the name of `class A final {`, and `A` is not a macro.
        .filter(|found| {
            found
                .name("name")
                .is_none_or(|name| name.as_bytes() != b"final")
        })
        .filter_map(|found| found.name("macros"))
        .map(|found| found.range())
        .collect();
    if macros.is_empty() {
        return text.into();
    }
    let mut blanked = text.to_vec();
    for range in macros {
        for byte in blanked.get_mut(range).unwrap_or_default() {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    blanked.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_in_declarations_are_blanked() {
        let check = |text: &str, expect: &str| {
            let blanked = blank_macros(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&blanked), expect);
        };
        check("class API A final {", "class     A final {");
        check("class API B C {", "class       C {");
        check("struct API(1)\n  A : B {", "struct       \n  A : B {");
        check("int f() const LOCKED(a);", "int f() const          ;");
        check(
            "int f()\n  LOCKED(a) HELD(b) {",
            "int f()\n                    {",
        );
        check("{\n  Q_OBJECT\npublic:", "{\n          \npublic:");
        for text in [
            "struct FILE *open(int);",
            "struct STAT f(int x) {",
            "class API {",
            "class API final : B {",
            "X(a)\nTEST(b, c) {",
            "class API::A {",
        ] {
            check(text, text);
        }
    }
}
