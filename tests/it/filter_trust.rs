//! Filter rules of a project, which are used only after the user has trusted them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::rig::{Home, Terminal, assert_has};

const FILE: &str = ".zeph/filters.toml";
const UNTRUSTED: &str = "are not used: they are not trusted; `zeph filter trust`";
const CHANGED: &str = "are not used: they changed after you trusted them; `zeph filter trust`";
const FILTERED: &str = "done\n[50 of 51 lines omitted]\n";

/// A rule with this name for this command that omits lines with `pattern`.
fn rule(name: &str, command: &str, pattern: &str) -> String {
    format!(
        "[[rules]]\nname = {name:?}\nmatch = {{ prefix = {command:?} }}\n\
         strategy = {{ type = \"strip_noise\", patterns = [{pattern:?}] }}\n"
    )
}

/// A project with these rules and an `./acme` that prints 51 lines.
fn bringing(rules: &str) -> Home {
    let home = Home::new();
    home.config("");
    home.write(FILE, rules);
    program(
        &home,
        "for i in $(seq 50); do echo \"   Compiling part-$i\"; done; echo done",
    );
    home
}

fn program(home: &Home, script: &str) {
    home.write("acme", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(home.path("acme"), Permissions::from_mode(0o755)).unwrap();
}

fn acme() -> String {
    rule("acme", "acme build", "^ *Compiling")
}

fn trust(home: &Home) {
    home.zeph(["filter", "trust", "--yes"]).code(0);
}

/// The filtered output of `./acme build`, and the messages about it.
fn read(home: &Home) -> (String, String) {
    let output = home
        .zeph(["filter", "run", "--", "./acme", "build"])
        .code(0);
    (output.stdout, output.stderr)
}

fn pins(home: &Home) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(home.data().join("zeph/filter-trust"));
    let entries = entries.into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The JSON result of the bash tool for `./acme build`, and the printed messages.
fn call(home: &Home) -> (Value, String) {
    let params = json!({ "command": "./acme build" }).to_string();
    let output = home
        .zeph(["tools", "call", "bash", &params, "--json", "--yes"])
        .code(0);
    (output.json(), output.stderr)
}

/// Proves OUT-12: at each entry point, with one message.
#[test]
fn untrusted_rules_are_ignored_with_a_message() {
    let home = bringing(&acme());
    let (read, said) = read(&home);
    assert_eq!(read.lines().count(), 51);
    assert_has(&said, &[UNTRUSTED, FILE]);
    assert_eq!(said.matches("filter trust").count(), 1, "{said}");
    let (form, said) = call(&home);
    assert!(
        !form["data"].as_str().unwrap().contains("omitted"),
        "{form:#}"
    );
    assert_has(&said, &[UNTRUSTED]);
    let explained = home.zeph(["filter", "explain", "acme build"]).code(0);
    assert_has(&explained.stdout, &["no rule for this command"]);
    assert_has(&explained.stderr, &[UNTRUSTED]);
    let verified = home.zeph(["filter", "verify"]).code(0);
    assert!(!verified.stdout.contains("acme"), "{verified}");
    assert_has(&verified.stderr, &[UNTRUSTED]);
    home.scenario("[[steps]]\ntext = \"hi\"\n");
    let answered = home.zeph(["-p", "hello"]).code(0);
    assert_eq!(answered.stdout, "hi\n");
    assert_has(&answered.stderr, &[UNTRUSTED]);
    assert_eq!(answered.stderr.matches("filter trust").count(), 1);
    let quiet = home.zeph(["-p", "hello", "--quiet"]).code(0);
    assert!(!quiet.stderr.contains("filter"), "{quiet}");
    let terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    assert_has(&terminal.text(), &["are not trusted"]);
    terminal.leaves();
    // With filters disabled, no message is printed.
    let off = ["--set", "tools.filters.enabled=false", "filter", "explain"];
    let output = home.zeph(off).arg("acme").code(0);
    assert_eq!(output.stderr, "");
}

/// Proves OUT-12: at each entry point.
#[test]
fn trusted_rules_are_applied() {
    let home = bringing(&acme());
    let output = home.zeph(["filter", "trust", "--yes"]).code(0);
    assert_has(
        &output.stdout,
        &[
            "was never trusted",
            "    name = \"acme\"\n",
            "acme: prefix \"acme build\" → strip_noise",
            "are trusted until the file changes",
        ],
    );
    assert_eq!(read(&home), (FILTERED.to_owned(), String::new()));
    let (form, said) = call(&home);
    assert_has(
        form["data"].as_str().unwrap(),
        &["done\n[50 of 51 lines omitted"],
    );
    assert_eq!(form["filter"]["rule"], "acme");
    assert!(!said.contains("trust"), "{said}");
    let args = ["filter", "--command", "acme build", "--exit-code", "0"];
    let printed: String = (0..50).map(|n| format!("   Compiling {n}\n")).collect();
    let output = home.zeph(args).stdin(format!("{printed}done\n")).code(0);
    assert_eq!(output.stdout, FILTERED);
    let explained = home.zeph(["filter", "explain", "acme build"]).code(0);
    assert_has(&explained.stdout, &["rule: acme"]);
    let verified = home.zeph(["filter", "verify"]).code(0);
    assert_has(&verified.stdout, &["acme: no tests"]);
    home.scenario(
        "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"./acme build\" } }]\n\
         [[steps]]\nexpect = { tool_result_contains = \"50 of 51 lines omitted\" }\ntext = \"short\"\n",
    );
    home.zeph(["-p", "build", "--yes"])
        .code(0)
        .prints(&["short"]);
    let again = home.zeph(["filter", "trust"]).code(0);
    assert_has(&again.stdout, &["are already trusted"]);
    // Rules also apply in a subdirectory, but not across a repository boundary.
    home.write("below/x", "");
    let explain = |cwd: &str| {
        let args = ["filter", "explain", "acme build"];
        home.zeph(args).cwd(home.path(cwd)).code(0).stdout
    };
    assert_has(&explain("below"), &["rule: acme"]);
    home.write("below/.git/HEAD", "");
    assert_has(&explain("below"), &["no rule for this command"]);
}

/// Proves OUT-12: the pin is that of the content; a change is shown as a difference to the trusted text.
#[test]
fn any_change_revokes_trust() {
    let home = bringing(&acme());
    trust(&home);
    let pin = pins(&home);
    assert_eq!(pin.len(), 1);
    assert_eq!(
        fs::metadata(&pin[0]).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let folder = pin[0].parent().unwrap();
    assert_eq!(
        fs::metadata(folder).unwrap().permissions().mode() & 0o777,
        0o700
    );
    home.write(FILE, &acme().replace("Compiling", "."));
    let (unfiltered, said) = read(&home);
    assert_eq!(unfiltered.lines().count(), 51);
    assert_has(&said, &[CHANGED]);
    let shown = home.zeph(["filter", "trust"]).code(3);
    assert_has(
        &shown.stdout,
        &[
            "changed after you trusted it",
            "--- a/.zeph/filters.toml\n+++ b/.zeph/filters.toml\n",
            "\n-strategy = { type = \"strip_noise\", patterns = [\"^ *Compiling\"] }\n",
            "\n+strategy = { type = \"strip_noise\", patterns = [\"^ *.\"] }\n",
        ],
    );
    assert_has(
        &shown.stderr,
        &["stdin is not a terminal", "--yes", "are not trusted"],
    );
    assert_has(&read(&home).1, &[CHANGED]);
    // A single byte is a change; the earlier text is still trusted.
    home.write(FILE, &format!("{}\n", acme()));
    assert_has(&read(&home).1, &[CHANGED]);
    home.write(FILE, &acme());
    assert_eq!(read(&home).1, "");
    home.write(FILE, &format!("{}\n", acme()));
    trust(&home);
    assert_eq!(read(&home).1, "");
    assert_eq!(pins(&home), pin, "one pin a project");
}

/// Proves OUT-12: without a user to ask, nothing is pinned.
#[test]
fn trust_requires_a_terminal_or_yes() {
    let home = bringing(&acme());
    let output = home.zeph(["filter", "trust"]).stdin("y\nyes\n").code(3);
    assert_has(&output.stdout, &["was never trusted"]);
    assert_has(&output.stderr, &["stdin is not a terminal", "--yes"]);
    assert_eq!(pins(&home).len(), 0);
    assert_has(&read(&home).1, &[UNTRUSTED]);
    // A missing file is reported.
    fs::remove_file(home.path(FILE)).unwrap();
    home.zeph(["filter", "trust", "--yes"])
        .code(1)
        .says(&["no .zeph/filters.toml in"]);
}

/// Proves OUT-12: the user is asked, and only `yes` confirms.
#[test]
fn user_confirms_trust() {
    let home = bringing(&acme());
    let answer = |keys: &str| {
        let mut terminal = Terminal::start(&home, &["filter", "trust"]);
        terminal.shows("Use these rules? y/N");
        terminal.type_keys(keys);
        let (status, shown) = terminal.ends();
        assert_has(&shown, &["was never trusted", "name = \"acme\""]);
        status.code()
    };
    for no in ["\n", "n\n", "yep\n", "\x04"] {
        assert_eq!(answer(no), Some(3), "{no:?}");
        assert_eq!(pins(&home).len(), 0);
    }
    assert_eq!(answer("y\n"), Some(0));
    assert_eq!(read(&home).0, FILTERED);
}

/// Proves OUT-12.
#[test]
fn trust_is_listed_and_revoked() {
    let home = bringing(&acme());
    let list = || home.zeph(["filter", "trust", "--list"]).code(0).stdout;
    assert_has(&list(), &["no project has trusted filter rules"]);
    trust(&home);
    #[allow(
        clippy::disallowed_methods,
        reason = "the path as the program finds it"
    )]
    let project = home.project().canonicalize().unwrap().display().to_string();
    assert!(list().starts_with("trusted ") && list().contains(&project));
    home.write(FILE, "# changed");
    assert!(list().starts_with("changed "));
    home.write(FILE, &acme());
    let revoke = || home.zeph(["filter", "trust", "--revoke"]).code(0).stdout;
    assert_has(&revoke(), &["are no longer trusted", &project]);
    assert_has(&read(&home).1, &[UNTRUSTED]);
    assert_has(&revoke(), &["no filter rules of this project were trusted"]);
    // Also if the file no longer exists.
    trust(&home);
    fs::remove_dir_all(home.path(".zeph")).unwrap();
    assert!(list().starts_with("gone "));
    assert_has(&revoke(), &["are no longer trusted"]);
    assert_eq!(pins(&home).len(), 0);
}

/// Proves OUT-12: the text is trusted for this project only.
#[test]
fn another_project_with_the_same_rules_is_not_trusted() {
    let home = bringing(&acme());
    trust(&home);
    let other = home.root().join("other");
    fs::create_dir_all(other.join(".zeph")).unwrap();
    fs::copy(home.path(FILE), other.join(FILE)).unwrap();
    let explain = || home.zeph(["filter", "explain", "acme build"]);
    assert_has(&explain().cwd(other).code(0).stderr, &[UNTRUSTED]);
    assert_eq!(explain().code(0).stderr, "");
    // A link to the project is the same project.
    let link = home.root().join("link");
    symlink(home.project(), &link).unwrap();
    assert_eq!(explain().cwd(link).code(0).stderr, "");
}

/// Proves OUT-3, OUT-12: built-in < project < user.
#[test]
fn project_rules_rank_between_built_in_and_user_rules() {
    let home = bringing(&format!(
        "{}{}{}",
        rule("cargo-test", "cargo test", "project"),
        rule("mine", "mine", "project"),
        rule("general", "ac", "project"),
    ));
    trust(&home);
    let used = |command: &str| {
        let args = ["filter", "explain", "--json", command];
        let form = home.zeph(args).code(0).json();
        form["rule"].as_str().unwrap_or_default().to_owned()
    };
    // It replaces a built-in rule and precedes the others.
    let explained = home.zeph(["filter", "explain", "cargo test"]).code(0);
    assert_has(
        &explained.stdout,
        &["rule: cargo-test (prefix \"cargo test\")"],
    );
    assert_eq!(used("acme x"), "general");
    let user = home.config_file().with_file_name("filters.toml");
    let off = rule("mine", "mine", "user").replace("match", "enabled = false\nmatch");
    fs::write(&user, format!("{off}{}", rule("exact", "acme", "user"))).unwrap();
    assert_eq!(used("acme x"), "exact", "the user's are tried first");
    assert_eq!(used("ac"), "general");
    assert_eq!(
        used("mine"),
        "",
        "the user's rule of this name is switched off"
    );
    fs::write(&user, rule("cargo-test", "cargo test --all", "user")).unwrap();
    assert_eq!(used("cargo test"), "", "the user's takes the place of both");
    assert_eq!(used("mine"), "mine");
}

/// Proves OUT-7a, OUT-12, OUT-20, OUT-21: a project rule cannot drop a fact or reveal a secret.
#[test]
fn trusted_rule_weakens_neither_the_fact_guard_nor_the_secret_scan() {
    let home = bringing(&rule("all", "acme", "."));
    trust(&home);
    // In two parts, so that the source of this test contains no secret.
    let token = format!("ghp_{}", "q7Rk2mVx9LpTz4WcN8sYb3HdJf6GaE1uXo5i");
    program(
        &home,
        &format!(
            "for i in $(seq 50); do echo \"   Compiling part-$i\"; done\n\
             echo 'error[E0308]: mismatched types'\necho '  --> src/main.rs:3:5'\n\
             echo 'token: {token}'\n\
             for i in $(seq 50); do echo \"   Compiling part-$i\"; done\n\
             echo \"thread 'main' panicked at src/x.rs:1:2:\"; echo boom; exit 101"
        ),
    );
    let output = home.zeph(["filter", "run", "--", "./acme"]).code(101);
    assert_has(
        &output.stdout,
        &[
            "error[E0308]: mismatched types\n  --> src/main.rs:3:5\n",
            "panicked at src/x.rs:1:2:\nboom\n",
        ],
    );
    // The rule removes every line, so their form is reported.
    assert_has(&output.stdout, &["Compiling part-1 [×100 like this]\n"]);
    assert!(!output.stdout.contains("Compiling part-2"), "{output}");
    let params = json!({ "command": "./acme" }).to_string();
    let args = ["tools", "call", "bash", &params, "--json", "--yes"];
    let form = home.zeph(args).run().json();
    assert_eq!(form["filter"]["rule"], "all", "{form:#}");
    let reported = form.to_string();
    assert_has(
        &reported,
        &["error[E0308]: mismatched types", "boom", "omitted"],
    );
    for text in [output.stdout, reported] {
        assert!(!text.contains(&token), "{text}");
        // The secret scan covers the lines that the rule drops.
        assert_has(&text.to_lowercase(), &["secret"]);
    }
}

/// Proves OUT-12: a project file contains only rules.
#[test]
fn project_rule_file_accepts_no_other_keys() {
    let home = bringing(&acme());
    for more in [
        "[security]\nredact = false\n",
        "[tools.filters.security]\nredact = false\n",
        "[[extra_patterns]]\nname = \"x\"\npattern = \"x\"\n",
        "enabled = false\n",
    ] {
        home.write(FILE, &format!("{more}{}", acme()));
        let key = more
            .trim_start_matches('[')
            .split([']', '.', ' '])
            .next()
            .unwrap();
        home.zeph(["filter", "trust", "--yes"])
            .code(1)
            .says(&["no rule in", key]);
    }
    assert_eq!(pins(&home).len(), 0);
    // A file without keys is harmless.
    home.write(FILE, "# nothing yet");
    home.zeph(["filter", "trust", "--yes"])
        .code(0)
        .prints(&["no rule for"]);
    assert_eq!(read(&home).1, "");
    // A rule with unknown keys is not used, as reported before and after the trust.
    for more in [
        "guard = false",
        "redact = false",
        "security = { redact = false }",
    ] {
        let odd = rule("odd", "acme", ".").replace("match", &format!("{more}\nmatch"));
        home.write(FILE, &format!("{odd}{}", acme()));
        let shown = home.zeph(["filter", "trust", "--yes"]).code(0);
        assert_has(&shown.stdout, &["rule `odd` in", "unknown field"]);
        let (filtered, said) = read(&home);
        assert_eq!(filtered, FILTERED);
        assert_has(&said, &["rule `odd` in", "unknown field"]);
    }
}

/// Proves CFG-3, OUT-12: no setting bypasses trust.
#[test]
fn configuration_does_not_bypass_trust() {
    let home = bringing(&acme());
    // The remaining arguments are the command to explain.
    let explain = |flags: &[&str]| {
        let args = [flags, &["filter", "explain", "acme build"]].concat();
        home.zeph(args)
    };
    for path in [FILE, "other.toml", "../home/filters.toml"] {
        let text = format!("[tools.filters]\nfilters_path = {path:?}\n");
        home.write(".zeph/config.toml", &text);
        explain(&[])
            .code(2)
            .says(&["filters_path", "may not set it"]);
    }
    home.write(".zeph/config.toml", "");
    let unused = |flags: &[&str]| {
        let output = explain(flags).code(0);
        assert_has(&output.stdout, &["no rule for this command"]);
        assert_has(&output.stderr, &[UNTRUSTED]);
    };
    // A rule file next to a project configuration belongs to the project.
    unused(&["--config", ".zeph/config.toml"]);
    unused(&["--set", &format!("tools.filters.filters_path={FILE}")]);
    fs::hard_link(home.path(FILE), home.path("same.toml")).unwrap();
    unused(&["--set", "tools.filters.filters_path=same.toml"]);
    // Another file is the user's own choice.
    home.write("other.toml", &acme());
    let other = explain(&["--set", "tools.filters.filters_path=other.toml"]).code(0);
    assert_has(&other.stdout, &["rule: acme"]);
}

/// Proves OUT-3, OUT-12: a project file has at least the restrictions of the user's file.
#[test]
fn invalid_rule_file_is_refused() {
    let home = bringing(&acme());
    let file = home.path(FILE);
    let check = |reason: &str| {
        let (unfiltered, said) = read(&home);
        assert_eq!(unfiltered.lines().count(), 51, "{reason}");
        assert_has(&said, &["no filter rule of", FILE, reason]);
        home.zeph(["filter", "trust", "--yes"])
            .code(1)
            .says(&[FILE, reason]);
        let gone = if file.is_dir() {
            fs::remove_dir(&file)
        } else {
            fs::remove_file(&file)
        };
        gone.unwrap();
        assert_eq!(pins(&home).len(), 0, "{reason}");
    };
    home.write(FILE, &format!("{}#{}", acme(), "x".repeat(1024 * 1024)));
    check("1048576");
    fs::write(&file, b"# \xff").unwrap();
    check("not UTF-8");
    fs::create_dir(&file).unwrap();
    check("not a regular file");
    let mode = rustix::fs::Mode::RWXU;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, kind, mode, 0).unwrap();
    check("not a regular file");
    fs::write(home.home().join("rules.toml"), acme()).unwrap();
    symlink(home.home().join("rules.toml"), &file).unwrap();
    check("a link to a file outside the project");
    symlink("nowhere", &file).unwrap();
    check("No such file");
    // The directory is the link.
    fs::remove_dir(home.path(".zeph")).unwrap();
    fs::write(home.home().join("filters.toml"), acme()).unwrap();
    symlink(home.home(), home.path(".zeph")).unwrap();
    let (_, said) = read(&home);
    assert_has(&said, &["a link to a file outside the project"]);
    // A link to a directory inside the project is accepted.
    fs::remove_file(home.path(".zeph")).unwrap();
    home.write("tools/filters.toml", &acme());
    symlink("tools", home.path(".zeph")).unwrap();
    trust(&home);
    assert_eq!(read(&home).0, FILTERED);
    home.write("tools/filters.toml", &format!("{}\n", acme()));
    assert_has(&read(&home).1, &[CHANGED]);
}

/// Proves OUT-12: the shown text is the content of the file, with control characters escaped.
#[test]
fn shown_rules_have_escaped_control_characters() {
    let text = format!("# \x1b]0;title\x07\x1b[8m\u{202e}\n{}", acme());
    let home = bringing(&text.replace("\x1b[8m", "").replace(['\x1b', '\x07'], ""));
    let shown = |home: &Home| home.zeph(["filter", "trust"]).code(3).stdout;
    assert_has(&shown(&home), &["\\u{202e}"]);
    trust(&home);
    // In names, in errors about invalid TOML, and in a difference.
    let name = "a\u{200b}\\u001b[31mb\\nc";
    home.write(FILE, &acme().replace("\"acme\"", &format!("\"{name}\"")));
    let output = shown(&home);
    assert_has(
        &output,
        &[
            "\n  a\\u{200b}\\u{1b}[31mb\\nc: prefix",
            "+name = \"a\\u{200b}",
        ],
    );
    home.write(FILE, &text);
    for output in [
        home.zeph(["filter", "trust"]).code(1),
        home.zeph(["filter", "explain", "x"]).code(0),
        home.zeph(["filter", "verify", FILE]).code(1),
    ] {
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(!all.contains(['\x1b', '\x07']), "{all:?}");
    }
}

/// Proves OUT-12: gates fail closed.
#[test]
fn damaged_pin_trusts_nothing() {
    let home = bringing(&acme());
    trust(&home);
    let [pin] = pins(&home).try_into().unwrap();
    let whole = fs::read_to_string(&pin).unwrap();
    let damage = |text: &str| {
        fs::write(&pin, text).unwrap();
        let (unfiltered, said) = read(&home);
        assert_eq!(unfiltered.lines().count(), 51);
        assert_has(&said, &["their trust record cannot be read", "damaged"]);
        let list = home.zeph(["filter", "trust", "--list"]).code(0).stdout;
        assert!(!list.contains("trusted  "), "{list}");
    };
    damage("");
    damage(&whole[..whole.len() / 2]);
    damage(&whole.replace("Compiling", "Compiled"));
    let shown = home.zeph(["filter", "trust", "--yes"]).code(0);
    assert_has(&shown.stdout, &["cannot be read", "    name = \"acme\"\n"]);
    assert_eq!(read(&home).0, FILTERED);
    // If the pin cannot be stored, the rules are not trusted.
    fs::remove_file(&pin).unwrap();
    fs::remove_dir(pin.parent().unwrap()).unwrap();
    fs::write(pin.parent().unwrap(), "").unwrap();
    home.zeph(["filter", "trust", "--yes"])
        .code(1)
        .says(&["cannot be stored"]);
}

/// Proves OUT-12: calls of the model cannot trust rules, even if the data folder is writable.
#[test]
fn tools_cannot_trust_rules() {
    let home = bringing(&acme());
    trust(&home);
    let [pin] = pins(&home).try_into().unwrap();
    for file in [pin.clone(), pin.with_file_name("new.json")] {
        let params = json!({ "path": file, "content": "{}" }).to_string();
        let args = ["tools", "call", "write", &params, "--json", "--yes"];
        let form = home.zeph(args).cwd(home.root().to_owned()).run().json();
        assert_eq!(form["error_category"], "policy_blocked", "{form:#}");
    }
    let params = json!({ "path": pin.parent().unwrap() }).to_string();
    let args = ["tools", "call", "delete_path", &params, "--json", "--yes"];
    let form = home.zeph(args).cwd(home.root().to_owned()).run().json();
    assert_eq!(form["error_category"], "policy_blocked", "{form:#}");
    assert_eq!(read(&home).0, FILTERED);
    // A command of the model that trusts: the sandbox protects the data folder.
    let checks = home.zeph(["doctor", "--json"]).run().json();
    let checks = checks.as_array().unwrap();
    let sandbox = checks
        .iter()
        .find(|check| check["name"] == "sandbox")
        .unwrap();
    if sandbox["verdict"] != "ok" {
        eprintln!("skipped: {sandbox}");
        return;
    }
    home.write(FILE, &format!("{}\n", acme()));
    let command = format!(
        "XDG_DATA_HOME={} {} filter trust --yes",
        home.data().display(),
        env!("CARGO_BIN_EXE_zeph")
    );
    let params = json!({ "command": command }).to_string();
    let args = ["tools", "call", "bash", &params, "--json", "--yes"];
    let form = home.zeph(args).run().json();
    assert_has(
        &form.to_string(),
        &["belongs to the data of Zeph", "cannot be read"],
    );
    assert_has(&read(&home).1, &[CHANGED]);
}

/// Proves OUT-3, OUT-12: `zeph doctor` lists active rules, and inactive ones with the reason.
#[test]
fn doctor_lists_filter_rules() {
    let home = bringing(&acme());
    let line = |home: &Home| {
        let output = home.zeph(["doctor"]).run();
        assert!(!output.stderr.contains("rule"), "once: {output}");
        let mut lines = output.stdout.lines();
        let line = lines.find(|line| line.contains("  filters  "));
        line.unwrap_or_else(|| panic!("{output}")).to_owned()
    };
    let untrusted = line(&home);
    assert!(untrusted.starts_with("warn"), "{untrusted}");
    assert_has(&untrusted, &["0 this project's", UNTRUSTED]);
    trust(&home);
    let trusted = line(&home);
    assert!(trusted.starts_with("ok"), "{trusted}");
    assert_has(&trusted, &["0 are yours and 1 this project's"]);
    let user = home.config_file().with_file_name("filters.toml");
    fs::write(&user, rule("open", "x", "(").as_str()).unwrap();
    home.write(FILE, &format!("{}\n", acme()));
    let both = line(&home);
    assert!(both.starts_with("warn"), "{both}");
    assert_has(&both, &["rule `open` in", "unclosed group", CHANGED]);
    fs::write(&user, "x".repeat(1024 * 1024 + 1)).unwrap();
    assert_has(&line(&home), &["no filter rule of", "1048576"]);
    home.config("[tools.filters]\nenabled = false\n");
    assert_has(&line(&home), &["off (`[tools.filters] enabled`)"]);
}
