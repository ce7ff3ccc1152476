//! Detection of sandbox denials in the output of a failed command.
//!
//! It is for machines that do not report denials: there, the output of the command is the only trace. In doubt, the result
//! is "no": the output must name a path outside of the writable ones that the user could write without the sandbox.

use std::path::Path;

use zeph_bash::normalize_path;
use zeph_exec::sandbox::plan::{can_user_write, resolve};
use zeph_exec::{Denial, Plan, Sockets};

/// The message of a denial by the sandbox, in lower case: EACCES, on macOS EPERM.
const DENIED: &str = if cfg!(target_os = "macos") {
    "operation not permitted"
} else {
    "permission denied"
};
/// The message of ENOENT, in lower case.
const MISSING: &str = "no such file or directory";
/// Texts that name a socket, in lower case: the word itself, and bash's network files.
const SOCKETS: [&str; 3] = ["socket", "/dev/tcp/", "/dev/udp/"];
/// The number of preceding lines that may name the path if the line with the error does not.
const ABOVE: usize = 4;

/// The access that the sandbox refused to a command that failed in `cwd`, if its standard error shows one.
pub(in crate::shell) fn find_denial(plan: &Plan, cwd: &Path, stderr: &str) -> Option<Denial> {
    let refused = |path: &Path| {
        let real = resolve(path);
        // The sandbox also refuses reading the files of other processes below /proc.
        !plan.allows(&real) && !real.starts_with("/proc") && can_user_write(&real)
    };
    match find(stderr, DENIED, cwd, plan.sockets == Sockets::All, refused)? {
        Denial::Write(path) => Some(Denial::Write(resolve(&path))),
        denial => Some(denial),
    }
}

/// The message for a command that failed in `cwd` because it tried to read a hidden file. `denied` returns the rule
/// that denies a path (absolute).
pub(in crate::shell) fn read(
    denied: impl Fn(&Path) -> Option<String>,
    cwd: &Path,
    stderr: &str,
) -> Option<String> {
    let rule = |path: &Path| denied(&normalize_path(path)).or_else(|| denied(&resolve(path)));
    // A hidden directory is empty, so its files are missing.
    let path = [DENIED, MISSING].into_iter().find_map(|phrase| {
        match find(stderr, phrase, cwd, true, |path| rule(path).is_some())? {
            Denial::Write(path) => Some(normalize_path(&path)),
            _ => None,
        }
    })?;
    let rule = rule(&path)?;
    Some(format!(
        "{} may not be read: {rule}; it is hidden from commands",
        path.display()
    ))
}

fn find(
    stderr: &str,
    phrase: &str,
    cwd: &Path,
    network: bool,
    refused: impl Fn(&Path) -> bool,
) -> Option<Denial> {
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    for (number, line) in lines.iter().enumerate() {
        let Some(at) = position(line, phrase) else {
            continue;
        };
        let above = &lines[number.saturating_sub(ABOVE)..number];
        let names_socket = |line: &&str| SOCKETS.iter().any(|mark| position(line, mark).is_some());
        if !network && (names_socket(line) || above.iter().any(names_socket)) {
            return Some(Denial::Network);
        }
        let named = named(line, at);
        let candidates = if named.is_empty() && line[..at].trim().is_empty() {
            // The nearest line comes first.
            above.iter().rev().flat_map(|line| quoted(line)).collect()
        } else {
            named
        };
        let mut paths = candidates.into_iter().map(|name| cwd.join(name));
        if let Some(path) = paths.find(|path| refused(path)) {
            return Some(Denial::Write(path));
        }
    }
    None
}

/// The paths that a line with an error message at `at` names: `PROGRAM: /PATH: Permission denied`, else quoted text,
/// else `PROGRAM: NAME: …`, else words with a slash.
fn named(line: &str, at: usize) -> Vec<&str> {
    let before = line[..at].trim_end().trim_end_matches(':');
    let name = before.rsplit_once(": ").map(|(_, name)| name);
    if let Some(path) = name.filter(|name| name.starts_with('/')) {
        return vec![path];
    }
    let quoted = quoted(line);
    if !quoted.is_empty() {
        return quoted;
    }
    if let Some(word) = name.filter(|name| !name.contains(char::is_whitespace)) {
        return vec![word];
    }
    let words = line.split_ascii_whitespace();
    words
        .map(|word| word.trim_matches(|edge: char| "():,;[]".contains(edge)))
        .filter(|word| word.contains('/'))
        .collect()
}

/// Opening quotation marks.
const QUOTES: [char; 4] = ['\'', '"', '`', '‘'];

/// The quoted texts of a line.
fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(open) = rest.find(QUOTES) {
        let mut inside = rest[open..].chars();
        let close: &[char] = match inside.next() {
            Some('‘') => &['’'],
            // `name' and `name`
            Some('`') => &['`', '\''],
            Some('"') => &['"'],
            _ => &['\''],
        };
        let inside = inside.as_str();
        let Some(end) = inside.find(close) else {
            break;
        };
        let (name, after) = inside.split_at(end);
        if !name.is_empty() {
            found.push(name);
        }
        let mut after = after.chars();
        after.next();
        rest = after.as_str();
    }
    found
}

/// The position of `phrase` (ASCII, lower case) in `text`, regardless of case.
fn position(text: &str, phrase: &str) -> Option<usize> {
    text.as_bytes()
        .windows(phrase.len())
        .position(|window| window.eq_ignore_ascii_case(phrase.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `/out` is outside and the user may write to it. `/sys` is outside and the user may not. `link` points outside.
    fn refused(path: &Path) -> bool {
        path.starts_with("/out") || path == Path::new("/repo/link")
    }

    fn found(stderr: &str, network: bool) -> Option<Denial> {
        find(stderr, DENIED, Path::new("/repo"), network, refused)
    }

    /// Proves SH-21.
    #[test]
    fn refused_path_is_found_in_the_error_output() {
        let check = |stderr: &str, expect: &str| {
            let expect = Denial::Write(expect.into());
            assert_eq!(found(stderr, true), Some(expect), "{stderr}");
        };
        check("bash: line 1: /out/x: Permission denied", "/out/x");
        check("bash: line 1: /out/a b: Permission denied", "/out/a b");
        check("bash: line 1: link: Permission denied", "/repo/link");
        check(
            "warning: x\ntouch: cannot touch '/out/x': Permission denied\nmore",
            "/out/x",
        );
        check(
            "mkdir: cannot create directory ‘/out/ä’: Permission denied",
            "/out/ä",
        );
        check(
            "rm: cannot remove '/sys/x': Permission denied\nrm: cannot remove '/out/x': Permission denied",
            "/out/x",
        );
        check(
            "mv: cannot move 'a' to '/out/a': Permission denied",
            "/out/a",
        );
        check(
            "error: could not lock config file /out/.gitconfig: Permission denied",
            "/out/.gitconfig",
        );
        check(
            "Traceback:\n  File \"/sys/x.py\"\nPermissionError: [Errno 13] Permission denied: '/out/x'",
            "/out/x",
        );
        check("Error: EACCES: permission denied, open '/out/x'", "/out/x");
        check(
            "npm error EACCES: permission denied, mkdir '/out/_cacache'",
            "/out/_cacache",
        );
        check(
            "error: failed to open: `/out/reg/x`\n\nCaused by:\n  Permission denied (os error 13)",
            "/out/reg/x",
        );
        check("open /out/pkg/mod: PERMISSION DENIED", "/out/pkg/mod");
    }

    /// Proves SH-21.
    #[test]
    fn other_failures_are_not_attributed_to_the_sandbox() {
        for stderr in [
            "",
            "3 tests failed in /out",
            "cat: /sys/shadow: Permission denied",
            "bash: ./script: Permission denied",
            "touch: cannot touch 'x': Permission denied",
            "cat: /out/x: No such file or directory",
            "reading /out/x\nPermission denied",
            "at '/out/x'\nlogin: Permission denied (publickey)",
            "Permission denied",
            "'/out/1'\n1\n2\n3\n4\n  Permission denied",
            "socket: Permission denied",
        ] {
            assert_eq!(found(stderr, true), None, "{stderr}");
        }
    }

    /// Proves SH-21.
    #[test]
    fn refused_socket_is_found_if_the_network_is_disabled() {
        for stderr in [
            "bash: socket: Permission denied\nbash: line 1: /dev/tcp/127.0.0.1/80: Permission denied",
            "  File \"socket.py\", line 232, in __init__\n    _socket.socket.__init__(self)\nPermissionError: [Errno 13] Permission denied",
        ] {
            assert_eq!(found(stderr, false), Some(Denial::Network), "{stderr}");
            assert_eq!(found(stderr, true), None, "{stderr}");
        }
        let other = "bash: line 1: /out/x: Permission denied";
        assert_eq!(
            found(other, false),
            Some(Denial::Write("/out/x".into())),
            "the network is not blamed for all"
        );
    }

    /// Proves SH-21.
    #[test]
    fn denied_path_outside_of_the_plan_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let plan = |writable: &Path| Plan {
            writable: vec![resolve(writable)],
            sockets: Sockets::All,
            ..Plan::nothing()
        };
        let file = dir.path().join("x");
        let line = format!("bash: line 1: {}: Permission denied", file.display());
        let outside = plan(Path::new("/nowhere"));
        let expect = Some(Denial::Write(resolve(&file)));
        assert_eq!(find_denial(&outside, Path::new("/"), &line), expect);
        assert_eq!(find_denial(&plan(dir.path()), Path::new("/"), &line), None);
    }

    proptest! {
        #[test]
        fn any_output_is_parsed_without_a_panic(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("permission denied".to_owned()), Just("Permission Denied".to_owned()),
                    Just("'".to_owned()), Just("‘".to_owned()), Just("’".to_owned()),
                    Just("`".to_owned()), Just(": ".to_owned()), Just("\n".to_owned()),
                    Just("/out".to_owned()), Just("ä".to_owned()), ".{0,5}",
                ],
                0..20,
            ),
            network: bool,
        ) {
            let text: String = parts.concat();
            let none = find(&text, DENIED, Path::new("/repo"), network, |_| false);
            prop_assert!(none != Some(Denial::Write("/out".into())));
            let _ = find(&text, DENIED, Path::new("/repo"), network, |_| true);
        }
    }
}
