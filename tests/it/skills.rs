//! Skills: their exposure, their permissions, and the trust that they need.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has, audit};

const HEAD: &str = "name: notes\ndescription: Write notes.\n";
/// A tool that creates a file.
const TOOL: &str = "tools:\n  - name: make_file\n    description: Makes a file.\n    command: touch -- {{file}}\n    parameters:\n      file: The file.\n";
const ALLOW: &str = "[[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n";

fn text(head: &str, body: &str) -> String {
    format!("---\n{head}---\n{body}\n")
}

/// A project with this skill.
fn project(head: &str, body: &str) -> Home {
    let home = Home::new();
    home.config("");
    home.write(
        ".zeph/skills/notes/SKILL.md",
        &text(&format!("{HEAD}{head}"), body),
    );
    home
}

/// A skill of the user.
fn own(home: &Home, name: &str, head: &str, body: &str) {
    let folder = home.home().join(".config/zeph/skills").join(name);
    fs::create_dir_all(&folder).unwrap();
    let head = format!("name: {name}\ndescription: About {name}.\n{head}");
    fs::write(folder.join("SKILL.md"), text(&head, body)).unwrap();
}

fn call(home: &Home, tool: &str, params: &Value) -> crate::rig::Output {
    home.zeph(["tools", "call", tool, &params.to_string()])
        .run()
}

/// Runs calls in one session and returns the category and data of each.
fn lines(home: &Home, calls: &[(&str, Value)]) -> Vec<(Option<String>, String)> {
    let script: Vec<String> = calls
        .iter()
        .map(|(tool, params)| json!({ "tool": tool, "params": params }).to_string())
        .collect();
    let output = home.zeph(["tools", "run"]).stdin(script.join("\n")).code(0);
    let forms = output.json_lines();
    let form = |form: &Value| {
        let category = form["error_category"].as_str().map(str::to_owned);
        (category, form["data"].as_str().unwrap().to_owned())
    };
    forms.iter().map(form).collect()
}

/// Proves NAT-2, EXE-14: without skills, nothing about them is exposed or printed.
#[test]
fn no_skill_tools_are_exposed_without_skills() {
    let home = Home::new();
    home.config("");
    let listed = home.zeph(["tools", "list"]).code(0).stdout;
    assert!(!listed.contains("_skill"), "{listed}");
    let none = call(&home, "load_skill", &json!({ "name": "x" }));
    assert_eq!(none.code, Some(1));
    home.zeph(["skills", "list"]).code(0).prints(&["no skills"]);
}

/// Proves NAT-2: both folders, and `load_skill` and `invoke_skill` without a model.
#[test]
fn skills_of_project_and_user_are_loaded() {
    let home = project("", "Write them down.");
    own(&home, "mine", "", "Do $ARGUMENTS.");
    let loaded = call(&home, "load_skill", &json!({ "name": "notes" }));
    assert_eq!(
        (loaded.code, loaded.stdout.as_str()),
        (Some(0), "Write them down.\n")
    );
    let ran = call(
        &home,
        "invoke_skill",
        &json!({ "name": "mine", "args": "this" }),
    );
    assert_eq!(ran.code, Some(0));
    assert_has(&ran.stdout, &["The skill mine runs", "Do this."]);
    let list = home.zeph(["skills", "list"]).code(0).stdout;
    assert_has(
        &list,
        &[
            "mine",
            "trusted   user",
            "notes",
            "untrusted project Write notes.",
        ],
    );
    let missing = call(&home, "load_skill", &json!({ "name": "note" }));
    assert_eq!(missing.code, Some(1));
    assert_has(&missing.stdout, &["did you mean notes?"]);
}

/// Proves NAT-2, PERM-30: while a skill runs, only its allowed tools run, for any caller.
#[test]
fn allowed_tools_apply_while_a_skill_runs() {
    let home = Home::new();
    home.config(ALLOW);
    home.write("a.txt", "text");
    own(&home, "reads", "allowed-tools: [read_file]\n", "Read.");
    let touch = ("bash", json!({ "command": "touch ran" }));
    let came = lines(
        &home,
        &[
            ("invoke_skill", json!({ "name": "reads" })),
            ("read", json!({ "path": "a.txt" })),
            touch.clone(),
            ("write", json!({ "path": "ran", "content": "x" })),
        ],
    );
    assert_eq!(
        (came[0].0.as_deref(), came[1].0.as_deref()),
        (None, None),
        "{came:?}"
    );
    for (category, data) in &came[2..] {
        assert_eq!(category.as_deref(), Some("policy_blocked"));
        assert_has(
            data,
            &["the skill reads runs until the end of this turn and allows only read_file"],
        );
    }
    assert!(!home.has("ran"));
    let entries = audit(&home.database());
    let denied = &entries[2];
    assert_eq!(
        denied.policy_match.as_deref(),
        Some("allowed-tools of the skill reads")
    );
    assert_eq!(denied.result, "blocked");
    // Another session without a skill.
    assert_eq!(lines(&home, &[touch])[0].0, None);
    assert!(home.has("ran"));
}

/// Proves NAT-2: the restriction lasts until the end of the turn, in a conversation too.
#[test]
fn skill_ends_with_the_turn() {
    let touch = |file: &str| {
        Reply::calls(
            file,
            &[("bash", json!({ "command": format!("touch {file}") }))],
        )
    };
    let server = OpenAi::replies([
        Reply::calls("i", &[("invoke_skill", json!({ "name": "reads" }))]),
        touch("one"),
        Reply::text("Refused."),
        touch("two"),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.more_config(ALLOW);
    own(&home, "reads", "allowed-tools: [read]\n", "Read.");
    home.zeph(["-p", "go"]).code(0);
    assert!(!home.has("one"));
    home.zeph(["-p", "go on", "--continue"]).code(0);
    assert!(home.has("two"));
    let first = server.requests()[0].clone();
    let system = first.messages()[0]["content"].as_str().unwrap().to_owned();
    assert_has(&system, &["\nSkills. ", "- reads: About reads.\n"]);
    let last = server.last();
    assert_eq!(
        last.messages()[0]["content"].as_str(),
        Some(system.as_str()),
        "the prompt is stable"
    );
}

/// Proves NAT-2, PERM-30: a project's skill is untrusted until the user trusts it. After it was loaded, only
/// safe reads run without approval, in later turns too.
#[test]
fn untrusted_skill_requires_approval() {
    let touch = || Reply::calls("t", &[("bash", json!({ "command": "touch ran" }))]);
    let talk = |home: &Home, server: &OpenAi| {
        home.zeph(["-p", "go"]).code(0);
        let sent = server.last().json().to_string();
        (home.has("ran"), sent)
    };
    let replies = || {
        [
            Reply::calls("l", &[("load_skill", json!({ "name": "notes" }))]),
            Reply::calls("r", &[("read", json!({ "path": "a.txt" }))]),
            touch(),
            Reply::text("Done."),
            touch(),
            Reply::text("Done."),
            Reply::text("The skill asks for a file."),
            touch(),
            Reply::text("Done."),
            touch(),
            Reply::text("Done."),
        ]
    };
    let make = |server: &OpenAi| {
        let home = Home::openai(server);
        home.more_config(&format!("{ALLOW}[agent.compaction]\nkeep_recent = 1\n"));
        home.write("a.txt", "mark-in-a");
        home.write(".zeph/skills/notes/SKILL.md", &text(HEAD, "Touch ran."));
        home
    };
    let server = OpenAi::replies(replies());
    let home = make(&server);
    let (ran, sent) = talk(&home, &server);
    assert!(!ran, "{sent}");
    assert_has(
        &sent,
        &[
            "- notes (untrusted): Write notes.",
            "mark-in-a",
            "confirmation_required",
        ],
    );
    let entries = audit(&home.database());
    assert_eq!(
        entries
            .iter()
            .map(|entry| entry.trust.as_str())
            .collect::<Vec<_>>(),
        ["trusted", "untrusted", "untrusted"]
    );
    // A later process still has it in its window.
    let resume = || {
        home.zeph(["-p", "go on", "--continue"]).code(0);
        let sent = server.last().json().to_string();
        assert!(!home.has("ran"), "{sent}");
        sent
    };
    assert_has(&resume(), &["call_l_0"]);
    // After compaction, the summary has its text.
    home.zeph(["--continue", "-p", "/compact"])
        .code(0)
        .prints(&["compacted"]);
    let sent = resume();
    assert!(!sent.contains("call_l_0"), "{sent}");
    // A removed skill is not trusted either.
    fs::remove_dir_all(home.path(".zeph")).unwrap();
    resume();

    let server = OpenAi::replies(replies());
    let home = make(&server);
    home.zeph(["skills", "trust", "notes", "--yes"])
        .code(0)
        .prints(&["Touch ran.", "is trusted until"]);
    let (ran, sent) = talk(&home, &server);
    assert!(ran, "{sent}");
    assert_has(&sent, &["- notes: Write notes."]);
}

/// Proves NAT-2: a declared tool is a command: the rules, blocklist and approvals of `bash` apply, and each
/// argument is one shell word.
#[test]
fn declared_tool_is_judged_as_a_command() {
    let home = project(TOOL, "Make files.");
    let make = |file: &str| call(&home, "make_file", &json!({ "file": file }));
    let asked = make("a");
    assert_eq!(asked.code, Some(3));
    assert_has(
        &asked.stdout,
        &[
            "confirmation_required",
            "bash needs the user's confirmation",
        ],
    );
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    // For a trusted skill, the rules decide.
    assert_eq!(make("a").code, Some(3));
    home.config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"allow\"\n");
    for name in [
        "a",
        "b c",
        "$(touch pwned)",
        "; touch pwned",
        "' ; touch pwned #",
        "-n",
        "x\ny",
    ] {
        let made = make(name);
        assert_eq!(made.code, Some(0), "{name}: {}", made.stdout);
        assert!(home.has(name), "{name}");
    }
    assert!(!home.has("pwned"));
    home.config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n");
    let denied = make("never");
    assert_eq!(denied.code, Some(3));
    assert_has(&denied.stdout, &["policy_blocked"]);
    assert!(!home.has("never"));
    let wrong = call(&home, "make_file", &json!({ "fil": "x" }));
    assert_eq!(wrong.code, Some(1));
    assert_has(&wrong.stdout, &["invalid_parameters"]);
    let entries = audit(&home.database());
    assert!(entries.iter().all(|entry| entry.tool == "make_file"));
    assert_eq!(entries[3].call, json!({ "file": "b c" }));
    // Two refused calls, seven that ran, one denied, and one with invalid arguments.
    let codes: Vec<_> = entries.iter().map(|entry| entry.exit_code).collect();
    let mut expect = vec![Some(126); 2];
    expect.extend([Some(0); 7]);
    expect.extend([Some(126), None]);
    assert_eq!(codes, expect);
    home.zeph(["policy", "explain", "make_file", "{\"file\": \"x\"}"])
        .code(0)
        .prints(&["touch", "deny"]);
}

/// Proves DEP-1, DEP-3a, DEP-5: a declared tool may have requirements, and be one.
#[test]
fn dependency_rules_apply_to_declared_tools() {
    let home = project(TOOL, "Make files.");
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    home.write("a.txt", "text");
    let make = ("make_file", json!({ "file": "made" }));
    let read = ("read", json!({ "path": "a.txt" }));
    let time = ("get_current_time", json!({}));
    for (tool, requires, calls) in [
        (
            "get_current_time",
            "make_file",
            [time.clone(), make.clone(), time],
        ),
        ("make_file", "read", [make.clone(), read, make]),
    ] {
        home.config(&format!(
            "[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"allow\"\n\
             [tools.dependencies]\nenabled = true\n\
             [tools.dependencies.rules.{tool}]\nrequires = [{requires:?}]\n"
        ));
        let came = lines(&home, &calls);
        let categories: Vec<_> = came
            .iter()
            .map(|(category, _)| category.as_deref())
            .collect();
        assert_eq!(categories, [Some("policy_blocked"), None, None], "{came:?}");
        let unmet = format!("{tool} needs a successful call of {requires} first");
        assert_has(&came[0].1, &[&unmet]);
    }
    assert!(home.has("made"));
}

/// Proves NAT-2, SH-10: the blocklist applies to declared tools.
#[test]
fn blocklist_applies_to_declared_tools() {
    let home = project(
        "tools: [{name: grow, description: D., command: sudo touch ran}]\n",
        "x",
    );
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    home.config(ALLOW);
    let blocked = home.zeph(["tools", "call", "grow", "--yes"]).run();
    assert_eq!(blocked.code, Some(3));
    assert_has(&blocked.stdout, &["policy_blocked", "sudo"]);
}

/// Proves NAT-2, SH-2: the variables of a trusted skill are set for its own calls only; an untrusted skill
/// sets none.
#[test]
fn skill_variables_are_set_for_its_calls() {
    let head = "env: {NOTE_STYLE: short}\ntools: [{name: style, description: D., command: \"echo style=$NOTE_STYLE\"}]\n";
    let home = project(head, "x");
    home.config(ALLOW);
    let echo = ("bash", json!({ "command": "echo style=$NOTE_STYLE" }));
    let style = ("style", json!({}));
    let invoke = ("invoke_skill", json!({ "name": "notes" }));
    let untrusted = home
        .zeph(["tools", "call", "style", "--yes"])
        .code(0)
        .stdout;
    assert_eq!(untrusted, "style=\n");
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    let came = lines(&home, &[echo.clone(), style, echo.clone(), invoke, echo]);
    let data: Vec<&str> = came.iter().map(|(_, data)| data.trim()).collect();
    assert_eq!(
        [data[0], data[1], data[2], data[4]],
        ["style=", "style=short", "style=", "style=short"]
    );
}

/// Proves NAT-2: the user sees the whole file of a skill before the decision.
#[test]
fn shown_skill_includes_its_front_matter() {
    let home = project(
        "env: {NOTE_STYLE: hidden-value}\ntools:\n  - name: make_file\n    description: Makes a file.\n    command: touch -- {{file}}\n    parameters:\n      file: {type: string, default: hidden-default, description: hidden-words}\n",
        "Write them down.",
    );
    home.zeph(["skills", "show", "notes"]).code(0).prints(&[
        "hidden-value",
        "hidden-default",
        "hidden-words",
        "Write them down.",
    ]);
}

/// Proves NAT-2: trust depends on the contents of the folder, is stored in a file that only the user can
/// read, and can be revoked.
#[test]
fn trust_ends_with_a_change() {
    let home = project("", "One.");
    home.write(".zeph/skills/notes/run.sh", "one");
    let standing = || {
        let list = home.zeph(["skills", "list", "--json"]).code(0).json();
        let skill = list["skills"][0].clone();
        (
            skill["trust"].as_str().unwrap().to_owned(),
            skill["changed"].as_bool().unwrap(),
        )
    };
    assert_eq!(standing(), ("untrusted".to_owned(), false));
    let unasked = home.zeph(["skills", "trust", "notes"]).code(3);
    assert_has(
        &unasked.stderr,
        &["pass --yes to approve", "the skill notes is not trusted"],
    );
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    assert_eq!(standing(), ("trusted".to_owned(), false));
    let pins: Vec<_> = fs::read_dir(home.data().join("zeph/skill-trust"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(pins.len(), 1);
    assert_eq!(
        pins[0].metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    home.write(".zeph/skills/notes/run.sh", "two");
    assert_eq!(standing(), ("untrusted".to_owned(), true));
    home.zeph(["skills", "list"])
        .code(0)
        .prints(&["changed   project"]);
    home.write(".zeph/skills/notes/run.sh", "one");
    assert_eq!(standing(), ("trusted".to_owned(), false));
    fs::write(pins[0].path(), "{").unwrap();
    assert_eq!(standing(), ("untrusted".to_owned(), true));
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    home.zeph(["skills", "untrust", "notes"])
        .code(0)
        .prints(&["no longer trusted"]);
    assert_eq!(standing(), ("untrusted".to_owned(), false));
    // The same folder in another project is a different skill.
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    fs::create_dir_all(home.path("other")).unwrap();
    fs::rename(home.path(".zeph"), home.path("other/.zeph")).unwrap();
    let list = home.zeph(["-C", "other", "skills", "list"]).code(0).stdout;
    assert_has(&list, &["untrusted project"]);
}

/// Proves NAT-2: file tools cannot write the trust store.
#[test]
fn file_tools_cannot_write_the_pins() {
    let home = project("", "One.");
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
    let data = home.data();
    home.config(&format!(
        "[tools.file]\nallowed_paths = [\".\", {:?}]\n",
        data.display().to_string()
    ));
    let path = data.join("zeph/skill-trust/x.json");
    let params = json!({ "path": path, "content": "{}" }).to_string();
    let refused = home
        .zeph(["tools", "call", "write", &params, "--yes"])
        .run();
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    assert!(!path.exists());
}

/// Proves NAT-2: an invalid skill is refused and listed with the reason, without effect on other skills.
#[test]
fn hostile_skills_are_listed_with_the_reason() {
    let home = project("", "Fine.");
    let skill = |name: &str, head: &str| {
        let said = format!("name: {name}\ndescription: D.\n{head}");
        home.write(&format!(".zeph/skills/{name}/SKILL.md"), &text(&said, "x"));
    };
    skill(
        "shadow",
        "tools: [{name: bash, description: D., command: id}]\n",
    );
    skill(
        "alias",
        "tools: [{name: read_file, description: D., command: id}]\n",
    );
    skill(
        "foreign",
        "tools: [{name: mcp_x, description: D., command: id}]\n",
    );
    skill("bomb", "x: &a [1]\n");
    skill("link", "");
    symlink("/etc/passwd", home.path(".zeph/skills/link/passwd")).unwrap();
    home.write(
        ".zeph/skills/named/SKILL.md",
        &text("name: other\ndescription: D.\n", "x"),
    );
    home.write(".zeph/skills/huge/SKILL.md", &"x".repeat(100_000));
    fs::create_dir_all(home.path(".zeph/skills/\u{1b}[31m")).unwrap();
    let listed = home.zeph(["skills", "list"]).code(0).stdout;
    assert_eq!(listed.matches(" refused ").count(), 8, "{listed}");
    assert!(!listed.contains('\u{1b}'));
    let list = home.zeph(["skills", "list", "--json"]).code(0).json();
    assert_eq!(list["skills"].as_array().unwrap().len(), 1);
    assert_eq!(list["refused"].as_array().unwrap().len(), 8);
    let why = home.zeph(["skills", "show", "shadow"]).code(1);
    assert_has(&why.stderr, &["a tool with this name exists"]);
    let ran = call(&home, "load_skill", &json!({ "name": "notes" }));
    assert_eq!(ran.stdout, "Fine.\n");
    assert_eq!(
        call(&home, "load_skill", &json!({ "name": "bomb" })).code,
        Some(1)
    );
}

/// Proves CMD-1, NAT-2.
#[test]
fn skills_are_listed_in_a_conversation() {
    let home = Home::scripted("[[steps]]\ntext = \"Hello.\"\n");
    home.write(".zeph/skills/notes/SKILL.md", &text(HEAD, "x"));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("/skills\r");
    terminal.shows("untrusted project Write notes.");
    terminal.leaves();
}
