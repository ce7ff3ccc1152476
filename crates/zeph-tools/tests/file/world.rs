//! A sandbox in its own directory, with a secret outside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use zeph_tools::executor::ToolExecutor as _;
use zeph_tools::file::{FileExecutor, Sandbox};
use zeph_tools::{CallContext, ToolCall, ToolError, ToolErrorCategory, ToolOutput, format_for_llm};

/// The content that no result may contain.
pub(crate) const SECRET: &str = "the-secret-outside";

/// A temporary directory with `root`, which is allowed, and `outside`, which is not allowed.
pub(crate) struct TestDir {
    pub(crate) dir: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) tools: FileExecutor,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self::with_roots(&[])
    }

    /// A sandbox with the read guard, whose records are in memory.
    pub(crate) fn seeing() -> Self {
        let mut world = Self::new();
        let sandbox = Sandbox::new(&[], &world.root).expect("a sandbox");
        world.tools = FileExecutor::new(Arc::new(sandbox));
        world
    }

    /// A sandbox with the allowed paths `roots`, relative to `root`, which is the working directory. Files
    /// may be changed without a read.
    pub(crate) fn with_roots(roots: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        std::fs::create_dir(&root).expect("root");
        std::fs::create_dir(&outside).expect("outside");
        std::fs::write(outside.join("secret.txt"), SECRET).expect("secret");
        for path in roots {
            std::fs::create_dir_all(root.join(path)).expect("an allowed directory");
        }
        let allowed: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        let sandbox = Sandbox::new(&allowed, &root)
            .expect("a sandbox")
            .with_seen(None);
        Self {
            root: sandbox.cwd().to_owned(),
            outside: sandbox.cwd().parent().expect("a parent").join("outside"),
            tools: FileExecutor::new(Arc::new(sandbox)),
            dir,
        }
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
        std::fs::write(&path, content).expect("a file");
        path
    }

    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.root.join(path)).expect("a file")
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.root.join(path)).expect("a link");
    }

    pub(crate) async fn call(&self, tool: &str, params: Value) -> Result<ToolOutput, ToolError> {
        self.call_in(tool, params, &CallContext::headless()).await
    }

    pub(crate) async fn call_in(
        &self,
        tool: &str,
        params: Value,
        cx: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let call = ToolCall::new("1", tool, params, "test");
        let result = self.tools.execute_tool_call(&call, cx).await;
        result.map(|output| output.expect("a file tool"))
    }

    /// The text of a call that must succeed.
    pub(crate) async fn text(&self, tool: &str, params: Value) -> String {
        match self.call(tool, params).await {
            Ok(output) => output.summary,
            Err(error) => panic!("{tool}: {}", format_for_llm(&error)),
        }
    }

    /// The category and the text of a call that must fail.
    pub(crate) async fn fail(&self, tool: &str, params: Value) -> (ToolErrorCategory, String) {
        match self.call(tool, params).await {
            Ok(output) => panic!("{tool} succeeded: {}", output.summary),
            Err(error) => (error.category(), format_for_llm(&error)),
        }
    }

    /// Asserts that nothing outside was changed.
    pub(crate) fn assert_outside_untouched(&self) {
        let names: Vec<_> = std::fs::read_dir(&self.outside)
            .expect("outside")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["secret.txt"]);
        let secret = std::fs::read_to_string(self.outside.join("secret.txt")).expect("secret");
        assert_eq!(secret, SECRET);
    }

    /// Asserts that `path` contains no temporary file.
    pub(crate) fn assert_no_leftovers(&self, path: &str) {
        for entry in std::fs::read_dir(self.root.join(path)).expect("a directory") {
            let name = entry.expect("an entry").file_name();
            assert!(
                !name.to_string_lossy().starts_with(".zeph-tmp-"),
                "{name:?}"
            );
        }
    }
}

/// Creates a FIFO.
pub(crate) fn fifo(path: &Path) {
    use rustix::fs::{CWD, Mode, mkfifoat};
    mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).expect("a FIFO");
}
