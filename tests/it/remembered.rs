//! Approvals for more than one call, through a real terminal, and the file that stores them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::rig::{Home, Terminal, audit};

fn policies(home: &Home) -> PathBuf {
    home.home().join(".config/zeph/policies.json")
}

fn kept(home: &Home) -> Value {
    serde_json::from_str(&std::fs::read_to_string(policies(home)).unwrap()).unwrap()
}

/// A scenario that responds to each input with one of these commands, then with `done N`.
pub(crate) fn commands(commands: &[&str]) -> String {
    let step = |(at, command): (usize, &&str)| {
        format!(
            "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {command:?} }} }}]\n\
             [[steps]]\ntext = \"Done {at}.\"\n"
        )
    };
    commands.iter().enumerate().map(step).collect()
}

/// Sends a prompt and waits for the question.
#[track_caller]
pub(crate) fn asked(terminal: &mut Terminal, say: &str) {
    terminal.prompts("");
    terminal.type_keys("\x0c");
    terminal.until("an empty screen", |text| !text.contains("[1] once"));
    terminal.prompts("");
    terminal.type_keys(&format!("{say}\r"));
    terminal.shows("[1] once");
}

/// Runs a slash command and waits for its output.
#[track_caller]
pub(crate) fn command(terminal: &mut Terminal, command: &str, answer: &str) {
    terminal.prompts("");
    terminal.type_keys(&format!("{command}\r"));
    terminal.shows(answer);
}

#[track_caller]
pub(crate) fn leave(terminal: Terminal) {
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves PERM-7, CMD-1: each of the five answers; approvals for the session last until they are revoked or
/// the conversation starts over.
#[test]
fn five_answers_of_a_question_take_effect() {
    let home = Home::scripted(&commands(&[
        "touch a", "touch b", "touch b", "touch b", "touch b", "touch b", "touch c", "touch d",
    ]));
    let mut terminal = Terminal::start(&home, &[]);
    asked(&mut terminal, "one");
    terminal.shows("  $ touch a\n    ^ asked");
    terminal.shows("[2] this session, [3] always: bash `touch a`");
    terminal.shows("[1] once  [2] this session  [3] always ›[4] no  [5] no, and tell it why");
    terminal.type_keys("1");
    terminal.shows("Done 0.");
    assert!(home.has("a"));
    asked(&mut terminal, "two");
    terminal.type_keys("2");
    terminal.shows("Done 1.");
    terminal.prompts("");
    std::fs::remove_file(home.path("b")).unwrap();
    terminal.type_keys("three\r");
    terminal.shows("Done 2.");
    assert!(home.has("b"), "it ran unasked");
    command(&mut terminal, "/permissions", "1 bash `touch b`");
    command(
        &mut terminal,
        "/permissions rm 1",
        "Revoked: bash `touch b`",
    );
    asked(&mut terminal, "four");
    terminal.type_keys("2");
    terminal.shows("Done 3.");
    command(&mut terminal, "/clear", "A new conversation starts");
    asked(&mut terminal, "five");
    terminal.type_keys("4");
    terminal.shows("Done 4.");
    asked(&mut terminal, "six");
    terminal.type_keys("5");
    terminal.shows("tell it why:");
    terminal.type_keys("not now\n");
    terminal.shows("Done 5.");
    asked(&mut terminal, "seven");
    terminal.type_keys("3");
    terminal.shows("The permanent rules would be:");
    terminal.shows("[p] in this project");
    assert!(
        !policies(&home).exists(),
        "nothing is kept before the answer"
    );
    terminal.type_keys("b");
    terminal.shows("[3] always ›[4] no");
    terminal.type_keys("3");
    terminal.until("the choice once more", |text| {
        text.matches("[p] in this project").count() == 2
    });
    terminal.type_keys("p");
    terminal.shows("always, in this project");
    terminal.shows("Done 6.");
    assert!(home.has("c"));
    leave(terminal);
    let approved: Vec<String> = audit(&home.database())
        .into_iter()
        .map(|entry| entry.approved_by)
        .collect();
    let expect = ["user", "user", "remembered", "user", "auto", "auto", "user"];
    assert_eq!(approved, expect);
}

/// Proves PERM-7: permanent approvals are in a file of mode 0600, and apply to later runs in their project
/// until they are revoked.
#[test]
fn permanent_approval_lasts_until_it_is_revoked() {
    let home = Home::scripted(&commands(&["touch a", "touch a"]));
    std::fs::create_dir(home.path(".git")).unwrap();
    let mut terminal = Terminal::start(&home, &[]);
    asked(&mut terminal, "one");
    terminal.type_keys("3");
    terminal.shows("[p] in this project");
    terminal.type_keys("p");
    terminal.shows("Done 0.");
    leave(terminal);
    let mode = std::fs::metadata(policies(&home)).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let rule = kept(&home)["rules"][0].clone();
    #[allow(
        clippy::disallowed_methods,
        reason = "the path as the program finds it"
    )]
    let project = home.project().canonicalize().unwrap();
    assert_eq!(rule["tool"], "bash");
    assert_eq!(rule["pattern"], "touch a");
    assert_eq!(rule["scope"]["project"], project.to_str().unwrap());

    std::fs::remove_file(home.path("a")).unwrap();
    let call = |command: &str, code| {
        let params = serde_json::json!({ "command": command }).to_string();
        home.zeph(["tools", "call", "bash", &params, "--json"])
            .code(code)
    };
    call("touch a", 0);
    assert!(home.has("a"));
    let last = audit(&home.database()).pop().unwrap();
    assert_eq!(last.approved_by, "remembered");
    let matched = last.policy_match.unwrap();
    assert!(matched.contains("touch a"), "{matched}");
    for other in [
        "touch a; touch b",
        "touch b",
        "touch a > b",
        "env touch a",
        "A=1 touch a",
        "bash -c 'touch a'",
    ] {
        call(other, 3);
    }
    assert!(!home.has("b"));
    let call_in = |place: &str, code| {
        std::fs::create_dir_all(home.root().join(place)).unwrap();
        home.zeph(["tools", "call", "bash", r#"{"command": "touch a"}"#])
            .cwd(home.root().join(place))
            .code(code)
    };
    call_in("project/below", 0);
    call_in("elsewhere", 3);
    let plan = [
        "tools",
        "call",
        "bash",
        r#"{"command": "touch a"}"#,
        "--mode",
        "plan",
    ];
    home.zeph(plan).code(3);
    home.more_config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n");
    call("touch a", 3);
    home.config(
        &std::fs::read_to_string(home.config_file())
            .unwrap()
            .replace("\"deny\"", "\"ask\""),
    );
    call("touch a", 0);

    let mut terminal = Terminal::start(&home, &[]);
    command(&mut terminal, "/permissions", "1 bash `touch a`  in ");
    terminal.shows("touch *");
    command(
        &mut terminal,
        "/permissions rm 2",
        "no approval has the number 2",
    );
    command(
        &mut terminal,
        "/permissions rm 1",
        "Revoked: bash `touch a`",
    );
    asked(&mut terminal, "again");
    terminal.type_keys("n");
    terminal.shows("Done 0.");
    leave(terminal);
    call("touch a", 3);
    assert_eq!(kept(&home)["rules"], serde_json::json!([]));
}

/// Proves PERM-7, PERM-7a: the rule can be edited; a rule that covers less than the call is refused, and the
/// last shown rule is stored.
#[test]
fn rule_can_be_edited_before_it_is_stored() {
    let home = Home::scripted(&commands(&["touch a b > c"]));
    let mut terminal = Terminal::start(&home, &[]);
    asked(&mut terminal, "one");
    terminal.shows("writes ");
    terminal.type_keys("3");
    terminal.shows("[e] edit");
    terminal.type_keys("e");
    terminal.shows("  bash: touch a b");
    terminal.type_keys("\x15touch a\r");
    terminal.shows("invalid: the rule would not match `touch a b`");
    terminal.type_keys(" *\r");
    terminal.shows("  write: /");
    terminal.type_keys("\x1b");
    terminal.until("the edited rule", |text| {
        text.contains("    bash `touch a *`\n    write `/") && text.contains("/c`\n")
    });
    terminal.type_keys("g");
    terminal.shows("Done 0.");
    leave(terminal);
    let rules = kept(&home)["rules"].clone();
    assert_eq!(rules.as_array().unwrap().len(), 2);
    assert_eq!(rules[0]["pattern"], "touch a *");
    assert_eq!(rules[0]["scope"], "global");
    assert_eq!(rules[1]["tool"], "write");
    let call = |command: &str, code| {
        let params = serde_json::json!({ "command": command }).to_string();
        home.zeph(["tools", "call", "bash", &params]).code(code)
    };
    call("touch a x > c", 0);
    call("touch a x > d", 3);
    call("touch x", 3);
}

/// Proves PERM-7: wrappers and interpreters are never stored, and an approval for the session covers only the
/// exact call.
#[test]
fn wrappers_and_interpreters_are_never_remembered() {
    let home = Home::scripted(&commands(&[
        "bash -c 'touch a'",
        "bash -c 'touch a'",
        "bash -c 'touch b'",
    ]));
    let mut terminal = Terminal::start(&home, &[]);
    asked(&mut terminal, "one");
    terminal.shows("[2] this session: only this call");
    terminal.shows("[3] always is not available: `bash` runs arbitrary commands");
    terminal.shows("asked, an interpreter");
    terminal.shows("[1] once  [2] this session ›[4] no");
    terminal.type_keys("2");
    terminal.shows("Done 0.");
    terminal.prompts("");
    std::fs::remove_file(home.path("a")).unwrap();
    terminal.type_keys("two\r");
    terminal.shows("Done 1.");
    assert!(home.has("a"));
    terminal.prompts("");
    terminal.type_keys("three\r");
    terminal.shows("  $ bash -c 'touch b'");
    terminal.shows("[1] once");
    terminal.type_keys("4");
    terminal.shows("Done 2.");
    assert!(!home.has("b"));
    assert!(!policies(&home).exists());
    leave(terminal);
}

/// Proves PERM-7, PERM-7a: a change is shown as a diff of the current file; if the file changes before the
/// decision, nothing is written.
#[test]
fn stale_diff_is_not_written() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "write", input = { path = "notes", content = "one\nnew\n" } }]
        [[steps]]
        expect = { tool_result_contains = "changed after the user saw the preview" }
        text = "Stale."
        [[steps]]
        calls = [{ tool = "edit", input = { path = "notes", old_string = "mine", new_string = "yours" } }]
        [[steps]]
        text = "Edited."
        "##,
    );
    home.more_config("[tools.file]\nread_before_write = false\n");
    home.write("notes", "one\nold\n");
    let mut terminal = Terminal::start(&home, &[]);
    asked(&mut terminal, "one");
    terminal.shows("  │ -old\n  │ +new\n");
    home.write("notes", "one\nmine\n");
    terminal.type_keys("1");
    terminal.shows("Stale.");
    assert_eq!(home.read("notes"), "one\nmine\n");
    asked(&mut terminal, "two");
    terminal.shows("  │ -mine\n  │ +yours\n");
    terminal.type_keys("1");
    terminal.shows("Edited.");
    assert_eq!(home.read("notes"), "one\nyours\n");
    leave(terminal);
}

/// Proves PERM-7, PERM-7a: an invalid file stops the start with its location, and stays unchanged.
#[test]
fn damaged_policy_file_stops_the_start() {
    let home = Home::new();
    let file = policies(&home);
    let check = |text: &str, mode: u32, words: &[&str]| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        home.zeph(["tools", "call", "bash", r#"{"command": "true"}"#, "--yes"])
            .code(2)
            .says(words);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    };
    check(
        "{\"version\": 1,\n\"rules\": [}",
        0o600,
        &["policies.json:2:"],
    );
    check(
        "{\"version\": 9, \"rules\": []}",
        0o600,
        &["policies.json", "version is 9"],
    );
    check(
        "{\"version\": 1, \"rules\": []}",
        0o666,
        &["policies.json", "chmod 600"],
    );
    let rule = r#"{"version": 1, "rules": [{"tool": "write", "pattern": "[", "scope": "global",
        "added": "2026-01-02T03:04:05Z"}]}"#;
    check(rule, 0o600, &["policies.json", "rules[0]", "unclosed"]);
}

/// Proves PERM-7: the model cannot write the file.
#[test]
fn file_tools_cannot_write_the_policy_file() {
    let home = Home::new();
    let folder = home.home().join(".config");
    home.config(&format!(
        "[tools.file]\nallowed_paths = [{:?}]\n",
        folder.display().to_string()
    ));
    for there in [false, true] {
        if there {
            std::fs::write(policies(&home), "{\"version\": 1, \"rules\": []}").unwrap();
        }
        let path = policies(&home).display().to_string();
        let call = |tool: &str, params: Value| {
            home.zeph(["tools", "call", tool, &params.to_string(), "--yes"])
                .code(3);
        };
        call("write", serde_json::json!({"path": path, "content": "{}"}));
        let zeph = folder.join("zeph").display().to_string();
        call("delete_path", serde_json::json!({"path": zeph}));
    }
    assert!(policies(&home).exists());
}
