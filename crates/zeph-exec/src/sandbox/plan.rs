//! The limits for the commands of a session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

/// Devices that store nothing, and shared memory. Other terminals (`/dev/pts`, `/dev/ptmx`) are excluded: text that
/// is written to one is typed or shown there.
const DEVICES: [&str; 7] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/shm",
];

/// The sockets that commands may create.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sockets {
    /// All: commands may use the network.
    #[default]
    All,
    /// Only AF_UNIX sockets, which reach processes on this machine.
    Local,
    /// None, except connected pairs of AF_UNIX sockets.
    None,
}

/// The limits of the sandbox of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The writable files and directories, with all files below them: absolute, links resolved.
    pub writable: Vec<PathBuf>,
    /// The sockets that may be created.
    pub sockets: Sockets,
    /// Whether a command is refused if the limits cannot be enforced.
    pub required: bool,
    /// The hidden files and directories, real paths. `None` if files are never hidden. Even an empty list needs private
    /// mounts.
    pub hidden: Option<Vec<PathBuf>>,
    /// Files and directories that Landlock lets no command open for reading, real paths. Landlock cannot exclude a path
    /// below a writable directory.
    pub unreadable: Vec<PathBuf>,
    /// Directories below `unreadable` that stay readable, real paths.
    pub shared: Vec<PathBuf>,
    /// The only files that may be executed, real paths. `None` if any file may be executed.
    pub executable: Option<Vec<PathBuf>>,
    /// Whether processes outside may not be signalled, nor reached through abstract sockets.
    pub isolated: bool,
}

/// The settings from which a plan is created.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions<'a> {
    /// Whether no command runs if the plan cannot be enforced.
    pub required: bool,
    /// The directories in which commands may start; empty for the working directory.
    pub allowed_paths: &'a [PathBuf],
    /// Further files and directories that commands may write.
    pub writable: &'a [PathBuf],
    /// Whether commands may use the network.
    pub network: bool,
}

impl Plan {
    /// Creates the plan for commands that start in `cwd` with the environment `env`. `resolve` resolves links.
    #[must_use]
    pub fn new(
        options: &PlanOptions<'_>,
        cwd: &Path,
        env: &[(OsString, OsString)],
        resolve: impl Fn(&Path) -> PathBuf,
    ) -> Self {
        let mut writable = Vec::new();
        let mut add = |path: &Path| {
            let path = resolve(&cwd.join(path));
            if !writable.contains(&path) {
                writable.push(path);
            }
        };
        if options.allowed_paths.is_empty() {
            add(cwd);
        }
        for path in options.allowed_paths {
            add(path);
        }
        add(&temporary_directory(env));
        for path in options.writable {
            add(path);
        }
        writable.extend(DEVICES.iter().map(|device| resolve(Path::new(device))));
        Self {
            writable,
            sockets: match options.network {
                true => Sockets::All,
                false => Sockets::Local,
            },
            required: options.required,
            hidden: None,
            unreadable: Vec::new(),
            shared: Vec::new(),
            executable: None,
            isolated: false,
        }
    }

    /// The plan that permits no write and no socket.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            writable: Vec::new(),
            sockets: Sockets::None,
            required: false,
            hidden: None,
            unreadable: Vec::new(),
            shared: Vec::new(),
            executable: None,
            isolated: false,
        }
    }

    /// The plan with `private` unreadable, except for `shared` and for paths below a writable directory.
    #[must_use]
    pub fn without_reading(mut self, private: &[PathBuf], shared: &[PathBuf]) -> Self {
        self.shared = shared.to_vec();
        let outside = private.iter().filter(|path| !self.allows(path));
        self.unreadable = outside.cloned().collect();
        self
    }

    /// The plan for a command that only reads: it writes nothing except to `private`, a directory of its own, and creates
    /// no socket.
    #[must_use]
    pub fn for_reading(&self, private: &Path) -> Self {
        let streams = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];
        let devices = streams.iter().map(|device| resolve(Path::new(device)));
        Self {
            writable: std::iter::once(resolve(private)).chain(devices).collect(),
            sockets: Sockets::None,
            isolated: true,
            ..self.clone()
        }
    }

    /// The plan in which only `files` (real paths) may be executed.
    #[must_use]
    pub fn with_executable(self, files: Vec<PathBuf>) -> Self {
        Self {
            executable: Some(files),
            ..self
        }
    }

    /// The plan without the network.
    #[must_use]
    pub fn without_network(mut self) -> Self {
        if self.sockets == Sockets::All {
            self.sockets = Sockets::Local;
        }
        self
    }

    /// The plan with write access to `path` (absolute, links resolved) and everything below it.
    #[must_use]
    pub fn with_writable(mut self, path: PathBuf) -> Self {
        if !self.allows(&path) {
            self.writable.push(path);
        }
        self
    }

    /// Whether a path (absolute, links resolved) may be written.
    #[must_use]
    pub fn allows(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }
}

/// The `TMPDIR` of commands, or `/tmp`.
fn temporary_directory(env: &[(OsString, OsString)]) -> PathBuf {
    env.iter()
        .find(|(name, _)| name == "TMPDIR")
        .map(|(_, value)| PathBuf::from(value))
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| "/tmp".into())
}

/// Whether the file system alone would let this process change a path, or create it.
#[must_use]
pub fn can_user_write(path: &Path) -> bool {
    let writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    match path.parent() {
        Some(parent) if access(path, Access::EXISTS).is_err() => writable(parent),
        _ => writable(path),
    }
}

/// The path, with all links in its existing part resolved.
#[must_use]
#[allow(
    clippy::disallowed_methods,
    reason = "the result is opened without following any link"
)]
pub fn resolve(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            // `join` with an empty path would add a slash.
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(allowed: &[&str], writable: &[&str], env: &[(&str, &str)]) -> Plan {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let env: Vec<(OsString, OsString)> = env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let resolve = |path: &Path| match path.to_str() {
            Some("/repo/link") => "/real".into(),
            _ => path.to_owned(),
        };
        let options = PlanOptions {
            required: true,
            allowed_paths: &paths(allowed),
            writable: &paths(writable),
            network: false,
        };
        Plan::new(&options, Path::new("/repo"), &env, resolve)
    }

    /// Proves SH-20.
    #[test]
    fn commands_write_where_the_configuration_says() {
        let check = |allowed: &[&str], writable: &[&str], env: &[(&str, &str)], expect: &str| {
            let plan = plan(allowed, writable, env);
            let is_device = |path: &&PathBuf| path.starts_with("/dev");
            let names = plan.writable.iter().filter(|path| !is_device(path));
            let names: Vec<String> = names.map(|path| path.display().to_string()).collect();
            assert_eq!(names.join(", "), expect);
            assert!(plan.required && plan.sockets == Sockets::Local);
        };
        check(&[], &[], &[], "/repo, /tmp");
        check(&[], &[], &[("TMPDIR", "/t")], "/repo, /t");
        check(&[], &[], &[("TMPDIR", "")], "/repo, /tmp");
        check(&[], &[], &[("TMPDIR", "t")], "/repo, /tmp");
        check(&["src", "/x"], &[], &[], "/repo/src, /x, /tmp");
        check(&["link"], &[], &[], "/real, /tmp");
        check(&[], &["/h/.cargo"], &[], "/repo, /tmp, /h/.cargo");
        check(&["."], &["/tmp", "/tmp"], &[], "/repo/., /tmp");
    }

    /// Proves SH-20.
    #[test]
    fn paths_below_a_directory_and_harmless_devices_are_writable() {
        let plan = plan(&[], &[], &[]);
        for allowed in ["/repo", "/repo/a/b", "/tmp/x", "/dev/null", "/dev/shm/x"] {
            assert!(plan.allows(Path::new(allowed)), "{allowed}");
        }
        for refused in [
            "/",
            "/repository",
            "/etc/passwd",
            "/dev/sda",
            "/dev/pts/0",
            "/dev",
        ] {
            assert!(!plan.allows(Path::new(refused)), "{refused}");
        }
    }

    #[test]
    fn existing_links_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let base = resolve(dir.path());
        std::fs::create_dir(base.join("real")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        let check = |path: &str, expect: &str| {
            assert_eq!(resolve(&base.join(path)), base.join(expect), "{path}");
        };
        check("link", "real");
        check("link/a/b", "real/a/b");
        check("none/b", "none/b");
        assert_eq!(resolve(Path::new("/")), Path::new("/"));
    }
}
