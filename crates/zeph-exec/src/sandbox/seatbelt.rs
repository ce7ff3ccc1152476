//! Seatbelt: the same limits on macOS, as a profile for `sandbox-exec`.
//!
//! A profile is a text in the sandbox's language (SBPL, a Scheme). The last matching rule applies. Paths are quoted as
//! strings. A character that a pattern cannot contain literally matches any character, which denies more, never less.
//! Rules also apply to files that are created later.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use super::plan::{Plan, Sockets};

/// The program that applies a profile.
pub(crate) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Whether this machine has Seatbelt.
pub(crate) fn is_there() -> bool {
    cfg!(target_os = "macos") && Path::new(SANDBOX_EXEC).exists()
}

/// The arguments that run `argv` under `plan`. Paths that match `denied` (globs, absolute or beginning with `**`) are
/// not readable.
pub(crate) fn around(argv: Vec<OsString>, plan: &Plan, denied: &[String]) -> Vec<OsString> {
    let front = [
        SANDBOX_EXEC.into(),
        "-p".into(),
        profile(plan, denied).into(),
    ];
    front.into_iter().chain(argv).collect()
}

fn profile(plan: &Plan, denied: &[String]) -> String {
    let mut text =
        "(version 1)\n(allow default)\n(deny file-write*)\n(allow file-write*".to_owned();
    for path in &plan.writable {
        // A path that is not UTF-8 cannot be granted.
        if let Some(path) = path.to_str() {
            let _ = write!(text, "\n  (subpath {})", quoted(path));
        }
    }
    text.push_str(")\n");
    match plan.sockets {
        Sockets::All => {}
        Sockets::Local => text.push_str(
            "(deny network*)\n(allow network-bind (local unix-socket))\n\
             (allow network-outbound (remote unix-socket))\n",
        ),
        Sockets::None => text.push_str("(deny network*)\n"),
    }
    if !denied.is_empty() {
        text.push_str("(deny file-read* file-write-unlink");
        for glob in denied {
            let rule = if glob.contains(['*', '?', '[', '{', '\\']) {
                format!("(regex #\"{}\")", regex(glob))
            } else {
                format!("(subpath {})", quoted(glob))
            };
            let _ = write!(text, "\n  {rule}");
        }
        text.push_str(")\n");
    }
    text
}

/// A string literal of the profile's language.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Converts a glob to an extended regular expression over whole paths, including all paths below.
fn regex(glob: &str) -> String {
    let mut out = String::from("^");
    let mut rest = glob;
    if let Some(after) = rest.strip_prefix("**/") {
        out.push_str("/(.*/)?");
        rest = after;
    }
    let mut depth = 0_usize;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if let Some(after) = rest.strip_prefix("/**/") {
            out.push_str("/(.*/)?");
            rest = after;
            continue;
        }
        if rest == "/**" || (rest == "**" && out == "^") {
            out.push_str("/.*");
            break;
        }
        rest = after;
        match character {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => rest = class(after, &mut out),
            '{' => {
                depth += 1;
                out.push('(');
            }
            '}' if depth > 0 => {
                depth -= 1;
                out.push(')');
            }
            ',' if depth > 0 => out.push('|'),
            '\\' => {
                if let Some(escaped) = after.chars().next() {
                    literal(escaped, &mut out);
                    rest = &after[escaped.len_utf8()..];
                }
            }
            other => literal(other, &mut out),
        }
    }
    out.push_str("(/.*)?$");
    out
}

/// Appends a character that matches itself.
fn literal(character: char, out: &mut String) {
    match character {
        // These characters have no reliable notation inside of `#"…"`.
        '"' | '\\' => out.push('.'),
        c if c.is_control() => out.push('.'),
        '.' | '+' | '*' | '?' | '(' | ')' | '|' | '{' | '}' | '$' => {
            out.extend(['[', character, ']']);
        }
        '^' | '[' | ']' => out.push('.'),
        other => out.push(other),
    }
}

/// Converts a character class, from the position after its `[`. A class with special characters matches any character.
fn class<'g>(text: &'g str, out: &mut String) -> &'g str {
    let negated = text.starts_with(['!', '^']);
    let inner_at = usize::from(negated);
    // A `]` at the start belongs to the class.
    let first = text[inner_at..].chars().next().map_or(0, char::len_utf8);
    let Some(end) = text
        .get(inner_at + first..)
        .and_then(|rest| rest.find(']'))
        .map(|at| inner_at + first + at)
    else {
        out.push_str("[^/]");
        return "";
    };
    let inner = &text[inner_at..end];
    let plain = inner
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.');
    match (plain, negated) {
        (true, false) => out.extend(["[", inner, "]"]),
        (true, true) => out.extend(["[^/", inner, "]"]),
        (false, _) => out.push_str("[^/]"),
    }
    &text[end + 1..]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    fn plan(writable: &[&str], sockets: Sockets) -> Plan {
        Plan {
            writable: writable.iter().map(PathBuf::from).collect(),
            sockets,
            ..Plan::nothing()
        }
    }

    /// Proves SH-20 in part: the settings are converted to a profile, which is not run here.
    #[test]
    fn settings_become_a_seatbelt_profile() {
        let denied = ["/h/.ssh", "**/.env", "/a/**/*.pem"].map(str::to_owned);
        let plan = plan(&["/repo", "/private/tmp", "/dev/null"], Sockets::Local);
        assert_eq!(
            profile(&plan, &denied),
            r#"(version 1)
(allow default)
(deny file-write*)
(allow file-write*
  (subpath "/repo")
  (subpath "/private/tmp")
  (subpath "/dev/null"))
(deny network*)
(allow network-bind (local unix-socket))
(allow network-outbound (remote unix-socket))
(deny file-read* file-write-unlink
  (subpath "/h/.ssh")
  (regex #"^/(.*/)?[.]env(/.*)?$")
  (regex #"^/a/(.*/)?[^/]*[.]pem(/.*)?$"))
"#
        );
        let argv = around(vec!["sh".into()], &plan, &[]);
        assert_eq!(argv[0], SANDBOX_EXEC);
        assert_eq!((argv.len(), argv[3].to_str()), (4, Some("sh")));
    }

    /// Proves SH-20 in part: no path gets out of its quotes.
    #[test]
    fn paths_are_quoted() {
        let evil = "/a\") (allow file-write* (subpath \"/\"))\\\n\t;";
        let text = profile(
            &plan(&[evil], Sockets::All),
            &[evil.to_owned(), format!("{evil}*")],
        );
        assert!(
            text.contains(r#"(subpath "/a\") (allow file-write* (subpath \"/\"))\\\n\t;")"#),
            "{text}"
        );
        // No part of the path is outside of strings.
        assert_eq!(outside(&text).matches("allow").count(), 2, "{text}");
        let regex = text.lines().last().expect("a line");
        assert_eq!(regex.matches('"').count(), 2, "{regex}");
    }

    /// The profile without its strings.
    fn outside(text: &str) -> String {
        let mut out = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let raw = out.ends_with('#');
            out.push(character);
            if character == '"' {
                while let Some(inside) = characters.next() {
                    match inside {
                        '\\' if !raw => drop(characters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
        }
        out
    }

    fn matches(glob: &str, path: &str) -> bool {
        let regex = regex::Regex::new(&regex(glob)).expect(glob);
        regex.is_match(path)
    }

    /// Proves FILE-4 in part: a pattern means the same there.
    #[test]
    fn globs_become_patterns() {
        let check = |glob: &str, path: &str, expect| {
            assert_eq!(matches(glob, path), expect, "{glob} {path}");
        };
        check("**/.env", "/.env", true);
        check("**/.env", "/a/b/.env", true);
        check("**/.env", "/a/b/.envrc", false);
        check("**/.env", "/a/xenv", false);
        check("/a/*.key", "/a/b.key", true);
        check("/a/*.key", "/a/b/c.key", false);
        check("/a/**", "/a/b/c", true);
        check("/a/**/b", "/a/b", true);
        check("/a/?", "/a/bc", false);
        check("/a/[bc]", "/a/c", true);
        check("/a/[!bc]", "/a/c", false);
        check("/a/[!bc]", "/a//", false);
        check("/a/{b,c{d,e}}", "/a/ce", true);
        check("/a/{b,c}", "/a/d", false);
        check("/a/\\*", "/a/*", true);
        check("/a/\\*", "/a/b", false);
        check("/a/b*", "/a/bc/below", true);
        check("/a/[]x]", "/a/]", true);
        check("/a/x\"*", "/a/x\"y", true);
    }

    proptest! {
        /// Proves FILE-4 in part: the pattern matches every path that its glob matches.
        #[test]
        fn no_pattern_denies_less(
            glob in "/[ab*?.]{1,3}(/[ab*?{},\\[\\]!]{1,4}){0,2}",
            path in "/[ab.]{1,3}(/[ab,!]{1,3}){0,2}",
        ) {
            let compiled = globset::GlobBuilder::new(&glob)
                .literal_separator(true)
                .backslash_escape(true)
                .empty_alternates(true)
                .build();
            if let Ok(compiled) = compiled
                && compiled.compile_matcher().is_match(&path)
            {
                prop_assert!(matches(&glob, &path), "{} {}", regex(&glob), path);
            }
        }
    }
}
