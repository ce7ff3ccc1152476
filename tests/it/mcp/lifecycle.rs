//! Servers that die, change, hang or flood, without damage to the session.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Served, echo, says, tool};
use crate::rig::{
    Home, OpenAi, Reply, Terminal, assert_has, is_running, openai_config, unique_seconds, wait_for,
};

fn hello(served: &Served, script: &mut crate::rig::Running) -> Option<String> {
    let said = says(script, "echo", &json!({ "text": "hello" }));
    if said.0.is_none() {
        assert_eq!(said.1, "said: hello");
    }
    assert!(!served.log().is_empty());
    said.0
}

/// Runs `/mcp` until the listing contains `words`, one command at a time.
fn asking(terminal: &mut Terminal, words: &str) {
    let mut asked: Option<Instant> = None;
    wait_for(words, || {
        if asked.is_none_or(|asked| asked.elapsed() > Duration::from_millis(300)) {
            terminal.prompts("");
            terminal.type_keys("/mcp\r");
            asked = Some(Instant::now());
        }
        terminal.text().contains(words).then_some(())
    });
}

/// Proves MCP-2: if a server dies during a call, the call fails and the server is restarted; meanwhile its
/// tools fail with the category of a lost connection.
#[test]
fn dead_server_is_restarted() {
    let served = Served::new(&[echo(), tool("die")]);
    // The anomaly gate is off, because the calls repeat until the server is back.
    served
        .home
        .more_config("[tools.anomaly]\nenabled = false\n");
    let mut script = served.script();
    assert_eq!(hello(&served, &mut script), None);
    let died = says(&mut script, "die", &json!({}));
    assert_eq!(died.0.as_deref(), Some("network_error"), "{died:?}");
    assert_has(&died.1, &["it ended during the call"]);
    wait_for("the server's return", || {
        match hello(&served, &mut script) {
            None => Some(()),
            Some(category) => {
                assert_eq!(category, "network_error");
                None
            }
        }
    });
    // The server is killed by another process.
    let pid: i32 = std::fs::read_to_string(served.file("pid"))
        .unwrap()
        .parse()
        .unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    served.wait_for("start", 3);
    wait_for("the server's return", || {
        hello(&served, &mut script).is_none().then_some(())
    });
    script.close_stdin();
    script.wait().code(0);
    served.home.wait_until_alone();
}

/// Proves MCP-1: while a server is down its tools are not exposed, and its error output is reported.
#[test]
fn tools_of_a_dead_server_are_hidden() {
    let served = Served::new(&[echo(), tool("die")]);
    let server = OpenAi::replies([
        Reply::calls("d", &[("mcp_t_die", json!({}))]),
        Reply::text("It died."),
        Reply::text("Second."),
    ]);
    served.home.more_config(&openai_config(&server.url()));
    let mut terminal = Terminal::start(&served.home, &["--yes"]);
    terminal.prompts("");
    // The restart fails too.
    std::fs::write(
        served.file("server.py"),
        "import sys\nsys.stderr.write('no\\x1b[2J way\\n')\nsys.exit(4)\n",
    )
    .unwrap();
    terminal.type_keys("go\r");
    terminal.shows("It died.");
    terminal.prompts("");
    terminal.type_keys("again\r");
    terminal.shows("Second.");
    terminal.prompts("");
    terminal.type_keys("/mcp\r");
    terminal.shows("t: restarting in");
    asking(&mut terminal, "it ended with exit code 4: no[2J way");
    terminal.prompts("");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
    let tools = |at: usize| server.requests()[at].json()["tools"].to_string();
    assert_has(&tools(0), &["mcp_t_echo", "mcp_t_die"]);
    assert!(!tools(2).contains("mcp_t_"), "{}", tools(2));
}

/// Proves MCP-1: after `tools/list_changed`, tools that were approved before are exposed in the next turn.
#[test]
fn changed_tool_list_applies_in_the_next_turn() {
    let served = Served::new(&[echo(), tool("change"), tool("new")]);
    // The tool is approved, but not listed yet.
    served.tools(&[echo(), tool("change")]);
    let next = json!([tool("change"), tool("new")]).to_string();
    std::fs::write(served.file("next.json"), next).unwrap();
    let server = OpenAi::replies([
        Reply::calls("c", &[("mcp_t_change", json!({}))]),
        Reply::text("Changed."),
        Reply::text("Second."),
    ]);
    served.home.more_config(&openai_config(&server.url()));
    let mut terminal = Terminal::start(&served.home, &["--yes"]);
    terminal.prompts("");
    terminal.type_keys("go\r");
    terminal.shows("Changed.");
    served.wait_for("tools/list", 2);
    // The client has read the new list.
    asking(&mut terminal, "t: connected, 2 tools");
    terminal.prompts("");
    terminal.type_keys("again\r");
    terminal.shows("Second.");
    terminal.prompts("");
    terminal.type_keys("/quit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
    let tools = |at: usize| server.requests()[at].json()["tools"].to_string();
    // The first request offers the approved tools, before the server lists its own.
    assert_has(&tools(0), &["mcp_t_echo", "mcp_t_change"]);
    assert_has(&tools(2), &["mcp_t_new", "mcp_t_change"]);
    assert!(!tools(2).contains("mcp_t_echo"), "{}", tools(2));
}

/// Proves MCP-1: a missing or silent server delays the start at most by the configured time.
#[test]
fn slow_server_does_not_delay_the_start() {
    let check = |mode: &str, reported: &str| {
        let served = Served::in_mode(&[echo()], mode, "");
        served.home.more_config("[mcp]\nstart_wait_ms = 300\n");
        let began = Instant::now();
        let listed = served.home.zeph(["tools", "list"]).code(0);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(10), "{mode}: {took:?}");
        assert_has(&listed.stdout, &["bash", "read"]);
        assert_has(&listed.stderr, &[reported]);
        served.home.wait_until_alone();
    };
    check("mute", "MCP server t: connecting");
    check("babbles", "MCP server t: connecting");
    let home = Home::new();
    home.config("[[mcp.servers]]\nname = \"t\"\ncommand = \"./no-such-program\"\n");
    let listed = home.zeph(["tools", "list"]).code(0);
    assert_has(
        &listed.stderr,
        &["MCP server t: failed: ./no-such-program cannot be started: No such file"],
    );
}

/// Proves MCP-1: the reason of a failed start is reported, and server output is sanitized for the terminal.
#[test]
fn server_failure_is_reported_with_its_reason() {
    let served = Served::in_mode(&[echo()], "exits", "");
    let listed = served.home.zeph(["tools", "list"]).code(0);
    assert_has(
        &listed.stderr,
        &[
            "MCP server t: restarting in",
            "it ended with exit code 7: no configuration",
        ],
    );
    assert_eq!(listed.stderr.lines().count(), 1, "{}", listed.stderr);
    let served = Served::in_mode(&[echo()], "mute", "connect_timeout_secs = 1\n");
    served
        .home
        .zeph(["mcp", "list"])
        .code(0)
        .prints(&["t: failed: ", "did not respond within 1s"]);
    served.home.wait_until_alone();
}

/// Proves MCP-1: unexpected or excessive output of a server is harmless.
#[test]
fn hostile_server_is_harmless() {
    let names = ["garbage", "endless", "flood", "silent"];
    let tools: Vec<Value> = names.map(tool).into_iter().chain([echo()]).collect();
    let served = Served::new(&tools);
    served.config("", "call_timeout_secs = 1\n");
    let garbage = served.call("garbage", &json!({}));
    assert_eq!(
        (garbage.code, garbage.stdout.as_str()),
        (Some(0), "after garbage\n")
    );
    for name in ["endless", "flood", "silent"] {
        let began = Instant::now();
        let output = served.call(name, &json!({}));
        assert!(began.elapsed() < Duration::from_secs(15), "{name}");
        assert_eq!(output.code, Some(1), "{name}");
        assert_has(
            &output.stdout,
            &["network_error", "did not respond within 1s"],
        );
    }
    served.wait_for("notifications/cancelled", 1);
    served.home.wait_until_alone();
}

/// Proves MCP-1: long or endless lists are truncated with a message.
#[test]
fn long_lists_are_cut() {
    let check = |mode: &str, tools: usize| {
        let served = Served::in_mode(&[], mode, "");
        let listed = served.home.zeph(["mcp", "list", "--json"]).code(0).json();
        let found = listed[0]["tools"].as_array().unwrap();
        assert_eq!(found.len(), tools, "{mode}");
        let reasons = listed[0]["refused"].to_string();
        assert_has(&reasons, &["only the first"]);
        let longest = found
            .iter()
            .map(|tool| tool["description"].as_str().unwrap().chars().count());
        assert!(longest.max() <= Some(2048));
    };
    check("many", 512);
    // Twenty entries on the first page are the same tool.
    check("pages", 64);
}

/// Proves MCP-1: the server and its child processes end with the agent, regardless of how the agent ends.
#[test]
fn no_server_process_outlives_the_agent() {
    for how in [None, Some(Signal::TERM), Some(Signal::KILL)] {
        let seconds = unique_seconds();
        let served = Served::new(&[echo()]);
        served.config(&format!("child {seconds}"), "");
        let mut script = served.script();
        assert_eq!(hello(&served, &mut script), None);
        wait_for("the child", || is_running(&seconds).then_some(()));
        match how {
            None => {
                script.close_stdin();
                script.wait().code(0);
            }
            Some(signal) => {
                script.signal(signal);
                script.close_stdin();
                script.kill();
            }
        }
        served.home.wait_until_alone();
        wait_for("the child's end", || (!is_running(&seconds)).then_some(()));
    }
}

/// Proves MCP-1: servers connect concurrently. A duplicate tool id belongs to the first server,
/// also before the approval of its tool.
#[test]
fn servers_run_concurrently() {
    let served = Served::new(&[echo()]);
    let folder = served.file("").display().to_string();
    let script = served.file("server.py").display().to_string();
    let server = |name: &str| {
        format!(
            "[[mcp.servers]]\nname = {name:?}\ncommand = \"python3\"\nargs = [{script:?}, {folder:?}]\nwritable = [{folder:?}]\n"
        )
    };
    served.tools(&[
        json!({ "name": "b_c", "inputSchema": { "type": "object" } }),
        json!({ "name": "c", "inputSchema": { "type": "object" } }),
    ]);
    // `zeph tools list` waits for both servers, also if they start slowly.
    let wait = "[mcp]\nstart_wait_ms = 600000\n";
    served
        .home
        .config(&format!("{wait}{}{}", server("a"), server("a_b")));
    let check = |expect: &[&str]| {
        let listed = served.home.zeph(["tools", "list"]).code(0).stdout;
        let ids: Vec<&str> = listed
            .lines()
            .filter_map(|line| line.split(' ').next())
            .filter(|id| id.starts_with("mcp_"))
            .collect();
        assert_eq!(ids, expect);
    };
    let conflict = "c is not available: another server has a tool with this id";
    served.home.zeph(["mcp", "approve", "a_b", "--yes"]).code(0);
    check(&["mcp_a_b_b_c"]);
    let reported = served.home.zeph(["mcp", "list"]).code(0).stdout;
    assert_has(
        &reported,
        &[
            "a: connected, 0 tools",
            "a_b: connected, 1 tool\n",
            conflict,
        ],
    );
    served.home.zeph(["mcp", "approve", "a", "--yes"]).code(0);
    check(&["mcp_a_b_b_c", "mcp_a_b_c", "mcp_a_c"]);
    let reported = served.home.zeph(["mcp", "list"]).code(0).stdout;
    assert_has(
        &reported,
        &[
            "a: connected, 2 tools",
            "a_b: connected, 1 tool\n",
            conflict,
        ],
    );
}

/// Proves MCP-1: of 20 servers five hang. The first request does not wait for them, and has the approved tools. The others
/// serve calls.
#[test]
fn hanging_servers_do_not_delay_the_first_request() {
    let served = Served::new(&[echo()]);
    let folder = served.file("").display().to_string();
    let script = served.file("server.py").display().to_string();
    let server = |name: &str, mode: &str| {
        format!(
            "[[mcp.servers]]\nname = {name:?}\ncommand = \"python3\"\nargs = [{script:?}, {folder:?}, {mode:?}]\nwritable = [{folder:?}]\n"
        )
    };
    let mut config = String::new();
    for n in 0..20 {
        let mode = if n % 4 == 3 { "mute" } else { "" };
        config.push_str(&server(&format!("s{n}"), mode));
    }
    let model = OpenAi::replies([
        Reply::calls("e", &[("mcp_s4_echo", json!({ "text": "hello" }))]),
        Reply::text("Done."),
    ]);
    served
        .home
        .config(&format!("{}\n{config}", openai_config(&model.url())));
    for name in ["s0", "s4"] {
        served.home.zeph(["mcp", "approve", name, "--yes"]).code(0);
    }
    // A start that waits for the servers takes longer than this test may.
    served.home.more_config("[mcp]\nstart_wait_ms = 600000\n");
    let start = Instant::now();
    served.home.zeph(["-p", "go", "--yes"]).code(0);
    // The servers that hang would take 30 s.
    assert!(
        start.elapsed() < Duration::from_secs(25),
        "{:?}",
        start.elapsed()
    );
    let tools = model.requests()[0].json()["tools"].to_string();
    assert_has(&tools, &["mcp_s0_echo", "mcp_s4_echo"]);
    let results = model.requests()[1].json().to_string();
    assert_has(&results, &["said: hello"]);
    served.home.wait_until_alone();
}
