//! The sample project: its location, and the environment of the tools.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

use crate::config::Environment;

/// The files of the project. They carry other names here, so that neither cargo nor rustfmt takes
/// them for parts of this one.
pub(super) const FILES: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("sample/Cargo.toml.in")),
    ("src/lib.rs", include_str!("sample/lib.rs.in")),
    ("src/pages.rs", include_str!("sample/pages.rs.in")),
];

/// Variables that would affect the sample's build or its output; `*` at the end matches the rest.
const LEFT_OUT: [&str; 8] = [
    "CARGO_*",
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_TEST_*",
];

/// The variable by which a surrounding agent knows the processes that it started.
const CALL_TAG: &str = "ZEPH_CALL_ID";

/// The sample project and its temporary files.
pub(super) struct Sample {
    /// The project.
    pub(super) project: PathBuf,
    /// The environment of the tools.
    pub(super) env: Environment,
    /// Configuration, data, caches and build output; also the project, unless the user keeps it.
    folder: TempDir,
}

impl Sample {
    /// Creates the project in a temporary folder, or at `keep`, which must not exist.
    ///
    /// # Errors
    /// The file or folder that cannot be created.
    pub(super) fn lay_out(
        outer: &Environment,
        cargo: &Path,
        keep: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("zeph-demo-")
            .tempdir()
            .context("a temporary folder cannot be created; TMPDIR sets its parent folder")?;
        for name in ["tmp", "tmp/cargo"] {
            make(&folder.path().join(name))?;
        }
        let project = match keep {
            Some(keep) => outer.cwd.join(keep),
            None => folder.path().join("shelf"),
        };
        match fs::create_dir(&project) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => anyhow::bail!(
                "--keep {}: it exists already; name a directory that does not exist",
                project.display()
            ),
            made => made.with_context(|| format!("{} cannot be created", project.display()))?,
        }
        make(&project.join("src"))?;
        for (name, text) in FILES {
            let file = project.join(name);
            fs::write(&file, text)
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
        let env = environment(outer, folder.path(), &project, cargo);
        Ok(Self {
            project,
            env,
            folder,
        })
    }

    /// The environment for loading the configuration: the project is the home directory, so that no file of a
    /// directory above it is read.
    pub(super) fn config_env(&self) -> Environment {
        let mut env = self.env.clone();
        env.vars.insert("HOME".into(), self.project.clone().into());
        env
    }

    /// Runs `cargo --version` with the environment of the demo's commands.
    ///
    /// # Errors
    /// The message of `cargo` (for example, rustup has no default toolchain), and how to fix it.
    #[allow(
        clippy::disallowed_methods,
        reason = "the demo cannot work without it, and it prints its version only"
    )]
    pub(super) fn check_cargo(&self, cargo: &Path) -> anyhow::Result<()> {
        let output = std::process::Command::new(cargo)
            .arg("--version")
            .env_clear()
            .envs(&self.env.vars)
            .current_dir(&self.project)
            .output()
            .with_context(|| format!("{} cannot be started", cargo.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("no output").trim();
        anyhow::bail!(
            "zeph demo needs a working cargo, and {} fails: {said}. With rustup, select a toolchain: \
             rustup default stable",
            cargo.display()
        )
    }

    /// Removes all files except a project that the user wants to keep.
    ///
    /// # Errors
    /// The files that cannot be removed.
    pub(super) fn remove(self) -> anyhow::Result<()> {
        let path = self.folder.path().to_owned();
        self.folder
            .close()
            .with_context(|| format!("the temporary folder {} cannot be removed", path.display()))
    }
}

fn make(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir(directory).with_context(|| format!("{} cannot be created", directory.display()))
}

/// The environment of the demo: that of the process without the user's settings, with all output below `folder`.
fn environment(outer: &Environment, folder: &Path, project: &Path, cargo: &Path) -> Environment {
    let mut vars = outer.vars.clone();
    vars.retain(|name, _| !is_left_out(name));
    let mut set = |name: &str, value: OsString| vars.insert(name.into(), value);
    for (name, part) in [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
        ("TMPDIR", "tmp"),
        // The sandbox lets commands write below the temporary directory.
        ("CARGO_HOME", "tmp/cargo"),
        ("CARGO_TARGET_DIR", "tmp/target"),
    ] {
        set(name, folder.join(part).into());
    }
    set("CARGO_NET_OFFLINE", "true".into());
    set("CARGO_TERM_COLOR", "never".into());
    // A toolchain that is not installed is an error, not a download.
    set("RUSTUP_AUTO_INSTALL", "0".into());
    if let Some(home) = rustup_home(outer, cargo) {
        set("RUSTUP_HOME", home.into());
    }
    Environment {
        vars,
        cwd: project.to_owned(),
    }
}

fn is_left_out(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let settings = name.starts_with(b"ZEPH_") && name != CALL_TAG.as_bytes();
    settings
        || LEFT_OUT
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start.as_bytes()),
                None => name == pattern.as_bytes(),
            })
}

/// The toolchains of a rustup that another user, or this one under another HOME, installed: by default next to
/// cargo's own folder. `None` if rustup finds them automatically, or if there are none.
fn rustup_home(outer: &Environment, cargo: &Path) -> Option<PathBuf> {
    let found = |home: PathBuf| home.join(".rustup").is_dir();
    if outer.var("RUSTUP_HOME").is_some() || outer.home().is_some_and(found) {
        return None;
    }
    let cargo_home = cargo.parent()?.parent()?;
    let name = match cargo_home.file_name()?.to_str()? {
        ".cargo" => ".rustup",
        "cargo" => "rustup",
        _ => return None,
    };
    let beside = cargo_home.with_file_name(name);
    beside.is_dir().then_some(beside)
}

/// The `cargo` that commands will find.
pub(super) fn find_cargo(env: &Environment) -> Option<PathBuf> {
    std::env::split_paths(env.var("PATH")?)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("cargo"))
        .find(|file| {
            fs::metadata(file)
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_affect_the_build_are_removed() {
        let check =
            |name: &str, expect: bool| assert_eq!(is_left_out(name.as_ref()), expect, "{name}");
        check("PATH", false);
        check("HOME", false);
        check("RUSTUP_TOOLCHAIN", false);
        check("CARGO", false);
        check("CARGO_BUILD_TARGET", true);
        check("RUSTFLAGS", true);
        check("RUSTC_WRAPPER", true);
        check("RUST_TEST_THREADS", true);
        check("ZEPH_TOOLS_MODE", true);
        check("ZEPH_CALL_ID", false);
    }

    #[test]
    fn sample_is_written_completely() {
        let outer = Environment::of(
            "/cwd",
            &[
                ("PATH", "/bin"),
                ("HOME", "/h"),
                ("XDG_DATA_HOME", "/h/d"),
                ("CARGO_HOME", "/h/c"),
            ],
        );
        let env = environment(
            &outer,
            Path::new("/t"),
            Path::new("/t/p"),
            Path::new("/bin/cargo"),
        );
        assert_eq!(env.cwd, Path::new("/t/p"));
        assert_eq!(env.var("HOME"), Some(OsStr::new("/h")));
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "TMPDIR",
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
        ] {
            let value = Path::new(env.var(name).unwrap());
            assert!(value.starts_with("/t"), "{name} {value:?}");
        }
    }

    #[test]
    fn toolchains_are_next_to_the_cargo_directory() {
        let temp = tempfile::tempdir().unwrap();
        let at = |path: &str| temp.path().join(path);
        for directory in [
            "a/.cargo/bin",
            "a/.rustup",
            "b/cargo/bin",
            "b/rustup",
            "c/.cargo/bin",
            "home",
        ] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        let check = |home: &str, cargo: &str, expect: Option<&str>| {
            let outer = Environment::of("/", &[("HOME", at(home).to_str().unwrap())]);
            assert_eq!(
                rustup_home(&outer, &at(cargo)),
                expect.map(at),
                "{home} {cargo}"
            );
        };
        check("home", "a/.cargo/bin/cargo", Some("a/.rustup"));
        check("home", "b/cargo/bin/cargo", Some("b/rustup"));
        check("home", "c/.cargo/bin/cargo", None);
        check("home", "bin/cargo", None);
        check("a", "a/.cargo/bin/cargo", None);
    }

    #[test]
    fn cargo_is_a_program_in_an_absolute_directory() {
        let temp = tempfile::tempdir().unwrap();
        let (data, programs) = (temp.path().join("data"), temp.path().join("programs"));
        for (directory, mode) in [(&data, 0o644), (&programs, 0o755)] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("cargo"), "").unwrap();
            fs::set_permissions(directory.join("cargo"), fs::Permissions::from_mode(mode)).unwrap();
        }
        let check = |path: &str, expect: Option<&Path>| {
            let env = Environment::of("/", &[("PATH", path)]);
            assert_eq!(find_cargo(&env).as_deref(), expect, "{path}");
        };
        let found = programs.join("cargo");
        check("", None);
        check("relative:", None);
        check(data.to_str().unwrap(), None);
        check(
            &format!("{}:/nowhere:{}", data.display(), programs.display()),
            Some(&found),
        );
    }

    #[test]
    fn existing_directory_is_unchanged() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("mine"), "x").unwrap();
        let outer = Environment::of(temp.path(), &[]);
        let error = Sample::lay_out(&outer, Path::new("/bin/cargo"), Some(Path::new("mine")));
        let error = error.err().unwrap().to_string();
        assert!(error.contains("mine: it exists already"), "{error}");
        assert_eq!(fs::read_to_string(temp.path().join("mine")).unwrap(), "x");
    }
}
