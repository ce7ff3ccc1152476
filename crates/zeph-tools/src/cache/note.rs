//! The line that marks a result from the cache.

/// The start and the end of the line.
const BEGIN: &str = "[from the cache, ";
const END: &str = " s old]";

/// Returns the line, without a line break.
#[must_use]
pub fn note(secs: u64) -> String {
    format!("{BEGIN}{secs}{END}")
}

/// Splits `text` into the line at its start, if present, and the rest.
#[must_use]
pub fn split_note(text: &str) -> (Option<&str>, &str) {
    let line = text.split('\n').next().unwrap_or(text);
    let is_note = line
        .strip_prefix(BEGIN)
        .and_then(|rest| rest.strip_suffix(END))
        .is_some_and(|secs| !secs.is_empty() && secs.bytes().all(|byte| byte.is_ascii_digit()));
    if is_note {
        let rest = text[line.len()..].strip_prefix('\n').unwrap_or("");
        (Some(line), rest)
    } else {
        (None, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_cache_note_from_text() {
        let check = |text: &str, expect: (Option<&str>, &str)| {
            assert_eq!(split_note(text), expect, "{text:?}");
        };
        let line = note(12);
        assert_eq!(line, "[from the cache, 12 s old]");
        let long = format!("{line}\nabc\ndef");
        check(&long, (Some(line.as_str()), "abc\ndef"));
        check(&line, (Some(line.as_str()), ""));
        check(
            "[from the cache, x s old]\nabc",
            (None, "[from the cache, x s old]\nabc"),
        );
        check(
            "[from the cache,  s old]",
            (None, "[from the cache,  s old]"),
        );
        check("abc", (None, "abc"));
        check("", (None, ""));
    }
}
