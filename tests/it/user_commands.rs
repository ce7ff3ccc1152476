//! `!command`: the user's own commands at a terminal.

use crate::rig::{
    Home, OpenAi, Reply, Terminal, assert_has, audit, is_running, unique_seconds, wait_for,
};

/// A home without a model, with every gate that could refuse a command.
fn home() -> Home {
    let home = Home::scripted("[[steps]]\ntext = \"Understood.\"\n");
    home.more_config(
        "[tools]\nmode = \"plan\"\nmax_tool_calls_per_session = 0\n\
         [tools.shell]\nblocked_commands = [\"touch\"]\nallow_network = false\n\
         [tools.file]\ndeny_read = [\"**/secret.txt\"]\n\
         [tools.policy]\nenabled = true\ndefault_effect = \"deny\"\n\
         [[tools.permissions.bash]]\npattern = \"*\"\naction = \"deny\"\n",
    );
    home
}

/// Types one line, and waits until the prompt returns.
#[track_caller]
fn enter(terminal: &mut Terminal, line: &str) {
    terminal.prompts("");
    terminal.type_keys(&format!("{line}\r"));
    terminal.prompts("");
}

/// Proves D-42, CMD-1, SH-34: no gate and no sandbox applies to a command of the user. Each one has its audit entry.
#[test]
fn typed_command_bypasses_the_gates() {
    let home = home();
    home.write("secret.txt", "not for models\n");
    let outside = home.home().join("outside");
    let mut terminal = Terminal::start(&home, &[]);
    enter(&mut terminal, "!echo \"it is $(echo substituted)\"");
    terminal.shows("it is substituted");
    enter(
        &mut terminal,
        "!printf 'c\\nb\\na\\n' | sort | head -1 && eval 'echo evaluated'",
    );
    terminal.shows("evaluated");
    enter(&mut terminal, "!cat secret.txt");
    terminal.shows("not for models");
    enter(&mut terminal, "!touch made; X=touch; $X made2");
    enter(&mut terminal, &format!("!echo x > {}", outside.display()));
    enter(&mut terminal, "!\"open");
    terminal.shows("unexpected EOF");
    enter(
        &mut terminal,
        "!sudo() { echo \"as root: $1\"; }; sudo true",
    );
    terminal.shows("as root: true");
    assert_eq!(terminal.leaves().0.code(), Some(0));
    assert!(home.has("made") && home.has("made2") && outside.exists());
    let entries = audit(&home.database());
    assert_eq!(entries.len(), 7);
    for entry in &entries {
        assert_eq!(
            (entry.tool.as_str(), entry.approved_by.as_str()),
            ("bash", "user")
        );
        assert_eq!(entry.result, "success", "{}", entry.call);
    }
}

/// Proves CLI-6: the title of a session that begins with a command is its first prompt.
#[test]
fn first_prompt_after_a_command_is_the_title() {
    let home = home();
    let mut terminal = Terminal::start(&home, &[]);
    enter(&mut terminal, "!true");
    enter(&mut terminal, "fix the parser");
    terminal.shows("Understood.");
    terminal.leaves();
    let listed = home.zeph(["sessions", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["title"], "fix the parser");
    assert_eq!(listed[0]["model"], "scripted");
}

/// Proves D-42: a command gets the terminal, reads single keys, and returns the terminal in a usable state.
#[test]
fn full_screen_program_gets_the_terminal() {
    let home = home();
    let program = "#!/bin/bash\n\
        test -t 0 && test -t 1 && test -t 2 || { echo no terminal; exit 3; }\n\
        printf '\\033[?1049h\\033[?25l\\033[2Jfull screen %s' \"$(stty size)\"\n\
        read -rsn1 key\n\
        stty raw -echo\n\
        printf '\\033[?1049l'\n\
        printf 'key: %s' \"$key\"\n\
        exit 4\n";
    home.write("program", program);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("!bash program\r");
    terminal.shows("full screen 40 100");
    assert!(!terminal.text().contains("/help lists the commands"));
    terminal.type_keys("k");
    terminal.shows("key: k\n");
    terminal.shows("exit code: 4");
    // The mode of the terminal is restored.
    terminal.prompts("");
    terminal.type_keys("half");
    terminal.prompts("half");
    terminal.type_keys("\x03");
    terminal.prompts("");
    terminal.type_keys("go on\r");
    terminal.shows("Understood.");
    let (status, raw) = terminal.leaves();
    assert_eq!(status.code(), Some(0));
    let last = |sequence: &str| raw.rfind(sequence);
    assert!(last("\x1b[?25l") < last("\x1b[?25h"), "the cursor is shown");
}

/// Proves D-42, AGT-5: Ctrl-C ends the command, not the session. A program that reads lines gets them.
#[test]
fn ctrl_c_ends_the_command() {
    let home = home();
    let seconds = unique_seconds();
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys(&format!("!echo begun; sleep {seconds}\r"));
    terminal.shows("begun");
    wait_for("the command", || is_running(&seconds).then_some(()));
    terminal.type_keys("\x03");
    terminal.prompts("");
    assert!(!is_running(&seconds));
    terminal.type_keys("!read -p 'name: ' name; echo \"hello $name\"\r");
    // Keys that are typed before the command starts are for the next prompt.
    terminal.until("the question of the command", |text| {
        text.lines().any(|line| line.starts_with("name:"))
    });
    terminal.type_keys("world\r");
    terminal.shows("hello world");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves D-42: `!cd` changes the directory of the user's commands, and only of these.
#[test]
fn cd_changes_the_directory_of_typed_commands() {
    let server = OpenAi::replies([
        Reply::calls("1", &[("bash", serde_json::json!({ "command": "pwd" }))]),
        Reply::text("Seen."),
    ]);
    let home = Home::openai(&server);
    let provider = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&provider.replace("api_key_env = \"TEST_KEY\"\n", ""));
    home.write("a b/c/file", "");
    let project = home.project().display().to_string();
    let mut terminal = Terminal::start(&home, &["--yes"]);
    enter(&mut terminal, "!cd 'a b'/c # there");
    terminal.shows("the next ! commands run in ");
    terminal.shows("/a b/c");
    enter(&mut terminal, "!ls; basename \"$PWD\"");
    terminal.shows("file\nc\n");
    enter(&mut terminal, "!cd -");
    enter(&mut terminal, "!echo \"back in $(basename \"$PWD\")\"");
    let name = home
        .project()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    terminal.shows(&format!("back in {name}"));
    enter(&mut terminal, "!cd");
    enter(&mut terminal, "!test \"$PWD\" -ef ~ && echo at home");
    terminal.shows("at home\n");
    enter(&mut terminal, "!cd no-such-directory");
    terminal.shows("No such file or directory");
    enter(
        &mut terminal,
        "!(cd /; pwd); test \"$PWD\" -ef ~ && echo still at home",
    );
    terminal.shows("still at home");
    // The model's commands start in the project.
    enter(&mut terminal, "where are you?");
    terminal.shows("Seen.");
    let results = crate::rig::results_of(&server.last().messages());
    assert_has(&results[0].1, &[&project]);
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves D-42: `!cd` leaves a directory that no longer exists.
#[test]
fn cd_leaves_a_removed_directory() {
    let home = home();
    let mut terminal = Terminal::start(&home, &[]);
    enter(&mut terminal, "!mkdir -p sub/deep");
    enter(&mut terminal, "!cd sub/deep");
    enter(&mut terminal, "!rmdir \"$PWD\"");
    enter(&mut terminal, "!pwd");
    terminal.shows("!cd DIRECTORY changes it");
    enter(&mut terminal, "!cd .");
    enter(&mut terminal, "!echo \"above: $(basename \"$PWD\").\"");
    terminal.shows("above: sub.");
    enter(&mut terminal, "!rmdir \"$PWD\"");
    enter(&mut terminal, "!cd /");
    enter(&mut terminal, "!echo \"root: $PWD.\"");
    terminal.shows("root: /.");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves D-42: the conversation gets the command and its output, without the screen of a full-screen program and within
/// the output limits.
#[test]
fn conversation_gets_the_output() {
    let server = OpenAi::replies([Reply::text("Seen.")]);
    let home = Home::openai(&server);
    let provider = std::fs::read_to_string(home.config_file()).unwrap();
    home.config(&provider.replace("api_key_env = \"TEST_KEY\"\n", ""));
    let mut terminal = Terminal::start(&home, &[]);
    enter(&mut terminal, "!printf '\\033[32mgreen\\033[0m\\n'; exit 3");
    enter(
        &mut terminal,
        "!printf 'before\\n\\033[?1049hdrawn\\033[?1049lafter\\n'",
    );
    enter(&mut terminal, "!seq 100000");
    enter(&mut terminal, "what did I do?");
    terminal.shows("Seen.");
    let request = server.last().json().to_string();
    assert_has(
        &request,
        &[
            "[the user ran a command]",
            "\\ngreen\\n[exit code: 3]",
            "before\\n[the screen of a full-screen program is not recorded]\\nafter",
            "99999",
            "read_overflow",
        ],
    );
    assert!(!request.contains("drawn\\u001b") && !request.contains("\\r"));
    assert!(!request.contains("\\n50000\\n"));
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves SH-3a: a background process of a typed command is a job, and ends with the session.
#[test]
fn background_process_of_a_typed_command_is_a_job() {
    let home = home();
    let seconds = unique_seconds();
    let mut terminal = Terminal::start(&home, &[]);
    enter(&mut terminal, &format!("!sleep {seconds} & echo started"));
    terminal.shows("started");
    terminal.shows("a background process still runs");
    assert!(is_running(&seconds));
    assert_eq!(terminal.leaves().0.code(), Some(0));
    wait_for("the end of the job", || {
        (!is_running(&seconds)).then_some(())
    });
}
