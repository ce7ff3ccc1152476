//! Standard streams of one turn: piped input, output failures, early signals.

use rustix::process::Signal;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use crate::rig::{Home, OpenAi, Reply, Zeph, assert_has, wait_for};

/// Proves PERM-2, CLI-1: piped input is foreign text, and never a command of the user.
#[test]
fn piped_prompt_is_never_a_command() {
    let check = |args: &[&str], stdin: &str, expect: &str| {
        let server = OpenAi::replies([Reply::text("seen")]);
        let home = Home::openai(&server);
        home.zeph(args).stdin(stdin).code(0).prints(&["seen"]);
        let messages = server.last().messages();
        assert_eq!(messages.last().unwrap()["content"], expect);
        assert!(!home.has("ran"), "{args:?} {stdin:?}");
    };
    check(&[], "!touch ran", "!touch ran");
    check(&["run"], "!touch ran", "!touch ran");
    check(&["run", "-"], "/clear", "/clear");
    check(&["-p", "!cat", "-"], "touch ran", "!cat\n\ntouch ran");
}

/// Proves CLI-1, D-25: `run` takes a lone dash as `-p` does.
#[test]
fn last_dash_of_run_appends_standard_input() {
    let server = OpenAi::replies([Reply::text("seen")]);
    let home = Home::openai(&server);
    home.zeph(["run", "review", "this", "-"])
        .stdin("a diff")
        .code(0);
    let messages = server.last().messages();
    assert_eq!(messages.last().unwrap()["content"], "review this\n\na diff");
}

/// Proves CLI-3: a response that cannot be written is a failure, and the message says where it is stored.
#[test]
fn unwritable_response_is_a_failure() {
    let home = Home::scripted("[[steps]]\ntext = \"the answer\"");
    let words = ["could not be written", "No space left", "session"];
    home.zeph(["-p", "hi"]).full_stdout().code(1).says(&words);
    let listed = home.zeph(["sessions", "list"]).code(0).stdout;
    let session = listed.split_whitespace().next().unwrap();
    assert_has(&home.export(session).to_string(), &["the answer"]);
}

/// An empty response is reported.
#[test]
fn empty_response_is_reported() {
    let server = OpenAi::replies([Reply::text("")]);
    let home = Home::openai(&server);
    let words = ["the model returned an empty response"];
    home.zeph(["-p", "hi"]).code(0).says(&words);
}

/// Proves CLI-3: a file size limit is a reported error, not a silent end.
#[test]
fn file_size_limit_is_reported() {
    let home = Home::scripted("[[steps]]\ntext = \"ok\"");
    let output = Zeph::through_bash(&home, r#"ulimit -f 8; exec "$0" "$@""#)
        .args(["-p", "hi"])
        .code(1);
    assert_has(&output.stderr, &["error: ", "database"]);
}

/// Proves CLI-2b, CLI-3: an interruption while the database is locked ends the turn with exit code 130.
#[test]
fn interrupt_before_the_first_request_ends_with_130() {
    let home = Home::scripted("[[steps]]\ntext = \"ok\"");
    home.zeph(["sessions", "list"]).code(0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let options = SqliteConnectOptions::new().filename(home.database());
    let mut held = runtime.block_on(options.connect()).unwrap();
    let lock = sqlx::query("BEGIN EXCLUSIVE").execute(&mut held);
    runtime.block_on(lock).unwrap();

    let running = home.zeph(["-p", "hi", "--output-format", "json"]).start();
    wait_for("the handler of SIGINT", || {
        let status = running.status();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        (caught & 1 << (Signal::INT.as_raw() - 1) != 0).then_some(())
    });
    running.signal(Signal::INT);
    let output = running.wait().code(130);
    assert_eq!(output.json()["stop_reason"], "cancelled", "{output}");
}

/// Proves CFG-5: the server of the environment variable is checked too.
#[test]
fn doctor_checks_the_server_of_the_environment() {
    let gone = OpenAi::replies([]).url();
    let output = Home::new()
        .zeph(["doctor"])
        .env("OPENAI_API_KEY", "sk-0123456789")
        .env("OPENAI_BASE_URL", &gone)
        .code(1);
    assert_has(&output.stdout, &["FAIL  provider", &gone]);
}
