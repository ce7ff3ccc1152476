//! Changes of the user's configuration file: a pure edit of its text, a check of the new text, and an atomic
//! replacement.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::config::{ConfigErrors, Environment, FlagOverrides, Paths, check_file};
use crate::output::sanitize::visible;

/// The user's file and its text.
pub(super) struct UserFile {
    pub(super) path: PathBuf,
    /// The text; empty if the file does not exist.
    pub(super) text: String,
}

impl UserFile {
    /// Reads the user's file, or the one that `--config` names.
    ///
    /// # Errors
    /// The file has no location, or it cannot be read.
    pub(super) fn read(env: &Environment, flags: &FlagOverrides) -> anyhow::Result<Self> {
        let paths = Paths::locate(env, flags.config.as_deref()).map_err(ConfigErrors::from)?;
        let path = env.cwd.join(&paths.user_file);
        let text =
            read_or_empty(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Self { path, text })
    }

    /// The path for display.
    pub(super) fn name(&self) -> String {
        visible(&self.path.display().to_string())
    }

    /// Replaces the file by `new`, if `new` is a valid configuration and the file has not changed meanwhile.
    ///
    /// # Errors
    /// [`ConfigErrors`] for an invalid text; failures of writing. The file is then unchanged.
    pub(super) fn replace(
        &self,
        env: &Environment,
        flags: &FlagOverrides,
        new: &str,
    ) -> anyhow::Result<()> {
        self.write(new, |written| check_file(env, flags, written).map(|_| ()))
            .with_context(|| format!("{} was not changed", self.name()))
    }

    /// Replaces the file atomically, if `check` accepts the new one. A link stays a link, and the mode stays.
    fn write(
        &self,
        new: &str,
        check: impl FnOnce(&Path) -> Result<(), ConfigErrors>,
    ) -> anyhow::Result<()> {
        let target = real_path(&self.path)?;
        let directory = target.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        // Temporary files have mode 0600.
        let mut temporary = tempfile::Builder::new()
            .suffix(".toml")
            .tempfile_in(directory)?;
        temporary.write_all(new.as_bytes())?;
        if let Ok(metadata) = fs::metadata(&target) {
            temporary
                .as_file()
                .set_permissions(metadata.permissions())?;
        }
        temporary.as_file().sync_all()?;
        check(temporary.path()).map_err(|errors| errors.with_user_file(&self.path))?;
        if read_or_empty(&target)? != self.text {
            bail!("it changed in the meantime; run the command again");
        }
        temporary.persist(&target).map_err(|error| error.error)?;
        Ok(())
    }
}

fn read_or_empty(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the user's own file is written where its link points to"
)]
fn real_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-9: a change that another program makes meanwhile is not lost.
    #[test]
    fn changed_file_is_not_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("config.toml");
        fs::write(&path, "# one\n").unwrap();
        let file = UserFile {
            path: path.clone(),
            text: "# one\n".to_owned(),
        };
        fs::write(&path, "# two\n").unwrap();
        let error = file.write("# three\n", |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("changed in the meantime"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "# two\n");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
