//! Scheduled tasks: their processes, the number of runs, and their permissions.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::rig::{
    Home, OpenAi, Reply, Request, Terminal, assert_has, audit, execute, is_running, unique_seconds,
    wait_for,
};

fn add(home: &Home, when: &str, task: &str) {
    home.zeph(["scheduler", "add", when, task]).code(0);
}

fn list(home: &Home) -> Value {
    home.zeph(["scheduler", "list", "--json"]).code(0).json()
}

/// The cron expression of a task that is due every hour, half an hour from now: no time of it passes during a test.
fn hourly() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("{} * * * *", (now.as_secs() / 60 + 30) % 60)
}

fn touches() -> OpenAi {
    let touch = json!({ "command": "touch ran" });
    OpenAi::replies([
        Reply::calls("t", &[("bash", touch)]),
        Reply::text("It is done."),
    ])
}

/// Proves NAT-3, EXE-10, EXE-11: a due task is a turn of its own session, in its phase, by its caller.
#[test]
fn due_task_runs() {
    let server = touches();
    let home = Home::openai(&server);
    home.more_config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"allow\"\n");
    add(&home, "now", "Touch the file.");
    add(&home, "in 1 hour", "Later.");
    let output = home.zeph(["scheduler", "run", "--once"]).code(0);
    assert_eq!(output.stdout.trim(), "It is done.");
    assert!(home.has("ran"));
    assert!(
        server.requests()[0]
            .json()
            .to_string()
            .contains("Touch the file.")
    );
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].phase.as_str(), entries[0].caller_id.as_deref()),
        ("autonomous", Some("scheduler:1"))
    );
    let listed = list(&home);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed["runs"][0]["state"], &listed["runs"][0]["session"]),
        (&json!("done"), &json!(entries[0].session))
    );
    let shown = home.zeph(["sessions", "show", &entries[0].session]).code(0);
    assert_has(&shown.stdout, &["Touch the file."]);
    // Only once.
    home.zeph(["scheduler", "run", "--once"]).code(0);
    assert_eq!(server.requests().len(), 2);
}

/// Proves NAT-3, PERM-2, PERM-31: a call that needs approval is refused with any flag, unless the user
/// configured otherwise; a denied call does not run in either case.
#[test]
fn unattended_task_never_asks() {
    let run = |config: &str, args: &[&str]| {
        let server = touches();
        let home = Home::openai(&server);
        home.more_config(config);
        add(&home, "now", "Touch.");
        home.zeph(["scheduler", "run", "--once"])
            .args(args.iter().copied())
            .run();
        let entry = audit(&home.database()).remove(0);
        let sent = server.requests()[1].json().to_string();
        (home.has("ran"), entry.error_category, sent)
    };
    let outcome = |config: &str, args: &[&str]| {
        let (ran, category, _) = run(config, args);
        (ran, category)
    };
    let asked = Some("confirmation_required".to_owned());
    let denied = Some("policy_blocked".to_owned());
    assert_eq!(outcome("", &[]), (false, asked.clone()));
    assert_eq!(outcome("", &["--yes"]), (false, asked));
    let skip = "[scheduler]\nskip_questions = true\n";
    assert_eq!(outcome(skip, &[]), (true, None));
    assert_eq!(outcome(skip, &["--mode", "plan"]), (false, denied.clone()));
    let deny =
        format!("{skip}[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n");
    assert_eq!(outcome(&deny, &[]), (false, denied.clone()));
    let block = format!("{skip}[tools.shell]\nblocked_commands = [\"touch\"]\n");
    assert_eq!(outcome(&block, &[]), (false, denied));
    let list = "[tools.shell]\nconfirm_patterns = [\"touch*\"]\n";
    assert_eq!(outcome(&format!("{skip}{list}"), &[]), (true, None));
    let other = "[[tools.permissions.bash]]\npattern = \"make *\"\naction = \"allow\"\n";
    assert_eq!(outcome(&format!("{skip}{other}{list}"), &[]), (true, None));
    // The error names the fix: a setting or a rule.
    for config in ["", "[tools.shell]\nconfirm_patterns = [\"touch*\"]\n"] {
        let (.., sent) = run(config, &["--yes"]);
        assert_has(&sent, &["scheduler.skip_questions", "--yes has no effect"]);
        assert!(!sent.contains("--yes approves"), "{sent}");
    }
    let (.., sent) = run("", &[]);
    assert_has(
        &sent,
        &["[[tools.permissions.bash]]", "allows it permanently"],
    );
}

/// Proves NAT-3: a project file cannot extend the permissions of scheduled tasks.
#[test]
fn project_cannot_configure_the_scheduler() {
    let home = Home::new();
    home.write(".zeph/config.toml", "[scheduler]\nskip_questions = true\n");
    let refused = home.zeph(["scheduler", "list"]).code(2);
    assert_has(&refused.stderr, &["scheduler.skip_questions"]);
}

/// Proves NAT-3: two concurrent processes, one run.
#[test]
fn two_processes_run_a_task_once() {
    for _ in 0..3 {
        let server = touches();
        let home = Home::openai(&server);
        add(&home, "now", "Touch.");
        let runs = [0, 1].map(|_| home.zeph(["scheduler", "run", "--once"]).start());
        for run in runs {
            run.wait();
        }
        assert_eq!(server.requests().len(), 2);
        assert_eq!(list(&home)["runs"].as_array().unwrap().len(), 1);
    }
}

/// Proves NAT-3: missed tasks are reported at the start and in the list, and not run late.
#[test]
fn missed_task_is_reported() {
    let server = OpenAi::replies([]);
    let home = Home::openai(&server);
    add(&home, "in 10 minutes", "Touch.");
    let hourly = hourly();
    add(&home, &hourly, "Look.");
    execute(
        &home.database(),
        "UPDATE schedule SET next_at = next_at - 86400000",
    );
    let output = home.zeph(["scheduler", "run", "--once"]).code(0);
    assert_has(
        &output.stderr,
        &[
            "task 1 of",
            "was missed: no process was free",
            "(and 23 times more since)",
        ],
    );
    assert_eq!(server.requests().len(), 0);
    let again = home.zeph(["scheduler", "run", "--once"]).code(0);
    assert_eq!(again.stderr, "");
    let listed = list(&home);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(listed["runs"][0]["state"], "missed");
    home.zeph(["scheduler", "list"])
        .code(0)
        .prints(&[&hourly, "last runs:", "was missed"]);
}

/// Proves NAT-3: a run whose process was killed is reported and not repeated.
#[test]
fn killed_run_is_interrupted() {
    let server = OpenAi::replies([Reply::hang()]);
    let home = Home::openai(&server);
    add(&home, "now", "Wait.");
    let running = home.zeph(["scheduler", "run", "--once"]).start();
    crate::rig::wait_for("the request", || {
        (!server.requests().is_empty()).then_some(())
    });
    running.kill();
    let run = || list(&home)["runs"][0]["state"].clone();
    assert_eq!(run(), "running");
    execute(&home.database(), "UPDATE schedule_run SET lease_until = 1");
    let output = home.zeph(["scheduler", "run", "--once"]).code(0);
    assert_has(&output.stderr, &["was interrupted", "not repeated"]);
    assert_eq!(run(), "interrupted");
    assert_eq!(server.requests().len(), 1);
}

/// Proves NAT-3: the tool stores tasks after approval, and reports invalid arguments.
#[test]
fn scheduler_tool_stores_tasks() {
    let home = Home::new();
    home.config("");
    let call = |params: Value, args: &[&str]| {
        let output = home
            .zeph(["tools", "call", "scheduler", &params.to_string()])
            .args(args.iter().copied())
            .run();
        (output.code, output.stdout)
    };
    let task = json!({ "task": "Look.", "when": "every day at 9" });
    assert_eq!(call(task.clone(), &[]).0, Some(3));
    assert_eq!(call(task.clone(), &["--mode", "auto-edit"]).0, Some(3));
    assert_eq!(list(&home)["tasks"], json!([]));
    let (code, said) = call(task, &["--yes"]);
    assert_eq!(code, Some(0), "{said}");
    assert_has(
        &said,
        &["Scheduled: 1", "09:00:00", "every day at 9", "Look."],
    );
    assert_eq!(list(&home)["tasks"][0]["cron"], "0 9 * * *");
    let (code, said) = call(json!({ "task": "x", "when": "soon" }), &["--yes"]);
    assert_eq!(code, Some(1));
    assert_has(
        &said,
        &[
            "invalid_parameters",
            "\"soon\" is not a time",
            "every day at 9",
        ],
    );
    assert_has(
        &call(json!({ "task": "x" }), &["--yes"]).1,
        &["invalid_parameters", "when"],
    );
    home.zeph(["scheduler", "rm", "1"]).code(0);
    assert_eq!(list(&home)["tasks"], json!([]));
}

/// Proves NAT-3: tasks belong to their directory; wrong commands say so.
#[test]
fn tasks_belong_to_their_directory() {
    let server = touches();
    let home = Home::openai(&server);
    home.write("other/x", "");
    add(&home, "now", "Touch.");
    home.zeph(["-C", "other", "scheduler", "run", "--once"])
        .code(0);
    assert_eq!(server.requests().len(), 0);
    home.zeph(["-C", "other", "scheduler", "rm", "1"]).code(1);
    home.zeph(["scheduler", "rm", "1"]).code(0);
    home.zeph(["scheduler", "rm", "1"]).code(1);
    let wrong = home.zeph(["scheduler", "add", "61 * * * *", "x"]).code(2);
    assert_has(&wrong.stderr, &["minute", "is not a value from 0 to 59"]);
}

/// A server that takes `seconds` to respond to "Slowly.".
fn slow(seconds: u64) -> OpenAi {
    OpenAi::start(move |_, request| {
        if request.json().to_string().contains("Slowly.") {
            std::thread::park_timeout(std::time::Duration::from_secs(seconds));
        }
        Reply::text("It is done.")
    })
}

fn states(home: &Home) -> Vec<String> {
    let listed = list(home);
    let runs = listed["runs"].as_array().unwrap().iter();
    let mut states: Vec<_> = runs
        .map(|run| format!("{} {}", run["task"], run["state"].as_str().unwrap()))
        .collect();
    states.sort();
    states
}

/// Proves NAT-3: a task that becomes due while another one runs waits, and is not missed.
#[test]
fn task_due_during_another_waits() {
    let server = slow(4);
    let home = Home::openai(&server);
    home.more_config("[scheduler]\ngrace_secs = 1\n");
    add(&home, "now", "Slowly.");
    add(&home, "now", "Second.");
    add(&home, "in 1 second", "Third.");
    let output = home.zeph(["scheduler", "run", "--once"]).code(0);
    assert_eq!(states(&home), ["1 done", "2 done", "3 done"]);
    assert_has(&output.stderr, &["task 3 starts: in 1 second (", "s late)"]);
}

/// Proves NAT-3: a stopped scheduler ends the running task and reports the tasks that did not start.
#[test]
fn stopped_run_reports_its_tasks() {
    let server = OpenAi::replies([Reply::hang()]);
    let home = Home::openai(&server);
    add(&home, "now", "Slowly.");
    add(&home, "now", "Second.");
    let running = home.zeph(["scheduler", "run"]).start();
    server.wait_for_requests(1);
    running.signal(rustix::process::Signal::INT);
    let output = running.wait();
    assert_eq!(output.code, Some(130));
    assert_has(
        &output.stderr,
        &["task 1 failed: ", "task 2 did not start: now"],
    );
    assert_eq!(states(&home), ["1 failed", "2 missed"]);
}

/// Proves NAT-3: an interactive session runs due tasks in parallel with the conversation, and reports them.
/// With a scheduler in another process, each time is run once.
#[test]
fn tasks_run_in_parallel_with_a_session() {
    let server = slow(0);
    let home = Home::openai(&server);
    let other = home.zeph(["scheduler", "run"]).start();
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("half a line");
    for _ in 0..4 {
        add(&home, "now", "Look.");
    }
    wait_for("the runs", || (states(&home).len() == 4).then_some(()));
    wait_for("their ends", || {
        states(&home)
            .iter()
            .all(|run| run.ends_with("done"))
            .then_some(())
    });
    assert_eq!(server.requests().len(), 4);
    other.signal(rustix::process::Signal::TERM);
    other.wait();
    // The typed text is still there, and the next due task belongs to this session.
    terminal.prompts("half a line");
    add(&home, "now", "Look.");
    wait_for("the last end", || {
        (states(&home).last()? == "5 done").then_some(())
    });
    terminal.prompts("half a line");
    terminal.type_keys("\r");
    terminal.shows("scheduled task 5 starts: now");
    terminal.shows("): It is done.");
    terminal.prompts("");
    let own = |request: &Request| request.json().to_string().contains("half a line");
    assert!(own(&server.last()));
    terminal.type_keys("/quit\r");
    terminal.ends();
    assert_eq!(server.requests().len(), 6);
}

/// Proves NAT-3: leaving the session ends its running task and the processes of the task.
#[test]
fn end_of_a_session_ends_its_task() {
    let seconds = unique_seconds();
    let sleep = json!({ "command": format!("sleep {seconds}") });
    let server = OpenAi::replies([Reply::calls("s", &[("bash", sleep)])]);
    let home = Home::openai(&server);
    home.more_config("[scheduler]\nskip_questions = true\n");
    add(&home, "now", "Sleep.");
    let mut terminal = Terminal::start(&home, &[]);
    wait_for("the command", || is_running(&seconds).then_some(()));
    terminal.prompts("");
    terminal.type_keys("/quit\r");
    terminal.ends();
    assert_eq!(states(&home), ["1 failed"]);
    wait_for("the end of the command", || {
        (!is_running(&seconds)).then_some(())
    });
}

/// Proves NAT-3: local times of a zone, including clock changes.
#[test]
fn local_times_follow_the_zone() {
    let home = Home::new();
    home.config("");
    let check = |zone: &str, when: &str, expect: &str| {
        let added = home.zeph(["scheduler", "add", when, "x"]).env("TZ", zone);
        added.code(0).prints(&[expect]);
    };
    // A local time that is skipped, and one that occurs twice.
    check(
        "America/New_York",
        "2027-03-14 02:30",
        "2027-03-14 03:30:00 -04:00",
    );
    check(
        "America/New_York",
        "2027-11-07 01:30",
        "2027-11-07 01:30:00 -04:00",
    );
    check(
        "Australia/Lord_Howe",
        "2027-10-03 02:15",
        "2027-10-03 02:45:00 +11:00",
    );
    check(
        "Asia/Kolkata",
        "2027-11-07 01:30",
        "2027-11-07 01:30:00 +05:30",
    );
    check("Europe/Berlin", "0 12 29 2 *", "2028-02-29 12:00:00 +01:00");
    let wrong = |when: &str, words: &[&str]| {
        let refused = home.zeph(["scheduler", "add", when, "x"]).code(2);
        assert_has(&refused.stderr, words);
    };
    wrong("0 0 30 2 *", &["there is no such day"]);
    wrong("*/0 * * * *", &["minute", "not a step from 1 to 60"]);
    wrong(
        "0 0 * * someday",
        &["day of week", "is not a value from 0 to 7"],
    );
    wrong("0 0 * *", &["is not a time", "five fields of cron"]);
    wrong("0 0 0 1 1 *", &["is not a time"]);
}

/// Proves NAT-3: after the correction of a clock that was far ahead, tasks continue.
#[test]
fn corrected_clock_continues_the_tasks() {
    let home = Home::new();
    home.config("");
    add(&home, &hourly(), "Look.");
    let next = || list(&home)["tasks"][0]["next_at"].as_i64().unwrap();
    let right = next();
    execute(
        &home.database(),
        "UPDATE schedule SET next_at = next_at + 4 * 365 * 86400000",
    );
    assert_eq!(next(), right);
}
