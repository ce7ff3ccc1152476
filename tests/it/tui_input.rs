//! Input on the full screen, and everything that the line interface does as well: the editor, vi, the list of sessions,
//! title and notifications.

use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use crate::rig::{Home, OpenAi, Reply, Terminal, wait_for};

/// The end of the status bar: no question is open.
const READY: &str = "? keys";
/// A command that ends when the file `go` exists.
const WAITS: &str = "echo started; until [ -e go ]; do sleep 0.05; done; echo ended";

#[track_caller]
fn start(home: &Home, env: &[(&str, Option<&str>)]) -> Terminal {
    let terminal = Terminal::under(home, &["--tui"], env);
    terminal.shows(READY);
    terminal
}

/// Leaves the full screen with Ctrl-D. Returns its complete output.
#[track_caller]
fn leaves(mut terminal: Terminal) -> String {
    terminal.shows(READY);
    terminal.type_keys("\x04");
    let (status, raw) = terminal.ends();
    assert_eq!(status.code(), Some(0));
    raw
}

/// A home whose model runs `command`, then does `then`.
fn running(command: &str, then: &str) -> Home {
    let home = Home::scripted(&format!(
        "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {command:?} }} }}]\n{then}"
    ));
    home.more_config("[[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n");
    home
}

/// An editor that adds words to the text after the file `edit` exists.
fn editor(home: &Home) -> String {
    home.write(
        "editor.sh",
        "#!/bin/sh\necho edits\nuntil [ -e edit ]; do sleep 0.05; done\n\
         printf '%s from the editor' \"$(cat \"$1\")\" > \"$1\"\n",
    );
    format!("sh {}", home.path("editor.sh").display())
}

/// Proves CLI-4d, CLI-5: text that is submitted during a turn is sent at its next step.
#[test]
fn submitted_text_is_sent_at_the_next_step() {
    let home = running(
        WAITS,
        "[[steps]]\nexpect = { last_user_contains = \"also the tests\", tool_result_contains = \"ended\" }\n\
         text = \"Both done.\"\n",
    );
    let mut terminal = start(&home, &[]);
    terminal.type_keys("go\r");
    terminal.shows("started");
    terminal.type_keys("also the tests\r");
    terminal.shows("queued: also the tests");
    home.write("go", "");
    terminal.shows("Both done.");
    terminal.shows("> also the tests");
    leaves(terminal);
}

/// Proves CLI-4d, CLI-5: Up takes a submitted text back, and an interrupted turn returns the others to the prompt. The mode
/// changes during the turn.
#[test]
fn submitted_text_is_never_lost() {
    let home = running(WAITS, "[[steps]]\ntext = \"Next.\"\n");
    let mut terminal = start(&home, &[]);
    terminal.type_keys("go\r");
    terminal.shows("started");
    terminal.type_keys("one\rtwo\r");
    terminal.shows("queued: two");
    terminal.type_keys("\x1b[A");
    terminal.shows("› two");
    terminal.until("one queued text", |text| {
        text.matches("queued:").count() == 1
    });
    terminal.type_keys("\x1b[Z");
    terminal.shows("auto-edit ·");
    terminal.type_keys("\x1b");
    terminal.shows("cancelled; the partial response is stored");
    terminal.until("both texts", |text| {
        let text: Vec<&str> = text.lines().map(str::trim).collect();
        text.windows(2).any(|rows| rows == ["› one", "two"])
    });
    terminal.type_keys("\x03");
    leaves(terminal);
}

/// Proves CLI-4d, CLI-5: Ctrl-G opens the prompt in the user's editor, also during a turn, which continues meanwhile.
#[test]
fn editor_of_the_user_changes_the_prompt() {
    let home = running(
        WAITS,
        "[[steps]]\nexpect = { last_user_contains = \"more from the editor\" }\ntext = \"Got it.\"\n",
    );
    let editor = editor(&home);
    let mut terminal = start(&home, &[("VISUAL", Some(&editor))]);
    home.write("edit", "");
    terminal.type_keys("go\x07");
    terminal.shows("› go from the editor");
    std::fs::remove_file(home.path("edit")).unwrap();
    terminal.type_keys("\r");
    terminal.shows("started");
    terminal.type_keys("more\x07");
    terminal.until("the editor", |text| {
        text.contains("edits") && !terminal.is_full_screen()
    });
    home.write("edit", "");
    terminal.shows("› more from the editor");
    assert!(terminal.is_full_screen());
    terminal.type_keys("\r");
    terminal.shows("queued: more from");
    home.write("go", "");
    terminal.shows("Got it.");
    leaves(terminal);
}

/// Proves CLI-4d, CLI-3: an editor that is missing or fails leaves the text as it is, and the message names the fix.
#[test]
fn editor_that_fails_changes_nothing() {
    for (editor, message) in [
        (None, "Ctrl-G needs $VISUAL or $EDITOR"),
        (
            Some("/no/such/editor"),
            "set $VISUAL or $EDITOR to another editor",
        ),
    ] {
        let home = Home::scripted("[[steps]]\ntext = \"One.\"\n");
        let mut terminal = start(&home, &[("VISUAL", editor)]);
        terminal.type_keys("text\x07");
        terminal.shows(message);
        terminal.shows("› text");
        terminal.type_keys("\x03");
        leaves(terminal);
    }
}

/// Proves CLI-4d, CLI-5: `[terminal] keys = "vi"`.
#[test]
fn vi_keys_edit_the_prompt() {
    let home = Home::scripted(
        "[[steps]]\nexpect = { last_user_contains = \"abc\" }\ntext = \"Got it.\"\n",
    );
    home.more_config("[terminal]\nkeys = \"vi\"\n");
    let mut terminal = start(&home, &[]);
    terminal.type_keys("bcdd e");
    terminal.shows("› bcdd e");
    terminal.type_keys("\x1b");
    terminal.shows(": bcdd e");
    terminal.type_keys("0xxxxxxiabc");
    terminal.shows("› abc");
    terminal.type_keys("\r");
    terminal.shows("Got it.");
    leaves(terminal);
}

/// Proves CLI-4c, CLI-5: title and notification of the full screen follow `[terminal]`, and the title is restored.
#[test]
fn title_and_notification_follow_the_configuration() {
    let shown = |config: &str| {
        let home = Home::scripted(
            "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"touch x\" } }]\n[[steps]]\ntext = \"Done.\"\n",
        );
        home.more_config(&format!("[terminal]\n{config}\n"));
        let mut terminal = start(&home, &[]);
        terminal.type_keys("go\r");
        terminal.shows("[1] once");
        terminal.type_keys("1");
        terminal.shows("Done.");
        leaves(terminal)
    };
    let raw = shown("notify = \"osc9\"\nnotify_after_secs = 0");
    for part in [
        "\x1b[22;2t",
        "\x1b]2;zeph: working",
        "\x1b]2;zeph: question",
        "\x1b]2;zeph: ready",
        "\x1b]9;zeph: a question waits for your decision\x07",
        "\x1b]9;zeph: the turn has ended\x07",
        "\x1b[23;2t",
    ] {
        assert!(raw.contains(part), "{part:?}: {raw:?}");
    }
    let raw = shown("notify = \"bell\"\nnotify_after_secs = 0\ntitle = false");
    assert!(raw.contains('\x07') && !raw.contains("\x1b]2;"), "{raw:?}");
    let raw = shown("title = false");
    assert!(!raw.contains('\x07'), "a short turn is not signalled");
}

/// Proves CLI-6, CLI-5: `/resume` without an id shows the list of sessions, which can be searched and left.
#[test]
fn resume_without_an_id_shows_the_list() {
    let home = Home::scripted("[[steps]]\ntext = \"An answer.\"\n");
    for prompt in ["the first session", "the second session"] {
        home.zeph(["-p", prompt]).code(0);
    }
    let mut terminal = start(&home, &[]);
    terminal.type_keys("/resume\r");
    terminal.shows("Sessions of this directory: 2");
    terminal.type_keys("\x1b");
    terminal.shows("the session stays the same");
    terminal.type_keys("/resume\r");
    terminal.shows("Sessions of this directory: 2");
    terminal.type_keys("first");
    terminal.shows("Sessions of this directory: 1");
    terminal.type_keys("\r");
    terminal.shows("> the first session");
    terminal.shows("An answer.");
    assert!(!terminal.text().contains("the second session"));
    leaves(terminal);
}

/// Proves CLI-4c, CLI-5: the status bar shows the branch and the cost.
#[test]
fn status_bar_shows_branch_and_cost() {
    let server = OpenAi::replies([Reply::text("One.")]);
    let home = Home::openai(&server);
    let config = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&config.replacen(
        "[[llm.providers]]",
        "[[llm.providers]]\nprices = { input = 2, output = 10.0, cached_input = 0.5 }",
        1,
    ));
    home.write(".git/HEAD", "ref: refs/heads/feature/x\n");
    let mut terminal = start(&home, &[]);
    terminal.shows("· feature/x");
    terminal.type_keys("go\r");
    terminal.shows("$0.0013 ");
    home.write(".git/HEAD", "ref: refs/heads/other\n");
    terminal.type_keys("/cost\r");
    terminal.shows("· other");
    leaves(terminal);
}

/// Proves CLI-5: a click expands a call, and folds it again.
#[test]
fn click_expands_a_call() {
    let home = running("seq 1 90", "[[steps]]\ntext = \"Done.\"\n");
    let size = |cells| NonZeroU16::new(cells).unwrap();
    let mut terminal = Terminal::sized(&home, &["--tui"], size(60), size(90));
    terminal.shows(READY);
    terminal.type_keys("go\r");
    terminal.shows("Done.");
    let row = |terminal: &Terminal, words: &str| {
        let text = terminal.text();
        1 + text.lines().position(|line| line.contains(words)).unwrap()
    };
    let click = format!("\x1b[<0;5;{}M", row(&terminal, "$ seq 1 90"));
    let is_folded = |text: &str| !text.contains(" 50\n");
    terminal.until("a folded output", is_folded);
    terminal.type_keys(&click);
    terminal.until("the expanded output", |text| !is_folded(text));
    // The end is followed, so that the title is now above the screen. A row of the output folds it, too.
    let click = format!("\x1b[<0;5;{}M", row(&terminal, " 60"));
    terminal.type_keys(&click);
    terminal.until("a folded output", is_folded);
    leaves(terminal);
}

/// Proves CLI-3, AGT-5, CLI-5: a second Ctrl-C ends the full screen while the first waits for a command that does not end.
#[test]
fn second_ctrl_c_exits_with_130() {
    let home = running(
        "trap 'echo stubborn' INT TERM; echo started; while :; do sleep 7216; done",
        "",
    );
    let mut terminal = start(&home, &[]);
    terminal.type_keys("run\r");
    terminal.shows("started");
    terminal.type_keys("\x03");
    terminal.shows("stubborn");
    terminal.type_keys("\x03");
    assert_eq!(terminal.ends().0.code(), Some(130));
    home.wait_until_alone();
}

/// Proves CLI-4b: the time of a turn has no part in which a question waited, in both interfaces.
#[test]
fn time_of_a_question_is_not_shown() {
    const PAUSE: Duration = Duration::from_millis(1500);
    for args in [&[][..], &["--tui"]] {
        let home = Home::scripted(
            "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"touch made\" } }]\n[[steps]]\ntext = \"Done.\"\n",
        );
        let mut terminal = Terminal::start(&home, args);
        terminal.shows("›");
        let begin = Instant::now();
        terminal.type_keys("go\r");
        terminal.shows("[1] once");
        let asked = Instant::now();
        wait_for("a pause", || (asked.elapsed() >= PAUSE).then_some(()));
        terminal.type_keys("1");
        terminal.shows("tokens in");
        let took = begin.elapsed().as_secs_f64();
        let text = terminal.text();
        let line = text
            .lines()
            .find(|line| line.contains("tokens in"))
            .unwrap();
        let shown = line
            .split(" out, ")
            .nth(1)
            .and_then(|rest| rest.split(" s").next());
        let shown: f64 = shown
            .and_then(|time| time.parse().ok())
            .unwrap_or_else(|| panic!("{line}"));
        assert!(shown + 1.4 <= took, "{shown} s of {took} s: {text}");
    }
}

/// Proves CLI-3, CLI-6: if the terminal is closed, both interfaces end without a panic, and the conversation remains.
#[test]
fn closed_terminal_stores_the_conversation() {
    for args in [&[][..], &["--tui"]] {
        for is_working in [false, true] {
            let home = Home::scripted(
                "[[steps]]\ntext = \"The first answer.\"\n[[steps]]\ntext = \"late\"\ndelay_ms = 600000\n",
            );
            let mut terminal = Terminal::start(&home, args);
            terminal.shows("›");
            terminal.type_keys("one\r");
            terminal.shows("The first answer.");
            terminal.shows("tokens in");
            if is_working {
                terminal.until("the prompt", |text| text.contains("›"));
                terminal.type_keys("two\r");
                terminal.shows("waiting for the model");
            }
            let status = terminal.closes();
            assert_eq!(
                status.code(),
                Some(130),
                "{args:?}, in a turn: {is_working}"
            );
            let listed = home.zeph(["sessions", "list", "--json"]).code(0).json();
            let session = home.export(listed[0]["id"].as_str().unwrap());
            assert!(
                session.to_string().contains("The first answer."),
                "{session}"
            );
        }
    }
}

/// Proves CLI-3: a closed terminal ends both interfaces at their prompt, also if its signal is blocked.
#[cfg(target_os = "linux")]
#[test]
fn closed_terminal_without_its_signal_ends_the_session() {
    for args in [&[][..], &["--tui"]] {
        let home = Home::scripted("[[steps]]\ntext = \"The first answer.\"\n");
        let mut terminal = Terminal::without_hangup(&home, args);
        terminal.shows("›");
        terminal.type_keys("one\r");
        terminal.shows("tokens in");
        assert_eq!(terminal.closes().code(), Some(130), "{args:?}");
    }
}

/// Proves CLI-4, CLI-4d: while 10,000 lines stream, a key is shown before the end, and no line is lost.
#[test]
fn keys_are_shown_while_much_text_streams() {
    let lines: String = (1..=10_000)
        .map(|n| format!("line {n} of the text\\n\\n"))
        .collect();
    for (args, echo) in [(&[][..], "» typed"), (&["--tui"], "› typed")] {
        let home = Home::scripted(&format!(
            "[[steps]]\ntext = \"{lines}THE END\"\nchunks = 500\nchunk_delay_ms = 4\n"
        ));
        let size = |cells| NonZeroU16::new(cells).unwrap();
        let mut terminal = Terminal::sized(&home, args, size(40), size(200));
        terminal.shows("›");
        terminal.type_keys("go\r");
        terminal.until("the stream", |text| text.contains(" of the text"));
        terminal.type_keys("typed");
        terminal.until(echo, |text| {
            assert!(
                !text.contains("THE END"),
                "the key was shown after the text"
            );
            text.contains(echo)
        });
        terminal.shows("THE END");
        terminal.shows("line 10000 of the text");
        if args.is_empty() {
            let raw = terminal.raw();
            for n in [1, 2, 4999, 9999] {
                assert_eq!(
                    raw.matches(&format!("line {n} of the text\r")).count(),
                    1,
                    "{n}"
                );
            }
        } else {
            terminal.type_keys("\x1b[1;5H");
            terminal.shows("line 1 of the text");
        }
    }
}

/// Proves NAT-3, CLI-5: the failure of a scheduled task is a message of the full screen, and nothing is written raw.
#[test]
fn failed_scheduled_task_is_a_message() {
    let server = OpenAi::start(|_, _| Reply::error(400, "invalid_request_error", "it is broken"));
    let home = Home::openai(&server);
    let terminal = start(&home, &[]);
    home.zeph(["scheduler", "add", "now", "Look."]).code(0);
    terminal.shows("scheduled task 1 failed:");
    let rows: Vec<String> = terminal
        .text()
        .lines()
        .map(|row| row.trim_end().to_owned())
        .collect();
    assert!(
        rows.last().is_some_and(|row| row.ends_with(READY)),
        "{rows:?}"
    );
    let raw = leaves(terminal);
    assert!(!raw.contains("error: "), "{raw:?}");
}
