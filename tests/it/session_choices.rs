//! The mode, the model and the effort of a session in both interfaces of a terminal: stored when they change, and
//! restored when the session continues.

use std::num::NonZeroU16;

use crate::rig::{Home, OpenAi, Reply, Terminal, session_ids};

/// The keys of Shift-Tab.
const NEXT_MODE: &str = "\x1b[Z";
/// The options that select an interface.
const INTERFACES: [&[&str]; 2] = [&[], &["--tui"]];

/// Two providers of one server, which says the number of its response.
fn home(server: &OpenAi) -> Home {
    let home = Home::new();
    // The last one that is added is the first in the file: the default.
    for (name, model) in [("other", "other-model"), ("local", "test-model")] {
        home.more_config(&format!(
            "[[llm.providers]]\nname = \"{name}\"\ntype = \"openai\"\nmodel = \"{model}\"\nbase_url = \"{}\"\n",
            server.url()
        ));
    }
    home
}

fn counting() -> OpenAi {
    OpenAi::start(|n, _| Reply::text(&format!("answer {n}")))
}

/// A session in an interface that is ready for an input.
#[track_caller]
fn open(home: &Home, interface: &[&str], args: &[&str]) -> Terminal {
    // In a wider terminal, the panels of the full screen are next to the conversation.
    let (rows, columns) = (NonZeroU16::new(24).unwrap(), NonZeroU16::new(80).unwrap());
    let terminal = Terminal::sized(home, &[interface, args].concat(), rows, columns);
    ready(&terminal, interface);
    terminal
}

#[track_caller]
fn ready(terminal: &Terminal, interface: &[&str]) {
    match interface.is_empty() {
        true => terminal.prompts(""),
        false => terminal.shows("? keys"),
    }
}

#[track_caller]
fn enter(terminal: &mut Terminal, interface: &[&str], line: &str, shown: &str) {
    ready(terminal, interface);
    terminal.type_keys(&format!("{line}\r"));
    terminal.shows(shown);
}

/// Asserts that the prompt or the status bar has the mode.
#[track_caller]
fn has_mode(terminal: &Terminal, interface: &[&str], mode: &str) {
    match interface.is_empty() {
        true => terminal.until(mode, |text| {
            text.lines()
                .any(|line| line.starts_with(&format!("{mode} ›")))
        }),
        false => terminal.until(mode, |text| {
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            last.is_some_and(|line| line.contains(&format!("{mode} ·")))
        }),
    }
}

#[track_caller]
fn leave(mut terminal: Terminal, interface: &[&str]) {
    ready(&terminal, interface);
    terminal.type_keys("\x04");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

/// Proves CLI-6, PERM-8, LLM-12: the mode, the model and the effort of a session are restored by `--continue` and
/// `--resume`, the screen states them, and flags of the command line precede them.
#[test]
fn mode_model_and_effort_are_restored() {
    for interface in INTERFACES {
        let server = counting();
        let home = home(&server);
        let mut terminal = open(&home, interface, &[]);
        enter(
            &mut terminal,
            interface,
            "/mode auto-edit",
            "mode auto-edit: ",
        );
        enter(
            &mut terminal,
            interface,
            "/model other high",
            "requests go to other-model (other, effort high) from now on",
        );
        enter(&mut terminal, interface, "one", "answer 0");
        leave(terminal, interface);
        let id = session_ids(&home.database()).remove(0);

        let restored =
            "this session continues with mode auto-edit and model other-model (other, effort high)";
        let mut terminal = open(&home, interface, &["--continue"]);
        terminal.shows(restored);
        has_mode(&terminal, interface, "auto-edit");
        enter(&mut terminal, interface, "two", "answer 1");
        let request = server.last().json();
        assert_eq!(request["model"], "other-model");
        assert_eq!(request["reasoning_effort"], "high");
        leave(terminal, interface);

        let args = ["--resume", &id, "--mode", "plan", "--model", "flag-model"];
        let mut terminal = open(&home, interface, &args);
        has_mode(&terminal, interface, "plan");
        enter(&mut terminal, interface, "three", "answer 2");
        assert_eq!(server.last().json()["model"], "flag-model");
        assert!(!terminal.text().contains("this session continues with"));
        leave(terminal, interface);
        // The flags were no choice for the session.
        let terminal = open(&home, interface, &["--resume", &id]);
        terminal.shows(restored);
        leave(terminal, interface);
    }
}

/// Proves CLI-4d, CLI-6: a mode that Shift-Tab selected is stored when the session ends, and a new session has the mode of
/// the configuration.
#[test]
fn mode_of_shift_tab_is_restored() {
    for interface in INTERFACES {
        let server = counting();
        let home = home(&server);
        let mut terminal = open(&home, interface, &[]);
        enter(&mut terminal, interface, "one", "answer 0");
        ready(&terminal, interface);
        terminal.type_keys(NEXT_MODE);
        has_mode(&terminal, interface, "auto-edit");
        leave(terminal, interface);
        let terminal = open(&home, interface, &["--continue"]);
        terminal.shows("this session continues with mode auto-edit");
        has_mode(&terminal, interface, "auto-edit");
        leave(terminal, interface);
        let terminal = open(&home, interface, &[]);
        has_mode(&terminal, interface, "ask");
        leave(terminal, interface);
    }
}

/// Proves CLI-6: `/resume` gives each session its own mode and model, and a copy continues with those of the original.
#[test]
fn each_session_has_its_own_choices() {
    for interface in INTERFACES {
        let server = counting();
        let home = home(&server);
        home.zeph(["-p", "the first"]).code(0);
        let first = session_ids(&home.database()).remove(0);
        let mut terminal = open(&home, interface, &[]);
        enter(&mut terminal, interface, "the second", "answer 1");
        enter(&mut terminal, interface, "/mode plan", "mode plan: ");
        enter(
            &mut terminal,
            interface,
            "/model other",
            "requests go to other-model (other)",
        );
        let ids = session_ids(&home.database());
        let second = ids.into_iter().find(|id| *id != first).unwrap();
        let resume = |id: &str| format!("/resume {id}");
        enter(
            &mut terminal,
            interface,
            &resume(&first),
            "continues: 2 messages",
        );
        has_mode(&terminal, interface, "ask");
        enter(&mut terminal, interface, "three", "answer 2");
        assert_eq!(server.last().json()["model"], "test-model");
        enter(
            &mut terminal,
            interface,
            &resume(&second),
            "this session continues with mode plan and model other-model (other)",
        );
        has_mode(&terminal, interface, "plan");
        enter(&mut terminal, interface, "/fork", "continues as a copy of");
        has_mode(&terminal, interface, "plan");
        enter(&mut terminal, interface, "four", "answer 3");
        assert_eq!(server.last().json()["model"], "other-model");
        leave(terminal, interface);
        let terminal = open(&home, interface, &["--continue"]);
        terminal.shows("this session continues with mode plan and model other-model (other)");
        leave(terminal, interface);
    }
}

/// Proves PERM-8: a restored mode is at most as loose as the mode of a configuration file; a stricter one is restored. A
/// variable of the environment precedes it.
#[test]
fn restored_mode_does_not_loosen_the_configuration() {
    for interface in INTERFACES {
        let server = counting();
        let home = home(&server);
        let mut terminal = open(&home, interface, &[]);
        enter(&mut terminal, interface, "one", "answer 0");
        enter(&mut terminal, interface, "/mode auto", "mode auto: ");
        leave(terminal, interface);
        home.more_config("[tools]\nmode = \"ask\"\n");
        let mut terminal = open(&home, interface, &["--continue"]);
        terminal.shows("mode auto of this session is looser than the configured one");
        terminal.shows("mode ask applies");
        has_mode(&terminal, interface, "ask");
        enter(&mut terminal, interface, "/mode plan", "mode plan: ");
        leave(terminal, interface);
        let terminal = open(&home, interface, &["--continue"]);
        terminal.shows("this session continues with mode plan");
        has_mode(&terminal, interface, "plan");
        leave(terminal, interface);
        let args = [interface, &["--continue"]].concat();
        let terminal = Terminal::under(&home, &args, &[("ZEPH_TOOLS_MODE", Some("ask"))]);
        ready(&terminal, interface);
        has_mode(&terminal, interface, "ask");
        leave(terminal, interface);
    }
}

/// Proves CLI-6, PERM-8: a stored choice that is not possible here is reported, and the configuration applies.
#[test]
fn impossible_choice_is_reported() {
    for interface in INTERFACES {
        let server = counting();
        let home = home(&server);
        home.zeph(["-p", "one"]).code(0);
        crate::rig::execute(
            &home.database(),
            "UPDATE session SET chosen_mode = 'yolo', chosen_provider = 'gone', chosen_model = 'm'",
        );
        let mut terminal = open(&home, interface, &["--continue"]);
        terminal.shows("mode yolo of this session is not possible here; mode ask applies");
        terminal.shows("model m (gone) of this session cannot be used");
        has_mode(&terminal, interface, "ask");
        enter(&mut terminal, interface, "two", "answer 1");
        assert_eq!(server.last().json()["model"], "test-model");
        leave(terminal, interface);
    }
}
