//! Names of test functions: `subject_condition_outcome` in the terms of `docs/STYLE.md`.

/// Beginnings that are no subject.
const STARTS: &[&str] = &["a_", "an_", "the_", "it_", "what_", "who_", "where_"];

/// Denied words and phrases. An entry that ends with `_` is denied only before another word.
const PARTS: &[&str] = &[
    "what",
    "told",
    "tell",
    "tells",
    "stand",
    "stands",
    "stood",
    "lie",
    "lies",
    "beside",
    "anew",
    "mended",
    "person",
    "persons",
    "nobody",
    "somebody",
    "whoever",
    "whatever",
    "wherever",
    "however",
    "is_no_",
    "are_no_",
    "was_no_",
    "is_none",
    "are_none",
    "goes_on",
    "go_on",
    "go_away",
    "looked_for",
    "looked_at",
    "looks_for",
    "agreed_to",
    "taken_back",
    "put_right",
    "passed_over",
    "left_alone",
    "let_through",
    "summed_up",
    "asked_about",
    "held_back",
    "handed_on",
    "handed_over",
    "of_which",
    "of_whom",
    "of_its_own",
    "of_their_own",
    "one_who",
    "but_for",
    "any_more",
    "no_more",
    "side_by_side",
    "at_once",
];

/// The denied parts of the names of tests, with their lines, from 1.
pub(super) fn terms(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut is_test = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(name) = function(line) {
            if is_test && let Some(part) = denied(name) {
                found.push((at + 1, part));
            }
            is_test = false;
        }
    }
    found
}

/// The name of the function that a line defines.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let (name, _) = line.strip_prefix("fn ")?.split_once('(')?;
    Some(name)
}

/// The first denied part of a name.
fn denied(name: &str) -> Option<&'static str> {
    if let Some(start) = STARTS.iter().find(|start| name.starts_with(**start)) {
        return Some(start);
    }
    let has = |part: &str| {
        let whole = |(at, _): (usize, &str)| {
            let (before, after) = (&name[..at], &name[at + part.len()..]);
            (before.is_empty() || before.ends_with('_'))
                && (part.ends_with('_') || after.is_empty() || after.starts_with('_'))
        };
        name.match_indices(part).any(whole)
    };
    PARTS.iter().copied().find(|part| has(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_parts_of_test_names_are_found() {
        let check = |name: &str, expect: Option<&str>| assert_eq!(denied(name), expect, "{name}");
        check("unknown_tool_lists_similar_names", None);
        check("a_gate_refuses", Some("a_"));
        check("what_is_read", Some("what_"));
        check("unknown_tool_is_told", Some("told"));
        check("file_is_no_database", Some("is_no_"));
        check("default_answer_is_no", None);
        check("interrupts_are_seen", None);
        check("user_agreed_to_the_call", Some("agreed_to"));
        check("theory_is_proven", None);
    }

    #[test]
    fn only_test_functions_are_checked() {
        let check =
            |text: &str, expect: &[(usize, &str)]| assert_eq!(terms(text), expect, "{text}");
        check("#[test]\nfn a_call() {}", &[(2, "a_")]);
        check(
            "    #[tokio::test(start_paused = true)]\n    async fn it_ends() {}",
            &[(2, "it_")],
        );
        check(
            "#[test]\n/// Text.\n#[cfg(unix)]\nfn the_end(n in 0..9) {}",
            &[(4, "the_")],
        );
        check(
            "fn a_call() {}\n#[test]\nfn call_ends() {}\nfn it_ends() {}",
            &[],
        );
    }
}
