//! Detection of commands whose full output is requested. Such output is only sanitized.
//!
//! A command that reads a file, requests three commits or JSON, or pipes its output into another program needs
//! the output itself, not a summary.

/// Returns true if the full output of the command `words` is requested. `piped_into`: the commands that process
/// it.
pub(super) fn in_full(words: &[String], piped_into: &[Vec<String>]) -> bool {
    let Some((program, args)) = words.split_first() else {
        return false;
    };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    piped_into.iter().any(|command| transforms(command))
        || READERS.contains(&program.as_str())
        || has(&args, EVERYWHERE)
        || writes_data(program, &args)
        || match program.as_str() {
            "git" => git(&args),
            "sed" => args.iter().any(|arg| *arg == "-n" || *arg == "--quiet"),
            "tail" => !follows(&args) && count(&args).is_none_or(|count| count <= FEW),
            "find" => has(&args, &["-exec", "-execdir", "-printf"]),
            "docker" | "podman" => args.first() == Some(&"inspect"),
            _ => false,
        }
}

/// Programs that show the content of files, or a short value.
const READERS: &[&str] = &[
    "cat", "bat", "batcat", "head", "less", "more", "nl", "tac", "xxd", "hexdump", "od", "strings",
    "jq", "yq", "awk", "wc", "cut", "sort", "uniq", "column", "echo", "printf", "diffstat", "stat",
    "env", "printenv", "ps", "df", "free", "man", "sqlite3", "psql",
];

/// Options with the same meaning in most programs: data, help, the output of tests.
const EVERYWHERE: &[&str] = &[
    "--json",
    "-json",
    "--help",
    "--nocapture",
    "--no-capture",
    "--show-output",
    "--capture=no",
    "--jq",
    "--template",
];

/// Programs after a pipe that only forward or truncate their input.
const HAND_ON: &[&str] = &[
    "cat", "tee", "head", "tail", "less", "more", "ts", "unbuffer", "unix2dos", "dos2unix",
];

/// The maximum number of requested lines that are shown in full.
const FEW: u64 = 100;

fn transforms(command: &[String]) -> bool {
    let Some((program, args)) = command.split_first() else {
        return false;
    };
    // `sed s/a/b/` forwards every line.
    let replaces = args.len() == 1 && args.iter().all(|script| script.starts_with('s'));
    !(HAND_ON.contains(&program.as_str()) || (program == "sed" && replaces))
}

fn has(args: &[&str], options: &[&str]) -> bool {
    let options_of = args.iter().map(|arg| arg.split('=').next().unwrap_or(arg));
    let mut options_of = options_of.zip(args);
    options_of.any(|(option, arg)| options.contains(&option) || options.contains(arg))
}

/// Returns true for an option that selects a format for programs: `-o json`, `--format=json`, `--output yaml`.
fn writes_data(program: &str, args: &[&str]) -> bool {
    let names: &[&str] = match program {
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "rustc" | "go" => return false,
        _ => &[
            "-o",
            "--output",
            "--format",
            "-f",
            "--reporter",
            "--output-format",
            "--message-format",
        ],
    };
    let data = |value: &str| {
        [
            "json",
            "yaml",
            "jsonpath",
            "go-template",
            "{{",
            "ndjson",
            "csv",
            "xml",
        ]
        .iter()
        .any(|format| value.starts_with(format))
    };
    let next = args.iter().skip(1).chain([&""]);
    args.iter()
        .zip(next)
        .any(|(arg, next)| match arg.split_once('=') {
            Some((name, value)) => names.contains(&name) && data(value),
            None => (names.contains(arg) && data(next)) || matches!(*arg, "-ojson" | "-oyaml"),
        })
}

fn follows(args: &[&str]) -> bool {
    has(args, &["-f", "-F", "--follow", "--retry"])
}

/// Parses the number in `-n 3`, `-n3`, `-3`, `--lines=3` or `--max-count 3`.
fn count(args: &[&str]) -> Option<u64> {
    let next = args.iter().skip(1).chain([&""]);
    args.iter().zip(next).find_map(|(arg, next)| {
        let value = match *arg {
            "-n" | "--lines" | "--max-count" | "-c" | "--bytes" => next,
            _ => ["--lines=", "--max-count=", "-n", "-"]
                .iter()
                .find_map(|name| arg.strip_prefix(name))?,
        };
        value.trim_start_matches(['+', '-']).parse().ok()
    })
}

fn git(args: &[&str]) -> bool {
    let Some((command, args)) = args.split_first() else {
        return false;
    };
    const LISTS: &[&str] = &[
        "--stat",
        "--numstat",
        "--shortstat",
        "--dirstat",
        "--name-only",
        "--name-status",
        "--summary",
        "--raw",
        "--check",
        "-z",
        "--word-diff",
        "--color-words",
        "--compact-summary",
    ];
    match *command {
        "log" | "whatchanged" | "reflog" | "shortlog" => {
            has(args, LISTS)
                || has(args, &["-p", "-u", "--patch", "--cc", "--diff-merges"])
                || args.iter().any(|arg| arg.starts_with("-L"))
                || count(args).is_some()
        }
        "diff" | "diff-tree" | "diff-index" | "stash" | "format-patch" => has(args, LISTS),
        // The argument `rev:path` shows the text of a file.
        "show" => {
            has(args, LISTS)
                || args
                    .iter()
                    .any(|arg| !arg.starts_with('-') && arg.contains(':'))
        }
        "blame" | "annotate" | "cat-file" | "archive" | "config" | "rev-parse" | "merge-base" => {
            true
        }
        "status" | "ls-files" => has(args, &["-z"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Proves OUT-7c.
    #[test]
    fn full_output_flags_are_recognized() {
        let check = |command: &str, expect| {
            let mut parts = command.split(" | ").map(words);
            let first = parts.next().unwrap();
            let piped: Vec<Vec<String>> = parts.collect();
            assert_eq!(in_full(&first, &piped), expect, "{command}");
        };
        for command in [
            "git log -n 3",
            "git log -n3 --oneline",
            "git log -5",
            "git log --max-count=2 src",
            "git log -p",
            "git log --stat",
            "git log -L 1,9:src/a.rs",
            "git diff --stat",
            "git diff --name-only HEAD~3",
            "git diff --dirstat=files",
            "git diff --word-diff",
            "git show HEAD:src/a.rs",
            "git show --stat",
            "git blame src/a.rs",
            "cat src/a.rs",
            "head -50 src/a.rs",
            "sed -n 1,80p src/a.rs",
            "tail -n 30 app.log",
            "tail app.log",
            "gh pr list --json number,title",
            "gh pr view 3 --jq .title",
            "kubectl get pods -o json",
            "kubectl get pods -ojson",
            "kubectl get pods -o jsonpath={.items}",
            "docker inspect web",
            "docker ps --format {{.Names}}",
            "eslint . -f json",
            "ruff check --output-format=json",
            "cargo test -- --nocapture",
            "cargo build --message-format=json",
            "cargo build --message-format json",
            "cargo test --help",
            "cargo test | grep FAILED",
            "cargo test | tee log | rg x",
            "git log | jq .",
            "ls -la | wc -l",
            "find . -name x -exec cat {} ;",
        ] {
            check(command, true);
        }
        for command in [
            "git log",
            "git log --oneline",
            "git log --author=Ada src",
            "git log | head -60",
            "git diff",
            "git diff -p HEAD",
            "git stash show -p",
            "git show",
            "git show HEAD~2",
            "git status --porcelain",
            "git push origin main:main",
            "cargo test",
            "cargo clippy --message-format=short",
            "cargo test --no-fail-fast | tail -80",
            "cargo test | tee log",
            "gcc -c a.c | sed s/$/x/",
            "cargo clippy --message-format=short",
            "find . -name x",
            "tail -n 5000 app.log",
            "tail -f app.log",
            "gcc -o json main.c",
            "go build -o json",
            "sed -i s/a/b/ x",
            "kubectl get pods -o wide",
            "npm install",
        ] {
            check(command, false);
        }
        assert!(!in_full(&[], &[]));
    }
}
