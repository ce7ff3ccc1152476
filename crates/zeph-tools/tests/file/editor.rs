//! File tools with an editor that has unsaved texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use zeph_tools::executor::ToolExecutor as _;
use zeph_tools::file::{
    EditorError, EditorFiles, EditorReader, EditorWriter, FileExecutor, FilePreviews, FileUndo,
    ReadRules, Sandbox,
};
use zeph_tools::preview::PreviewProvider as _;
use zeph_tools::undo::MemoryJournal;
use zeph_tools::{
    AuditTrail, CallContext, ToolCall, ToolError, ToolErrorCategory, ToolOutput, Undo as _,
    UndoError,
};

/// An editor in memory. A file without a text in it has the content on the disk.
#[derive(Default)]
struct Editor {
    texts: Mutex<BTreeMap<PathBuf, String>>,
    requests: Mutex<Vec<String>>,
    /// The reason why it refuses everything.
    refuses: Mutex<Option<EditorError>>,
    /// Whether it saves texts that are written.
    saves: bool,
}

impl Editor {
    fn request(&self, method: &str, path: &Path) -> Result<(), EditorError> {
        let name = path.file_name().unwrap().to_string_lossy();
        self.requests
            .lock()
            .unwrap()
            .push(format!("{method} {name}"));
        self.refuses.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

#[async_trait]
impl EditorReader for Editor {
    async fn read(&self, path: &Path) -> Result<String, EditorError> {
        self.request("read", path)?;
        let text = self.texts.lock().unwrap().get(path).cloned();
        text.or_else(|| std::fs::read_to_string(path).ok())
            .ok_or_else(|| EditorError::Refused("no such file".to_owned()))
    }
}

#[async_trait]
impl EditorWriter for Editor {
    async fn write(&self, path: &Path, text: &str) -> Result<(), EditorError> {
        self.request("write", path)?;
        if self.saves {
            std::fs::write(path, text).unwrap();
        } else {
            let mut texts = self.texts.lock().unwrap();
            texts.insert(path.to_owned(), text.to_owned());
        }
        Ok(())
    }
}

struct World {
    _dir: TempDir,
    root: PathBuf,
    sandbox: Arc<Sandbox>,
    tools: FileExecutor,
    undo: FileUndo,
    editor: Arc<Editor>,
}

impl World {
    fn new() -> Self {
        Self::with(Editor::default(), true, true)
    }

    fn with(editor: Editor, reads: bool, writes: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let editor = Arc::new(editor);
        let rules = ReadRules::new(&["**/denied*".to_owned()], &[], None).unwrap();
        let sandbox = Sandbox::new(&[], dir.path())
            .unwrap()
            .with_rules(rules)
            .with_journal(Arc::new(MemoryJournal::new(1 << 20)))
            .with_editor(EditorFiles {
                reader: reads.then(|| Arc::clone(&editor) as _),
                writer: writes.then(|| Arc::clone(&editor) as _),
            });
        let sandbox = Arc::new(sandbox);
        Self {
            root: sandbox.cwd().to_owned(),
            tools: FileExecutor::new(Arc::clone(&sandbox)),
            undo: FileUndo::new(Arc::clone(&sandbox), AuditTrail::new(Vec::new(), false)),
            sandbox,
            editor,
            _dir: dir,
        }
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.root.join(path), content).unwrap();
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.root.join(path)).unwrap()
    }

    /// Sets the unsaved text of a file.
    fn open(&self, path: &str, text: &str) {
        let mut texts = self.editor.texts.lock().unwrap();
        texts.insert(self.root.join(path), text.to_owned());
    }

    fn opened(&self, path: &str) -> Option<String> {
        let texts = self.editor.texts.lock().unwrap();
        texts.get(&self.root.join(path)).cloned()
    }

    async fn call(&self, tool: &str, params: Value) -> Result<ToolOutput, ToolError> {
        let call = ToolCall::new("1", tool, params, "test");
        let cx = CallContext::headless().is_cacheable();
        let result = self.tools.execute_tool_call(&call, &cx).await;
        result.map(Option::unwrap)
    }

    async fn text(&self, tool: &str, params: Value) -> String {
        self.call(tool, params).await.unwrap().summary
    }

    async fn fail(&self, tool: &str, params: Value) -> (ToolErrorCategory, String) {
        let error = self.call(tool, params).await.unwrap_err();
        let output = error.output().map(|output| output.summary.clone());
        let text = format!("{error}\n{}", output.unwrap_or_default());
        (error.category(), text)
    }

    async fn undone(&self) -> Result<Vec<String>, UndoError> {
        self.undo.undo_last("test").await.map(|undone| undone.lines)
    }
}

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "f", "old_string": old, "new_string": new})
}

/// Proves ACP-4, FILE-23: the text in the editor is read, its digest is stored, and the result is not cached.
#[tokio::test]
async fn read_returns_the_unsaved_text() {
    let world = World::new();
    world.put("f", "saved\n");
    world.open("f", "unsaved\nsecond\n");
    let output = world.call("read", json!({"path": "f"})).await.unwrap();
    assert_eq!(output.summary, "     1\tunsaved\n     2\tsecond");
    assert!(output.basis.is_none());
    let output = world.call("read", json!({"path": "f", "offset": 2})).await;
    assert_eq!(output.unwrap().summary, "     2\tsecond");
    assert_eq!(world.editor.requests(), ["read f", "read f"]);
    // The user continues to type.
    world.open("f", "unsaved\nchanged\n");
    let (category, text) = world.fail("edit", edit("unsaved", "x")).await;
    assert_eq!(category, ToolErrorCategory::InvalidParameters);
    assert!(text.contains("-second\n+changed\n"), "{text}");
    assert_eq!(world.opened("f").unwrap(), "unsaved\nchanged\n");
}

/// Proves ACP-4: an edit begins with the unsaved text, and the editor writes the result.
#[tokio::test]
async fn edit_changes_the_text_in_the_editor() {
    let world = World::new();
    world.put("f", "one\ntwo\n");
    world.open("f", "one\nzwei\n");
    world.text("read", json!({"path": "f"})).await;
    let output = world.call("edit", edit("zwei", "deux")).await.unwrap();
    assert!(output.display().contains("-zwei\n+deux\n"), "{output:?}");
    assert_eq!(world.opened("f").unwrap(), "one\ndeux\n");
    assert_eq!(world.bytes("f"), b"one\ntwo\n");
    // The next edit follows without a read.
    world.text("edit", edit("one", "un")).await;
    assert_eq!(world.opened("f").unwrap(), "un\ndeux\n");
    let requests = world.editor.requests();
    assert_eq!(
        requests,
        ["read f", "read f", "write f", "read f", "write f"]
    );
}

/// Proves ACP-4, FILE-23: an unread text in the editor is not overwritten.
#[tokio::test]
async fn write_replaces_the_text_in_the_editor() {
    let world = World::new();
    world.put("f", "saved\n");
    world.open("f", "unsaved\n");
    let new = json!({"path": "f", "content": "new\n"});
    let (_, text) = world.fail("write", new.clone()).await;
    assert!(text.contains("was not read"), "{text}");
    world.text("read", json!({"path": "f"})).await;
    let output = world.call("write", new).await.unwrap();
    assert!(output.display().contains("-unsaved\n+new\n"), "{output:?}");
    assert_eq!(world.opened("f").unwrap(), "new\n");
    assert_eq!(world.bytes("f"), b"saved\n");
}

/// Proves ACP-4, FILE-28: the text before a change is restored in the editor, if it was not changed since.
#[tokio::test]
async fn undo_restores_the_text_in_the_editor() {
    let world = World::new();
    world.put("f", "saved\n");
    world.open("f", "unsaved\n");
    world.text("read", json!({"path": "f"})).await;
    world.text("edit", edit("unsaved", "edited")).await;
    world.open("f", "edited by the user\n");
    let Err(UndoError::Refused(reasons)) = world.undone().await else {
        panic!("undone");
    };
    assert_eq!(reasons, ["f: it was changed later"]);
    world.open("f", "edited\n");
    assert_eq!(world.undone().await.unwrap(), ["restored f"]);
    assert_eq!(world.opened("f").unwrap(), "unsaved\n");
    assert_eq!(world.bytes("f"), b"saved\n");
    assert!(matches!(world.undone().await, Err(UndoError::Nothing)));
}

/// Proves ACP-4, FILE-28: a file that the editor created is removed from the disk.
#[tokio::test]
async fn undo_of_a_created_file_removes_it() {
    let editor = Editor {
        saves: true,
        ..Editor::default()
    };
    let world = World::with(editor, true, true);
    let new = json!({"path": "sub/f", "content": "new\n"});
    world.text("write", new).await;
    assert_eq!(world.bytes("sub/f"), b"new\n");
    assert_eq!(world.editor.requests(), ["read f", "write f"]);
    let lines = world.undone().await.unwrap();
    assert!(lines.contains(&"removed sub/f".to_owned()), "{lines:?}");
    assert!(!world.root.join("sub").exists());
}

/// Proves ACP-4: a file that exists only in the editor is read, but not replaced, and its creation is not undone.
#[tokio::test]
async fn file_without_a_path_on_disk_is_read_only() {
    let world = World::new();
    world.open("f", "unsaved\n");
    assert_eq!(
        world.text("read", json!({"path": "f"})).await,
        "     1\tunsaved"
    );
    let (_, text) = world
        .fail("write", json!({"path": "f", "content": "x"}))
        .await;
    assert!(text.contains("is not saved to the disk"), "{text}");
    assert_eq!(world.opened("f").unwrap(), "unsaved\n");
    world
        .text("write", json!({"path": "g", "content": "new\n"}))
        .await;
    let Err(UndoError::Refused(reasons)) = world.undone().await else {
        panic!("undone");
    };
    assert!(
        reasons[0].contains("exists only in the editor"),
        "{reasons:?}"
    );
    let (_, text) = world.fail("read", json!({"path": "h"})).await;
    assert!(text.contains("no such file or directory: h"), "{text}");
}

/// Proves ACP-4: a refusal by the editor fails the call. The disk is not used instead, and no record remains.
#[tokio::test]
async fn refusal_by_the_editor_fails_the_call() {
    let world = World::new();
    world.put("f", "one\n");
    world.text("read", json!({"path": "f"})).await;
    let refuse = |error| *world.editor.refuses.lock().unwrap() = Some(error);
    refuse(EditorError::Refused("the user said no".to_owned()));
    let new = json!({"path": "f", "content": "x"});
    let created = json!({"path": "g", "content": "x"});
    for (tool, params, expect) in [
        (
            "read",
            json!({"path": "f"}),
            "the editor refused to read f: the user said no",
        ),
        (
            "edit",
            edit("one", "1"),
            "the editor refused to read f: the user said no",
        ),
        (
            "write",
            new,
            "the editor refused to read f: the user said no",
        ),
        (
            "write",
            created.clone(),
            "the editor refused to write g, and nothing was written",
        ),
    ] {
        let (category, text) = world.fail(tool, params).await;
        assert_eq!(category, ToolErrorCategory::PermanentFailure, "{text}");
        assert!(text.contains(expect), "{text}");
    }
    assert_eq!(world.bytes("f"), b"one\n");
    assert!(!world.root.join("g").exists());
    assert!(matches!(world.undone().await, Err(UndoError::Nothing)));
    refuse(EditorError::Lost);
    let (_, text) = world.fail("read", json!({"path": "f"})).await;
    assert!(
        text.contains("the connection to the editor ended"),
        "{text}"
    );
    let (_, text) = world.fail("write", created).await;
    assert!(text.contains("was not read"), "{text}");
}

/// Proves ACP-4, FILE-4: the editor is not asked for a denied file or for one outside of the sandbox.
#[tokio::test]
async fn editor_is_not_asked_for_denied_files() {
    let world = World::new();
    world.put("denied.txt", "secret\n");
    std::os::unix::fs::symlink("denied.txt", world.root.join("link")).unwrap();
    for path in ["denied.txt", "link", "/etc/hostname", "denied-and-missing"] {
        for (tool, params) in [
            ("read", json!({"path": path})),
            (
                "edit",
                json!({"path": path, "old_string": "a", "new_string": "b"}),
            ),
        ] {
            let (category, text) = world.fail(tool, params).await;
            assert_eq!(category, ToolErrorCategory::PolicyBlocked, "{path}: {text}");
        }
    }
    let (category, _) = world
        .fail("write", json!({"path": "denied.txt", "content": "x"}))
        .await;
    assert_eq!(category, ToolErrorCategory::PolicyBlocked);
    assert_eq!(world.editor.requests(), Vec::<String>::new());
}

/// Proves ACP-4, FILE-22: a file that is not UTF-8 is read and written on the disk, byte by byte.
#[tokio::test]
async fn other_encodings_stay_on_the_disk() {
    let world = World::new();
    world.put("f", b"gr\xf6\xdfe one\n");
    world.put("image", b"\x89PNG\r\n\x1a\n");
    world.text("read", json!({"path": "f"})).await;
    world.text("edit", edit("one", "two")).await;
    assert_eq!(world.bytes("f"), b"gr\xf6\xdfe two\n");
    world
        .text("write", json!({"path": "f", "content": "plain\n"}))
        .await;
    assert_eq!(world.bytes("f"), b"plain\n");
    world.fail("read", json!({"path": "image"})).await;
    assert_eq!(world.editor.requests(), Vec::<String>::new());
    // The content before is not text, so undo writes it to the disk. Both calls are in one batch.
    assert_eq!(world.undone().await.unwrap(), ["restored f", "restored f"]);
    assert_eq!(world.bytes("f"), b"gr\xf6\xdfe one\n");
}

/// Proves ACP-4: an editor that only reads does not lose an unsaved text.
#[tokio::test]
async fn editor_that_only_reads_keeps_unsaved_changes() {
    let world = World::with(Editor::default(), true, false);
    world.put("f", "saved\n");
    world.open("f", "unsaved\n");
    let text = world.text("read", json!({"path": "f"})).await;
    assert_eq!(text, "     1\tunsaved");
    let (_, text) = world.fail("edit", edit("saved", "x")).await;
    assert!(text.contains("-unsaved\n+saved\n"), "{text}");
    assert_eq!(world.bytes("f"), b"saved\n");
}

/// Proves ACP-4: an editor that only writes gets the changed content of the disk.
#[tokio::test]
async fn editor_that_only_writes_gets_the_new_content() {
    let world = World::with(Editor::default(), false, true);
    world.put("f", "saved\n");
    world.text("read", json!({"path": "f"})).await;
    world.text("edit", edit("saved", "new")).await;
    assert_eq!(world.opened("f").unwrap(), "new\n");
    assert_eq!(world.editor.requests(), ["write f"]);
}

/// Proves ACP-4, PERM-7a: the diff in a question is against the text in the editor.
#[tokio::test]
async fn preview_shows_the_change_of_the_unsaved_text() {
    let world = World::new();
    world.put("f", "saved\n");
    world.open("f", "unsaved\n");
    let previews = FilePreviews::new(Arc::clone(&world.sandbox));
    let call = ToolCall::new("1", "edit", edit("unsaved", "new"), "test");
    let preview = previews.preview(&call).await.unwrap();
    assert!(
        preview.diff.contains("-unsaved\n+new\n"),
        "{}",
        preview.diff
    );
    assert_eq!(
        preview.basis,
        zeph_tools::preview::basis(Some(b"unsaved\n"))
    );
    let denied = ToolCall::new(
        "1",
        "write",
        json!({"path": "denied", "content": "x"}),
        "test",
    );
    world.editor.requests();
    assert!(previews.preview(&denied).await.is_none());
    assert_eq!(world.editor.requests(), Vec::<String>::new());
}

/// An editor that never replies.
struct Silent;

#[async_trait]
impl EditorReader for Silent {
    async fn read(&self, _: &Path) -> Result<String, EditorError> {
        std::future::pending().await
    }
}

/// Proves ACP-4, ACP-7: a call that waits for the editor can be cancelled.
#[tokio::test]
async fn waiting_for_the_editor_can_be_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "text").unwrap();
    let sandbox = Sandbox::new(&[], dir.path()).unwrap();
    let tools = FileExecutor::new(Arc::new(sandbox.with_editor(EditorFiles {
        reader: Some(Arc::new(Silent)),
        writer: None,
    })));
    let cx = CallContext::headless();
    let call = ToolCall::new("1", "read", json!({"path": "f"}), "test");
    let (cancel, running) = (cx.cancel.clone(), tools.execute_tool_call(&call, &cx));
    let (result, ()) = tokio::join!(running, async { cancel.cancel() });
    let error = result.unwrap_err();
    assert_eq!(error.category(), ToolErrorCategory::Cancelled, "{error}");
}
