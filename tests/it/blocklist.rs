//! The shell blocklist through the binary: a blocked command does not run in any spelling.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::rig::{Home, Zeph, assert_has, audit};

/// A home whose `PATH` has a `sudo` that creates the file `marker`.
fn home_with_sudo() -> Home {
    let home = Home::new();
    let marker = home.path("marker").display().to_string();
    home.write("bin/sudo", &format!("#!/bin/sh\n: > '{marker}'\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path("bin/sudo"), mode).unwrap();
    home
}

#[allow(clippy::disallowed_methods, reason = "PATH alone is handed on")]
fn bash(home: &Home, command: &str, more: &[&str]) -> Zeph {
    let path = std::env::var("PATH").unwrap();
    let params = json!({ "command": command }).to_string();
    home.zeph(["tools", "call", "bash", &params, "--json"])
        .args(more)
        .env("PATH", &format!("{}:{path}", home.path("bin").display()))
}

fn form(home: &Home, command: &str, more: &[&str]) -> Value {
    bash(home, command, more).run().json()
}

/// Proves SH-10, SH-12.
#[test]
fn blocked_command_does_not_run_with_yes() {
    let home = home_with_sudo();
    for command in [
        "sudo x",
        "V=1 sudo x",
        "(sudo x)",
        "bash -c 'sudo x'",
        "timeout 5 sudo x",
        "ls; su\"d\"o x",
        "echo $'\\\\'; sudo x; echo \\'",
        "setarch -R sudo x",
        "tar -I 'sudo x' -cf a.tar .",
        "TAR_OPTIONS=--to-command=sudo tar xf a.tar",
        "split --filter='sudo x' f",
        "git -c alias.x='!sudo x' x",
        "GIT_SSH_COMMAND='sudo x' git fetch",
        "find . -exec env sudo x {} +",
        "make SHELL=sudo",
    ] {
        let form = form(&home, command, &["--yes"]);
        assert_eq!(
            form["error_category"], "policy_blocked",
            "{command}: {form}"
        );
        let message = form["error_message"].as_str().unwrap();
        assert_has(message, &["blocklist", "`sudo`"]);
        assert!(!home.has("marker"), "{command}: it ran");
    }
    let entries = audit(&home.database());
    assert!(entries.iter().all(|entry| entry.result == "blocked"));
    // If the fake `sudo` had run, the marker would exist.
    bash(&home, "mark=1 ./bin/../bin/s*o x", &["--yes"]).run();
    assert!(home.has("marker"));
}

/// Proves SH-10, SH-11, SH-12: resolved values and literal parts of scripts are blocked, also with `--yes`.
#[test]
fn command_with_a_blocked_resolved_value_does_not_run_with_yes() {
    let home = home_with_sudo();
    home.write("sub/kept", "");
    for command in [
        "x=sudo; $x ls",
        "x='sudo ls'; bash -c \"$x\"",
        "for x in ls sudo; do $x y; done",
        "set -- sudo; \"$1\" x",
        "f() { \"$1\" x; }; f sudo",
        "sh -c \"echo $i; sudo x\"",
        "echo a | xargs -I % sh -c 'echo %; sudo x'",
        "bash <<E\necho $i\nsudo x\nE",
        "bash //dev/stdin <<'E'\nsudo x\nE",
        "bash -noprofile -c 'sudo x'",
        "alias x='env '; x sudo ls",
        "cd sub && rm -rf \"$OLDPWD\"",
        "cd sub && rm -rf ~-",
        "x=$PWD; rm -rf \"$x\"",
        "rm -rf ~+",
    ] {
        let form = form(&home, command, &["--mode", "full", "--yes"]);
        assert_eq!(
            form["error_category"], "policy_blocked",
            "{command}: {form}"
        );
    }
    assert!(!home.has("marker") && home.has("sub/kept"));
}

/// Proves SH-11: an unresolved operand requires confirmation in every mode, regardless of the shell's
/// location.
#[test]
fn unresolved_operand_requires_confirmation_in_mode_full() {
    let home = Home::new();
    home.write("sub/kept", "");
    let full = ["--mode", "full", "--unsandboxed"];
    for command in [
        "cd sub && rm -rf $ZEPH_TEST_UNSET/kept",
        "cd sub && echo kept | xargs rm -rf",
        "rm -rf \"sub/$ZEPH_TEST_UNSET/..\"",
        "find \"$ZEPH_TEST_UNSET\" -delete",
        "chown -R nobody \"$ZEPH_TEST_UNSET\"",
    ] {
        let form = form(&home, command, &full);
        assert_eq!(
            form["error_category"], "confirmation_required",
            "{command}: {form}"
        );
    }
    assert!(home.has("sub/kept"));
    let form = form(&home, "d=sub; rm -rf \"$d\"", &full);
    assert_eq!(form["success"], true, "{form}");
    assert!(!home.has("sub/kept"));
}

/// Proves SH-12.
#[test]
fn ordinary_compound_command_runs() {
    let home = home_with_sudo();
    let command = "for i in 1 2; do echo \"n $i\" >> out; done && grep -c 'n' out | tee count; \
                   echo 'sudo x' > note";
    let form = form(&home, command, &["--yes"]);
    assert_eq!(form["success"], true, "{form}");
    assert_eq!(home.read("count"), "2\n");
    assert_eq!(home.read("note"), "sudo x\n");
    assert!(!home.has("marker"));
}

/// Proves SH-12, SH-12a: the shell cannot interpret the text differently from the gate.
#[test]
fn unusual_bash_text_runs_no_blocked_command() {
    let home = home_with_sudo();
    let full = ["--mode", "full", "--unsandboxed"];
    for command in [
        "echo ${x:-<(sudo y)}",
        "[[ -e <(sudo x) ]]",
        "echo a >&'$(sudo)'",
        "f='$(sudo)'; echo a >&$f",
        "x=(a)b sudo",
        ">&-sudo x",
        "((x<<\"1\"))\nsudo x\n1",
        "echo $'\\c\\\\'; sudo x #'",
        "echo `echo a\\\n; sudo x`",
        "{a[0]}>f sudo x",
        "a='x['; b='$(sudo)]'; echo $(($a$b))",
        "sh -c '((sudo x) )'",
        "sh -c 'echo a &> f sudo x'",
        "sh -c '[[ a && sudo x ]]'",
    ] {
        let form = form(&home, command, &full);
        assert_ne!(form["success"], true, "{command}: {form}");
        assert!(!home.has("marker"), "{command}: it ran");
    }
}

/// Proves SH-12a: the shell runs the canonical text. The user sees it if it differs.
#[test]
fn canonical_text_runs_and_is_shown_if_it_differs() {
    let home = home_with_sudo();
    let full = ["--mode", "full", "--unsandboxed"];
    let command = "# first\nprintf '%s|' \"$0\" 'a  b' \"it's\" \\\n  $'c\\td' &>out; cat <<-E >> out\n\t$((1+2)) \\$x\n\tE\n";
    let ran = form(&home, command, &full);
    assert_eq!(ran["success"], true, "{ran}");
    assert!(
        home.read("out").ends_with("|a  b|it's|c\td|3 $x\n"),
        "{}",
        home.read("out")
    );
    let entries = audit(&home.database());
    let shown = format!("{:?}", entries.last().unwrap());
    assert!(shown.contains("The shell runs"), "{shown}");
    let asked = form(&home, "touch ran; ls &>log", &[]);
    let message = asked["error_message"].as_str().unwrap();
    assert_has(message, &["touch ran; ls > log 2>&1"]);
    assert!(!home.has("ran"));
}

/// Proves SH-12: no mode suppresses the question.
#[test]
fn undetermined_command_runs_only_after_approval() {
    let home = Home::new();
    let full = ["--mode", "full", "--unsandboxed"];
    let refused = form(&home, "X=touch; $X ran", &full);
    assert_eq!(
        refused["error_category"], "confirmation_required",
        "{refused}"
    );
    assert!(!home.has("ran"));
    let agreed = form(
        &home,
        "X=touch; $X ran",
        &["--mode", "full", "--unsandboxed", "--yes"],
    );
    assert_eq!(agreed["success"], true, "{agreed}");
    assert!(home.has("ran"));
}

/// Proves SH-12: a script that the same command writes is judged, or asked about, in every mode.
#[test]
fn generated_script_is_judged_or_requires_confirmation() {
    let home = home_with_sudo();
    let check = |command: &str, category: Value| {
        let form = form(&home, command, &["--mode", "full", "--unsandboxed"]);
        assert_eq!(form["error_category"], category, "{command}: {form}");
        assert!(!home.has("marker"), "{command}: it ran");
    };
    let asks = json!("confirmation_required");
    check("ls bin > f; sh f", asks.clone());
    check("cp bin/sudo x && ./x ls", asks.clone());
    check("ln -s bin/sudo y; ./y ls", asks.clone());
    check("cat > s.py <<'E'\nprint(1)\nE\npython s.py", asks);
    let blocked = json!("policy_blocked");
    check(
        "printf 'sudo x\\n' > a.sh && chmod +x a.sh && ./a.sh",
        blocked.clone(),
    );
    check("cat > b <<'E'; bash b\nsudo x\nE", blocked);
    check(
        "printf 'echo hello > said\\n' > c.sh; chmod +x c.sh; ./c.sh",
        Value::Null,
    );
    assert_eq!(home.read("said"), "hello\n");
}

/// Proves SH-11, SH-14.
#[test]
fn configuration_extends_the_blocklist() {
    let home = Home::new();
    home.config(
        "[tools.shell]\nblocked_commands = [\"touch forbidden\"]\nallow_network = false\n\
         blocked_constructs = [\"backticks\"]\n",
    );
    let check = |command: &str, category: Value| {
        let form = form(&home, command, &["--yes"]);
        assert_eq!(form["error_category"], category, "{command}: {form}");
    };
    check("touch forbidden", json!("policy_blocked"));
    check("curl --version", json!("policy_blocked"));
    check("echo `date`", json!("policy_blocked"));
    check("echo $(date)", Value::Null);
    check("touch allowed", Value::Null);
    assert!(!home.has("forbidden") && home.has("allowed"));
    // A project adds constructs, and takes none of the user's away.
    let project = "[tools.shell]\nblocked_constructs = [\"eval\"]\n";
    home.write(".zeph/config.toml", project);
    check("eval date", json!("policy_blocked"));
    check("echo `date`", json!("policy_blocked"));
    home.write(".zeph/config.toml", "");
    home.config("[tools.shell]\nblocked_constructs = [\"evil\"]\n");
    home.zeph(["config", "check"])
        .code(2)
        .says(&["config.toml:2:", "\"evil\" is not a construct"]);
}

/// Proves SH-11, D-32: in mode `full`, constructs run without a question if their commands may run.
#[test]
fn constructs_run_if_their_commands_are_allowed() {
    let home = home_with_sudo();
    home.write("a", "2\n1\n");
    home.write("b", "1\n2\n");
    let full = ["--mode", "full", "--unsandboxed"];
    for (command, output) in [
        ("echo -j$(nproc) | tr -d 0-9", "-j"),
        ("diff <(sort a) <(sort b) && echo same", "same"),
        ("tr a-z A-Z <<< words", "WORDS"),
        ("echo `echo a$(echo b)`", "ab"),
        ("eval 'echo one; echo two'", "one\ntwo"),
        (
            "printf '%s' \"$(cat <<'X'\nIt's \"new\".\nX\n)\"",
            "It's \"new\".",
        ),
    ] {
        let form = form(&home, command, &full);
        assert_eq!(form["success"], true, "{command}: {form}");
        let printed = form["raw_response"]["stdout"]
            .as_str()
            .unwrap_or_default()
            .trim_end();
        assert_eq!(printed, output, "{command}: {form}");
    }
    for (command, category) in [
        ("echo $(sudo x)", "policy_blocked"),
        ("cat <(sudo x)", "policy_blocked"),
        ("bash <<< 'sudo x'", "policy_blocked"),
        ("eval 'ls; sudo x'", "policy_blocked"),
        ("echo `echo $(sudo x)`", "policy_blocked"),
        ("eval $ZEPH_TEST_UNSET", "confirmation_required"),
        ("$(echo ls)", "confirmation_required"),
        ("bash <<< \"$(cat a)\"", "confirmation_required"),
    ] {
        let form = form(&home, command, &full);
        assert_eq!(form["error_category"], category, "{command}: {form}");
    }
    assert!(!home.has("marker"));
}

/// Proves SH-11: each construct is refused by its name, `founding` names all of them, and the refusal states what to
/// write instead. The description of `bash` lists the refusals.
#[test]
fn constructs_are_refused_by_name() {
    let home = Home::new();
    home.config("[tools.shell]\nblocked_constructs = [\"founding\"]\n");
    for (command, words) in [
        ("echo $(date)", "run the inner command in a call of its own"),
        ("echo `date`", "run the inner command in a call of its own"),
        ("cat <(date)", "write the output to a file"),
        ("cat <<< x", "use a pipe"),
        ("eval date", "write the command itself"),
    ] {
        let form = form(&home, command, &["--yes"]);
        assert_eq!(form["error_category"], "policy_blocked", "{command}");
        let message = form["error_message"].as_str().unwrap();
        assert_has(message, &["blocked_constructs", words]);
    }
    let listed = home.zeph(["tools", "show", "bash"]).code(0);
    assert_has(&listed.stdout, &["Refused: sudo, ", "here-string"]);
    home.config("");
    let listed = home.zeph(["tools", "show", "bash"]).code(0);
    assert_has(&listed.stdout, &["Refused: sudo, "]);
    assert!(!listed.stdout.contains("here-string"), "{listed}");
}

/// Proves SH-11, D-37: the old key has no effect and one notice.
#[test]
fn old_construct_key_has_a_notice() {
    let home = Home::new();
    home.config("[tools.shell]\nallow_constructs = [\"eval\"]\n");
    let output = bash(&home, "echo $(echo runs)", &["--yes"]).run();
    assert_has(
        &output.stderr,
        &[
            "`tools.shell.allow_constructs` has no effect",
            "blocked_constructs",
        ],
    );
    assert_eq!(
        output.stderr.matches("allow_constructs").count(),
        1,
        "{output}"
    );
    assert_eq!(output.json()["success"], true, "{output}");
}

/// Proves SH-12: text that a program would run and that cannot be inspected does not run unattended.
#[test]
fn text_for_programs_needs_confirmation() {
    let home = home_with_sudo();
    for command in [
        "printf 'all:\\n\\tsudo x\\n' | make -f -",
        "echo '1e sudo x' | sed -f - /etc/hostname",
        "echo 'BEGIN{system(\"sudo x\")}' | awk -f -",
        "make --eval='$(shell sudo x)'",
        "LD_PRELOAD=./x.so ls",
        "find . $X -maxdepth 0",
        "echo x | xargs find .",
    ] {
        let form = form(&home, command, &["--mode", "full", "--unsandboxed"]);
        assert_eq!(
            form["error_category"], "confirmation_required",
            "{command}: {form}"
        );
        assert!(!home.has("marker"), "{command}: it ran");
    }
}
