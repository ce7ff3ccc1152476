//! The audit trail: contents of an entry, sinks, and detection of changes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Output, Reply, Zeph, assert_has, audit, count, execute, openai_config, wait_for,
};

fn log(home: &Home) -> PathBuf {
    home.data().join("zeph/audit.jsonl")
}

/// The entries as JSON lines.
#[track_caller]
fn entries(home: &Home) -> Vec<Value> {
    home.zeph(["audit", "query", "--json", "--limit", "100000"])
        .code(0)
        .json_lines()
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[track_caller]
fn intact(home: &Home, entries: usize) {
    let number = format!("intact: {entries} entr");
    home.zeph(["audit", "verify"]).code(0).prints(&[&number]);
}

#[track_caller]
fn file_intact(home: &Home) -> Output {
    let path = log(home).display().to_string();
    home.zeph(["audit", "verify", "--file", &path])
        .code(0)
        .prints(&["intact: "])
}

fn bash(command: &str) -> String {
    json!({ "command": command }).to_string()
}

fn script(calls: usize, command: impl Fn(usize) -> Value) -> String {
    (0..calls).fold(String::new(), |text, n| {
        let line = json!({ "tool": "bash", "params": command(n) });
        text + &line.to_string() + "\n"
    })
}

/// Proves OUT-50: each outcome has an entry with every field; shell calls have an exit code and a truncation
/// flag, failures have a category.
#[test]
fn every_outcome_has_its_entry() {
    let home = Home::new();
    home.config(
        "[tools.audit]\njsonl = true\n[tools.shell]\ntransactional = true\nauto_rollback = true\n",
    );
    home.write("a.txt", "a\n");
    let call = |tool: &str, params: &str| home.zeph(["tools", "call", tool, params, "--yes"]);
    call("read", r#"{"path": "a.txt"}"#).code(0);
    call("read", r#"{"path": "none.txt"}"#).code(1);
    call("no_such_tool", "{}").code(1);
    call("bash", "no JSON").code(2);
    call("bash", &bash("exit 5")).code(0);
    call("bash", &bash("rm -rf /")).run();
    let asked = bash("touch asked");
    home.zeph(["tools", "call", "bash", &asked]).run();
    call("bash", r#"{"command": "sleep 60", "timeout_secs": 1}"#).code(1);
    call("bash", &bash("kill -9 $$")).run();
    call("bash", &bash("no_such_command_here")).code(1);
    call("bash", r#"{"command": "true", "background": true}"#).code(0);
    call("bash", &bash("seq 100000")).code(0);
    let running = call("bash", &bash("touch begun; sleep 60")).start();
    wait_for("the command", || home.has("begun").then_some(()));
    running.signal(Signal::INT);
    running.wait();
    let server = OpenAi::replies([
        Reply::calls(
            "t",
            &[("bash", json!({ "command": "echo b > a.txt; exit 2" }))],
        ),
        Reply::text("done"),
    ]);
    home.more_config(&openai_config(&server.url()));
    home.zeph(["--yes", "-p", "go"]).code(0);
    assert_eq!(home.read("a.txt"), "a\n", "it was undone");

    let expect = [
        ("read", "success", None),
        ("read", "error", None),
        ("no_such_tool", "error", None),
        ("bash", "error", Some(126)),
        ("bash", "success", Some(5)),
        ("bash", "blocked", Some(126)),
        ("bash", "blocked", Some(126)),
        ("bash", "timeout", Some(143)),
        ("bash", "success", Some(137)),
        ("bash", "error", Some(127)),
        ("bash", "success", Some(0)),
        ("bash", "success", Some(0)),
        ("bash", "cancelled", Some(143)),
        ("bash", "rollback", Some(2)),
    ];
    let found = entries(&home);
    let recorded: Vec<_> = found
        .iter()
        .map(|entry| {
            (
                entry["tool"].as_str().unwrap(),
                entry["result"].as_str().unwrap(),
                entry["exit_code"].as_i64(),
            )
        })
        .collect();
    assert_eq!(recorded, expect);
    for entry in &found {
        for name in [
            "v",
            "seq",
            "prev",
            "ts",
            "session",
            "call_id",
            "tool",
            "call",
            "result",
            "result_digest",
            "result_size",
            "trust",
            "approved_by",
            "phase",
            "duration_ms",
            "exit_code",
            "truncated",
            "error_category",
            "attempts",
            "cached",
            "adversarial_policy_decision",
            "claim_source",
            "hash",
        ] {
            assert!(entry.get(name).is_some(), "{name} is missing in {entry}");
        }
        for name in ["caller_id", "policy_match"] {
            assert!(entry.get(name).is_none(), "{name} in {entry}");
        }
        assert!(entry["adversarial_policy_decision"].is_null());
        assert_eq!(entry["result_digest"].as_str().unwrap().len(), 64);
        let failed = entry["result"] != "success";
        let category = entry["error_category"].is_string();
        assert!(
            category == failed || entry["result"] == "rollback",
            "{entry}"
        );
        assert_eq!(
            entry["truncated"].is_boolean(),
            entry["tool"] == "bash",
            "{entry}"
        );
    }
    let cut: Vec<_> = found
        .iter()
        .filter(|entry| entry["truncated"] == true)
        .collect();
    assert_eq!(cut.len(), 1, "{cut:?}");
    intact(&home, expect.len());
    file_intact(&home);
    let strip = |mut entry: Value| {
        for name in ["prev", "hash"] {
            entry.as_object_mut().unwrap().shift_remove(name);
        }
        entry
    };
    let logged: Vec<_> = lines_of(&log(&home)).into_iter().map(strip).collect();
    let stored: Vec<_> = found.into_iter().map(strip).collect();
    assert_eq!(logged, stored, "both sinks say the same");
}

/// Proves OUT-50, OUT-52, OUT-53: all entry points write one chain, without file contents; deleting a
/// conversation does not change it.
#[test]
fn every_entry_point_writes_one_chain() {
    let touch = json!({ "path": "new.txt", "content": "secret words\n" });
    let mut n = 0;
    let server = OpenAi::start(move |_, request| {
        let asks = request.messages().last().unwrap()["role"] == "user";
        n += 1;
        match asks {
            true => Reply::calls(
                &format!("c{n}"),
                &[(
                    "write",
                    json!({ "path": format!("f{n}"), "content": "secret words" }),
                )],
            ),
            false => Reply::text("done"),
        }
    });
    let home = Home::openai(&server);
    home.more_config("[tools.audit]\njsonl = true\n");
    for format in ["text", "json", "stream-json"] {
        home.zeph(["--yes", "-p", "go", "--output-format", format])
            .code(0);
    }
    home.zeph(["--yes"]).stdin("go").code(0);
    home.zeph(["run", "--yes", "go"]).code(0);
    let call = [
        "tools",
        "call",
        "write",
        &touch.to_string(),
        "--yes",
        "--session",
        "mine",
    ];
    home.zeph(call).code(0);
    home.zeph(["tools", "run", "--yes"])
        .stdin(script(2, |_| json!({ "command": "true" })))
        .code(0);
    home.zeph(["undo", "--session", "mine"]).code(0);
    assert!(!home.has("new.txt"));
    intact(&home, 9);
    file_intact(&home);
    let tools: Vec<_> = entries(&home)
        .iter()
        .map(|entry| entry["tool"].clone())
        .collect();
    assert_eq!(tools[5..], ["write", "bash", "bash", "undo"]);
    // The conversation contains the text, the trail does not.
    let logged = std::fs::read_to_string(log(&home)).unwrap();
    assert!(!logged.contains("secret words"));
    assert!(
        entries(&home)
            .iter()
            .all(|entry| !entry.to_string().contains("secret words"))
    );
    home.zeph(["sessions", "rm", "mine"]).code(0);
    intact(&home, 9);
    home.zeph(["audit", "query", "--session", "mine"])
        .code(0)
        .prints(&["write", "undo"]);
}

/// Proves OUT-50, OUT-52, EXE-21: if the process is killed, each sink has every result that was printed, and
/// the chains are intact.
#[test]
fn kill_at_any_moment_leaves_a_complete_audit_trail() {
    let home = Home::new();
    home.config("[tools.audit]\njsonl = true\n");
    let mut printed = 0;
    for round in 0..40 {
        let calls = script(8, |n| json!({ "command": format!("echo {round}.{n}") }));
        let mut running = home.zeph(["tools", "run", "--yes"]).stdin(calls).start();
        for _ in 0..round % 8 {
            let line = running.next_line().unwrap();
            assert_has(&line, &["\"success\":true"]);
            printed += 1;
        }
        // The kill happens at a varying time after the line.
        std::thread::park_timeout(std::time::Duration::from_micros(round * 97 % 1500));
        running.kill();
        if round % 8 != 0 {
            let outputs = home.zeph(["audit", "verify"]).code(0);
            outputs.prints(&["intact"]);
            file_intact(&home);
        }
    }
    home.wait_until_alone();
    let seen = |found: Vec<Value>| {
        found
            .iter()
            .filter(|entry| entry["tool"] == "bash" && entry["result"] == "success")
            .count()
    };
    assert!(seen(entries(&home)) >= printed, "{printed} printed");
    let text = std::fs::read_to_string(log(&home)).unwrap();
    assert!(text.matches("\"result\":\"success\"").count() >= printed);
}

/// Proves OUT-52: concurrent processes write one chain in each sink.
#[test]
fn concurrent_processes_write_one_chain() {
    let home = Home::new();
    home.config("[tools.audit]\njsonl = true\n");
    let calls = (0..250).fold(String::new(), |text, _| {
        text + "{\"tool\": \"list_tasks\"}\n"
    });
    let start = || home.zeph(["tools", "run"]).stdin(calls.clone()).start();
    let running = [start(), start(), start()];
    // The log can be verified while processes append to it.
    wait_for("a first entry", || log(&home).exists().then_some(()));
    file_intact(&home);
    for one in running {
        one.wait().code(0);
    }
    intact(&home, 750);
    assert_eq!(file_intact(&home).stdout.matches("750 entries").count(), 1);
    let head = home.zeph(["audit", "head"]).code(0).stdout;
    assert!(head.starts_with("750:"), "{head}");
}

/// A trail of five entries in each sink, and its recorded head.
fn trail() -> (Home, String) {
    let home = Home::new();
    home.config("[tools.audit]\njsonl = true\n");
    let calls = script(5, |n| json!({ "command": format!("echo {n}") }));
    home.zeph(["tools", "run", "--yes"]).stdin(calls).code(0);
    let head = home
        .zeph(["audit", "head"])
        .code(0)
        .stdout
        .trim()
        .to_owned();
    intact(&home, 5);
    (home, head)
}

/// Proves OUT-52: `zeph audit verify` prints the first wrong location and ends with exit code 1.
#[test]
fn verify_finds_changed_entries() {
    const DROP: &str =
        "DROP TRIGGER tool_audit_is_not_edited; DROP TRIGGER tool_audit_is_not_deleted;";
    let check = |sql: &'static str, words: &str| {
        let (home, head) = trail();
        execute(&home.database(), DROP);
        execute(&home.database(), sql);
        home.zeph(["audit", "verify"])
            .code(1)
            .prints(&["WRONG: ", words]);
        // An attacker who can write the data folder can also forge the stored head, but not a head recorded
        // elsewhere.
        home.zeph(["audit", "verify", "--head", &head]).code(1);
        home.zeph(["tools", "call", "list_tasks"]).code(0);
        home.zeph(["audit", "verify"]).code(1).prints(&["WRONG: "]);
        home.zeph(["audit", "verify", "--head", &head]).code(1);
    };
    check(
        "UPDATE tool_audit SET call = '{\"command\":\"echo x\"}' WHERE id = 3",
        "row 3: entry was modified",
    );
    check("DELETE FROM tool_audit WHERE id = 2", "row 3");
    check(
        "DELETE FROM tool_audit WHERE id > 3",
        "2 entries are missing at the end",
    );
    check("DELETE FROM tool_audit", "5 entries are missing");

    let (home, head) = trail();
    let path = log(&home);
    let name = path.display().to_string();
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let verify = |text: String| {
        std::fs::write(&path, text).unwrap();
        home.zeph(["audit", "verify", "--file", &name])
    };
    let joined = |lines: &[&str]| lines.join("\n") + "\n";
    verify(whole.replace("echo 1", "echo x"))
        .code(1)
        .prints(&["WRONG: line 2"]);
    verify(joined(&lines[..4]))
        .code(1)
        .prints(&["one entry is missing"]);
    verify(joined(&lines[1..]))
        .code(1)
        .prints(&["WRONG: line 1"]);
    verify(String::new()).code(1);
    verify(joined(&[lines[0], lines[2], lines[1], lines[3], lines[4]])).code(1);
    verify(whole.clone()).code(0);
    std::fs::remove_file(&path).unwrap();
    home.zeph(["audit", "verify", "--file", &name]).code(1);
    // Heads that match no entry, and an invalid head.
    let other = format!("3{}", &head[1..]);
    home.zeph(["audit", "verify", "--head", &other]).code(1);
    home.zeph(["audit", "verify", "--head", &head]).code(0);
    home.zeph(["audit", "verify", "--head", "nonsense"])
        .code(2)
        .says(&["SEQ:HASH"]);
    // A copy is compared with the stored head of the original.
    let copy = home.root().join("copy.jsonl");
    let verify = |text: &str| {
        std::fs::write(&copy, text).unwrap();
        home.zeph(["audit", "verify", "--file", &copy.display().to_string()])
    };
    verify(&whole).code(0).prints(&["intact: 5 entries"]);
    verify(&joined(&lines[..3])).code(1);
}

/// Runs a call that creates `ran`, with this configuration.
fn touching(home: &Home, config: &str) -> Output {
    home.config(config);
    home.zeph(["-q", "tools", "call", "bash", &bash("touch ran"), "--yes"])
        .run()
}

/// Proves OUT-51: if entries are required, a call whose entry cannot be written does not run. Otherwise it
/// runs, and a warning is printed even with `-q`.
#[test]
fn call_with_an_unwritable_required_entry_does_not_run() {
    type Make = fn(&Home) -> PathBuf;
    let sinks: [(&str, Make); 4] = [
        ("not a regular file", |_| "/dev/full".into()),
        ("directory", |home| home.project()),
        ("symbolic link", |home| {
            let link = home.root().join("link");
            std::os::unix::fs::symlink(home.root().join("target"), &link).unwrap();
            link
        }),
        ("audit.jsonl", |home| {
            std::fs::write(home.root().join("file"), "").unwrap();
            home.root().join("file/audit.jsonl")
        }),
    ];
    for (words, make) in sinks {
        for sqlite in [true, false] {
            let home = Home::new();
            let path = make(&home).display().to_string();
            let config =
                format!("[tools.audit]\njsonl = true\nsqlite = {sqlite}\npath = {path:?}\n");
            let output = touching(&home, &format!("{config}required = true\n"));
            assert_eq!(output.code, Some(3), "{output}");
            assert_has(
                &output.stderr,
                &["error: bash did not run", words, "[tools.audit] path"],
            );
            assert_has(
                &output.stdout,
                &["policy_blocked", "no audit entry can be written"],
            );
            assert_eq!(output.stderr.matches(words).count(), 1, "{output}");
            assert!(!home.has("ran"), "it ran");
            assert!(!home.root().join("target").exists());
            let found = audit(&home.database());
            assert_eq!(found.len(), usize::from(sqlite));
            assert!(found.iter().all(|entry| entry.result == "blocked"));

            let output = touching(&home, &config);
            assert_eq!(output.code, Some(0), "{output}");
            assert_has(
                &output.stderr,
                &["error: the audit entry of bash was not written", words],
            );
            assert!(home.has("ran"));
            assert_eq!(count(&home.database(), "tool_audit"), 2 * i64::from(sqlite));
        }
    }
}

/// Proves OUT-51: a file size limit.
#[test]
fn call_over_the_log_size_limit_does_not_run() {
    let home = Home::new();
    let long = "x".repeat(4_000_000);
    std::fs::create_dir_all(log(&home).parent().unwrap()).unwrap();
    std::fs::write(log(&home), &long).unwrap();
    let limited = || {
        let call = bash("touch ran");
        Zeph::through_bash(&home, r#"trap "" XFSZ; ulimit -f 3000; exec "$0" "$@""#)
            .args(["tools", "call", "bash", &call, "--yes"])
    };
    home.config("[tools.audit]\njsonl = true\nrequired = true\n");
    let output = limited().run();
    assert_has(&output.stderr, &["bash did not run", "file too large"]);
    assert!(!home.has("ran"), "{output}");
    home.config("[tools.audit]\njsonl = true\n");
    limited()
        .code(0)
        .says(&["the audit entry of bash was not written"]);
    assert!(home.has("ran"));
    assert_eq!(
        std::fs::read_to_string(log(&home)).unwrap(),
        long,
        "nothing is written in part"
    );
}

/// Proves OUT-51: a full disk. Calls run while reserved space is left; each of them has its entry, and the
/// others do not run.
#[test]
fn call_with_a_required_entry_does_not_run_on_a_full_disk() {
    let home = Home::new();
    let probe = Zeph::through_bash(
        &home,
        "unshare -rm bash -c 'mount -t tmpfs tmpfs /mnt' 2>&1",
    );
    if probe.run().code != Some(0) {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    let disk = home.root().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let path = disk.join("audit.jsonl");
    home.config(&format!(
        "[tools.audit]\njsonl = true\nrequired = true\npath = {:?}\n",
        path.display().to_string()
    ));
    let lines = script(30, |n| json!({ "command": format!("touch ran{n}") }));
    std::fs::write(home.root().join("script"), lines).unwrap();
    let script = format!(
        r#"zeph=$0; export zeph
        exec unshare -rm bash -c '
            mount -t tmpfs -o size=400k tmpfs {disk} || exit 90
            "$zeph" tools call bash "{{\"command\": \"touch first\"}}" --yes || exit 91
            head -c 1000000 /dev/zero > {disk}/ballast 2>/dev/null
            "$zeph" tools run --yes {disk}/../script
            rm {disk}/ballast
            "$zeph" tools call bash "{{\"command\": \"touch last\"}}" --yes || exit 92
            "$zeph" audit verify --file {disk}/audit.jsonl || exit 93
        '"#,
        disk = disk.display()
    );
    let output = Zeph::through_bash(&home, &script).run().code(0);
    assert_has(&output.stderr, &["bash did not run", "No space left"]);
    let ran = (0..30).filter(|n| home.has(&format!("ran{n}"))).count();
    let printed = output.stdout.matches("\"success\":true").count();
    assert!(
        ran < 25 && ran == printed,
        "{ran} ran, {printed} printed: {output}"
    );
    assert!(home.has("first") && home.has("last"));
    // Refusals may have used the remaining space for their entries.
    assert_has(&output.stdout, &["policy_blocked", "intact: "]);
    let (_, number) = output.stdout.split_once("intact: ").unwrap();
    let number: usize = number.split(' ').next().unwrap().parse().unwrap();
    assert!((ran + 2..=32).contains(&number), "{number} for {ran}");
}

/// Proves OUT-51: entries on standard output are JSON and do not corrupt output that a program reads.
#[test]
fn audit_entries_do_not_mix_with_output() {
    let config = "[tools.audit]\nstdout = true\nsqlite = false\n";
    let is_entry = |line: &str| {
        serde_json::from_str::<Value>(line)
            .is_ok_and(|entry| entry["tool"] == "list_tasks" && entry["hash"].is_string())
    };
    let home = Home::new();
    home.config(config);
    let plain = home.zeph(["tools", "call", "list_tasks"]).code(0);
    let lines: Vec<_> = plain.stdout.lines().collect();
    assert!(
        is_entry(lines[0]) && lines[1].contains("empty") && lines.len() == 2,
        "{plain}"
    );
    let form = home.zeph(["tools", "call", "list_tasks", "--json"]).code(0);
    assert_eq!(form.json()["tool"], "list_tasks");
    assert!(form.stderr.lines().any(is_entry), "{form}");
    let results = home
        .zeph(["tools", "run"])
        .stdin("{\"tool\": \"list_tasks\"}\n".repeat(3))
        .code(0);
    assert_eq!(results.json_lines().len(), 3);
    let printed: Vec<&str> = results
        .stderr
        .lines()
        .filter(|line| is_entry(line))
        .collect();
    let file = home.root().join("printed.jsonl");
    std::fs::write(&file, printed.join("\n") + "\n").unwrap();
    home.zeph(["audit", "verify", "--file", &file.display().to_string()])
        .code(0)
        .prints(&["intact: 3 entries"]);
    assert_eq!(count(&home.database(), "tool_audit"), 0);

    let run = |format: &str| {
        let server = OpenAi::replies([
            Reply::calls("t", &[("list_tasks", json!({}))]),
            Reply::text("The answer."),
        ]);
        let home = Home::openai(&server);
        home.more_config(config);
        home.zeph(["-p", "go", "--output-format", format]).code(0)
    };
    let text = run("text");
    let lines: Vec<_> = text.stdout.lines().collect();
    assert!(is_entry(lines[0]) && lines[1] == "The answer.", "{text}");
    let object = run("json");
    assert_eq!(object.json()["text"], "The answer.");
    assert!(object.stderr.lines().any(is_entry), "{object}");
    let events = run("stream-json").json_lines();
    let printed: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "audit")
        .collect();
    assert_eq!(printed.len(), 1, "{events:?}");
    assert!(is_entry(&printed[0]["entry"].to_string()));
    assert_eq!(events.last().unwrap()["type"], "finished");

    // A closed pipe or a full disk is a failing sink.
    let home = Home::new();
    home.config("[tools.audit]\nstdout = true\nrequired = true\n");
    let call = bash("touch ran");
    let args = ["tools", "call", "bash", call.as_str(), "--yes"];
    home.zeph(args)
        .closed_stdout()
        .run()
        .says(&["bash did not run", "standard output"]);
    assert!(!home.has("ran"));
    home.zeph(args)
        .full_stdout()
        .run()
        .says(&["the audit entry of bash was not written", "standard output"]);
}

/// Proves OUT-51: the user may disable the trail; a project file may only make it stricter.
#[test]
fn audit_trail_can_be_disabled_only_by_the_user() {
    let home = Home::new();
    home.config("[tools.audit]\nsqlite = false\n");
    home.zeph(["tools", "call", "list_tasks"]).code(0);
    assert_eq!(count(&home.database(), "tool_audit"), 0);
    home.zeph(["doctor"])
        .run()
        .prints(&["warn  audit", "have no entries"]);
    home.zeph(["audit", "tail"])
        .code(0)
        .says(&["`[tools.audit] sqlite` is false"]);
    home.config("[tools.audit]\nsqlite = false\nrequired = true\n");
    home.zeph(["tools", "call", "list_tasks"])
        .code(2)
        .says(&["tools.audit.required"]);

    home.config("[tools.audit]\njsonl = true\nrequired = true\n");
    for line in [
        "sqlite = false",
        "jsonl = false",
        "required = false",
        "stdout = true",
        "path = 'mine.jsonl'",
    ] {
        home.write(".zeph/config.toml", &format!("[tools.audit]\n{line}\n"));
        let key = format!("tools.audit.{}", line.split(' ').next().unwrap());
        home.zeph(["tools", "call", "list_tasks"])
            .code(2)
            .says(&[&key, "project"]);
    }
    home.config("");
    home.write(
        ".zeph/config.toml",
        "[tools.audit]\njsonl = true\nrequired = true\n",
    );
    home.zeph(["tools", "call", "list_tasks"]).code(0);
    assert_eq!(lines_of(&log(&home)).len(), 1);
    let mode = std::fs::metadata(log(&home)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Proves OUT-51: file tools cannot access the log, regardless of its location.
#[test]
fn audit_log_is_inaccessible_to_file_tools() {
    let home = Home::new();
    let path = home.path("audit.jsonl");
    home.config(&format!(
        "[tools.audit]\njsonl = true\npath = {:?}\n",
        path.display().to_string()
    ));
    home.zeph(["tools", "call", "list_tasks"]).code(0);
    for (tool, params) in [
        ("read", json!({ "path": "audit.jsonl" })),
        ("write", json!({ "path": "audit.jsonl", "content": "" })),
        ("delete_path", json!({ "path": "audit.jsonl" })),
    ] {
        home.zeph(["tools", "call", tool, &params.to_string(), "--yes"])
            .run();
    }
    assert_eq!(lines_of(&path).len(), 4);
    home.zeph(["audit", "verify", "--file", "audit.jsonl"])
        .code(0);
    home.zeph(["--set", "tools.audit.sqlite=false", "audit", "verify"])
        .code(0)
        .prints(&["audit.jsonl: intact: 4 entries"]);
}

/// Proves OUT-52 for reading: entries match the query, are in order and sanitized, also during concurrent
/// writes.
#[test]
fn tail_and_query_list_matching_entries() {
    let home = Home::new();
    let hostile = "printf x # \u{1b}]0;owned\u{7}\u{202e}";
    home.zeph([
        "tools",
        "call",
        "bash",
        &bash(hostile),
        "--yes",
        "--session",
        "first",
    ])
    .code(0);
    home.zeph(["tools", "call", "list_tasks", "--session", "second"])
        .code(0);
    home.zeph([
        "tools",
        "call",
        "read",
        r#"{"path": "none"}"#,
        "--session",
        "second",
    ])
    .code(1);
    let query = |args: &[&str]| {
        let all = ["audit", "query", "--json"].iter().chain(args);
        let output = home.zeph(all).code(0);
        let tools = output.json_lines();
        tools
            .iter()
            .map(|entry| entry["tool"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(query(&[]), "bash list_tasks read");
    assert_eq!(query(&["--tool", "bash"]), "bash");
    assert_eq!(query(&["--result", "error"]), "read");
    assert_eq!(query(&["--session", "sec"]), "list_tasks read");
    assert_eq!(query(&["--since", "1h"]), "bash list_tasks read");
    assert_eq!(query(&["--since", "2099-01-01"]), "");
    assert_eq!(query(&["--limit", "2"]), "list_tasks read");
    home.zeph(["audit", "query", "--result", "odd"]).code(2);
    home.zeph(["audit", "query", "--since", "yesterday"])
        .code(2)
        .says(&["expected one like"]);
    let shown = home.zeph(["audit", "tail", "-n", "3"]).code(0).stdout;
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(
        !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
    assert_has(
        &shown,
        &["bash", "list_tasks", "permanent_failure", "(second)"],
    );

    let mut following = home
        .zeph(["audit", "tail", "-n", "1", "--follow", "--json"])
        .start();
    following.until_line("\"tool\":\"read\"");
    home.zeph(["tools", "call", "list_tasks"]).code(0);
    following.until_line("\"seq\":4,");
    following.kill();
}

/// Proves OUT-50, OUT-52: a FIFO as an audit file is an error and never blocks.
#[test]
fn audit_file_that_is_a_fifo_is_an_error() {
    let head = "zeph.db-audit/database.head";
    for (file, config) in [
        (head, "[tools.audit]\nrequired = true\n"),
        (
            "audit.jsonl",
            "[tools.audit]\njsonl = true\nrequired = true\n",
        ),
    ] {
        let home = Home::new();
        home.config(config);
        home.write("a.txt", "text\n");
        home.zeph(["tools", "call", "read", r#"{"path":"a.txt"}"#])
            .code(0);
        let path = home.data().join("zeph").join(file);
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        let output = home
            .zeph(["tools", "call", "read", r#"{"path":"a.txt"}"#])
            .run();
        assert_ne!(output.code, Some(0), "{file}: {}", output.stderr);
        assert!(
            output.stderr.contains("regular file"),
            "{file}: {}",
            output.stderr
        );
        let output = home.zeph(["audit", "verify"]).run();
        assert_ne!(output.code, None, "{file}");
    }
}
