//! `zeph filter …`: the output filters without the agent.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::rig::{Home, assert_has};

const RULES: &str = r#"
[[rules]]
name = "acme"
match = { prefix = "acme build" }
strategy = { type = "strip_noise", patterns = ["^ *Compiling"] }

[[rules.tests]]
command = "acme build"
input = """
   Compiling a long list of parts that nobody will ever want to read again, number 1
   Compiling a long list of parts that nobody will ever want to read again, number 2
done
"""
expected = "done"
"#;

fn rules(home: &Home, text: &str) {
    fs::write(home.config_file().with_file_name("filters.toml"), text).unwrap();
}

fn printed() -> String {
    let lines: String = (0..50)
        .map(|n| format!("   Compiling part-{n}\n"))
        .collect();
    format!("{lines}done\n")
}

/// Proves OUT-3, OUT-10.
#[test]
fn standard_input_is_filtered_by_user_rules() {
    let home = Home::new();
    home.config("");
    rules(&home, RULES);
    let run = |set: &str| {
        let args = [
            "filter",
            "--command",
            "acme build --all",
            "--exit-code",
            "0",
            "--set",
            set,
        ];
        home.zeph(args).stdin(printed()).code(0).stdout
    };
    let filtered = run("tools.filters.enabled=true");
    assert_eq!(filtered, "done\n[50 of 51 lines omitted]\n");
    assert_eq!(run("tools.filters.enabled=false"), printed());
    // A rule file with another name.
    fs::rename(
        home.config_file().with_file_name("filters.toml"),
        home.home().join("mine.toml"),
    )
    .unwrap();
    assert_eq!(run("tools.filters.enabled=true"), printed());
    assert_eq!(run("tools.filters.filters_path=~/mine.toml"), filtered);
}

/// Proves OUT-3: a rule with only a name disables the built-in rule.
#[test]
fn rule_is_disabled_by_name() {
    let home = Home::new();
    home.config("");
    let plan = |command: &str| {
        let output = home.zeph(["filter", "explain", "--json", command]).code(0);
        assert_eq!(output.stderr, "");
        let value: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        (
            value["plan"].as_str().unwrap().to_owned(),
            value["rule"].as_str().map(str::to_owned),
        )
    };
    let rule = |name: &str| ("rule".to_owned(), Some(name.to_owned()));
    assert_eq!(plan("git log"), rule("git-log"));
    rules(
        &home,
        "[[rules]]\nname = \"git-log\"\nenabled = false\n[[rules]]\nname = \"pytest\"\nenabled = false\n",
    );
    assert_eq!(plan("git log"), ("unknown".to_owned(), None));
    assert_eq!(plan("pytest -q"), ("unknown".to_owned(), None));
    assert_eq!(plan("git status"), rule("git-status"));
    assert_eq!(plan("cargo test"), rule("cargo-test"));
    home.zeph(["filter", "verify"]).code(0);
}

/// Proves OUT-6: the documentation states the number of built-in rules.
#[test]
fn docs_state_number_of_rules() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = root.join("crates/zeph-filter/src/rules");
    let is_rule = |path: &std::path::Path| path.extension().is_some_and(|end| end == "toml");
    let count = std::fs::read_dir(rules).unwrap();
    let count = count
        .filter(|entry| is_rule(&entry.as_ref().unwrap().path()))
        .count();
    let docs = std::fs::read_to_string(root.join("docs/filters.md")).unwrap();
    assert_has(&docs, &[&format!("the {count} built-in rules")]);
}

/// Proves OUT-4: a large directory does not hide the others.
#[test]
fn tree_keeps_every_top_level_entry() {
    let home = Home::new();
    home.config("");
    let mut text = ".\n├── node_modules\n".to_owned();
    for number in 0..2000 {
        text += &format!("│   ├── package-{number}\n│   │   └── index.js\n");
    }
    text += "├── package.json\n└── src\n    ├── main.js\n    └── util\n        └── math.js\n\n2002 directories, 2003 files\n";
    let output = home
        .zeph(["filter", "--command", "tree"])
        .stdin(text)
        .code(0);
    assert_eq!(
        output.stdout,
        ".\n├── node_modules … 4000 entries\n├── package.json\n└── src\n    ├── main.js\n    └── util\n        └── math.js\n\n2002 directories, 2003 files\n[4001 of 4009 lines omitted]\n"
    );
}

/// Proves OUT-3: the other rules of the file load.
#[test]
fn unusable_rule_is_reported_and_skipped() {
    let home = Home::new();
    home.config("");
    let bad = [
        (
            "two",
            r#"match = { exact = "a", prefix = "b" }"#,
            "exactly one of",
        ),
        ("none", "match = {}", "exactly one of"),
        ("open", r#"match = { regex = "(" }"#, "unclosed group"),
        (
            "long",
            &format!("match = {{ regex = \"{}\" }}", "a".repeat(513)),
            "513 characters",
        ),
        ("odd", "match = { exact = \"a\" }\ncolour = 1", "colour"),
    ];
    let strategy = "strategy = { type = \"strip_noise\", patterns = [\"x\"] }";
    let bad_rules: String = bad
        .iter()
        .map(|(name, lines, _)| format!("[[rules]]\nname = \"{name}\"\n{lines}\n{strategy}\n"))
        .collect();
    rules(&home, &format!("{bad_rules}\n{RULES}"));
    let args = ["filter", "--command", "acme build", "--exit-code", "0"];
    let output = home.zeph(args).stdin(printed()).code(0);
    assert_eq!(output.stdout, "done\n[50 of 51 lines omitted]\n");
    for (name, _, reason) in bad {
        let line = output
            .stderr
            .lines()
            .find(|line| line.contains(&format!("`{name}`")));
        assert_has(
            line.unwrap_or_else(|| panic!("{name}: {}", output.stderr)),
            &[reason],
        );
    }
    // A file that is too large as a whole.
    rules(&home, &format!("{RULES}\n#{}", "x".repeat(1024 * 1024)));
    let output = home.zeph(args).stdin(printed()).code(0);
    assert_eq!(output.stdout, printed());
    assert_has(&output.stderr, &["filters.toml", "1048576"]);
}

/// Proves OUT-10.
#[test]
fn filtered_command_returns_its_exit_code() {
    let home = Home::new();
    home.config("");
    rules(&home, RULES);
    home.write(
        "acme",
        "#!/bin/sh\nfor i in $(seq 50); do echo \"   Compiling part-$i\"; done; echo out; echo err >&2; exit 3",
    );
    fs::set_permissions(home.path("acme"), Permissions::from_mode(0o755)).unwrap();
    let run = |tee: &[&str]| {
        let args = [&["filter", "run"], tee, &["--", "./acme", "build"]].concat();
        home.zeph(args).code(3).stdout
    };
    let printed = run(&["--tee", "raw.log"]);
    assert_eq!(
        printed,
        "out\nerr\n[50 of 52 lines omitted; all of it: raw.log]\n"
    );
    assert_eq!(home.read("raw.log").lines().count(), 52);
    // `--tee` without a path chooses a file name and prints it.
    let printed = run(&["--tee"]);
    let path = printed.split("all of it: ").nth(1).unwrap();
    let path = path.trim_end().trim_end_matches(']');
    assert_eq!(fs::read_to_string(path).unwrap(), home.read("raw.log"));
    home.zeph(["filter", "run", "--", "sh", "-c", "kill -9 $$"])
        .code(137);
    home.zeph(["filter", "run", "--", "no-such-program"])
        .code(127);
    // The command reads standard input.
    let output = home
        .zeph(["filter", "run", "--", "tr", "a-z", "A-Z"])
        .stdin("hello")
        .code(0);
    assert_eq!(output.stdout, "HELLO\n");
}

/// Proves OUT-5, OUT-10.
#[test]
fn verify_runs_the_rule_tests() {
    let home = Home::new();
    home.config("");
    rules(&home, RULES);
    let output = home.zeph(["filter", "verify"]).code(0);
    assert_has(&output.stdout, &[" 0 failed"]);
    rules(
        &home,
        &RULES.replace("expected = \"done\"", "expected = \"gone\""),
    );
    let output = home.zeph(["filter", "verify"]).code(1);
    assert_has(
        &output.stdout,
        &[
            "acme: test 1 (acme build) failed",
            "    gone",
            "    done",
            " 1 failed",
        ],
    );
    let file = home.config_file().with_file_name("filters.toml");
    let output = home
        .zeph(["filter", "verify", file.to_str().unwrap()])
        .code(1);
    assert_has(&output.stdout, &["1 rules, 1 tests, 1 failed"]);
    home.zeph(["filter", "verify", "no-such-file"]).code(2);
}

/// Proves OUT-10.
#[test]
fn explain_names_the_rule_of_a_command() {
    let home = Home::new();
    home.config("");
    rules(&home, RULES);
    let output = home.zeph(["filter", "explain", "acme build --all"]).code(0);
    assert_has(
        &output.stdout,
        &[
            "the part of the command that the rule uses: acme build --all",
            "rule: acme",
            "strip_noise",
        ],
    );
    let form = home
        .zeph(["filter", "explain", "--json", "acme build"])
        .code(0)
        .json();
    assert_eq!(form["rule"], "acme");
    let form = home
        .zeph(["filter", "explain", "--json", "unheard of"])
        .code(0)
        .json();
    assert_eq!(form["rule"], serde_json::Value::Null);
    assert_eq!(form["plan"], "unknown");
}

/// Proves OUT-7a, OUT-7d, OUT-11: a long output is grouped up to its end, with a rule for logs and without a rule.
#[test]
fn long_output_is_grouped_to_its_end() {
    let home = Home::new();
    home.config("");
    let mut printed = String::new();
    for number in 0..40_000_u64 {
        let digits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let word = String::from_iter(digits.map(|byte| char::from(b'a' + byte % 26)));
        printed += &format!("took {}ms for /{word}/{}\n", number % 7, word.repeat(6));
        if number == 39_000 {
            printed += "error: it broke\n";
        }
    }
    let run = |command: &str| {
        let args = ["filter", "--command", command, "--exit-code", "0"];
        home.zeph(args).stdin(printed.clone()).code(0).stdout
    };
    let last = printed.lines().next_back().unwrap();
    for command in [
        "./a-server --verbose",
        "cat server.log",
        "tail -n 99999 server.log",
    ] {
        let reported = run(command);
        assert_has(
            &reported,
            &[
                " [×40000 like this]\n",
                "\nerror: it broke\n",
                &format!("\n{last}\n["),
            ],
        );
    }
}

/// Proves OUT-8, OUT-10.
#[test]
fn gain_sums_the_savings_by_rule() {
    let home = Home::new();
    home.config("");
    rules(&home, RULES);
    let output = home.zeph(["filter", "gain"]).code(0);
    assert_eq!(output.stdout, "no output was filtered yet\n");
    for printed in [printed(), printed(), "done\n".to_owned()] {
        let args = ["filter", "--command", "acme build", "--exit-code", "0"];
        home.zeph(args).stdin(printed).code(0);
    }
    let gains = home.zeph(["filter", "gain", "--json"]).code(0).json();
    let gain = &gains[0];
    assert_eq!(gain["rule"], "acme");
    assert_eq!(
        (gain["full"].as_u64(), gain["fallback"].as_u64()),
        (Some(2), Some(1))
    );
    assert_eq!(gain["bytes_before"], 2 * printed().len() + 5);
    assert_eq!(gain["bytes_after"], 3 * "done".len());
    let output = home.zeph(["filter", "gain"]).code(0);
    assert_has(&output.stdout, &["acme", "2/0/1", "total"]);
}

/// Proves OUT-8: counters are logged after every twenty outputs and at the end, only at debug level.
#[test]
fn filter_counters_are_logged_at_debug_level() {
    let home = Home::new();
    home.config("");
    rules(&home, RULES);
    home.write(
        "acme",
        "#!/bin/sh\nfor i in $(seq 50); do echo \"   Compiling part-$i\"; done; echo done",
    );
    fs::set_permissions(home.path("acme"), Permissions::from_mode(0o755)).unwrap();
    // Distinct commands, because a repetition counts as insufficient output.
    let calls: String = (0..25)
        .map(|n| json!({ "tool": "bash", "params": { "command": format!("./acme build {n}") } }))
        .map(|call| format!("{call}\n"))
        .collect();
    let logged = |filter: &str| {
        let run = home.zeph(["tools", "run", "--yes"]).env("ZEPH_LOG", filter);
        let stderr = run.stdin(calls.clone()).code(0).stderr;
        let lines = stderr
            .lines()
            .filter(|line| line.contains("filtered rule="));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = logged("zeph_tools=debug");
    let [twenty, end] = lines.as_slice() else {
        panic!("{lines:#?}");
    };
    let printed = (1..=50).map(|n| format!("   Compiling part-{n}\n").len());
    let printed = printed.sum::<usize>() + "done\n".len();
    let check = |line: &str, outputs: usize| {
        let (all, left) = (outputs * printed, outputs * "done".len());
        assert_has(
            line,
            &[
                "DEBUG",
                "rule=\"acme\"",
                &format!("levels={outputs}/0/0"),
                &format!(
                    "bytes_before={all} bytes_after={left} bytes_saved={}",
                    all - left
                ),
                "reruns=0 recalls=0",
            ],
        );
    };
    check(twenty, 20);
    check(end, 25);
    assert_eq!(logged("zeph_tools=info"), Vec::<String>::new());
}
