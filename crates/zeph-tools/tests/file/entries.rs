//! Tools for whole entries: `create_directory`, `delete_path`, `move_path`, `copy_path`; and `get_file_tree`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};
use zeph_tools::ToolErrorCategory as Category;

use crate::world::{TestDir, fifo};

fn ends(source: &str, destination: &str) -> Value {
    json!({"source": source, "destination": destination})
}

fn is_link(world: &TestDir, path: &str) -> bool {
    world.root.join(path).is_symlink()
}

fn exists(world: &TestDir, path: &str) -> bool {
    world.root.join(path).symlink_metadata().is_ok()
}

/// Proves FILE-25.
#[tokio::test]
async fn directories_are_created_with_their_parents() {
    let world = TestDir::new();
    world.put("file", "x");
    world.link("later/there", "dangling");
    let make = async |path: &str| world.text("create_directory", json!({"path": path})).await;
    assert_eq!(make("a/b/c").await, "Created the directory a/b/c.");
    assert!(world.root.join("a/b/c").is_dir());
    assert_eq!(make("a/b").await, "The directory a/b exists already.");
    assert_eq!(make(".").await, "The directory . exists already.");
    make("dangling").await;
    assert!(world.root.join("later/there").is_dir());
    for path in ["file", "file/below"] {
        let (category, text) = world.fail("create_directory", json!({"path": path})).await;
        assert_eq!(category, Category::PermanentFailure, "{path}: {text}");
    }
    assert_eq!(world.bytes("file"), b"x");
}

/// Proves FILE-26.
#[tokio::test]
async fn files_links_and_trees_are_deleted() {
    let world = TestDir::new();
    world.put("file", "x");
    world.put("kept/f", "kept");
    world.put("tree/a/b/.hidden", "x");
    world.put("tree/.gitignore", "*");
    world.link("../kept", "tree/a/link");
    world.link(&world.outside, "tree/out");
    world.link("kept", "link");
    world.link(world.outside.join("secret.txt"), "out-file");
    fifo(&world.root.join("fifo"));
    let delete = async |path: &str| world.text("delete_path", json!({"path": path})).await;
    assert_eq!(delete("file").await, "Deleted file.");
    assert_eq!(
        delete("link").await,
        "Deleted the link link; the link target was not changed."
    );
    delete("out-file").await;
    delete("fifo").await;
    assert_eq!(
        delete("tree").await,
        "Deleted the directory tree (with 6 entries)."
    );
    for path in ["file", "link", "out-file", "fifo", "tree"] {
        assert!(!exists(&world, path), "{path}");
    }
    assert_eq!(world.bytes("kept/f"), b"kept");
    world.assert_outside_untouched();
    let (category, text) = world.fail("delete_path", json!({"path": "kep"})).await;
    assert_eq!(category, Category::PermanentFailure);
    assert!(text.contains("did you mean kept?"), "{text}");
}

/// Proves FILE-26: entries that are never deleted.
#[tokio::test]
async fn roots_their_parents_and_repositories_are_not_deleted() {
    let world = TestDir::with_roots(&[".", "../other"]);
    world.put("repo/.git/objects/x", "x");
    world.put("repo/src/f", "x");
    world.put("sub/f", "x");
    let absolute = world.root.display().to_string();
    for path in [
        ".",
        "sub/..",
        "..",
        "../other",
        absolute.as_str(),
        "/",
        "repo",
        "repo/.git",
        "repo/.git/objects",
        "repo/src/../.git",
    ] {
        let (category, text) = world.fail("delete_path", json!({"path": path})).await;
        assert_eq!(category, Category::PolicyBlocked, "{path}: {text}");
    }
    // A file in a repository directory, such as a stale lock, can be deleted.
    world.put("repo/.git/index.lock", "");
    world
        .text("delete_path", json!({"path": "repo/.git/index.lock"}))
        .await;
    assert_eq!(world.bytes("repo/.git/objects/x"), b"x");
    assert_eq!(world.bytes("repo/src/f"), b"x");
    assert_eq!(world.bytes("sub/f"), b"x");
}

/// Proves FILE-26 in part: a tree that is too deep is refused before anything is deleted.
#[tokio::test]
async fn overly_deep_tree_is_refused_unchanged() {
    let world = TestDir::new();
    let deep = vec!["d"; 140].join("/");
    world.put(&format!("tree/{deep}/f"), "x");
    world.put("tree/e", "x");
    let (_, text) = world.fail("delete_path", json!({"path": "tree"})).await;
    assert!(text.contains("directories deep"), "{text}");
    let (_, text) = world.fail("copy_path", ends("tree", "copy")).await;
    assert!(text.contains("directories deep"), "{text}");
    assert!(!exists(&world, "copy"));
    assert_eq!(world.bytes("tree/e"), b"x");
    world.assert_no_leftovers(".");
}

/// Creates a tree at `path` with files of several modes, links and an empty directory.
fn plant(world: &TestDir, path: &str) {
    world.put(&format!("{path}/f"), "one");
    world.put(&format!("{path}/.hidden/bin"), b"\0\x01\xff");
    std::fs::create_dir(world.root.join(path).join("empty")).expect("a directory");
    world.link("../f", &format!("{path}/.hidden/up"));
    world.link("nowhere", &format!("{path}/dangling"));
    world.link("round", &format!("{path}/round"));
    let mode = |name: &str, mode| {
        let permissions = PermissionsExt::from_mode(mode);
        std::fs::set_permissions(world.root.join(path).join(name), permissions).expect("a mode");
    };
    mode("f", 0o750);
    mode("empty", 0o711);
}

fn assert_planted(world: &TestDir, path: &str) {
    assert_eq!(world.bytes(&format!("{path}/f")), b"one");
    assert_eq!(world.bytes(&format!("{path}/.hidden/bin")), b"\0\x01\xff");
    let link = |name: &str| std::fs::read_link(world.root.join(path).join(name)).expect("a link");
    assert_eq!(link(".hidden/up"), Path::new("../f"));
    assert_eq!(link("dangling"), Path::new("nowhere"));
    assert_eq!(link("round"), Path::new("round"));
    let mode = |name: &str| {
        let metadata = world.root.join(path).join(name).metadata();
        metadata.expect("an entry").mode() & 0o7777
    };
    assert_eq!(mode("f"), 0o750);
    assert_eq!(mode("empty"), 0o711);
}

/// Proves FILE-27 for `copy_path`.
#[tokio::test]
async fn trees_are_copied_links_as_links() {
    let world = TestDir::new();
    plant(&world, "tree");
    let text = world.text("copy_path", ends("tree", "new/copy")).await;
    assert_eq!(
        text,
        "Copied the directory tree to new/copy (7 entries, 6 bytes)."
    );
    assert_planted(&world, "tree");
    assert_planted(&world, "new/copy");
    world.text("copy_path", ends("tree/dangling", "link")).await;
    assert!(is_link(&world, "link"));
    let text = world.text("copy_path", ends("tree/f", "g")).await;
    assert_eq!(text, "Copied tree/f to g (3 bytes).");
    assert_eq!(world.bytes("g"), b"one");
    world.assert_no_leftovers("new");
    world.assert_no_leftovers(".");
}

/// Proves FILE-27: a link that points outside is refused, regardless of its position and form.
#[tokio::test]
async fn links_that_point_outside_are_not_copied() {
    let world = TestDir::new();
    world.link(&world.outside, "absolute");
    world.put("tree/deep/f", "x");
    world.link("../../../outside/secret.txt", "tree/deep/relative");
    // A link that points inside from here, but outside from the destination.
    world.put("sub/f", "x");
    world.link("../f", "sub/up");
    world.put("f", "x");
    world.link("../../f", "tree/deep/../up-twice");
    for (source, destination) in [
        ("absolute", "copy"),
        ("tree", "copy"),
        ("tree/deep/relative", "copy"),
        ("sub/up", "copy"),
    ] {
        let (category, text) = world.fail("copy_path", ends(source, destination)).await;
        assert_eq!(category, Category::PolicyBlocked, "{source}: {text}");
        assert!(text.contains("a link to"), "{text}");
        assert!(!exists(&world, destination), "{source}");
    }
    world.assert_no_leftovers(".");
    world.text("copy_path", ends("sub", "copy")).await;
    world.assert_outside_untouched();
}

/// Proves FILE-27: an existing destination of any kind, and a copy of a directory into itself.
#[tokio::test]
async fn existing_destination_is_never_replaced() {
    let world = TestDir::new();
    plant(&world, "tree");
    world.put("file", "old");
    std::fs::create_dir(world.root.join("empty")).expect("a directory");
    world.link("nowhere", "dangling");
    world.link("file", "link");
    for tool in ["copy_path", "move_path"] {
        for source in ["tree", "tree/f", "tree/dangling"] {
            for destination in [
                "file",
                "empty",
                "dangling",
                "link",
                "tree",
                ".",
                "tree/..",
                "tree/empty",
                "tree/f",
            ] {
                let (_, text) = world.fail(tool, ends(source, destination)).await;
                let why = ["exists", "contain itself", "is not a directory"];
                assert!(
                    why.iter().any(|why| text.contains(why)),
                    "{tool} {source} {destination}: {text}"
                );
            }
        }
        for destination in ["tree/new", "tree/empty/new", "tree/new/deep"] {
            let (category, text) = world.fail(tool, ends("tree", destination)).await;
            assert_eq!(category, Category::InvalidParameters, "{text}");
            assert!(text.contains("cannot contain itself"), "{text}");
        }
        let (_, text) = world.fail(tool, ends("missing", "new/deep")).await;
        assert!(text.contains("no such file"), "{text}");
    }
    assert_planted(&world, "tree");
    assert_eq!(world.bytes("file"), b"old");
    assert!(is_link(&world, "dangling") && is_link(&world, "link"));
    assert!(!exists(&world, "tree/new") && !exists(&world, "new"));
    assert!(!exists(&world, "nowhere"));
    world.assert_no_leftovers(".");
}

/// Proves FILE-27 for `move_path` within one file system.
#[tokio::test]
async fn entries_are_moved() {
    let world = TestDir::new();
    plant(&world, "tree");
    let inode = |path: &str| {
        let metadata = world.root.join(path).symlink_metadata();
        metadata.expect("an entry").ino()
    };
    let before = inode("tree");
    let text = world.text("move_path", ends("tree", "new/name")).await;
    assert_eq!(text, "Moved tree to new/name.");
    assert_planted(&world, "new/name");
    assert_eq!(inode("new/name"), before);
    assert!(!exists(&world, "tree"));
    // The link itself is moved, not its target.
    world.link(world.outside.join("secret.txt"), "out");
    world.text("move_path", ends("out", "out2")).await;
    assert!(is_link(&world, "out2") && !exists(&world, "out"));
    world.assert_outside_untouched();
    for source in [".", "..", "new/.."] {
        let (category, text) = world.fail("move_path", ends(source, "x")).await;
        assert_eq!(category, Category::PolicyBlocked, "{source}: {text}");
    }
}

/// Proves FILE-27 across file systems, if this machine has two.
#[tokio::test]
async fn move_to_another_file_system_preserves_everything() {
    let memory = Path::new("/dev/shm");
    let Ok(second) = tempfile::tempdir_in(memory) else {
        eprintln!("no second file system here");
        return;
    };
    let other = second.path();
    let world = TestDir::with_roots(&[".", &other.display().to_string()]);
    plant(&world, "tree");
    world.put("file", "x");
    let to = other.join("moved").display().to_string();
    world.text("move_path", ends("tree", &to)).await;
    assert!(!exists(&world, "tree"));
    world.text("move_path", ends(&to, "back")).await;
    assert!(!Path::new(&to).exists());
    assert_planted(&world, "back");
    // An entry that cannot be copied stays, and no part of it is at the destination.
    world.link(&world.outside, "back/out");
    let (category, _) = world.fail("move_path", ends("back", &to)).await;
    assert_eq!(category, Category::PolicyBlocked);
    assert_planted(&world, "back");
    assert_eq!(std::fs::read_dir(other).expect("a directory").count(), 0);
}

/// Proves FILE-16.
#[tokio::test]
async fn file_tree_is_a_json_array_of_paths() {
    let world = TestDir::new();
    world.put("src/lib.rs", "");
    world.put("src/deep/mod.rs", "");
    world.put("target/debug/zeph", "");
    world.put(".gitignore", "target\n*.log\n");
    world.put("a.log", "");
    world.put("b\n.txt", "");
    world.link("src", "link");
    let tree = async |params: Value| {
        let text = world.text("get_file_tree", params).await;
        serde_json::from_str::<Vec<String>>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    assert_eq!(
        tree(json!({})).await,
        [
            "b\\n.txt",
            "link",
            "src/",
            "src/deep/",
            "src/deep/mod.rs",
            "src/lib.rs"
        ]
    );
    assert_eq!(
        tree(json!({"depth": 1})).await,
        ["b\\n.txt", "link", "src/"]
    );
    assert_eq!(
        tree(json!({"path": "src", "depth": 1})).await,
        ["deep/", "lib.rs"]
    );
    let (category, _) = world.fail("get_file_tree", json!({"depth": 0})).await;
    assert_eq!(category, Category::InvalidParameters);
    for number in 0..1200 {
        world.put(&format!("many/{number}"), "");
    }
    let text = world.text("get_file_tree", json!({})).await;
    let (array, note) = text.split_once('\n').expect("a note");
    let paths: Vec<String> = serde_json::from_str(array).expect("JSON");
    assert_eq!(paths.len(), 1000);
    for path in ["src/", "many/", "many/1"] {
        assert!(paths.contains(&path.to_owned()), "{path}");
    }
    assert_eq!(
        note,
        "(the 1000 topmost of 1207 paths; narrow `path` or set `depth`)"
    );
    world.put("none/.hidden", "");
    let text = world.text("get_file_tree", json!({"path": "none"})).await;
    assert!(text.starts_with("[]\n(Not searched: 1 hidden"), "{text}");
}
