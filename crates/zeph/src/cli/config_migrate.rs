//! `zeph config migrate`: replaces the old keys of a configuration file.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use zeph_edit::text_diff;

use super::config_cmd::free_backup;
use super::filter::trust::agrees;
use super::print;
use crate::config::{ConfigErrors, Environment, FlagOverrides, Paths, check_file, migrated_file};

/// The options of the command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    /// The project's file instead of the user's.
    pub(super) project: bool,
    /// Show the changes only.
    pub(super) dry_run: bool,
    /// Write without a question.
    pub(super) yes: bool,
}

/// Shows the changes, then writes a backup and the new file.
///
/// # Errors
/// [`ConfigErrors`] for an invalid file; failures of reading and writing.
pub(super) fn migrate(
    env: &Environment,
    flags: &FlagOverrides,
    options: Options,
) -> anyhow::Result<()> {
    let paths = Paths::locate(env, flags.config.as_deref()).map_err(ConfigErrors::from)?;
    let file = match (options.project, paths.project_file) {
        (false, _) => paths.user_file,
        (true, Some(file)) => file,
        (true, None) => bail!("there is no project file (.zeph/config.toml) here"),
    };
    if !options.project && flags.config.is_none() && fs::symlink_metadata(&file).is_err() {
        return print(&format!(
            "{} does not exist: nothing to migrate",
            file.display()
        ));
    }
    check_file(env, flags, &file)?;
    let found = migrated_file(&file, options.project)?;
    let Some((old, new)) = found else {
        return print(&format!(
            "{} has no old keys: nothing to migrate",
            file.display()
        ));
    };
    let name = file.display().to_string();
    print(&text_diff((&name, &name), &old, &new, 3))?;
    if options.dry_run {
        return Ok(());
    }
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if can_ask && !options.yes && !agrees("Write these changes? [y/N]")? {
        return print("nothing was written");
    }
    let backup = write(&file, &old, &new)
        .with_context(|| format!("{} cannot be written", file.display()))?;
    print(&format!(
        "kept the old file as {}\nwrote {name}",
        backup.display()
    ))
}

/// Writes the backup, then replaces the file atomically. A link stays a link.
fn write(file: &Path, old: &str, new: &str) -> io::Result<PathBuf> {
    let target = real_path(file)?;
    let directory = target.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::NamedTempFile::new_in(directory)?;
    temporary.write_all(new.as_bytes())?;
    let permissions = fs::metadata(&target)?.permissions();
    temporary.as_file().set_permissions(permissions)?;
    temporary.as_file().sync_all()?;
    let backup = free_backup(file);
    let mut copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&backup)?;
    copy.write_all(old.as_bytes())?;
    copy.sync_all()?;
    if fs::read(&target)? != old.as_bytes() {
        let _ = fs::remove_file(&backup);
        return Err(io::Error::other(
            "it changed in the meantime; run the command again",
        ));
    }
    temporary.persist(&target).map_err(|error| error.error)?;
    Ok(backup)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the user's own file is written where its link points to"
)]
fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}
