//! Undo of changes by the file tools.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use zeph_tools::audit::Intent;
use zeph_tools::executor::ToolExecutor as _;
use zeph_tools::file::{FileExecutor, FileUndo, Sandbox};
use zeph_tools::read_tracking::{InMemoryReadLedger, ReadLedger};
use zeph_tools::undo::MemoryJournal;
use zeph_tools::{
    AuditEntry, AuditError, AuditSink, AuditTrail, CallContext, ToolCall, ToolError, Undo as _,
    UndoError,
};

const SESSION: &str = "test";

#[derive(Default)]
struct Audit(Mutex<Vec<AuditEntry>>);

#[async_trait]
impl AuditSink for Audit {
    async fn reserve(&self, _: Intent<'_>) -> Result<(), AuditError> {
        Ok(())
    }

    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        self.0.lock().unwrap().push(entry.clone());
        Ok(())
    }
}

/// Tools with a journal, in their own directory.
struct Journaled {
    _dir: TempDir,
    root: PathBuf,
    tools: FileExecutor,
    undo: FileUndo,
    audit: Arc<Audit>,
}

impl Journaled {
    fn new() -> Self {
        Self::keeping(1 << 20)
    }

    fn keeping(max_bytes: u64) -> Self {
        Self::with(max_bytes, None)
    }

    fn with(max_bytes: u64, seen: Option<Arc<dyn ReadLedger>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let sandbox = Sandbox::new(&[], &root).unwrap().with_seen(seen);
        let sandbox = Arc::new(sandbox.with_journal(Arc::new(MemoryJournal::new(max_bytes))));
        let audit = Arc::new(Audit::default());
        Self {
            root: sandbox.cwd().to_owned(),
            tools: FileExecutor::new(Arc::clone(&sandbox)),
            undo: FileUndo::new(
                sandbox,
                AuditTrail::new(vec![Arc::clone(&audit) as _], false),
            ),
            audit,
            _dir: dir,
        }
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    fn has(&self, path: &str) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }

    async fn try_call(&self, batch: &str, tool: &str, params: Value) -> Result<String, ToolError> {
        let call = ToolCall {
            batch: Some(batch.to_owned()),
            ..ToolCall::new("1", tool, params, SESSION)
        };
        let result = self
            .tools
            .execute_tool_call(&call, &CallContext::headless())
            .await;
        result.map(|output| output.unwrap().summary)
    }

    async fn call(&self, batch: &str, tool: &str, params: Value) -> String {
        self.try_call(batch, tool, params).await.unwrap()
    }

    async fn undone(&self) -> Vec<String> {
        self.undo.undo_last(SESSION).await.unwrap().lines
    }

    /// The lines of a refusal. Asserts that nothing was changed.
    async fn refused(&self) -> Vec<String> {
        let before = self.tree();
        match self.undo.undo_last(SESSION).await {
            Err(UndoError::Refused(reasons)) => {
                assert_eq!(self.tree(), before);
                reasons
            }
            other => panic!("{other:?}"),
        }
    }

    fn tree(&self) -> BTreeMap<PathBuf, (u32, String)> {
        let mut found = BTreeMap::new();
        walk(&self.root, &mut found);
        found
    }
}

/// Records every path below `dir` with its mode and its file content or link target.
fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, (u32, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_symlink() {
            format!("-> {}", path.read_link().unwrap().display())
        } else if metadata.is_dir() {
            "directory".to_owned()
        } else {
            format!("{:?}", std::fs::read(&path).unwrap())
        };
        found.insert(path.clone(), (metadata.mode(), content));
        if metadata.is_dir() {
            walk(&path, found);
        }
    }
}

/// Proves FILE-28: the changes of one batch are undone in reverse order.
#[tokio::test]
async fn batches_are_undone_whole_and_in_reverse_order() {
    let world = Journaled::new();
    world.put("a.txt", "one\n");
    world.put("b.txt", "b\n");
    let before = world.tree();
    let edit = |old, new| json!({ "path": "a.txt", "old_string": old, "new_string": new });
    world.call("1", "edit", edit("one", "two")).await;
    let between = world.tree();
    world.call("2", "edit", edit("two", "three")).await;
    world
        .call("2", "write", json!({ "path": "new/dir/c", "content": "c" }))
        .await;
    world
        .call(
            "2",
            "move_path",
            json!({ "source": "a.txt", "destination": "new/a" }),
        )
        .await;
    world
        .call("2", "write", json!({ "path": "new/a", "content": "four" }))
        .await;
    world
        .call(
            "2",
            "write",
            json!({ "path": "a.txt", "content": "another" }),
        )
        .await;
    world
        .call("2", "delete_path", json!({ "path": "b.txt" }))
        .await;
    world
        .call(
            "2",
            "copy_path",
            json!({ "source": "new", "destination": "copy" }),
        )
        .await;
    let lines = world.undone().await;
    assert_eq!(world.tree(), between);
    assert_eq!(
        lines,
        [
            "removed the directory copy with 3 entries",
            "restored b.txt",
            "removed a.txt",
            "restored new/a",
            "moved new/a back to a.txt",
            "removed new/dir/c",
            "removed the directory new",
            "restored a.txt",
        ]
    );
    assert_eq!(world.undone().await, ["restored a.txt"]);
    assert_eq!(world.tree(), before);
    assert!(matches!(
        world.undo.undo_last(SESSION).await,
        Err(UndoError::Nothing)
    ));
    let audited = world.audit.0.lock().unwrap();
    assert_eq!(audited.len(), 2);
    assert!(
        audited.iter().all(|entry| entry.tool == "undo"),
        "{audited:?}"
    );
}

/// Proves FILE-28: if any path of a batch was changed since, nothing of the batch is undone.
#[tokio::test]
async fn batch_with_a_later_change_is_refused_and_named() {
    let world = Journaled::new();
    world.put("a.txt", "one\n");
    world.put("b.txt", "b\n");
    world.put("gone", "g\n");
    world.put("tree/f", "f");
    world
        .call("1", "write", json!({ "path": "a.txt", "content": "two\n" }))
        .await;
    world
        .call("1", "write", json!({ "path": "b.txt", "content": "bb\n" }))
        .await;
    world
        .call("1", "delete_path", json!({ "path": "gone" }))
        .await;
    world
        .call("1", "create_directory", json!({ "path": "dir" }))
        .await;
    world
        .call(
            "1",
            "move_path",
            json!({ "source": "tree", "destination": "moved" }),
        )
        .await;
    let made = world.tree();

    world.put("a.txt", "mine\n");
    world.put("gone", "again\n");
    world.put("dir/mine", "");
    world.put("moved/mine", "");
    std::fs::remove_file(world.root.join("b.txt")).unwrap();
    assert_eq!(
        world.refused().await,
        [
            "a.txt: it was changed later",
            "b.txt: it no longer exists",
            "dir/mine: it was created later",
            "gone: another file exists at this path",
            "moved/mine: it was created later",
        ]
    );
    // The content counts, not the time: restored content can be undone.
    world.put("a.txt", "two\n");
    world.put("b.txt", "bb\n");
    std::fs::remove_file(world.root.join("dir/mine")).unwrap();
    std::fs::remove_file(world.root.join("moved/mine")).unwrap();
    assert_eq!(
        world.refused().await,
        ["gone: another file exists at this path"]
    );
    std::fs::remove_file(world.root.join("gone")).unwrap();
    world.put("moved/f", "mine");
    assert_eq!(world.refused().await, ["moved/f: it was changed later"]);
    world.put("moved/f", "f");
    assert_eq!(world.tree(), made);
    assert_eq!(world.undone().await.len(), 5);
    assert_eq!(world.read("a.txt"), "one\n");
    assert_eq!(world.read("gone"), "g\n");
    assert_eq!(world.read("tree/f"), "f");
    assert_eq!(world.read("b.txt"), "b\n");
    assert!(!world.has("dir") && !world.has("moved"));
}

/// Proves FILE-28: a tree is restored with modes, links and empty directories, also read-only ones.
#[tokio::test]
async fn deleted_tree_is_restored_exactly() {
    let world = Journaled::new();
    world.put("tree/bin/run", "#!/bin/sh\n");
    world.put("tree/read-only/f", "f");
    std::fs::create_dir_all(world.root.join("tree/empty/er")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.root.join("tree/out")).unwrap();
    std::os::unix::fs::symlink("bin", world.root.join("tree/in")).unwrap();
    let mode = |path: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(world.root.join(path), mode).unwrap();
    };
    mode("tree/bin/run", 0o4751);
    mode("tree/empty", 0o1777);
    let before = world.tree();
    world
        .call("1", "delete_path", json!({ "path": "tree/in" }))
        .await;
    world
        .call("2", "delete_path", json!({ "path": "tree" }))
        .await;
    assert!(!world.has("tree"));
    // A name that is not UTF-8, and a file that was deleted on its own.
    assert_eq!(world.undone().await, ["restored tree with 7 entries"]);
    assert_eq!(world.undone().await, ["restored tree/in"]);
    assert_eq!(world.tree(), before);

    // A read-only directory gets its mode after its content.
    mode("tree/read-only", 0o555);
    world
        .call(
            "3",
            "copy_path",
            json!({ "source": "tree/read-only", "destination": "ro" }),
        )
        .await;
    mode("ro", 0o755);
    mode("tree/read-only", 0o755);
    world
        .call("4", "delete_path", json!({ "path": "ro" }))
        .await;
    mode("tree", 0o755);
    assert_eq!(world.undone().await, ["restored ro with 1 entry"]);
    assert_eq!(world.read("ro/f"), "f");
}

/// Proves FILE-28: undo does not follow a link that replaced a directory.
#[tokio::test]
async fn link_in_the_path_is_refused() {
    let world = Journaled::new();
    let outside = world.root.parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    world.put("dir/a", "one");
    world.put("dir/b", "b");
    world
        .call("1", "write", json!({ "path": "dir/a", "content": "two" }))
        .await;
    world
        .call("1", "delete_path", json!({ "path": "dir/b" }))
        .await;
    std::fs::rename(world.root.join("dir"), world.root.join("aside")).unwrap();
    std::fs::write(outside.join("a"), "two").unwrap();
    for target in [outside.as_path(), &world.root.join("aside")] {
        std::os::unix::fs::symlink(target, world.root.join("dir")).unwrap();
        assert!(!world.refused().await.is_empty());
        std::fs::remove_file(world.root.join("dir")).unwrap();
    }
    assert_eq!(std::fs::read_to_string(outside.join("a")).unwrap(), "two");
    std::fs::rename(world.root.join("aside"), world.root.join("dir")).unwrap();
    world.undone().await;
    assert_eq!(
        (world.read("dir/a"), world.read("dir/b")),
        ("one".into(), "b".into())
    );
}

/// Proves FILE-28: the limit drops the oldest batches; a single larger change still runs, with a message.
#[tokio::test]
async fn journal_is_bounded() {
    let world = Journaled::keeping(100);
    world.put("a", &"a".repeat(60));
    world.put("b", &"b".repeat(60));
    world.put("c", &"c".repeat(101));
    let overwrite = |path: &str| json!({ "path": path, "content": "new" });
    world.call("1", "write", overwrite("a")).await;
    let said = world.call("2", "write", overwrite("b")).await;
    assert!(!said.contains("undone"), "{said}");
    world
        .call("3", "write", json!({ "path": "d", "content": "d" }))
        .await;
    let said = world.call("3", "delete_path", json!({ "path": "c" })).await;
    assert!(
        said.ends_with(
            "\nThis change cannot be undone, because it was not recorded: too large \
            ([tools.undo] max_bytes = 100)."
        ),
        "{said}"
    );
    let reasons = world.refused().await;
    assert_eq!(
        reasons,
        ["delete_path c: not recorded: too large ([tools.undo] max_bytes = 100)"]
    );
    let forgot = world.undo.forget_last(SESSION).await.unwrap().lines;
    assert_eq!(forgot, ["forgot write d", "forgot delete_path c"]);
    assert!(world.has("d"));
    assert_eq!(world.undone().await, ["restored b"]);
    assert_eq!(world.read("b"), "b".repeat(60));
    let reasons = world.refused().await;
    assert!(
        reasons[0].contains("write a: not recorded: dropped"),
        "{reasons:?}"
    );

    // Changes of one batch that use the whole limit together.
    let world = Journaled::keeping(100);
    world.put("a", &"a".repeat(60));
    world.put("b", &"b".repeat(60));
    world.call("1", "write", overwrite("a")).await;
    let said = world.call("1", "write", overwrite("b")).await;
    assert!(said.contains("cannot be undone"), "{said}");
    assert_eq!(world.refused().await.len(), 1);

    // A limit of 0.
    let world = Journaled::keeping(0);
    let said = world.call("1", "write", overwrite("a")).await;
    assert!(!said.contains("undone"), "{said}");
    assert!(matches!(
        world.undo.undo_last(SESSION).await,
        Err(UndoError::Nothing)
    ));
}

/// Proves FILE-28: a change that failed leaves nothing to undo.
#[tokio::test]
async fn failed_change_is_not_recorded() {
    let world = Journaled::new();
    world.put("a", "one");
    world.put("taken", "");
    world
        .call("1", "write", json!({ "path": "a", "content": "two" }))
        .await;
    let failing = [
        (
            "edit",
            json!({ "path": "a", "old_string": "none", "new_string": "x" }),
        ),
        ("write", json!({ "path": "a", "content": "two" })),
        (
            "move_path",
            json!({ "source": "a", "destination": "taken" }),
        ),
        (
            "copy_path",
            json!({ "source": "a", "destination": "taken" }),
        ),
        ("delete_path", json!({ "path": "nothing" })),
        ("create_directory", json!({ "path": "." })),
        ("create_directory", json!({ "path": "taken" })),
    ];
    for (tool, params) in failing {
        let _ = world.try_call("2", tool, params).await;
    }
    // These fail after the creation of parent directories.
    let outside = world.root.parent().unwrap();
    std::os::unix::fs::symlink(outside, world.root.join("absolute")).unwrap();
    let long = format!("new/dir/{}", "x".repeat(300));
    let failing = [
        (
            "copy_path",
            json!({ "source": "absolute", "destination": "new/dir/copy" }),
        ),
        ("copy_path", json!({ "source": "a", "destination": long })),
        ("move_path", json!({ "source": "a", "destination": long })),
        ("create_directory", json!({ "path": long })),
        ("write", json!({ "path": long, "content": "x" })),
    ];
    for (tool, params) in failing {
        world.try_call("2", tool, params).await.unwrap_err();
        assert!(!world.has("new"), "{tool}");
    }
    let cx = CallContext::headless();
    cx.cancel.cancel();
    for tool in ["copy_path", "move_path"] {
        let params = json!({ "source": "a", "destination": "new/dir/a" });
        let call = ToolCall::new("2", tool, params, SESSION);
        let result = world.tools.execute_tool_call(&call, &cx).await;
        result.unwrap_err();
        assert!(!world.has("new"), "{tool}");
    }
    assert_eq!(world.undone().await, ["restored a"]);
    assert_eq!(world.read("a"), "one");
}

/// Proves FILE-28 for entries that cannot be restored: they are deleted, with a message.
#[tokio::test]
async fn deleted_fifo_cannot_be_restored() {
    let world = Journaled::new();
    world.put("dir/f", "f");
    crate::world::fifo(&world.root.join("dir/pipe"));
    let said = world
        .call("1", "delete_path", json!({ "path": "dir" }))
        .await;
    assert!(
        said.contains("cannot be undone") && said.contains("pipe"),
        "{said}"
    );
    assert!(!world.has("dir"));
    assert!(world.refused().await[0].contains("delete_path dir: not recorded"));
}

/// Proves FILE-28: other names of a hard-linked file keep their content.
#[tokio::test]
async fn hard_link_retains_its_content() {
    let world = Journaled::new();
    world.put("a", "one");
    std::fs::hard_link(world.root.join("a"), world.root.join("b")).unwrap();
    world
        .call("1", "write", json!({ "path": "a", "content": "two" }))
        .await;
    world.undone().await;
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("one".into(), "one".into())
    );
}

/// Proves FILE-28, FILE-23: after an undo, a file must be read again before it is changed.
#[tokio::test]
async fn undone_file_must_be_read_again() {
    let world = Journaled::with(1 << 20, Some(Arc::new(InMemoryReadLedger::default())));
    world.put("a", "one");
    world.call("1", "read", json!({ "path": "a" })).await;
    let edit = |old, new| json!({ "path": "a", "old_string": old, "new_string": new });
    world.call("1", "edit", edit("one", "two")).await;
    world.undone().await;
    let refused = world
        .try_call("2", "edit", edit("one", "three"))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("was not read"), "{refused}");
    world.call("2", "read", json!({ "path": "a" })).await;
    world.call("2", "edit", edit("one", "three")).await;
    world.undone().await;
    assert_eq!(world.read("a"), "one");
}

/// Proves FILE-28: a link that replaced a directory in the same batch does not prevent undo, which removes
/// the link first.
#[tokio::test]
async fn link_that_replaced_a_directory_is_undone_with_its_batch() {
    let world = Journaled::new();
    world.put("a/b/c", "text\n");
    world.put("a/b/d/e", "more\n");
    std::os::unix::fs::symlink("a/b", world.root.join("link")).unwrap();
    let before = world.tree();
    let call = |tool, params| world.call("1", tool, params);
    call("delete_path", json!({ "path": "a" })).await;
    call(
        "move_path",
        json!({ "source": "link", "destination": "a/b" }),
    )
    .await;
    world.undone().await;
    assert_eq!(world.tree(), before);
}

#[derive(Debug, Clone)]
struct Op {
    tool: &'static str,
    path: String,
    other: String,
    batch: u8,
}

fn path() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"))
}

fn op() -> impl Strategy<Value = Op> {
    let tools = vec![
        "write",
        "write",
        "edit",
        "create_directory",
        "delete_path",
        "move_path",
        "copy_path",
    ];
    (prop::sample::select(tools), path(), path(), 0..4_u8).prop_map(|(tool, path, other, batch)| {
        Op {
            tool,
            path,
            other,
            batch,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves FILE-28: undoing all batches restores the tree, for any operations and batch sizes.
    #[test]
    fn undoing_everything_restores_the_tree(ops in prop::collection::vec(op(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = Journaled::new();
            world.put("a/a", "text of a/a\n");
            world.put("a/b/c", "text\n");
            world.put("b", "text of b\n");
            std::fs::set_permissions(world.root.join("b"), std::fs::Permissions::from_mode(0o640)).unwrap();
            std::os::unix::fs::symlink("a/b", world.root.join("c")).unwrap();
            let before = world.tree();
            let mut batch = 0;
            let mut made = 0;
            for (at, op) in ops.iter().enumerate() {
                if op.batch == 0 {
                    batch += 1;
                }
                let (path, other) = (&op.path, &op.other);
                let params = match op.tool {
                    "write" => json!({ "path": path, "content": format!("text {at}\n") }),
                    "edit" => json!({ "path": path, "old_string": "text", "new_string": format!("text {at} text") }),
                    "create_directory" | "delete_path" => json!({ "path": path }),
                    _ => json!({ "source": path, "destination": other }),
                };
                made += usize::from(world.try_call(&batch.to_string(), op.tool, params).await.is_ok());
            }
            let mut undone = 0;
            loop {
                match world.undo.undo_last(SESSION).await {
                    Ok(_) => undone += 1,
                    Err(UndoError::Nothing) => break,
                    Err(error) => panic!("{error}\n{ops:#?}"),
                }
            }
            assert_eq!(world.tree(), before, "{ops:#?}");
            assert!(undone <= batch + 1 && (made == 0 || undone <= ops.len()));
        });
    }
}
