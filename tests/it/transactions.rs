//! Transactions: failed commands of the model are rolled back at each entry point.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, is_running, unique_seconds, wait_for};
use crate::tools_call::call;

const ON: &str = "[tools.shell]\ntransactional = true\nauto_rollback = true\n";

/// A home whose model runs `command` and then expects these texts in the result, with `settings` of
/// `[tools.shell]`.
fn home(settings: &str, command: &str, reported: &[&str]) -> Home {
    let input = Value::from(command);
    let reported: Vec<String> = reported.iter().map(|text| (*text).to_owned()).collect();
    let home = Home::scripted(&format!(
        "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {input} }} }}]\n\
         [[steps]]\nexpect = {{ tool_result_contains = {reported:?} }}\ntext = \"I saw it.\"\n"
    ));
    home.more_config(settings);
    home.write("src/deep/kept.rs", "fn kept() {}\n");
    home.write("src/.hidden", "hidden\n");
    home.write("notes", "old\n");
    fs::create_dir(home.path("src/empty")).unwrap();
    fs::set_permissions(home.path("notes"), fs::Permissions::from_mode(0o640)).unwrap();
    home
}

/// The events of a conversation that must succeed, and the last audited result of `bash`.
#[track_caller]
fn converse(home: &Home) -> (Vec<Value>, String) {
    let output = home
        .zeph(["-p", "go", "--yes", "--output-format", "stream-json"])
        .code(0);
    assert_has(&output.stdout, &["I saw it."]);
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 1, "{entries:?}");
    (output.json_lines(), entries[0].result.clone())
}

fn snapshots(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.data().join("zeph/snapshots"));
    let entries = entries.into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn is_untouched(home: &Home) {
    assert_eq!(home.read("src/deep/kept.rs"), "fn kept() {}\n");
    assert_eq!(home.read("src/.hidden"), "hidden\n");
    assert_eq!(home.read("notes"), "old\n");
    assert!(home.path("src/empty").is_dir());
    let mode = home.path("notes").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let entries = fs::read_dir(home.project()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["notes", "src"]);
}

/// Proves SH-31, SH-32, SH-33: the model, the audit trail and the stream report it.
#[test]
fn failed_command_is_rolled_back() {
    let home = home(
        ON,
        "rm -rf src && echo new > notes && chmod 600 notes && mkdir -p a/b && touch a/b/c && exit 1",
        &[
            "[exit code: 1]",
            "[rolled back: the files have their state from before the command; 6 restored, 3 removed]",
        ],
    );
    let (events, result) = converse(&home);
    is_untouched(&home);
    assert_eq!(result, "rollback");
    let rollback = events.iter().find(|event| event["type"] == "rollback");
    let rollback = rollback.expect("an event");
    assert_eq!(rollback["restored"], 6);
    assert_eq!(rollback["removed"], 3);
    let finished = events.iter().find(|event| event["type"] == "tool_finished");
    assert_eq!(rollback["id"], finished.unwrap()["id"]);
    assert!(snapshots(&home).is_empty());
}

/// Proves SH-33: the terminal reports the rollback too, and a classified failure keeps its class.
#[test]
fn classified_failure_is_rolled_back() {
    let home = home(
        ON,
        "echo new > notes; cat nowhere",
        &["permanent_failure", "No such file", "[rolled back: "],
    );
    let output = home.zeph(["-p", "go", "--yes"]).code(0);
    assert_has(
        &output.stderr,
        &["The command was rolled back: 1 restored, 0 removed."],
    );
    is_untouched(&home);
    let entry = audit(&home.database()).remove(0);
    assert_eq!(entry.result, "rollback");
    assert_eq!(entry.error_category.as_deref(), Some("permanent_failure"));
}

/// Proves SH-30, SH-33: success, other exit codes and disabled settings leave the changes in place.
#[test]
fn success_or_a_disabled_setting_leaves_the_changes() {
    let check = |settings: &str, command: &str, reported: &[&str], expect: &str| {
        let home = home(settings, command, reported);
        let (events, result) = converse(&home);
        assert_eq!(home.read("notes"), "new\n", "{settings} {command}");
        assert_eq!(result, expect);
        let rolled_back = events.iter().any(|event| event["type"] == "rollback");
        assert_eq!(rolled_back, expect == "rollback");
        assert!(snapshots(&home).is_empty(), "gone with the session");
    };
    let fails = "echo new > notes; exit 1";
    let kept = "[nothing was rolled back; copies of the files from before the command are in ";
    check(ON, "echo new > notes", &["(no output)"], "success");
    check(
        ON,
        "echo new > notes; exit 3",
        &["[exit code: 3]", kept],
        "success",
    );
    check("", fails, &["[exit code: 1]"], "success");
    let switched_off = "[tools.shell]\nauto_rollback = true\n";
    check(switched_off, fails, &["[exit code: 1]"], "success");
    let saved_only = "[tools.shell]\ntransactional = true\n";
    check(saved_only, fails, &["[exit code: 1]", kept], "success");
    let out_of_scope = format!("{ON}transaction_scope = ['src/**']\n");
    check(
        &out_of_scope,
        fails,
        &["[rolled back: ", "nothing had changed"],
        "rollback",
    );
}

/// A command that was stopped has an exit code like any other.
#[test]
fn exit_code_alone_causes_a_rollback() {
    let settings = format!("{ON}auto_rollback_exit_codes = [143]\ntimeout = 1\n");
    let command = "echo new > notes; sleep 60";
    let home = home(&settings, command, &["timeout", "[rolled back: "]);
    let (_, result) = converse(&home);
    is_untouched(&home);
    assert_eq!(result, "rollback");
}

/// During the session, files can be restored from the last snapshot.
#[test]
fn last_snapshot_is_accessible() {
    let settings = "[tools.shell]\ntransactional = true\n";
    let home = home(settings, "true", &[]);
    home.scenario(
        r#"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "rm -r src; exit 1" } }]
        [[steps]]
        capture = { place = 'before the command are in (\S+) until' }
        calls = [{ tool = "bash", input = { command = "cp -a {{place}}/src . && ls {{place}}" } }]
        [[steps]]
        expect = { tool_result_contains = "notes" }
        text = "Done."
        "#,
    );
    home.more_config(settings);
    home.zeph(["-p", "go", "--yes"]).code(0);
    is_untouched(&home);
    assert!(snapshots(&home).is_empty());
}

/// Proves SH-34: calls that the user types or scripts are not rolled back.
#[test]
fn user_calls_are_not_transactions() {
    let home = home(
        &format!("{ON}snapshot_required = true\nmax_snapshot_bytes = 1\n"),
        "true",
        &[],
    );
    let form = call(&home, "bash", &json!({ "command": "rm notes; exit 1" }));
    assert_eq!(form["success"], true, "{form:#}");
    assert_eq!(form["data"], "[exit code: 1]");
    assert!(!home.has("notes"));
    let line = json!({ "tool": "bash", "params": { "command": "rm -r src; exit 2" } });
    let output = home
        .zeph(["tools", "run", "--yes"])
        .stdin(line.to_string())
        .code(0);
    assert_eq!(output.json_lines()[0]["data"], "[exit code: 2]");
    assert!(!home.has("src"));
    let results: Vec<_> = audit(&home.database())
        .into_iter()
        .map(|entry| entry.result)
        .collect();
    assert_eq!(results, ["success", "success"]);
}

/// Proves SH-30, SH-32: over the size limit, the command runs with a warning, or not at all.
#[test]
fn command_without_a_snapshot_runs_only_if_allowed() {
    let cap = format!("{ON}max_snapshot_bytes = 10\n");
    let command = "echo new > notes; exit 1";
    let why = "more than 10 bytes (`[tools.shell] max_snapshot_bytes`)";
    let warned = home(&cap, command, &["[no snapshot was made", why]);
    let (events, result) = converse(&warned);
    assert_eq!(warned.read("notes"), "new\n");
    assert_eq!(result, "success");
    let notices = events.iter().filter(|event| event["type"] == "notice");
    let notices: Vec<_> = notices.map(|event| event["text"].to_string()).collect();
    assert_has(
        &notices.join("\n"),
        &["Could not snapshot files before this command", why],
    );

    let required = format!("{cap}snapshot_required = true\n");
    let reported = [
        "category: permanent_failure",
        "the snapshot before the command failed",
        why,
    ];
    let refused = home(&required, command, &reported);
    let (_, result) = converse(&refused);
    is_untouched(&refused);
    assert_eq!(result, "error");

    // A command that writes nothing needs no snapshot.
    let reads = home(&required, "cat notes; exit 1", &["old", "[exit code: 1]"]);
    converse(&reads);
}

/// Proves SH-32: a background job is never rolled back; it runs with a warning, or not at all.
#[test]
fn background_job_is_not_a_transaction() {
    let why = "a background job cannot be rolled back";
    let check = |settings: &str, reported: &[&str], runs: bool| {
        let home = home(settings, "true", &[]);
        home.scenario(&format!(
            "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = \"touch made; exit 1\", background = true }} }}]\n\
             [[steps]]\nexpect = {{ tool_result_contains = {reported:?} }}\n\
             calls = [{{ tool = \"bash\", input = {{ command = \"while ! [ -f made ] && [ {} = true ]; do sleep 0.01; done\" }} }}]\n\
             [[steps]]\ntext = \"I saw it.\"\n",
            runs
        ));
        home.more_config(settings);
        home.zeph(["-p", "go", "--yes"]).code(0);
        assert_eq!(home.has("made"), runs);
    };
    check(ON, &["[no snapshot was made", why], true);
    let required = format!("{ON}snapshot_required = true\n");
    check(
        &required,
        &["the snapshot before the command failed", why],
        false,
    );
}

/// Proves SH-32: a snapshot that cannot be stored is treated like one that is too large.
#[test]
fn failed_snapshot_is_reported() {
    let home = home(
        &format!("{ON}snapshot_required = true\n"),
        "rm notes",
        &["the snapshot before the command failed", "snapshots"],
    );
    fs::create_dir_all(home.data().join("zeph")).unwrap();
    fs::write(home.data().join("zeph/snapshots"), "in the way").unwrap();
    converse(&home);
    is_untouched(&home);
}

/// Proves SH-33: paths that could not be restored are named, and the snapshot is retained.
#[test]
fn partial_rollback_is_an_error_and_retains_the_snapshot() {
    let home = home(
        ON,
        "d=d; for i in {1..150}; do d=$d/d; done; mkdir -p $d; rm -r src notes; exit 1",
        &[
            "category: permanent_failure",
            "the rollback is incomplete (6 restored, 0 removed); not restored: ",
            "project/d (it is more than 128 directories deep)",
            "copies of the files from before the command are in ",
            "[exit code: 1]",
        ],
    );
    let (events, result) = converse(&home);
    assert_eq!(result, "error");
    assert!(!events.iter().any(|event| event["type"] == "rollback"));
    let [kept] = &snapshots(&home)[..] else {
        panic!("one snapshot is kept: {:?}", snapshots(&home));
    };
    let files = kept.join("files");
    assert_eq!(fs::read_to_string(files.join("notes")).unwrap(), "old\n");
    assert!(files.join("src/empty").is_dir());
    let finished = events.iter().find(|event| event["type"] == "tool_finished");
    let display = finished.unwrap()["display"].as_str().unwrap();
    assert_has(display, &[&files.display().to_string()]);
    // Everything else is restored, and no later start removes the retained snapshot.
    fs::remove_dir_all(home.path("d")).unwrap();
    is_untouched(&home);
    home.zeph(["-p", "go", "--yes"]).code(0);
    assert!(files.exists());
}

/// Proves SH-32: the next snapshot removes the one of a killed agent.
#[test]
fn snapshot_of_a_killed_agent_is_removed_later() {
    let seconds = unique_seconds();
    let command = json!({ "command": format!("rm notes; touch begun; sleep {seconds}") });
    let server = OpenAi::replies([
        Reply::calls("s", &[("bash", command)]),
        Reply::calls("t", &[("bash", json!({ "command": "touch again" }))]),
        Reply::text("Done."),
    ]);
    let home = Home::openai(&server);
    home.more_config(ON);
    home.write("notes", "old\n");
    let running = home.zeph(["--yes", "-p", "go"]).start();
    wait_for("the command", || {
        (home.has("begun") && is_running(&seconds)).then_some(())
    });
    running.kill();
    home.wait_until_alone();
    let left = snapshots(&home);
    assert_eq!(left.len(), 1);
    assert_eq!(
        fs::read_to_string(left[0].join("files/notes")).unwrap(),
        "old\n"
    );
    home.zeph(["--yes", "-p", "go"]).code(0);
    assert!(home.has("again"));
    assert!(snapshots(&home).is_empty());
}

/// Proves SH-30: a project tightens and never loosens; an invalid glob is an error at the start.
#[test]
fn invalid_transaction_configuration_is_reported() {
    let home = Home::new();
    let refused = |project: &str, user: &str, words: &[&str]| {
        home.write(".zeph/config.toml", project);
        home.config(user);
        home.zeph(["tools", "list"]).code(2).says(words);
    };
    refused(
        "[tools.shell]\ntransactional = false\n",
        ON,
        &["transactional", "looser"],
    );
    refused(
        "[tools.shell]\nauto_rollback = false\n",
        ON,
        &["auto_rollback", "looser"],
    );
    refused(
        "[tools.shell]\nmax_snapshot_bytes = 1\n",
        ON,
        &["max_snapshot_bytes", "may not set it"],
    );
    refused(
        "",
        "[tools.shell]\ntransaction_scope = ['src/**', '/etc/**']\n",
        &[
            "transaction_scope",
            "/etc/**",
            "absolute",
            "relative to the working directory",
        ],
    );
    refused(
        "",
        "[tools.shell]\nauto_rollback_exit_codes = [0]\n",
        &["auto_rollback_exit_codes", "an integer from 1 to 255"],
    );
    home.write(
        ".zeph/config.toml",
        "[tools.shell]\ntransactional = true\ntransaction_scope = ['x']\nauto_rollback_exit_codes = [7]\n",
    );
    home.config("");
    let shown = home.zeph(["config", "show"]).code(0);
    shown.prints(&[
        "transactional = true",
        "transaction_scope = [\"**\", \"x\"]",
        "auto_rollback_exit_codes = [1, 2, 7]",
    ]);
}
