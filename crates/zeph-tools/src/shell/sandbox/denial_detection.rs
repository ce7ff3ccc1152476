//! Detection of sandbox denials in the output of a failed command.
//!
//! The kernel reports a denial only to the command, as EACCES. The output of the command is the only trace. In doubt,
//! the result is "no": the output must name a path outside of the writable ones that the user could write without the
//! sandbox.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use zeph_bash::normalize_path;
use zeph_exec::Plan;
use zeph_exec::sandbox::plan::resolve;

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
/// The exit code of a file that cannot be executed. No write was refused then.
const NOT_EXECUTABLE: i32 = 126;

/// An access that the sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// A write to this path.
    Write(PathBuf),
    /// The use of the network.
    Network,
}

/// The message for a command that failed in `cwd` because of the sandbox, if its standard error shows that.
pub(in crate::shell) fn message(
    plan: &Plan,
    cwd: &Path,
    exit_code: i32,
    stderr: &str,
) -> Option<String> {
    if matches!(exit_code, 0 | NOT_EXECUTABLE) {
        return None;
    }
    let refused = |path: &Path| {
        let real = resolve(path);
        // The sandbox also refuses reading the files of other processes below /proc.
        !plan.allows(&real) && !real.starts_with("/proc") && user_could_write(&real)
    };
    Some(match find(stderr, DENIED, cwd, plan.network, refused)? {
        Refusal::Write(path) => format!(
            "the OS sandbox kept the command from writing {}; commands write only below {}; the \
             user can add files and directories in `[tools.shell.sandbox] writable`",
            path.display(),
            plan.directories()
        ),
        Refusal::Network => "the OS sandbox kept the command from the network; the user can allow \
                             it with `[tools.shell] allow_network`"
            .to_owned(),
    })
}

/// The message for a command that failed in `cwd` because it tried to read a hidden file. `denied` returns the rule
/// that denies a path (absolute).
pub(in crate::shell) fn read(
    denied: impl Fn(&Path) -> Option<String>,
    cwd: &Path,
    exit_code: i32,
    stderr: &str,
) -> Option<String> {
    if matches!(exit_code, 0 | NOT_EXECUTABLE) {
        return None;
    }
    let rule = |path: &Path| denied(&normalize_path(path)).or_else(|| denied(&resolve(path)));
    // A hidden directory is empty, so its files are missing.
    let path = [DENIED, MISSING].into_iter().find_map(|phrase| {
        match find(stderr, phrase, cwd, true, |path| rule(path).is_some())? {
            Refusal::Write(path) => Some(normalize_path(&path)),
            Refusal::Network => None,
        }
    })?;
    let rule = rule(&path)?;
    Some(format!(
        "{} may not be read: {rule}; it is hidden from commands",
        path.display()
    ))
}

/// Whether the file system alone would let this process write to a path.
fn user_could_write(path: &Path) -> bool {
    let writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    match path.parent() {
        Some(parent) if access(path, Access::EXISTS).is_err() => writable(parent),
        _ => writable(path),
    }
}

fn find(
    stderr: &str,
    phrase: &str,
    cwd: &Path,
    network: bool,
    refused: impl Fn(&Path) -> bool,
) -> Option<Refusal> {
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
            return Some(Refusal::Network);
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
            return Some(Refusal::Write(path));
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

    fn found(stderr: &str, network: bool) -> Option<Refusal> {
        find(stderr, DENIED, Path::new("/repo"), network, refused)
    }

    /// Proves SH-21.
    #[test]
    fn the_path_that_was_refused_is_found() {
        let check = |stderr: &str, expect: &str| {
            let expect = Refusal::Write(expect.into());
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
    fn what_the_sandbox_did_not_refuse_is_not_blamed_on_it() {
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
    fn a_refused_socket_is_found_when_the_network_is_cut() {
        for stderr in [
            "bash: socket: Permission denied\nbash: line 1: /dev/tcp/127.0.0.1/80: Permission denied",
            "  File \"socket.py\", line 232, in __init__\n    _socket.socket.__init__(self)\nPermissionError: [Errno 13] Permission denied",
        ] {
            assert_eq!(found(stderr, false), Some(Refusal::Network), "{stderr}");
            assert_eq!(found(stderr, true), None, "{stderr}");
        }
        let other = "bash: line 1: /out/x: Permission denied";
        assert_eq!(
            found(other, false),
            Some(Refusal::Write("/out/x".into())),
            "the network is not blamed for all"
        );
    }

    #[test]
    fn without_a_failure_there_is_no_refusal() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan {
            writable: vec!["/nowhere".into()],
            network: true,
            required: false,
            hidden: None,
            unreadable: Vec::new(),
            shared: Vec::new(),
        };
        let file = dir.path().join("x");
        let line = format!("bash: line 1: {}: Permission denied", file.display());
        let said = message(&plan, Path::new("/"), 1, &line).unwrap();
        for word in [&file.display().to_string(), "/nowhere", "writable`"] {
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(message(&plan, Path::new("/"), 0, &line), None);
        assert_eq!(message(&plan, Path::new("/"), 126, &line), None);
        let inside = Plan {
            writable: vec![resolve(dir.path())],
            ..plan
        };
        assert_eq!(message(&inside, Path::new("/"), 1, &line), None);
    }

    proptest! {
        #[test]
        fn any_output_is_survived(
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
            prop_assert!(none != Some(Refusal::Write("/out".into())));
            let _ = find(&text, DENIED, Path::new("/repo"), network, |_| true);
        }
    }
}
