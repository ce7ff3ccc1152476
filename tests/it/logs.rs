//! The log file: warnings and errors of every entry point, from several processes, without secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::rig::{Editor, Home, KEY, McpClient, OpenAi, Reply, Terminal, assert_has};

/// A setting that results in a warning in every command that assembles the tools.
const WARNS: &str = "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.read]\nrequires = [\"no_such_tool\"]\n";
/// A part of that warning.
const WARNING: &str = "there is no tool \"no_such_tool\"";

fn log_path(home: &Home) -> PathBuf {
    home.home().join(".local/state/zeph/zeph.log")
}

fn log(home: &Home) -> String {
    fs::read_to_string(log_path(home)).unwrap_or_default()
}

/// The records of a file in JSON.
#[track_caller]
fn records(home: &Home) -> Vec<Value> {
    log(home)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// A server that refuses every request and repeats its key.
fn refusing() -> OpenAi {
    let message = format!("wrong key {KEY}\n2026 ERROR forged");
    OpenAi::start(move |_, _| Reply::error(401, "invalid_api_key", &message))
}

/// Proves OPS-4: a failed request is in the file without any option, with its place, and without the key.
#[test]
fn failed_request_is_in_the_file() {
    let server = refusing();
    let home = Home::openai(&server);
    let output = home.zeph(["-p", "hello there"]).run();
    assert_ne!(output.code, Some(0));
    assert!(!output.stderr.contains("turn{"), "{output}");
    let log = log(&home);
    let line = log.lines().find(|line| line.contains("the request failed"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert_has(
        line,
        &["Z ERROR ", "turn{", "gen_ai.conversation.id=", "kind=auth"],
    );
    assert!(!log.contains(KEY), "{log}");
    assert!(!log.contains("hello there"), "{log}");
    // The line break of the server begins no line.
    assert!(!log.lines().any(|line| line.starts_with("2026 ")), "{log}");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(log_path(&home)), 0o600);
    assert_eq!(mode(log_path(&home).parent().unwrap().into()), 0o700);
}

/// Proves OPS-4: the same warning reaches the file from every entry point.
#[test]
fn every_entry_point_writes_the_file() {
    let check = |name: &str, run: &dyn Fn(&Home)| {
        let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
        home.more_config(WARNS);
        run(&home);
        let log = log(&home);
        let found = log.lines().filter(|line| line.contains(WARNING)).count();
        assert!(found > 0, "{name}: {log:?}");
    };
    check("one-shot", &|home| drop(home.zeph(["-p", "go"]).code(0)));
    check("quiet", &|home| drop(home.zeph(["-q", "-p", "go"]).code(0)));
    check("tools", &|home| drop(home.zeph(["tools", "list"]).code(0)));
    check("doctor", &|home| drop(home.zeph(["doctor"]).run()));
    check("scheduler", &|home| {
        home.zeph(["scheduler", "add", "now", "go"]).code(0);
        home.zeph(["scheduler", "run", "--once"]).run();
    });
    check("mcp serve", &|home| {
        let mut client = McpClient::ready(home, &[]);
        client.call("list_directory", json!({ "path": "." }));
        client.end();
    });
    check("acp", &|home| {
        let mut editor = Editor::open(home);
        let session = editor.session(&home.project());
        editor.prompt(&session, "go");
        editor.leave();
    });
    check("line interface", &|home| {
        let terminal = Terminal::start(home, &[]);
        terminal.leaves();
    });
    #[cfg(feature = "tui")]
    check("full screen", &|home| {
        let mut terminal = Terminal::start(home, &["--tui"]);
        terminal.shows("? keys");
        terminal.type_keys("\x04");
        terminal.ends();
    });
}

/// Proves OPS-4: an error that ends a command is in the file, and standard error shows it once.
#[test]
fn shown_error_is_recorded() {
    let home = Home::new();
    let output = home
        .zeph(["sessions", "show", "no-such-session", "-v"])
        .run();
    assert_ne!(output.code, Some(0));
    let shown = output.stderr.matches("no-such-session").count();
    assert_eq!(shown, 1, "{output}");
    assert_has(&log(&home), &[" ERROR ", "no-such-session"]);
}

/// Proves OPS-4: `ZEPH_LOG` and `-v` add records, and no filter takes warnings away.
#[test]
fn filters_add_records() {
    let home = Home::scripted(
        "[[steps]]\ncalls = [{ tool = \"read\", input = { path = \"none\" } }]\n[[steps]]\ntext = \"hi\"\n",
    );
    home.more_config(WARNS);
    let run = |args: &[&str], filter: &str| {
        let _ = fs::remove_file(log_path(&home));
        let output = home.zeph(["-p", "go"]).args(args).env("ZEPH_LOG", filter);
        let output = output.code(0);
        let log = log(&home);
        assert!(log.contains(WARNING), "{args:?} {filter}: {log}");
        (log, output.stderr)
    };
    let failed = "a call failed";
    let (log, stderr) = run(&[], "");
    assert!(!log.contains(failed) && !stderr.contains(failed), "{log}");
    let (log, stderr) = run(&[], "off");
    assert!(!log.contains(failed) && !stderr.contains(failed), "{log}");
    for (args, filter) in [(&["-v"][..], ""), (&[], "zeph_core=info")] {
        let (log, stderr) = run(args, filter);
        let line = log.lines().find(|line| line.contains(failed)).unwrap();
        assert_has(line, &[" INFO ", "turn{", "tool=read"]);
        assert_has(&stderr, &[failed]);
    }
    let (log, _) = run(&["-vv"], "");
    assert_has(&log, &["DEBUG"]);
    let (_, stderr) = run(&[], "zeph=loud");
    assert_has(&stderr, &["warning: ZEPH_LOG", "loud"]);
}

/// Proves OPS-4: with `[log] format = "json"`, each line is an object, also with several processes at the same time.
#[test]
fn processes_share_the_file() {
    const PROCESSES: usize = 6;
    let home = Home::new();
    home.config(&format!("[log]\nformat = \"json\"\n{WARNS}"));
    let running: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let calls = "{\"tool\":\"read\",\"params\":{\"path\":\"none\"}}\n".repeat(20);
            let run = home.zeph(["tools", "run", "--yes", "-vv"]).stdin(calls);
            run.start()
        })
        .collect();
    for run in running {
        run.wait();
    }
    let records = records(&home);
    let of = |words: &str| {
        let found = records.iter().filter(|record| {
            let message = record["message"].as_str().unwrap_or_default();
            message.contains(words)
        });
        found.collect::<Vec<_>>()
    };
    let warnings = of("there is no tool");
    let mut processes: Vec<_> = warnings
        .iter()
        .filter_map(|one| one["pid"].as_u64())
        .collect();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), PROCESSES);
    assert_eq!(of("a call failed").len(), PROCESSES * 20);
    let call = of("a call failed")[0];
    assert_eq!(call["level"], "INFO");
    assert_eq!(call["fields"]["tool"], "read");
    assert!(records.iter().all(|record| record["time"].is_string()));
}

/// Proves OPS-4: the environment sets the format too, and a record names its spans.
#[test]
fn record_in_json_names_its_spans() {
    let server = refusing();
    let home = Home::openai(&server);
    home.zeph(["-p", "hi"]).env("ZEPH_LOG_FORMAT", "json").run();
    let records = records(&home);
    let failed = records.iter().find(|record| {
        let message = record["message"].as_str().unwrap();
        message.starts_with("the request failed")
    });
    let failed = failed.unwrap_or_else(|| panic!("{records:#?}"));
    assert_eq!(failed["spans"][0]["name"], "turn");
    let fields = &failed["spans"][0]["fields"];
    assert_eq!(fields["gen_ai.operation.name"], "invoke_agent");
}

/// Proves OPS-4: a folder that cannot be written costs one notice, and nothing else.
#[test]
fn unwritable_folder_is_one_notice() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    home.more_config(WARNS);
    // The path of the folder is a file: that holds for every user.
    fs::create_dir_all(home.home().join(".local")).unwrap();
    fs::write(home.home().join(".local/state"), "").unwrap();
    let output = home.zeph(["-p", "go", "-vv"]).code(0);
    assert_eq!(output.stdout, "hi\n");
    let notices = output.stderr.matches("cannot be written").count();
    assert_eq!(notices, 1, "{output}");
    assert_has(
        &output.stderr,
        &["zeph.log", "warnings of this run are not stored"],
    );
    let output = home.zeph(["doctor"]).code(1);
    assert_has(&output.stdout, &["FAIL  log", "zeph.log", "mkdir -p"]);
}

/// Proves OPS-4: a run without warnings creates no file.
#[test]
fn run_without_warnings_opens_no_file() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    home.zeph(["-p", "go"]).code(0);
    assert!(!log_path(&home).exists(), "{}", log(&home));
    let output = home.zeph(["doctor"]).run();
    assert_has(&output.stdout, &["ok    log", "zeph.log"]);
}

/// Proves OPS-4: a full file is replaced, also while several processes write.
#[test]
fn full_file_is_replaced() {
    let home = Home::new();
    home.config(WARNS);
    let path = log_path(&home);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let full = "x".repeat(4 * 1024 * 1024 - 1) + "\n";
    fs::write(&path, &full).unwrap();
    let running: Vec<_> = (0..4)
        .map(|_| home.zeph(["tools", "list"]).start())
        .collect();
    for run in running {
        run.wait();
    }
    let log = log(&home);
    assert_eq!(log.matches(WARNING).count(), 4, "{log}");
    let earlier = fs::read_to_string(path.with_extension("log.1")).unwrap();
    assert_eq!(earlier.len(), full.len());
    assert!(!path.with_extension("log.2").exists());
}

/// Proves OPS-4: warnings about the configuration are in the file, also if they are not shown.
#[test]
fn warning_of_the_configuration_is_recorded_without_being_shown() {
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let run = |args: &[&str]| {
        let _ = fs::remove_file(log_path(&home));
        let run = home.zeph(args.iter().copied()).env("ZEPH_NO_SUCH_KEY", "1");
        let output = run.code(0);
        assert_has(&log(&home), &[" WARN ", "ZEPH_NO_SUCH_KEY"]);
        output.stderr
    };
    assert_has(&run(&["tools", "list"]), &["ZEPH_NO_SUCH_KEY"]);
    assert_eq!(run(&["-q", "tools", "list"]), "");
    assert!(!run(&["-q", "-v", "tools", "list"]).contains("ZEPH_NO_SUCH_KEY"));
}

/// Proves OPS-4: a record before the configuration is loaded, or of one that is invalid, has the configured format.
#[test]
fn first_record_has_the_configured_format() {
    let check = |prepare: &dyn Fn(&Home), args: &[&str], env: &str, message: &str| {
        let home = Home::new();
        prepare(&home);
        let run = home.zeph(args.iter().copied());
        let output = run.env("ZEPH_LOG_FORMAT", env).run();
        assert_ne!(output.code, Some(0), "{output}");
        let records = records(&home);
        assert_has(&records[0]["message"].to_string(), &[message]);
    };
    let json = |home: &Home| home.config("[log]\nformat = \"json\"\n");
    let gone = &["-C", "no-such-folder", "tools", "list"];
    check(&json, gone, "", "no-such-folder");
    check(&|_| (), gone, "json", "no-such-folder");
    let set = "log.format=json";
    check(
        &|_| (),
        &["--set", set, "-C", "gone", "tools", "list"],
        "",
        "gone",
    );
    let invalid = |home: &Home| home.config("[log]\nformat = \"json\"\n[agnet]\n");
    check(&invalid, &["tools", "list"], "", "agnet");
}
