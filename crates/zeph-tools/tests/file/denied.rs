//! `deny_read` and `allow_read`: no tool reveals a denied file.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use zeph_tools::file::{FileExecutor, ReadRules, Sandbox};
use zeph_tools::{ToolErrorCategory as Category, format_for_llm};

use crate::world::{SECRET, TestDir};

/// A sandbox with secrets in `vault/`, `.env` and `src/key.pem`, and the rules that `of` derives from its
/// root.
fn world(of: impl Fn(&str) -> (Vec<String>, Vec<String>)) -> TestDir {
    let mut world = TestDir::new();
    world.put("vault/deep/f", SECRET);
    world.put("conf/app.env", SECRET);
    world.put("src/key.pem", SECRET);
    world.put("src/lib.rs", "open\n");
    world.link("vault/deep/f", "link");
    world.link("../vault", "src/vault");
    let (deny, allow) = of(&world.root.display().to_string());
    let rules = ReadRules::new(&deny, &allow, Some(Path::new("/home"))).expect("globs");
    let sandbox = Sandbox::new(&[], &world.root).expect("a sandbox");
    world.tools = FileExecutor::new(Arc::new(sandbox.with_rules(rules).with_seen(None)));
    world
}

fn denying() -> TestDir {
    world(|root| {
        let deny = [
            format!("{root}/vault"),
            "**/*.env".to_owned(),
            format!("{root}/src/*.pem"),
        ];
        (deny.to_vec(), Vec::new())
    })
}

/// The calls that would show the content at `path`, or change it after a read.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let ends = json!({"source": path, "destination": "taken"});
    vec![
        ("read", json!({"path": path})),
        (
            "edit",
            json!({"path": path, "old_string": "the", "new_string": "x"}),
        ),
        (
            "edit",
            json!({"path": path, "old_string": "the-secret-outsid", "new_string": ""}),
        ),
        ("write", json!({"path": path, "content": "x"})),
        ("grep", json!({"path": path, "pattern": "."})),
        ("copy_path", ends.clone()),
        ("move_path", ends),
    ]
}

/// Proves FILE-4: the refusal is `policy_blocked`, names the rule, and reveals nothing about the file.
#[tokio::test]
async fn denied_file_is_refused_by_every_tool() {
    let world = denying();
    for (path, rule) in [
        ("vault/deep/f", "/vault\""),
        ("conf/app.env", "**/*.env"),
        ("src/key.pem", "/src/*.pem\""),
        ("src/../src/key.pem", "/src/*.pem\""),
        ("src/vault/deep/f", "/vault\""),
        ("vault/missing", "/vault\""),
    ] {
        for (tool, params) in calls(path) {
            if path.ends_with("missing") && tool == "write" {
                continue;
            }
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, Category::PolicyBlocked, "{tool} {path}: {text}");
            assert!(text.contains("deny_read") && text.contains(rule), "{text}");
            assert!(!text.contains(SECRET), "{tool} {path}: {text}");
            assert!(text.contains("retryable: false"), "{text}");
        }
    }
    // A link itself has no content; the rule applies to its target.
    for (tool, params) in &calls("link")[..5] {
        let (category, _) = world.fail(tool, params.clone()).await;
        assert_eq!(category, Category::PolicyBlocked, "{tool}");
    }
    for path in ["vault", "vault/deep", "src/vault"] {
        for (tool, params) in [
            ("list_directory", json!({"path": path})),
            ("find_path", json!({"path": path, "pattern": "**"})),
            ("get_file_tree", json!({"path": path})),
            ("grep", json!({"path": path, "pattern": "."})),
        ] {
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, Category::PolicyBlocked, "{tool} {path}: {text}");
        }
    }
    assert_eq!(world.bytes("vault/deep/f"), SECRET.as_bytes());
    assert_eq!(world.bytes("src/key.pem"), SECRET.as_bytes());
    assert!(!world.root.join("taken").exists());
}

/// Proves FILE-4 for searches, and for trees with denied entries.
#[tokio::test]
async fn searches_omit_denied_files() {
    let world = denying();
    world.link("../lib.rs", "src/lost");
    let text = world.text("grep", json!({"pattern": "."})).await;
    assert_eq!(text, "src/lib.rs:1:open");
    let text = world.text("grep", json!({"pattern": "secret"})).await;
    assert!(text.contains("3 denied by rules"), "{text}");
    for (tool, params) in [
        ("find_path", json!({"path": ".", "pattern": "**"})),
        ("get_file_tree", json!({})),
        ("list_directory", json!({"path": "."})),
        ("list_directory", json!({"path": "src"})),
        ("list_directory", json!({"path": "conf"})),
    ] {
        let text = world.text(tool, params).await;
        for name in ["[dir] vault", "vault/\n", "vault/\"", "app.env", "key.pem"] {
            assert!(!text.contains(name), "{tool}: {text}");
        }
    }
    let text = world.text("list_directory", json!({"path": "conf"})).await;
    assert!(text.contains("1 entry omitted"), "{text}");
    // Suggested names reveal nothing either.
    let (_, text) = world.fail("read", json!({"path": "src/key.pe"})).await;
    assert!(!text.contains("key.pem"), "{text}");
    for tool in ["copy_path", "move_path"] {
        for source in ["src", "conf"] {
            let ends = json!({"source": source, "destination": "taken"});
            let (category, text) = world.fail(tool, ends).await;
            assert_eq!(category, Category::PolicyBlocked, "{tool}: {text}");
            assert!(text.contains("deny_read"), "{text}");
        }
    }
    assert!(!world.root.join("taken").exists());
    world.assert_no_leftovers(".");
    // A new file may be written, because nothing can be read from it.
    let text = world
        .text("write", json!({"path": "new.env", "content": "A=1\n"}))
        .await;
    assert!(text.starts_with("Created"), "{text}");
    let (category, _) = world
        .fail("write", json!({"path": "new.env", "content": "A=2\n"}))
        .await;
    assert_eq!(category, Category::PolicyBlocked);
}

/// Proves FILE-4: with `allow_read`, paths that do not match are refused; deny rules have priority.
#[tokio::test]
async fn path_outside_the_allow_list_is_refused() {
    let world = world(|root| {
        (
            vec!["**/*.pem".to_owned()],
            vec![format!("{root}/src/**"), format!("{root}/conf/*")],
        )
    });
    let text = world.text("read", json!({"path": "src/lib.rs"})).await;
    assert_eq!(text, "     1\topen");
    for path in ["vault/deep/f", "src/key.pem", "src/vault/deep/f", "link"] {
        for tool in ["read", "edit", "write", "grep"] {
            let (_, params) = calls(path)
                .into_iter()
                .find(|(name, _)| *name == tool)
                .expect("a call");
            match world.call(tool, params).await {
                Ok(output) => panic!("{tool} {path}: {}", output.summary),
                Err(error) => {
                    let text = format_for_llm(&error);
                    assert_eq!(error.category(), Category::PolicyBlocked, "{text}");
                    let rule = if path.ends_with(".pem") {
                        "deny_read"
                    } else {
                        "allow_read"
                    };
                    assert!(text.contains(rule), "{text}");
                }
            }
        }
    }
    // A search starts above the allowed paths and shows only these.
    let text = world.text("grep", json!({"pattern": "."})).await;
    assert_eq!(text, format!("conf/app.env:1:{SECRET}\nsrc/lib.rs:1:open"));
    let text = world.text("get_file_tree", json!({})).await;
    assert_eq!(text, r#"["conf/app.env","src/","src/lib.rs","src/vault"]"#);
    let (category, _) = world.fail("list_directory", json!({"path": "."})).await;
    assert_eq!(category, Category::PolicyBlocked);
}
