//! The interactive session through a real terminal.

use rustix::process::Signal;

use crate::rig::{Home, OpenAi, Reply, Terminal, is_running, wait_for};

/// The message after a cancelled turn.
const CANCELLED: &str = "cancelled; the partial response is stored";

/// Proves CLI-4, AGT-5a: text is streamed and rendered, a single key is a decision, the cost of the turn is
/// shown, and Ctrl-D restores the terminal.
#[test]
fn conversation_streams_asks_and_shows_its_cost() {
    let home = Home::scripted(
        r##"
        [[steps]]
        expect = { last_user_contains = "hello there" }
        text = "# Title\nThis **answer** streams `code`.\n\n- first\n"
        chunks = 9
        usage = { input = 1200, output = 34, cached = 1000 }
        [[steps]]
        expect = { last_user_contains = "make it" }
        text = "I make it."
        calls = [{ tool = "bash", input = { command = "touch made && echo it is made" } }]
        [[steps]]
        expect = { tool_result_contains = "it is made" }
        text = "Done."
        "##,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("hello there\r");
    terminal.shows("Title\nThis answer streams code.\n\n• first\n");
    terminal.shows("1,200 tokens in (1,000 cached), 34 out");
    terminal.prompts("");
    terminal.type_keys("make it\r");
    terminal.shows("  $ touch made && echo it is made");
    terminal.shows("[1] once  [2] this session  [3] always ›[4] no  [5] no, and tell it why");
    let question = terminal.text();
    assert_eq!(
        question.matches("touch made && echo it is made").count(),
        1,
        "the command is shown once:\n{question}"
    );
    assert!(!home.has("made"), "nothing runs before the answer");
    terminal.type_keys("1");
    terminal.shows("● $ touch made && echo it is made\n  ⎿ it is made\n");
    terminal.shows("Done.");
    assert!(home.has("made"));
    let (status, raw) = terminal.leaves();
    assert_eq!(status.code(), Some(0));
    assert!(raw.contains("\x1b[1manswer\x1b[0m"), "rendered: {raw:?}");
    let mode = std::fs::metadata(home.data().join("zeph/history.txt")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
        0o600
    );
}

/// Proves AGT-5: one Ctrl-C cancels the turn and keeps the session, during a request, a question or a
/// command; no process of the command remains.
#[test]
fn ctrl_c_cancels_the_turn() {
    let home = Home::scripted(
        r##"
        [[steps]]
        text = "too late"
        delay_ms = 600000
        [[steps]]
        calls = [{ tool = "bash", input = { command = "touch made" } }]
        [[steps]]
        calls = [{ tool = "bash", input = { command = "echo started | tee log; sleep 7213" } }]
        [[steps]]
        expect = { last_user_contains = "still there" }
        text = "Still here."
        "##,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("a request\r");
    terminal.shows("waiting for the model");
    terminal.type_keys("\x03");
    terminal.shows(CANCELLED);
    terminal.prompts("");
    terminal.type_keys("a question\r");
    terminal.shows("[1] once");
    terminal.type_keys("\x03");
    terminal.until("the second cancel", |text| {
        text.matches(CANCELLED).count() == 2
    });
    assert!(!home.has("made"));
    terminal.prompts("");
    terminal.type_keys("a command\r");
    terminal.shows("  $ echo started | tee log; sleep 7213");
    terminal.shows("[1] once");
    terminal.type_keys("y");
    terminal.shows("│ started");
    wait_for("the command", || is_running("sleep\x007213").then_some(()));
    terminal.type_keys("\x03");
    terminal.until("the third cancel", |text| {
        text.matches(CANCELLED).count() == 3
    });
    wait_for("the command's end", || {
        (!is_running("sleep\x007213")).then_some(())
    });
    terminal.prompts("");
    terminal.type_keys("still there?\r");
    terminal.shows("Still here.");
    terminal.prompts("");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves LLM-12: reasoning is one labelled line.
#[test]
fn reasoning_is_folded() {
    let home = Home::scripted(
        r##"
        [[steps]]
        reasoning = "The user greets.\nI greet back.\n\nBriefly."
        text = "Hello."
        chunks = 5
        "##,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("hi\r");
    terminal.shows("thinking: The user greets. … (3 lines)\n\nHello.");
    terminal.prompts("");
    assert!(!terminal.text().contains("Briefly"), "{}", terminal.text());
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves LLM-14: one line reports the attempts, and disappears with the response. Ctrl-C ends the wait.
#[test]
fn retries_are_one_line() {
    let page = "<html><title>502 Bad Gateway</title></html>";
    let server = OpenAi::start(move |n, _| match n {
        0..=2 => Reply::raw(502, "text/html", page),
        3 => Reply::text("At last."),
        _ => Reply::raw(503, "text/plain", "").header("Retry-After", "50"),
    });
    let home = Home::openai(&server);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("hello\r");
    terminal.shows("At last.");
    terminal.prompts("");
    let raw = terminal.raw();
    for words in ["attempt 2: ", "attempt 3: ", "attempt 4: "] {
        assert!(raw.contains(words), "{words}: {raw:?}");
    }
    let text = terminal.text();
    assert!(
        !text.contains("attempt") && !text.contains("Gateway"),
        "{text}"
    );
    terminal.type_keys("again\r");
    terminal.shows("attempt 2: ");
    terminal.type_keys("\x03");
    terminal.shows(CANCELLED);
    let (status, _) = terminal.leaves();
    assert_eq!(status.code(), Some(0));
    assert_eq!(server.requests().len(), 5);
}

/// Proves AGT-5, CLI-3: a signal during a command ends the program with exit code 130, and no process
/// remains.
#[test]
fn exit_during_a_turn_leaves_no_process() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "echo started | tee log; sleep 7214" } }]
        "##,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("run\r");
    terminal.shows("[1] once");
    terminal.type_keys("1");
    terminal.shows("│ started");
    wait_for("the command", || is_running("sleep\x007214").then_some(()));
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ends().0.code(), Some(130));
    wait_for("the command's end", || {
        (!is_running("sleep\x007214")).then_some(())
    });
}

/// Proves AGT-5: a second Ctrl-C ends the program while the first waits for a command that does not end.
#[test]
fn second_ctrl_c_ends_the_program() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "trap 'echo stubborn' INT TERM; echo started; while :; do sleep 7215; done" } }]
        "##,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("run\r");
    terminal.shows("[1] once");
    terminal.type_keys("1");
    terminal.shows("│ started");
    terminal.type_keys("\x03");
    terminal.shows("│ stubborn");
    terminal.type_keys("\x03");
    assert_eq!(terminal.ends().0.code(), Some(130));
    wait_for("the command's end", || {
        (!is_running("sleep\x007215")).then_some(())
    });
}

/// Proves AGT-5 for the prompt: Ctrl-C clears a line, and twice on an empty line ends the session; SIGHUP
/// ends it with the terminal restored.
#[test]
fn signals_and_ctrl_c_at_the_prompt_end_the_session() {
    let home = Home::scripted("[[steps]]\ntext = \"unused\"\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("half a thought");
    terminal.prompts("half a thought");
    terminal.type_keys("\x03");
    terminal.prompts("");
    terminal.type_keys("\x03");
    terminal.shows("Ctrl-C once more");
    terminal.prompts("");
    terminal.type_keys("\x03");
    assert_eq!(terminal.ends().0.code(), Some(0));

    let terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.signal(Signal::HUP);
    assert_eq!(terminal.ends().0.code(), Some(130));
}

/// Proves AGT-5, CLI-3: a second Ctrl-C ends the session, also if the turn has ended before.
#[test]
fn double_ctrl_c_ends_the_session() {
    let home = Home::scripted("[[steps]]\ntext = \"too late\"\ndelay_ms = 600000\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("a request\r");
    terminal.shows("waiting for the model");
    terminal.type_keys("\x03");
    terminal.shows(CANCELLED);
    terminal.prompts("");
    terminal.type_keys("\x03");
    assert_eq!(terminal.ends().0.code(), Some(130));
}

/// Proves CLI-4 for line editing: a paste of several lines is one input, a trailing backslash
/// and Alt-Enter continue, commands are completed, and the reason of a refusal reaches the model.
#[test]
fn line_editing_supports_pastes_lines_and_reasons() {
    let home = Home::scripted(
        r##"
        [[steps]]
        expect = { last_user_contains = "line one\nline two" }
        text = "Pasted."
        [[steps]]
        expect = { last_user_contains = "one \\\ntwo" }
        text = "Unchanged."
        [[steps]]
        expect = { last_user_contains = "first\nsecond\nthird" }
        calls = [{ tool = "bash", input = { command = "touch made" } }]
        [[steps]]
        expect = { tool_result_contains = "use another name" }
        text = "Understood."
        "##,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("\x1b[200~line one\rline two\x1b[201~");
    terminal.shows("› line one\n… line two");
    terminal.type_keys("\r");
    terminal.shows("Pasted.");
    terminal.prompts("");
    terminal.type_keys("\x1b[200~one \\\rtwo\x1b[201~");
    terminal.shows("› one \\\n… two");
    terminal.type_keys("\r");
    terminal.shows("Unchanged.");
    terminal.prompts("");
    terminal.type_keys("first\\\r");
    terminal.shows("› first\n…");
    terminal.type_keys("second");
    terminal.shows("… second");
    terminal.type_keys("\x1b\r");
    terminal.type_keys("third");
    terminal.shows("… third");
    terminal.type_keys("\r");
    terminal.shows("[5] no, and tell it why");
    terminal.type_keys("5");
    terminal.shows("tell it why:");
    terminal.type_keys("use another name\n");
    terminal.shows("Understood.");
    assert!(!home.has("made"));
    terminal.prompts("");
    terminal.type_keys("/stat\t");
    terminal.shows("› /status");
    terminal.type_keys("\r");
    terminal.shows("Model          scripted");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves PERM-2, AGT-5a, AGT-5 for one turn at a terminal: a key is a decision, and Ctrl-C in the question
/// ends with exit code 130, a restored terminal and no changes.
#[test]
fn one_turn_asks_at_the_terminal() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "bash", input = { command = "echo made > made" } }]
        [[steps]]
        text = "The **end**."
        "##,
    );
    let mut terminal = Terminal::start(&home, &["-p", "make it"]);
    terminal.shows("[1] once");
    terminal.type_keys("\x03");
    assert_eq!(terminal.ends().0.code(), Some(130));
    assert!(!home.has("made"));

    let mut terminal = Terminal::start(&home, &["-p", "make it"]);
    terminal.shows("[1] once");
    terminal.type_keys("1");
    terminal.shows("The end.");
    assert_eq!(terminal.ends().0.code(), Some(0));
    assert_eq!(home.read("made"), "made\n");
}

/// Stored command output cannot control the terminal when its session is shown.
#[test]
fn stored_session_is_shown_without_escape_sequences() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [{ tool = "bash", input = { command = 'printf "\033]0;title\007\033[31mred\n"' } }]
        [[steps]]
        text = "seen"
        "##,
    );
    home.zeph(["-p", "print it", "--yes"]).code(0);
    let listed = home.zeph(["sessions", "list", "--json"]).code(0);
    let id = listed.json()[0]["id"].as_str().unwrap().to_owned();
    let terminal = Terminal::start(&home, &["sessions", "show", &id]);
    terminal.shows("seen");
    let (status, raw) = terminal.ends();
    assert_eq!(status.code(), Some(0));
    assert!(raw.contains("red") && !raw.contains('\x1b'), "{raw:?}");
}

/// Proves SH-34: a command that the user typed is not a transaction.
#[test]
fn typed_command_is_not_rolled_back() {
    let home = Home::scripted("[[steps]]\ntext = \"Hello.\"\n");
    home.more_config("[tools.shell]\ntransactional = true\nauto_rollback = true\n");
    home.write("notes", "old\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("!rm notes; exit 1\r");
    terminal.shows("exit code: 1");
    terminal.prompts("");
    assert!(!home.has("notes"));
    assert!(!terminal.text().contains("rolled back"));
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
}
