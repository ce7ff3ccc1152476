//! `deny_read` for commands: denied files cannot be read by name, by pattern, through links, or by programs
//! that search for them.

use serde_json::{Value, json};

use crate::rig::{Home, Zeph, assert_has, audit};
use crate::tools_call::call;

/// The content of every denied file, which must not appear in output.
const MARKER: &str = "marker-5e2f";
/// A `bash -c` prefix: a user namespace without mount namespaces.
const NO_MOUNTS: &str = "exec unshare --user --map-root-user bash -c \
     'echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$0\" \"$@\"' \"$0\" \"$@\"";

/// A `bash -c` prefix: no right to mount, like a user without root.
const NO_ADMIN: &str = "exec setpriv --bounding-set=-sys_admin \"$0\" \"$@\"";

/// A project with denied files in it and in the home directory.
fn world() -> Home {
    let home = Home::new();
    for file in [".env", "sub/.env", "sub/key.pem", "secrets/deep/key"] {
        home.write(file, &format!("{MARKER} in {file}\n"));
    }
    home.write("readme", "open\n");
    home.write("sub/notes", "open\n");
    home.write(
        "script",
        "name=.en; cat \"${name}v\"; for f in sub/.e* sub/*.pem; do cat \"$f\"; done\n\
         cat secrets/deep/key; ls -R secrets; cp \"${name}v\" copied; cat copied\n\
         mv \"${name}v\" moved; ln \"${name}v\" linked; cat moved linked; rm \"${name}v\"\n\
         mv sub other; cat other/.env; mv other sub; umount \"${name}v\"; umount -l \"${name}v\"\n\
         cat \"/proc/1/root$PWD/${name}v\"; cat \"/proc/$PPID/cwd/${name}v\"\n\
         cat \"/proc/$PPID/root$PWD/${name}v\"; nsenter -t 1 -m cat \"$PWD/${name}v\"\n\
         unshare -Urm sh -c \"umount ${name}v; cat ${name}v\"; cat \"$HOME/.ssh/id\"\n",
    );
    std::fs::create_dir(home.home().join(".ssh")).unwrap();
    std::fs::write(home.home().join(".ssh/id"), MARKER).unwrap();
    std::os::unix::fs::symlink(".env", home.project().join("link")).unwrap();
    std::os::unix::fs::symlink("sub", home.project().join("dir")).unwrap();
    home.config(RULES);
    home
}

const RULES: &str =
    "[tools.file]\ndeny_read = [\"**/.env\", \"**/*.pem\", \"**/secrets\", \"~/.ssh/**\"]\n";

/// Commands that name denied files.
const NAMED: &[&str] = &[
    "cat .env",
    "cat ./sub/../.env",
    "cat sub/.env; echo done",
    "cat .en*",
    "cat .en? || true",
    "cat s*/*.pem",
    "cat link",
    "cat dir/key.pem",
    "cp .env copy && cat copy",
    "ln -s .env l && cat l",
    "tar cf - .env",
    "tar -C sub -cf - .env",
    "rg . .env",
    "head -c 100 secrets/deep/key",
    "cat ~/.ssh/id",
    "cat \"$HOME/.ssh/id\"",
    "bash -c 'cat .env'",
    "cat < .env",
    "while read -r line; do echo \"$line\"; done < .env",
    "for f in .env sub/.env; do cat \"$f\"; done",
    "find . -name .env -exec cat {} \\;",
    "echo .env | xargs cat",
    "python3 -c 'print(open(\".env\").read())'",
    "X=.env; cat $X",
    "cd sub && cat .env",
];

/// Commands that find denied files without naming them.
const FOUND: &[&str] = &[
    "grep -r marker .",
    "rg --hidden --no-ignore marker .",
    "cat *",
    "cat sub/* sub/.??*",
    "find . -type f -exec cat {} +",
    "find . -type f | while read -r f; do cat \"$f\"; done",
    "ls -a | xargs cat",
    "tar cf - .",
    "cp -r . ../tmp/copied; grep -r marker ../tmp/copied",
    "N=.e; cat ${N}nv",
    "bash script",
    "python3 -c 'import os\nfor d, _, fs in os.walk(\".\"):\n  for f in fs:\n    \
     print(open(d + \"/\" + f).read())'",
    "git init -q . && git add -A && git show :sub/notes",
];

#[track_caller]
fn no_marker(home: &Home, form: &Value, command: &str) {
    let text = form.to_string();
    // The command itself may contain the word.
    assert!(
        !text.contains(&format!("{MARKER} in")),
        "{command}: {form:#}"
    );
    for entry in std::fs::read_dir(home.project()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_file() && !matches!(name.as_str(), ".env" | "link") {
            let content = std::fs::read(&path).unwrap();
            let leaked = content
                .windows(MARKER.len())
                .any(|w| w == MARKER.as_bytes());
            assert!(!leaked, "{command} copied it to {name}");
        }
    }
}

#[track_caller]
fn is_refused(home: &Home, form: &Value, command: &str) {
    no_marker(home, form, command);
    assert_eq!(
        form["error_category"], "policy_blocked",
        "{command}: {form:#}"
    );
    assert_has(
        form["error_message"].as_str().unwrap(),
        &["may not be read: `[tools.file] deny_read` has"],
    );
    let entry = audit(&home.database()).pop().unwrap();
    assert_eq!(entry.result, "blocked", "{command}");
}

/// The line of `zeph doctor` about the read rules.
fn reading_line(checks: &Value) -> String {
    let checks = checks.as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == "reading");
    let found = found.expect("doctor has a line for reading");
    format!("{}: {}", found["verdict"], found["detail"])
}

/// Whether this machine can hide denied files.
pub(crate) fn hides(home: &Home) -> bool {
    let line = reading_line(&home.zeph(["doctor", "--json"]).run().json());
    let hides = line.starts_with("\"ok\"");
    if !hides {
        eprintln!("skipped: {line}");
    }
    hides
}

/// Proves SH-20a, FILE-4.
#[test]
fn command_that_names_a_denied_path_does_not_run() {
    let home = world();
    for command in NAMED {
        let form = call(&home, "bash", &json!({ "command": command }));
        is_refused(&home, &form, command);
    }
    let form = call(
        &home,
        "bash",
        &json!({ "command": "cat .env", "cwd": "sub" }),
    );
    is_refused(&home, &form, "in sub");
    let form = call(&home, "bash", &json!({ "command": "ls", "cwd": "secrets" }));
    is_refused(&home, &form, "in secrets");
    let form = call(&home, "bash", &json!({ "command": "cat readme sub/notes" }));
    assert_eq!(form["data"], "open\nopen", "{form:#}");
}

/// Proves SH-20a, FILE-4: the kernel hides denied files from commands that do not name them.
#[test]
fn denied_file_is_hidden_from_commands() {
    let home = world();
    if !hides(&home) {
        return;
    }
    for command in FOUND {
        let form = call(&home, "bash", &json!({ "command": command }));
        no_marker(&home, &form, command);
    }
    for file in [".env", "sub/.env", "sub/key.pem", "secrets/deep/key"] {
        let kept = std::fs::read_to_string(home.project().join(file)).unwrap();
        assert_eq!(kept, format!("{MARKER} in {file}\n"));
    }
    // Allowed files and the rest of the system are visible.
    let fine = "cat s*/notes; echo x > /dev/null && cat /dev/null; echo y > new && cat new";
    let form = call(&home, "bash", &json!({ "command": fine }));
    assert_eq!(form["data"], "open\ny", "{form:#}");
}

/// Proves SH-20a: without the right to mount, a user namespace hides denied files.
#[test]
fn deny_read_is_hidden_without_mount_privilege() {
    let home = world();
    let run = |args: &[&str]| Zeph::through_bash(&home, NO_ADMIN).args(args).run();
    let may_not = rustix::process::geteuid().is_root() && run(&["--version"]).stderr.is_empty();
    let namespaces = std::fs::read_to_string("/proc/sys/user/max_user_namespaces");
    if !may_not || namespaces.is_ok_and(|most| most.trim() == "0") || !hides(&home) {
        eprintln!("skipped: the right to mount cannot be dropped here, or is not needed");
        return;
    }
    let line = reading_line(&run(&["doctor", "--json"]).json());
    assert_has(&line, &["ok", "hidden"]);
    for command in ["N=.e; cat ${N}nv", "cat *; cat s*/*", "bash script"] {
        let params = json!({ "command": command }).to_string();
        let form = run(&["tools", "call", "bash", &params, "--json", "--yes"]).json();
        is_refused(&home, &form, command);
    }
}

/// Proves SH-21: if a command fails because a file is hidden, the error names the rule.
#[test]
fn hidden_file_error_names_its_rule() {
    let home = world();
    if !hides(&home) {
        return;
    }
    for command in [
        "printf -v N .e; cat ${N}nv",
        "grep -r marker sub",
        "bash script",
        "bash script 2>&1",
    ] {
        let form = call(&home, "bash", &json!({ "command": command }));
        is_refused(&home, &form, command);
        assert_has(form["error_message"].as_str().unwrap(), &["/", "hidden"]);
    }
}

/// Proves SH-20a: mode `required` also hides denied files.
#[test]
fn other_entry_points_enforce_deny_read() {
    let home = world();
    home.more_config("[tools.shell.sandbox]\nmode = \"required\"\n");
    if !hides(&home) {
        return;
    }
    let form = call(&home, "bash", &json!({ "command": "cat *; cat sub/.e*v" }));
    is_refused(&home, &form, "required");
    let form = call(&home, "bash", &json!({ "command": "cat $N sub/notes" }));
    assert_eq!(form["data"], "open", "{form:#}");
    // In a conversation the model reads the refusal, not the file.
    let home = world();
    home.scenario(
        "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"cat .env\" } }]\n\
         [[steps]]\nexpect = { tool_result_contains = \"policy_blocked\" }\n\
         calls = [{ tool = \"bash\", input = { command = \"N=.e; cat ${N}nv\" } }]\n\
         [[steps]]\nexpect = { tool_result_contains = \"deny_read\" }\ntext = \"it may not be read\"\n",
    );
    home.more_config(RULES);
    let output = home
        .zeph(["-p", "read", "--yes", "--output-format", "stream-json"])
        .code(0);
    assert_has(&output.stdout, &["it may not be read"]);
    assert!(!output.stdout.contains(MARKER), "{output}");
}

/// Proves SH-20a: with the sandbox off only the parser applies. It refuses more, and `zeph doctor` reports
/// this.
#[test]
fn named_denied_path_is_refused_without_the_sandbox() {
    let home = world();
    home.more_config("[tools.shell.sandbox]\nmode = \"off\"\n");
    for command in NAMED {
        let form = call(&home, "bash", &json!({ "command": command }));
        is_refused(&home, &form, command);
    }
    for command in ["cat *", "cat sub/*", "find . -name '*.pem' -exec cat {} +"] {
        let form = call(&home, "bash", &json!({ "command": command }));
        is_refused(&home, &form, command);
    }
    assert_has(
        &reading_line(&home.zeph(["doctor", "--json"]).run().json()),
        &["warning", "in part"],
    );
}

/// Proves SH-20a: if the kernel creates no mount namespace, `best-effort` warns and relies on the parser, and
/// `required` refuses.
#[test]
fn missing_mount_namespaces_warn_or_refuse() {
    let home = world();
    let run = |args: &[&str]| Zeph::through_bash(&home, NO_MOUNTS).args(args).run();
    let output = run(&["doctor", "--json"]);
    if !output.stdout.starts_with('[') {
        eprintln!("skipped: no user namespace can be made here: {output}");
        return;
    }
    let line = reading_line(&output.json());
    assert_has(&line, &["warning", "only commands that name it"]);
    let bash = |command: &str| {
        let params = json!({ "command": command }).to_string();
        run(&["tools", "call", "bash", &params, "--json", "--yes"])
    };
    for command in NAMED.iter().chain(&["cat *", "cat sub/*"]) {
        is_refused(&home, &bash(command).json(), command);
    }
    let params = json!({ "command": "cat readme" }).to_string();
    let output = run(&["tools", "call", "bash", &params, "--yes"]);
    assert_has(&output.stdout, &["open"]);
    assert_has(&output.stderr, &["does not hide", "deny_read"]);

    home.more_config("[tools.shell.sandbox]\nmode = \"required\"\n");
    let form = bash("cat readme").json();
    assert_eq!(form["error_category"], "policy_blocked", "{form:#}");
    assert_has(
        form["error_message"].as_str().unwrap(),
        &["was not run", "deny_read", "`[tools.shell.sandbox] mode`"],
    );
    let line = reading_line(&run(&["doctor", "--json"]).json());
    assert_has(&line, &["failed", "no command runs"]);
}

/// Proves FILE-4: commands may name only files that `allow_read` lists.
#[test]
fn allow_read_applies_to_commands_that_name_a_file() {
    let home = world();
    let allowed = home.project().join("sub").display().to_string();
    home.config(&format!("[tools.file]\nallow_read = [\"{allowed}/**\"]\n"));
    let form = call(&home, "bash", &json!({ "command": "cat sub/notes" }));
    assert_eq!(form["data"], "open", "{form:#}");
    let form = call(&home, "bash", &json!({ "command": "cat readme" }));
    assert_eq!(form["error_category"], "policy_blocked", "{form:#}");
    assert_has(form["error_message"].as_str().unwrap(), &["allow_read"]);
}
