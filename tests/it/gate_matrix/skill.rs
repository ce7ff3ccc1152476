//! Rows of the skill gate.

use serde_json::json;

use super::case::{Call, Case, Entry, Expect, ONE_CALL, Outcome, Say};
use super::outer::allowing;
use crate::rig::Home;

/// Writes the project skill `notes` with these allowed tools.
fn write(home: &Home, allowed: &str) {
    let head = format!(
        "name: notes\ndescription: D.\nallowed-tools: [{allowed}]\n\
         tools: [{{name: make_file, description: D., command: touch ran}}]\n"
    );
    home.write(
        ".zeph/skills/notes/SKILL.md",
        &format!("---\n{head}---\nx\n"),
    );
}

fn trust(home: &Home) {
    home.zeph(["skills", "trust", "notes", "--yes"]).code(0);
}

pub(super) fn skill() -> Vec<Case> {
    let case = |outcome, what| Case::new("skill", outcome, what).config(allowing!(""));
    let invoke: fn() -> Call = || ("invoke_skill", json!({ "name": "notes" }));
    let make: fn() -> Call = || ("make_file", json!({}));
    let refused = Expect::blocked()
        .model_reads(&["the skill notes runs until the end of this turn and allows"]);
    let asked = Expect::unasked().model_reads(&["comes from an untrusted source"]);
    let said_no = Expect::blocked().model_reads(&["the user refused this call"]);
    vec![
        case(Outcome::Allowed, "a running skill allows the tool")
            .prepare(|home| {
                write(home, "bash");
                trust(home);
            })
            .before(invoke())
            .expect(Expect::runs()),
        case(Outcome::Allowed, "a tool of a trusted skill")
            .prepare(|home| {
                write(home, "");
                trust(home);
            })
            .call(make())
            .expect(Expect::runs()),
        case(
            Outcome::Denied,
            "a running skill does not allow the tool, regardless of approvals",
        )
        .args(&["--yes"])
        .prepare(|home| {
            write(home, "read");
            trust(home);
        })
        .before(invoke())
        .not_at(&[Entry::SubAgent], "a sub-agent invokes no skill")
        .expect(refused.matched("allowed-tools of the skill notes"))
        .at(&ONE_CALL, &Expect::runs()),
        Case::new(
            "skill",
            Outcome::Denied,
            "a declared tool whose command rules deny",
        )
        .config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"")
        .prepare(|home| {
            write(home, "");
            trust(home);
        })
        .call(make())
        .expect(Expect::blocked().model_reads(&["says deny"])),
        case(Outcome::Asked, "a tool of an untrusted skill")
            .prepare(|home| write(home, ""))
            .call(make())
            .say(Say::No)
            .expect(asked.clone())
            .at(&[Entry::Terminal], &said_no),
        case(Outcome::Asked, "an approved tool of an untrusted skill")
            .prepare(|home| write(home, ""))
            .call(make())
            .say(Say::Yes)
            .at(&[Entry::Scheduled], &Expect::unasked())
            .expect(Expect::runs().by("user")),
        case(Outcome::Fault, "the trust record cannot be read")
            .prepare(|home| {
                write(home, "");
                trust(home);
                let pins = std::fs::read_dir(home.data().join("zeph/skill-trust")).unwrap();
                for pin in pins.flatten() {
                    std::fs::write(pin.path(), "{").unwrap();
                }
            })
            .call(make())
            .say(Say::No)
            .expect(asked)
            .at(&[Entry::Terminal], &said_no),
    ]
}
