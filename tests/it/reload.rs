//! Configuration changes during a session: immediate effects and refusals.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, Running, Terminal, assert_has, openai_config};

fn blocking(words: &str) -> String {
    format!("[tools.shell]\nblocked_commands = [{words:?}]\n")
}

/// A `zeph tools run` process with open input, which runs one call at a time.
struct Script(Running);

impl Script {
    fn start(home: &Home, more: &[&str]) -> Self {
        let args = ["tools", "run", "--yes"];
        Self(home.zeph(args).args(more).open_stdin("").start())
    }

    #[track_caller]
    fn bash(&mut self, command: &str) -> Value {
        let line = json!({ "tool": "bash", "params": { "command": command } });
        self.0.say(&line.to_string());
        serde_json::from_str(&self.0.next_line().unwrap()).unwrap()
    }

    #[track_caller]
    fn runs(&mut self, command: &str) {
        let form = self.bash(command);
        assert_eq!(form["success"], true, "{form}");
    }

    #[track_caller]
    fn is_blocked(&mut self, command: &str) {
        let form = self.bash(command);
        assert_eq!(form["error_category"], "policy_blocked", "{form}");
        let message = form["error_message"].as_str().unwrap();
        assert_has(message, &["the shell's blocklist refuses this command"]);
    }

    /// Ends the process and returns its standard error.
    #[track_caller]
    fn ends(mut self) -> String {
        self.0.close_stdin();
        self.0.wait().code(0).stderr
    }
}

/// Clears the screen, which shows `words`.
fn clear(terminal: &mut Terminal, words: &str) {
    terminal.type_keys("\x0c");
    terminal.until("an empty screen", |text| !text.contains(words));
}

/// Proves SH-13: between two turns; `/reload` lists applied and pending changes.
#[test]
fn interactive_session_follows_the_configuration() {
    let calls = r#"calls = [{ tool = "bash", input = { command = "echo ran" } }]"#;
    let scenario = format!(
        r#"
        [[steps]]
        {calls}
        [[steps]]
        text = "First."
        [[steps]]
        {calls}
        [[steps]]
        expect = {{ tool_result_contains = "blocklist" }}
        text = "Second."
        [[steps]]
        {calls}
        [[steps]]
        expect = {{ tool_result_contains = "blocklist" }}
        text = "Third."
        [[steps]]
        {calls}
        [[steps]]
        expect = {{ tool_result_contains = "ran" }}
        text = "Fourth."
        "#
    );
    let home = Home::scripted(&scenario);
    let plain = std::fs::read_to_string(home.config_file()).unwrap();
    let mut terminal = Terminal::start(&home, &["--yes"]);
    terminal.prompts("");
    terminal.type_keys("one\r");
    terminal.shows("First.");
    terminal.prompts("");

    home.more_config(&blocking("echo"));
    terminal.type_keys("two\r");
    terminal
        .shows("the configuration was read again: for the following calls: now blocked: `echo`");
    terminal.shows("Second.");
    terminal.prompts("");

    home.config(&format!(
        "{plain}\n[tools.shell]\nblocked_commands = ['a; b']\n"
    ));
    terminal.type_keys("three\r");
    terminal.shows("error: the changed configuration is invalid and was not applied");
    terminal.shows("config.toml:7:21:");
    terminal.shows("Third.");
    terminal.prompts("");
    clear(&mut terminal, "Third.");
    terminal.type_keys("/reload\r");
    terminal.shows("is not the start of a command");
    terminal.prompts("");

    home.config(&format!(
        "{plain}\n[tools]\nmode = 'plan'\n[tools.scrape]\ntimeout = 3\n"
    ));
    terminal.type_keys("/reload\r");
    terminal.shows("no longer blocked by the configuration: `echo`");
    terminal.shows("after a restart: tools.mode, tools.scrape.timeout");
    terminal.prompts("");
    terminal.type_keys("four\r");
    terminal.shows("Fourth.");
    terminal.prompts("");
    home.config(&plain);
    terminal.type_keys("/reload\r");
    terminal.shows("the configuration was read again: nothing changed");
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves SH-13: between two calls of one turn.
#[test]
fn running_turn_follows_the_configuration() {
    let home = Home::new();
    let file = home.config_file();
    let server = OpenAi::start(move |n, request| {
        let url = format!("http://{}", request.header("host").unwrap());
        if n == 1 {
            let text = format!("{}\n{}", blocking("touch"), openai_config(&url));
            std::fs::write(&file, text).unwrap();
        }
        match n {
            0 | 1 => {
                let command = format!("touch made{n}");
                Reply::calls(&n.to_string(), &[("bash", json!({ "command": command }))])
            }
            _ => Reply::text("Done."),
        }
    });
    home.config(&openai_config(&server.url()));
    home.zeph(["-p", "go", "--yes"])
        .code(0)
        .says(&["now blocked: `touch`"]);
    assert!(home.has("made0") && !home.has("made1"));
}

/// Proves SH-13: in a script with open input; an invalid configuration leaves the earlier one in force.
#[test]
fn script_follows_the_configuration() {
    let home = Home::new();
    let mut script = Script::start(&home, &[]);
    script.runs("echo");
    home.config(&blocking("echo"));
    script.is_blocked("echo");
    script.runs("true");
    for broken in [
        "[tools.shell\n",
        "[tools.shell]\nblocked_commands = ['echo', '']\n",
        "[tools.shell]\nblocked = []\n",
        "[tools.shell]\nblocked_constructs = ['evil']\n",
    ] {
        home.config(broken);
        script.is_blocked("echo");
        script.is_blocked("echo");
    }
    home.config(&blocking("true"));
    script.runs("echo");
    script.is_blocked("true");
    // A missing user file does not loosen the rules.
    std::fs::remove_file(home.config_file()).unwrap();
    script.is_blocked("true");
    home.config("");
    script.runs("true");
    let said = script.ends();
    assert_has(
        &said,
        &[
            "config.toml:1:13: this is not TOML",
            "config.toml:2:29: `tools.shell.blocked_commands`",
            "config.toml:2:1: `blocked` is not a key of [tools.shell]",
            "config.toml:2:23: `tools.shell.blocked_constructs`: \"evil\" is not a construct",
            "config.toml is gone",
        ],
    );
    let refused = said.matches("was not applied").count();
    assert_eq!(refused, 5, "each is reported once:\n{said}");
}

/// Proves SH-13, CFG-1: a project file tightens immediately; a file that the model can write never loosens.
#[test]
fn project_file_only_tightens() {
    let home = Home::new();
    let project = ".zeph/config.toml";
    let mut script = Script::start(&home, &[]);
    script.runs("echo");
    home.write(project, &blocking("echo"));
    script.is_blocked("echo");
    home.write(project, "[tools.shell]\nblocked_commands = []\n");
    script.is_blocked("echo");
    // A change of the user file does not apply the loosened project file.
    home.config(&blocking("true"));
    script.is_blocked("echo");
    std::fs::remove_dir_all(home.path(".zeph")).unwrap();
    script.is_blocked("echo");
    home.write(project, "[tools.shell]\nmax_timeout = 9999\n");
    script.is_blocked("echo");
    home.write(
        project,
        "[tools.shell]\nblocked_commands = ['echo', 'ls']\n",
    );
    script.is_blocked("ls");
    script.is_blocked("echo");
    script.is_blocked("true");
    let said = script.ends();
    assert_has(
        &said,
        &[
            "loosens the blocklist; a running session only accepts stricter settings",
            "a project's file may only lower it",
        ],
    );
}

/// Proves SH-13: a configuration file that tools can write is treated like that of a project.
#[test]
fn writable_configuration_only_tightens() {
    let home = Home::new();
    home.write("own.toml", &blocking("echo"));
    let mut script = Script::start(&home, &["--config", "own.toml"]);
    script.is_blocked("echo");
    home.write("own.toml", "");
    script.is_blocked("echo");
    home.write(
        "own.toml",
        "[tools.shell]\nblocked_commands = ['echo', 'ls']\n",
    );
    script.is_blocked("ls");
    assert_has(&script.ends(), &["own.toml loosens the blocklist"]);
}

/// Proves SH-13: a configuration from a pipe is not read again, and stays in force.
#[test]
fn configuration_from_a_pipe_is_read_once() {
    let home = Home::new();
    let fifo = home.tmp().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let name = fifo.display().to_string();
    let text = blocking("echo");
    let writer = std::thread::spawn(move || std::fs::write(&fifo, text));
    let mut script = Script::start(&home, &["--config", &name]);
    writer.join().unwrap().unwrap();
    script.is_blocked("echo");
    home.write(".zeph/config.toml", &blocking("ls"));
    script.is_blocked("echo");
    script.runs("ls");
    assert_has(&script.ends(), &["Zeph can read it only once"]);
}
