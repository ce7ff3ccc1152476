//! Proposed grants and the calls that a grant covers: tables and properties.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::call::{Phase, ToolCall};
use crate::gate::approval_options;
use crate::gate::parsed_call::subject_of;
use crate::gate::path_resolver::tests::places;
use crate::gate::rule::{RuleSet, ToolRules};
use crate::gate::tests::tools::def;
use crate::gate::{ApprovalOptions, PermissionContext, decide};
use crate::permission_mode::Mode;
use crate::trust::TrustLevel;

fn grant(tool: &str, pattern: &str) -> Grant {
    Grant {
        tool: tool.to_owned(),
        pattern: pattern.to_owned(),
    }
}

fn disk() -> PathResolver {
    places(&["/w/p/src/a.rs", "/w/p/link -> src", "/etc/hosts"])
}

fn call(tool: &'static str, params: Value) -> ToolCall {
    ToolCall::new("1", tool, params, "s")
}

fn proposed(tool: &'static str, params: Value) -> ApprovalProposal {
    let (call, def, places) = (call(tool, params), def(tool), disk());
    let subject = subject_of(&call, &def, &places);
    let rules = RuleSet::default();
    let decision = decide(&subject, &rules, PermissionContext::default());
    propose(&subject, &decision)
}

/// Returns the effect of a call with these grants.
fn effect(tool: &'static str, params: Value, grants: &[Grant]) -> Effect {
    let (call, def, places) = (call(tool, params), def(tool), disk());
    let subject = subject_of(&call, &def, &places);
    let rules = RuleSet::default();
    let decision = decide(&subject, &rules, PermissionContext::default());
    apply(&subject, decision, grants, false).0.effect
}

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

/// Proves PERM-7 for the proposals: a rule for each part that is asked about, the narrowest useful one.
#[test]
fn proposals_are_the_narrowest_rules() {
    let check = |tool, params: Value, expect: &[(&str, &str)]| {
        let expect: Vec<Grant> = expect
            .iter()
            .map(|(tool, text)| grant(tool, text))
            .collect();
        let shown = params.to_string();
        assert_eq!(
            proposed(tool, params),
            ApprovalProposal::Grants(expect),
            "{shown}"
        );
    };
    let one = |command, pattern| check("bash", bash(command), &[("bash", pattern)]);
    one("cargo test", "cargo test *");
    one("cargo test --lib 'a b'", "cargo test *");
    one("cargo install x", "cargo install x");
    one("git diff --output=x", "git diff --output=x");
    one("git stash list", "git stash list *");
    one("git --no-pager log", "git --no-pager log");
    one("cargo nextest run --lib", "cargo nextest run *");
    one("cargo test --target-dir x", "cargo test --target-dir x");
    one("npm ls --cache d", "npm ls --cache d");
    one("pip list --log f", "pip list --log f");
    one("tar tf a.tar", "tar tf a.tar");
    one("sort -uo f g", "sort -uo f g");
    one("cargo +nightly test", "cargo +nightly test");
    one("git status", "git status *");
    one("git push origin main", "git push origin main");
    one("npm run build", "npm run build");
    one("npm install", "npm install");
    one("make all", "make all");
    one("rm -rf build", "rm -rf build");
    one("./x.sh", "./x.sh");
    one("touch 'a b' c", "touch a\\ b c");
    one("echo 'a*b?c\\'", "echo a\\*b\\?c\\\\");
    check(
        "bash",
        bash("cargo test && touch a; cargo test --all"),
        &[("bash", "cargo test *"), ("bash", "touch a")],
    );
    check(
        "bash",
        bash("echo x > out.txt"),
        &[("bash", "echo x"), ("write", "/w/p/out.txt")],
    );
    check(
        "write",
        json!({"path": "src/a.rs"}),
        &[("write", "/w/p/src/a.rs")],
    );
    check(
        "edit",
        json!({"path": "link/a.rs"}),
        &[("edit", "/w/p/src/a.rs")],
    );
    check(
        "write",
        json!({"path": "a[1]{x}"}),
        &[("write", "/w/p/a\\[1\\]\\{x\\}")],
    );
    check(
        "fetch",
        json!({"url": "https://Docs.rs/a/b?c"}),
        &[("fetch", "https://docs.rs/*")],
    );
    check(
        "fetch",
        json!({"url": "https://docs.rs:8443/a"}),
        &[("fetch", "https://docs.rs:8443/*")],
    );
    check(
        "other",
        json!({"b": 1, "a": "x*"}),
        &[("other", "{\"a\":\"x\\*\",\"b\":1}")],
    );
}

/// Proves PERM-7: no proposal for `bash -c`, interpreters, wrappers, or unknown parts.
#[test]
fn opaque_commands_get_no_proposal() {
    let check = |tool, params: Value, why: &str| {
        let shown = params.to_string();
        match proposed(tool, params) {
            ApprovalProposal::ThisCall { why: found } => {
                assert!(found.contains(why), "{shown}: {found}")
            }
            other => panic!("{shown}: {other:?}"),
        }
    };
    let command = |text, why| check("bash", bash(text), why);
    command("bash -c 'cargo test'", "`bash` runs arbitrary commands");
    command("python3 x.py", "`python3` runs arbitrary commands");
    command("node -e 1", "`node` runs");
    command("sudo cargo test", "`sudo` runs another command");
    command("env A=b cargo test", "`env` runs another");
    command("xargs rm", "`xargs` runs another");
    command("find . -exec rm {} ';'", "`find` runs another");
    command("npx eslint", "`npx` runs another");
    command("git -c core.pager=x log", "`git` runs another");
    command("cargo test; timeout 5 cargo test", "`timeout` runs another");
    command("LD_PRELOAD=x cargo test", "`LD_PRELOAD=` can change");
    command("PATH=x", "sets a variable");
    command(
        "cargo test --config build.rustc-wrapper=x",
        "`cargo` runs another",
    );
    command("sort --compress-prog=./x y", "`sort` runs another");
    command("tar --to-comm ./x -xf y", "`tar` runs another");
    command("julia x.jl", "`julia` runs arbitrary commands");
    command("rg --pre=./x y", "`rg` runs another");
    command("go test -exec ./x", "`go` runs another");
    command("echo 'a\nb'", "line breaks");
    command("rm $X", "unknown before it runs");
    command("echo x > $X", "unknown before it runs");
    check(
        "bash",
        bash(&format!("echo {}", "a".repeat(600))),
        "would have more",
    );
    check(
        "move_path",
        json!({"source": "src/a.rs", "destination": "b"}),
        "several paths",
    );
}

/// Proves PERM-7, PERM-7a: a grant covers exactly the shown text.
#[test]
fn grant_covers_exactly_its_pattern() {
    let check = |grants: &[(&str, &str)], tool, params: Value, expect| {
        let grants: Vec<Grant> = grants
            .iter()
            .map(|(tool, text)| grant(tool, text))
            .collect();
        let shown = format!("{grants:?} {params}");
        assert_eq!(effect(tool, params, &grants), expect, "{shown}");
    };
    let allow =
        |pattern, command| check(&[("bash", pattern)], "bash", bash(command), Effect::Allow);
    let ask = |pattern, command| check(&[("bash", pattern)], "bash", bash(command), Effect::Ask);
    let test = "cargo test *";
    allow(test, "cargo test");
    allow(test, "cargo test --lib -- 'a b'");
    allow(test, "cargo test; cargo test x");
    for command in [
        "cargo test; rm -rf x",
        "cargo test && sudo cargo test",
        "cargo test > out",
        "cargo test --config x=y",
        "cargo test --config=x",
        "LD_PRELOAD=x cargo test",
        "PATH=x; cargo test",
        "bash -c 'cargo test'",
        "timeout 9 cargo test",
        "cargo test $(rm x)",
        "cargo test `rm x`",
        "cargo test <(rm x)",
        "./cargo test",
        "CARGO test",
        "cargo testx",
    ] {
        ask(test, command);
    }
    allow("touch a\\ b", "touch 'a b'");
    ask("touch a\\ b", "touch a b");
    ask("touch a b", "touch 'a b'");
    ask("touch A", "touch a");
    ask("echo a\\*", "echo ab");
    // A pattern that the user widens to everything still does not cover a wrapper.
    allow("*", "rm x");
    ask("*", "rm -rf x");
    allow("rm -rf *", "rm -rf x");
    ask("rm -r *", "rm -rf x");
    ask("rm *", "rm -rf x");
    allow("sort *", "sort -rn f");
    ask("sort *", "sort -uo f g");
    ask("sort *", "sort -of g");
    ask("sort *", "sort --outp f g");
    ask("sort *", "sort -T d g");
    allow("sort -o *", "sort -o f");
    allow("tar *", "tar tvf x.tar");
    ask("tar *", "tar cIf ./x y");
    ask("tar *", "tar xf y");
    ask("git grep *", "git grep -nO x");
    allow("git grep *", "git grep -ni x");
    allow("pip list *", "pip list --outdated");
    ask("pip list *", "pip list --log f");
    ask("pip list *", "pip list --lo f");
    allow("npm ls *", "npm ls --depth=0");
    ask("npm ls *", "npm ls --cache d");
    allow("git log *", "git log --oneline -5 -- f");
    ask("git log *", "git log --output=f");
    ask("git log *", "git log --outp=f");
    ask("git *", "git -C d status");
    allow("git -C d *", "git -C d status");
    allow("npm run *", "npm run build");
    ask("npm run *", "npm run build --if-present");
    allow(
        "npm run build --if-present *",
        "npm run build --if-present x",
    );
    ask("dd *", "dd if=a of=b");
    ask("make *", "make CC=x");
    allow("make *", "make all");
    ask("*", "sudo rm");
    ask("*", "python3 x.py");
    ask("*", "git diff --output=x");
    ask("[", "cargo test");
    let both = [("bash", "echo x"), ("write", "/w/p/out")];
    check(&both, "bash", bash("echo x > out"), Effect::Allow);
    check(&both, "bash", bash("echo x > link/../out"), Effect::Allow);
    check(&both, "bash", bash("echo x > Out"), Effect::Ask);
    check(&both, "bash", bash("echo x > out2"), Effect::Ask);
    check(&both, "bash", bash("echo x > $OUT"), Effect::Ask);
    check(&both, "write", json!({"path": "out"}), Effect::Allow);
    check(&both, "edit", json!({"path": "out"}), Effect::Ask);
    let one = [("write", "/w/p/src/a.rs")];
    check(&one, "write", json!({"path": "link/a.rs"}), Effect::Allow);
    check(&one, "write", json!({"path": "src/A.rs"}), Effect::Ask);
    let all = [("write", "/w/p/src/**")];
    check(
        &all,
        "write",
        json!({"path": "src/new/b.rs"}),
        Effect::Allow,
    );
    check(&all, "write", json!({"path": "src/../b.rs"}), Effect::Ask);
    let moves = [("move_path", "/w/p/src/a.rs"), ("move_path", "/w/p/b")];
    let params = json!({"source": "src/a.rs", "destination": "b"});
    check(&moves, "move_path", params, Effect::Ask);
    let host = [("fetch", "https://docs.rs/*")];
    check(
        &host,
        "fetch",
        json!({"url": "https://docs.rs/x"}),
        Effect::Allow,
    );
    check(
        &host,
        "fetch",
        json!({"url": "http://docs.rs/x"}),
        Effect::Ask,
    );
    check(
        &host,
        "fetch",
        json!({"url": "https://docs.rs.evil/x"}),
        Effect::Ask,
    );
    check(
        &host,
        "fetch",
        json!({"url": "https://docs.rs@evil/x"}),
        Effect::Ask,
    );
    let same = [("other", "{\"a\":1}")];
    check(&same, "other", json!({"a": 1}), Effect::Allow);
    check(&same, "other", json!({"a": 1, "b": 2}), Effect::Ask);
    check(&same, "another", json!({"a": 1}), Effect::Ask);
}

fn rule(action: Action, pattern: &str, places: &PathResolver) -> RuleSet {
    let written = PermissionRule {
        pattern: pattern.to_owned(),
        action,
        matches: Vec::new(),
        not_matches: Vec::new(),
    };
    let origin = RuleOrigin {
        key: "k".to_owned(),
        place: Place::Said("p".to_owned()),
    };
    let rule = Rule::new(PatternKind::Text, written, origin, places).unwrap();
    let list = ToolRules {
        rules: vec![rule],
        listed: true,
    };
    RuleSet::new([("bash".to_owned(), list)].into())
}

/// Proves PERM-7 for the order: a grant changes a question to an approval, never a refusal.
#[test]
fn grant_overrides_no_refusal() {
    let places = disk();
    let check = |action, pattern, command: &str, given: PermissionContext, expect| {
        let rules = rule(action, pattern, &places);
        let (call, def) = (call("bash", bash(command)), def("bash"));
        let subject = subject_of(&call, &def, &places);
        for this_call in [false, true] {
            let decision = decide(&subject, &rules, given);
            let grants = [grant("bash", "*")];
            let (decision, _) = apply(&subject, decision, &grants, this_call);
            assert_eq!(decision.effect, expect, "{command} {given:?} {this_call}");
        }
    };
    let usual = PermissionContext::default();
    let untrusted = PermissionContext {
        trust: TrustLevel::Provisional,
        ..usual
    };
    let plan = PermissionContext {
        mode: Mode::Plan,
        ..usual
    };
    check(Action::Ask, "rm *", "rm x", usual, Effect::Allow);
    check(Action::Deny, "rm *", "rm x", usual, Effect::Deny);
    check(Action::Deny, "rm *", "touch x; rm x", usual, Effect::Deny);
    check(Action::Deny, "rm y", "rm $X", usual, Effect::Ask);
    check(Action::Allow, "ls", "touch x", plan, Effect::Deny);
    check(Action::Allow, "ls", "touch x", untrusted, Effect::Ask);
    let autonomous = PermissionContext {
        phase: Phase::Autonomous,
        ..usual
    };
    check(Action::Deny, "rm *", "rm x", autonomous, Effect::Deny);
}

/// Exactly the same call may be repeated regardless of its parts, if it may be asked about at all.
/// A grant for one of its parts is not used.
#[test]
fn same_call_is_approved_for_the_session() {
    let places = disk();
    let rules = RuleSet::default();
    for command in [
        "sudo rm x",
        "bash -c 'rm x'",
        "rm $X > $Y",
        "A=1 make",
        "cargo build && python3 -c 'import os'",
    ] {
        let (call, def) = (call("bash", bash(command)), def("bash"));
        let subject = subject_of(&call, &def, &places);
        let decision = decide(&subject, &rules, PermissionContext::default());
        let (decision, used) = apply(&subject, decision, &[grant("bash", "cargo *")], true);
        assert_eq!(
            (decision.effect, used.len()),
            (Effect::Allow, 0),
            "{command}"
        );
        assert_eq!(decision.by, DecidedBy::Remembered);
    }
}

/// A part that is already approved is not proposed again.
#[test]
fn only_unapproved_parts_are_proposed() {
    let (call, def, places) = (
        call("bash", bash("cargo test; touch a")),
        def("bash"),
        disk(),
    );
    let subject = subject_of(&call, &def, &places);
    let rules = RuleSet::default();
    let decision = decide(&subject, &rules, PermissionContext::default());
    let (decision, used) = apply(&subject, decision, &[grant("bash", "cargo *")], false);
    assert_eq!(used, [grant("bash", "cargo *")]);
    assert_eq!(decision.piece, CallPart::Part(1));
    let left = ApprovalProposal::Grants(vec![grant("bash", "touch a")]);
    assert_eq!(propose(&subject, &decision), left);
}

fn offer(tool: &'static str, params: Value) -> ApprovalOptions {
    let (call, def, places) = (call(tool, params), def(tool), std::sync::Arc::new(disk()));
    let subject = subject_of(&call, &def, &places);
    let rules = RuleSet::default();
    let decision = decide(&subject, &rules, PermissionContext::default());
    approval_options(&subject, &decision, (&call, &def), &places)
}

/// Proves PERM-7 for editing: a pattern that does not compile, or that covers less than the asked part, is
/// refused.
#[test]
fn proposal_can_be_edited() {
    let check = |tool, params: Value, at, pattern: &str, expect: Result<&str, &str>| {
        let edited = offer(tool, params).edited(at, pattern);
        match (&edited, expect) {
            (Ok(grant), Ok(expect)) => assert_eq!(grant.pattern, expect),
            (Err(found), Err(expect)) => assert!(found.contains(expect), "{pattern}: {found}"),
            _ => panic!("{pattern}: {edited:?}"),
        }
    };
    let command = bash("cargo test --lib; touch a");
    let bash = |at, pattern, expect| check("bash", command.clone(), at, pattern, expect);
    bash(0, " cargo * ", Ok("cargo *"));
    bash(0, "cargo test --lib", Ok("cargo test --lib"));
    bash(0, "cargo test", Err("would not match `cargo test --lib`"));
    bash(0, "touch *", Err("would not match `cargo test --lib`"));
    bash(1, "touch ?", Ok("touch ?"));
    bash(1, "touch \\", Err("ends with `\\`"));
    bash(1, "", Err("empty"));
    bash(2, "touch a", Err("nothing to edit"));
    let write = |pattern, expect| check("write", json!({"path": "src/a.rs"}), 0, pattern, expect);
    write("src/**", Ok("/w/p/src/**"));
    write("./src/*.rs", Ok("/w/p/src/*.rs"));
    write("/w/**", Ok("/w/**"));
    write("**/*.rs", Ok("**/*.rs"));
    write("src/b.rs", Err("would not match `src/a.rs`"));
    write("src/[", Err("unclosed"));
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "cargo", "test", "git", "log", "npm", "run", "rm", "-rf", "sudo", "env", "bash", "-c",
            "--config", "A=b", ">", "out", ";", "&&", "|", "$X", "$(id)", "python3", "find",
            "-exec",
        ])
        .prop_map(str::to_owned),
        "'[a-zA-Z*?\\\\ é]{0,5}'",
        "[a-z./_-]{1,5}",
    ]
}

proptest! {
    /// Proves PERM-7: a proposal covers its own call, and no call with an additional part.
    #[test]
    fn proposal_covers_only_its_call(
        words in prop::collection::vec(word(), 1..7),
        more in prop::sample::select(vec![
            "; touch zz9", " && touch zz9", " | tee zz9", " $(touch zz9)", " > zz9", " & sudo zz9",
            " `touch zz9`", "\ntouch zz9", " || bash -c zz9",
        ]),
    ) {
        let command = words.join(" ");
        if let ApprovalProposal::Grants(grants) = proposed("bash", bash(&command)) {
            prop_assert_eq!(effect("bash", bash(&command), &grants), Effect::Allow);
            let longer = format!("{command}{more}");
            prop_assert_eq!(effect("bash", bash(&longer), &grants), Effect::Ask, "{}", longer);
        }
    }

    #[test]
    fn path_proposal_covers_only_its_path(name in "[a-zA-Z*?\\[\\]{},\\\\ é]{1,8}", other in "[a-zA-Z*]{1,8}") {
        prop_assume!(name != other);
        if let ApprovalProposal::Grants(grants) = proposed("write", json!({ "path": name })) {
            prop_assert_eq!(effect("write", json!({ "path": name }), &grants), Effect::Allow);
            prop_assert_eq!(effect("write", json!({ "path": other }), &grants), Effect::Ask);
        }
    }
}
