//! The decisions of rules, modes and trust about calls.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::call::{Phase, ToolCall};
use crate::gate::path_resolver::tests::places;
use crate::gate::rule::Place;
use crate::gate::tests::tools::def;
use crate::gate::{
    Action, Decision, Effect, PathResolver, PatternKind, PermissionContext, PermissionRule, Rule,
    RuleOrigin, RuleSet, ToolRules, decide, subject_of,
};
use crate::permission_mode::Mode;
use crate::trust::TrustLevel;

/// Parses rules: `tool action pattern`, one per line.
fn rules(text: &str, places: &PathResolver) -> RuleSet {
    let mut tools: BTreeMap<String, ToolRules> = BTreeMap::new();
    for (line, text) in text.lines().enumerate() {
        let mut words = text.trim_start().splitn(3, ' ');
        let (Some(tool), Some(action), Some(pattern)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let action = match action {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            _ => Action::Deny,
        };
        let list = tools.entry(tool.to_owned()).or_default();
        list.listed = true;
        let written = PermissionRule {
            pattern: pattern.to_owned(),
            action,
            matches: Vec::new(),
            not_matches: Vec::new(),
        };
        let origin = RuleOrigin {
            key: format!("tools.permissions.{tool}[{}]", list.rules.len()),
            place: Place::Said(format!("line {line}")),
        };
        let kind = match tool {
            "mcp_x" => PatternKind::Text,
            tool => def(Box::leak(tool.to_owned().into_boxed_str()))
                .about
                .pattern_kind(),
        };
        list.rules
            .push(Rule::new(kind, written, origin, places).expect("a rule"));
    }
    RuleSet::new(tools)
}

fn effect(decision: &Decision<'_>) -> &'static str {
    match decision.effect {
        Effect::Allow => "allow",
        Effect::Ask => "ask",
        Effect::Deny => "deny",
    }
}

#[track_caller]
fn judge(
    places: &PathResolver,
    written: &str,
    given: PermissionContext,
    tool: &'static str,
    params: Value,
    expect: &str,
) {
    let (def, rules) = (def(tool), rules(written, places));
    let call = ToolCall::new("c", tool, params, "s");
    let subject = subject_of(&call, &def, places);
    let decision = decide(&subject, &rules, given);
    assert_eq!(
        effect(&decision),
        expect,
        "{written}\n{:?}\n{:#?}",
        call.params,
        decision
    );
}

fn bash(rules: &str, commands: &[(&str, &str)]) {
    for (command, expect) in commands {
        let places = places(&["/w/p/src/a", "/w/p/link -> /etc", "/etc/passwd"]);
        let params = json!({ "command": command });
        judge(
            &places,
            rules,
            PermissionContext::default(),
            "bash",
            params,
            expect,
        );
    }
}

/// Proves PERM-1, PERM-3: the parts of a command decide, regardless of the text around them.
#[test]
fn commands_are_judged_by_their_parts() {
    let cargo = "bash allow cargo *\nbash allow git status\nbash deny rm *";
    bash(
        cargo,
        &[
            ("cargo test", "allow"),
            ("cargo", "allow"),
            ("Cargo Test", "allow"),
            ("cargo test && cargo clippy -- -D warnings", "allow"),
            ("cargo test | cargo x; git status", "allow"),
            ("for i in 1 2; do cargo test; done", "allow"),
            ("(cargo test)", "allow"),
            ("if cargo test; then git status; fi", "allow"),
            ("cargo test 2>&1", "allow"),
            ("cargo test >/dev/null 2>/dev/null", "allow"),
            // One part that is not allowed is enough to ask.
            ("cargo test; ls", "ask"),
            ("cargo test && git push", "ask"),
            ("cargo test | tee x", "ask"),
            ("cargo test &\nls", "ask"),
            ("cargo test\nls", "ask"),
            ("git status -s", "ask"),
            ("cargotest", "ask"),
            ("./cargo test", "ask"),
            ("/tmp/cargo test", "ask"),
            // Assignments change the program that runs.
            ("LD_PRELOAD=x cargo test", "ask"),
            ("PATH=/evil; cargo test", "ask"),
            ("for PATH in /evil; do cargo test; done", "ask"),
            ("for https_proxy in evil; do cargo test; done", "ask"),
            ("select HOME in evil; do cargo test; done", "ask"),
            ("{ cargo test; } {PATH}>/dev/null", "ask"),
            ("export PATH=/evil; cargo test", "ask"),
            // One part that is denied is enough to deny.
            ("cargo test; rm -rf x", "deny"),
            ("cargo test && rm x", "deny"),
            ("rm x", "deny"),
            ("rm", "deny"),
            ("(rm x)", "deny"),
            ("if false; then rm x; fi", "deny"),
            ("f() { rm x; }; cargo test", "deny"),
            ("! rm x", "deny"),
            ("{ rm x; }", "deny"),
        ],
    );
}

/// Proves PERM-3: quoting, paths, assignments and wrappers do not hide the command.
#[test]
fn denied_command_is_denied_under_any_name() {
    bash(
        "bash deny rm *\nbash deny git push *\nbash allow *",
        &[
            ("echo ok", "allow"),
            ("r\\m x", "deny"),
            ("\"rm\" x", "deny"),
            ("'r'\"m\" x", "deny"),
            ("$'rm' x", "deny"),
            ("$'\\x72m' x", "deny"),
            ("/bin/rm x", "deny"),
            ("../bin/rm x", "deny"),
            ("RM x", "deny"),
            ("A=1 rm x", "deny"),
            ("A=1 /bin/rm x", "deny"),
            ("env rm x", "deny"),
            ("env A=1 rm x", "deny"),
            ("timeout 5 rm x", "deny"),
            ("nohup nice rm x", "deny"),
            ("bash -c 'rm x'", "deny"),
            ("bash -c 'echo x; /bin/rm x'", "deny"),
            ("sh <<'E'\nrm x\nE", "deny"),
            ("echo x | xargs rm", "deny"),
            ("find . -exec rm {} ;", "deny"),
            ("find . -name x -exec rm {} \\;", "deny"),
            ("find . -delete", "deny"),
            ("fd . --exec=rm", "deny"),
            ("fdfind -Hx rm", "deny"),
            ("command rm x", "deny"),
            ("command rm -v x", "deny"),
            ("command -p rm -V x", "deny"),
            ("env --split-str='rm x'", "deny"),
            ("env --split-s 'rm x'", "deny"),
            ("git push", "deny"),
            ("git push --force origin", "deny"),
            ("time git push", "deny"),
            ("git 'push'", "deny"),
            ("{git,push}", "deny"),
            ("rm${IFS}x", "deny"),
            // Whether a deny rule matches is unknown.
            ("$X x", "ask"),
            ("git $X", "ask"),
            ("/bin/r? x", "ask"),
            ("/b*/rm x", "deny"),
            ("/b[i]n/rm x", "ask"),
            ("flock f --comm='rm x'", "deny"),
            ("timeout --kill=5 3 rm x", "deny"),
            // Options, which may or may not take the next word as a value.
            ("git --no-pager push", "ask"),
            ("git -C . push", "ask"),
            ("git --git-dir .git -C . push -f", "ask"),
            // Programs that run one of their arguments.
            ("strace -o f rm x", "deny"),
            ("npx -y rm x", "deny"),
            ("docker run -v a:b image rm x", "deny"),
            ("uv run -p 3 rm x", "ask"),
            ("env A=rm ls", "allow"),
            ("git -C . log push", "allow"),
            ("git --no-pager status", "allow"),
            ("docker run image ls", "allow"),
            // The deny rule cannot match.
            ("git commit -m \"remove; rm x\"", "allow"),
            ("echo rm x", "allow"),
            ("ls $X", "allow"),
        ],
    );
}

/// Proves PERM-3: the whole text of a command is denied if it matches, before rules that allow it.
#[test]
fn whole_command_is_matched_by_deny_and_ask_rules() {
    bash(
        "bash deny * | sh\nbash ask *--force*\nbash allow *",
        &[
            ("echo x", "allow"),
            ("echo x | sh", "deny"),
            ("git push --force", "ask"),
        ],
    );
    // An earlier allow rule applies to parts; if it decided every part, the decision stays.
    bash(
        "bash allow echo *\nbash deny *|*",
        &[
            ("echo a", "allow"),
            ("echo a | echo b", "allow"),
            ("echo a | cat", "deny"),
        ],
    );
    bash(
        "bash allow git *\nbash deny *",
        &[
            ("git status; git log", "allow"),
            ("git status; ls", "deny"),
            ("ls", "deny"),
        ],
    );
    bash("bash allow echo *; ls", &[("echo a; ls", "ask")]);
}

/// Proves PERM-3: an allow rule must match for all possible values, and matches exact words.
#[test]
fn allow_rules_do_not_guess() {
    bash(
        "bash allow ls *\nbash allow git log\nbash allow npm run test",
        &[
            ("ls $X", "allow"),
            ("ls *.rs", "allow"),
            ("ls -$X", "allow"),
            ("git $X", "ask"),
            ("git lo?", "ask"),
            ("$X", "ask"),
            // Blanks inside words do not separate words.
            ("git 'log'", "allow"),
            ("'git log'", "ask"),
            ("npm 'run test'", "ask"),
            // Input of a shell or an interpreter is not a command.
            ("ls; python3 -c 'print(1)'", "ask"),
            ("bash -c 'ls'", "ask"),
            ("env ls", "ask"),
        ],
    );
    bash(
        "bash allow bash *\nbash allow ls *",
        &[
            ("bash -c ls", "allow"),
            ("bash -c 'ls; id'", "ask"),
            ("bash -c \"$X\"", "ask"),
        ],
    );
}

/// Proves PERM-3: a variable with known values needs no confirmation as a target. Rules compare the
/// text as written.
#[test]
fn variable_as_a_target_is_judged_by_its_values() {
    let in_a_loop = "for d in a b; do rm -rf \"$d\"; done";
    bash(
        "bash allow rm *\nbash allow bash *",
        &[
            (in_a_loop, "allow"),
            ("rm -rf \"$d\"", "ask"),
            ("for d in a /; do rm -rf \"$d\"; done", "ask"),
            ("for s in 'rm -rf a'; do bash -c \"$s\"; done", "ask"),
            ("for s in ls; do rm -rf \"$s\"; bash -c \"$s\"; done", "ask"),
        ],
    );
    bash("bash deny rm * b\nbash allow *", &[(in_a_loop, "ask")]);
    bash("bash allow rm *\nbash deny for *", &[(in_a_loop, "deny")]);
    bash("bash allow rm *\nbash ask *done", &[(in_a_loop, "ask")]);
}

/// Proves PERM-3: a redirection is judged as a write of its target.
#[test]
fn redirections_are_writes() {
    let check = |mode, rules: &str, command: &str, expect: &str| {
        let places = places(&[
            "/w/p/src/a",
            "/w/p/link -> /etc",
            "/etc/passwd",
            "/w/p/secrets/",
        ]);
        let given = PermissionContext {
            mode,
            ..PermissionContext::default()
        };
        let rules = format!("bash allow echo *\nbash allow cd *\n{rules}");
        judge(
            &places,
            &rules,
            given,
            "bash",
            json!({ "command": command }),
            expect,
        );
    };
    let (ask, edit, full) = (Mode::Ask, Mode::AutoEdit, Mode::Full);
    check(ask, "", "echo x", "allow");
    for command in [
        "echo x > out",
        "echo x >> out",
        "echo x &> out",
        "echo x >| out",
        "echo x 1<> out",
        "{ echo x; } > out",
    ] {
        check(ask, "", command, "ask");
        check(edit, "", command, "allow");
        check(ask, "write allow out", command, "allow");
        check(full, "write deny out", command, "deny");
    }
    check(ask, "", "echo x > /dev/null", "allow");
    check(ask, "", "echo x 2>&1 >&2", "allow");
    check(edit, "", "echo x > /etc/passwd", "ask");
    check(edit, "", "echo x > link/passwd", "ask");
    check(edit, "", "echo x > ../out", "ask");
    check(full, "", "echo x > /etc/passwd", "allow");
    check(ask, "write allow out", "echo x > link/out", "ask");
    check(full, "write deny /etc/**", "echo x > link/passwd", "deny");
    check(ask, "write allow src/**", "cd src; echo x > b", "ask");
    check(ask, "write allow src/**", "cd src && echo x > b", "allow");
    check(
        ask,
        "write allow src/**",
        "cd /etc && echo x > src/b",
        "ask",
    );
    check(
        full,
        "write deny secrets/**",
        "cd secrets && echo x > b",
        "deny",
    );
    check(
        full,
        "write deny secrets/**",
        "cd src/../secrets; echo x > b",
        "deny",
    );
    check(full, "write deny secrets/**", "echo x > $X", "ask");
    check(full, "write deny secrets/**", "echo x > secrets/*", "ask");
    // The directory of the redirection is unknown.
    for command in [
        "f() { echo x > key; }; cd secrets; f",
        "for i in 1 2; do echo x > key; cd secrets; done",
        "while true; do { echo x > key; }; cd secrets; done",
        "trap 'echo x > key' EXIT; cd secrets",
        "CDPATH=secrets; cd sub && echo x > key",
        "export CDPATH=secrets; cd sub && echo x > key",
        "cd -P link/../secrets && echo x > key",
        "cd $X && echo x > key",
        "cd - && echo x > key",
        "pushd secrets && pushd /tmp && popd && echo x > key",
        "pushd secrets && pushd /tmp && pushd && echo x > key",
        "pushd secrets && pushd /tmp && pushd +1 && echo x > key",
        "f() { builtin cd secrets; }; cd /w/p && f && echo x > key",
        "f() { cd secrets; }; g() { f; }; cd /w/p && g && echo x > key",
        "trap 'cd secrets' DEBUG; cd /w/p && echo x > key",
        "eval 'cd secrets'; echo x > key",
        "alias f='cd secrets'; echo x > key",
        ". ./x; echo x > key",
        "shopt -s lastpipe; true | cd secrets; echo x > key",
        "shopt -s cdable_vars; cd v && echo x > key",
        "set -P; cd link/../secrets && echo x > key",
        "HOME=secrets; cd && echo x > key",
        "read HOME; cd && echo x > key",
        // Through the open files and the working directory of a process.
        "cd secrets && echo x > /proc/self/cwd/key",
        "cd secrets; cd /proc/self && echo x > cwd/key",
        "echo x > /dev/fd/../../w/p/secrets/key",
        "echo x 3<secrets/key > /dev/fd/3",
        "echo x < secrets/key > /dev/stdin",
        "echo x < secrets/key > /dev/../dev/stdin",
        "echo x 1<secrets/key > /dev/stdout",
        "exec 3<secrets/key 1>&3; echo x > /dev/fd/1",
        "echo x < $X > /dev/stderr",
    ] {
        check(full, "write deny secrets/**", command, "ask");
    }
    check(
        full,
        "write deny secrets/**",
        "f() { echo x > /tmp/x; }; f",
        "allow",
    );
    check(
        full,
        "write deny secrets/**",
        "for i in 1 2; do echo x > key; done",
        "allow",
    );
    check(
        full,
        "write deny secrets/**",
        "bash -c 'cd src'; (cd src); echo x > key",
        "allow",
    );
    check(ask, "", "echo x </dev/null >/dev/stderr", "allow");
    check(ask, "", "echo x <src/a >/dev/fd/0", "ask");
    check(full, "write ask secrets/**", "echo x > $X", "allow");
    check(full, "", "echo x > $X", "allow");
    check(edit, "", "echo x > $X", "ask");
    check(ask, "write allow **", "echo x > \"$X\"", "ask");
}

fn files(rules: &str, calls: &[(&'static str, Value, &str)]) {
    for (tool, params, expect) in calls {
        let places = places(&[
            "/w/p/src/a",
            "/w/p/src/sub/",
            "/w/p/secrets/key",
            "/w/p/link -> secrets",
            "/w/p/src/out -> /etc",
            "/w/p/src/new -> ../secrets/new",
            "/etc/passwd",
        ]);
        let given = PermissionContext::default();
        judge(&places, rules, given, tool, params.clone(), expect);
    }
}

/// Proves PERM-1: every path of a file tool, in every form.
#[test]
fn paths_are_matched_as_written_and_as_resolved() {
    let path = |path: &str| json!({ "path": path, "content": "" });
    files(
        "write deny secrets/**\nwrite allow src/**\nwrite ask *.md",
        &[
            ("write", path("src/b"), "allow"),
            ("write", path("./src//b"), "allow"),
            ("write", path("SRC/sub/b"), "allow"),
            ("write", path("/w/p/src/b"), "allow"),
            ("write", path("x/../src/b"), "allow"),
            ("write", path("b"), "ask"),
            ("write", path("a.md"), "ask"),
            ("write", path("secrets/key"), "deny"),
            ("write", path("Secrets/new"), "deny"),
            ("write", path("src/../secrets/key"), "deny"),
            ("write", path("/w/p/secrets/key"), "deny"),
            ("write", path("link/key"), "deny"),
            ("write", path("link"), "deny"),
            ("write", path("secrets/../src/b"), "allow"),
            // A link to a target outside of an allowed directory is not allowed; a link to a denied target is
            // denied.
            ("write", path("src/out/passwd"), "ask"),
            ("write", path("src/new"), "deny"),
            ("write", path("/etc/passwd"), "ask"),
            // Without a matching rule, nature and mode decide.
            ("read", path("secrets/key"), "allow"),
            ("edit", path("src/a"), "ask"),
        ],
    );
    files(
        "read deny **/*.key\nread allow **",
        &[
            ("read", path("a"), "allow"),
            ("read", path("deep/x.KEY"), "deny"),
            ("read", path("/x.key"), "deny"),
        ],
    );
    // Without a match a tool with rules asks.
    files("read deny x", &[("read", path("a"), "ask")]);
    files(
        "write allow /w/p/src/*",
        &[
            ("write", path("src/b"), "allow"),
            ("write", path("src/sub/b"), "ask"),
        ],
    );
    files("write allow ~/x", &[("write", path("/h/x"), "allow")]);
}

/// Proves PERM-1: both paths of a move, and the contents of a directory.
#[test]
fn both_paths_of_a_move_and_directory_contents_are_judged() {
    let moved =
        |source: &str, destination: &str| json!({ "source": source, "destination": destination });
    files(
        "move_path deny secrets/**\nmove_path allow **",
        &[
            ("move_path", moved("src/a", "b"), "allow"),
            ("move_path", moved("secrets/key", "b"), "deny"),
            ("move_path", moved("src/a", "secrets/b"), "deny"),
            ("move_path", moved("src/a", "link/b"), "deny"),
            ("move_path", moved("secrets", "b"), "deny"),
            // The call includes all contents of the directory.
            ("move_path", moved(".", "/w/q"), "ask"),
            ("move_path", moved("src", "b"), "allow"),
        ],
    );
    let path = |path: &str| json!({ "path": path });
    files(
        "delete_path deny src/sub/**\ndelete_path allow src/**\ngrep deny secrets/**\ngrep allow **",
        &[
            ("delete_path", path("src/a"), "allow"),
            ("delete_path", path("src/sub"), "deny"),
            ("delete_path", path("src"), "ask"),
            // The call removes the link itself, not its target.
            ("delete_path", path("src/new"), "allow"),
            ("delete_path", path("link"), "ask"),
            // The directory contains the working directory.
            ("grep", path("/w"), "ask"),
            ("grep", path(".."), "ask"),
            ("grep", path("/"), "ask"),
            ("grep", path("/etc"), "allow"),
            ("grep", path("src"), "allow"),
            ("grep", path("secrets"), "deny"),
            ("grep", path("link/x"), "deny"),
            ("grep", json!({}), "ask"),
        ],
    );
}

/// Proves PERM-1: URLs, and the arguments of other tools.
#[test]
fn urls_and_arguments_are_judged() {
    files(
        "fetch deny https://*.internal.example/*\nfetch allow https://docs.rs/*",
        &[
            ("fetch", json!({"url": "https://docs.rs/a"}), "allow"),
            ("fetch", json!({"url": "HTTPS://DOCS.RS:443/a#b"}), "allow"),
            ("fetch", json!({"url": "https://docs.rs@evil.com/a"}), "ask"),
            (
                "fetch",
                json!({"url": "https://evil.com/?https://docs.rs/"}),
                "ask",
            ),
            (
                "fetch",
                json!({"url": "https://docs.rs\\@evil.com/"}),
                "allow",
            ),
            (
                "fetch",
                json!({"url": "https://evil.com\\@docs.rs/"}),
                "ask",
            ),
            (
                "fetch",
                json!({"url": "https://a.internal.example./x"}),
                "deny",
            ),
            (
                "fetch",
                json!({"url": "https://%61.internal.example/x"}),
                "deny",
            ),
            ("fetch", json!({"url": "no url"}), "ask"),
        ],
    );
    files(
        "mcp_x allow {\"a\":1,\"b\":*}\nmcp_x deny *secret*",
        &[
            ("mcp_x", json!({"b": 2, "a": 1}), "allow"),
            ("mcp_x", json!({"b": "a secret", "a": 1}), "allow"),
            ("mcp_x", json!({"z": "a Secret"}), "deny"),
            ("mcp_x", json!({}), "ask"),
        ],
    );
}

/// Proves PERM-5, PERM-8: modes and rules.
#[test]
fn modes_and_rules_are_combined() {
    let (plan, ask, edit, full) = (Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Full);
    let check = |mode, rules: &str, tool: &'static str, params: Value, expect: &str| {
        let given = PermissionContext {
            mode,
            ..PermissionContext::default()
        };
        judge(&places(&[]), rules, given, tool, params, expect);
    };
    let read = || json!({ "path": "a" });
    let run = || json!({ "command": "ls" });
    let web = || json!({ "url": "https://x.org/" });
    for (mode, reads, edits, runs, asks) in [
        (plan, "allow", "deny", "deny", "ask"),
        (ask, "allow", "ask", "ask", "ask"),
        (edit, "allow", "allow", "ask", "ask"),
        (full, "allow", "allow", "allow", "allow"),
    ] {
        check(mode, "", "read", read(), reads);
        check(mode, "", "add_task", json!({}), reads);
        check(mode, "", "write", read(), edits);
        check(mode, "", "bash", run(), runs);
        check(mode, "", "fetch", web(), asks);
        // Rules cannot widen plan; deny applies in every mode; an explicit ask rule does not apply in full.
        let allowed = if mode == plan { "deny" } else { "allow" };
        check(mode, "bash allow *", "bash", run(), allowed);
        check(mode, "write allow **", "write", read(), allowed);
        for tool in ["bash", "write", "read", "fetch"] {
            let params = json!({ "path": "a", "command": "ls", "url": "https://x.org/" });
            check(mode, &format!("{tool} deny *"), tool, params, "deny");
        }
        check(
            mode,
            "read ask *",
            "read",
            read(),
            if mode == full { "allow" } else { "ask" },
        );
        let questioned = match mode {
            Mode::Plan => "deny",
            Mode::Full => "allow",
            _ => "ask",
        };
        check(mode, "write ask *", "write", read(), questioned);
        check(
            mode,
            "write deny b",
            "write",
            read(),
            if mode == ask { "ask" } else { edits },
        );
    }
}

/// Proves PERM-30 for the calls that a level allows; it never loosens a decision.
#[test]
fn trust_level_limits_the_calls() {
    use TrustLevel::{Provisional, Trusted, Untrusted};
    for (trust, read, web, write, task) in [
        (Trusted, "allow", "allow", "allow", "allow"),
        (Provisional, "allow", "allow", "ask", "ask"),
        (Untrusted, "allow", "ask", "ask", "ask"),
    ] {
        for mode in [Mode::Ask, Mode::AutoEdit, Mode::Full] {
            let rules = "read allow *\nfetch allow *\nwrite allow *\nadd_task allow *";
            let given = PermissionContext {
                trust,
                mode,
                ..PermissionContext::default()
            };
            let params = json!({ "path": "a", "url": "https://x.org/" });
            for (tool, expect) in [
                ("read", read),
                ("fetch", web),
                ("write", write),
                ("add_task", task),
            ] {
                judge(&places(&[]), rules, given, tool, params.clone(), expect);
                let denied = format!("{tool} deny *");
                judge(&places(&[]), &denied, given, tool, params.clone(), "deny");
            }
        }
        // An ask rule applies at every level.
        let given = PermissionContext {
            trust,
            ..PermissionContext::default()
        };
        judge(
            &places(&[]),
            "read ask *",
            given,
            "read",
            json!({ "path": "a" }),
            "ask",
        );
    }
}

/// Proves PERM-31: autonomous mode skips the question and changes nothing else.
#[test]
fn autonomous_mode_skips_only_the_question() {
    let check = |mode, trust, rules: &str, tool: &'static str, params: Value, expect: &str| {
        let given = PermissionContext {
            mode,
            trust,
            phase: Phase::Autonomous,
            ..PermissionContext::default()
        };
        judge(&places(&[]), rules, given, tool, params, expect);
    };
    let run = |command: &str| json!({ "command": command });
    let trusted = TrustLevel::Trusted;
    check(Mode::Ask, trusted, "", "bash", run("ls"), "allow");
    check(Mode::Ask, trusted, "bash ask *", "bash", run("ls"), "allow");
    check(
        Mode::Ask,
        TrustLevel::Untrusted,
        "",
        "bash",
        run("ls"),
        "allow",
    );
    check(
        Mode::Ask,
        trusted,
        "bash deny ls",
        "bash",
        run("ls"),
        "deny",
    );
    check(Mode::Plan, trusted, "", "bash", run("ls"), "deny");
    // Whether a deny rule matches is unknown, and no user is present.
    check(
        Mode::Ask,
        trusted,
        "bash deny rm *",
        "bash",
        run("$X y"),
        "deny",
    );
    check(
        Mode::Full,
        trusted,
        "bash deny rm *",
        "bash",
        run("$X y"),
        "deny",
    );
}

/// Proves PERM-4 in part: the hidden tools.
#[test]
fn tool_denied_entirely_is_hidden() {
    let check = |written: &str, expect: bool| {
        let places = places(&[]);
        assert_eq!(rules(written, &places).hides("bash"), expect, "{written}");
    };
    check("", false);
    check("bash deny *", true);
    check("bash deny **", true);
    check("bash deny rm *\nbash deny *", true);
    check("bash deny *\nbash allow ls", true);
    check("bash allow ls\nbash deny *", false);
    check("bash ask ls\nbash deny *", false);
    check("bash deny ls", false);
    check("bash ask *\nbash deny *", false);
    check("write deny *", false);
}

/// Proves PERM-1: the first match wins.
#[test]
fn first_match_wins() {
    bash(
        "bash allow git *\nbash deny *push*",
        &[("git push", "allow")],
    );
    bash(
        "bash deny *push*\nbash allow git *",
        &[("git push", "deny"), ("git log", "allow")],
    );
    bash(
        "bash ask git push *\nbash allow git *\nbash deny *",
        &[("git push", "ask"), ("git log", "allow"), ("ls", "deny")],
    );
}

/// Proves PERM-2 in part: the proposed rules allow the call, and nothing wider.
#[test]
fn proposed_rules_allow_the_call() {
    let check = |written: &str, tool: &'static str, params: Value, expect: &[(&str, &str)]| {
        let places = places(&["/w/p/src/a[1]", "/w/p/link -> /etc", "/etc/"]);
        let (def, mut set) = (def(tool), rules(written, &places));
        let call = ToolCall::new("c", tool, params, "s");
        let subject = subject_of(&call, &def, &places);
        let decision = decide(&subject, &set, PermissionContext::default());
        let offered = decision.would_allow(&subject);
        let found: Vec<(&str, &str)> = offered
            .iter()
            .map(|(t, p)| (t.as_str(), p.as_str()))
            .collect();
        assert_eq!(found, expect, "{decision:#?}");
        if offered.is_empty() {
            return;
        }
        let lines: Vec<String> = offered
            .iter()
            .map(|(tool, pattern)| format!("{tool} allow {pattern}"))
            .collect();
        set = rules(&format!("{}\n{written}", lines.join("\n")), &places);
        let again = decide(&subject, &set, PermissionContext::default());
        assert_eq!(again.effect, Effect::Allow, "{again:#?}");
    };
    let run = |command: &str| json!({ "command": command });
    check(
        "",
        "bash",
        run("echo 'a*b'; ls -l"),
        &[("bash", "echo a\\*b"), ("bash", "ls -l")],
    );
    check(
        "bash allow echo *\nbash ask ls *",
        "bash",
        run("echo x; ls -l"),
        &[("bash", "ls -l")],
    );
    check(
        "bash allow echo *",
        "bash",
        run("echo x > out/a"),
        &[("write", "out/a")],
    );
    check(
        "",
        "write",
        json!({"path": "src/a[1]"}),
        &[("write", "src/a\\[1\\]")],
    );
    check(
        "",
        "write",
        json!({"path": "link/x"}),
        &[("write", "/etc/x")],
    );
    check(
        "",
        "fetch",
        json!({"url": "https://X.org/a?b"}),
        &[("fetch", "https://x.org/a\\?b")],
    );
    check(
        "",
        "mcp_x",
        json!({"b": 1, "a": "*"}),
        &[("mcp_x", "{\"a\":\"\\*\",\"b\":1}")],
    );
    check(
        "",
        "bash",
        run("git commit -m \"a  b\"; A='x y' make"),
        &[("bash", "git commit -m a\\ \\ b"), ("bash", "A=x\\ y make")],
    );
    // A configuration line cannot express control characters.
    check("", "bash", run("echo 'a\u{7}b'"), &[]);
    check("", "bash", run("$X *"), &[("bash", "$X \\*")]);
    check("", "bash", run("eval $X"), &[("bash", "eval $X")]);
    check("", "bash", run("ls | $X"), &[]);
    check("", "bash", run("echo $X"), &[]);
    check("", "bash", run("python3 -c 1"), &[]);
    check("bash deny rm *", "bash", run("$X y"), &[]);
    check("bash deny ls", "bash", run("ls"), &[]);
}

/// Proves PERM-7a in part: the digest depends on the arguments, not on their spelling.
#[test]
fn digest_ignores_the_order_of_keys() {
    use crate::gate::parsed_call::digest;
    let (one, other) = (
        json!({"a": 1, "b": {"d": 1, "c": [1, 2]}}),
        json!({"b": {"c": [1, 2], "d": 1}, "a": 1}),
    );
    assert_eq!(digest("x", &one), digest("x", &other));
    assert_ne!(digest("x", &one), digest("y", &one));
    assert_ne!(
        digest("x", &json!({"a": "1"})),
        digest("x", &json!({"a": 1}))
    );
    assert_ne!(
        digest("x", &json!({"b": [2, 1]})),
        digest("x", &json!({"b": [1, 2]}))
    );
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn decided(written: &str, mode: Mode, command: &str) -> Effect {
        let places = places(&[]);
        let (def, set) = (def("bash"), rules(written, &places));
        let call = ToolCall::new("c", "bash", json!({ "command": command }), "s");
        let subject = subject_of(&call, &def, &places);
        let given = PermissionContext {
            mode,
            ..PermissionContext::default()
        };
        decide(&subject, &set, given).effect
    }

    proptest! {
        /// Proves PERM-3: a denied command is denied regardless of the text around it and of its quoting.
        #[test]
        fn denied_part_denies_the_command(
            before in prop::sample::select(vec!["", "echo a; ", "true && ", "echo x | ", "(", "env ", "if ", "timeout 3 ", "A=b ", "{ "]),
            name in prop::sample::select(vec!["rm", "r\\m", "'rm'", "/bin/rm", "$'rm'", "\"r\"m", "RM"]),
            after in prop::sample::select(vec!["", " x", "; echo b", " | cat", " && echo", " &"]),
            mode in prop::sample::select(vec![Mode::Ask, Mode::AutoEdit, Mode::Full]),
        ) {
            let closing = match before { "(" => ")", "if " => "; then :; fi", "{ " => "; }", _ => "" };
            prop_assume!(!(closing.starts_with(';') && after.ends_with('&')));
            let command = format!("{before}{name}{after}{closing}");
            prop_assert_eq!(decided("bash deny rm *\nbash allow *", mode, &command), Effect::Deny, "{}", command);
        }

        /// Proves PERM-3: a command with a part that no rule allows is never allowed.
        #[test]
        fn additional_part_is_not_allowed(
            joint in prop::sample::select(vec!["; ", " && ", " || ", " | ", "\n", " & "]),
            inner in "[a-z]{1,6}",
        ) {
            prop_assume!(!["cargo", "if", "do", "fi", "then", "in", "case", "esac", "for", "while", "until", "done", "else", "elif", "select", "time", "coproc", "function"].contains(&inner.as_str()));
            for command in [format!("cargo x{joint}{inner}"), format!("{inner}{joint}cargo x"), format!("cargo $({inner})")] {
                prop_assert_ne!(decided("bash allow cargo *", Mode::Ask, &command), Effect::Allow, "{}", command);
            }
        }

        /// Proves PERM-2 in part: the proposed rules for a command allow it, and not another one.
        #[test]
        fn proposed_rules_allow_only_the_command(
            words in prop::collection::vec("[a-zA-Z *?\\\\=\t\u{a0}'\"é{}$-]{1,6}", 1..4),
            more in "[a-z]{1,3}",
        ) {
            let quoted: Vec<String> = words
                .iter()
                .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
                .collect();
            let command = format!("run {}", quoted.join(" "));
            let places = places(&[]);
            let def = def("bash");
            let call = ToolCall::new("c", "bash", json!({ "command": command }), "s");
            let subject = subject_of(&call, &def, &places);
            let none = RuleSet::default();
            let offered = decide(&subject, &none, PermissionContext::default()).would_allow(&subject);
            prop_assert_eq!(offered.len(), 1, "{}", command);
            let lines: Vec<String> =
                offered.iter().map(|(tool, pattern)| format!("{tool} allow {pattern}")).collect();
            let written = lines.join("\n");
            prop_assert_eq!(decided(&written, Mode::Ask, &command), Effect::Allow, "{}", written);
            let other = format!("{command} {more}");
            prop_assert_eq!(decided(&written, Mode::Ask, &other), Effect::Ask, "{}", written);
        }

        #[test]
        fn nothing_panics(command in ".{0,60}", pattern in "[a-z*? ]{1,8}") {
            prop_assume!(!pattern.trim().is_empty());
            decided(&format!("bash deny {pattern}\nbash allow *"), Mode::Ask, &command);
        }
    }
}
