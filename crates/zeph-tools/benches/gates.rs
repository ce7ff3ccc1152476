//! Time to decide about a call: `cargo bench -p zeph-tools --bench gates`.
//!
//! With 200 permission rules and 200 policy rules, all gates together must take less than 100 µs for a
//! command of ten parts: `stack_of_layers::gated` minus `bare`. Gates that need a model, the database or the
//! disk are not included.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use divan::{Bencher, black_box};
use serde_json::{Value, json};
use zeph_tools::gate::anomaly::AnomalyDetector;
use zeph_tools::gate::policy::{
    AuthorizationConfig, OneOrMore, PolicyConfig, PolicyEffect, PolicyEnforcer, PolicyEnv,
    PolicyRule,
};
use zeph_tools::gate::rule::Place;
use zeph_tools::gate::utility::{UtilityConfig, UtilityScorer};
use zeph_tools::gate::{
    Action, CallLimits, Effect, PathResolver, PermissionContext, PermissionRule, Rule, RuleOrigin,
    RuleSet, ToolRules, decide, subject_of,
};
use zeph_tools::layers::blocklist::BlocklistLayer;
use zeph_tools::shell::{ReadGuard, ShellConfig, ShellExecutor, ShellPolicy, SupervisorCommand};
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{
    CallContext, ExecutorResult, LayeredExecutor, Permissions, SkillEnv, ToolCall, ToolDef,
    ToolExecutor, ToolOutput, TrustLevel,
};

/// The number of rules of each tool, and of the policy.
const RULES: usize = 200;
/// A command of ten parts.
const TEN: &str = "cd crates && for f in a b c; do grep -n 'x y' some/src/lib.rs | head -5; done; git log --oneline \
                   | tail -3 && cargo check -p some && ls -l crates; echo done; wc -l Cargo.toml; git status";

fn main() {
    divan::main();
}

fn origin(key: &str) -> RuleOrigin {
    RuleOrigin {
        key: key.to_owned(),
        place: Place::Said("here".to_owned()),
    }
}

/// Rules for each tool. The last one matches everything.
fn rules(defs: &[ToolDef], places: &PathResolver) -> RuleSet {
    let mut tools = BTreeMap::new();
    for def in defs {
        let list = (0..RULES).map(|n| {
            let pattern = match (def.id.as_ref(), n) {
                (_, n) if n + 1 == RULES => "*".to_owned(),
                ("bash", n) if n % 3 == 0 => format!("tool{n} * --flag{n} *"),
                ("bash", n) if n % 3 == 1 => format!("*secret{n}*"),
                ("bash", n) => format!("git sub{n} *"),
                (_, n) if n % 3 == 0 => format!("**/*.ext{n}"),
                (_, n) if n % 3 == 1 => format!("dir{n}/**/*.{{a,b,c}}"),
                (_, n) => format!("/srv/data{n}/**"),
            };
            let written = PermissionRule {
                pattern,
                action: if n % 2 == 0 {
                    Action::Deny
                } else {
                    Action::Allow
                },
                matches: Vec::new(),
                not_matches: Vec::new(),
            };
            let origin = origin(&format!("tools.permissions.{}[{n}]", def.id));
            Rule::new(def.about.pattern_kind(), written, origin, places).unwrap()
        });
        let list = ToolRules {
            rules: list.collect(),
            listed: true,
        };
        tools.insert(def.id.to_string(), list);
    }
    RuleSet::new(tools)
}

/// A policy without a matching rule: one third each has paths, expressions and other tools.
fn policy(places: &PathResolver) -> PolicyEnforcer {
    let one = |text: &str| OneOrMore(vec![text.to_owned()]);
    let rules = (0..RULES).map(|n| {
        let rule = PolicyRule {
            effect: Some(if n % 2 == 0 {
                PolicyEffect::Deny
            } else {
                PolicyEffect::Allow
            }),
            tools: one("*"),
            ..PolicyRule::default()
        };
        match n % 3 {
            0 => PolicyRule {
                paths: one(&format!("secrets{n}/**")),
                ..rule
            },
            1 => PolicyRule {
                args_match: Some(format!("token{n}=[a-z0-9]+")),
                ..rule
            },
            _ => PolicyRule {
                tools: one(&format!("mcp_server{n}_*")),
                ..rule
            },
        }
    });
    let config = PolicyConfig {
        enabled: true,
        default_effect: PolicyEffect::Allow,
        rules: rules.collect(),
    };
    let around = PolicyEnv {
        origin: &origin,
        places,
        is_set: &|_| false,
    };
    let policy = PolicyEnforcer::new(&config, &AuthorizationConfig::default(), around);
    policy.unwrap().unwrap()
}

/// A directory with a project, and the tools.
struct World {
    dir: tempfile::TempDir,
    defs: Vec<ToolDef>,
    places: Arc<PathResolver>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("crates/some/src")).unwrap();
        std::fs::write(dir.path().join("crates/some/src/lib.rs"), "").unwrap();
        let sandbox = zeph_tools::file::Sandbox::new(&[], dir.path()).unwrap();
        let mut defs = zeph_tools::file::FileExecutor::new(Arc::new(sandbox)).tool_definitions();
        defs.push(zeph_tools::shell::bash::definition(
            &ShellConfig::default(),
            &ShellPolicy::default(),
        ));
        Self {
            places: Arc::new(PathResolver::new(dir.path(), None, &[])),
            dir,
            defs,
        }
    }

    /// The stack around tools that do nothing, with or without its gates.
    fn stack(&self, gates: bool) -> LayeredExecutor {
        let mut parts = StackParts {
            executors: vec![("idle", Arc::new(Idle(self.defs.clone())))],
            ..StackParts::default()
        };
        let shell = ShellExecutor::new(
            ShellConfig::default(),
            self.dir.path().to_owned(),
            Vec::new(),
            SupervisorCommand::new("/bin/true"),
            ReadGuard::default(),
        );
        if gates {
            parts.blocklist = Some(Arc::new(BlocklistLayer::new(&shell.unwrap())));
            parts.policy = Some(Arc::new(policy(&self.places)));
            parts.permissions.rules = Arc::new(rules(&self.defs, &self.places));
            parts.limits = CallLimits {
                anomalies: Some(Arc::new(AnomalyDetector::new(Default::default()))),
                // A threshold that skips no call, regardless of repetitions.
                utility: Some(Arc::new(UtilityScorer::new(UtilityConfig {
                    threshold: -1.0,
                    ..UtilityConfig::default()
                }))),
                ..CallLimits::default()
            };
        } else {
            parts.permissions = Permissions::of(zeph_tools::Mode::Full);
        }
        parts.permissions.places = Arc::clone(&self.places);
        stack::build(parts).unwrap()
    }
}

/// An executor whose tools do nothing.
struct Idle(Vec<ToolDef>);

impl ToolExecutor for Idle {
    async fn execute_tool_call(&self, _: &ToolCall, _: &CallContext) -> ExecutorResult {
        Ok(Some(ToolOutput::text("done")))
    }

    async fn execute_tool_call_confirmed(&self, _: &ToolCall, _: &CallContext) -> ExecutorResult {
        Ok(Some(ToolOutput::text("done")))
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        self.0.clone()
    }

    fn set_skill_env(&self, _: Option<SkillEnv>) {}

    fn set_effective_trust(&self, _: TrustLevel) {}

    fn is_tool_retryable(&self, _: &str) -> bool {
        false
    }

    fn requires_confirmation(&self, _: &ToolCall) -> bool {
        false
    }
}

/// The measured calls.
const CALLS: [&str; 4] = ["read", "edit", "bash", "bash of ten parts"];

fn call(name: &str) -> ToolCall {
    let path = "crates/some/src/lib.rs";
    let text = "let x = 1;\n".repeat(200);
    let (tool, params) = match name {
        "read" => ("read", json!({ "path": path })),
        "edit" => (
            "edit",
            json!({ "path": path, "old_string": text, "new_string": text }),
        ),
        "bash" => ("bash", command("cargo test --workspace")),
        _ => ("bash", command(TEN)),
    };
    ToolCall::new("c", tool, params, "s")
}

fn command(text: &str) -> Value {
    json!({ "command": text })
}

mod stack_of_layers {
    use super::*;

    fn run(bencher: Bencher<'_, '_>, call: &ToolCall, gates: bool) {
        let world = World::new();
        let stack = world.stack(gates);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        bencher.bench_local(|| {
            let result = runtime.block_on(stack.execute_tool_call(call, &CallContext::headless()));
            assert!(result.is_ok(), "{result:?}");
        });
    }

    /// A call without rules, blocklist and policy.
    #[divan::bench(args = CALLS)]
    fn bare(bencher: Bencher<'_, '_>, name: &str) {
        run(bencher, &call(name), false);
    }

    /// A call with all gates.
    #[divan::bench(args = CALLS)]
    fn gated(bencher: Bencher<'_, '_>, name: &str) {
        run(bencher, &call(name), true);
    }

    /// A command of ten times this number of parts that changes the directory once. The time must not grow
    /// faster than the command.
    #[divan::bench(args = [1, 10, 100])]
    fn long_commands(bencher: Bencher<'_, '_>, times: usize) {
        let (change, work) = TEN.split_once(" && ").unwrap();
        let parts: Vec<String> = (0..times).map(|n| format!("echo {n}; {work}")).collect();
        let parts = [vec![change.to_owned()], parts].concat();
        let call = ToolCall::new("c", "bash", command(&parts.join("; ")), "s");
        run(bencher, &call, true);
    }

    /// A word of this number of kilobytes.
    #[divan::bench(args = [1, 10, 100])]
    fn long_words(bencher: Bencher<'_, '_>, kilobytes: usize) {
        let word = "secret token9= ".repeat(kilobytes * 1024 / 15);
        let call = ToolCall::new("c", "bash", command(&format!("echo '{word}'")), "s");
        run(bencher, &call, true);
    }
}

/// The parsing of a call's parts and targets.
#[divan::bench(args = CALLS)]
fn subject(bencher: Bencher<'_, '_>, name: &str) {
    let world = World::new();
    let call = call(name);
    let def = world.defs.iter().find(|def| def.id == call.tool).unwrap();
    bencher.bench_local(|| black_box(subject_of(black_box(&call), def, &world.places).paths.len()));
}

/// The permission rules, with the parsing of the call.
#[divan::bench(args = CALLS)]
fn permissions(bencher: Bencher<'_, '_>, name: &str) {
    let world = World::new();
    let rules = rules(&world.defs, &world.places);
    let call = call(name);
    let def = world.defs.iter().find(|def| def.id == call.tool).unwrap();
    bencher.bench_local(|| {
        let subject = subject_of(black_box(&call), def, &world.places);
        let decision = decide(&subject, &rules, PermissionContext::default());
        assert_ne!(decision.effect, Effect::Deny);
        decision.effect
    });
}

/// The policy, with the parsing of the call.
#[divan::bench(args = CALLS)]
fn policies(bencher: Bencher<'_, '_>, name: &str) {
    let world = World::new();
    let policy = policy(&world.places);
    let call = call(name);
    let def = world.defs.iter().find(|def| def.id == call.tool).unwrap();
    bencher.bench_local(|| {
        let subject = subject_of(black_box(&call), def, &world.places);
        let decision = policy.decide(&subject, TrustLevel::Trusted);
        assert_eq!(decision.effect, PolicyEffect::Allow);
        decision.effect
    });
}
