//! `write` and `edit`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::json;
use zeph_tools::executor::ToolExecutor as _;
use zeph_tools::file::{FileExecutor, Sandbox};
use zeph_tools::{CallContext, ToolCall, ToolErrorCategory as Category};

use crate::world::TestDir;

/// Proves FILE-20 and FILE-24 for `write`.
#[tokio::test]
async fn write_creates_and_overwrites() {
    let world = TestDir::new();
    let output = world
        .call(
            "write",
            json!({"path": "new/deep/f.txt", "content": "one\ntwo\n"}),
        )
        .await
        .expect("written");
    assert_eq!(
        output.summary,
        "Created new/deep/f.txt (2 lines, 8 bytes).\n     1\tone\n     2\ttwo"
    );
    assert_eq!(output.locations[0].path, world.root.join("new/deep/f.txt"));
    assert_eq!(world.bytes("new/deep/f.txt"), b"one\ntwo\n");
    let output = world
        .call(
            "write",
            json!({"path": "new/deep/f.txt", "content": "one\n2\n"}),
        )
        .await
        .expect("written");
    assert_eq!(
        output.summary,
        "Overwrote new/deep/f.txt (2 lines, 6 bytes).\n     1\tone\n     2\t2"
    );
    assert_eq!(
        output.display(),
        "--- a/new/deep/f.txt\n+++ b/new/deep/f.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    let text = world
        .text(
            "write",
            json!({"path": "new/deep/f.txt", "content": "one\n2\n"}),
        )
        .await;
    assert_eq!(
        text,
        "new/deep/f.txt had this content already (2 lines, 6 bytes)."
    );
    let text = world
        .text("write", json!({"path": "empty", "content": ""}))
        .await;
    assert_eq!(text, "Created empty (0 lines, 0 bytes).");
    world.assert_no_leftovers("new/deep");
}

/// Proves FILE-20 in part: mode and link survive.
#[tokio::test]
async fn mode_owner_and_link_are_preserved() {
    let world = TestDir::new();
    let path = world.put("script", "#!/bin/sh\necho 1\n");
    for mode in [0o755, 0o600, 0o640, 0o444 | 0o200] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
        let before = std::fs::metadata(&path).expect("metadata");
        let number = format!("echo {mode}");
        let old = world.bytes("script");
        let old = String::from_utf8(old).expect("UTF-8");
        let line = old.lines().nth(1).expect("a line").to_owned();
        world
            .text(
                "edit",
                json!({"path": "script", "old_string": line, "new_string": number}),
            )
            .await;
        let after = std::fs::metadata(&path).expect("metadata");
        assert_eq!(after.mode(), before.mode());
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_ne!(after.ino(), before.ino(), "replaced, not written into");
    }
    world.link("script", "link");
    world
        .text("write", json!({"path": "link", "content": "new"}))
        .await;
    assert!(
        std::fs::symlink_metadata(world.root.join("link"))
            .expect("a link")
            .is_symlink()
    );
    assert_eq!(world.bytes("script"), b"new");
    // A link to a missing target inside the sandbox.
    world.link("later/f", "dangling");
    world
        .text("write", json!({"path": "dangling", "content": "made"}))
        .await;
    assert_eq!(world.bytes("later/f"), b"made");
}

/// Proves FILE-20 in part: a write that fails leaves the old content and nothing else.
#[tokio::test]
async fn failed_write_changes_nothing() {
    let world = TestDir::new();
    world.put("dir/f", "old");
    world.put("file", "old");
    for path in ["dir", ".", "file/below"] {
        let (category, text) = world
            .fail("write", json!({"path": path, "content": "x"}))
            .await;
        assert_eq!(category, Category::PermanentFailure, "{path}: {text}");
    }
    assert_eq!(world.bytes("dir/f"), b"old");
    assert_eq!(world.bytes("file"), b"old");
    world.assert_no_leftovers(".");
}

/// Proves FILE-20 in part: a reader sees the old content or the new, never a mix.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reader_never_sees_mixed_content() {
    let world = TestDir::new();
    let content = |byte: &str| byte.repeat(300_000);
    let path = world.put("f", content("a"));
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let reader = std::thread::spawn({
        let stop = std::sync::Arc::clone(&stop);
        move || {
            let mut seen = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) || seen == 0 {
                let bytes = std::fs::read(&path).expect("always there");
                assert_eq!(bytes.len(), 300_000);
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a mix");
                seen += 1;
            }
            seen
        }
    });
    for round in 0..40 {
        let byte = if round % 2 == 0 { "b" } else { "a" };
        world
            .text("write", json!({"path": "f", "content": content(byte)}))
            .await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(reader.join().expect("no mix was seen") > 0);
}

#[tokio::test]
async fn missing_directory_is_an_error() {
    let world = TestDir::new();
    world.put("gone/f", "x");
    std::fs::remove_dir_all(world.root.join("gone")).expect("removed");
    let (category, _) = world
        .fail(
            "edit",
            json!({"path": "gone/f", "old_string": "x", "new_string": "y"}),
        )
        .await;
    assert_eq!(category, Category::PermanentFailure);
}

/// Proves FILE-21, ERR-6 for edits, and FILE-24 for `edit`.
#[tokio::test]
async fn edit_replaces_exactly_one_place() {
    let world = TestDir::new();
    world.put(
        "f.rs",
        "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    one();\n}\n",
    );
    let edit = |old: &str, new: &str| json!({"path": "f.rs", "old_string": old, "new_string": new});
    let output = world
        .call("edit", edit("two()", "2()"))
        .await
        .expect("edited");
    assert_eq!(
        output.summary,
        "Edited f.rs (1 replacement, line 3).\n     1\tfn a() {\n     2\t    one();\n     3\t    2();\n     4\t}\n     5\t\n     6\tfn b() {"
    );
    assert!(
        output.display().contains("-    two();\n+    2();\n"),
        "{}",
        output.display()
    );
    assert_eq!(output.locations[0].line, Some(3));

    let (category, text) = world.fail("edit", edit("one()", "1()")).await;
    assert_eq!(category, Category::InvalidParameters);
    assert!(
        text.contains("lines 2, 7") && text.contains("`replace_all`"),
        "{text}"
    );

    let (category, text) = world
        .fail("edit", edit("    one();\n    too();\n}", "x"))
        .await;
    assert_eq!(category, Category::InvalidParameters);
    assert!(
        text.contains("Closest: lines 2-4, ") && text.contains("% alike"),
        "{text}"
    );
    assert!(
        text.contains(r#"first difference at line 3: expected "    too();", found "    2();""#),
        "{text}"
    );
    assert!(text.contains("\n-    2();\n+    too();\n"), "{text}");

    let (_, text) = world.fail("edit", edit("fn b() {\n \tone();", "x")).await;
    assert!(
        text.contains("first difference (only white space) at line 7"),
        "{text}"
    );

    let (_, text) = world
        .fail("edit", edit("nothing that is alike at all", "x"))
        .await;
    assert!(text.contains("category: invalid_parameters"), "{text}");
    assert!(
        text.contains("Closest: lines") && text.contains("read the file again"),
        "{text}"
    );

    let (_, text) = world.fail("edit", edit("§§§", "x")).await;
    assert!(text.contains("nor a similar text"), "{text}");

    let (_, text) = world.fail("edit", edit("two()", "2()")).await;
    assert!(
        text.contains("already applied") && text.contains("line 3"),
        "{text}"
    );

    for (old, new) in [("one()", "one()"), ("", "x")] {
        let (category, _) = world.fail("edit", edit(old, new)).await;
        assert_eq!(category, Category::InvalidParameters);
    }
    let mut all = edit("one()", "1()");
    all["replace_all"] = json!(true);
    let text = world.text("edit", all).await;
    assert!(
        text.starts_with("Edited f.rs (2 replacements).\n"),
        "{text}"
    );
    assert_eq!(
        world.bytes("f.rs"),
        b"fn a() {\n    1();\n    2();\n}\n\nfn b() {\n    1();\n}\n"
    );
    let (_, text) = world
        .fail(
            "edit",
            json!({"path": "g.rs", "old_string": "x", "new_string": "y"}),
        )
        .await;
    assert!(text.contains("did you mean f.rs?"), "{text}");
    world.assert_no_leftovers(".");
}

/// Proves FILE-21: a miss says what went wrong in taking the text over from what `read` showed.
#[tokio::test]
async fn copy_mistake_is_named() {
    let world = TestDir::new();
    let check = async |content: &[u8], old: &str, said: &str| {
        world.put("f", content);
        let params = json!({"path": "f", "old_string": old, "new_string": "x"});
        let (category, text) = world.fail("edit", params).await;
        assert_eq!(category, Category::InvalidParameters);
        assert!(text.contains(said), "{text}");
        assert_eq!(world.bytes("f"), content);
    };
    let (numbers, ends, bytes) = (
        "begin with the line numbers",
        "the file ends there",
        "invalid UTF-8",
    );
    check(b"a\n\tb\nc\n", "     2\t\tb\n     3\tc", numbers).await;
    check(b"a\n\tb\nc\n", "1\ta\n", numbers).await;
    check(b"1\tone\n2\ttwo\n", "2\tzwei\n", "Closest: lines").await;
    check(b"a\nb\n", "b\n\n", ends).await;
    check(b"a\nb\nc\n", "b\n\n", "Closest: lines").await;
    check(b"tw\xf6\nthree\n", "tw\u{fffd}\nthree", bytes).await;
    let long = "let a = 1;\n".repeat(60_000);
    check(
        long.as_bytes(),
        "let b = 2;",
        "too long to search for similar lines",
    )
    .await;
}

/// Proves FILE-23 in part: concurrent edits of several processes lose nothing. Locks within a process do not
/// affect others, so each of these tasks has its own sandbox.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_of_several_processes_lose_nothing() {
    const EACH: usize = 25;
    let world = TestDir::new();
    let slots: String = (0..4 * EACH)
        .map(|slot| format!("open {slot};\n"))
        .collect();
    world.put("f", slots);
    let mut processes = tokio::task::JoinSet::new();
    for process in 0..4 {
        let sandbox = Sandbox::new(&[], &world.root)
            .expect("a sandbox")
            .with_seen(None);
        let tools = FileExecutor::new(std::sync::Arc::new(sandbox));
        processes.spawn(async move {
            for slot in process * EACH..(process + 1) * EACH {
                let (old, new) = (format!("open {slot};"), format!("done {slot};"));
                let params = json!({"path": "f", "old_string": old, "new_string": new});
                let call = ToolCall::new("1", "edit", params, "test");
                let cx = CallContext::headless();
                tools.execute_tool_call(&call, &cx).await.expect("edited");
            }
        });
    }
    while let Some(process) = processes.join_next().await {
        process.expect("no panic");
    }
    let expect: String = (0..4 * EACH)
        .map(|slot| format!("done {slot};\n"))
        .collect();
    assert_eq!(String::from_utf8(world.bytes("f")).expect("UTF-8"), expect);
    world.assert_no_leftovers(".");
}

#[tokio::test]
async fn report_of_a_miss_is_bounded() {
    let world = TestDir::new();
    let lines = |word: &str| {
        (0..5000)
            .map(|n| format!("{word} {n}\n"))
            .collect::<String>()
    };
    world.put("f", lines("line"));
    let params = json!({"path": "f", "old_string": lines("lime"), "new_string": "x"});
    let (_, text) = world.fail("edit", params).await;
    assert!(text.contains("Closest: lines"), "{text}");
    assert!(text.len() < 10_000, "{}", text.len());
}

#[tokio::test]
async fn path_with_a_trailing_slash_is_not_a_file() {
    let world = TestDir::new();
    let (category, _) = world
        .fail("write", json!({"path": "new/", "content": "x"}))
        .await;
    assert_eq!(category, Category::InvalidParameters);
    assert!(!world.root.join("new").exists());
}

#[tokio::test]
async fn edit_preserves_every_other_byte() {
    let world = TestDir::new();
    world.put("f", b"\xef\xbb\xbfcaf\xe9\r\nold \t\nlast");
    world
        .text(
            "edit",
            json!({"path": "f", "old_string": "old", "new_string": "new"}),
        )
        .await;
    assert_eq!(world.bytes("f"), b"\xef\xbb\xbfcaf\xe9\r\nnew \t\nlast");
    let wide: Vec<u8> = "\u{FEFF}eins\r\nzwei\r\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    world.put("wide", &wide);
    let output = world
        .call(
            "edit",
            json!({"path": "wide", "old_string": "zwei", "new_string": "2"}),
        )
        .await
        .expect("edited");
    assert!(
        output.summary.ends_with("     1\teins\n     2\t2"),
        "{}",
        output.summary
    );
    let expect: Vec<u8> = "\u{FEFF}eins\r\n2\r\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(world.bytes("wide"), expect);
}

/// Proves FILE-22: the result says which differences were ignored to find the text, in any encoding.
#[tokio::test]
async fn result_lists_the_ignored_differences() {
    let world = TestDir::new();
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "old_string": old, "new_string": new});
    world.put("f", b"caf\xe9\r\n    if x {  \r\n        y();\r\n    }\r\n");
    let text = world
        .text(
            "edit",
            edit("f", "if x {\n    y();\n}", "if x {\n    y();\n    z();\n}"),
        )
        .await;
    assert!(
        text.starts_with("Edited f (1 replacement, lines 2-5; matched ignoring indentation, new lines indented as there).\n"),
        "{text}"
    );
    assert_eq!(
        world.bytes("f"),
        b"caf\xe9\r\n    if x {  \r\n        y();\r\n        z();\r\n    }\r\n"
    );
    let wide = |text: &str| -> Vec<u8> {
        let units = "\u{FEFF}".encode_utf16().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    world.put("wide", wide("say “x”\r\nend"));
    let text = world
        .text("edit", edit("wide", "say \"x\"", "tell \"x\""))
        .await;
    assert!(
        text.contains("matched ignoring typographic quotes and dashes"),
        "{text}"
    );
    assert_eq!(world.bytes("wide"), wide("tell “x”\r\nend"));

    world.put("twice", "a\r\nb\r\na\r\nb\r\n");
    let (category, text) = world.fail("edit", edit("twice", "a\nb", "x")).await;
    assert_eq!(category, Category::InvalidParameters);
    assert!(
        text.contains("without line endings") && text.contains("lines 1, 3"),
        "{text}"
    );
    assert_eq!(world.bytes("twice"), b"a\r\nb\r\na\r\nb\r\n");
}
