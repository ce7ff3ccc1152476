//! Tests of the permission question.

use serde_json::json;
use zeph_tools::preview::Preview;

use super::*;
use crate::view::permission_answers::{Answer, default_option, options};

const WHY: &str = "  why: no rule allows it";

fn confirmation(tool: &str) -> Confirmation {
    Confirmation {
        tool: tool.to_owned(),
        subject: "the subject".to_owned(),
        reason: "no rule allows it".to_owned(),
        risk: Risk::High,
        ..Confirmation::default()
    }
}

fn part(text: &str, asked: bool, judged: &str, depth: usize) -> DisplayPart {
    DisplayPart {
        text: text.to_owned(),
        depth,
        asked,
        judged: judged.to_owned(),
    }
}

fn shown(question: &Confirmation, params: Value, width: usize, detail: Detail) -> String {
    let lines = question_lines(question, &params, width, detail);
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn asked(tool: &str, params: Value) -> String {
    shown(&confirmation(tool), params, 80, Detail::Excerpt)
}

/// Proves PERM-2, PERM-7: a question shows all that would run.
#[test]
fn question_shows_the_whole_call() {
    let long = format!("echo {}\nrm -rf x", "a".repeat(100));
    assert_eq!(
        asked("bash", json!({ "command": long })),
        format!(
            "? May bash run?  risk: high\n  $ echo\n  │ {}\n  │ {}\n  │ rm -rf x\n{WHY}",
            "a".repeat(76),
            "a".repeat(24)
        )
    );
    assert_eq!(
        asked(
            "edit",
            json!({"new_string": "z", "old_string": "x\ny", "path": "a.rs"})
        ),
        format!("? May edit run?  risk: high\n  path: a.rs\n  │ - x\n  │ - y\n  │ + z\n{WHY}")
    );
    assert!(asked("x", json!({})).contains("\n  the subject\n"));
    assert!(asked("x", json!({"n": 3})).contains("\n  n: 3\n"));
    let both = asked("move_path", json!({"destination": "b", "source": "a"}));
    assert!(both.contains("\n  source: a\n  destination: b\n"), "{both}");
}

/// Proves CLI-4b, PERM-7: the command is shown once, and the parts that need confirmation are marked.
#[test]
fn command_is_shown_once_with_marks() {
    let mut question = confirmation("bash");
    question.pieces = vec![
        part(
            "cargo test",
            false,
            "allowed by the rule `cargo *` (c.toml:3)",
            0,
        ),
        part("sudo rm x", true, "asked, runs another command", 0),
        part("rm x", true, "asked", 1),
        part("writes /tmp/log", true, "asked", 0),
    ];
    question.offer.proposal = ApprovalProposal::ThisCall {
        why: "`sudo` runs another command".to_owned(),
    };
    let params = json!({"command": "cargo test && sudo rm x > /tmp/log"});
    let expect = "\
? May bash run?  risk: high
  $ cargo test && sudo rm x > /tmp/log
                  ^^^^^^^^^
    ✔ cargo test — allowed by the rule `cargo *` (c.toml:3)
    ^ sudo rm x — asked, runs another command
      ^ rm x — asked
    ^ writes /tmp/log — asked
  why: no rule allows it
  [2] this session: only this call
  [3] always is not available: `sudo` runs another command";
    assert_eq!(shown(&question, params, 80, Detail::Excerpt), expect);
    let mut question = confirmation("bash");
    question.pieces = vec![part("rm -rf x", true, "asked", 0)];
    let text = shown(
        &question,
        json!({"command": "rm -rf x"}),
        80,
        Detail::Excerpt,
    );
    assert_eq!(
        text,
        format!("? May bash run?  risk: high\n  $ rm -rf x\n    ^ asked\n{WHY}")
    );
}

/// Proves CLI-4b: a long command with quotes is shown once; its part and the offered rule are named in short.
#[test]
fn command_with_quotes_is_shown_once() {
    let command = "printf 'line one of many\\nline two of many\\n' >> notes.txt";
    let text = "printf line one of many\\nline two of many\\n, and several more words of it";
    let mut question = confirmation("bash");
    question.pieces = vec![
        part(text, true, "asked", 0),
        part("writes /p/notes.txt", true, "asked", 0),
    ];
    question.offer.project = Some("/p".into());
    question.offer.proposal = ApprovalProposal::Grants(vec![
        Grant {
            tool: "bash".to_owned(),
            pattern: text.replace('\\', "\\\\").replace(' ', "\\ "),
        },
        Grant {
            tool: "write".to_owned(),
            pattern: "/p/notes.txt".to_owned(),
        },
    ]);
    let params = json!({ "command": command });
    let expect = format!(
        "\
? May bash run?  risk: high
  $ {command}
    ^ printf line one of many\\nline two of many\\n, and several mo… — asked
    ^ writes /p/notes.txt — asked
{WHY}
  [2] this session, [3] always: bash exactly `printf line one of many\\nline t…`, write `/p/notes.txt`"
    );
    let shown_in = |detail| shown(&question, params.clone(), 120, detail);
    assert_eq!(shown_in(Detail::Excerpt), expect);
    assert!(shown_in(Detail::Full).contains(&format!("\n    ^ {text} — asked\n")));
}

/// Proves PERM-7: nothing is invisible, and no text imitates the question.
#[test]
fn question_shows_hidden_characters() {
    let hidden = "ls \u{1b}[8m\u{200b}\u{fe0f}\u{e0041}\u{202e}\u{2066}; rm ~\r# harmless\n? May ls run?  risk: safe";
    let escaped =
        "ls \\u{1b}[8m\\u{200b}\\u{fe0f}\\u{e0041}\\u{202e}\\u{2066}; rm ~\\u{d}# harmless";
    let mut question = confirmation("bash\n? May");
    question.reason = format!("because\n{hidden}");
    question.pieces = vec![part(hidden, true, hidden, 0)];
    for params in [
        json!({ "command": hidden }),
        json!({ "path": hidden }),
        json!({ hidden: 1 }),
    ] {
        let text = shown(&question, params, 300, Detail::Full);
        assert!(text.contains(escaped), "{text}");
        assert!(
            !text
                .chars()
                .any(|c| c != '\n' && (c.is_control() || zeph_tools::hidden::is_blank(c)))
        );
        assert_eq!(text.matches("\n? May").count(), 0, "{text}");
    }
}

/// Proves CLI-4b: the diff is shown once, and bounded; all of it on request.
#[test]
fn diff_of_a_question_is_bounded() {
    let mut write = confirmation("write");
    write.preview = Some(Preview {
        diff: "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\u{1b}[8m\n+++ hidden\n".to_owned(),
        basis: [0; 32],
    });
    write.offer.proposal = ApprovalProposal::Grants(vec![Grant {
        tool: "write".to_owned(),
        pattern: "/p/x".to_owned(),
    }]);
    write.offer.project = Some("/p".into());
    let params = json!({"path": "x", "content": "new"});
    assert_eq!(
        shown(&write, params.clone(), 80, Detail::Excerpt),
        format!(
            "? May write run?  risk: high\n  path: x\n  │ @@ -1 +1,2 @@\n  │ -old\n  │ +new\\u{{1b}}[8m\n  │ +++ hidden\n{WHY}\n  [2] this session, [3] always: write `/p/x`\n  {ACCEPT_ALL}"
        )
    );
    write.preview = Some(Preview {
        diff: format!("@@ -0,0 +1 @@\n{}", "+a\n".repeat(100)),
        basis: [0; 32],
    });
    let text = shown(&write, params.clone(), 80, Detail::Excerpt);
    assert_eq!(text.matches("  │ +a").count(), 39);
    assert!(
        text.contains("\n  │ … 61 more lines (Ctrl-O shows all)\n"),
        "{text}"
    );
    assert_eq!(
        shown(&write, params, 80, Detail::Full)
            .matches("  │ +a")
            .count(),
        100
    );
    let content = "line\n".repeat(30);
    let text = asked("write", json!({"path": "a", "content": content}));
    assert_eq!(text.matches("  │ + line\n").count(), 20);
    assert!(
        text.contains("  … 10 more lines (Ctrl-O shows all)\n"),
        "{text}"
    );
    let text = asked("write", json!({"path": "a", "content": "b".repeat(500)}));
    assert!(text.contains("b… (100 more characters)\n"), "{text}");
}

/// Proves PERM-7: the keys of the answers; "no" is selected at first.
#[test]
fn first_selected_answer_is_no() {
    let mut question = confirmation("bash");
    let keys = |question: &Confirmation| {
        let options = options(question);
        let no = default_option(&options);
        assert_eq!(options[no].answer, Answer::No);
        assert!(
            option_lines(&options, Some(no), 25)
                .iter()
                .all(|line| line.width() <= 25)
        );
        option_lines(&options, Some(no), 80).remove(0)
    };
    let line = keys(&question);
    assert_eq!(
        line.to_string(),
        "  [1] once ›[4] no  [5] no, and tell it why"
    );
    let reversed: Vec<&str> = line
        .spans
        .iter()
        .filter(|span| span.style.add_modifier.contains(Modifier::REVERSED))
        .map(|span| span.content.as_ref())
        .collect();
    assert_eq!(reversed, ["[4] no"]);
    question.offer.proposal = ApprovalProposal::Grants(Vec::new());
    assert_eq!(
        keys(&question).to_string(),
        "  [1] once  [2] this session ›[4] no  [5] no, and tell it why"
    );
    question.offer.project = Some("/p".into());
    assert_eq!(
        keys(&question).to_string(),
        "  [1] once  [2] this session  [3] always ›[4] no  [5] no, and tell it why"
    );
}

#[test]
fn plain_question_is_complete() {
    let mut question = confirmation("bash");
    question.pieces = vec![part("rm x", true, "asked", 0)];
    let text = plain_question(&question, &json!({"command": "rm x"}));
    assert_eq!(
        text,
        format!("May bash run?  risk: high\n  $ rm x\n    ^ asked\n{WHY}\n")
    );
    assert_eq!(session_scope(&question), None);
}
