//! The only access to the environment of the process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

/// The environment of the process. All other code takes it as an argument.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// The environment variables.
    pub(crate) vars: BTreeMap<OsString, OsString>,
    /// The working directory, absolute.
    pub(crate) cwd: PathBuf,
}

impl Environment {
    /// Takes a snapshot of this process.
    ///
    /// # Errors
    /// If the working directory cannot be found: it was deleted, or may not be read.
    #[allow(clippy::disallowed_methods, reason = "this file reads the environment")]
    pub(crate) fn of_process() -> io::Result<Self> {
        let cwd = std::env::current_dir()?;
        Ok(Self {
            cwd,
            ..Self::variables_of_process()
        })
    }

    /// Takes the variables of this process, whose working directory may be gone.
    #[allow(clippy::disallowed_methods, reason = "this file reads the environment")]
    pub(crate) fn variables_of_process() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            cwd: PathBuf::new(),
        }
    }

    /// The value of a variable; an empty one counts as not set.
    pub(crate) fn var(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let value = self.vars.get(name.as_ref())?;
        (!value.is_empty()).then_some(value)
    }

    /// The user's home.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.directory("HOME")
    }

    /// The base directory of configuration files (XDG Base Directory Specification 0.8).
    pub(crate) fn config_home(&self) -> Option<PathBuf> {
        self.directory("XDG_CONFIG_HOME")
            .or_else(|| Some(self.home()?.join(".config")))
    }

    /// The base directory of data (XDG Base Directory Specification 0.8).
    pub(crate) fn data_home(&self) -> Option<PathBuf> {
        self.directory("XDG_DATA_HOME")
            .or_else(|| Some(self.home()?.join(".local/share")))
    }

    /// The base directory of state, such as logs (XDG Base Directory Specification 0.8).
    pub(crate) fn state_home(&self) -> Option<PathBuf> {
        self.directory("XDG_STATE_HOME")
            .or_else(|| Some(self.home()?.join(".local/state")))
    }

    /// An absolute path from a variable. The specification requires that relative paths are ignored.
    fn directory(&self, name: &str) -> Option<PathBuf> {
        self.var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }
}

#[cfg(test)]
impl Environment {
    /// An environment for tests.
    pub(crate) fn of(cwd: impl Into<PathBuf>, vars: &[(&str, &str)]) -> Self {
        let vars = vars
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self {
            vars,
            cwd: cwd.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CFG-1, CFG-5.
    #[test]
    fn directories_follow_xdg() {
        let check = |vars: &[(&str, &str)], config: Option<&str>, data: Option<&str>| {
            let env = Environment::of("/", vars);
            assert_eq!(env.config_home(), config.map(PathBuf::from), "{vars:?}");
            assert_eq!(env.data_home(), data.map(PathBuf::from), "{vars:?}");
        };
        let home = ("HOME", "/h");
        check(&[home], Some("/h/.config"), Some("/h/.local/share"));
        check(
            &[home, ("XDG_CONFIG_HOME", "/c")],
            Some("/c"),
            Some("/h/.local/share"),
        );
        check(
            &[home, ("XDG_DATA_HOME", "/d")],
            Some("/h/.config"),
            Some("/d"),
        );
        check(
            &[home, ("XDG_DATA_HOME", "d")],
            Some("/h/.config"),
            Some("/h/.local/share"),
        );
        check(&[("HOME", ""), ("XDG_CONFIG_HOME", "/c")], Some("/c"), None);
        check(&[], None, None);
    }

    #[test]
    fn process_environment_has_a_working_directory() {
        let env = Environment::of_process().unwrap();
        assert!(env.cwd.is_absolute());
        assert!(env.var("PATH").is_some());
    }
}
