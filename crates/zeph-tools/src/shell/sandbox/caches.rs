//! The caches of package managers that commands may write. The table is `caches.toml`.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::shell::command::variable;

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let table: Result<Table, _> = toml::from_str(include_str!("caches.toml"));
    // A test checks the table. An empty one grants nothing.
    table.map(|table| table.cache).unwrap_or_default()
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    cache: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    programs: Vec<String>,
    variable: Option<String>,
    base: String,
    paths: Vec<String>,
    #[serde(default)]
    ignored: Vec<String>,
}

impl Row {
    /// The directory that holds the cache; `None` without a home directory.
    fn base(&self, env: &[(OsString, OsString)]) -> Option<PathBuf> {
        let given = self.variable.as_deref();
        let given = given
            .and_then(|name| variable(env, name))
            .map(PathBuf::from);
        if let Some(given) = given.filter(|path| path.is_absolute()) {
            return Some(given);
        }
        let home = PathBuf::from(variable(env, "HOME")?);
        let below = self.base.strip_prefix("~/")?;
        home.is_absolute().then(|| home.join(below))
    }

    /// The absolute paths of entries of this row; none without a home directory.
    fn whole(&self, entries: &[String], env: &[(OsString, OsString)]) -> Vec<PathBuf> {
        let base = self.base(env).into_iter();
        let join = |base: PathBuf| {
            let paths = entries.iter().map(|path| path.trim_end_matches('/'));
            paths.map(|path| base.join(path)).collect::<Vec<_>>()
        };
        base.flat_map(join).collect()
    }
}

/// The existing caches, for commands with the environment `env`. The paths are absolute.
pub(super) fn existing(env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let paths = TABLE.iter().flat_map(|row| row.whole(&row.paths, env));
    paths.filter(|path| path.exists()).collect()
}

/// Creates the missing caches of the programs that a command names. A cache that cannot be created is skipped: the
/// sandbox then refuses the write, and reports it.
pub(super) fn create(programs: &[&str], env: &[(OsString, OsString)]) {
    let is_named = |row: &&Row| {
        row.programs
            .iter()
            .any(|name| programs.contains(&name.as_str()))
    };
    for row in TABLE.iter().filter(is_named) {
        for (entry, path) in row.paths.iter().zip(row.whole(&row.paths, env)) {
            if entry.ends_with('/') {
                let _ = fs::create_dir_all(&path);
            } else if path
                .parent()
                .is_some_and(|base| fs::create_dir_all(base).is_ok())
            {
                let _ = OpenOptions::new().append(true).create(true).open(&path);
            }
        }
    }
}

/// Whether a refused write to `path` is normal for a package manager.
pub(super) fn is_ignored(path: &Path, env: &[(OsString, OsString)]) -> bool {
    let mut ignored = TABLE.iter().flat_map(|row| row.whole(&row.ignored, env));
    ignored.any(|above| path.starts_with(above))
}

/// Whether `path` is in a cache, existing or not.
pub(super) fn contains(path: &Path, env: &[(OsString, OsString)]) -> bool {
    let mut caches = TABLE.iter().flat_map(|row| row.whole(&row.paths, env));
    caches.any(|above| path.starts_with(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(home: &Path, more: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let more = more.iter().map(|(name, value)| (name.into(), value.into()));
        std::iter::once(("HOME".into(), home.into()))
            .chain(more)
            .collect()
    }

    /// Proves SH-20: the table is valid and never lists a directory with programs, startup files or configuration.
    #[test]
    fn table_lists_caches_only() {
        assert!(TABLE.len() > 10);
        let parts = |row: &Row| -> Vec<String> {
            row.paths
                .iter()
                .map(|path| format!("{}/{path}", row.base))
                .collect()
        };
        for path in TABLE.iter().flat_map(parts) {
            assert!(path.starts_with("~/"), "{path}");
            for forbidden in ["/bin", "rc", "config", "hooks", "profile", "env"] {
                let mut names = path.trim_end_matches('/').split('/');
                assert!(!names.any(|name| name == forbidden), "{path}");
            }
        }
    }

    /// Proves SH-20, D-35: the caches of named programs are created, and only existing ones are writable.
    #[test]
    fn caches_of_named_programs_are_created() {
        let home = tempfile::tempdir().unwrap();
        let env = env(home.path(), &[]);
        assert!(existing(&env).is_empty());
        create(&["ls", "npm"], &env);
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            let below = |path: &PathBuf| {
                path.strip_prefix(home.path())
                    .unwrap()
                    .display()
                    .to_string()
            };
            paths.iter().map(below).collect()
        };
        assert_eq!(
            names(existing(&env)),
            [
                ".npm/_cacache",
                ".npm/_logs",
                ".npm/_prebuilds",
                ".npm/_update-notifier-last-checked"
            ]
        );
        assert!(
            home.path()
                .join(".npm/_update-notifier-last-checked")
                .is_file()
        );
        create(&["cargo"], &env);
        assert!(home.path().join(".cargo/registry").is_dir());
        assert!(home.path().join(".cargo/.package-cache").is_file());
    }

    #[test]
    fn variables_move_caches() {
        let home = tempfile::tempdir().unwrap();
        let other = home.path().join("other");
        let env = env(home.path(), &[("CARGO_HOME", other.to_str().unwrap())]);
        create(&["cargo"], &env);
        assert!(other.join("registry").is_dir());
        assert!(contains(&other.join("registry/x/y"), &env));
        assert!(!contains(&other.join("config.toml"), &env));
        assert!(!contains(&home.path().join(".cargo/registry"), &env));
        assert!(is_ignored(&other.join(".global-cache"), &env));
        assert!(!is_ignored(&other.join("bin/x"), &env));
        assert!(existing(&[]).is_empty());
    }
}
