//! Slash commands at a terminal: `/status` on one screen, and errors of usage.

use std::num::NonZeroU16;

use crate::rig::{Home, Terminal, assert_has, audit, is_running, unique_seconds, wait_for};

const ROWS: NonZeroU16 = NonZeroU16::new(24).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(80).unwrap();

const CONFIG: &str = r#"
[tools]
max_tool_calls_per_session = 40
[tools.result_cache]
enabled = true
[tools.anomaly]
enabled = true
[agent.tool_filter]
enabled = true
[[tools.permissions.bash]]
pattern = "*"
action = "allow"
"#;

/// Proves CMD-1, SCH-7, OUT-9: `/status` shows on one screen of 80 by 24 the progress of the turn and the
/// state of context, filters, cache, quota, gates, memory, jobs and scheduled tasks.
#[test]
fn status_in_one_screen() {
    let seconds = unique_seconds();
    let home = Home::scripted(&format!(
        r##"
        [[steps]]
        calls = [{{ tool = "read", input = {{ path = "a.txt" }} }},
                 {{ tool = "memory_save", input = {{ content = "The port is 4711." }} }},
                 {{ tool = "add_task", input = {{ content = "Look." }} }},
                 {{ tool = "add_task", input = {{ content = "Mend." }} }}]
        [[steps]]
        calls = [{{ tool = "read", input = {{ path = "a.txt" }} }},
                 {{ tool = "update_task", input = {{ task_id = "task_1", status = "completed" }} }},
                 {{ tool = "bash", input = {{ command = "git status" }} }},
                 {{ tool = "bash", input = {{ command = "sleep {seconds}", background = true }} }}]
        [[steps]]
        text = "All is done."
        usage = {{ input = 4200, output = 80, cached = 4000 }}
        "##
    ));
    home.more_config(CONFIG);
    home.write("a.txt", "first\n");
    home.zeph(["scheduler", "add", "2099-01-01 09:00", "Look again."])
        .code(0);
    let mut terminal = Terminal::sized(&home, &["--yes"], ROWS, COLUMNS);
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("0 rounds of tool calls");
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("All is done.");
    terminal.prompts("");
    assert!(is_running(&seconds));
    terminal.type_keys("/status\r");
    terminal.shows("2 rounds of tool calls");
    terminal.prompts("");
    // From the command to the next prompt: all of it is visible, because no line has scrolled out.
    let text = home.neutral(&terminal.text());
    let from = text
        .find("› /status")
        .expect("the whole of it is on the screen");
    let session = &audit(&home.database())[0].session;
    let text = text[from..]
        .replace(session.as_str(), "SESSION")
        .replace(&seconds, "SECONDS");
    insta::assert_snapshot!(text);

    terminal.type_keys("/clear\r");
    terminal.shows("A new conversation starts");
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("0 hits, 0 misses; 0 results");
    terminal.shows("0 of 40 calls of the session used");
    terminal.prompts("");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
    wait_for("the end of the job", || {
        (!is_running(&seconds)).then_some(())
    });
}

/// Proves CMD-1: invalid arguments result in a message with the correct usage, even before the first prompt,
/// and change nothing.
#[test]
fn invalid_arguments_show_the_usage() {
    let home = Home::scripted("[[steps]]\ntext = \"Never said.\"\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    let mut check = |typed: &str, expect: &str| {
        terminal.type_keys("/clear\r");
        terminal.prompts("");
        terminal.type_keys(&format!("{typed}\r"));
        terminal.shows(expect);
        terminal.prompts("");
    };
    check("/hepl", "/hepl is not a command; did you mean /help?");
    check("/undo", "error: there is nothing to undo");
    check("/undo forget", "error: there is nothing to undo");
    check("/undo 3", "/undo 3 is not a command; did you mean /undo?");
    check("/compact", "there is nothing to summarize yet");
    check("/cost", "no request was sent to a model yet");
    check("/sessions", "0 messages");
    check("/resume 00000000", "error: ");
    check("/permissions", "There are no rules");
    check("/permissions rm 7", "error: no approval has the number 7");
    check("/permissions rm x", "did you mean /permissions?");
    check("/tools unblock", "error: no tool is blocked");
    check(
        "/tools unblock x",
        "error: x is not blocked; no tool is blocked",
    );
    check("/model", "asked       scripted (script)");
    check("/reload", "nothing changed");
    check("/skills", "no skills");
    check("/mcp", "no MCP server is configured");
    check("/mcp approve", "error: /mcp approve NAME takes the name");
    check("/mcp approve a", "error: no MCP server is configured");
    check("/mcp x", "did you mean /mcp?");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves CMD-1: a session without messages is only in its own list, and does not affect others.
#[test]
fn empty_session_is_not_listed() {
    let home = Home::scripted("[[steps]]\ntext = \"Never said.\"\n");
    for command in ["/status", "/help", "/sessions"] {
        home.zeph(["-p", command]).code(0);
    }
    let all = home.zeph(["sessions", "list", "--all"]).code(0).stdout;
    assert_has(&all, &["no sessions"]);
    home.zeph(["-p", "say something"]).code(0);
    let listed = home.zeph(["-p", "/sessions"]).code(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[0].starts_with("* "), "{listed}");
    assert_has(lines[0], &["   0 messages  (no title)"]);
    assert_has(lines[1], &["   2 messages  say something"]);
    assert_has(lines[2], &["/resume ID"]);
}
