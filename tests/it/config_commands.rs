//! `zeph config get`, `set` and `edit`.

use std::os::unix::fs::PermissionsExt as _;

use crate::rig::{Home, Terminal, assert_has};

fn config(home: &Home) -> String {
    std::fs::read_to_string(home.config_file()).unwrap()
}

/// An editor that runs a `sed` script on the file.
fn editor(home: &Home, script: &str) -> String {
    let path = home.root().join("editor.sh");
    let text = format!("#!/bin/sh\n{script}\n");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Proves CLI-9: `get` prints the effective value from any source.
#[test]
fn get_prints_the_effective_value() {
    let home = Home::new();
    home.config("[tools]\nmode = \"plan\"\n[tools.shell]\ntimeout = 45\n");
    let get = |key: &str| home.zeph(["config", "get", key]).code(0).stdout;
    assert_eq!(get("tools.mode"), "plan\n");
    assert_eq!(get("tools.shell.timeout"), "45\n");
    assert_eq!(get("llm.fallback"), "[]\n");
    assert_has(&get("tools.shell"), &["timeout = 45\n", "allow_network = "]);
    let output = home
        .zeph(["config", "get", "tools.mode"])
        .env("ZEPH_TOOLS_MODE", "ask")
        .code(0);
    assert_eq!(output.stdout, "ask\n");
    home.zeph(["config", "get", "llm.default"])
        .code(1)
        .says(&["`llm.default` is not set"]);
    home.zeph(["config", "get", "tools.shell.timeot"])
        .code(2)
        .says(&["the nearest known key is `tools.shell.timeout`"]);
}

/// Proves CLI-9, CFG-2: `set` writes a typed value, names the file, and preserves comments, order and mode.
#[test]
fn set_writes_one_typed_value_and_preserves_the_rest() {
    let home = Home::new();
    let text =
        "# mine\n[tools.shell] # shell\ntimeout = 30 # seconds\n\n[agent]\nmax_reflections = 2\n";
    home.config(text);
    let mode = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(home.config_file(), mode).unwrap();
    let output = home
        .zeph(["config", "set", "tools.shell.timeout", "60"])
        .code(0);
    let file = home.config_file().display().to_string();
    assert_eq!(
        output.stdout,
        format!("set tools.shell.timeout = 60 in {file}\n")
    );
    assert_eq!(config(&home), text.replace("30", "60"));
    let mode = home.config_file().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    home.zeph([
        "config",
        "set",
        "tools.file.deny_read",
        "**/.env, **/secrets/**",
    ])
    .code(0);
    assert_has(
        &config(&home),
        &["deny_read = [\"**/.env\", \"**/secrets/**\"]"],
    );
    home.zeph(["config", "set", "tools.mode", "plan"]).code(0);
    let get = home.zeph(["config", "get", "tools.mode"]).code(0).stdout;
    assert_eq!(get, "plan\n");
    home.zeph(["config", "check"]).code(0);
    let entries = std::fs::read_dir(home.config_file().parent().unwrap()).unwrap();
    assert_eq!(entries.count(), 1, "no temporary file is left");
}

/// Proves CLI-9: without a file, `set` creates one of mode 0600.
#[test]
fn set_creates_the_file() {
    let home = Home::new();
    std::fs::remove_dir_all(home.home().join(".config")).unwrap();
    home.zeph(["config", "set", "tools.mode", "plan"]).code(0);
    assert_eq!(config(&home), "[tools]\nmode = \"plan\"\n");
    let mode = home.config_file().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Proves CLI-9, CFG-2: an unknown key, a wrong type and a value that matches nothing change no file.
#[test]
fn set_refuses_invalid_changes() {
    let home = Home::new();
    let text = "[agent]\nmax_reflections = 2\n";
    home.config(text);
    for (key, value, code, words) in [
        (
            "tools.shel.timeout",
            "60",
            2,
            "the nearest known key is `tools.shell.timeout`",
        ),
        ("tools.shell.timeout", "soon", 2, "must be an integer"),
        ("tools.shell.timeout", "-1", 2, "tools.shell.timeout"),
        ("tools.shell", "60", 2, "it is a section"),
        ("tools.mode", "fast", 2, "must be one of"),
        (
            "agent.max_tool_retries",
            "3",
            2,
            "an old name of `tools.retry.max_attempts`",
        ),
        (
            "llm.default",
            "nowhere",
            2,
            "there is no provider called \"nowhere\"",
        ),
    ] {
        let output = home
            .zeph(["config", "set", key, value])
            .code(code)
            .says(&[words]);
        assert!(!output.stderr.contains(".tmp"), "{output}");
        if key == "llm.default" {
            assert_has(&output.stderr, &["config.toml:"]);
        }
        assert_eq!(config(&home), text, "{key}");
    }
}

/// Proves CLI-9, CFG-1: a stronger source is reported.
#[test]
fn set_reports_a_source_that_takes_precedence() {
    let home = Home::new();
    home.zeph(["config", "set", "tools.mode", "plan"])
        .env("ZEPH_TOOLS_MODE", "ask")
        .code(0)
        .says(&["warning: ", "ZEPH_TOOLS_MODE", "takes precedence"]);
}

/// Proves CLI-9, CFG-1: a free key may have quotes, and only a stronger source of the same value is
/// reported.
#[test]
fn set_writes_free_keys_and_tables() {
    for key in [
        "tools.filters.rules.git-*.enabled",
        "tools.filters.rules.\"git-*\".enabled",
        "tools.filters.rules.'git-*'.enabled",
    ] {
        let home = Home::new();
        let output = home.zeph(["config", "set", key, "false"]).code(0);
        assert!(!output.stderr.contains("takes precedence"), "{output}");
        assert_eq!(
            config(&home),
            "[tools.filters.rules.\"git-*\"]\nenabled = false\n"
        );
        let get = home.zeph(["config", "get", key]).code(0).stdout;
        assert_eq!(get, "false\n");
    }
    let home = Home::new();
    let set = |flags: &[&str]| {
        let arguments = ["config", "set", "tools.shell.env.set", "{ CI = \"1\" }"];
        home.zeph(flags.iter().copied().chain(arguments)).code(0)
    };
    let output = set(&[]);
    assert!(!output.stderr.contains("takes precedence"), "{output}");
    let output = set(&["--set", "tools.shell.env.set.A=2"]);
    assert!(!output.stderr.contains("takes precedence"), "{output}");
    set(&["--set", "tools.shell.env.set.CI=2"])
        .says(&["sets `tools.shell.env.set.CI` too, and takes precedence"]);
}

/// Proves CLI-9: an error of another source is reported, although the key is set.
#[test]
fn set_reports_an_error_of_another_source() {
    let home = Home::new();
    home.write(".zeph/config.toml", "[tools]\nmood = \"plan\"\n");
    home.zeph(["config", "set", "tools.mode", "plan"])
        .code(0)
        .says(&["warning: ", ".zeph/config.toml:2", "mood"]);
    assert_has(&config(&home), &["mode = \"plan\""]);
}

/// Proves CLI-9: the editor gets a copy; a valid text replaces the file.
#[test]
fn edit_replaces_the_file_by_a_valid_text() {
    let home = Home::new();
    home.config("# mine\n[tools]\nmode = \"plan\"\n");
    let program = editor(&home, "sed -i s/plan/ask/ \"$2\" && test \"$1\" = --wait");
    let output = home
        .zeph(["config", "edit"])
        .env("VISUAL", &format!("{program} --wait"))
        .env("EDITOR", "false")
        .code(0);
    assert_has(&output.stdout, &["wrote ", "config.toml"]);
    assert_eq!(config(&home), "# mine\n[tools]\nmode = \"ask\"\n");
    let unchanged = home.zeph(["config", "edit"]).env("EDITOR", "true").code(0);
    assert_has(&unchanged.stdout, &["is unchanged"]);
    home.zeph(["config", "edit"])
        .env("EDITOR", "false")
        .code(1)
        .says(&["the editor \"false\" failed", "nothing was changed"]);
}

/// Proves CLI-9: an invalid text is not stored and not lost.
#[test]
fn edit_does_not_write_an_invalid_text() {
    let home = Home::new();
    let text = "[tools]\nmode = \"plan\"\n";
    home.config(text);
    let program = editor(&home, "echo 'mood = 1' >> \"$1\"");
    let output = home
        .zeph(["config", "edit"])
        .env("EDITOR", &program)
        .code(2);
    assert_has(
        &output.stderr,
        &["your text is in ", "`mood` is not a key", "`mode`"],
    );
    assert_eq!(config(&home), text);
    let copies = std::fs::read_dir(home.tmp()).unwrap();
    let copies: Vec<_> = copies
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(copies, [format!("{text}mood = 1\n")]);
}

/// Proves CLI-9: at a terminal, the editor can be opened again to correct the text.
#[test]
fn edit_offers_to_open_the_editor_again() {
    let home = Home::new();
    home.config("[tools]\nmode = \"plan\"\n");
    // The first run breaks the text, the second corrects it.
    let program = editor(
        &home,
        "grep -q fast \"$1\" && sed -i s/fast/ask/ \"$1\" || sed -i s/plan/fast/ \"$1\"",
    );
    let mut terminal = Terminal::under(&home, &["config", "edit"], &[("EDITOR", Some(&program))]);
    terminal.shows("must be one of");
    terminal.shows("Open the editor again? [Y/n]");
    terminal.type_keys("\r");
    terminal.shows("wrote ");
    assert_eq!(terminal.ends().0.code(), Some(0));
    assert_eq!(config(&home), "[tools]\nmode = \"ask\"\n");
}
