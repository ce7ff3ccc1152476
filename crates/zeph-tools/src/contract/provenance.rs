//! The sources of the data that a call reads: paths in a text, and their form in audit entries.

use std::collections::HashSet;

/// The characters around a word that do not belong to it.
const OPENING: &[char] = &['"', '\'', '`', '(', '[', '{', '<', '=', ','];
const CLOSING: &[char] = &[
    '"', '\'', '`', ')', ']', '}', '>', '.', ',', ';', ':', '!', '?', '|', '&',
];

/// The maximum number of paths in [`claim_source`].
const MAX_CLAIMED: usize = 16;
/// The maximum size of [`claim_source`] in bytes, without the number of further paths.
const MAX_CLAIM_BYTES: usize = 1024;

/// Returns the absolute and relative paths in `text`, each once, in order of appearance: words that begin with
/// `/`, `./`, `../` or `~/`, and words that contain a `/` and are not a URL. Quotes around a word and punctuation
/// after it do not belong to it; blanks inside of quotes do.
#[must_use]
pub fn extract_paths(text: &str) -> Vec<String> {
    if !text.contains('/') {
        return Vec::new();
    }
    let mut paths: Vec<String> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    for word in words(text) {
        // The forms `--file=PATH`, `NAME=PATH`, `2>PATH`.
        for part in parts(&word) {
            if is_path(part) && seen.insert(part.to_owned()) {
                paths.push(part.to_owned());
            }
        }
    }
    paths
}

/// Returns the source of the data that a call reads, for its audit entry: `KIND:PATH,PATH,…`, with a comma in a
/// path written as `\,`. It is bounded: the number of further paths is appended (`,+7`). `None` without paths.
#[must_use]
pub fn claim_source(kind: &str, paths: &[String]) -> Option<String> {
    let mut source = format!("{kind}:");
    let mut told = 0;
    for path in paths.iter().take(MAX_CLAIMED) {
        let path = path.replace(',', "\\,");
        if source.len() + path.len() > MAX_CLAIM_BYTES {
            break;
        }
        if told > 0 {
            source.push(',');
        }
        source.push_str(&path);
        told += 1;
    }
    match paths.len() - told {
        0 => {}
        more if told == 0 => source.push_str(&format!("+{more}")),
        more => source.push_str(&format!(",+{more}")),
    }
    (!paths.is_empty()).then_some(source)
}

/// Returns the source of a command: `shell:PATH,…`, the paths in its text.
#[must_use]
pub fn of_command(command: &str) -> Option<String> {
    claim_source("shell", &extract_paths(command))
}

/// Returns the source of a page: `web:HOST`.
#[must_use]
pub fn of_host(host: &str) -> String {
    format!("web:{host}")
}

/// Splits a text into words; blanks inside quotes do not separate words.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        let Some(word) = words.last_mut() else { break };
        match (character, quote) {
            ('"' | '\'' | '`', Some(open)) if open == character => quote = None,
            ('"' | '\'' | '`', None)
                // An apostrophe inside a word and an unclosed quote do not count as quotes.
                if !word.ends_with(char::is_alphanumeric)
                    && text[at + 1..]
                        .split('\n')
                        .next()
                        .is_some_and(|line| line.contains(character)) =>
            {
                quote = Some(character);
            }
            ('\\', None | Some('"')) => word.extend(characters.next().map(|(_, next)| next)),
            (c, None) if c.is_whitespace() || ";|&<>()".contains(c) => words.push(String::new()),
            _ => word.push(character),
        }
    }
    words
}

/// Returns the word without the characters around it, or the text after its `=`.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let whole = word.trim_start_matches(OPENING);
    let dots = matches!(whole, "." | "..") || whole.ends_with("/.") || whole.ends_with("/..");
    let whole = if dots {
        whole
    } else {
        whole.trim_end_matches(CLOSING)
    };
    let value = whole
        .split_once('=')
        .filter(|(name, _)| !name.contains('/') && !has_scheme(whole))
        .map(|(_, value)| value.trim_start_matches(OPENING));
    std::iter::once(value.unwrap_or(whole))
}

fn is_path(word: &str) -> bool {
    word.contains('/')
        && !has_scheme(word)
        && !word.starts_with("//")
        && word.chars().any(|c| c == '/' || c.is_alphanumeric())
        && !word.contains('\0')
}

/// Whether the word is a URL: `https://…`, `git@host:path`, `mailto:…`.
fn has_scheme(word: &str) -> bool {
    let scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    };
    word.split_once("://")
        .is_some_and(|(before, _)| scheme(before))
        || word
            .split_once(':')
            .is_some_and(|(before, _)| !before.contains('/') && before.contains('@'))
        || ["mailto:", "data:", "javascript:"]
            .iter()
            .any(|known| word.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Proves SH-50.
    #[test]
    fn paths_are_found() {
        let check = |text: &str, expect: &[&str]| assert_eq!(extract_paths(text), expect, "{text}");
        check("cat /etc/passwd", &["/etc/passwd"]);
        check("cat ./a ../b ~/c d/e", &["./a", "../b", "~/c", "d/e"]);
        check("see src/main.rs.", &["src/main.rs"]);
        check(
            "see src/main.rs, then (src/lib.rs): done!",
            &["src/main.rs", "src/lib.rs"],
        );
        check("open \"a b/c d.rs\" and 'x/y'", &["a b/c d.rs", "x/y"]);
        check("`src/x.rs`", &["src/x.rs"]);
        check("curl https://example.org/a/b file:///x git@host:a/b", &[]);
        check("http://x/y and /z", &["/z"]);
        check("name.rs and and/or", &["and/or"]);
        check("--file=a/b X=/c/d", &["a/b", "/c/d"]);
        check("ls>/tmp/x;cat</tmp/y|z", &["/tmp/x", "/tmp/y"]);
        check("a/b a/b", &["a/b"]);
        check("a\\ b/c", &["a b/c"]);
        check("don't touch src/x; it's fine", &["src/x"]);
        check("cd .. && ls ../ ./", &["../", "./"]);
        check("", &[]);
        check("/", &["/"]);
        check("// comment", &[]);
        check("src/ünï.rs", &["src/ünï.rs"]);
        check("src/main.rs:12", &["src/main.rs:12"]);
    }

    /// Proves SH-50: what feeds the audit entry, bounded.
    #[test]
    fn source_of_a_command_is_its_paths() {
        let check = |command: &str, expect: Option<&str>| {
            assert_eq!(of_command(command).as_deref(), expect, "{command}");
        };
        check("cargo test", None);
        check("curl https://example.org/a", None);
        check(
            "cat /etc/hosts ./a /etc/hosts > b/c",
            Some("shell:/etc/hosts,./a,b/c"),
        );
        check("cat 'a,b/c' d/e", Some("shell:a\\,b/c,d/e"));
        let many: Vec<String> = (0..20).map(|n| format!("d/{n}")).collect();
        let told = format!("shell:{},+4", many[..16].join(","));
        check(&many.join(" "), Some(&told));
        let long = format!("d/{}", "x".repeat(2000));
        check(&format!("cat {long}"), Some("shell:+1"));
        check(&format!("cat a/b {long} c/d"), Some("shell:a/b,+2"));
    }

    /// A command may be as long as a system takes one: the search for its paths is linear.
    #[test]
    fn paths_of_a_long_command_are_found_in_linear_time() {
        let command: String = (0..20_000).map(|n| format!("a/{n} ")).collect();
        let start = Instant::now();
        assert_eq!(extract_paths(&command).len(), 20_000);
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}
