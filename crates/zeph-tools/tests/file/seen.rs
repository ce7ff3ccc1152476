//! The read guard: files that were not read cannot be changed.

use serde_json::{Value, json};
use zeph_tools::executor::ToolExecutor as _;
use zeph_tools::{CallContext, ToolCall, ToolErrorCategory as Category};

use crate::world::{SECRET, TestDir};

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "f", "old_string": old, "new_string": new})
}

async fn refused(world: &TestDir, tool: &str, params: Value) -> String {
    let (category, text) = world.fail(tool, params).await;
    assert_eq!(category, Category::InvalidParameters, "{text}");
    text
}

/// Proves FILE-23: a file that was never read, for both tools; reading a part of the file suffices.
#[tokio::test]
async fn unread_file_is_not_changed() {
    let world = TestDir::seeing();
    world.put("f", "one\ntwo\n");
    let text = refused(&world, "edit", edit("one", "1")).await;
    assert!(
        text.contains("f was not read in this conversation"),
        "{text}"
    );
    assert!(text.contains("`read` it first"), "{text}");
    // The guard precedes all other checks.
    let text = refused(&world, "edit", edit("nowhere", "1")).await;
    assert!(text.contains("was not read"), "{text}");
    let text = refused(&world, "write", json!({"path": "f", "content": "x"})).await;
    assert!(text.contains("was not read"), "{text}");
    // Other tools do not count as a read.
    world.text("grep", json!({"pattern": "one"})).await;
    refused(&world, "edit", edit("one", "1")).await;
    assert_eq!(world.bytes("f"), b"one\ntwo\n");
    // A read past the end does not count.
    world.fail("read", json!({"path": "f", "offset": 9})).await;
    refused(&world, "edit", edit("one", "1")).await;

    world
        .text("read", json!({"path": "f", "offset": 2, "limit": 1}))
        .await;
    world.text("edit", edit("one", "1")).await;
    world.text("edit", edit("two", "2")).await;
    world
        .text("write", json!({"path": "f", "content": "x\n"}))
        .await;
    world.text("edit", edit("x", "y")).await;
    assert_eq!(world.bytes("f"), b"y\n");
    // An empty file can be read too.
    world.put("f", "");
    world.text("read", json!({"path": "f"})).await;
    world.text("edit", edit("", "z")).await;
    assert_eq!(world.bytes("f"), b"z");
}

/// Proves FILE-23: a conversation knows the files that it created; another one does not.
#[tokio::test]
async fn created_file_is_known_only_to_its_conversation() {
    let world = TestDir::seeing();
    world
        .text("write", json!({"path": "f", "content": "one\n"}))
        .await;
    let call = ToolCall::new("1", "edit", edit("one", "1"), "another");
    let cx = CallContext::headless();
    let result = world.tools.execute_tool_call(&call, &cx).await;
    let error = result.expect_err("unread").to_string();
    assert!(error.contains("was not read"), "{error}");
    world.text("edit", edit("one", "1")).await;
}

/// Proves FILE-23: the refusal contains the difference, which is sufficient as a read.
#[tokio::test]
async fn file_changed_since_the_read_is_refused_with_the_difference() {
    let world = TestDir::seeing();
    world.put("f", "one\ntwo\nthree\n");
    world.text("read", json!({"path": "f"})).await;
    world.put("f", "one\n2\nthree\n");
    let text = refused(&world, "edit", edit("nowhere", "x")).await;
    assert!(text.contains("after this conversation read it"), "{text}");
    assert!(text.contains("-two\n+2\n"), "{text}");
    assert_eq!(world.bytes("f"), b"one\n2\nthree\n");
    world.text("edit", edit("2", "zwei")).await;
    world.put("f", "mine\n");
    let text = refused(&world, "write", json!({"path": "f", "content": "x\n"})).await;
    assert!(text.contains("-zwei\n-three\n+mine\n"), "{text}");
    world
        .text("write", json!({"path": "f", "content": "x\n"}))
        .await;
    assert_eq!(world.bytes("f"), b"x\n");
}

/// Proves FILE-23: contents are compared, not times.
#[tokio::test]
async fn touch_is_not_stale_and_restored_mtime_is() {
    let world = TestDir::seeing();
    let path = world.put("f", "one\n");
    world.text("read", json!({"path": "f"})).await;
    let time = std::fs::metadata(&path)
        .and_then(|stat| stat.modified())
        .expect("a time");
    let set = |time| {
        let file = std::fs::File::options()
            .write(true)
            .open(&path)
            .expect("a file");
        file.set_modified(time).expect("a time");
    };
    set(time + std::time::Duration::from_secs(60));
    world.text("edit", edit("one", "two")).await;
    // Another file with the same content is accepted.
    std::fs::remove_file(&path).expect("removed");
    world.put("f", "two\n");
    world.text("edit", edit("two", "one")).await;
    let time = std::fs::metadata(&path)
        .and_then(|stat| stat.modified())
        .expect("a time");
    std::fs::write(&path, "two\n").expect("written");
    set(time);
    let text = refused(&world, "edit", edit("two", "x")).await;
    assert!(text.contains("-one\n+two\n"), "{text}");
}

/// Proves FILE-23: reading through a link marks its target.
#[tokio::test]
async fn file_is_identified_by_its_real_path() {
    let world = TestDir::seeing();
    world.put("d/f", "one\n");
    world.link("d", "e");
    world.link("d/f", "l");
    world.text("read", json!({"path": "l"})).await;
    let params = json!({"path": "e/f", "old_string": "one", "new_string": "two"});
    world.text("edit", params).await;
    assert_eq!(world.bytes("d/f"), b"two\n");
}

/// Proves FILE-23: the record follows the file.
#[tokio::test]
async fn read_record_follows_moves_and_copies_and_ends_at_deletion() {
    let world = TestDir::seeing();
    world.put("d/f", "one\n");
    world.put("d/unread", "one\n");
    world.text("read", json!({"path": "d/f"})).await;
    world
        .text("move_path", json!({"source": "d", "destination": "e"}))
        .await;
    world
        .text("copy_path", json!({"source": "e/f", "destination": "f"}))
        .await;
    let change = |path: &str| json!({"path": path, "old_string": "one", "new_string": "1"});
    refused(&world, "edit", change("e/unread")).await;
    world.text("edit", change("e/f")).await;
    world.text("edit", change("f")).await;
    world.text("delete_path", json!({"path": "f"})).await;
    world.put("f", "1\n");
    let text = refused(&world, "write", json!({"path": "f", "content": ""})).await;
    assert!(text.contains("was not read"), "{text}");
}

/// Proves FILE-23: a difference that cannot be shown requires a read, and unreadable content is reported.
#[tokio::test]
async fn difference_is_bounded_and_text_only() {
    let world = TestDir::seeing();
    let see = async |content: &[u8]| {
        world.put("f", content);
        world.text("read", json!({"path": "f"})).await;
    };
    let long: String = (0..9000).map(|n| format!("line {n}\n")).collect();
    see(b"short\n").await;
    world.put("f", &long);
    for _ in 0..2 {
        let text = refused(&world, "edit", edit("line 7\n", "x\n")).await;
        assert!(
            text.contains("changed f after") && text.contains("`read` it first"),
            "{text}"
        );
        assert!(text.len() < 2000, "{}", text.len());
    }
    world.text("read", json!({"path": "f"})).await;
    world.text("edit", edit("line 7\n", "x\n")).await;

    // Latin-1 and UTF-16, as decoded by `read`.
    see(b"caf\xe9\none\n").await;
    world.put("f", b"caf\xe9\ntwo\n");
    let text = refused(&world, "edit", edit("two", "x")).await;
    assert!(text.contains(" caf\u{FFFD}\n-one\n+two\n"), "{text}");
    see(b"caf\xe9\n").await;
    world.put("f", b"caf\xe8\n");
    let text = refused(&world, "edit", edit("caf", "x")).await;
    assert!(text.contains("bytes that are not text"), "{text}");
    world.text("edit", edit("caf", "x")).await;
    let utf16 = |text: &str| -> Vec<u8> {
        let units = [0xfeff].into_iter().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    see(&utf16("one\n")).await;
    world.put("f", utf16("two\n"));
    let text = refused(&world, "edit", edit("two", "x")).await;
    assert!(text.contains("-one\n+two\n"), "{text}");

    see(b"one\n").await;
    world.put("f", b"\x7fELF\0\0");
    let write = json!({"path": "f", "content": "x"});
    let text = refused(&world, "write", write.clone()).await;
    assert!(
        text.contains("binary (an ELF program") && text.contains("delete it"),
        "{text}"
    );
    world.text("delete_path", json!({"path": "f"})).await;
    world.text("write", write).await;
}

/// Proves FILE-23: also if the content is not stored, or is too long for a difference.
#[tokio::test]
async fn long_files_are_compared() {
    let world = TestDir::seeing();
    let long = "line\n".repeat(300_000);
    let path = world.put("f", &long);
    world.text("read", json!({"path": "f", "limit": 1})).await;
    let write = json!({"path": "f", "content": "x\n"});
    let changed = long.replacen("line", "LINE", 1);
    std::fs::write(&path, changed).expect("written");
    let text = refused(&world, "write", write.clone()).await;
    assert!(text.contains("after this conversation read it"), "{text}");
    std::fs::write(&path, &long).expect("written");
    world.text("write", write).await;
    world.text("edit", edit("x", "y")).await;
}

/// Proves FILE-23: concurrent edits of one conversation all succeed and lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_edits_lose_nothing_and_track_each_other() {
    let world = TestDir::seeing();
    let slots: String = (0..60).map(|slot| format!("open {slot};\n")).collect();
    world.put("f", slots);
    world.text("read", json!({"path": "f"})).await;
    let world = std::sync::Arc::new(world);
    let mut calls = tokio::task::JoinSet::new();
    for slot in 0..60 {
        let world = std::sync::Arc::clone(&world);
        calls.spawn(async move {
            world
                .text(
                    "edit",
                    edit(&format!("open {slot};"), &format!("done {slot};")),
                )
                .await;
            world.text("read", json!({"path": "f", "limit": 1})).await;
        });
    }
    while let Some(call) = calls.join_next().await {
        call.expect("no panic");
    }
    let text = String::from_utf8(world.bytes("f")).expect("UTF-8");
    assert_eq!(text.matches("done").count(), 60, "{text}");
}

/// Proves FILE-4 for the difference: a file that was denied since the read is not shown.
#[tokio::test]
async fn difference_never_shows_a_denied_file() {
    use zeph_tools::file::{FileExecutor, ReadRules, Sandbox};
    use zeph_tools::{InMemoryReadLedger, ReadLedger};
    let mut world = TestDir::new();
    let seen: std::sync::Arc<dyn ReadLedger> = std::sync::Arc::new(InMemoryReadLedger::default());
    world.put("f", format!("{SECRET} 1\n"));
    let tools = |deny: &[String]| {
        let rules = ReadRules::new(deny, &[], None).expect("globs");
        let sandbox = Sandbox::new(&[], &world.root).expect("a sandbox");
        let sandbox = sandbox
            .with_rules(rules)
            .with_seen(Some(std::sync::Arc::clone(&seen)));
        FileExecutor::new(std::sync::Arc::new(sandbox))
    };
    let (open, denied) = (tools(&[]), tools(&["**/f".to_owned()]));
    world.tools = open;
    world.text("read", json!({"path": "f"})).await;
    world.put("f", format!("{SECRET} 2\n"));
    world.tools = denied;
    for (tool, params) in [
        ("edit", edit("x", "y")),
        ("write", json!({"path": "f", "content": "x"})),
    ] {
        let (category, text) = world.fail(tool, params).await;
        assert_eq!(category, Category::PolicyBlocked, "{text}");
        assert!(!text.contains(SECRET), "{text}");
    }
}
