//! The workspace: its location, its files, and cargo commands in it.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xshell::{Cmd, Shell, cmd};

use crate::features::Features;

/// Entries without own sources. `.git` is a file in a linked work tree. Directories with a `CACHEDIR.TAG` are
/// skipped too.
const SKIPPED: &[&str] = &[".git", "target", ".zeph", "corpus", "artifacts"];

/// The checkout and a shell in its root.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) sh: Shell,
    metadata: Value,
    /// The features with which this run has built the tests of the workspace, and so the debug binary.
    built_tests: Cell<Option<Features>>,
}

/// A text file of the checkout.
pub(crate) struct TextFile {
    /// The path relative to the root, with `/` as the separator.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Project {
    /// The workspace that this program was built from.
    pub(crate) fn locate() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask has no parent directory")?
            .to_path_buf();
        let sh = Shell::new()?;
        sh.change_dir(&root);
        let metadata = clean(cmd!(sh, "cargo metadata --no-deps --format-version 1"))
            .quiet()
            .read()?;
        let metadata = serde_json::from_str(&metadata).context("output of `cargo metadata`")?;
        Ok(Self {
            root,
            sh,
            metadata,
            built_tests: Cell::new(None),
        })
    }

    /// `cargo …` in the root, without the variables that `cargo run` set for this program. Some build scripts
    /// track these variables and would run again.
    pub(crate) fn cargo<'a>(&'a self, args: &str) -> Cmd<'a> {
        clean(self.sh.cmd("cargo")).args(args.split_whitespace())
    }

    /// The packages of the workspace, as `cargo metadata` describes them.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &Value> {
        self.metadata["packages"].as_array().into_iter().flatten()
    }

    /// Records that the tests of the workspace are built.
    pub(crate) fn set_tests_built(&self, features: Features) {
        self.built_tests.set(Some(features));
    }

    /// Builds the debug binary, and returns its path.
    ///
    /// The build of the tests contains a binary. With dependencies of tests, some crates have more features; a build of the
    /// binary alone would compile them again.
    pub(crate) fn debug_binary(&self) -> Result<PathBuf> {
        match self.built_tests.get() {
            Some(features) => self.cargo("build --tests").args(features.args()).run()?,
            None => self.cargo("build -p zeph --bin zeph").run()?,
        }
        let name = format!("zeph{}", std::env::consts::EXE_SUFFIX);
        Ok(self.target_dir()?.join("debug").join(name))
    }

    /// The target directory of cargo.
    pub(crate) fn target_dir(&self) -> Result<PathBuf> {
        let dir = self.metadata["target_directory"].as_str();
        Ok(PathBuf::from(
            dir.context("`cargo metadata` names no target_directory")?,
        ))
    }

    /// The path of the release binary, which may not be built.
    pub(crate) fn release_binary(&self) -> Result<PathBuf> {
        let name = format!("zeph{}", std::env::consts::EXE_SUFFIX);
        Ok(self.target_dir()?.join("release").join(name))
    }

    /// A program of the crate `package`, which is built into the target folder if it is missing.
    pub(crate) fn tool(&self, package: &str, program: &str) -> Result<PathBuf> {
        let dir = self.target_dir()?.join("tools");
        let path = dir
            .join("bin")
            .join(format!("{program}{}", std::env::consts::EXE_SUFFIX));
        if !path.exists() {
            self.cargo("install --quiet --locked --root")
                .arg(&dir)
                .arg(package)
                .run()
                .with_context(|| format!("{program} is missing, and cannot be installed"))?;
        }
        Ok(path)
    }

    /// Every UTF-8 file of the checkout, sorted by path.
    pub(crate) fn text_files(&self) -> Result<Vec<TextFile>> {
        let mut files = Vec::new();
        let mut pending = vec![self.root.clone()];
        while let Some(dir) = pending.pop() {
            for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
                let entry = entry?;
                let path = entry.path();
                let kind = entry.file_type()?;
                if SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                    continue;
                }
                if kind.is_dir() {
                    if !path.join("CACHEDIR.TAG").exists() {
                        pending.push(path);
                    }
                } else if kind.is_file()
                    && let Ok(text) = String::from_utf8(std::fs::read(&path)?)
                {
                    let path = self.relative(&path)?;
                    files.push(TextFile { path, text });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// `path` relative to the root, with `/` as the separator.
    pub(crate) fn relative(&self, path: &Path) -> Result<String> {
        let below = path
            .strip_prefix(&self.root)
            .with_context(|| format!("{} is outside of the workspace", path.display()))?;
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        Ok(parts.join("/"))
    }
}

/// Prints `findings`.
///
/// # Errors
/// There is a finding.
pub(crate) fn verdict(what: &str, findings: &[String]) -> Result<()> {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("{what}: 1 finding"),
        many => bail!("{what}: {many} findings"),
    }
}

fn clean(cmd: Cmd<'_>) -> Cmd<'_> {
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        })
        .fold(cmd, |cmd, name| cmd.env_remove(name))
}
