//! Questions to the client: only an offered option that allows is an approval.

use serde_json::{Value, json};

use crate::rig::{Decision, Editor, Home, OpenAi, Reply, audit};

fn touches(times: usize) -> OpenAi {
    let mut replies: Vec<_> = Vec::new();
    for n in 0..times {
        let touch = json!({ "command": format!("touch ran-{n}") });
        replies.push(Reply::calls(&n.to_string(), &[("bash", touch)]));
        replies.push(Reply::text("Done."));
    }
    OpenAi::replies(replies)
}

/// Proves ACP-5, EXE-20, PERM-2: nothing but an offered approval lets a call run, and each call has its audit entry.
#[test]
fn only_an_offered_approval_lets_a_call_run() {
    let check = |decision: Decision, ran: bool| {
        let server = touches(1);
        let home = Home::openai(&server);
        let mut editor = Editor::open(&home);
        editor.decision = decision;
        let session = editor.session(&home.project());
        assert_eq!(editor.prompt(&session, "go"), "end_turn", "{decision:?}");
        assert_eq!(home.has("ran-0"), ran, "{decision:?}");
        let end = editor.end_of_call("touch ran-0");
        let status = if ran { "completed" } else { "failed" };
        assert_eq!(end["status"], status, "{decision:?}");
        let entries = audit(&home.database());
        assert_eq!(entries.len(), 1, "{decision:?}");
    };
    check(Decision::Option("once"), true);
    check(Decision::Option("reject"), false);
    check(Decision::Option("always"), false);
    check(Decision::Option(""), false);
    check(Decision::Cancelled, false);
    check(Decision::Error, false);
}

/// Proves ACP-5: the question shows the call, the reason and the scope of each option.
#[test]
fn question_shows_the_scope_of_each_option() {
    let server = touches(1);
    let home = Home::openai(&server);
    let mut editor = Editor::open(&home);
    let session = editor.session(&home.project());
    editor.send_prompt(&session, "go");
    let question = editor.until_question();
    let options = question["options"].as_array().unwrap();
    let of = |key: &str| {
        options
            .iter()
            .map(|it| it[key].clone())
            .collect::<Vec<Value>>()
    };
    assert_eq!(
        of("optionId"),
        [
            "once",
            "session",
            "always-project",
            "always-everywhere",
            "reject"
        ]
    );
    assert_eq!(
        of("kind"),
        [
            "allow_once",
            "allow_always",
            "allow_always",
            "allow_always",
            "reject_once"
        ]
    );
    let names = of("name");
    let project = home.project().display().to_string();
    assert!(
        names[1].as_str().unwrap().contains("bash `touch"),
        "{names:?}"
    );
    assert!(names[2].as_str().unwrap().contains(&project), "{names:?}");
    let call = &question["toolCall"];
    assert_eq!(call["rawInput"]["command"], "touch ran-0");
    assert_eq!(call["status"], "pending");
    assert!(call["content"].to_string().contains("Reason"), "{call}");
}

/// Proves ACP-5, PERM-7: an approval for the session or for good is not asked about again.
#[test]
fn remembered_approval_is_not_requested_again() {
    for (option, lasts) in [
        ("session", false),
        ("always-project", true),
        ("always-everywhere", true),
    ] {
        let home = Home::new();
        let touch = || Reply::calls("t", &[("bash", json!({ "command": "touch ran" }))]);
        let server = OpenAi::replies([
            touch(),
            Reply::text("1."),
            touch(),
            Reply::text("2."),
            touch(),
            Reply::text("3."),
        ]);
        home.config(&crate::rig::openai_config(&server.url()));
        let mut editor = Editor::open(&home);
        editor.decision = Decision::Option(option);
        let session = editor.session(&home.project());
        let questions = |editor: &Editor| {
            let asks = |it: &&Value| it["method"] == "session/request_permission";
            editor.seen.iter().filter(asks).count()
        };
        editor.prompt(&session, "go");
        editor.prompt(&session, "go");
        assert_eq!(questions(&editor), 1, "{option}");
        let other = editor.session(&home.project());
        editor.prompt(&other, "go");
        assert_eq!(questions(&editor), if lasts { 1 } else { 2 }, "{option}");
    }
}

/// Proves ACP-5, D-33.
#[test]
fn check_in_is_a_question() {
    for (option, rounds) in [("more", 4), ("until-done", 4), ("stop", 2), ("unknown", 2)] {
        let home = Home::new();
        let server = OpenAi::start(|n, request| {
            let is_last = request.json()["tool_choice"] == "none";
            match (is_last, n) {
                (false, 0..4) => {
                    let command = json!({ "command": format!("echo {n}") });
                    Reply::calls(&n.to_string(), &[("bash", command)])
                }
                _ => Reply::text("Done."),
            }
        });
        home.config(&format!(
            "[agent]\nmax_tool_iterations = 2\n{}",
            crate::rig::openai_config(&server.url())
        ));
        let mut editor = Editor::open(&home);
        editor.decision = Decision::Option(option);
        let session = editor.session(&home.project());
        let reason = editor.prompt(&session, "go");
        let expect = if rounds == 2 {
            "max_turn_requests"
        } else {
            "end_turn"
        };
        assert_eq!(reason, expect, "{option}");
        let calls = editor.updates("tool_call");
        let commands = calls.iter().filter(|it| it["kind"] == "execute").count();
        assert_eq!(commands, rounds, "{option}");
        let asked = calls.iter().filter(|it| it["kind"] != "execute").count();
        let times = if option == "more" { 2 } else { 1 };
        assert_eq!(asked, times, "{option}: {calls:#?}");
    }
}

/// Proves ACP-5, PERM-2: `--yes` approves once, and denied calls stay denied.
#[test]
fn yes_approves_and_deny_rules_still_apply() {
    let server = touches(1);
    let home = Home::openai(&server);
    let mut editor = Editor::with_args(&home, &["--yes", "--mode", "plan"]);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    assert!(!home.has("ran-0"));
    let server = touches(1);
    let home = Home::openai(&server);
    let mut editor = Editor::with_args(&home, &["--yes"]);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    assert!(home.has("ran-0"));
    let server = touches(1);
    let home = Home::openai(&server);
    home.more_config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n");
    let mut editor = Editor::with_args(&home, &["--yes"]);
    let session = editor.session(&home.project());
    editor.prompt(&session, "go");
    assert!(!home.has("ran-0"));
}
