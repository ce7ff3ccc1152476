//! Tables of rules and calls, and properties; one table uses files on the disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::call::ToolCall;
use crate::gate::PathResolver;
use crate::gate::parsed_call::subject_of;
use crate::gate::path_resolver::tests::places;
use crate::gate::rule::Place;
use crate::gate::tests::tools::def;

/// `[tools.policy]` and `[tools.authorization]`.
#[derive(serde::Deserialize)]
struct Written {
    #[serde(default)]
    policy: PolicyConfig,
    #[serde(default)]
    authorization: AuthorizationConfig,
}

fn compile(text: &str, places: &PathResolver) -> Result<Option<PolicyEnforcer>, Vec<PolicyError>> {
    let written: Written = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let origin = |key: &str| RuleOrigin {
        key: key.to_owned(),
        place: Place::Line(Path::new("c.toml").into(), 7),
    };
    let around = PolicyEnv {
        origin: &origin,
        places,
        is_set: &|name| name == "CI",
    };
    PolicyEnforcer::new(&written.policy, &written.authorization, around)
}

/// Returns an enabled policy that allows all calls except those that the rules deny.
fn open(rules: &str) -> String {
    format!("[policy]\nenabled = true\ndefault_effect = 'allow'\n{rules}")
}

/// Returns an enabled policy that denies all calls except those that the rules allow.
fn closed(rules: &str) -> String {
    format!("[policy]\nenabled = true\n{rules}")
}

fn table() -> PathResolver {
    places(&[
        "/w/p/src/a.rs",
        "/w/p/src/deep/b.rs",
        "/w/p/secret/key",
        "/w/p/notes",
        "/w/p/link -> secret",
        "/w/p/out -> /etc",
        "/etc/passwd",
        "/h/.ssh/id",
    ])
}

#[track_caller]
fn decided(
    policy: &PolicyEnforcer,
    places: &PathResolver,
    tool: &'static str,
    params: &Value,
) -> String {
    at(policy, places, tool, params, TrustLevel::Trusted)
}

#[track_caller]
fn at(
    policy: &PolicyEnforcer,
    places: &PathResolver,
    tool: &'static str,
    params: &Value,
    trust: TrustLevel,
) -> String {
    let def = def(tool);
    let call = ToolCall::new("c", tool, params.clone(), "s");
    let subject = subject_of(&call, &def, places);
    policy.decide(&subject, trust).to_string()
}

#[track_caller]
fn check(text: &str, cases: &[(&'static str, Value, &str)]) {
    let places = table();
    let policy = compile(text, &places).expect("rules").expect("a policy");
    for (tool, params, expect) in cases {
        let found = decided(&policy, &places, tool, params);
        assert!(
            found.starts_with(expect),
            "{tool} {params}: {found}, not {expect}\n{text}"
        );
    }
}

fn path(path: &str) -> Value {
    json!({ "path": path })
}

fn command(command: &str) -> Value {
    json!({ "command": command })
}

/// Proves PERM-10: a word that may be relative to too many directories may be any file.
#[test]
fn word_in_too_many_directories_can_be_any_file() {
    let rules = "[[policy.rules]]\neffect = 'deny'\ntools = ['bash']\npaths = ['secrets/**']\n";
    let walk = |times: usize| command(&format!("{} ls x", "cd d;".repeat(times)));
    let cases = [
        ("bash", walk(15), "allow"),
        ("bash", walk(16), "deny by tools.policy.rules[0]"),
        (
            "bash",
            command("cd d && cd - && cat x"),
            "deny by tools.policy.rules[0]",
        ),
        (
            "bash",
            command("source d/env && cat x"),
            "deny by tools.policy.rules[0]",
        ),
        ("bash", command("cd d && cd - && ls"), "allow"),
    ];
    check(&open(rules), &cases);
}

/// Proves PERM-12: each command of a pipeline starts in the directory of the pipeline, regardless of the others.
#[test]
fn pipeline_does_not_change_the_directory_of_its_commands() {
    let rules = "[[policy.rules]]\neffect = 'allow'\ntools = '*'\npaths = 'src/**'\n";
    let check = |text: &str, effect: &str| {
        let places = table();
        let policy = compile(&closed(rules), &places)
            .expect("rules")
            .expect("one");
        let found = decided(&policy, &places, "bash", &command(text));
        assert!(found.starts_with(effect), "{text}: {found}");
    };
    check("cd src | cat secret/key", "deny");
    check("cat src/a.rs | cd src | cat notes", "deny");
    check("{ cd src; ls a.rs; } | cat notes", "deny");
    check("cd src |& cat notes", "deny");
    check("cd src && cat a.rs | cat a.rs", "allow");
}

/// Proves PERM-10: the first matching rule decides; else the default does, which denies.
#[test]
fn first_matching_rule_or_the_default_decides() {
    let rules = "[[policy.rules]]\neffect = 'deny'\ntools = ['write']\npaths = ['src/deep/**']\n\
        [[policy.rules]]\neffect = 'allow'\ntools = ['read', 'wri*']\n\
        [[policy.rules]]\neffect = 'deny'\ntools = '*'\n";
    let cases = [
        (
            "write",
            path("src/deep/b.rs"),
            "deny by tools.policy.rules[0] (c.toml:7): tool \"write\", path \"src/deep/b.rs\" by \"src/deep/**\"",
        ),
        (
            "write",
            path("src/a.rs"),
            "allow by tools.policy.rules[1] (c.toml:7): tool \"wri*\"",
        ),
        (
            "read",
            path("src/deep/b.rs"),
            "allow by tools.policy.rules[1]",
        ),
        ("grep", json!({}), "deny by tools.policy.rules[2]"),
    ];
    check(&closed(rules), &cases);
    check(&open(rules), &cases);
    let none = "tools.policy.default_effect (c.toml:7): no rule matches the call";
    let read = |effect: &str| ("read", path("x"), format!("{effect} by {none}"));
    for (text, (tool, params, expect)) in [(closed(""), read("deny")), (open(""), read("allow"))] {
        check(&text, &[(tool, params, &expect)]);
    }
}

/// Proves PERM-11: rules of the authorization come after those of the policy; the default after both.
#[test]
fn authorization_rules_follow_the_policy_rules() {
    let policy = "[[policy.rules]]\neffect = 'deny'\ntools = 'write'\n";
    let more = "[authorization]\nenabled = true\n\
        [[authorization.rules]]\naction = 'allow'\ntool = ['write', 'read']\n\
        [[authorization.rules]]\neffect = 'deny'\ntools = 'grep'\n";
    let cases = [
        ("write", path("a"), "deny by tools.policy.rules[0]"),
        ("read", path("a"), "allow by tools.authorization.rules[0]"),
        ("grep", json!({}), "deny by tools.authorization.rules[1]"),
        ("add_task", json!({}), "deny by tools.policy.default_effect"),
    ];
    check(&format!("{}{more}", closed(policy)), &cases);
    // Alone it has the same default, and disabled sections are not evaluated.
    let alone = format!("[policy]\n{policy}{more}");
    check(
        &alone,
        &[
            ("write", path("a"), "allow by tools.authorization.rules[0]"),
            ("add_task", json!({}), "deny by tools.policy.default_effect"),
        ],
    );
    let off = more.replace("enabled = true", "enabled = false");
    check(
        &format!("{}{off}", open(policy)),
        &[("grep", json!({}), "allow by tools.policy.default_effect")],
    );
    let neither = compile(&format!("[policy]\n{policy}{off}"), &table()).expect("rules");
    assert!(neither.is_none());
}

/// Proves PERM-12: one path that a rule denies is enough, under any name.
#[test]
fn any_path_is_denied() {
    let rules = "[[policy.rules]]\neffect = 'deny'\ntools = ['*']\npaths = ['secret/**', '/etc/**', '~/.ssh/**']\n";
    let (deny, allow) = (
        "deny by tools.policy.rules[0]",
        "allow by tools.policy.default_effect",
    );
    let moved = |from: &str, to: &str| json!({ "source": from, "destination": to });
    check(
        &open(rules),
        &[
            ("read", path("secret/key"), deny),
            ("read", path("SECRET/KEY"), deny),
            ("read", path("secret"), deny),
            ("read", path("src/../secret/key"), deny),
            ("read", path("/w/p/secret/key"), deny),
            ("read", path("link/key"), deny),
            ("read", path("out/passwd"), deny),
            ("read", path("/h/.ssh/id"), deny),
            ("read", path("src/a.rs"), allow),
            ("write", path("secret/new"), deny),
            ("write", path("secrets"), allow),
            ("move_path", moved("src/a.rs", "secret/a.rs"), deny),
            ("move_path", moved("secret/key", "src/key"), deny),
            ("move_path", moved("src/a.rs", "src/c.rs"), allow),
            // It would include the contents of that directory.
            ("grep", json!({ "pattern": "x" }), deny),
            ("grep", json!({ "path": "src" }), allow),
            (
                "fetch",
                json!({ "url": "https://example.org/etc/secret/key" }),
                allow,
            ),
            ("add_task", json!({ "title": "see secret/key" }), allow),
            ("mcp_files_read", json!({ "file": "secret/key" }), deny),
            (
                "mcp_files_read",
                json!({ "x": [{ "y": "/etc/passwd" }] }),
                deny,
            ),
            ("mcp_files_read", json!({ "file": "src/a.rs" }), allow),
        ],
    );
}

/// Proves PERM-12, SH-50 in part: the paths in a command, including bare words that are files.
#[test]
fn any_path_of_a_command_is_denied() {
    let rules = "[[policy.rules]]\neffect = 'deny'\ntools = 'bash'\npaths = ['secret/**', 'notes', '/etc/**', '~/.ssh/*']\n";
    let places = table();
    let policy = compile(&open(rules), &places).expect("rules").expect("one");
    let denied = |text: &str| {
        let found = decided(&policy, &places, "bash", &command(text));
        assert!(
            found.starts_with("deny by tools.policy.rules[0]"),
            "{text}: {found}"
        );
    };
    let allowed = |text: &str| {
        let found = decided(&policy, &places, "bash", &command(text));
        assert!(found.starts_with("allow"), "{text}: {found}");
    };
    for text in [
        "cat secret/key",
        "cat ./secret/key",
        "cat 'secret'/\"key\"",
        "cat sec\\ret/key",
        "cat notes",
        "cat n''otes",
        "ls | cat - notes",
        "cd secret && cat key",
        "cd src && cat ../secret/key",
        "ls secret",
        "cat link/key",
        "cat /etc/passwd",
        "cat out/passwd",
        "cat ~/.ssh/id",
        "tar cf x.tar --files-from=secret/list",
        "dd if=secret/key",
        "curl -d @secret/key localhost",
        "cp src/a.rs secret/new",
        "echo x > secret/new",
        "echo x > notes",
        "cat < notes",
        "bash -c 'cat secret/key'",
        "env A=1 cat notes",
        "find src -exec cat notes {} +",
        "python3 -c \"open('secret/key')\"",
        "F=secret/key; cat $F",
        "cat $(echo secret/key)",
        "echo $(cat notes)",
        "for f in secret/key src/a.rs; do cat \"$f\"; done",
        // An unknown path may be the denied one.
        "cat \"$X\"",
        "cat $(printf %s c2VjcmV0 | base64 -d)",
        "cd \"$X\" && cat key",
        "echo x > \"$X\"",
        "cat secret/key &&&",
    ] {
        denied(text);
    }
    for text in [
        "cat src/a.rs",
        "ls",
        "cargo test",
        "cat secretly",
        "echo notes-and-more",
        "curl https://example.org/secret/key",
        "cd src && cat a.rs > /dev/null 2>&1",
        "cat ~/other",
    ] {
        allowed(text);
    }
    let cwd = json!({ "command": "ls", "cwd": "secret" });
    assert!(decided(&policy, &places, "bash", &cwd).starts_with("deny"));
    let cwd = json!({ "command": "cat key", "cwd": "link" });
    assert!(decided(&policy, &places, "bash", &cwd).starts_with("deny"));
}

/// Proves PERM-12: an allow rule needs at least one path, and every real path must match.
#[test]
fn every_path_is_allowed() {
    let rules =
        "[[policy.rules]]\neffect = 'allow'\ntools = ['*']\npaths = ['src/**', 'Cargo.toml']\n";
    let (allow, deny) = (
        "allow by tools.policy.rules[0]",
        "deny by tools.policy.default_effect",
    );
    let moved = |from: &str, to: &str| json!({ "source": from, "destination": to });
    check(
        &closed(rules),
        &[
            ("read", path("src/a.rs"), allow),
            ("read", path("/w/p/src/new/file"), allow),
            ("read", path("src/../secret/key"), deny),
            ("read", path("link/key"), deny),
            ("read", path("out/passwd"), deny),
            ("move_path", moved("src/a.rs", "src/c.rs"), allow),
            ("move_path", moved("src/a.rs", "c.rs"), deny),
            ("move_path", moved("a.rs", "src/c.rs"), deny),
            ("grep", json!({}), deny),
            ("grep", json!({ "path": "src" }), allow),
            ("add_task", json!({ "title": "src/a.rs" }), deny),
            (
                "fetch",
                json!({ "url": "https://example.org/src/a.rs" }),
                deny,
            ),
            ("mcp_x", json!({ "a": "src/a.rs" }), allow),
            (
                "mcp_x",
                json!({ "a": "src/a.rs", "b": "/etc/passwd" }),
                deny,
            ),
            ("mcp_x", json!({ "a": "nothing" }), deny),
            ("bash", command("cat src/a.rs src/deep/b.rs"), allow),
            (
                "bash",
                command("cat src/a.rs > src/c.rs 2>/dev/null"),
                allow,
            ),
            ("bash", command("cd src && cat a.rs"), allow),
            ("bash", command("cat src/a.rs notes"), deny),
            ("bash", command("cat src/a.rs > c.rs"), deny),
            ("bash", command("cat src/a.rs; cat /etc/passwd"), deny),
            (
                "bash",
                command("cat src/a.rs; bash -c 'cat /etc/passwd'"),
                deny,
            ),
            ("bash", command("cat src/../secret/key"), deny),
            ("bash", command("cat src/*.rs"), deny),
            ("bash", command("cat src/$X"), deny),
            ("bash", command("cat src/a.rs $(cat src/a.rs)"), deny),
            ("bash", command("cat src/a.rs > $X"), deny),
            ("bash", command("cat src/a.rs ("), deny),
            ("bash", command("ls"), deny),
            (
                "bash",
                json!({ "command": "cat a.rs", "cwd": "src" }),
                allow,
            ),
            (
                "bash",
                json!({ "command": "cat src/a.rs", "cwd": "/etc" }),
                deny,
            ),
        ],
    );
}

/// Proves PERM-10: expressions match the arguments; a deny rule also matches text behind escapes and quotes.
#[test]
fn arguments_match() {
    let deny = "[[policy.rules]]\neffect = 'deny'\ntools = ['bash', 'fetch', 'mcp_*']\nargs_match = '(?i)drop table|^rm -rf|say \"hi\"'\n";
    let (no, yes) = (
        "deny by tools.policy.rules[0]",
        "allow by tools.policy.default_effect",
    );
    check(
        &open(deny),
        &[
            ("bash", command("rm -rf x"), no),
            ("bash", command("r'm' -rf x"), no),
            ("bash", command("cd x; rm -rf y"), no),
            ("bash", command("A=1 rm -rf y"), no),
            ("bash", command("say \"hi\""), no),
            ("bash", command("rm x"), yes),
            ("bash", command("echo 'Drop  table'"), yes),
            ("mcp_db", json!({ "sql": ["x", "Drop Table y"] }), no),
            ("mcp_db", json!({ "drop table": 1 }), no),
            ("mcp_db", json!({ "sql": "select" }), yes),
            (
                "fetch",
                json!({ "url": "https://example.org/drop table" }),
                no,
            ),
        ],
    );
    // An allow rule must match the JSON itself: a quote in a text is escaped there.
    let allow = "[[policy.rules]]\neffect = 'allow'\ntools = 'bash'\nargs_match = '^\\{\"command\":\"cargo (test|check)[^\"\\\\;&|$`]*\"\\}$'\n";
    let (yes, no) = (
        "allow by tools.policy.rules[0]",
        "deny by tools.policy.default_effect",
    );
    check(
        &closed(allow),
        &[
            ("bash", command("cargo test -p x"), yes),
            ("bash", command("cargo test; rm x"), no),
            ("bash", command("cargo test \"x\""), no),
            ("bash", command("cargo test\nrm x"), no),
            ("bash", json!({ "command": "cargo test", "cwd": "x" }), no),
            ("bash", command("x"), no),
        ],
    );
    // An expression that the library does not support in a set.
    let word = "[[policy.rules]]\neffect = 'deny'\ntools = 'mcp_x'\nargs_match = '^\\b'\n";
    let allow = "allow by tools.policy.default_effect";
    check(
        &open(word),
        &[
            (
                "mcp_x",
                json!({ "a": "\u{e4}" }),
                "deny by tools.policy.rules[0]",
            ),
            ("mcp_x", json!({ "a": "-" }), allow),
            (
                "mcp_x",
                json!({ "a": "x" }),
                "deny by tools.policy.rules[0]",
            ),
        ],
    );
    // The order of the keys does not matter.
    let both =
        "[[policy.rules]]\neffect = 'deny'\ntools = 'mcp_x'\nargs_match = '\"a\":1,\"b\":2'\n";
    let params: Value = serde_json::from_str("{\"b\": 2, \"a\": 1}").expect("JSON");
    check(
        &open(both),
        &[("mcp_x", params, "deny by tools.policy.rules[0]")],
    );
}

/// Proves PERM-10: variables that must be set.
#[test]
fn rule_requires_its_environment_variables() {
    let rules = "[[policy.rules]]\neffect = 'deny'\ntools = 'read'\nenv = ['CI']\n\
        [[policy.rules]]\neffect = 'deny'\ntools = 'write'\nenv = ['CI', 'OTHER']\n";
    check(
        &open(rules),
        &[
            (
                "read",
                path("a"),
                "deny by tools.policy.rules[0] (c.toml:7): tool \"read\", environment [\"CI\"]",
            ),
            ("write", path("a"), "allow by tools.policy.default_effect"),
        ],
    );
}

/// Proves PERM-10: an allow rule needs at least the trust level, a deny rule at most.
#[test]
fn rule_requires_its_trust_level() {
    let allow = "[[policy.rules]]\neffect = 'allow'\ntools = 'read'\ntrust_level = 'provisional'\n";
    let deny = "[[policy.rules]]\neffect = 'deny'\ntools = 'read'\ntrust_level = 'provisional'\n";
    let places = table();
    for (text, expect) in [
        (closed(allow), ["deny", "allow", "allow"]),
        (open(deny), ["deny", "deny", "allow"]),
    ] {
        let policy = compile(&text, &places).expect("rules").expect("one");
        let levels = [
            TrustLevel::Untrusted,
            TrustLevel::Provisional,
            TrustLevel::Trusted,
        ];
        for (level, expect) in levels.into_iter().zip(expect) {
            let found = at(&policy, &places, "read", &path("a"), level);
            assert!(found.starts_with(expect), "{level:?}: {found}");
        }
    }
}

/// Proves PERM-12, PERM-10 in part: an invalid rule is refused, enabled or not.
#[test]
fn invalid_rule_is_refused() {
    let check = |rule: &str, key: &str, words: &[&str]| {
        for enabled in [true, false] {
            let text = format!("[policy]\nenabled = {enabled}\n[[policy.rules]]\n{rule}");
            let errors = compile(&text, &table()).expect_err(rule);
            assert_eq!(errors.len(), 1, "{errors:?}");
            let told = format!("{} {}", errors[0], errors[0].help);
            assert_eq!(
                errors[0].key,
                format!("tools.policy.rules[0]{key}"),
                "{told}"
            );
            for word in words {
                assert!(told.contains(word), "{word:?} is not in {told:?}");
            }
        }
    };
    let base = "effect = 'deny'\ntools = 'bash'\n";
    check("effect = 'deny'", "", &["names no tools"]);
    check("effect = 'deny'\ntools = []", "", &["names no tools"]);
    check("tools = 'read'", "", &["has no `effect`"]);
    check(
        "effect = 'deny'\naction = 'deny'\ntools = '*'",
        ".action",
        &["`effect`"],
    );
    check(
        "effect = 'deny'\ntools = '*'\ntool = '*'",
        ".tool",
        &["`tools`"],
    );
    check("effect = 'deny'\ntools = ['']", ".tools", &["is empty"]);
    check("effect = 'deny'\ntool = 'a\\'", ".tool", &["`\\`"]);
    check(
        &format!("{base}paths = ['[a']"),
        ".paths",
        &["\"[a\"", "unclosed"],
    );
    check(
        &format!("{base}paths = ['a', 'b/../c']"),
        ".paths",
        &["b/../c"],
    );
    check(
        &format!("{base}args_match = '(a'"),
        ".args_match",
        &["(a", "unclosed group"],
    );
    check(
        &format!("{base}args_match = ''"),
        ".args_match",
        &["is empty"],
    );
    check(
        &format!("{base}args_match = '(?:a{{1000}}){{1000}}'"),
        ".args_match",
        &["size"],
    );
    check(
        &format!("{base}args_match = '{}'", "a".repeat(1025)),
        ".args_match",
        &["1025"],
    );
    check(&format!("{base}env = ['A=b']"), ".env", &["\"A=b\""]);
    check(
        &format!("{base}capabilities = ['net']"),
        ".capabilities",
        &["reserved"],
    );
    let text = "[authorization]\n[[authorization.rules]]\ntools = 'x'";
    let errors = compile(text, &table()).expect_err("no effect");
    assert_eq!(errors[0].key, "tools.authorization.rules[0]");
}

#[test]
fn unknown_tool_names_are_errors() {
    let places = table();
    let check = |tools: &str, expect: Option<&str>| {
        let text = open(&format!(
            "[[policy.rules]]\neffect = 'deny'\ntools = {tools}"
        ));
        let policy = compile(&text, &places).expect("rules").expect("one");
        let errors = policy.names_not_in(&["bash", "read", "write"]);
        assert_eq!(
            errors.first().map(|error| error.help.as_str()),
            expect,
            "{tools}"
        );
    };
    check(
        "['bash', 'w*', '*', 'READ', 'mcp_*', 'mcp_git_log', '*_log']",
        None,
    );
    check("'reed'", Some("did you mean `read`?"));
    check("['read', 'raed*']", Some("did you mean `read`?"));
}

/// Proves PERM-12: on a real disk, shell patterns match the existing files.
#[test]
fn shell_patterns_match_existing_files() {
    let dir = tempfile::tempdir().expect("a directory");
    #[allow(clippy::disallowed_methods, reason = "the path as the gate finds it")]
    let base = fs::canonicalize(dir.path()).expect("a real path");
    for file in [
        "p/secret/key",
        "p/sécret/x.key",
        "p/src/a.rs",
        "p/.env",
        "outside/x.key",
    ] {
        let file = base.join(file);
        fs::create_dir_all(file.parent().expect("one")).expect("a directory");
        fs::write(file, "x").expect("a file");
    }
    symlink("../outside", base.join("p/link")).expect("a link");
    let places = PathResolver::new(&base.join("p"), Some(base.join("h")), &[]);
    let rules = "[[policy.rules]]\neffect = 'deny'\ntools = 'bash'\npaths = ['secret/*', '**/*.key', '.env']\n";
    let policy = compile(&open(rules), &places).expect("rules").expect("one");
    for (text, expect) in [
        ("cat sec*/key", "deny"),
        ("cat */key", "deny"),
        ("cat s?cret/k*", "deny"),
        ("cat s?cret/x.key", "deny"),
        ("cat [st]ecret/key", "deny"),
        ("cat [[:lower:]]ecret/key", "deny"),
        ("cat [[.s.]]ecret/key", "deny"),
        ("cat sec*//key", "deny"),
        ("cat sec*/./key", "deny"),
        ("cat {src,secret}/k*", "deny"),
        ("cat link/*", "deny"),
        ("cat .e*", "deny"),
        ("shopt -s dotglob; cat *", "deny"),
        ("cat src/*", "allow"),
        ("cat *.rs", "allow"),
        ("cat *", "allow"),
    ] {
        let found = decided(&policy, &places, "bash", &command(text));
        assert!(found.starts_with(expect), "{text}: {found}");
    }
}

const TOOLS: &[&str] = &["bash", "read", "write", "grep", "move_path", "mcp_x"];

fn calls() -> impl Strategy<Value = (&'static str, Value)> {
    let path = "(src|secret|link|out|\\.\\.|/etc|notes|\\.)(/(a\\.rs|key|\\.\\.|deep)){0,3}";
    let text = "(cat|cd|echo|bash -c) ['\"$]?(src/a\\.rs|secret/key|notes|/etc/passwd|out/x)['\"]?( ?(;|>|&&|\\|) ?(cat )?(src|link/key|\\$X|src/\\*))?";
    (0..TOOLS.len(), path, path, text).prop_map(|(tool, first, second, text)| {
        let tool = TOOLS[tool];
        let params = match tool {
            "bash" => json!({ "command": text }),
            "move_path" => json!({ "source": first, "destination": second }),
            "mcp_x" => json!({ "x": [first], "y": second }),
            _ => json!({ "path": first }),
        };
        (tool, params)
    })
}

fn a_rule() -> impl Strategy<Value = String> {
    let tools = prop::sample::select(vec!["*", "bash", "read", "m*", "write"]);
    let paths = prop::option::of(prop::sample::select(vec![
        "src/**", "**", "secret/*", "/etc/**", "notes", "*",
    ]));
    let arguments = prop::option::of(prop::sample::select(vec!["key", "^cat", "a\\.rs"]));
    let effect = prop::sample::select(vec!["allow", "deny"]);
    (effect, tools, paths, arguments).prop_map(|(effect, tools, paths, arguments)| {
        let mut rule = format!("[[policy.rules]]\neffect = '{effect}'\ntools = '{tools}'\n");
        if let Some(paths) = paths {
            rule += &format!("paths = '{paths}'\n");
        }
        if let Some(arguments) = arguments {
            rule += &format!("args_match = '{arguments}'\n");
        }
        rule
    })
}

proptest! {
    /// Proves PERM-10: a deny rule before others never allows a denied call.
    #[test]
    fn deny_rule_only_tightens(
        rules in prop::collection::vec(a_rule(), 0..4),
        added in a_rule(),
        calls in prop::collection::vec(calls(), 1..6),
    ) {
        let places = table();
        let added = added.replace("'allow'", "'deny'");
        let rules = rules.concat();
        let before = compile(&open(&rules), &places).expect("rules").expect("one");
        let after = compile(&open(&format!("{added}{rules}")), &places).expect("rules").expect("one");
        for (tool, params) in calls {
            let (before, after) = (decided(&before, &places, tool, &params), decided(&after, &places, tool, &params));
            prop_assert!(before.starts_with("allow") || after.starts_with("deny"), "{tool} {params}: {before}, then {after}");
        }
    }

    /// Proves PERM-12: a rule that allows paths allows no call with another path.
    #[test]
    fn no_path_outside_is_allowed(calls in prop::collection::vec(calls(), 1..8)) {
        let places = table();
        let text = closed("[[policy.rules]]\neffect = 'allow'\ntools = '*'\npaths = 'src/**'\n");
        let policy = compile(&text, &places).expect("rules").expect("one");
        for (tool, params) in calls {
            let found = decided(&policy, &places, tool, &params);
            if found.starts_with("deny") {
                continue;
            }
            let def = def(tool);
            let call = ToolCall::new("c", tool, params.clone(), "s");
            let subject = subject_of(&call, &def, &places);
            for path in &subject.paths {
                let real = path.forms(subject.places()).canonical.clone();
                prop_assert!(real.is_some_and(|real| real.starts_with("/w/p/src")), "{tool} {params}: {found}");
            }
            let text = params.to_string();
            // No command runs after a `cd` to a file.
            if text.replace([' ', '"', '\'', '\\'], "").contains("cdsrc/a.rs&&") {
                continue;
            }
            for outside in ["secret", "notes", "etc/passwd", "link", "out", "$X", "*"] {
                prop_assert!(tool != "bash" || !text.contains(outside), "{params}: {found}");
            }
        }
    }
}
