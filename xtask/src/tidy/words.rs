//! Forbidden text in files: reminders, disabled tests, paths of a developer's machine.

/// Split, so that this file passes its own check.
const REMINDERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
const UNFINISHED: &[&str] = &[concat!("to", "do!("), concat!("unimpl", "emented!(")];
const SWITCHED_OFF: &str = concat!("#[", "ignore");
/// The marker of a function that is the process role of a test, which other tests start by name.
const ROLE: &str = concat!("#[", "ignore = \"no test: ");
const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];
const MACHINE: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/")];

/// Example users, whose home directories are not real.
const NOBODY: &[&str] = &["user", "alice", "bob", "me"];

/// The findings of one file, one line each.
pub(super) fn findings(path: &str, text: &str) -> Vec<String> {
    let rust = path.ends_with(".rs");
    let prose = [".rs", ".toml", ".md", ".sh", ".sql"];
    let prose = prose.iter().any(|ending| path.ends_with(ending));
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut find = |what: String| findings.push(format!("{path}:{}: {what}", at + 1));
        if let Some(word) = REMINDERS.iter().find(|word| prose && has_word(line, word)) {
            find(format!("`{word}`: do it, or say what is so and why"));
        }
        if let Some(word) = UNFINISHED.iter().find(|word| rust && line.contains(**word)) {
            find(format!("`{word}…)`: unfinished code"));
        }
        if rust && switches_off(line) {
            find("a test is switched off; correct it or remove it".into());
        }
        if let Some(machine) = machine_path(line) {
            find(format!("`{machine}` is a path of somebody's machine"));
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(inner) && !line[at + word.len()..].starts_with(inner))
}

fn switches_off(line: &str) -> bool {
    let conditional = line.trim_start().starts_with("#[cfg_attr(")
        && has_word(line, SWITCHED_OFF.trim_start_matches("#["));
    (line.contains(SWITCHED_OFF) && !line.contains(ROLE)) || conditional
}

/// The first absolute path in a home directory or a directory of a build machine.
fn machine_path(line: &str) -> Option<&str> {
    let home = HOMES.iter().find_map(|home| {
        absolute(line, home).find(|path| {
            let person = path[home.len()..].split('/').next().unwrap_or_default();
            !person.is_empty() && !person.starts_with('.') && !NOBODY.contains(&person)
        })
    });
    home.or_else(|| MACHINE.iter().find_map(|dir| absolute(line, dir).next()))
}

/// Absolute paths that start with `dir`.
fn absolute<'a>(line: &'a str, dir: &str) -> impl Iterator<Item = &'a str> {
    let part =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '}' | '*');
    line.match_indices(dir)
        .filter(move |(at, _)| !line[..*at].ends_with(part))
        .map(move |(at, _)| {
            let path = &line[at..];
            let end = path.find(|c: char| !(c.is_alphanumeric() || "_-./".contains(c)));
            &path[..end.unwrap_or(path.len())]
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, line: &str, expect: usize) {
        let found = findings(path, line);
        assert_eq!(found.len(), expect, "{path} {line}: {found:?}");
    }

    #[test]
    fn reminders_are_found() {
        let word = REMINDERS[0];
        check("a.rs", &format!("// {word}: later"), 1);
        check("Cargo.toml", &format!("description = \"{word}\""), 1);
        check(
            "a.rs",
            &format!("struct {word}List; // {}", word.to_lowercase()),
            0,
        );
        check("a.rs", &format!("const {word}_LIST: u8 = 0;"), 0);
        check("fixture.txt", word, 0);
        check("a.rs", &format!("{}\"x\")", UNFINISHED[0]), 1);
        check("a.md", &format!("{}\"x\")", UNFINISHED[0]), 0);
    }

    #[test]
    fn disabled_tests_are_found() {
        check("a.rs", &format!("    {SWITCHED_OFF}]"), 1);
        check("a.rs", &format!("{SWITCHED_OFF} = \"slow\"]"), 1);
        check("a.rs", &format!("{ROLE}the other process\"]"), 0);
        check("a.rs", "#[cfg_attr(not(unix), ignore)]", 1);
        check("a.rs", "#[cfg_attr(unix, allow(dead_code))]", 0);
        check("a.rs", "use ignore::WalkBuilder;", 0);
    }

    #[test]
    fn machine_paths_are_found() {
        let home = HOMES[0];
        let root = MACHINE[0];
        check("a.txt", &format!("at {home}joe/src"), 1);
        check("a.txt", &format!("at \"{home}user/src\""), 0);
        check("a.txt", &format!("at {home}user2/src"), 1);
        check("a.txt", &format!("`{home}` is where they live"), 0);
        check("a.txt", &format!("{home}*/x"), 0);
        check("a.txt", &format!("[root]{home}.config/x"), 0);
        check("a.txt", &format!("https://example.org{home}joe"), 0);
        check("a.txt", &format!("{root}x"), 1);
        check("a.txt", &format!("~{root}x and ./a{root}x"), 0);
        check("a.txt", &format!("{home}user/a {home}joe/b"), 1);
    }

    #[test]
    fn finding_names_file_and_line() {
        let found = findings("a/b.md", &format!("fine\n{}", REMINDERS[1]));
        assert!(found[0].starts_with("a/b.md:2: "), "{found:?}");
    }
}
