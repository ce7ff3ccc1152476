//! Rows of the inner gates: anomaly, permission, utility, and refusals of the executors.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::case::{
    Call, Case, Entry, Expect, MARK, ONE_CALL, OWN, Outcome, Say, bash, read, write,
};
use super::outer::allowing;
use crate::rig::Home;

pub(super) fn anomaly() -> Vec<Case> {
    let case = |outcome, what| Case::new("anomaly", outcome, what);
    vec![
        case(Outcome::Allowed, "a window that is not full")
            .config("[tools.anomaly]\nwindow_size = 2")
            .before(read("missing.txt"))
            .call(read("a.txt"))
            .expect(Expect::runs()),
        case(Outcome::Allowed, "failures are only reported")
            .config("[tools.anomaly]\nwindow_size = 1\nauto_block = false")
            .before(read("missing.txt"))
            .call(read("a.txt"))
            .expect(Expect::runs().user_reads(&["read fails too often"]))
            .not_at(&ONE_CALL, "it counts the calls of one process"),
        case(Outcome::Denied, "a tool that failed too often")
            .config("[tools.anomaly]\nwindow_size = 1")
            .before(read("missing.txt"))
            .call(read("a.txt"))
            .expect(
                Expect::blocked()
                    .model_reads(&["read is blocked in this session"])
                    .user_reads(&["read fails too often"]),
            )
            .not_at(&ONE_CALL, "it counts the calls of one process"),
        case(Outcome::Fault, "a threshold that is not a share")
            .config(allowing!("[tools.anomaly]\nfailure_threshold = 1.5"))
            .expect(Expect::no_start(&["config.toml:2", "failure_threshold"])),
    ]
}

/// Writes this text as the file of permanent approvals.
fn keep(home: &Home, text: &str) {
    let file = home.home().join(".config/zeph/policies.json");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Approves the tested call permanently.
fn agree(home: &Home) {
    let text = r#"{ "version": 1, "rules": [ { "tool": "bash", "pattern": "touch ran", "scope": "global", "added": "2026-01-02T03:04:05Z" } ] }"#;
    keep(home, text);
}

/// Makes the file of approvals invalid.
fn spoil(home: &Home) {
    keep(home, "{ \"version\": 1, \"rules\": [ {");
}

/// The two rows of a cause that asks.
fn asks(what: [&'static str; 2], make: impl Fn(Case) -> Case) -> [Case; 2] {
    let [no, yes] = what;
    let case = |what| make(Case::new("permission", Outcome::Asked, what));
    [
        case(no)
            .say(Say::No)
            .expect(Expect::unasked().model_reads(&["--yes approves every question once"]))
            .at(
                &[Entry::Scheduled],
                &Expect::unasked().model_reads(&["scheduler.skip_questions"]),
            )
            .at(
                &[Entry::Terminal],
                &Expect::blocked().model_reads(&["the user refused this call"]),
            ),
        case(yes)
            .say(Say::Yes)
            .at(&[Entry::Scheduled], &Expect::unasked())
            .expect(Expect::runs().by("user")),
    ]
}

pub(super) fn permission() -> Vec<Case> {
    let case = |outcome, what| Case::new("permission", outcome, what);
    let mut cases = vec![
        case(Outcome::Allowed, "a rule that allows")
            .config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"allow\"")
            .expect(
                Expect::runs()
                    .by("policy")
                    .matched("tools.permissions.bash[0]"),
            ),
        case(Outcome::Allowed, "a reader needs no question")
            .call(read("a.txt"))
            .expect(Expect::runs().by("auto").model_reads(&[MARK])),
        case(Outcome::Allowed, "a change of a file in mode auto-edit")
            .args(&["--mode", "auto-edit"])
            .call(write())
            .expect(Expect::runs().by("auto")),
        case(Outcome::Allowed, "mode full")
            .args(&["--mode", "full", "--unsandboxed"])
            .expect(Expect::runs().by("auto")),
        case(Outcome::Allowed, "a permanent approval")
            .prepare(agree)
            .expect(
                Expect::runs()
                    .by("remembered")
                    .matched("remembered bash \"touch ran\""),
            ),
        case(
            Outcome::Denied,
            "a rule that denies regardless of approvals",
        )
        .config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"")
        .args(&["--yes"])
        .prepare(agree)
        .expect(
            Expect::blocked()
                .model_reads(&["says deny"])
                .matched("tools.permissions.bash[0]"),
        ),
        case(Outcome::Denied, "mode plan")
            .config(allowing!(""))
            .args(&["--yes", "--mode", "plan"])
            .expect(Expect::blocked().model_reads(&["plan"])),
        case(Outcome::Denied, "a hidden tool")
            .config("[[tools.permissions.bash]]\npattern = \"*\"\naction = \"deny\"")
            .args(&["--yes"])
            .expect(Expect::blocked().matched("tools.permissions.bash[0]")),
        case(Outcome::Fault, "an invalid rule")
            .config("[[tools.permissions.write]]\npattern = \"[\"\naction = \"deny\"")
            .expect(Expect::no_start(&[
                "config.toml:2",
                "tools.permissions.write[0]",
            ])),
        case(Outcome::Fault, "an unknown tool")
            .config("[[tools.permissions.bsh]]\npattern = \"*\"\naction = \"deny\"")
            .expect(Expect::no_start(&["config.toml:2", "bsh"])),
        case(Outcome::Fault, "the approvals cannot be read")
            .prepare(spoil)
            .expect(Expect::no_start(&["policies.json:1"])),
        case(Outcome::Fault, "others can write the approvals")
            .prepare(|home| {
                agree(home);
                let file = home.home().join(".config/zeph/policies.json");
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
            })
            .expect(Expect::no_start(&[
                "policies.json",
                "other users can write it",
            ])),
        case(
            Outcome::Fault,
            "the approvals become unreadable while the session runs",
        )
        .prepare(agree)
        .before(read("a.txt"))
        .meanwhile(spoil)
        .say(Say::No)
        .expect(Expect::unasked())
        .at(
            &[Entry::Terminal],
            &Expect::blocked().model_reads(&["the user refused this call"]),
        )
        .at(&ONE_CALL, &Expect::no_start(&["policies.json:1"])),
    ];
    cases.extend(asks(["a command: no", "a command: yes"], |case| case));
    cases.extend(asks(
        ["a change of a file: no", "a change of a file: yes"],
        |case| case.call(write()),
    ));
    cases.extend(asks(
        ["a rule that asks: no", "a rule that asks: yes"],
        |case| case.config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"ask\""),
    ));
    cases.extend(asks(
        [
            "a target of a redirection: no",
            "a target of a redirection: yes",
        ],
        |case| case.config(allowing!("")).call(bash("echo x > ran")),
    ));
    cases
}

/// A hook before each call, with this command.
macro_rules! hook {
    ($command:literal) => {
        concat!("[[hooks]]\nevent = \"before_call\"\ntools = [\"ba*\"]\ntimeout_secs = 1\ncommand = '''", $command, "'''\n")
    };
}

pub(super) fn hooks() -> Vec<Case> {
    let case = |outcome, what| Case::new("hooks", outcome, what);
    vec![
        case(Outcome::Allowed, "a hook that decides nothing")
            .config(allowing!(hook!("cat >/dev/null")))
            .expect(Expect::runs()),
        case(Outcome::Allowed, "a hook of another tool")
            .config(allowing!(
                "[[hooks]]\nevent = \"before_call\"\ntools = [\"read\"]\ncommand = \"exit 2\"\n"
            ))
            .expect(Expect::runs()),
        case(Outcome::Denied, "a hook that prints a denial")
            .config(allowing!(hook!(
                r#"echo '{"decision": "deny", "reason": "no touching"}'"#
            )))
            .expect(Expect::blocked().model_reads(&["denied it: no touching"])),
        case(Outcome::Denied, "a hook with exit code 2")
            .config(allowing!(hook!("echo no touching >&2; exit 2")))
            .expect(Expect::blocked().model_reads(&["denied it: no touching"])),
        case(Outcome::Denied, "a call that the user approved")
            .config(hook!("echo no touching >&2; exit 2"))
            .say(Say::Yes)
            .expect(Expect::blocked().model_reads(&["denied it: no touching"]))
            .at(&[Entry::Scheduled], &Expect::unasked()),
        case(Outcome::Fault, "a hook that fails")
            .config(allowing!(hook!("exit 1")))
            .expect(Expect::blocked().model_reads(&["failed: it exited with code 1"])),
        case(Outcome::Fault, "a hook that takes too long")
            .config(allowing!(hook!("sleep 100")))
            .expect(Expect::blocked().model_reads(&["longer than 1 s"])),
        case(Outcome::Fault, "a hook that prints anything else")
            .config(allowing!(hook!(r#"echo '{"decision": "allow"}'"#)))
            .expect(Expect::blocked().model_reads(&["cannot allow a call"])),
    ]
}

pub(super) fn utility() -> Vec<Case> {
    let case = |outcome, what| Case::new("utility", outcome, what);
    const STRICT: &str = allowing!("[tools.utility]\nenabled = true\nthreshold = 1.0");
    vec![
        case(Outcome::Allowed, "a useful call")
            .config("[tools.utility]\nenabled = true")
            .call(read("a.txt"))
            .expect(Expect::runs()),
        case(
            Outcome::Allowed,
            "a call that changes something, regardless of its score",
        )
        .config(STRICT)
        .expect(Expect::runs()),
        case(Outcome::Denied, "below the threshold")
            .config(STRICT)
            .call(read("a.txt"))
            .expect(
                Expect::blocked()
                    .model_reads(&["skipped: its utility is", "below 1.00"])
                    .hides(&[MARK]),
            )
            .at(&OWN, &Expect::runs()),
        case(Outcome::Fault, "a threshold that is not a number")
            .config(allowing!(
                "[tools.utility]\nenabled = true\nthreshold = nan"
            ))
            .expect(Expect::no_start(&["config.toml:3", "threshold"])),
    ]
}

/// Refusals of the executors themselves, regardless of the gates.
pub(super) fn executors() -> Vec<Case> {
    let case = |outcome, what| Case::new("executors", outcome, what);
    let refused = |words| Expect::blocked().model_reads(words);
    let fetch = |url: &str| -> Call { ("fetch", json!({ "url": url })) };
    vec![
        case(Outcome::Allowed, "a file in the sandbox")
            .call(read("a.txt"))
            .expect(Expect::runs()),
        case(Outcome::Denied, "a file outside of the sandbox")
            .args(&["--yes"])
            .call(read("/etc/hostname"))
            .expect(refused(&["outside"])),
        case(Outcome::Denied, "a file that a rule denies")
            .config("[tools.file]\ndeny_read = [\"**/a.txt\"]")
            .args(&["--yes"])
            .call(read("a.txt"))
            .expect(refused(&["deny_read"]).hides(&[MARK])),
        case(Outcome::Denied, "a change outside of the sandbox, without a question")
            .call(("write", json!({ "path": "/etc/hostname", "content": "x" })))
            .expect(refused(&["outside"])),
        case(Outcome::Denied, "an address of this machine, without a question")
            .call(fetch("https://127.0.0.1:9/"))
            .expect(refused(&["127.0.0.1"])),
        case(Outcome::Fault, "a failed snapshot")
            .config(allowing!(
                "[tools.shell]\ntransactional = true\nsnapshot_required = true\nmax_snapshot_bytes = 1"
            ))
            .call(bash("cp a.txt ran"))
            .expect(Expect::fails("permanent_failure").model_reads(&["the snapshot"]))
            .at(&OWN, &Expect::runs()),
    ]
}
