//! Commands without confirmation: read-only commands in every mode, and confined commands in mode `auto`. If the
//! kernel does not support the sandbox, these tests print a message and check nothing.

use serde_json::{Value, json};

use crate::os_sandbox::enforced;
use crate::rig::{Home, Terminal, assert_has, audit};

/// Calls `bash` without a user.
fn bash(home: &Home, args: &[&str], command: &str) -> Value {
    let params = json!({ "command": command }).to_string();
    let mut all = vec!["tools", "call", "bash", &params, "--json"];
    all.extend(args);
    home.zeph(all).run().json()
}

#[track_caller]
fn runs(home: &Home, args: &[&str], command: &str) -> String {
    let form = bash(home, args, command);
    assert_eq!(form["error_category"], Value::Null, "{command}: {form:#}");
    form["data"].as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn is_refused(home: &Home, args: &[&str], command: &str, category: &str) -> String {
    let form = bash(home, args, command);
    assert_eq!(form["error_category"], category, "{command}: {form:#}");
    form["error_message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Proves PERM-9, D-34: a command that only reads runs without confirmation in every mode, and nothing else does in the
/// strict ones.
#[test]
fn read_only_command_runs_in_every_mode() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    home.write("src/a.rs", "fn main() {}\n");
    for mode in ["plan", "ask", "auto-edit", "auto", "full"] {
        let args = ["--mode", mode];
        for (command, expect) in [
            ("ls -la", "src"),
            ("cat src/a.rs | wc -l", "1"),
            ("grep -rn main . && find . -name '*.rs'", "./src/a.rs"),
            ("for f in src/*.rs; do head -1 \"$f\"; done", "fn main"),
            ("pwd > /dev/null; echo done 2>&1", "done"),
        ] {
            assert_has(&runs(&home, &args, command), &[expect]);
        }
    }
    for mode in ["ask", "auto-edit"] {
        for command in [
            "touch x",
            "ls > x",
            "ls; rm -f src/a.rs",
            "find src -delete",
        ] {
            is_refused(&home, &["--mode", mode], command, "confirmation_required");
        }
    }
    is_refused(&home, &["--mode", "plan"], "touch x", "policy_blocked");
    assert!(!home.has("x") && home.has("src/a.rs"));
}

/// Proves PERM-9: rules of the user come first, and paths must be readable for `read`.
#[test]
fn read_only_command_obeys_rules_and_paths() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    home.write("a.txt", "text\n");
    home.write("secret.txt", "text\n");
    home.write("app/[slug]/page.tsx", "text\n");
    home.write("[in]/a.txt", "text\n");
    home.write("b.txt", "text\n");
    home.write("d/c.txt", "text\n");
    home.write("e/c.txt", "text\n");
    for (target, link) in [
        ("/etc/passwd", "link"),
        ("/etc/passwd", "q"),
        ("/etc/passwd", "é.md"),
        ("/etc/passwd", "[in]/b.txt"),
        ("/etc/passwd", "d/x"),
        ("../home", "[id]"),
        ("../home", "{x,y}z"),
        ("../home", "\\x"),
    ] {
        std::os::unix::fs::symlink(target, home.path(link)).unwrap();
    }
    std::fs::write(home.home().join("private"), "text\n").unwrap();
    home.config(
        "[[tools.permissions.bash]]\npattern = \"wc *\"\naction = \"deny\"\n\
         [[tools.permissions.bash]]\npattern = \"tac *\"\naction = \"ask\"\n\
         [[tools.permissions.read]]\npattern = \"secret.txt\"\naction = \"deny\"\n\
         [[tools.permissions.read]]\npattern = \"**\"\naction = \"allow\"\n",
    );
    runs(&home, &[], "cat a.txt");
    runs(&home, &[], "diff a.txt b.txt");
    runs(&home, &[], "grep -R text a.txt");
    runs(&home, &[], "cat 'app/[slug]'/*.tsx");
    runs(&home, &[], "cd 'app/[slug]' && cat *.tsx");
    is_refused(&home, &[], "cat a.txt | wc -l", "policy_blocked");
    for command in [
        "tac a.txt",
        "cat secret.txt",
        "cat link",
        "cat *",
        "cat [[:lower:]]",
        "cat ?.md",
        "cat '[id]'/*",
        "cat '{x,y}'*/private",
        "cat '\\'*/private",
        "cd '[in]' && cat *",
        "diff -N d e",
        "diff e d",
        "diff d/.. e",
        "grep -R text d",
        "cat ~/private",
        "head ../home/private",
        "cat /etc/passwd",
        "grep -f /etc/passwd a.txt",
    ] {
        is_refused(&home, &[], command, "confirmation_required");
    }
}

/// Proves SH-23, PERM-9: the sandbox enforces the claims of the table. A program of the table under another name does not
/// write, reach the network or signal other processes, and the call then needs confirmation.
#[test]
fn read_only_sandbox_refuses_writes_and_sockets() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    let bin = home.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let file = bin.join(name);
        std::fs::write(&file, format!("#!/bin/bash\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let project = home.project();
    script("nl", &format!("echo x > {}/written", project.display()));
    script("od", "exec 3<>/dev/tcp/127.0.0.1/1");
    script("tac", "echo x > \"$TMPDIR/own\" && cat \"$TMPDIR/own\"");
    script(
        "rev",
        "kill -0 1 && kill -0 $ZEPH_TEST_PID && echo signalled; true",
    );
    home.write("a.txt", "text\n");
    let path = format!("{}:{}", bin.display(), crate::rig::search_path());
    let own = std::process::id().to_string();
    let call = |command: &str| {
        let params = json!({ "command": command }).to_string();
        home.zeph(["tools", "call", "bash", &params, "--json"])
            .env("PATH", &path)
            .env("ZEPH_TEST_PID", &own)
            .run()
            .json()
    };
    for command in ["nl a.txt", "od a.txt"] {
        let form = call(command);
        assert_eq!(form["error_category"], "confirmation_required", "{form:#}");
        assert_has(
            form["error_message"].as_str().unwrap(),
            &["read-only sandbox"],
        );
    }
    assert!(!home.has("written"));
    assert_eq!(call("tac a.txt")["data"], "x");
    let signalled = call("rev a.txt");
    assert!(
        !signalled["data"].as_str().unwrap().contains("signalled"),
        "{signalled:#}"
    );
}

/// Proves PERM-8, SH-20, D-35: in mode `auto`, a command runs without confirmation and writes in the project only.
#[test]
fn auto_mode_runs_confined_commands() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    let auto = ["--mode", "auto"];
    runs(&home, &auto, "touch made && mkdir -p d && mv made d/");
    assert!(home.has("d/made"));
    std::fs::create_dir_all(home.home().join("other/dir")).unwrap();
    let message = is_refused(&home, &auto, "touch ~/other/dir/x", "policy_blocked");
    assert_has(&message, &["other/dir/x", "[tools.shell.sandbox] writable"]);
    let connect = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 1))'";
    let message = is_refused(&home, &auto, connect, "confirmation_required");
    assert_has(&message, &["a part is unknown before it runs"]);
    let message = is_refused(
        &home,
        &auto,
        "curl -s http://127.0.0.1:1/",
        "policy_blocked",
    );
    assert_has(&message, &["network", "[tools.shell.sandbox] network"]);
    // A refusal that the command survives does not count.
    runs(&home, &auto, "touch ~/other/dir/x 2> /dev/null || true");
    is_refused(&home, &auto, "$X", "confirmation_required");
    is_refused(&home, &auto, "sudo ls", "policy_blocked");
    is_refused(
        &home,
        &auto,
        "echo x > ~/other/dir/y",
        "confirmation_required",
    );
    home.config("[tools.shell.sandbox]\nnetwork = \"allow\"\n");
    let form = bash(&home, &auto, "curl -s http://127.0.0.1:1/");
    assert_eq!(form["raw_response"]["exit_code"], 7, "{form:#}");
    // Without a sandbox, the mode asks.
    home.config("[tools.shell.sandbox]\nmode = \"off\"\n");
    is_refused(&home, &auto, "touch unconfined", "confirmation_required");
    is_refused(&home, &auto, "ls", "confirmation_required");
    assert!(!home.has("unconfined"));
}

/// Proves SH-20: the caches of package managers are writable, and their folders with programs are not.
#[test]
fn caches_are_writable_as_configured() {
    if !enforced() {
        return;
    }
    let home = Home::new();
    let auto = ["--mode", "auto"];
    for folder in [".cargo/bin", ".npm"] {
        std::fs::create_dir_all(home.home().join(folder)).unwrap();
    }
    let write =
        |path: &str| format!("cargo --version > /dev/null 2>&1; mkdir -p {path} && touch {path}/x");
    runs(&home, &auto, &write("~/.cargo/registry/cache"));
    assert!(home.home().join(".cargo/registry/cache/x").exists());
    is_refused(&home, &auto, &write("~/.cargo/bin"), "policy_blocked");
    home.config("[tools.shell.sandbox]\ncaches = \"deny\"\n");
    let message = is_refused(
        &home,
        &auto,
        &write("~/.cargo/registry/index"),
        "policy_blocked",
    );
    assert_has(&message, &["[tools.shell.sandbox] caches"]);
}

fn scenario(commands: &[&str]) -> String {
    let step = |(at, command): (usize, &&str)| {
        format!(
            "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {command:?} }} }}]\n\
             [[steps]]\ntext = \"Done {at}.\"\n"
        )
    };
    commands.iter().enumerate().map(step).collect()
}

/// Proves SH-22, PERM-7a: a refusal becomes one question that names the path. The approval covers the named directory,
/// once, for the session or permanently, and `/permissions` lists it.
#[test]
fn refused_access_becomes_one_question() {
    if !enforced() {
        return;
    }
    let write = |name: &str| format!("touch ~/other/dir/{name} && echo made");
    let home = Home::scripted(&scenario(&[
        &write("a"),
        &write("b"),
        &write("c"),
        "touch ~/other/more/x && echo made",
    ]));
    for folder in ["other/dir", "other/more"] {
        std::fs::create_dir_all(home.home().join(folder)).unwrap();
    }
    let made = |name: &str| home.home().join("other/dir").join(name).exists();
    let directory = home.home().join("other/dir").display().to_string();
    let mut terminal = Terminal::start(&home, &["--mode", "auto"]);
    let ask = |terminal: &mut Terminal, keys: &str, done: &str| {
        terminal.prompts("");
        terminal.type_keys("\x0c");
        terminal.until("an empty screen", |text| !text.contains("[1] once"));
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows("[1] once");
        terminal.shows("Run the command again with write access to");
        terminal.type_keys(keys);
        terminal.shows(done);
    };
    ask(&mut terminal, "1", "Done 0.");
    assert!(made("a"));
    ask(&mut terminal, "2", "Done 1.");
    assert!(made("b"));
    terminal.prompts("");
    terminal.type_keys("unasked\r");
    terminal.shows("Done 2.");
    assert!(made("c"));
    terminal.prompts("");
    terminal.type_keys("/permissions\r");
    terminal.shows("sandbox.write");
    terminal.shows(&directory[..40.min(directory.len())]);
    ask(&mut terminal, "3", "[p] in this project");
    terminal.type_keys("p");
    terminal.shows("Done 3.");
    assert!(home.home().join("other/more/x").exists());
    let kept = std::fs::read_to_string(home.home().join(".config/zeph/policies.json")).unwrap();
    assert_has(&kept, &["\"sandbox.write\"", "other/more"]);
    terminal.prompts("");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    let entries = audit(&home.database());
    assert!(
        entries.iter().any(|entry| {
            let rule = entry.policy_match.as_deref().unwrap_or_default();
            rule.contains("the user approved the run with write access")
        }),
        "{entries:#?}"
    );
}

/// Proves SH-6, SH-22: after four questions about one call, its last run ends with its own refusal.
#[test]
fn fifth_refused_access_is_reported_without_a_question() {
    if !enforced() {
        return;
    }
    let home = Home::scripted(
        r#"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "for d in a b c d e; do touch ~/other/$d/x || exit 7; done" } }]
        [[steps]]
        expect = { tool_result_contains = "other/e" }
        text = "Understood."
        "#,
    );
    for folder in ["a", "b", "c", "d", "e"] {
        std::fs::create_dir_all(home.home().join("other").join(folder)).unwrap();
    }
    let mut terminal = Terminal::start(&home, &["--mode", "auto"]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    for folder in ["a", "b", "c", "d"] {
        terminal.shows(&format!("other/{folder}"));
        terminal.shows("[1] once");
        terminal.type_keys("1");
    }
    terminal.shows("Understood.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    let made = |folder: &str| home.home().join("other").join(folder).join("x").exists();
    assert!(made("d") && !made("e"));
    let entries = audit(&home.database());
    assert_eq!(entries.last().unwrap().exit_code, Some(7), "{entries:#?}");
}

/// Proves SH-22: a declined access is not asked about again, and the model reads the refusal.
#[test]
fn declined_access_is_not_requested_again() {
    if !enforced() {
        return;
    }
    let home = Home::scripted(
        r#"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "touch ~/other/dir/a" } }]
        [[steps]]
        expect = { tool_result_contains = "policy_blocked" }
        calls = [{ tool = "bash", input = { command = "touch ~/other/dir/b" } }]
        [[steps]]
        expect = { tool_result_contains = "the OS sandbox blocked writing to" }
        text = "Understood."
        "#,
    );
    std::fs::create_dir_all(home.home().join("other/dir")).unwrap();
    let mut terminal = Terminal::start(&home, &["--mode", "auto"]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("[1] once");
    terminal.type_keys("4");
    terminal.shows("Understood.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves PERM-8: `/mode` and Shift-Tab change the mode for the calls that follow, and the prompt shows it.
#[test]
fn mode_changes_in_a_session() {
    if !enforced() {
        return;
    }
    let home = Home::scripted(&scenario(&["touch a", "touch b", "touch c"]));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.shows("ask ›");
    terminal.type_keys("\x1b[Z");
    terminal.shows("auto-edit ›");
    terminal.type_keys("\x1b[Z");
    terminal.shows("auto ›");
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("Done 0.");
    assert!(home.has("a"));
    terminal.prompts("");
    terminal.type_keys("/mode plan\r");
    terminal.shows("plan ›");
    terminal.type_keys("go\r");
    terminal.shows("Done 1.");
    assert!(!home.has("b"));
    terminal.prompts("");
    terminal.type_keys("/mode ask\r");
    terminal.shows("mode ask: asks before");
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("[1] once");
    terminal.type_keys("4");
    terminal.shows("Done 2.");
    terminal.prompts("");
    terminal.type_keys("/mode yolo\r");
    terminal.shows("\"yolo\" is not a mode; the modes are plan, ask, auto-edit, auto, full");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// The numbers of `landlock_create_ruleset` and `seccomp`.
pub(crate) const LANDLOCK: &str = "444";
const SECCOMP: &str = "317";

/// The binary on a kernel without some system calls.
pub(crate) fn without(home: &Home, numbers: &str, args: &[&str]) -> crate::rig::Output {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/without_system_call.py"
    );
    let script = format!("exec python3 {script} {numbers} \"$0\" \"$@\"");
    crate::rig::Zeph::through_bash(home, &script)
        .args(args)
        .run()
}

/// Proves PERM-8, PERM-9, SH-20: on a kernel without a part of the sandbox, more calls need confirmation, never fewer, and
/// the missing part is reported.
#[test]
fn missing_kernel_support_requires_more_confirmations() {
    if !enforced() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let both = format!("{LANDLOCK},{SECCOMP}");
    for (numbers, report) in [
        (LANDLOCK, "it has no Landlock"),
        (SECCOMP, "without seccomp, read-only commands"),
        (&both, "it has no Landlock"),
    ] {
        let home = Home::new();
        let doctor = without(&home, numbers, &["doctor"]);
        assert_has(&doctor.stdout, &[report]);
        for mode in ["ask", "auto-edit", "auto"] {
            for command in ["ls", "git status", "touch made"] {
                let params = json!({ "command": command }).to_string();
                let args = ["tools", "call", "bash", &params, "--json", "--mode", mode];
                let output = without(&home, numbers, &args);
                let form = output.json();
                assert_eq!(form["error_category"], "confirmation_required", "{form:#}");
                let is_reported = output
                    .stderr
                    .contains("mode auto: the OS sandbox is off or incomplete");
                assert_eq!(is_reported, mode == "auto", "{output}");
            }
        }
        assert!(!home.has("made"));
    }
}
