//! Path checks that all file tools share.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use zeph_tools::ToolErrorCategory as Category;
use zeph_tools::file::Sandbox;

use crate::world::{SECRET, TestDir, fifo};

/// A call of every tool on `path`.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "x"})),
        (
            "edit",
            json!({"path": path, "old_string": "the", "new_string": "x"}),
        ),
        ("grep", json!({"path": path, "pattern": "."})),
        ("find_path", json!({"path": path, "pattern": "**"})),
        ("list_directory", json!({"path": path})),
        ("get_file_tree", json!({"path": path})),
        ("create_directory", json!({"path": path})),
    ]
}

/// A call on `path` of every tool that works on the entry itself, not on its target.
fn entry_calls(path: &str) -> Vec<(&'static str, Value)> {
    let ends =
        |source: &str, destination: &str| json!({"source": source, "destination": destination});
    vec![
        ("copy_path", ends(path, "copied")),
        ("copy_path", ends("f", path)),
        ("move_path", ends("f", path)),
        ("move_path", ends(path, "moved")),
        ("delete_path", json!({"path": path})),
    ]
}

/// Proves FILE-1, FILE-2, FILE-5.
#[tokio::test]
async fn outside_path_is_refused_by_every_tool_with_the_roots() {
    let world = TestDir::new();
    let outside = world.outside.display().to_string();
    world.put("sub/f", "x");
    world.link(&world.outside, "out");
    world.link("../outside", "out-relative");
    world.link(world.outside.join("secret.txt"), "out-file");
    world.link("out/secret.txt", "chain");
    world.link(world.outside.join("new.txt"), "dangling");
    for path in [
        "/etc/passwd",
        "/",
        "..",
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "out",
        "out/secret.txt",
        "out-relative/secret.txt",
        "out-file",
        "chain",
        "dangling",
        "out/new/deep/file",
        "/proc/self/root/etc/passwd",
        &format!("{outside}/secret.txt"),
        &format!("{outside}/missing"),
    ] {
        for (tool, params) in calls(path) {
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, Category::PolicyBlocked, "{tool} {path}: {text}");
            assert!(text.contains(&world.root.display().to_string()), "{text}");
            assert!(!text.contains(SECRET), "{text}");
        }
    }
    world.put("f", "x");
    for path in [
        "/etc/passwd",
        "/",
        "..",
        "../outside/secret.txt",
        "out/secret.txt",
        "out-relative/secret.txt",
        "out/new/deep/file",
        &format!("{outside}/secret.txt"),
        &format!("{outside}/missing"),
    ] {
        for (tool, params) in entry_calls(path) {
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, Category::PolicyBlocked, "{tool} {path}: {text}");
            assert!(text.contains(&world.root.display().to_string()), "{text}");
        }
    }
    assert_eq!(world.bytes("f"), b"x");
    world.assert_outside_untouched();
}

/// Proves FILE-2.
#[tokio::test]
async fn invalid_path_is_refused() {
    let world = TestDir::new();
    world.put("f", "x");
    for path in ["", "a\0b", &"x/".repeat(4000)] {
        for (tool, params) in calls(path).into_iter().chain(entry_calls(path)) {
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, Category::InvalidParameters, "{tool}: {text}");
        }
    }
    for path in ["missing/../f", "missing/../../outside/secret.txt"] {
        for (tool, params) in calls(path).into_iter().chain(entry_calls(path)) {
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, Category::PolicyBlocked, "{tool}: {text}");
        }
    }
}

/// Proves FILE-1, FILE-2.
#[tokio::test]
async fn links_that_stay_inside_work() {
    let world = TestDir::with_roots(&["a", "b"]);
    world.put("a/deep/f", "in a");
    world.put("b/f", "in b");
    world.link(world.root.join("b/f"), "a/absolute");
    world.link("../b", "a/relative");
    world.link("deep", "a/dir");
    world.link("dir/f", "a/chain");
    std::os::unix::fs::symlink(world.root.join("a"), world.dir.path().join("outer"))
        .expect("a link");
    let outer = world.dir.path().join("outer/deep/f").display().to_string();
    for (path, expect) in [
        ("a/absolute", "in b"),
        ("a/relative/f", "in b"),
        ("a/dir/f", "in a"),
        ("a/chain", "in a"),
        ("a/dir/../deep/f", "in a"),
        ("a/relative/../a/deep/f", "in a"),
        ("a//./deep///f", "in a"),
        (outer.as_str(), "in a"),
    ] {
        let text = world.text("read", json!({"path": path})).await;
        assert!(text.contains(expect), "{path}: {text}");
    }
    // The parent of the allowed directories must not be accessible.
    let (category, _) = world.fail("list_directory", json!({"path": "."})).await;
    assert_eq!(category, Category::PolicyBlocked);
}

#[tokio::test]
async fn loop_of_links_is_an_error() {
    let world = TestDir::new();
    world.link("two", "one");
    world.link("one", "two");
    for (tool, params) in calls("one") {
        let (category, _) = world.fail(tool, params).await;
        assert_eq!(category, Category::PermanentFailure, "{tool}");
    }
}

/// Proves FILE-6.
#[tokio::test]
async fn devices_and_fifos_are_refused_without_blocking() {
    let world = TestDir::with_roots(&[".", "/dev"]);
    fifo(&world.root.join("fifo"));
    let _socket = std::os::unix::net::UnixListener::bind(world.root.join("socket"));
    for path in ["/dev/zero", "/dev/null", "fifo", "socket"] {
        for tool in ["read", "grep", "write", "edit"] {
            let (_, params) = calls(path)
                .into_iter()
                .find(|(name, _)| *name == tool)
                .expect("a tool");
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, Category::PolicyBlocked, "{tool} {path}: {text}");
        }
        let copy = json!({"source": path, "destination": "copied"});
        let (category, text) = world.fail("copy_path", copy).await;
        assert_eq!(
            category,
            Category::PolicyBlocked,
            "copy_path {path}: {text}"
        );
        assert!(!world.root.join("copied").exists());
    }
    // FIFOs that a tool meets on its way: as an ignore file, and among the files of a tree.
    fifo(&world.root.join(".gitignore"));
    world.put("f", "found");
    let text = world.text("grep", json!({"pattern": "found"})).await;
    assert_eq!(text, "f:1:found");
}

#[test]
fn missing_directory_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = Sandbox::new(&[PathBuf::from("gone")], dir.path()).expect_err("no directory");
    assert!(error.to_string().contains("gone"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Proves FILE-2.
    #[test]
    fn no_path_escapes(
        parts in proptest::collection::vec(
            prop_oneof![
                Just(".."), Just("."), Just(""), Just("a"), Just("b"), Just("f"), Just("missing"),
                Just("in"), Just("up"), Just("out"), Just("out-file"), Just("outside"),
                Just("root"), Just("secret.txt"), Just("a\0b"), Just("…"),
            ],
            0..9,
        ),
        absolute: bool,
    ) {
        let world = TestDir::new();
        world.put("a/b/f", "inside");
        world.link("a/b", "in");
        world.link("..", "a/up");
        world.link(&world.outside, "a/out");
        world.link(world.outside.join("secret.txt"), "a/b/out-file");
        let path = if absolute {
            format!("{}/{}", world.root.display(), parts.join("/"))
        } else {
            parts.join("/")
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            for (tool, params) in calls(&path).into_iter().chain(entry_calls(&path)) {
                let text = match world.call(tool, params).await {
                    Ok(output) => format!("{} {}", output.summary, output.display()),
                    Err(error) => zeph_tools::format_for_llm(&error),
                };
                assert!(!text.contains(SECRET), "{tool} {path}: {text}");
            }
        });
        world.assert_outside_untouched();
    }
}

/// Two concurrent calls on one file lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_edits_lose_nothing() {
    let world = Arc::new(TestDir::new());
    let lines: String = (0..40).map(|line| format!("<{line}>\n")).collect();
    world.put("f", &lines);
    let edits: Vec<_> = (0..40)
        .map(|line| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let params = json!({
                    "path": if line % 2 == 0 { "f" } else { "./f" },
                    "old_string": format!("<{line}>"),
                    "new_string": format!("[{line}]"),
                });
                world.text("edit", params).await
            })
        })
        .collect();
    for edit in edits {
        edit.await.expect("an edit");
    }
    let expect = lines.replace('<', "[").replace('>', "]");
    assert_eq!(String::from_utf8(world.bytes("f")).expect("UTF-8"), expect);
}

#[tokio::test]
async fn own_database_is_inaccessible_at_any_path() {
    let mut world = TestDir::new();
    for name in ["zeph.db", "zeph.db-wal", "zeph.db-locks/1", "zeph.dbx"] {
        world.put(name, "found");
    }
    world.link("zeph.db", "alias");
    let sandbox = Sandbox::new(&[], &world.root).expect("a sandbox");
    let sandbox = sandbox
        .reserving(&world.root.join("zeph.db"))
        .expect("a database");
    world.tools = zeph_tools::file::FileExecutor::new(Arc::new(sandbox));
    for name in ["zeph.db", "zeph.db-wal", "zeph.db-locks/1", "alias"] {
        let (category, text) = world.fail("read", json!({"path": name})).await;
        assert_eq!(category, Category::PolicyBlocked, "{text}");
        let write = json!({"path": name, "content": "x"});
        let (category, _) = world.fail("write", write).await;
        assert_eq!(category, Category::PolicyBlocked);
    }
    let text = world.text("grep", json!({"pattern": "found"})).await;
    assert_eq!(text, "zeph.dbx:1:found");
    // It cannot be copied or moved with the directory that contains it either.
    world.put("data/own.db", "found");
    let sandbox = Sandbox::new(&[], &world.root).expect("a sandbox");
    let sandbox = sandbox.reserving(&world.root.join("data/own.db"));
    world.tools = zeph_tools::file::FileExecutor::new(Arc::new(sandbox.expect("a database")));
    for path in ["data", "data/own.db"] {
        for (tool, params) in entry_calls(path) {
            if params["source"] != "f" {
                let (category, text) = world.fail(tool, params).await;
                assert_eq!(category, Category::PolicyBlocked, "{text}");
                assert!(text.contains("database of Zeph"), "{text}");
            }
        }
    }
    assert_eq!(world.bytes("data/own.db"), b"found");
}
