//! The check-in: the question whether a turn with many rounds of tool calls continues.

use serde_json::json;

use crate::rig::{Home, OpenAi, Reply, Terminal, assert_has};

/// A model that requests a call in each of its first `rounds` responses, if it may call tools.
fn busy(rounds: usize) -> OpenAi {
    OpenAi::start(move |n, request| {
        if request.json()["tool_choice"] == "none" {
            return Reply::text("A summary.");
        }
        if n >= rounds {
            return Reply::text("All done.");
        }
        let call = json!({ "command": format!("echo {n}") });
        Reply::calls(&n.to_string(), &[("bash", call)])
    })
}

fn home(server: &OpenAi) -> Home {
    let home = Home::openai(server);
    home.more_config("[[tools.permissions.bash]]\npattern = \"echo *\"\naction = \"allow\"\n");
    home
}

/// Proves D-33, AGT-2: after every 10 rounds the user is asked. Enter continues for 10 more, `a` until the turn is done.
#[test]
fn check_in_continues_with_enter_and_a() {
    let server = busy(45);
    let home = home(&server);
    let mut terminal = Terminal::start(&home, &[]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("10 rounds of tool calls so far. Continue?");
    terminal.shows("[Enter] 10 more  [a] until done  [n] stop");
    assert_eq!(server.requests().len(), 10);
    terminal.type_keys("\r");
    terminal.shows("20 rounds of tool calls so far. Continue?");
    assert_eq!(server.requests().len(), 20);
    // Other keys do not answer.
    terminal.type_keys("x");
    terminal.shows("ignored: press only one of the keys");
    assert_eq!(server.requests().len(), 20);
    terminal.type_keys("a");
    terminal.shows("All done.");
    assert_eq!(server.requests().len(), 46);
    assert!(!terminal.raw().contains("30 rounds"));
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves D-33, AGT-2: `n`, Esc and Ctrl-C stop the turn. The model summarizes in one last request without tools, and the
/// session continues.
#[test]
fn check_in_stops_with_n_escape_and_ctrl_c() {
    for key in ["n", "\x1b", "\x03"] {
        let server = busy(99);
        let home = home(&server);
        let mut terminal = Terminal::start(&home, &["--set", "agent.max_tool_iterations=2"]);
        terminal.prompts("");
        terminal.type_keys("go\r");
        terminal.shows("2 rounds of tool calls so far. Continue?");
        terminal.type_keys(key);
        terminal.shows("A summary.");
        terminal.shows("stopped by you after 2 rounds of tool calls");
        let requests = server.requests();
        assert_eq!(requests.len(), 3, "{key:?}");
        assert_eq!(requests[2].json()["tool_choice"], "none", "{key:?}");
        terminal.prompts("");
        terminal.type_keys("/status\r");
        terminal.shows("2 rounds of tool calls; asks after every 2");
        assert_eq!(terminal.leaves().0.code(), Some(0));
    }
}

/// Proves D-33, CLI-4d: Ctrl-Z stops the job at a check-in. After `fg`, the user is asked again.
#[test]
fn ctrl_z_at_a_check_in_stops_the_job_and_fg_continues_it() {
    const QUESTION: &str = "2 rounds of tool calls so far. Continue?";
    let server = busy(99);
    let home = home(&server);
    let mut terminal = Terminal::job(&home, &["--set", "agent.max_tool_iterations=2"]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows(QUESTION);
    terminal.type_keys("\x1a");
    terminal.shows("stopped with 148");
    assert!(!terminal.echoes_nothing(), "the shell has its mode again");
    terminal.type_keys("\r");
    terminal.until("the second question", |text| {
        text.matches(QUESTION).count() == 2
    });
    terminal.type_keys("n");
    terminal.shows("stopped by you after 2 rounds of tool calls");
    terminal.prompts("");
    terminal.type_keys("\x04");
    terminal.shows("ended with 0");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves D-33, CLI-3: one turn at a terminal asks too. A turn that the user stops has reached its limit.
#[test]
fn one_turn_at_a_terminal_asks() {
    let server = busy(99);
    let home = home(&server);
    let mut terminal = Terminal::start(&home, &["-p", "go"]);
    terminal.shows("10 rounds of tool calls so far. Continue?");
    terminal.type_keys("n");
    terminal.shows("A summary.");
    assert_eq!(terminal.ends().0.code(), Some(4));
    assert_eq!(server.requests().len(), 11);
}

/// Proves D-33, AGT-2: without a user, a turn continues up to 100 rounds, with a notice at every 10.
#[test]
fn unattended_turn_continues_with_notices() {
    let server = busy(25);
    let home = home(&server);
    let output = home.zeph(["-p", "go"]).code(0);
    assert_has(&output.stdout, &["All done."]);
    assert_has(
        &output.stderr,
        &[
            "10 rounds of tool calls so far; the turn ends after 100 ([agent] max_iterations_per_turn)",
            "20 rounds of tool calls so far",
        ],
    );
    assert!(!output.stderr.contains("30 rounds"));

    // `--yes` answers the questions of calls, so that no user sees a check-in.
    let server = busy(12);
    let home = Home::openai(&server);
    let terminal = Terminal::start(&home, &["--yes", "-p", "go"]);
    terminal.shows("10 rounds of tool calls so far; the turn ends after 100");
    terminal.shows("All done.");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves D-33, AGT-2: the cap of a turn without a user is 100 rounds, also in JSON output.
#[test]
fn unattended_turn_ends_after_100_rounds() {
    let server = busy(1000);
    let home = home(&server);
    let args = ["-p", "go", "--output-format", "stream-json"];
    let output = home.zeph(args).code(4);
    let events: Vec<serde_json::Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let is_check_in = |event: &&serde_json::Value| {
        let text = event["text"].as_str().unwrap_or_default();
        event["type"] == "notice" && text.contains("rounds of tool calls so far")
    };
    assert_eq!(events.iter().filter(is_check_in).count(), 9);
    let last = events.last().unwrap();
    assert_eq!(last["stop_reason"], "iteration_cap");
    assert_eq!(last["iterations"], 100);
    let message = last["message"].as_str().unwrap();
    assert_has(message, &["100 rounds", "[agent] max_iterations_per_turn"]);
    assert_eq!(server.requests().len(), 101);
}

/// Proves D-33, CFG-3: the file that `zeph config init` writes does not make the default a hard cap.
#[test]
fn generated_configuration_sets_no_hard_cap() {
    let home = Home::scripted("[[steps]]\ntext = \"unused\"\n");
    let template = home.zeph(["config", "init", "--print"]).code(0).stdout;
    assert_has(&template, &["\n# max_tool_iterations = 10\n"]);
    assert_has(&template, &["\nmax_iterations_per_turn = 100\n"]);
    home.write("init.toml", &template);
    home.zeph(["config", "check", "init.toml"]).code(0);
}
