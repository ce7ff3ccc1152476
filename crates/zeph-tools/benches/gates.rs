//! How long it takes to decide about a call: `cargo bench -p zeph-tools --bench gates`.
//!
//! With fifty rules a decision is to take less than 20 µs for a typical call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use divan::{Bencher, black_box};
use serde_json::{Value, json};
use zeph_tools::ToolCall;
use zeph_tools::gate::rule::Place;
use zeph_tools::gate::{
    Action, Circumstances, Effect, PermissionRule, Places, Rule, RuleOrigin, RuleSet, ToolRules,
    decide, subject_of,
};
use zeph_tools::{ToolDef, ToolExecutor as _};

fn main() {
    divan::main();
}

/// Fifty rules for each tool, of which the last one matches everything.
fn rules(defs: &[ToolDef], places: &Places) -> RuleSet {
    let mut tools = BTreeMap::new();
    for def in defs {
        let list = (0..50).map(|n| {
            let pattern = match (def.id.as_ref(), n) {
                (_, 49) => "*".to_owned(),
                ("bash", n) if n % 3 == 0 => format!("tool{n} * --flag{n} *"),
                ("bash", n) if n % 3 == 1 => format!("*secret{n}*"),
                ("bash", n) => format!("tool{n} run *"),
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
            let origin = RuleOrigin {
                key: format!("tools.permissions.{}[{n}]", def.id),
                place: Place::Said("here".to_owned()),
            };
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

fn bench(bencher: Bencher<'_, '_>, tool: &str, params: Value, with_rules: bool) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("crates/some/src")).unwrap();
    std::fs::write(dir.path().join("crates/some/src/lib.rs"), "").unwrap();
    let sandbox = zeph_tools::file::Sandbox::new(&[], dir.path()).unwrap();
    let mut defs = zeph_tools::file::file_tools(std::sync::Arc::new(sandbox)).tool_definitions();
    defs.push(zeph_tools::shell::bash::definition());
    let places = Places::new(dir.path(), None, &[]);
    let rules = match with_rules {
        true => rules(&defs, &places),
        false => RuleSet::default(),
    };
    let def = defs.iter().find(|def| def.id == tool).unwrap();
    let call = ToolCall::new("c", tool, params, "s");
    bencher.bench(|| {
        let subject = subject_of(black_box(&call), def, &places);
        let decision = decide(&subject, &rules, Circumstances::default());
        assert_ne!(decision.effect, Effect::Deny);
        decision.effect
    });
}

/// Without rules nothing is asked of the disk.
#[divan::bench]
fn read_without_rules(bencher: Bencher<'_, '_>) {
    bench(
        bencher,
        "read",
        json!({ "path": "crates/some/src/lib.rs" }),
        false,
    );
}

#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    bench(
        bencher,
        "read",
        json!({ "path": "crates/some/src/lib.rs" }),
        true,
    );
}

#[divan::bench]
fn edit(bencher: Bencher<'_, '_>) {
    let text = "let x = 1;\n".repeat(200);
    let params =
        json!({ "path": "crates/some/src/lib.rs", "old_string": text, "new_string": text });
    bench(bencher, "edit", params, true);
}

#[divan::bench]
fn bash(bencher: Bencher<'_, '_>) {
    bench(
        bencher,
        "bash",
        json!({ "command": "cargo test --workspace" }),
        true,
    );
}

#[divan::bench]
fn bash_of_many_parts(bencher: Bencher<'_, '_>) {
    let command = "cd src && for f in a b c; do grep -n 'x y' $f | head -5; done; git log --oneline | tail -3 2>/dev/null";
    bench(bencher, "bash", json!({ "command": command }), true);
}
