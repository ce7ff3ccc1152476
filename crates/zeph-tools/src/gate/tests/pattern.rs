//! Tables of patterns and the texts that they match.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::gate::glob::{HOLE, Text, fold};
use crate::gate::path_pattern::escape;
use crate::gate::path_resolver::tests::Table;
use crate::gate::pattern::Pattern;
use crate::gate::{PathResolver, PatternError, PatternKind};

/// Returns a resolver with the working directory `/w/p`; the name of the home directory must be escaped.
fn here(home: Option<&str>) -> PathResolver {
    let table = Table::of(&["/w/p/", "/h[1]/", "/private/tmp/", "/tmp -> /private/tmp"]);
    PathResolver::on(
        Box::new(table),
        Path::new("/w/p"),
        home.map(PathBuf::from),
        &[],
    )
}

fn compile(kind: PatternKind, pattern: &str) -> Result<Pattern, PatternError> {
    Pattern::new(kind, pattern, &here(Some("/h[1]")))
}

/// Converts a text to symbols; `…` is a hole.
fn symbols(text: &str) -> Text {
    let mut symbols = Vec::new();
    fold(text, &mut symbols);
    for symbol in &mut symbols {
        if *symbol == u32::from('…') {
            *symbol = HOLE;
        }
    }
    symbols.into()
}

#[track_caller]
fn check(kind: PatternKind, pattern: &str, yes: &[&str], no: &[&str]) {
    let compiled = compile(kind, pattern).expect(pattern);
    for text in yes {
        assert!(compiled.matches(&symbols(text)), "{pattern} ~ {text}");
    }
    for text in no {
        assert!(!compiled.matches(&symbols(text)), "{pattern} !~ {text}");
    }
}

/// Proves PERM-1 in part, and D-27: in commands `*` matches any text, without case.
#[test]
fn command_patterns_match_any_text() {
    let check = |pattern, yes, no| check(PatternKind::Text, pattern, yes, no);
    check("*", &["", "ls", "a/b c"], &[]);
    check(
        "cargo *",
        &["cargo", "cargo test", "CARGO Test -p x/y", "cargo "],
        &["cargox", "cargo-x y", "xcargo y", ""],
    );
    check(
        "Cargo test",
        &["cargo TEST"],
        &["cargo test ", "cargo tests"],
    );
    check(
        "git push*",
        &["git push", "git push -f", "git pushy"],
        &["git pus"],
    );
    check("*push*", &["git push", "push"], &["pus"]);
    check(
        "* --force *",
        &["git push --force origin", "x --force"],
        &["--force", "git push --forced"],
    );
    check("rm ?", &["rm x", "rm ä", "rm /"], &["rm", "rm ", "rm xy"]);
    check("a\\*b", &["a*b"], &["axb", "ab"]);
    check("a\\\\b", &["a\\b"], &["ab"]);
    check("a [b] {c,d}", &["a [b] {c,d}"], &["a b c"]);
    check("straße ÄÖ*", &["Straße äöü"], &["strasse äö"]);
    check("a ** b", &["a x b", "a  b"], &["a b"]);
    check("* *", &["ls", "ls x", " ", ""], &[]);
    check("echo a\nb*", &["echo a\nb c"], &["echo a b"]);
}

/// Proves PERM-1 in part, and D-27: in paths `*` stops at `/`, `**` does not.
#[test]
fn path_patterns_stop_at_a_slash() {
    let check = |pattern, yes, no| check(PatternKind::Path, pattern, yes, no);
    check(
        "src/*",
        &["src/a", "SRC/A.rs"],
        &["src/a/b", "src", "xsrc/a"],
    );
    check("./src/*.rs", &["src/a.rs"], &["src/a/b.rs", "src/ars"]);
    check(
        "src/**",
        &["src/a", "src/a/b", "src"],
        &["srcs", "src2/a", "x/src/a"],
    );
    check(
        "src/**/*.rs",
        &["src/a.rs", "src/a/b/c.rs"],
        &["src/a/b.rc", "a.rs"],
    );
    check(
        "**/.env",
        &[".env", "a/.env", "/a/b/.env"],
        &["a.env", ".envrc", ".env/x"],
    );
    check("**/.env{,.*}", &["a/.env", ".env.local"], &[".envrc"]);
    check(
        "**/secrets/**",
        &["secrets", "a/secrets/b/c", "/w/secrets"],
        &["a/secretsb"],
    );
    check("a**b", &["ab", "a/x/b", "axb"], &["a/bx"]);
    check("*.rs", &["a.rs", ".rs"], &["a/b.rs"]);
    check("a/?", &["a/b", "a/ä"], &["a/", "a//", "a/bc"]);
    check("a/[a-c]x", &["a/bx", "a/Bx"], &["a/dx", "a//x"]);
    check("a/[!a-c]x", &["a/dx"], &["a/bx", "a//x"]);
    check("a/[]x]", &["a/]", "a/x"], &["a/y"]);
    check("{a,b{c,d}}/e", &["a/e", "bc/e", "bd/e"], &["b/e"]);
    check("a\\{b", &["a{b"], &["ab"]);
    check("/etc/**", &["/etc", "/etc/x/y"], &["/etcx", "etc"]);
    check(
        "~/.ssh/**",
        &["/h[1]/.ssh/id", "/h[1]/.ssh"],
        &["/h1/.ssh/id"],
    );
    check("../other/*", &["/w/other/x"], &["other/x", "/w/other/x/y"]);
    check("../../../x", &["/x"], &[]);
    check("src/", &["src", "src/a", "src/a/b"], &["srcs"]);
    check("/etc/", &["/etc", "/etc/x/y"], &["/etcx"]);
    check("../other//", &["/w/other", "/w/other/x"], &["/w/otherx"]);
    check("/", &["/", "/etc"], &["etc"]);
    check(".", &["."], &["a"]);
    for all in ["*", "**", "**/*"] {
        let pattern = compile(PatternKind::Path, all).expect(all);
        assert!(pattern.is_catch_all(), "{all}");
    }
}

/// Proves PERM-1 in part: a wildcard in the host of a URL does not match beyond the host.
#[test]
fn url_patterns_do_not_match_beyond_the_host() {
    let check = |pattern, yes, no| check(PatternKind::Url, pattern, yes, no);
    check(
        "https://docs.rs/*",
        &["https://docs.rs/", "HTTPS://docs.rs/a/b?c=d"],
        &[
            "https://docs.rs.evil.com/",
            "https://evil.com/https://docs.rs/",
            "https://docs.rs@evil.com/",
        ],
    );
    check(
        "https://*.example.com/*",
        &["https://a.example.com/", "https://a.b.example.com/x"],
        &[
            "https://example.com/",
            "https://evil.com/?.example.com/",
            "https://evil.com#.example.com/",
            "https://u:p@x.example.com/",
            "https://evil.com:1.example.com/",
        ],
    );
    check(
        "https://docs.rs",
        &["https://docs.rs/", "https://docs.rs/a", "https://docs.rs"],
        &["https://docs.rs.evil.com/"],
    );
    check(
        "docs.rs",
        &["https://docs.rs/a", "http://docs.rs/"],
        &["https://evil.com/docs.rs", "https://xdocs.rs/"],
    );
    check(
        "*.docs.rs/std/*",
        &["https://a.docs.rs/std/x"],
        &["https://evil.com/?a.docs.rs/std/x", "https://docs.rs/std/x"],
    );
    check(
        "*evil*",
        &["https://a.evil.com/", "https://x.org/evil"],
        &["https://x.org/"],
    );
    check("https://*", &["https://x.org/a?b"], &["http://x.org/"]);
    check(
        "https://a.org/x?y=*",
        &["https://a.org/x?y=1", "https://a.org/xzy=1"],
        &["https://a.org/x?y"],
    );
}

/// Proves PERM-6 in part: an invalid pattern is an error with a reason.
#[test]
fn invalid_pattern_is_an_error() {
    let check = |kind, pattern: &str, expect: &str| {
        let error = compile(kind, pattern).expect_err(pattern).to_string();
        assert!(error.contains(expect), "{pattern}: {error}");
    };
    let every = |pattern: &str, expect: &str| {
        for kind in [PatternKind::Text, PatternKind::Path, PatternKind::Url] {
            check(kind, pattern, expect);
        }
    };
    every("", "empty");
    every("  ", "empty");
    every(&"a".repeat(513), "513 characters");
    every("a\u{1b}b", "control character");
    every("a\\", "ends with");
    check(PatternKind::Path, "a/[b", "unclosed `[`");
    check(PatternKind::Path, "a/[", "unclosed `[`");
    check(PatternKind::Path, "a/{b,c", "unclosed `{`");
    check(PatternKind::Path, "a}", "not opened");
    check(PatternKind::Path, "[z-a]", "is empty");
    check(PatternKind::Path, "~root/x", "`~user` is not supported");
    check(PatternKind::Path, "a/../b", "`..`");
    check(PatternKind::Path, &"{a,b}".repeat(7), "more than 64");
    assert!(compile(PatternKind::Path, &"{a,b}".repeat(6)).is_ok());
    assert!(compile(PatternKind::Text, &"a".repeat(512)).is_ok());
    let homeless = here(None);
    assert!(Pattern::new(PatternKind::Path, "~/x", &homeless).is_err());
}

/// A pattern also applies to the target of its link.
#[test]
fn absolute_pattern_matches_the_target_of_its_link() {
    let pattern = compile(PatternKind::Path, "/tmp/x/*").expect("a pattern");
    assert!(pattern.matches(&symbols("/tmp/x/y")));
    assert!(pattern.matches(&symbols("/private/tmp/x/y")));
    assert!(!pattern.matches(&symbols("/private/x/y")));
}

/// Unknown text: an allow rule must match every possible text, a deny rule some possible text.
#[test]
fn unknown_text_is_matched_by_allow_and_deny_rules() {
    let check = |kind, pattern: &str, text: &str, surely: bool, perhaps: bool| {
        let pattern = compile(kind, pattern).expect(pattern);
        let symbols = symbols(text);
        assert_eq!(pattern.matches(&symbols), surely, "{text}");
        assert_eq!(pattern.may_match(&symbols), perhaps, "{text}");
    };
    check(PatternKind::Text, "ls *", "ls …", true, true);
    check(PatternKind::Text, "ls -l", "ls …", false, true);
    check(PatternKind::Text, "ls ?", "ls …", false, true);
    check(PatternKind::Text, "rm *", "… x", false, true);
    check(PatternKind::Text, "rm *", "ls …", false, false);
    check(PatternKind::Text, "rm *.key", "rm ….txt", false, false);
    check(PatternKind::Text, "rm *.key", "rm ….key", true, true);
    check(PatternKind::Text, "*x*", "…", false, true);
    check(PatternKind::Path, "a/**/b", "a/…", false, true);
    check(PatternKind::Path, "**/*.key", "src/…", false, true);
    check(PatternKind::Path, "lib/*", "src/…", false, false);
    check(PatternKind::Path, "a/*", "a/…", false, true);
}

/// A backtracking matcher would not terminate here in time.
#[test]
fn stars_are_matched_in_linear_time() {
    let start = std::time::Instant::now();
    let pattern = "*a".repeat(250);
    let pattern = compile(PatternKind::Text, &format!("{pattern}*b")).expect("a pattern");
    let text = symbols(&"a".repeat(100_000));
    assert!(!pattern.matches(&text));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

/// The simplest possible matcher, as a reference.
fn plain(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|at| plain(rest, &text[at..])),
        Some(('?', rest)) => !text.is_empty() && plain(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && plain(rest, &text[1..]),
    }
}

fn plain_path(pattern: &[char], text: &[char]) -> bool {
    let stop = text.iter().position(|c| *c == '/').unwrap_or(text.len());
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=stop).any(|at| plain_path(rest, &text[at..])),
        Some(('?', rest)) => stop > 0 && plain_path(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && plain_path(rest, &text[1..]),
    }
}

proptest! {
    /// Proves PERM-1 in part.
    #[test]
    fn commands_match_as_the_plain_matcher_says(pattern in "[ab*?]{1,8}", text in "[ab]{0,12}") {
        let compiled = compile(PatternKind::Text, &pattern).expect("a pattern");
        let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(compiled.matches(&symbols(&text)), plain(&p, &t));
    }

    #[test]
    fn paths_match_as_the_plain_matcher_says(
        pattern in "[ab]([ab*?]|/[ab?]|[ab]){0,6}", text in "[ab](/?[ab]){0,8}",
    ) {
        prop_assume!(!pattern.contains("**"));
        let compiled = compile(PatternKind::Path, &pattern).expect("a pattern");
        let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(compiled.matches(&symbols(&text)), plain_path(&p, &t));
    }

    /// A pattern that matches with a hole matches with any text in the hole. A pattern that matches some filled
    /// text may match with the hole.
    #[test]
    fn holes_are_sound(
        pattern in "[ab *?]{1,8}", before in "[ab ]{0,4}", filled in "[ab ]{0,4}", after in "[ab ]{0,4}",
    ) {
        prop_assume!(!pattern.trim().is_empty());
        let compiled = compile(PatternKind::Text, &pattern).expect("a pattern");
        let hole = symbols(&format!("{before}…{after}"));
        let whole = symbols(&format!("{before}{filled}{after}"));
        if compiled.matches(&hole) {
            prop_assert!(compiled.matches(&whole));
        }
        if compiled.matches(&whole) {
            prop_assert!(compiled.may_match(&hole));
        }
    }

    #[test]
    fn path_holes_are_sound(
        pattern in "[ab*?/]{1,8}", before in "[ab]{0,4}", filled in "[ab]{0,2}(/[ab]{1,2}){0,2}",
    ) {
        let Ok(compiled) = compile(PatternKind::Path, &pattern) else { return Ok(()) };
        let hole = symbols(&format!("{before}/…"));
        let whole = symbols(&format!("{before}/{filled}"));
        if compiled.matches(&hole) {
            prop_assert!(compiled.matches(&whole));
        }
        if compiled.matches(&whole) {
            prop_assert!(compiled.may_match(&hole));
        }
    }

    #[test]
    fn no_pattern_panics(pattern in ".{0,40}", text in ".{0,40}") {
        for kind in [PatternKind::Text, PatternKind::Path, PatternKind::Url] {
            if let Ok(compiled) = compile(kind, &pattern) {
                let text = symbols(&text);
                let _ = (compiled.matches(&text), compiled.may_match(&text));
            }
        }
    }

    /// An escaped text is a pattern that matches the text.
    #[test]
    fn escaped_texts_match_themselves(text in "[a-z*?\\[\\]{},\\\\ ]{1,20}") {
        prop_assume!(!text.trim().is_empty());
        let compiled = compile(PatternKind::Path, &format!("/{}", escape(&text))).expect("a pattern");
        let path = format!("/{text}");
        let whole = symbols(&path);
        prop_assert!(compiled.matches(&whole));
    }
}
