//! The line interface at a terminal: the live region, typed input during a turn, keys, questions and notifications.

use std::num::NonZeroU16;

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, Terminal, wait_for};

/// The message after a cancelled turn.
const CANCELLED: &str = "cancelled; the partial response is stored";

fn size(columns: u16, rows: u16) -> (NonZeroU16, NonZeroU16) {
    (rows.try_into().unwrap(), columns.try_into().unwrap())
}

/// A home whose model runs `command`, then says `then`.
fn running(command: &str, then: &str) -> Home {
    Home::scripted(&format!(
        "[[steps]]\ncalls = [{{ tool = \"bash\", input = {{ command = {command:?} }} }}]\n{then}"
    ))
}

/// Starts a session without colours, and sends `go`.
fn started(home: &Home) -> Terminal {
    let mut terminal = Terminal::under(home, &[], &[("NO_COLOR", Some("1"))]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal
}

/// A command that ends when the file `go` exists.
const WAITS: &str = "echo started; until [ -e go ]; do sleep 0.05; done; echo ended";

/// Proves CLI-4d, CLI-4: text that is typed while the agent works is shown, can be edited, is sent
/// at the next step after the results, and is part of the conversation and of the input history.
#[test]
fn typed_text_is_sent_at_the_next_step() {
    let home = running(
        WAITS,
        "[[steps]]\nexpect = { last_user_contains = \"also the tests\", tool_result_contains = \"ended\" }\n\
         text = \"Both done.\"\n",
    );
    let mut terminal = started(&home);
    terminal.shows("│ started");
    terminal.type_keys("also the texts");
    terminal.shows("» also the texts");
    terminal.type_keys("\x1b[D\x1b[D\x7fs");
    terminal.shows("» also the tests");
    terminal.type_keys("\r");
    terminal.shows("» also the tests (queued)");
    home.write("go", "");
    terminal.shows("Both done.");
    terminal.shows("> also the tests");
    terminal.prompts("");
    terminal.type_keys("\x1b[A");
    terminal.prompts("also the tests");
    terminal.type_keys("\x03");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    let listed = home.zeph(["sessions", "list", "--json"]).code(0).json();
    let session = home.export(listed[0]["id"].as_str().unwrap());
    assert!(
        session.to_string().contains("also the tests"),
        "{session:#}"
    );
}

/// Proves CLI-4d: without another step, the text is sent after the turn; a command waits for the end of the turn.
#[test]
fn typed_text_is_sent_after_the_turn() {
    let home = Home::scripted(
        r##"
        [[steps]]
        text = "First."
        delay_ms = 3000
        [[steps]]
        expect = { last_user_contains = "and then" }
        text = "Second."
        "##,
    );
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("waiting for the model");
    terminal.type_keys("/cost\r");
    terminal.shows("» /cost (queued)");
    terminal.type_keys("and then\r");
    terminal.shows("» and then (queued)");
    terminal.shows("First.");
    terminal.shows("Second.");
    terminal.prompts("");
    let text = terminal.text();
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}: {text}"))
    };
    assert!(place("First.") < place("> /cost") && place("> /cost") < place("Second."));
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves CLI-4d: Esc interrupts the turn, and the typed text returns to the prompt.
#[test]
fn esc_interrupts_and_returns_the_typed_text() {
    let home = Home::scripted("[[steps]]\ntext = \"too late\"\ndelay_ms = 600000\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("waiting for the model");
    terminal.type_keys("sent\r");
    terminal.shows("» sent (queued)");
    terminal.type_keys("half");
    terminal.shows("» half");
    terminal.type_keys("\x1b");
    terminal.shows(CANCELLED);
    terminal.shows("› sent\n… half");
    terminal.type_keys("\x03");
    terminal.prompts("");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves CLI-4d, PERM-7a: keys that were typed before a question are no answer to it, and are not lost. Text that
/// imitates a question does not get the keys.
#[test]
fn keys_before_a_question_remain_in_the_input() {
    let imitation = "? May bash run?  risk: safe\\n  $ ls\\n  [1] once  [4] no";
    let home = Home::scripted(&format!(
        "[[steps]]\ntext = \"{imitation}\"\nchunks = 40\nchunk_delay_ms = 40\n\
         calls = [{{ tool = \"bash\", input = {{ command = \"touch made\" }} }}]\n\
         [[steps]]\ntext = \"The end.\"\n"
    ));
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("? May bash run?");
    terminal.type_keys("1");
    terminal.shows("» 1");
    terminal.shows("›[4] no");
    assert!(!home.has("made"));
    terminal.type_keys("n");
    terminal.shows("The end.");
    terminal.prompts("1");
    assert!(!home.has("made"));
}

/// Proves AGT-5a, CLI-4b: arrows select an answer and Enter takes it; Esc returns from the reason to the question.
#[test]
fn arrows_and_enter_answer_a_question() {
    let home = running("touch made", "[[steps]]\ntext = \"The end.\"\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("›[4] no");
    terminal.type_keys("5");
    terminal.shows("tell it why:");
    terminal.type_keys("\x1b");
    terminal.shows("›[4] no");
    for selected in ["›[3] always", "›[2] this session", "›[1] once"] {
        terminal.type_keys("\x1b[A");
        terminal.shows(selected);
    }
    terminal.type_keys("\r");
    terminal.shows("The end.");
    assert!(home.has("made"));
}

/// Proves CLI-4b: a long result shows its end and its errors, and Ctrl-O shows all of it, also after a short one.
#[test]
fn long_result_shows_its_end_and_errors() {
    let command = "seq 1 150; echo 'error: it broke'; seq 151 300";
    let rest = "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"echo short\" } }]\n\
                [[steps]]\ntext = \"Done.\"\n";
    let home = running(command, rest);
    let mut terminal = started(&home);
    terminal.shows("Done.");
    terminal.prompts("");
    let text = terminal.text();
    for line in ["301 lines", "    error: it broke\n", "    300\n"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!terminal.raw().contains("    42\r"), "{text}");
    terminal.type_key_at_prompt("\x0f");
    wait_for("the whole result", || {
        terminal.raw().contains("    42\r").then_some(())
    });
    terminal.prompts("");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves CLI-4b: each result of a batch is below its own call, in the order of the calls.
#[test]
fn results_of_a_batch_are_below_their_calls() {
    let calls = [
        ("read", json!({"path": "a.txt"})),
        ("read", json!({"path": "b.txt"})),
        ("list_directory", json!({"path": "."})),
    ];
    let server = OpenAi::replies([Reply::calls("c", &calls), Reply::text("Read.")]);
    let home = Home::openai(&server);
    home.write("a.txt", "alpha\n");
    home.write("b.txt", "beta\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("Read.");
    let text = terminal.text();
    let mut rest = text.as_str();
    for words in [
        "● Read a.txt",
        "alpha",
        "● Read b.txt",
        "beta",
        "● List .",
        "b.txt",
    ] {
        let at = rest.find(words);
        let at = at.unwrap_or_else(|| panic!("{words} is missing or too early:\n{text}"));
        rest = &rest[at + words.len()..];
    }
}

/// Proves CLI-4a: words are whole at every width, and no wide character is lost.
#[test]
fn words_are_whole_at_every_size() {
    let words: Vec<String> = (0..120).map(|n| format!("word{n:03}ü")).collect();
    let answer = format!("{}\n\n{}", words.join(" "), "漢字".repeat(50));
    let server = OpenAi::start(move |_, _| Reply::text(&answer));
    let home = Home::openai(&server);
    for (columns, rows) in [(40, 12), (80, 24), (200, 60)] {
        let (high, wide) = size(columns, rows);
        let mut terminal = Terminal::sized(&home, &[], high, wide);
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows(" out,");
        terminal.prompts("");
        let raw = terminal.raw();
        let text = terminal.text();
        for word in text
            .split_whitespace()
            .filter(|word| word.contains("ord") || word.contains('ü'))
        {
            let is_whole = words.iter().any(|known| known == word);
            assert!(is_whole, "{word:?} is broken at {columns} columns:\n{text}");
        }
        assert!(
            words.iter().all(|word| raw.contains(word.as_str())),
            "{raw}"
        );
        if columns > 40 {
            assert_eq!(text.matches('漢').count(), 50, "{text}");
        }
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
}

/// Proves CLI-4a: the size may change while text streams. The text that arrives later fits, and none is lost.
#[test]
fn resize_during_a_stream_loses_nothing() {
    let words: Vec<String> = (0..60).map(|n| format!("word{n:03}")).collect();
    let home = Home::scripted(&format!(
        "[[steps]]\ntext = \"{}\\n\\nThe end.\"\nchunks = 60\nchunk_delay_ms = 30\nrepeat = 2\n",
        words.join(" ")
    ));
    for ((columns, rows), (new_columns, new_rows)) in [((60, 20), (110, 30)), ((100, 30), (50, 24))]
    {
        let (high, wide) = size(columns, rows);
        let mut terminal = Terminal::sized(&home, &[], high, wide);
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows("word010");
        let (high, wide) = size(new_columns, new_rows);
        terminal.resize(high, wide);
        terminal.shows("The end.");
        terminal.prompts("");
        // The emulator cuts lines that are wider than its new size, so the output itself is compared.
        let (text, raw) = (terminal.text(), terminal.raw());
        assert!(
            words.iter().all(|word| raw.contains(word.as_str())),
            "{raw}"
        );
        for word in text
            .split_whitespace()
            .filter(|word| word.starts_with("word05"))
        {
            assert!(
                words.iter().any(|known| known == word),
                "{word:?} is broken:\n{text}"
            );
        }
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
}

/// Proves CLI-4a: a terminal of one cell changes nothing about the outcome.
#[test]
fn terminal_of_one_cell_works() {
    let home = running("touch made", "[[steps]]\ntext = \"The end.\"\n");
    let (rows, columns) = size(1, 1);
    let terminal = Terminal::sized(&home, &["-p", "go", "--yes"], rows, columns);
    assert_eq!(terminal.ends().0.code(), Some(0));
    assert!(home.has("made"));
}

/// Proves CLI-4c: the task list is one block that changes in place, and is not printed as JSON.
#[test]
fn task_list_is_one_block() {
    let server = OpenAi::replies([
        Reply::calls("a", &[("add_task", json!({"content": "write the parser"}))]),
        Reply::calls("b", &[("add_task", json!({"content": "test the parser"}))]),
        Reply::text("Planned."),
    ]);
    let home = Home::openai(&server);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("plan\r");
    terminal.shows("Planned.");
    terminal.prompts("");
    let text = terminal.text();
    assert_eq!(text.matches("write the parser").count(), 1, "{text}");
    assert_eq!(text.matches("test the parser").count(), 1, "{text}");
    assert!(text.contains("Tasks 0/2") && !text.contains('{'), "{text}");
}

/// Proves CLI-4c: during a turn, the task list changes in place: it is on the screen once.
#[test]
fn task_list_is_updated_in_place() {
    let home = Home::scripted(
        r##"
        [[steps]]
        calls = [
            { tool = "add_task", input = { content = "write the parser" } },
            { tool = "add_task", input = { content = "test the parser" } },
            { tool = "bash", input = { command = "until [ -e go ]; do sleep 0.05; done" } },
        ]
        [[steps]]
        calls = [
            { tool = "update_task", input = { task_id = "task_1", status = "completed" } },
            { tool = "bash", input = { command = "until [ -e end ]; do sleep 0.05; done" } },
        ]
        [[steps]]
        text = "Planned."
        "##,
    );
    home.more_config("[[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n");
    let mut terminal = started(&home);
    let once = |title: &'static str| {
        move |text: &str| {
            let lists = text.matches("Tasks ").count();
            let tasks = text.matches("write the parser").count();
            text.contains(title) && lists == 1 && tasks == 1
        }
    };
    terminal.until("the list", once("Tasks 0/2"));
    home.write("go", "");
    terminal.until("the changed list", once("Tasks 1/2"));
    home.write("end", "");
    terminal.shows("Planned.");
    terminal.prompts("");
    terminal.until("the list at the end", once("Tasks 1/2"));
    terminal.type_keys("\x04");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves CLI-4d: Ctrl-Z stops the job, and `fg` continues it, during a turn and at the prompt. Nothing is lost.
#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    let home = running(WAITS, "[[steps]]\ntext = \"Done.\"\n");
    home.more_config("[[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n");
    let mut terminal = Terminal::job(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("│ started");
    terminal.type_keys("half");
    terminal.shows("» half");
    terminal.type_keys("\x1a");
    terminal.shows("stopped with 148");
    assert!(!terminal.echoes_nothing(), "the shell has its mode again");
    home.write("go", "");
    terminal.type_keys("\r");
    terminal.shows("Done.");
    terminal.prompts("half");
    terminal.type_keys("\x03");
    terminal.prompts("");
    terminal.type_keys("\x04");
    terminal.shows("ended with 0");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves CLI-4d: Ctrl-Z stops the job while a question is open. After `fg`, the question is on the
/// screen again and can be answered.
#[test]
fn ctrl_z_at_a_question_stops_the_job_and_fg_continues_it() {
    const MARKS_PASTES: &str = "\x1b[?2004h";
    let home = running("touch made", "[[steps]]\ntext = \"Done.\"\n");
    let mut terminal = Terminal::job(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("›[4] no");
    terminal.type_keys("\x1a");
    terminal.shows("stopped with 148");
    assert!(!terminal.echoes_nothing(), "the shell has its mode again");
    assert!(!terminal.text().contains("›[4] no"), "{}", terminal.text());
    let marks = |terminal: &Terminal| terminal.raw().matches(MARKS_PASTES).count();
    let before = marks(&terminal);
    terminal.type_keys("\r");
    terminal.shows("›[4] no");
    // Keys from before the dialog reads again do not answer.
    wait_for("the dialog", || (marks(&terminal) > before).then_some(()));
    terminal.type_keys("1");
    terminal.shows("Done.");
    assert!(home.has("made"));
    terminal.prompts("");
    terminal.type_keys("\x04");
    terminal.shows("ended with 0");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves CLI-4c: the title of the window shows a question until the user answers it.
#[test]
fn title_shows_a_question_until_its_answer() {
    let state = |terminal: &Terminal| {
        let raw = terminal.raw();
        let last = raw.rsplit("\x1b]2;zeph: ").next().unwrap_or_default();
        let end = last.find([':', '\x07']).unwrap_or_default();
        last[..end].to_owned()
    };
    let home = running(
        &format!("touch made; {WAITS}"),
        "[[steps]]\ntext = \"Done.\"\n",
    );
    let mut terminal = started(&home);
    terminal.shows("›[4] no");
    assert_eq!(state(&terminal), "question");
    terminal.type_keys("1");
    terminal.shows("│ started");
    assert_eq!(state(&terminal), "working");
    home.write("go", "");
    terminal.shows("Done.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves CLI-4d: during a turn, Ctrl-G opens the typed text in the user's editor, and the turn continues afterwards.
#[test]
fn editor_changes_the_text_that_is_typed_during_a_turn() {
    let home = running(
        WAITS,
        "[[steps]]\nexpect = { last_user_contains = \"more from the editor\", tool_result_contains = \"ended\" }\n\
         text = \"Got it.\"\n",
    );
    home.more_config("[[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n");
    home.write(
        "editor.sh",
        "#!/bin/sh\necho editing\nuntil [ -e edit ]; do sleep 0.05; done\n\
         printf '%s from the editor' \"$(cat \"$1\")\" > \"$1\"\n",
    );
    let editor = format!("sh {}", home.path("editor.sh").display());
    let mut terminal = Terminal::under(&home, &[], &[("VISUAL", Some(&editor))]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("│ started");
    terminal.type_keys("more");
    terminal.shows("» more");
    terminal.type_keys("\x07");
    terminal.until("the editor alone", |text| {
        text.contains("editing") && !text.contains("│ started")
    });
    home.write("edit", "");
    terminal.shows("» more from the editor");
    terminal.shows("│ started");
    terminal.type_keys("\r");
    terminal.shows("» more from the editor (queued)");
    home.write("go", "");
    terminal.shows("Got it.");
    terminal.prompts("");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves CLI-4c, CLI-4d: the mode changes during a turn, and the status line shows it.
#[test]
fn mode_changes_during_a_turn() {
    let home = Home::scripted("[[steps]]\ntext = \"Late.\"\ndelay_ms = 2500\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("ask · scripted");
    terminal.type_keys("\x1b[Z");
    terminal.shows("auto-edit · scripted");
    terminal.shows("Late.");
    terminal.shows("auto-edit › ");
}

/// Proves CLI-4d: `?` lists the keys, Ctrl-G edits the prompt in the user's editor, Esc twice leaves.
#[test]
fn prompt_keys_list_edit_and_exit() {
    let home = Home::scripted(
        "[[steps]]\nexpect = { last_user_contains = \"from the editor\" }\ntext = \"Got it.\"\n",
    );
    home.write(
        "editor.sh",
        "#!/bin/sh\nprintf '%s from the editor' \"$(cat \"$1\")\" > \"$1\"\n",
    );
    let editor = format!("sh {}", home.path("editor.sh").display());
    let mut terminal = Terminal::under(&home, &[], &[("VISUAL", Some(&editor))]);
    terminal.prompts("");
    terminal.type_key_at_prompt("?");
    terminal.shows("Shift-Tab      changes the permission mode");
    terminal.type_keys("text");
    terminal.prompts("text");
    terminal.type_keys("\x07");
    terminal.prompts("text from the editor");
    terminal.type_keys("\r");
    terminal.shows("Got it.");
    terminal.prompts("");
    terminal.type_key_at_prompt("\x1a");
    terminal.type_key_at_prompt("\x1b");
    terminal.shows("once more");
    terminal.type_keys("\x1b");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves CLI-4d, CLI-3: an editor that is missing or fails leaves the prompt as it is, and the
/// message names the fix.
#[test]
fn editor_that_fails_changes_nothing() {
    const FIX: &str = "set $VISUAL or $EDITOR to another editor";
    for (editor, message) in [
        (None, "Ctrl-G needs $VISUAL or $EDITOR"),
        (Some("/no/such/editor"), FIX),
        (Some("sh broken.sh"), FIX),
    ] {
        let home = Home::scripted("[[steps]]\ntext = \"One.\"\n");
        home.write("broken.sh", "echo broken > \"$1\"\nexit 3\n");
        let mut terminal = Terminal::under(&home, &[], &[("VISUAL", editor)]);
        terminal.prompts("");
        terminal.type_keys("text");
        terminal.prompts("text");
        terminal.type_keys("\x07");
        terminal.shows(message);
        terminal.prompts("text");
        terminal.type_keys("\x03");
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
}

/// Proves CLI-4d: `[terminal] keys = "vi"`.
#[test]
fn vi_keys_edit_the_prompt() {
    let home = Home::scripted(
        "[[steps]]\nexpect = { last_user_contains = \"abc\" }\ntext = \"Got it.\"\n",
    );
    home.more_config("[terminal]\nkeys = \"vi\"\n");
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("bc");
    terminal.prompts("bc");
    terminal.type_keys("\x1b");
    terminal.shows("ask : bc");
    terminal.type_keys("0ia");
    terminal.prompts("abc");
    terminal.type_keys("\r");
    terminal.shows("Got it.");
}

/// Proves CLI-4c: title and notification, as configured; unknown values are refused.
#[test]
fn title_and_notification_follow_the_configuration() {
    let scenario = "[[steps]]\ntext = \"Done.\"\n";
    let shown = |config: &str| {
        let home = Home::scripted(scenario);
        home.more_config(&format!("[terminal]\n{config}\n"));
        let mut terminal = Terminal::start(&home, &[]);
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows("Done.");
        terminal.leaves().1
    };
    let raw = shown("notify = \"osc9\"\nnotify_after_secs = 0");
    assert!(
        raw.contains("\x1b]9;zeph: the turn has ended\x07"),
        "{raw:?}"
    );
    assert!(
        raw.contains("\x1b[22;2t") && raw.contains("\x1b]2;zeph: working"),
        "{raw:?}"
    );
    assert!(
        raw.contains("\x1b]2;zeph: ready") && raw.contains("\x1b[23;2t"),
        "{raw:?}"
    );
    let raw = shown("notify = \"bell\"\nnotify_after_secs = 0\ntitle = false");
    assert!(raw.contains('\x07') && !raw.contains("\x1b]2;"), "{raw:?}");
    let raw = shown("notify = \"off\"\nnotify_after_secs = 0\ntitle = false");
    assert!(!raw.contains('\x07'), "{raw:?}");
    let raw = shown("title = false");
    assert!(
        !raw.contains('\x07'),
        "a short turn is not signalled: {raw:?}"
    );
    for wrong in ["keys = \"nano\"", "notify = \"shout\"", "titel = true"] {
        let home = Home::scripted(scenario);
        home.more_config(&format!("[terminal]\n{wrong}\n"));
        home.zeph(["config", "check"]).code(2);
    }
}
