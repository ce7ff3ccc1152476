//! `grep` and `find_path`.

use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use serde_json::json;
use zeph_tools::ToolErrorCategory as Category;

use crate::world::{SECRET, TestDir};

/// Proves FILE-13.
#[tokio::test]
async fn grep_finds_lines_in_order() {
    let world = TestDir::new();
    world.put("b/two.rs", "fn two() {}\nno\nfn three() {}\r\n");
    world.put("a.rs", "fn one() {}\n");
    world.put("notes.txt", "a fn\nFN\n");
    world.put("bin", b"fn \0");
    world.put(
        "late-bin",
        [b"fn early\n".as_slice(), &vec![b'x'; 200_000], b"\0"].concat(),
    );
    let all =
        "a.rs:1:fn one() {}\nb/two.rs:1:fn two() {}\nb/two.rs:3:fn three() {}\nnotes.txt:1:a fn";
    let check = async |params: serde_json::Value, expect: &str| {
        assert_eq!(world.text("grep", params.clone()).await, expect, "{params}");
    };
    for _ in 0..20 {
        check(json!({"path": ".", "pattern": "fn"}), all).await;
    }
    check(
        json!({"pattern": r"fn \w+\(\) \{\}$", "glob": "*.rs", "path": "b"}),
        "b/two.rs:1:fn two() {}\nb/two.rs:3:fn three() {}",
    )
    .await;
    check(
        json!({"pattern": "^fn$", "case_sensitive": false}),
        "notes.txt:2:FN",
    )
    .await;
    check(
        json!({"pattern": "fn", "path": "notes.txt"}),
        "notes.txt:1:a fn",
    )
    .await;
    check(
        json!({"pattern": "fn", "glob": "!*.rs"}),
        "notes.txt:1:a fn",
    )
    .await;
    check(
        json!({"pattern": "fn", "glob": "b/**"}),
        "b/two.rs:1:fn two() {}\nb/two.rs:3:fn three() {}",
    )
    .await;
    check(
        json!({"path": ".", "pattern": "fn", "glob": "*.{rs,txt}"}),
        all,
    )
    .await;
    check(
        json!({"pattern": "^no", "context": 1}),
        "b/two.rs-1-fn two() {}\nb/two.rs:2:no\nb/two.rs-3-fn three() {}",
    )
    .await;
    check(
        json!({"pattern": "fn", "path": "bin"}),
        "No matches in 0 files, 1 binary skipped.",
    )
    .await;
}

/// Proves FILE-13.
#[tokio::test]
async fn grep_reports_its_caps_and_pattern_errors() {
    let world = TestDir::new();
    for file in ["a", "b", "c/d", "e"] {
        world.put(file, "x\n".repeat(400));
    }
    let text = world.text("grep", json!({"pattern": "x"})).await;
    assert_eq!(text.matches(":x\n").count(), 1000);
    assert!(
        text.starts_with("a:1:x\n") && text.contains("\nc/d:200:x\n("),
        "{text}"
    );
    assert!(
        text.contains("the first 1000 matches; there are more"),
        "{text}"
    );
    for _ in 0..20 {
        let text = world
            .text("grep", json!({"pattern": "x", "max_results": 3}))
            .await;
        assert!(
            text.starts_with("a:1:x\na:2:x\na:3:x\n(the first 3 matches"),
            "{text}"
        );
    }
    world.put("b", "one\ntwo\nx\n");
    let params = json!({"pattern": "x", "max_results": 400, "context": 2});
    let text = world.text("grep", params).await;
    assert!(
        text.contains("a:400:x\n(the first 400 matches; there are more") && !text.contains("b-"),
        "no context of matches that are not shown: {text}"
    );
    world.put("b", "x\n".repeat(400));
    let exact = world
        .text("grep", json!({"pattern": "x", "max_results": 1600}))
        .await;
    assert_eq!(exact.lines().count(), 1600);
    assert!(!exact.contains("there are more"));
    for pattern in ["(", "a\\nb", "[z-a]"] {
        let (category, text) = world.fail("grep", json!({"pattern": pattern})).await;
        assert_eq!(category, Category::InvalidParameters, "{pattern}");
        assert!(text.contains("regular expression"), "{text}");
    }
    let (category, _) = world
        .fail("grep", json!({"pattern": "x", "glob": "[z-a]"}))
        .await;
    assert_eq!(category, Category::InvalidParameters);
    world.put("long", "y".repeat(9000));
    let text = world
        .text("grep", json!({"pattern": "y+", "path": "long"}))
        .await;
    assert!(
        text.len() < 2100 && text.contains("line cut; it has 9000 bytes"),
        "{text}"
    );
}

/// Proves FILE-13, FILE-14 and FILE-15a in part.
#[tokio::test]
async fn ignored_and_hidden_files_are_omitted_and_counted() {
    let world = TestDir::new();
    world.put(".git/config", "needle");
    world.put(".git/info/exclude", "excluded\n");
    world.put(".gitignore", "target/\n*.log\n!keep.log\n");
    world.put(".ignore", "*.tmp\n!.github/\n");
    world.put("target/out", "needle");
    world.put("a.log", "needle");
    world.put("keep.log", "needle");
    world.put("a.tmp", "needle");
    world.put("excluded", "needle");
    world.put(".hidden", "needle");
    world.put(".github/f", "needle");
    world.put("sub/.gitignore", "keep.log\n/only-here\n");
    world.put("sub/keep.log", "needle");
    world.put("sub/only-here", "needle");
    world.put("sub/deep/only-here", "needle");
    world.put("sub/f", "needle");
    let found =
        ".github/f:1:needle\nkeep.log:1:needle\nsub/deep/only-here:1:needle\nsub/f:1:needle";
    assert_eq!(
        world.text("grep", json!({"pattern": "needle"})).await,
        found
    );
    // The rules of parent directories apply in subdirectories.
    assert_eq!(
        world
            .text("grep", json!({"pattern": "needle", "path": "sub/deep"}))
            .await,
        "sub/deep/only-here:1:needle"
    );
    let text = world.text("grep", json!({"pattern": "absent"})).await;
    assert_eq!(
        text,
        "No matches in 4 files. Not searched: 6 ignored, 5 hidden (directories count once; name one as `path` to search it)."
    );
    let mut paths: Vec<String> = world
        .text("find_path", json!({"path": ".", "pattern": "**/*"}))
        .await
        .lines()
        .map(str::to_owned)
        .collect();
    paths.sort();
    assert_eq!(
        paths,
        [
            ".github/",
            ".github/f",
            "keep.log",
            "sub/",
            "sub/deep/",
            "sub/deep/only-here",
            "sub/f"
        ]
    );
    let text = world
        .text("find_path", json!({"path": ".", "pattern": "*.tmp"}))
        .await;
    assert!(
        text.contains("No paths match.") && text.contains("6 ignored, 5 hidden"),
        "{text}"
    );
    // An ignored path that is named explicitly is searched.
    assert_eq!(
        world
            .text("grep", json!({"pattern": "needle", "path": "target"}))
            .await,
        "target/out:1:needle"
    );
}

/// Proves FILE-14.
#[tokio::test]
async fn paths_are_found_newest_first() {
    let world = TestDir::new();
    for (age, name) in [
        (30, "src/old.rs"),
        (10, "new.rs"),
        (20, "src/sub/mid.rs"),
        (5, "x.txt"),
    ] {
        let path = world.put(name, "");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        let file = File::options().write(true).open(path).expect("a file");
        file.set_times(FileTimes::new().set_modified(time))
            .expect("a time");
    }
    let check = async |params: serde_json::Value, expect: &str| {
        assert_eq!(
            world.text("find_path", params.clone()).await,
            expect,
            "{params}"
        );
    };
    check(
        json!({"path": ".", "pattern": "**/*.rs"}),
        "new.rs\nsrc/sub/mid.rs\nsrc/old.rs",
    )
    .await;
    check(json!({"path": ".", "pattern": "./*.rs"}), "new.rs").await;
    check(
        json!({"path": ".", "pattern": "*.{rs,txt}"}),
        "x.txt\nnew.rs",
    )
    .await;
    check(json!({"path": ".", "pattern": "*/*.rs"}), "src/old.rs").await;
    check(json!({"path": "src", "pattern": "*.rs"}), "src/old.rs").await;
    check(json!({"path": ".", "pattern": "**/s?b"}), "src/sub/").await;
    check(json!({"path": ".", "pattern": "src/*/"}), "src/sub/").await;
    let absolute = format!("{}/**/mid.rs", world.root.display());
    check(json!({"path": ".", "pattern": absolute}), "src/sub/mid.rs").await;
    let text = world
        .text("find_path", json!({"path": ".", "pattern": "mid.rs"}))
        .await;
    assert!(text.contains("`**/`"), "{text}");
    for pattern in ["", "../*", "[z-a]"] {
        let (category, _) = world
            .fail("find_path", json!({"path": ".", "pattern": pattern}))
            .await;
        assert_eq!(category, Category::InvalidParameters, "{pattern}");
    }
}

/// Proves FILE-14.
#[tokio::test]
async fn many_paths_are_capped() {
    let world = TestDir::new();
    for number in 0..1010 {
        world.put(&format!("d/{number}"), "");
    }
    let text = world
        .text("find_path", json!({"path": ".", "pattern": "d/*"}))
        .await;
    assert_eq!(text.lines().count(), 1001);
    assert!(
        text.ends_with("(the newest 1000 of 1010 paths; narrow the pattern)"),
        "{text}"
    );
}

/// Proves FILE-13, FILE-14.
#[tokio::test]
async fn searches_do_not_follow_links() {
    let world = TestDir::new();
    world.link(&world.outside, "out");
    world.link(world.outside.join("secret.txt"), "out.txt");
    world.put("in/f", "nothing");
    world.link(".", "in/loop");
    let text = world
        .text("grep", json!({"pattern": "secret|nothing"}))
        .await;
    assert_eq!(text, "in/f:1:nothing");
    let text = world
        .text("find_path", json!({"path": ".", "pattern": "**/*.txt"}))
        .await;
    assert_eq!(text, "out.txt");
    assert!(!text.contains(SECRET));
}

/// Globs with deep braces, which are compiled recursively and could exhaust the stack, are refused, and
/// ignored in ignore files.
#[tokio::test]
async fn deeply_nested_globs_are_refused_or_ignored() {
    let world = TestDir::new();
    world.put("f", "x\n");
    let deep = format!("{}a{}", "{".repeat(100_000), "}".repeat(100_000));
    let calls = [
        ("find_path", json!({"path": ".", "pattern": deep})),
        (
            "find_path",
            json!({"path": ".", "pattern": "*p".repeat(100_000)}),
        ),
        ("grep", json!({"pattern": "x", "glob": deep})),
        ("grep", json!({"pattern": "x".repeat(100_000)})),
    ];
    for (tool, params) in calls {
        let (category, _) = world.fail(tool, params).await;
        assert_eq!(category, Category::InvalidParameters, "{tool}");
    }
    world.put(".gitignore", format!("{deep}\nf\n"));
    let text = world.text("grep", json!({"pattern": "x"})).await;
    assert!(text.contains("1 ignored"), "{text}");
}
