//! Lines that the test harness of the standard library prints.

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Passed,
    Ignored,
    Failed,
    /// A measurement, or a test that prints while it runs.
    Other,
}

/// Parses name and status from `test NAME ... STATUS`.
pub(super) fn status(text: &str) -> Option<(&str, Status)> {
    let rest = text.strip_prefix("test ")?;
    if let Some(name) = rest.strip_suffix(" ... ok") {
        return Some((name, Status::Passed));
    }
    let (name, status) = rest.rsplit_once(" ... ")?;
    // With a time: `ok <0.002s>`.
    let word = status.split(' ').next().unwrap_or_default();
    let timed = status[word.len()..].trim_start();
    let plain = timed.is_empty() || (timed.starts_with('<') && timed.ends_with('>'));
    let status = match word {
        "ok" if plain => Status::Passed,
        "FAILED" if plain || timed.starts_with('(') => Status::Failed,
        "ignored" | "ignored," => Status::Ignored,
        _ => Status::Other,
    };
    Some((name, status))
}

/// The name as in the list of failures: without the expectation for the test.
pub(super) fn plain_name(name: &str) -> &str {
    for suffix in [" - should panic", " - compile fail", " - compile"] {
        if let Some(name) = name.strip_suffix(suffix) {
            return name;
        }
    }
    name
}

pub(super) fn is_running(text: &str) -> bool {
    let Some(count) = text.strip_prefix("running ") else {
        return false;
    };
    let digits = count.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && matches!(&count[digits..], " test" | " tests")
}

/// Parses the test name from `---- NAME stdout ----`.
pub(super) fn output_of(text: &str) -> Option<&str> {
    let name = text.strip_prefix("---- ")?.strip_suffix(" ----")?;
    name.strip_suffix(" stdout")
        .or_else(|| name.strip_suffix(" stderr"))
}

/// Returns true for a line of dots that `--quiet` prints: `..i.F 12/20`.
pub(super) fn is_dots(text: &str) -> bool {
    let dots = text.split(' ').next().unwrap_or_default();
    !dots.is_empty()
        && dots.bytes().all(|byte| b".iF".contains(&byte))
        && text[dots.len()..]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'/' || byte == b' ')
}

/// Returns true if no test ran and none failed.
pub(super) fn is_empty_result(result: &str) -> bool {
    result.starts_with("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; ")
}

/// Parses the name from a line about a failing test.
pub(super) fn failed_name(text: &str) -> Option<&str> {
    match status(text) {
        Some((name, _)) => Some(plain_name(name)),
        None => text.strip_suffix(" --- FAILED").map(plain_name),
    }
}
