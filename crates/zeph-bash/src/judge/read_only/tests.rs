//! Tests of the table of read-only commands: everyday commands, hostile commands, and the paths of commands.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod changes;

use proptest::prelude::*;

use super::*;
use crate::tests::{all_wrong, command, decide};

fn start() -> WorkingDirState {
    WorkingDirState {
        cwd: PathBuf::from("/w/p"),
        home: Some(PathBuf::from("/home/alice")),
        roots: vec![PathBuf::from("/w/p")],
        ..WorkingDirState::default()
    }
}

fn judge(command: &str) -> Result<ReadOnly, NotReadOnly> {
    read_only(&Parsed::new(command), &start())
}

/// Proves PERM-9: `read` marks the commands that only read. The default blocklist blocks none of them.
#[test]
fn everyday_commands_are_classified() {
    let table = include_str!("tests/everyday.txt");
    assert!(table.lines().count() >= 400);
    assert!(
        table
            .lines()
            .filter(|line| line.starts_with("read "))
            .count()
            >= 250
    );
    all_wrong(table, |line| {
        let (kind, line) = line.split_once(' ').ok_or_else(|| line.to_owned())?;
        let blocked = matches!(decide(&command(line)), Verdict::Block { .. });
        match (kind, judge(&command(line))) {
            _ if blocked => Err(format!("blocked: {line}")),
            ("read", Ok(_)) | ("other", Err(_)) => Ok(()),
            (_, other) => Err(format!("{kind} {line}\n    {other:?}")),
        }
    });
}

/// Proves PERM-9: commands that write, start programs, or use the network. Many differ from a command that only
/// reads in one option.
#[test]
fn hostile_commands_are_not_read_only() {
    let table = include_str!("tests/hostile.txt");
    assert!(table.lines().count() >= 400);
    all_wrong(table, |line| match judge(&command(line)) {
        Err(_) => Ok(()),
        Ok(found) => Err(format!("{line}\n    {found:?}")),
    });
}

/// The paths of a command: each with the text that follows `->` if the possible absolute paths are not those below the
/// working directory, and with marks: `*` is a pattern, `@` follows links, `-` can be an option.
fn paths(command: &str) -> Vec<String> {
    let found = judge(command).unwrap_or_else(|error| panic!("{command}: {error}"));
    let show = |path: ReadPath| {
        let bases: Vec<_> = path
            .bases
            .iter()
            .map(|base| base.to_str().unwrap())
            .collect();
        let marks = [
            (path.is_glob, '*'),
            (path.follows_links, '@'),
            (path.can_be_option, '-'),
        ];
        let marks: String = marks
            .iter()
            .filter_map(|(is_set, mark)| is_set.then_some(*mark))
            .collect();
        let shown = match bases.as_slice() {
            [base] if *base == path.given || *base == format!("/w/p/{}", path.given) => path.given,
            bases => format!("{} -> {}", path.given, bases.join(" ")),
        };
        [shown, marks].join(" ").trim_end().to_owned()
    };
    found.paths.into_iter().map(show).collect()
}

/// Proves PERM-9.
#[test]
fn paths_of_a_command_are_complete() {
    let check = |command: &str, expect: &[&str]| assert_eq!(paths(command), expect, "{command}");
    check("pwd", &[]);
    check("ls", &["."]);
    check("ls -la /etc src", &["/etc", "src"]);
    check(
        "cat a /etc/passwd ../x - /dev/null",
        &["a", "/etc/passwd", "../x"],
    );
    check("cat ~/x", &["/home/alice/x"]);
    check("cat $HOME/x \"$PWD/y\"", &["/home/alice/x", "/w/p/y"]);
    check("cat < /etc/passwd", &["/etc/passwd"]);
    check("cat -- -x", &["-x"]);
    check("cat 'a b' a{1,2}", &["a b", "a1", "a2"]);
    check("x=/etc/passwd; cat $x", &["/etc/passwd"]);
    check("x='a /etc/b'; cat $x", &["a", "/etc/b"]);
    check("echo /etc/passwd", &[]);
    check("echo /etc/*", &["/etc/* *"]);
    check("printf '%s' /etc/passwd", &[]);
    check("cat <<< /etc/passwd", &[]);
    check("cat <<E\n/etc/passwd\nE", &[]);
    // Patterns.
    check("cat *", &["* *-"]);
    check("cat -- *", &["* *"]);
    check("cat ./*", &["./* *"]);
    check("cat src/*.rs", &["src/*.rs *"]);
    check("cat ?x [a]y", &["?x *-", "[a]y *-"]);
    check("echo *", &["* *"]);
    check("grep -r x --include=*.rs .", &["."]);
    check(
        "for f in *.rs; do wc -l \"$f\"; done",
        &["*.rs *", "*.rs *-"],
    );
    check("for f in d/*; do cat \"$f/x\"; done", &["d/* *", "d/*/x *"]);
    check("for f in a b; do cat $f; done", &["a", "b"]);
    check("a=(*.rs); ls", &["*.rs *", "."]);
    // Directories.
    check("cd src && cat x", &["src", "x -> /w/p/src/x"]);
    check("cd src; cat x", &["src", "x -> /w/p/src/x /w/p/x"]);
    check("(cd src && ls); cat x", &["src", ". -> /w/p/src/.", "x"]);
    check("cd /etc && ls", &["/etc", ". -> /etc/."]);
    check("cd && ls x", &["/home/alice", "x -> /home/alice/x"]);
    check("cd .. && cat x", &["..", "x -> /w/x"]);
    check("cd ../q && cat x", &["../q", "x -> /w/q/x"]);
    check(
        "cd src && cat ../../x",
        &["src", "../../x -> /w/p/src/../../x"],
    );
    check("git -C /etc log x", &["/etc", "x -> /etc/x"]);
    check("git -C sub status", &["sub", ". -> /w/p/sub/."]);
    check("fd --base-directory=/etc x", &["/etc", ". -> /etc/."]);
    check("env -- LC_ALL=C cat /etc/x", &["/etc/x"]);
    check("timeout 5 nice cat /etc/x", &["/etc/x"]);
    check("command cat /etc/x", &["/etc/x"]);
    // Texts that are not paths, and values that are.
    check("grep /etc/passwd f", &["f"]);
    check("grep -e /etc/passwd f", &["f"]);
    check("grep -f/etc/x f", &["/etc/x", "f"]);
    check("grep -nf /etc/x f", &["/etc/x", "f"]);
    check("grep --file=/etc/x f", &["/etc/x", "f"]);
    check("grep --file /etc/x f", &["/etc/x", "f"]);
    check("grep --exclude-from=/etc/x -r y", &["/etc/x", "."]);
    check("grep -r x", &["."]);
    check("grep x", &[]);
    check("rg x", &["."]);
    check("rg --files /etc", &["/etc"]);
    check("rg -e x /etc", &["/etc"]);
    check("rg -f /etc/x y", &["/etc/x", "y"]);
    check("rg --ignore-file=/etc/x y", &["/etc/x", "."]);
    check("fd x /etc", &["/etc"]);
    check("sed -n 5p /etc/x", &["/etc/x"]);
    check("sed -e p -e d /etc/x", &["/etc/x"]);
    check("awk '{print}' /etc/x", &["/etc/x"]);
    check("awk -F/ -v x=/y '{print}' /etc/x", &["/etc/x"]);
    check("jq .a /etc/x", &["/etc/x"]);
    check("jq --slurpfile a /etc/x .b f", &["/etc/x", "f"]);
    check("jq --arg a /etc/x .b f", &["f"]);
    check("yq .a /etc/x", &[".a", "/etc/x"]);
    check("tr / x", &[]);
    check("iconv -f /etc/x -t utf-8 f", &["/etc/x", "utf-8", "f"]);
    check("tar tf /etc/a.tar m", &["/etc/a.tar"]);
    check("tar tvf /etc/a.tar", &["/etc/a.tar"]);
    check("tar -tf/etc/a.tar", &["/etc/a.tar"]);
    check("tar --list --file=/etc/a.tar", &["/etc/a.tar"]);
    check("date -r /etc/x +%F", &["/etc/x"]);
    check("diff -X /etc/x a b", &["/etc/x @", "a @", "b @"]);
    check("diff <(sort /etc/x) b", &["/etc/x", "b @"]);
    check("cargo metadata --manifest-path /etc/x", &["/etc/x"]);
    check("git log -- /etc/x", &["/etc/x"]);
    check("git log main..x", &["main..x"]);
    check("git show HEAD:src/x", &["HEAD:src/x"]);
    check("git config -f /etc/x a.b", &["/etc/x"]);
    check("git grep -n /etc/x -- src", &["src"]);
    check("git blame --ignore-revs-file=/etc/x f", &["/etc/x", "f"]);
    check("git ls-files -X /etc/x", &["/etc/x", "."]);
    check(
        "find /etc src -newer /opt/x -name y",
        &["/opt/x", "/etc", "src"],
    );
    check("find -name y", &["."]);
    check("find \\( -name y \\) ! -name z", &["."]);
    check("realpath --relative-to=/etc x", &["/etc", "x"]);
    check("du -sh", &["."]);
    check("[ -f /etc/x ]", &["/etc/x"]);
    check("[ a -nt /etc/x ] && test -d src", &["a", "/etc/x", "src"]);
    check("[ \"$x\" = /etc/x ]", &[]);
    check("[[ -f /etc/x && $x == y* ]]", &["/etc/x"]);
    check(
        "if [[ -e a ]]; then cat b; else cat c; fi",
        &["a", "b", "c"],
    );
    // Links.
    check("grep -R x d", &["d @"]);
    check("grep -R x", &[". @"]);
    check("rg -L x", &[". @"]);
    check("rg --follow x d", &["d @"]);
    check("find -L d", &["d @"]);
    check("find d -follow", &["d @"]);
    check("fd -L x", &[". @"]);
    check("du -L d", &["d @"]);
    check("tree -l d", &["d @"]);
    check("ls -L d", &["d"]);
    check("ls -LR d", &["d @"]);
    check("diff -r a b", &["a @", "b @"]);
    check("diff -N a b", &["a @", "b @"]);
    check("diff -r --no-dereference a b", &["a", "b"]);
    check("find d -exec cat {} +", &["d @"]);
    check("find d -type f -exec grep -n x {} \\;", &["d"]);
    check("find d -type f -o -name x -exec cat {} \\;", &["d @"]);
    check("find d -exec cat {} + -type f", &["d @"]);
    check("find d -print0 -type f | xargs -0 cat", &["d", "d @"]);
    check("find d -exec cat /etc/x {} \\;", &["d @", "/etc/x"]);
    check(
        "find d -print0 | xargs -0 cat /etc/x",
        &["d", "d @", "/etc/x"],
    );
    check("find d -type f -print0 | xargs -0 wc -l", &["d"]);
}

/// Proves PERM-9: commands with substitutions, which the default blocklist admits only by name.
#[test]
fn substitutions_are_checked_like_other_commands() {
    for command in [
        "echo $(git rev-parse HEAD)",
        "echo \"lines: $(wc -l < f)\"",
        "x=$(git rev-parse HEAD); echo $x",
        "n=$(ls | wc -l); [ \"$n\" -gt 3 ] && echo many",
        "comm -23 <(sort a) <(sort b)",
        "cat < <(ls)",
        "cat <<E\n$(date)\nE",
        "cat <<< hello",
        "echo `date`",
        "for ((i = 0; i < 3; i++)); do echo $i; done",
    ] {
        assert!(judge(command).is_ok(), "{command}: {:?}", judge(command));
    }
}

/// Proves PERM-9.
#[test]
fn programs_are_listed_without_builtins() {
    let check = |command: &str, expect: &[&str]| {
        assert_eq!(judge(command).unwrap().programs, expect, "{command}");
    };
    check("cd src && pwd && echo x", &[]);
    check("ls | head; ls", &["ls", "head"]);
    check("timeout 5 git log", &["timeout", "git"]);
    check(
        "echo $(date) | xargs basename",
        &["date", "xargs", "basename"],
    );
    check("find . -exec wc -l {} +", &["find", "wc"]);
    check("mytool --version", &["mytool"]);
    check("zcat f", &["zcat", "gzip"]);
    check("cargo tree", &["cargo", "rustc"]);
    check("command -v x", &[]);
    check("[ -f x ] && test -f y", &[]);
}

/// Proves PERM-9: each reason names the part and, where it helps, the option.
#[test]
fn reasons_name_the_part() {
    let check = |command: &str, expect: &str| {
        let error = judge(command).unwrap_err();
        assert_eq!(error.why, expect, "{command}");
    };
    check(
        "sed -i p f",
        "`sed -i` is not in the table of read-only commands",
    );
    check("ls; rm f", "`rm` is not in the table of read-only commands");
    check(
        "git push",
        "`git push` is not in the table of read-only commands",
    );
    check(
        "git log --output=x",
        "`git log --output` is not in the table of read-only commands",
    );
    check(
        "git branch x",
        "`git branch x` is not in the table of read-only commands",
    );
    check(
        "tar xf a",
        "`tar xf` is not in the table of read-only commands",
    );
    check("ls > out", "it writes to `out`");
    check("ls &", "a command in the background");
    check("f() { ls; }", "it defines the function `f`");
    check("PATH=. ls", "it sets the variable `PATH`");
    check("cat $X", "`…` is unknown before the command runs");
    check(
        "awk '{print > \"x\"}' f",
        "the script for `awk` may do more than read its input",
    );
}

/// Proves PERM-9: a relative path in an unknown directory is not checked, so the command is not read-only.
#[test]
fn unknown_start_admits_absolute_paths_only() {
    let unknown = WorkingDirState::default();
    let judge = |command: &str| read_only(&Parsed::new(command), &unknown);
    assert!(judge("cat /etc/passwd").is_ok());
    assert!(judge("echo x").is_ok());
    for command in [
        "cat x",
        "ls",
        "cd src && ls",
        "cat ~/x",
        "cd && ls",
        "echo *",
    ] {
        assert!(judge(command).is_err(), "{command}");
    }
}

/// The lines of the table of everyday commands without their marks.
fn everyday() -> Vec<&'static str> {
    let lines = include_str!("tests/everyday.txt").lines();
    lines
        .filter_map(|line| Some(line.split_once(' ')?.1))
        .collect()
}

/// Long and deep commands are checked fast.
#[test]
fn huge_commands_are_checked_in_bounded_time() {
    let full = |piece: &str| piece.repeat(crate::MAX_COMMAND / piece.len());
    let mut commands = vec![format!(
        "for f in {}; do {}; done",
        "a* ".repeat(60),
        full("cat \"$f\";")
    )];
    for piece in [
        "cat a;",
        "a=1;",
        "$(",
        "ls {a,b}{c,d}* ",
        "find . -exec ",
        "env ",
        "xargs ",
        "cat <(ls) ",
    ] {
        commands.push(full(piece));
    }
    commands.extend((0..200).map(|count| format!("cat {}", "a ".repeat(count))));
    for command in commands {
        let begun = std::time::Instant::now();
        let _ = judge(&command);
        let shown: String = command.chars().take(20).collect();
        assert!(
            begun.elapsed().as_secs() < 20,
            "{shown}: {:?}",
            begun.elapsed()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Proves PERM-9: no added option or redirection makes a command read-only.
    #[test]
    fn additions_do_not_make_a_command_read_only(
        command in prop::sample::select(include_str!("tests/hostile.txt").lines().collect::<Vec<_>>()),
        addition in prop::sample::select(vec![
            "--zeph-unknown", "-@", "> out", ">> out", "2> err", "| tee out", "&", "; rm x", "&& rm x", "\"$X\"",
        ]),
    ) {
        let command = command.trim_end();
        // The addition must not complete an argument, end a comment, or be part of it.
        prop_assume!(!command.contains('#') && !command.contains("<<"));
        prop_assert!(judge(&format!("{command} {addition}")).is_err(), "{} {}", command, addition);
    }

    /// Proves PERM-9: with an addition that writes or is not listed, no everyday command is read-only.
    #[test]
    fn harmful_additions_are_found_everywhere(
        command in prop::sample::select(everyday()),
        addition in prop::sample::select(vec![
            "> out", ">> out", "2> err", "&> out", "| tee out", "| sh", "&", "; rm x", "&& rm x", "|| rm x", "\nrm x",
            "; $X", "| xargs rm", "<> out",
        ]),
    ) {
        prop_assume!(!command.contains('#') || addition.starts_with('\n'));
        prop_assert!(judge(&format!("{command} {addition}")).is_err(), "{} {}", command, addition);
    }

    #[test]
    fn any_text_is_checked(text in "[ -~\n\té]{0,80}") {
        let _ = judge(&text);
    }

    #[test]
    fn any_shell_like_text_is_checked(pieces in prop::collection::vec(
        prop::sample::select(vec![
            "ls", "cat", "find", "xargs", "git", "log", "sed", "awk", "tar", "env", "timeout", "[", "]", "test", "cd",
            "x", " ", " ", " ", "\n", ";", "&", "|", "(", ")", "{", "}", "$", "`", "'", "\"", "\\", "<", ">", "<<E", "E",
            "$(", "$((", "))", "[[", "]]", "if", "then", "fi", "for", "in", "do", "done", "=", "-", "--", "-exec", ";",
            "+", "{}", "*", "/", "..", "~", "-0", "-print0", "tf", "2>&1", "-C", "-I", "é", "a{b,c}",
        ]), 0..30))
    {
        let _ = judge(&pieces.concat());
    }
}
