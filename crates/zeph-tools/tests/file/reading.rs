//! `read` and `list_directory`.

use std::fs::File;

use serde_json::json;
use zeph_tools::{CallContext, ToolErrorCategory as Category};

use crate::world::{TestDir, fifo};

/// Proves FILE-10.
#[tokio::test]
async fn file_is_read_in_windows() {
    let world = TestDir::new();
    let path = world.put(
        "f",
        (1..=5000)
            .map(|n| format!("line {n}\n"))
            .collect::<String>(),
    );
    let output = world
        .call("read", json!({"path": "f"}))
        .await
        .expect("read");
    assert!(
        output
            .summary
            .starts_with("     1\tline 1\n     2\tline 2\n")
    );
    assert!(
        output
            .summary
            .ends_with("  2000\tline 2000\n(3000 more lines; continue with offset=2001)"),
        "{}",
        &output.summary[output.summary.len() - 100..]
    );
    assert_eq!(output.locations[0].path, path);
    let text = world
        .text("read", json!({"path": "f", "offset": 4999, "limit": 9}))
        .await;
    assert_eq!(text, "  4999\tline 4999\n  5000\tline 5000");
    let text = world
        .text("read", json!({"path": "f", "offset": 7, "limit": 1}))
        .await;
    assert_eq!(
        text,
        "     7\tline 7\n(4993 more lines; continue with offset=8)"
    );
    let (category, text) = world
        .fail("read", json!({"path": "f", "offset": 5001}))
        .await;
    assert_eq!(category, Category::InvalidParameters);
    assert!(text.contains("5000 lines"), "{text}");
    for params in [
        json!({"path": "f", "offset": 0}),
        json!({"path": "f", "limit": 0}),
    ] {
        let (category, _) = world.fail("read", params).await;
        assert_eq!(category, Category::InvalidParameters);
    }
    world.put("empty", "");
    assert_eq!(
        world.text("read", json!({"path": "empty"})).await,
        "empty is empty."
    );
    let (category, text) = world
        .fail("read", json!({"path": "empty", "offset": 2}))
        .await;
    assert_eq!(category, Category::InvalidParameters, "{text}");
}

/// Proves FILE-10.
#[tokio::test]
async fn large_file_requires_a_window() {
    let world = TestDir::new();
    let path = world.put("big", "a line\n".repeat(2000));
    File::options()
        .append(true)
        .open(&path)
        .expect("open")
        .set_len(20 << 20)
        .expect("grow");
    let (category, text) = world.fail("read", json!({"path": "big"})).await;
    assert_eq!(category, Category::InvalidParameters);
    assert!(
        text.contains("20971520 bytes") && text.contains("`offset`"),
        "{text}"
    );
    let text = world
        .text("read", json!({"path": "big", "offset": 2, "limit": 1}))
        .await;
    assert!(
        text.starts_with("     2\ta line\n(1999 more lines"),
        "{text}"
    );
}

/// Proves FILE-11 except for images to providers.
#[tokio::test]
async fn binary_files_are_refused_and_other_encodings_are_decoded() {
    let world = TestDir::new();
    for (name, content, words) in [
        (
            "a.png",
            b"\x89PNG\r\n\x1a\n\0\0".as_slice(),
            ["image/png", "10 bytes"],
        ),
        ("a.pdf", b"%PDF-1.7 text only", ["PDF", "18 bytes"]),
        ("a.bin", b"ab\0cd", ["binary", "5 bytes"]),
    ] {
        world.put(name, content);
        let (category, text) = world.fail("read", json!({"path": name})).await;
        assert_eq!(category, Category::PermanentFailure, "{name}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let wide = |big: bool| -> Vec<u8> {
        let units = "\u{FEFF}zwei ä\r\n𝄞\r\n".encode_utf16();
        units
            .flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect()
    };
    for big in [false, true] {
        world.put("wide", wide(big));
        assert_eq!(
            world.text("read", json!({"path": "wide"})).await,
            "     1\tzwei ä\n     2\t𝄞\n(line endings: CRLF; decoded from UTF-16)"
        );
    }
    world.put("latin1", b"caf\xe9\n");
    assert_eq!(
        world.text("read", json!({"path": "latin1"})).await,
        "     1\tcaf\u{FFFD}\n(not valid UTF-8: bad bytes are shown as \u{FFFD})"
    );
    world.put("bom", b"\xef\xbb\xbfone\n");
    assert_eq!(
        world.text("read", json!({"path": "bom"})).await,
        "     1\tone"
    );
}

/// Proves FILE-12.
#[tokio::test]
async fn missing_file_and_directory_get_a_suggestion() {
    let world = TestDir::new();
    for name in ["src/main.rs", "src/lib.rs", "src/mail.rs", "src/other.txt"] {
        world.put(name, "x");
    }
    let (category, text) = world.fail("read", json!({"path": "src/mian.rs"})).await;
    assert_eq!(category, Category::PermanentFailure);
    assert!(text.contains("did you mean src/main.rs"), "{text}");
    let (_, text) = world.fail("read", json!({"path": "scr/main.rs"})).await;
    assert!(
        text.contains("no such directory: scr; did you mean src?"),
        "{text}"
    );
    let (_, text) = world.fail("read", json!({"path": "zzz"})).await;
    assert!(!text.contains("did you mean"), "{text}");
    let (_, text) = world.fail("read", json!({"path": "src"})).await;
    assert!(
        text.contains("is a directory") && text.contains("list_directory"),
        "{text}"
    );
    let (_, text) = world.fail("read", json!({"path": "src/main.rs/x"})).await;
    assert!(text.contains("Not a directory"), "{text}");
}

#[tokio::test]
async fn cancelled_call_of_any_tool_stops() {
    let world = TestDir::new();
    world.put("f", "x");
    let cx = CallContext::headless();
    cx.cancel.cancel();
    for (tool, params) in [
        ("read", json!({"path": "f"})),
        ("list_directory", json!({"path": "."})),
        ("grep", json!({"pattern": "x"})),
        ("find_path", json!({"path": ".", "pattern": "*"})),
        ("write", json!({"path": "f", "content": "y"})),
        (
            "edit",
            json!({"path": "f", "old_string": "x", "new_string": "y"}),
        ),
    ] {
        let error = world.call_in(tool, params, &cx).await.expect_err(tool);
        assert_eq!(error.category(), Category::Cancelled, "{tool}");
    }
    assert_eq!(world.bytes("f"), b"x");
}

/// Proves FILE-15.
#[tokio::test]
async fn directory_is_listed_without_following_links() {
    let world = TestDir::new();
    world.put("b/f", "x");
    world.put("a.txt", "12345");
    world.put(".hidden", "");
    world.put("new\nline", "");
    world.link(&world.outside, "out");
    world.link("gone", "dangling");
    fifo(&world.root.join("pipe"));
    let expect = format!(
        "[file] .hidden (0 bytes)\n[file] a.txt (5 bytes)\n[dir] b/\n[symlink] dangling -> gone\n\
         [file] new\\nline (0 bytes)\n[symlink] out -> {}\n[fifo] pipe",
        world.outside.display()
    );
    assert_eq!(
        world.text("list_directory", json!({"path": "."})).await,
        expect
    );
    assert_eq!(
        world.text("list_directory", json!({"path": "b"})).await,
        "[file] f (1 bytes)"
    );
    let (_, text) = world.fail("list_directory", json!({"path": "a.txt"})).await;
    assert!(text.contains("`read`"), "{text}");
    std::fs::create_dir(world.root.join("none")).expect("a directory");
    assert_eq!(
        world.text("list_directory", json!({"path": "none"})).await,
        "none is empty."
    );
}

#[tokio::test]
async fn long_listing_is_capped_with_a_count() {
    let world = TestDir::new();
    for number in 0..1005 {
        world.put(&format!("d/{number:04}"), "");
    }
    let text = world.text("list_directory", json!({"path": "d"})).await;
    assert!(text.starts_with("[file] 0000 (0 bytes)\n"));
    assert!(
        text.contains("[file] 0999 (0 bytes)\n(5 more entries are not listed;"),
        "{text}"
    );
}
