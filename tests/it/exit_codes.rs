//! Exit codes of every command: usage, refusal, interruption, closed pipes.

use rustix::process::Signal;

use crate::rig::{Home, is_running, wait_for};

/// An invalid date.
const NO_DATE: &str = "2026-13-45";

/// Proves CLI-3: a mistake in the command line or its input ends with exit code 2 and is named.
#[test]
fn usage_errors_end_with_2() {
    let home = Home::scripted("[[steps]]\ntext = \"ok\"\n");
    home.write("not.json", "not json");
    home.write("wrong.json", r#"{"type": "strnig"}"#);
    home.write("script", "{\"tool\": 1}\n");
    for args in [
        &["-p", ""][..],
        &["-p", " \n\t"],
        &["run", " "],
        &["-p", "x", "--output-schema", "missing.json"],
        &["-p", "x", "--output-schema", "not.json"],
        &["-p", "x", "--output-schema", "wrong.json"],
        &["-p", "x", "--output-format", "yaml"],
        &["-p", "x", "--mode", "wild"],
        &["-p", "x", "--set", "agent.no_such_key=1"],
        &["-p", "x", "--config", "missing.toml"],
        &["-C", "/no/such/directory", "-p", "x"],
        &["tools", "call", "bash", "no JSON"],
        &["tools", "call", "bash", "{\"command\": "],
        &["tools", "call", "bash", ""],
        &["tools", "run", "missing-script"],
        &["tools", "run", "script"],
        &["tools", "nonsense"],
        &["overflow", "get", "nonsense"],
        &["overflow", "get", "overflow:1234"],
        &["audit", "query", "--since", NO_DATE],
        &["audit", "query", "--since", "yesterday-ish"],
        &["audit", "query", "--since", ""],
        &["audit", "query", "--result", "odd"],
        &["audit", "query", "--limit", "many"],
        &["audit", "verify", "--head", "nonsense"],
        &["policy", "replay", "--since", NO_DATE],
        &["policy", "explain", "list_tasks", "no JSON"],
        &["scheduler", "add", NO_DATE, "x"],
        &["scheduler", "add", "61 * * * *", "x"],
        &["scheduler", "rm", "first"],
        &["filter"],
        &["filter", "run"],
        &["filter", "--exit-code", "x", "--command", "ls"],
        &["memory", "list", "--limit", "x"],
        &["completions", "tcsh-ish"],
        &["config", "check", "missing.toml"],
        &["no-such-command-at-all", "--x"],
    ] {
        let output = home.zeph(args).run().code(2);
        assert!(!output.stderr.trim().is_empty(), "{args:?} says nothing");
    }
    for (args, input) in [
        (&[][..], &b""[..]),
        (&[], b" \n"),
        (&[], b"\xff\xfea"),
        (&["run"], b""),
        (&["tools", "call", "bash", "-"], b"no JSON"),
        (&["tools", "run", "-"], b"no JSON\n"),
        (&["tools", "run", "-"], b"[]\n"),
        (&["tools", "run", "-"], b"\xff\n"),
    ] {
        home.zeph(args).stdin(input).run().code(2);
    }
}

/// Proves CLI-3: missing items and failures end with exit code 1.
#[test]
fn failures_end_with_1() {
    let home = Home::scripted("[[steps]]\nfault = \"server\"\n");
    for args in [
        &["-p", "x"][..],
        &["--resume", "ffffffff-none", "-p", "x"],
        &["sessions", "show", "none"],
        &["sessions", "rm", "none"],
        &["tools", "call", "read", "{\"path\": \"none\"}"],
        &["tools", "call", "read", "[]"],
        &["tools", "call", "no_such_tool", "{}"],
        &["memory", "rm", "memory_9"],
        &["models", "path", "none"],
        &["skills", "show", "none"],
        &["scheduler", "rm", "9"],
        &["overflow", "get", "01234567-89ab-cdef-0123-456789abcdef"],
        &["undo"],
    ] {
        home.zeph(args).run().code(1);
    }
}

/// Proves CLI-3: a gate refusal ends with exit code 3.
#[test]
fn refusals_end_with_3() {
    let home = Home::new();
    for args in [
        &["tools", "call", "bash", "{\"command\": \"touch x\"}"][..],
        &[
            "tools",
            "call",
            "bash",
            "{\"command\": \"sudo true\"}",
            "--yes",
        ],
        &["tools", "call", "read", "{\"path\": \"/etc/shadow\"}"],
        &[
            "--mode",
            "plan",
            "tools",
            "call",
            "write",
            "{\"path\": \"x\", \"content\": \"\"}",
            "--yes",
        ],
    ] {
        home.zeph(args).run().code(3);
    }
}

/// Proves CLI-3: an interruption ends every command with exit code 130.
#[test]
fn interruptions_end_with_130() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        for (args, waits) in [
            (&["-p", "x"][..], "for the model"),
            (&["-p", "x", "-"], "for input"),
            (&["run"], "for input"),
            (&["tools", "call", "bash", "-"], "for input"),
            (
                &[
                    "tools",
                    "call",
                    "bash",
                    "{\"command\": \"sleep 7221\"}",
                    "--yes",
                ],
                "for sleep 7221",
            ),
            (&["tools", "run", "-"], "for input"),
            (&["filter", "--command", "ls"], "for input"),
            (&["filter", "run", "--", "sleep", "7222"], "for sleep 7222"),
            (&["audit", "tail", "--follow"], "for calls"),
            (&["scheduler", "run"], "for tasks"),
        ] {
            let home = Home::scripted("[[steps]]\ntext = \"too late\"\ndelay_ms = 600000\n");
            home.write(".zeph/filters.toml", "[[rules]]\nname = \"x\"\nmatch = { exact = \"x\" }\nstrategy = { type = \"truncate\" }\n");
            let running = home.zeph(args).open_stdin(b"").start();
            wait_for("its handlers", || running.listens(signal).then_some(()));
            if let Some(seconds) = waits.strip_prefix("for sleep ") {
                let command = format!("sleep\0{seconds}");
                wait_for("the command", || is_running(&command).then_some(()));
            }
            running.signal(signal);
            let output = running.wait();
            assert_eq!(output.code, Some(130), "{args:?} {signal:?}: {output}");
            home.wait_until_alone();
        }
    }
}

/// Proves CLI-3: a closed pipe is not a failure, and nothing is printed.
#[test]
fn closed_pipe_is_silent_in_every_command() {
    let home = Home::scripted("[[steps]]\nrepeat = 9\ntext = \"ok\"\n");
    home.zeph(["-p", "x"]).code(0);
    let listed = home.zeph(["sessions", "list", "--json"]).code(0).json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    for args in [
        &["-p", "x", "-q"][..],
        &["tools", "list"],
        &["tools", "list", "--json"],
        &["tools", "show", "bash"],
        &["tools", "call", "list_tasks", "{}", "-q"],
        &["tools", "call", "list_tasks", "{}", "--json", "-q"],
        &["sessions", "list"],
        &["sessions", "show", &id],
        &["sessions", "export", &id],
        &["audit", "query"],
        &["audit", "query", "--json"],
        &["policy", "explain", "bash", "ls"],
        &["policy", "replay"],
        &["config", "show"],
        &["config", "schema"],
        &["config", "path"],
        &["config", "init", "--print"],
        &["filter", "explain", "cargo", "test"],
        &["filter", "gain"],
        &["filter", "run", "--", "seq", "10"],
        &["memory", "list"],
        &["models", "list"],
        &["skills", "list"],
        &["scheduler", "list"],
        &["mcp", "list"],
        &["overflow", "list"],
        &["undo", "--list"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["--version"],
    ] {
        let output = home.zeph(args).closed_stdout().run().code(0);
        assert_eq!(output.stderr, "", "{args:?}");
    }
}
