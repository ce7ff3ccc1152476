//! Paths of the machine that builds: the flags that replace them in a binary, and a search that finds the others.
//!
//! A binary with such paths differs from one that was built in another folder, and names the user who built it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::project::Project;

/// Folders of this machine, each with its replacement.
pub(super) struct MachinePaths(Vec<(PathBuf, &'static str)>);

impl MachinePaths {
    /// The checkout, the target folder, and the folders of cargo and rustup.
    pub(super) fn of(project: &Project) -> Result<Self> {
        let mut folders = vec![
            (project.root.clone(), "zeph"),
            (project.target_dir()?, "zeph/target"),
        ];
        for (variable, default) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(default));
            let folder = std::env::var_os(variable).map(PathBuf::from).or_else(home);
            folders.extend(folder.map(|folder| (folder, variable)));
        }
        Ok(Self(folders))
    }

    /// The flags of rustc.
    pub(super) fn rust_flags(&self) -> String {
        self.flags("--remap-path-prefix")
    }

    /// The flags of the C compiler. Assertions of C contain the path of their file.
    pub(super) fn c_flags(&self) -> String {
        self.flags("-ffile-prefix-map")
    }

    fn flags(&self, flag: &str) -> String {
        let folders = self.0.iter();
        let flags: Vec<_> = folders
            .map(|(folder, name)| format!("{flag}={}={name}", folder.display()))
            .collect();
        flags.join(" ")
    }

    /// Searches the binary for the folders.
    ///
    /// # Errors
    /// It cannot be read, or contains one of them.
    pub(super) fn ensure_absent(&self, binary: &Path) -> Result<()> {
        let bytes = std::fs::read(binary).with_context(|| binary.display().to_string())?;
        match self.found(&bytes) {
            Some(text) => bail!(
                "{} contains a path of this machine: {text}; a compiler of its build ignores the flags that replace it",
                binary.display()
            ),
            None => Ok(()),
        }
    }

    /// The start of the first text that begins with one of the folders.
    fn found(&self, bytes: &[u8]) -> Option<String> {
        let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut splits = starts.map(|(at, _)| bytes.split_at(at));
        let (_, text) = splits.find(|(before, text)| {
            let mut folders = self.0.iter();
            folders.any(|(folder, _)| is_at(folder, before, text))
        })?;
        Some(String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned())
    }
}

/// Whether `text` begins with the folder. A folder at the root, such as `/src`, is also a part of relative paths: the text
/// before it must not be a part of the same path.
fn is_at(folder: &Path, before: &[u8], text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(folder.as_os_str().as_encoded_bytes()) else {
        return false;
    };
    let is_part_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let is_at_root = folder.components().count() <= 2;
    let follows_name = before.last().is_some_and(is_part_of_name);
    let is_whole = rest.first().is_none_or(|byte| !is_part_of_name(byte));
    is_whole && !(is_at_root && follows_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-4: a path of the machine in a binary is found, and its replacement is not.
    #[test]
    fn path_of_the_machine_is_found_in_a_binary() {
        let paths = MachinePaths(vec![
            ("/opt/build/zeph".into(), "zeph"),
            ("/opt/build/.cargo".into(), "CARGO_HOME"),
        ]);
        assert_eq!(
            paths.c_flags(),
            "-ffile-prefix-map=/opt/build/zeph=zeph -ffile-prefix-map=/opt/build/.cargo=CARGO_HOME"
        );
        let check = |bytes: &[u8], expect: Option<&str>| {
            assert_eq!(paths.found(bytes).as_deref(), expect);
        };
        check(b"\0CARGO_HOME/registry/a.c\0/opt/build/shop\0", None);
        check(
            b"\0/opt/other\0/opt/build/.cargo/registry/a.c",
            Some("/opt/build/.cargo/registry/a.c"),
        );
        check(b"\0/opt/build/zeph-2/a.rs", None);
        check(b"", None);

        let paths = MachinePaths(vec![("/src".into(), "zeph")]);
        let check = |bytes: &[u8], is_found: bool| {
            assert_eq!(paths.found(bytes).is_some(), is_found);
        };
        check(b"\0crates/zeph/src/main.rs\0", false);
        check(b"\0/srcs/main.rs\0", false);
        check(b"\0/src/main.rs\0", true);
        check(b"/src\0", true);
    }
}
