//! The full screen, `zeph --tui`, through a real terminal.

use std::num::NonZeroU16;

use rustix::process::Signal;
use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, Terminal, audit, wait_for};

/// The end of the status bar: no question is open.
const READY: &str = "? keys";
/// The options of a permission dialog, which appear when keys count.
const OPTIONS: &str = "[1] once";
/// The escape sequence that leaves the alternate screen.
const LEAVE: &str = "\x1b[?1049l";

const SMALL: (u16, u16) = (12, 40);
const MEDIUM: (u16, u16) = (24, 80);
const LARGE: (u16, u16) = (60, 200);
const SIZES: [(u16, u16); 3] = [SMALL, MEDIUM, LARGE];

fn size((rows, columns): (u16, u16)) -> (NonZeroU16, NonZeroU16) {
    (
        NonZeroU16::new(rows).unwrap(),
        NonZeroU16::new(columns).unwrap(),
    )
}

/// Starts the full screen in a terminal of this size.
#[track_caller]
fn start(home: &Home, args: &[&str], rows_and_columns: (u16, u16)) -> Terminal {
    let (rows, columns) = size(rows_and_columns);
    let args = [&["--tui"], args].concat();
    let terminal = Terminal::sized(home, &args, rows, columns);
    terminal.shows(READY);
    assert!(terminal.is_full_screen());
    terminal
}

/// Leaves the full screen with Ctrl-D, and asserts that the terminal is restored.
#[track_caller]
fn leaves(mut terminal: Terminal) -> String {
    terminal.shows(READY);
    terminal.type_keys("\x04");
    let (status, raw) = terminal.ends();
    assert_eq!(status.code(), Some(0));
    assert_restored(&raw);
    raw
}

/// Asserts that the output ends the alternate screen and the reports of the mouse, and shows the cursor.
#[track_caller]
fn assert_restored(raw: &str) {
    let after = |on: &str, off: &str| raw.rfind(on) < raw.rfind(off);
    assert!(after("\x1b[?1049h", LEAVE), "the alternate screen remains");
    assert!(after("\x1b[?1000h", "\x1b[?1000l"), "the mouse remains");
    assert!(after("\x1b[?25l", "\x1b[?25h"), "the cursor remains hidden");
}

/// Whether a line of the screen ends with this text.
fn ends_with(end: &str) -> impl Fn(&str) -> bool {
    move |text| text.lines().any(|line| line.trim_end().ends_with(end))
}

/// A home whose model asks for one command, and then reports its end.
fn asking(command: &str) -> Home {
    Home::scripted(&format!(
        "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {command:?} }} }}]\n\
         [[steps]]\ntext = \"The end.\"\n"
    ))
}

/// Proves CLI-5: at every size, text is rendered, a call asks in a dialog, an allowed call runs, and the end restores the
/// terminal.
#[test]
fn conversation_works_at_every_size() {
    for size in SIZES {
        let home = Home::scripted(
            r##"
            [[steps]]
            expect = { last_user_contains = "hello there" }
            text = "This answer streams.\n"
            chunks = 5
            usage = { input = 1200, output = 34 }
            [[steps]]
            expect = { last_user_contains = "make it" }
            calls = [{ tool = "bash", input = { command = "touch made && echo it is made" } }]
            [[steps]]
            expect = { tool_result_contains = "it is made" }
            text = "Done."
            "##,
        );
        let mut terminal = start(&home, &[], size);
        terminal.type_keys("hello there\r");
        terminal.shows("This answer streams.");
        terminal.shows("34 out");
        terminal.type_keys("make it\r");
        terminal.shows(OPTIONS);
        terminal.shows("a question waits");
        assert!(!home.has("made"), "nothing runs before the decision");
        terminal.type_keys("1");
        terminal.shows("Done.");
        assert!(home.has("made"));
        leaves(terminal);
    }
}

/// Proves PERM-2, CLI-5: the first selected option of the dialog is "no", and a denied call does not run.
#[test]
fn denied_call_does_not_run() {
    for key in ["\r", "4", "n", "\x1b"] {
        let home = asking("touch made");
        let mut terminal = start(&home, &[], MEDIUM);
        terminal.type_keys("go\r");
        terminal.shows(OPTIONS);
        terminal.type_keys(key);
        terminal.shows("The end.");
        assert!(!home.has("made"), "{key:?} allowed it");
        leaves(terminal);
        let entries = audit(&home.database());
        assert_eq!(entries.len(), 1, "{key:?}");
        assert_eq!(entries[0].result, "blocked", "{key:?}");
    }
}

/// Proves PERM-2, CLI-4d: text that is typed or pasted while a dialog opens answers nothing and is not lost.
#[test]
fn typed_text_answers_no_dialog() {
    let home = asking("touch made");
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("go\r1yy");
    terminal.shows("a question waits");
    terminal.shows("› 1yy");
    terminal.shows(OPTIONS);
    terminal.type_keys("\x1b[200~1\r\x1b[201~");
    terminal.shows("› 1yy1");
    terminal.shows(OPTIONS);
    terminal.type_keys("yes");
    // The paste ended with a line break.
    terminal.until("the text in the prompt", |text| {
        let rows: Vec<&str> = text.lines().map(str::trim).collect();
        rows.windows(2).any(|rows| rows == ["› 1yy1", "yes"])
    });
    assert!(!home.has("made"));
    terminal.shows(OPTIONS);
    terminal.type_keys("4");
    terminal.shows("The end.");
    assert!(!home.has("made"));
}

/// Proves PERM-7, CLI-5: the reason of a refusal reaches the model, and a permanent approval has its scope.
#[test]
fn dialog_has_a_reason_and_a_scope() {
    let server = OpenAi::start(|n, _| match n {
        0 => Reply::calls("a", &[("bash", json!({ "command": "touch first" }))]),
        1 => Reply::calls("b", &[("bash", json!({ "command": "touch second" }))]),
        2 => Reply::calls("c", &[("bash", json!({ "command": "touch second" }))]),
        _ => Reply::text("The end."),
    });
    let home = Home::openai(&server);
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("go\r");
    terminal.shows("touch first");
    terminal.shows(OPTIONS);
    terminal.type_keys("5");
    terminal.shows("Reason:");
    terminal.type_keys("use second\r");
    terminal.shows("touch second");
    terminal.shows(OPTIONS);
    terminal.type_keys("3");
    terminal.shows("[p] in this project");
    terminal.type_keys("p");
    terminal.shows("The end.");
    assert!(!home.has("first") && home.has("second"));
    let refusal = server.requests()[1].messages().last().unwrap().to_string();
    assert!(refusal.contains("use second"), "{refusal}");
    leaves(terminal);
}

/// Proves CLI-5, AGT-2: the check-in is a dialog.
#[test]
fn check_in_is_a_dialog() {
    let server = OpenAi::start(|n, request| {
        if request.json()["tool_choice"] == "none" {
            return Reply::text("A summary.");
        }
        let call = json!({ "command": format!("echo {n}") });
        Reply::calls(&n.to_string(), &[("bash", call)])
    });
    let home = Home::openai(&server);
    home.more_config("[[tools.permissions.bash]]\npattern = \"echo *\"\naction = \"allow\"\n");
    let mut terminal = start(&home, &["--set", "agent.max_tool_iterations=2"], SMALL);
    terminal.type_keys("go\r");
    terminal.shows("2 rounds of tool calls");
    terminal.shows("[m] 2 more");
    terminal.type_keys("\r");
    terminal.shows("4 rounds of tool calls");
    terminal.shows("[n] stop");
    terminal.type_keys("n");
    terminal.shows("A summary.");
    leaves(terminal);
}

/// Proves CLI-4d, AGT-5: Ctrl-C and Esc cancel a request, a question and a command; the session continues.
#[test]
fn interrupt_cancels_the_turn() {
    let home = Home::scripted(
        r##"
        [[steps]]
        text = "too late"
        delay_ms = 600000
        [[steps]]
        calls = [{ tool = "bash", input = { command = "touch made" } }]
        [[steps]]
        text = "Still here."
        "##,
    );
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("a request\r");
    terminal.shows("waiting for the model");
    terminal.type_keys("\x1b");
    terminal.shows("cancelled; the partial response is stored");
    terminal.type_keys("a question\r");
    terminal.shows(OPTIONS);
    terminal.type_keys("\x03");
    terminal.until("the second cancel", |text| {
        text.matches("cancelled; the partial").count() == 2
    });
    assert!(!home.has("made"));
    terminal.shows(READY);
    terminal.type_keys("still there?\r");
    terminal.shows("Still here.");
    // At an empty prompt, pressed twice it leaves.
    terminal.shows(READY);
    terminal.type_keys("\x03");
    terminal.shows("Ctrl-C once more");
    terminal.type_keys("\x03");
    let (status, raw) = terminal.ends();
    assert_eq!(status.code(), Some(0));
    assert_restored(&raw);
}

/// Proves CLI-3, CLI-5: SIGTERM and SIGHUP exit with 130, and the conversation is stored.
#[test]
fn forced_end_restores_the_terminal_and_stores_the_conversation() {
    for signal in [Signal::TERM, Signal::HUP] {
        let home = Home::scripted(
            "[[steps]]\ntext = \"The first answer.\"\n[[steps]]\ntext = \"late\"\ndelay_ms = 600000\n",
        );
        let mut terminal = start(&home, &[], MEDIUM);
        terminal.type_keys("one\r");
        terminal.shows("The first answer.");
        terminal.type_keys("two\r");
        terminal.shows("waiting for the model");
        terminal.signal(signal);
        let (status, raw) = terminal.ends();
        assert_eq!(status.code(), Some(130), "{signal:?}");
        assert_restored(&raw);
        let mut again = start(&home, &["--continue"], MEDIUM);
        again.shows("The first answer.");
        again.type_keys("\x04");
        again.ends();
    }
}

/// Proves CLI-5: a terminal that changes its size while text streams shows the complete text, down to a size of one cell.
#[test]
fn resize_during_streaming_loses_nothing() {
    let text: Vec<String> = (1..=40).map(|n| format!("- item number {n}\\n")).collect();
    let home = Home::scripted(&format!(
        "[[steps]]\ntext = \"{}THE LAST LINE\"\nchunks = 80\nchunk_delay_ms = 15\n",
        text.concat()
    ));
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("go\r");
    terminal.shows("item number 2");
    for next in [SMALL, LARGE, (1, 1), (3, 7), MEDIUM] {
        let (rows, columns) = size(next);
        terminal.resize(rows, columns);
        let before = terminal.raw().len();
        wait_for("output in the new size", || {
            (terminal.raw().len() > before).then_some(())
        });
    }
    terminal.shows("THE LAST LINE");
    terminal.shows("item number 40");
    // Home shows the start, End the end.
    terminal.type_keys("\x1b[H");
    terminal.until("the first item", ends_with("item number 1"));
    terminal.type_keys("\x1b[F");
    terminal.shows("THE LAST LINE");
    terminal.type_keys("\x1b[5~");
    terminal.until("a page up", |text| !text.contains("THE LAST LINE"));
    terminal.type_keys("\x1b[6~");
    terminal.shows("THE LAST LINE");
    // The wheel scrolls as well.
    terminal.type_keys(&"\x1b[<64;5;5M".repeat(3));
    terminal.until("the wheel", |text| !text.contains("THE LAST LINE"));
    leaves(terminal);
}

/// Proves CLI-5: the search finds folded and old text.
#[test]
fn search_finds_old_text() {
    let text: Vec<String> = (1..=60).map(|n| format!("- item number {n}\\n")).collect();
    let home = Home::scripted(&format!("[[steps]]\ntext = \"{}\"\n", text.concat()));
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("go\r");
    terminal.shows("item number 60");
    terminal.type_keys("\x06");
    terminal.shows("search:");
    terminal.type_keys("number 7");
    terminal.shows("1 of 1");
    terminal.until("the match", ends_with("item number 7"));
    terminal.type_keys("\x7f1");
    terminal.shows("11 of 11");
    terminal.type_keys("\r");
    terminal.shows("10 of 11");
    terminal.type_keys("zzz");
    terminal.shows("not found");
    terminal.type_keys("\x1b");
    leaves(terminal);
}

/// Proves CLI-5: panels are next to the conversation if the terminal is wide, otherwise a key shows them.
#[test]
fn panels_show_tools_tasks_and_resources() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "add_task", input = { content = "write the test" } }]
        usage = { input = 1200, output = 34 }
        [[steps]]
        calls = [{ tool = "bash", input = { command = "./cargo test" } }]
        [[steps]]
        text = "Done."
        "##,
    );
    home.more_config("[[tools.permissions.bash]]\npattern = \"./cargo *\"\naction = \"allow\"\n");
    let passed: String = (0..300)
        .map(|n| format!("test case_{n} ... ok\n"))
        .collect();
    home.write(
        "cargo",
        &format!("#!/bin/sh\ncat <<'END'\nrunning 300 tests\n{passed}\ntest result: ok. 300 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\nEND\n"),
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path("cargo"), mode).unwrap();
    let mut terminal = start(&home, &[], LARGE);
    for title in ["Tools", "Tasks", "Resources"] {
        terminal.shows(title);
    }
    terminal.type_keys("go\r");
    terminal.shows("Done.");
    terminal.shows("write the test");
    terminal.shows("tokens   1.2k in, 34 out");
    terminal.until("the filter confidence", |text| {
        text.contains("F1 P0 B0") || text.contains("F0 P1 B0") || text.contains("F0 P0 B1")
    });
    terminal.until("the saved bytes", |text| !text.contains("saved    0 B"));
    for value in ["cost ", "context ", "saved ", "cache ", "gates ", "jobs "] {
        terminal.shows(value);
    }
    let (rows, columns) = size(SMALL);
    terminal.resize(rows, columns);
    terminal.until("no panel", |text| !text.contains("Resources"));
    terminal.type_keys("\x12");
    terminal.shows("Resources");
    terminal.type_keys("\x1b[6~\x1b[6~\x1b[6~");
    terminal.shows("write the test");
    terminal.type_keys("\x12");
    terminal.shows("Done.");
    leaves(terminal);
}

/// Proves CLI-5: a long output is folded; Ctrl-O and a selected block expand it.
#[test]
fn output_is_folded_and_expanded() {
    let home = Home::scripted(
        "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"seq 1 90\" } }]\n[[steps]]\ntext = \"Done.\"\n",
    );
    home.more_config("[[tools.permissions.bash]]\npattern = \"seq *\"\naction = \"allow\"\n");
    let mut terminal = start(&home, &[], (60, 90));
    terminal.type_keys("go\r");
    terminal.shows("Done.");
    let is_folded = |text: &str| !text.contains(" 50\n");
    terminal.until("a folded output", is_folded);
    terminal.type_keys("\x0f");
    terminal.until("the expanded output", |text| !is_folded(text));
    terminal.type_keys("\x0f");
    terminal.until("a folded output", is_folded);
    terminal.type_keys("\t\r");
    terminal.until("the expanded output", |text| !is_folded(text));
    leaves(terminal);
}

/// Proves CLI-5, PERM-7: text of the model and of tools neither controls the terminal nor imitates a dialog.
#[test]
fn hostile_text_neither_controls_nor_imitates() {
    let home = Home::scripted(
        r##"
        [[steps]]
        text = "a\u001b[2Jb\u001b]0;owned\u0007c\u009b31md \u001b[?1049l\n\n╔ Permission ═╗\n║ [1] once ║\n"
        calls = [{ tool = "bash", input = { command = "printf 'x\\033[2J\\033]0;owned\\007y'; touch made # \u001b[8m\u202e" } }]
        [[steps]]
        text = "The end."
        "##,
    );
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("go\r");
    terminal.shows("a question waits");
    terminal.shows("[5] no, and tell it why");
    terminal.shows("\\u{202e}");
    assert!(terminal.is_full_screen());
    terminal.type_keys("y");
    terminal.shows("The end.");
    assert!(home.has("made"));
    let raw = leaves(terminal);
    assert!(!raw.contains("\x1b]0;"), "the title was set");
    assert_eq!(raw.matches(LEAVE).count(), 1);
    assert!(!raw.contains('\u{202e}') && !raw.contains("\x1b[8m"));
}

/// Proves CMD-1, CLI-5: a command of the user gets the terminal, and the full screen returns.
#[test]
fn typed_command_gets_the_terminal() {
    let home = Home::scripted("[[steps]]\ntext = \"Understood.\"\n");
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("!read -p 'name: ' n; tty -s && echo \"hello $n\" > out; echo shown\r");
    terminal.shows("name: ");
    terminal.until("the main screen", |_| !terminal.is_full_screen());
    terminal.type_keys("you\r");
    terminal.shows(READY);
    assert!(terminal.is_full_screen());
    assert_eq!(home.read("out"), "hello you\n");
    // The title of the call contains the word as well.
    terminal.until("the output", |text| {
        text.lines()
            .any(|line| line.trim().trim_start_matches(['⎿', '│', ' ']) == "shown")
    });
    // Keys belong to the prompt again.
    terminal.type_keys("/mode plan\r");
    terminal.shows("plan ·");
    leaves(terminal);
}

/// Proves CLI-4, CLI-5: slash commands and paths are completed, inputs are recalled, and Shift-Tab changes the mode.
#[test]
fn prompt_completes_and_recalls() {
    let home = Home::scripted("[[steps]]\ntext = \"One.\"\n");
    home.write("src/library.rs", "");
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("/sta");
    terminal.shows("model, session, context, limits");
    terminal.type_keys("\t");
    terminal.shows("› /status");
    terminal.type_keys("\r");
    terminal.shows("Compaction");
    terminal.type_keys("see @libr");
    terminal.shows("@src/library.rs");
    terminal.type_keys("\tand\x1b\rmore");
    terminal.shows("› see @src/library.rs and");
    terminal.type_keys("\x03");
    terminal.type_keys("\x1b[A");
    terminal.shows("› /status");
    terminal.type_keys("\x03");
    terminal.shows(READY);
    terminal.type_keys("\x1b[Z");
    terminal.shows("auto-edit ·");
    terminal.type_keys("?");
    terminal.shows("any key closes this list");
    terminal.type_keys("x");
    terminal.until("no help", |text| !text.contains("any key closes"));
    leaves(terminal);
}

/// Proves CLI-4a, CLI-5: a line of code that is wider than the screen continues in the next row, while it streams and after
/// a resize.
#[test]
fn wide_code_is_shown_completely() {
    let home = Home::scripted(
        "[[steps]]\ntext = \"\"\"\n```rust\nfn answer() -> u32 { 42 } // the comment is wider than forty columns\n```\n\"\"\"\n",
    );
    let mut terminal = start(&home, &[], SMALL);
    terminal.type_keys("go\r");
    let shows = |terminal: &Terminal, rows: &[&str]| {
        terminal.until("all of the code", |text| {
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            lines.windows(rows.len()).any(|window| window == rows)
        });
    };
    let narrow = [
        "fn answer() -> u32 { 42 } // the comment",
        " is wider than forty columns",
    ];
    shows(&terminal, &narrow);
    let (rows, columns) = size(MEDIUM);
    terminal.resize(rows, columns);
    shows(&terminal, &[&narrow.concat()]);
    leaves(terminal);
}

/// Proves CLI-5, CLI-6: another session continues on the screen, and `--continue` shows the stored conversation.
#[test]
fn session_and_model_are_switched() {
    let home = Home::scripted("[[steps]]\ntext = \"The old answer.\"\n");
    let config = std::fs::read_to_string(home.config_file()).unwrap();
    let other = config.replace("name = \"script\"", "name = \"other\"");
    home.config(&format!("{config}{other}"));
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("old prompt\r");
    terminal.shows("The old answer.");
    leaves(terminal);
    let id = crate::rig::session_ids(&home.database()).remove(0);
    let mut terminal = start(&home, &[], MEDIUM);
    assert!(!terminal.text().contains("The old answer."));
    terminal.type_keys(&format!("/resume {id}\r"));
    terminal.shows("The old answer.");
    terminal.shows("> old prompt");
    terminal.type_keys("/model other\r");
    terminal.shows("requests go to");
    leaves(terminal);
}

/// Proves CLI-4d: an input that is submitted while the agent works is sent after the turn.
#[test]
fn input_during_a_turn_is_queued() {
    let home = Home::scripted(
        "[[steps]]\ntext = \"First.\"\ndelay_ms = 1500\n\
         [[steps]]\nexpect = { last_user_contains = \"second prompt\" }\ntext = \"Second.\"\n",
    );
    let mut terminal = start(&home, &[], MEDIUM);
    terminal.type_keys("first prompt\r");
    terminal.shows("waiting for the model");
    terminal.type_keys("second prompt\r");
    terminal.shows("Second.");
    leaves(terminal);
}

/// Proves CLI-3, CLI-5: without a terminal, or with one without escape sequences, the error names the fix.
#[test]
fn full_screen_needs_a_terminal() {
    let home = Home::scripted("[[steps]]\ntext = \"One.\"\n");
    let output = home.zeph(["--tui"]).stdin("").code(2);
    assert!(output.stderr.contains("--tui needs"), "{}", output.stderr);
    let output = home.zeph(["--tui", "tools", "list"]).code(2);
    assert!(output.stderr.contains("--tui"), "{}", output.stderr);
    let terminal = Terminal::under(&home, &["--tui"], &[("TERM", Some("dumb"))]);
    let (status, raw) = terminal.ends();
    assert_eq!(status.code(), Some(2));
    assert!(
        raw.contains("--tui needs a terminal with escape sequences"),
        "{raw}"
    );
}

/// Proves CLI-3 for `NO_COLOR`.
#[test]
fn no_color_draws_without_colours() {
    let home = asking("touch made");
    let mut terminal = Terminal::under(&home, &["--tui"], &[("NO_COLOR", Some("1"))]);
    terminal.shows(READY);
    terminal.type_keys("go\r");
    terminal.shows(OPTIONS);
    terminal.type_keys("4");
    terminal.shows("The end.");
    let raw = leaves(terminal);
    for colour in 30..=37 {
        assert!(!raw.contains(&format!("\x1b[{colour}m")), "{colour}");
    }
    assert!(!raw.contains("\x1b[38;5;"));
}
