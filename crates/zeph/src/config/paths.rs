//! Locations of files, and the resolution of paths in the configuration.

use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::env::Environment;
use super::error::ConfigError;

/// The most bytes that a configuration file may have.
const MAX_BYTES: u64 = 256 * 1024;

/// The name of a project's file, from the project's directory.
pub(crate) const PROJECT_FILE: &str = ".zeph/config.toml";

/// The name of the file with a project's filter rules, from the project's directory.
pub(crate) const PROJECT_FILTERS: &str = ".zeph/filters.toml";

/// The locations of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    /// The user's file, or the one that `--config` names; it need not exist.
    pub(crate) user_file: PathBuf,
    /// The project's file, if there is one.
    pub(crate) project_file: Option<PathBuf>,
    /// The directory of data.
    pub(crate) data_dir: PathBuf,
    /// The database: `[memory] path`, or `zeph.db` in the data directory.
    pub(crate) database: PathBuf,
    /// The permanent grants: `policies.json` in the configuration directory.
    pub(crate) policies: PathBuf,
    /// The audit log: `[tools.audit] path`, or `audit.jsonl` in the data directory.
    pub(crate) audit_log: PathBuf,
}

impl Paths {
    /// Finds the files; `config` replaces the user's file.
    ///
    /// # Errors
    /// If the environment does not determine the location of the user's files.
    pub(crate) fn locate(env: &Environment, config: Option<&Path>) -> Result<Self, ConfigError> {
        let lost = |what: &str, variable: &str| {
            ConfigError::general(format!(
                "the directory for {what} is unknown: HOME is not set"
            ))
            .help(format!("set HOME or {variable} to an absolute path"))
        };
        let user_file = match config {
            Some(file) => env.cwd.join(file),
            None => env
                .config_home()
                .ok_or_else(|| lost("the configuration", "XDG_CONFIG_HOME"))?
                .join("zeph/config.toml"),
        };
        let data_dir = env
            .data_home()
            .ok_or_else(|| lost("data", "XDG_DATA_HOME"))?
            .join("zeph");
        Ok(Self {
            project_file: of_project(env, PROJECT_FILE),
            database: data_dir.join("zeph.db"),
            audit_log: data_dir.join("audit.jsonl"),
            policies: match env.config_home() {
                Some(folder) => folder.join("zeph/policies.json"),
                None => user_file.with_file_name("policies.json"),
            },
            user_file,
            data_dir,
        })
    }
}

/// The directory of the current project: the nearest one with `.git`, upwards and below the home directory, otherwise
/// the working directory.
pub(crate) fn project_directory(env: &Environment) -> PathBuf {
    let home = env.home();
    let mut above = env
        .cwd
        .ancestors()
        .take_while(|directory| home.as_deref() != Some(directory));
    let found = above.find(|directory| is_there(&directory.join(".git")));
    found.unwrap_or(&env.cwd).to_owned()
}

/// The project's file with this name: that of the nearest directory, upwards from the working directory to the one
/// with `.git`, and never that of the home directory or above it. An existing file that cannot be examined counts, so
/// that reading it fails.
pub(crate) fn of_project(env: &Environment, name: &str) -> Option<PathBuf> {
    let home = env.home();
    for directory in env
        .cwd
        .ancestors()
        .take_while(|directory| home.as_deref() != Some(directory))
    {
        let file = directory.join(name);
        if is_there(&file) {
            return Some(file);
        }
        if is_there(&directory.join(".git")) {
            return None;
        }
    }
    None
}

/// The directories of the project, from the working directory up to the one with `.git`, without the home directory
/// and those above it; and whether a `.git` was found.
pub(crate) fn project_directories(env: &Environment) -> (Vec<PathBuf>, bool) {
    let home = env.home();
    let mut found = Vec::new();
    let above = env.cwd.ancestors();
    for directory in above.take_while(|directory| home.as_deref() != Some(directory)) {
        found.push(directory.to_owned());
        if is_there(&directory.join(".git")) {
            return (found, true);
        }
    }
    (found, false)
}

fn is_there(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
    }
}

/// The directory `DIR` of the file `file` (`DIR/.zeph/NAME`).
pub(crate) fn project_root(file: &Path) -> &Path {
    file.parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("/"))
}

/// Reads a configuration file. A project's must be a regular file: opening a pipe would wait for its writer.
///
/// # Errors
/// An error of the system; `InvalidData` if the file is too large or not UTF-8.
pub(crate) fn read(file: &Path, must_be_regular: bool) -> io::Result<String> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    if must_be_regular {
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let opened = options.open(file)?;
    if must_be_regular && !opened.metadata()?.is_file() {
        return Err(invalid("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid(format!(
            "it has more than {} KiB",
            MAX_BYTES / 1024
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        invalid(format!("line {line} is not UTF-8"))
    })
}

/// Resolves a path of the configuration: `~` is the home directory, and a relative path starts at `base`.
///
/// # Errors
/// If the path starts with `~` and the home directory is unknown.
pub(crate) fn absolute(path: &Path, base: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    let whole = match path.strip_prefix("~") {
        Ok(rest) => home
            .ok_or_else(|| format!("`{}` needs HOME, which is not set", path.display()))?
            .join(rest),
        Err(_) => base.join(path),
    };
    // Drops the `.` in it.
    Ok(whole.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs;

    fn env(cwd: &Path, home: &Path) -> Environment {
        Environment::of(cwd, &[("HOME", home.to_str().unwrap())])
    }

    /// Proves CFG-1.
    #[test]
    fn nearest_project_file_up_to_the_repository_is_used() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        for directory in [
            "home/.zeph",
            "home/repo/.git",
            "home/repo/a/b",
            "home/repo/c/.zeph",
            "home/plain/x",
        ] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("home/.zeph/config.toml"), "").unwrap();
        fs::write(root.join("home/repo/c/.zeph/config.toml"), "").unwrap();
        let check = |cwd: &str, expect: Option<&str>| {
            let env = env(&root.join(cwd), &root.join("home"));
            let found = of_project(&env, PROJECT_FILE);
            assert_eq!(found, expect.map(|file| root.join(file)), "{cwd}");
        };
        check("home", None);
        check("home/repo/a/b", None);
        check("home/repo/c", Some("home/repo/c/.zeph/config.toml"));
        check("home/plain/x", None);
        fs::write(root.join(".zeph"), "a file, not a directory").unwrap();
        check("home/repo/a", None);
        fs::create_dir(root.join("home/repo/.zeph")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("home/repo/.zeph/config.toml")).unwrap();
        check("home/repo/a/b", Some("home/repo/.zeph/config.toml"));
    }

    /// Proves CFG-5.
    #[test]
    fn missing_home_names_the_variable_to_set() {
        let env = Environment::of("/", &[]);
        let error = Paths::locate(&env, None).unwrap_err().to_string();
        assert_eq!(
            error,
            "the directory for the configuration is unknown: HOME is not set\n  help: set HOME or XDG_CONFIG_HOME to an absolute path"
        );
        let error = Paths::locate(&env, Some(Path::new("c")))
            .unwrap_err()
            .to_string();
        assert!(error.contains("XDG_DATA_HOME"), "{error}");
        let env = Environment::of("/w", &[("XDG_DATA_HOME", "/d")]);
        let paths = Paths::locate(&env, Some(Path::new("c"))).unwrap();
        assert_eq!(paths.user_file, Path::new("/w/c"));
        assert_eq!(paths.database, Path::new("/d/zeph/zeph.db"));
    }

    #[test]
    fn reading_is_bounded_and_does_not_block() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("f");
        let check = |must_be_regular: bool, expect: &str| {
            let error = read(&file, must_be_regular).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &file,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        check(true, "not a regular file");
        fs::remove_file(&file).unwrap();
        check(true, "No such file");
        fs::write(&file, b"a = 1\nb = \"\xff\"").unwrap();
        check(true, "line 2 is not UTF-8");
        fs::write(&file, vec![b' '; 256 * 1024 + 1]).unwrap();
        check(false, "more than 256 KiB");
        fs::write(&file, "x").unwrap();
        assert_eq!(read(&file, true).unwrap(), "x");
    }

    #[test]
    fn relative_and_home_paths_become_absolute() {
        let check = |path: &str, home: Option<&str>, expect: Result<&str, &str>| {
            let found = absolute(Path::new(path), Path::new("/base"), home.map(Path::new));
            let expect = expect.map(PathBuf::from).map_err(str::to_owned);
            assert_eq!(found, expect, "{path}");
        };
        check("a/./b", None, Ok("/base/a/b"));
        check(".", None, Ok("/base"));
        check("/x", None, Ok("/x"));
        check("~", Some("/h"), Ok("/h"));
        check("~/x", Some("/h"), Ok("/h/x"));
        check("~user/x", Some("/h"), Ok("/base/~user/x"));
        check("~/x", None, Err("`~/x` needs HOME, which is not set"));
    }
}
