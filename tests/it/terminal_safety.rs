//! Terminal safety: foreign text neither controls the terminal nor answers for the user, a plain terminal
//! gets no escape sequences, and each end restores the terminal.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Terminal, is_running, session_ids, wait_for};

/// The last line of a question.
const KEYS: &str = "[1] once";
/// The note on input that is ignored.
const IGNORED: &str = "press only one of the keys of the question";

/// A home whose model asks for one command.
fn asking(command: &str) -> Home {
    Home::scripted(&format!(
        "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {command:?} }} }}]\n\
         [[steps]]\ntext = \"The end.\"\n"
    ))
}

/// Proves PERM-7, PERM-7a: a key is a decision only if it arrives alone. Text that is typed or pasted at a
/// question is ignored, and the question stays open.
#[test]
fn only_a_single_key_answers_a_question() {
    let home = Home::scripted(
        "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"touch made\" } }]\n\
         [[steps]]\ntext = \"The end.\"\n",
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    // Text typed before the question does not answer it either.
    terminal.type_keys("go\ry");
    terminal.shows(KEYS);
    let mut ignored = 0;
    for text in [
        "why?",
        "yes\n",
        "1\n",
        "y\r",
        "yy",
        "\x1b[3~",
        "\x1b[200~y\x1b[201~",
        "\x1b[200~1\r\x1b[201~",
        "grün",
        "ÿ1",
    ] {
        terminal.type_keys(text);
        ignored += 1;
        wait_for(&format!("the note on {text:?}"), || {
            (terminal.raw().matches(IGNORED).count() >= ignored).then_some(())
        });
        assert!(!home.has("made"), "{text:?} answered");
    }
    for key in "why?".chars() {
        terminal.type_keys(&key.to_string());
    }
    wait_for("the last note", || {
        (terminal.raw().matches(IGNORED).count() > ignored).then_some(())
    });
    assert!(!home.has("made"));
    // A pause ends typed text.
    std::thread::park_timeout(std::time::Duration::from_millis(1200));
    terminal.type_keys("n");
    terminal.shows("The end.");
    assert!(!home.has("made"));
}

/// Proves PERM-7a, AGT-5a: a single key is a decision immediately, also with Enter after it.
#[test]
fn single_key_is_a_decision() {
    for (keys, made) in [
        (&["1"][..], true),
        (&["y"], true),
        (&["4"], false),
        (&["n"], false),
        (&["\x1b"], false),
        (&["\x04"], false),
    ] {
        let home = asking("touch made");
        let mut terminal = Terminal::start(&home, &["-p", "go"]);
        terminal.shows(KEYS);
        for key in keys {
            terminal.type_keys(key);
        }
        terminal.shows("The end.");
        assert_eq!(home.has("made"), made, "{keys:?}");
        assert_eq!(terminal.ends().0.code(), Some(0));
    }
}

/// Proves AGT-5, CLI-3: a signal during a question ends the program, restores the terminal and runs nothing,
/// at each entry point that asks.
#[test]
fn signal_during_a_question_restores_the_terminal() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        for entry in [
            &[][..],
            &["-p", "go"],
            &["tools", "call", "bash", "{\"command\": \"touch made\"}"],
        ] {
            let home = asking("touch made");
            let mut terminal = Terminal::start(&home, entry);
            if entry.is_empty() {
                terminal.prompts("");
                terminal.type_keys("go\r");
            }
            terminal.shows(KEYS);
            terminal.signal(signal);
            if entry.is_empty() && signal == Signal::INT {
                terminal.shows("cancelled; the partial response is stored");
                terminal.prompts("");
                terminal.signal(Signal::TERM);
            }
            let (status, _) = terminal.ends();
            assert_eq!(status.code(), Some(130), "{signal:?} {entry:?}");
            assert!(!home.has("made"));
            home.wait_until_alone();
        }
    }
}

/// Proves AGT-5, CLI-3: two concurrent signals restore the terminal too.
#[test]
fn concurrent_signals_restore_the_terminal() {
    for entry in [
        &["-p", "go"][..],
        &["tools", "call", "bash", "{\"command\": \"touch made\"}"],
    ] {
        let home = asking("touch made");
        let terminal = Terminal::start(&home, entry);
        terminal.shows(KEYS);
        terminal.signal(Signal::TERM);
        terminal.signal(Signal::TERM);
        terminal.signal(Signal::HUP);
        assert_eq!(terminal.ends().0.code(), Some(130), "{entry:?}");
        home.wait_until_alone();
    }
}

/// Proves AGT-5: a signal while a response streams, and at the prompt, restores the terminal.
#[test]
fn signal_at_the_prompt_or_a_response_restores_the_terminal() {
    for signal in [Signal::TERM, Signal::HUP] {
        let home = Home::scripted("[[steps]]\ntext = \"too late\"\ndelay_ms = 600000\n");
        let mut terminal = Terminal::start(&home, &[]);
        terminal.prompts("");
        terminal.type_keys("half");
        terminal.prompts("half");
        terminal.signal(signal);
        assert_eq!(terminal.ends().0.code(), Some(130));
        let mut terminal = Terminal::start(&home, &[]);
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows("waiting for the model");
        terminal.signal(signal);
        assert_eq!(terminal.ends().0.code(), Some(130));
        home.wait_until_alone();
    }
}

/// Environments of a terminal without escape sequences.
const DUMB: [&[(&str, Option<&str>)]; 3] = [
    &[("TERM", Some("dumb"))],
    &[("TERM", None)],
    &[("TERM", Some("")), ("NO_COLOR", Some("1"))],
];

/// Waits until a plain terminal echoes keys, because the program then reads lines.
fn reads_lines(terminal: &Terminal) {
    wait_for("the prompt", || (!terminal.echoes_nothing()).then_some(()));
}

/// Proves CLI-6, AGT-5: every way to leave a session prints the command that resumes it, on a line
/// of its own.
#[test]
fn left_session_prints_its_command_on_a_separate_line() {
    type Leave = fn(&mut Terminal);
    let ctrl_c: Leave = |terminal| {
        terminal.type_keys("\x03");
        terminal.shows("Ctrl-C once more");
        terminal.type_keys("\x03");
    };
    let ctrl_d: Leave = |terminal| terminal.type_keys("\x04");
    let esc: Leave = |terminal| {
        terminal.type_key_at_prompt("\x1b");
        terminal.type_keys("\x1b");
    };
    let term: Leave = |terminal| terminal.signal(Signal::TERM);
    let hup: Leave = |terminal| terminal.signal(Signal::HUP);
    let home = Home::scripted("[[steps]]\ntext = \"Hello.\"\n");
    home.zeph(["-p", "hi"]).code(0);
    let hint = format!(
        "zeph --resume {} resumes this session",
        session_ids(&home.database())[0]
    );
    let check = |env: &[(&str, Option<&str>)], name: &str, leave: Leave, code: i32| {
        let mut terminal = Terminal::under(&home, &["-c"], env);
        match env.is_empty() {
            true => terminal.prompts(""),
            false => terminal.until("the prompt", |text| text.trim_end().ends_with("\n>")),
        }
        leave(&mut terminal);
        let (status, raw) = terminal.ends();
        assert_eq!(status.code(), Some(code), "{name}: {raw:?}");
        let is_alone = |line: &str| !line.contains("> ") && !line.contains("› ");
        assert!(
            raw.lines()
                .any(|line| line.ends_with(&hint) && is_alone(line)),
            "{name}: {raw:?}"
        );
        home.wait_until_alone();
    };
    for (name, leave, code) in [
        ("Ctrl-C", ctrl_c, 0),
        ("Ctrl-D", ctrl_d, 0),
        ("SIGTERM", term, 130),
        ("SIGHUP", hup, 130),
    ] {
        check(DUMB[0], name, leave, code);
    }
    for (name, leave, code) in [
        ("Esc", esc, 0),
        ("SIGTERM", term, 130),
        ("SIGHUP", hup, 130),
    ] {
        check(&[], name, leave, code);
    }
}

/// Proves CLI-3, CLI-4: a plain terminal gets no escape sequence at the prompt, in questions, streamed text,
/// errors and logs. The terminal itself edits its lines.
#[test]
fn plain_terminal_gets_no_escape_sequence() {
    for env in DUMB {
        let home = Home::scripted(
            r##"
            [[steps]]
            expect = { last_user_contains = "first\nsecond" }
            text = "# Title\nThis **answer** streams `code`.\n"
            [[steps]]
            calls = [{ tool = "bash", input = { command = "touch made && echo bold" } }]
            [[steps]]
            text = "Done."
            [[steps]]
            text = "too late"
            delay_ms = 600000
            "##,
        );
        let mut terminal = Terminal::under(&home, &["-v"], env);
        terminal.shows("> ");
        terminal.type_keys("first\\\rsecond\r");
        terminal.shows("answer");
        terminal.shows(" out, ");
        reads_lines(&terminal);
        terminal.type_keys("make it\r");
        terminal.shows(KEYS);
        terminal.type_keys("3");
        terminal.shows("The permanent rules would be:");
        terminal.type_keys("b");
        terminal.until("the keys again", |text| text.matches(KEYS).count() == 2);
        terminal.type_keys("1");
        terminal.shows("Done.");
        assert!(home.has("made"));
        terminal.until("the second turn", |text| {
            text.matches(" out, ").count() == 2
        });
        reads_lines(&terminal);
        terminal.type_keys("wait\r");
        terminal.until("the third turn", |text| text.contains("wait"));
        wait_for("the request", || terminal.echoes_nothing().then_some(()));
        terminal.type_keys("\x03");
        terminal.shows("cancelled; the partial response is stored");
        reads_lines(&terminal);
        terminal.type_keys("/hepl\r");
        terminal.shows("help?");
        terminal.until("the prompt", |text| text.trim_end().ends_with("\n>"));
        terminal.type_keys("\x03");
        terminal.shows("Ctrl-C once more");
        terminal.type_keys("\x04");
        let (status, raw) = terminal.ends();
        assert_eq!(status.code(), Some(0), "{env:?}: {raw:?}");
        assert!(!raw.contains(['\x1b', '\u{9b}']), "{env:?}: {raw:?}");
        let one = Terminal::under(&home, &["-p", "x", "--no-such-flag"], env);
        let (_, raw) = one.ends();
        assert!(!raw.contains('\x1b'), "{env:?}: {raw:?}");
    }
}

/// Proves CLI-3: `NO_COLOR` disables colour, and the line editor works.
#[test]
fn no_color_leaves_no_colour() {
    let home = asking("touch made");
    let mut terminal = Terminal::under(&home, &[], &[("NO_COLOR", Some("1"))]);
    terminal.prompts("");
    terminal.type_keys("/status\r");
    terminal.shows("Model  ");
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows(KEYS);
    terminal.type_keys("1");
    terminal.shows("The end.");
    let (_, raw) = terminal.leaves();
    for sequence in raw.split('\x1b').skip(1) {
        let Some(rest) = sequence.strip_prefix('[') else {
            continue;
        };
        let end = rest
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let paints =
            rest[end..].starts_with('m') && !matches!(&rest[..end], "" | "0" | "39" | "49");
        assert!(!paints, "{sequence:?} in {raw:?}");
    }
}

/// Text that controls the terminal, reorders or hides.
fn hostile() -> String {
    let steers = "\u{1b}]0;title\u{7}\u{1b}[31m\u{9b}2J\r\u{8}";
    let hides = "\u{202e}\u{202a}\u{202c}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}\u{200b}\u{2060}\u{feff}\u{ad}\u{3164}\u{e0041}\u{2028}\u{2029}\u{fff9}";
    format!("a{steers}b{hides}c\u{fe0f}d\u{200d}e")
}

/// Asserts that a terminal received no control, reordering or hiding characters.
#[track_caller]
fn is_harmless(what: &str, raw: &str) {
    let steered = ["\u{1b}]0;title", "\u{9b}", "\u{8}"];
    for text in steered {
        assert!(!raw.contains(text), "{what}: {text:?} in {raw:?}");
    }
    let hidden = |c: char| {
        matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe0f}' | '\u{feff}' | '\u{fff9}' | '\u{e0000}'..='\u{e007f}')
    };
    let found: Vec<char> = raw.chars().filter(|c| hidden(*c)).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {raw:?}");
}

/// Proves CLI-4, PERM-7: text of the model, command output, titles, notices and errors reach the terminal
/// without characters that reorder or hide; a question shows them escaped.
#[test]
fn hostile_sequences_do_not_reach_the_terminal() {
    let hostile = hostile();
    let command = format!(
        "cat hostile.txt | tee copy; : '{}'",
        hostile.replace(['\r', '\u{8}'], "")
    );
    let calls: Vec<(&str, Value)> = vec![
        ("bash", json!({ "command": command })),
        ("read", json!({ "path": format!("{hostile}.txt") })),
        ("no_such_tool", json!({ "x": hostile })),
        (
            &*Box::leak(format!("tool{hostile}").into_boxed_str()),
            json!({}),
        ),
        (
            "write",
            json!({ "path": "b.txt", "content": format!("{hostile}\n") }),
        ),
    ];
    let said = hostile.clone();
    let server = OpenAi::start(move |n, _| match calls.get(n) {
        Some((tool, params)) => Reply::calls(&format!("c{n}"), &[(*tool, params.clone())]),
        None if n == calls.len() => Reply::text(&format!(
            "# {said}\n\n{said} **{said}**\n\n```\n{said}\n```\n| {said} |\n|---|\n| {said} |\n"
        )),
        None => Reply::error(400, "bad", &said),
    });
    let home = Home::openai(&server);
    home.write("hostile.txt", &format!("{hostile}\n"));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go \u{202e}there\r");
    terminal.shows(KEYS);
    let escaped = terminal.text();
    for shown in [
        "\\u{202e}",
        "\\u{1b}",
        "\\u{9b}",
        "\\u{200b}",
        "\\u{fe0f}",
        "\\u{200d}",
        "\\u{e0041}",
        "\\u{3164}",
    ] {
        assert!(
            escaped.contains(shown),
            "{shown} is not in the question:\n{escaped}"
        );
    }
    terminal.type_keys("1");
    terminal.until("the second question", |text| {
        text.contains("May write run?")
    });
    terminal.type_keys("1");
    terminal.shows(" out, ");
    terminal.prompts("");
    terminal.type_keys("again\r");
    terminal.shows("the conversation is stored");
    terminal.prompts("");
    terminal.type_keys("/sessions\r");
    terminal.shows("message");
    let (_, raw) = terminal.leaves();
    is_harmless("the session", &raw.replacen("go \u{202e}there", "", 99));
    let listed = home.zeph(["sessions", "list", "--json"]).code(0).json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    for args in [
        &["sessions", "list"][..],
        &["sessions", "show", &id],
        &["sessions", "export", &id],
        &["sessions", "list", "--json"],
        &["audit", "query"],
        &["audit", "query", "--json"],
        &["audit", "tail"],
        &["policy", "replay"],
        &["policy", "replay", "--json"],
        &["policy", "explain", "bash", &hostile],
        &["policy", "explain", "--json", "bash", &hostile],
        &["tools", "call", "read", "{\"path\": \"hostile.txt\"}"],
        &[
            "tools",
            "call",
            "read",
            "{\"path\": \"hostile.txt\"}",
            "--json",
        ],
        &[
            "tools",
            "call",
            "bash",
            "{\"command\": \"cat hostile.txt\"}",
            "--json",
            "--yes",
        ],
        &["tools", "show", &hostile],
        &["sessions", "show", &hostile],
        &["--set", &hostile, "tools", "list"],
        &["filter", "run", "--", "cat", "hostile.txt"],
        &["filter", "explain", &hostile],
        &["undo", "--list"],
    ] {
        let (_, raw) = Terminal::start(&home, args).ends();
        is_harmless(&format!("{args:?}"), &raw);
    }
    // JSON has the same value on a terminal and in a pipe.
    let (_, raw) = Terminal::start(&home, &["sessions", "export", &id]).ends();
    let shown: Value = serde_json::from_str(&raw.replace("\r\n", "\n")).unwrap();
    assert_eq!(shown, home.export(&id));
}

/// Proves CLI-4: emoji and joined letters of a transcript stay as they are.
#[test]
fn emoji_stay_readable() {
    let text = "❤\u{fe0f} 👩\u{200d}💻 می\u{200c}خواهم";
    let home = Home::scripted(&format!("[[steps]]\ntext = \"{text}\"\n"));
    let (_, raw) = Terminal::start(&home, &["-p", "x"]).ends();
    assert!(raw.contains(text), "{raw:?}");
}

/// Proves AGT-5, CLI-3: if the terminal hangs up, the processes of a user command end.
#[test]
fn hangup_leaves_no_process() {
    let home = asking("echo started | tee log; sleep 7219");
    let mut terminal = Terminal::start(&home, &["-p", "go"]);
    terminal.shows(KEYS);
    terminal.type_keys("1");
    terminal.shows("│ started");
    wait_for("the command", || is_running("sleep\x007219").then_some(()));
    terminal.signal(Signal::HUP);
    assert_eq!(terminal.ends().0.code(), Some(130));
    wait_for("its end", || (!is_running("sleep\x007219")).then_some(()));
}
