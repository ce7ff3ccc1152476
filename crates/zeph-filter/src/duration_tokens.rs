//! Durations after names in tool output, which differ between runs and are not needed.

/// Returns the text without a duration at its end: `adds (3 ms)`, `adds 12ms`, `adds (1.5s)`.
pub(super) fn without_time(text: &str) -> &str {
    let text = text.trim_ascii_end();
    let cut = match text.strip_suffix(')') {
        Some(rest) => rest.rsplit_once(" (").filter(|(_, time)| is_time(time)),
        None => text
            .rsplit_once(' ')
            .filter(|(_, time)| is_time(time) && !time.ends_with(|c: char| c.is_ascii_digit())),
    };
    cut.map_or(text, |(text, _)| text.trim_ascii_end())
}

/// Returns true for a duration: `3 ms`, `12ms`, `1.5s`, `2m`.
fn is_time(time: &str) -> bool {
    let number = time
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
        .count();
    number > 0
        && matches!(
            time[number..].trim_ascii_start(),
            "ms" | "s" | "m" | "min" | "µs"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_removed_from_names() {
        let check = |name: &str, expect: &str| assert_eq!(without_time(name), expect);
        check("adds (3 ms)", "adds");
        check("adds 12ms", "adds");
        check("adds  310ms", "adds");
        check("adds (1.5s)", "adds");
        check("adds 3", "adds 3");
        check("adds (3)", "adds (3)");
        check("waits 5 s", "waits 5 s");
    }
}
