//! A PostgreSQL server of one test, with its own directory and socket.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The user that runs the server if the tests run as root, which the server refuses.
pub(super) const NOBODY: u32 = 65534;

/// A running server. It is stopped when dropped.
pub(crate) struct Postgres {
    folder: TempDir,
    running: Option<Child>,
}

impl Postgres {
    /// Creates a server with the role and the database `zeph`.
    pub(crate) fn start() -> Self {
        let folder = folder_for_all("zeph-pg-");
        let mut server = Self {
            folder,
            running: None,
        };
        let data = server.data().display().to_string();
        let made = server
            .program("initdb")
            .args([
                "-D",
                &data,
                "-U",
                "zeph",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        server.resume();
        server
    }

    /// Starts the server again after [`Postgres::kill`], and waits until it accepts connections. A server refuses to start while
    /// processes of a killed one are alive, and is then started again.
    pub(crate) fn resume(&mut self) {
        let host = self.folder.path().display().to_string();
        let mut child = self.spawn();
        super::wait_for("the server", || {
            let mut ask = self.program("pg_isready");
            let asked = ask.args(["-q", "-h", &host]).status();
            let is_ready = asked.is_ok_and(|status| status.success());
            if !is_ready && child.try_wait().is_ok_and(|ended| ended.is_some()) {
                child = self.spawn();
            }
            is_ready.then_some(())
        });
        self.running = Some(child);
    }

    fn spawn(&self) -> Child {
        let socket = format!("unix_socket_directories={}", self.folder.path().display());
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data());
        command.args(["-c", "listen_addresses=", "-c", &socket, "-c", "fsync=off"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Ends the server and its processes at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            // Its processes notice the end of their parent by themselves.
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The folder of its socket.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The value of `[memory] url`.
    pub(crate) fn url(&self) -> String {
        format!(
            "postgres://zeph@localhost/postgres?host={}",
            self.folder.path().display()
        )
    }

    /// The variables with which the programs of PostgreSQL work on the server as its administrator.
    pub(crate) fn administrator(&self) -> String {
        format!("PGHOST={} PGUSER=zeph", self.folder.path().display())
    }

    /// The section `[memory]` for the server.
    pub(crate) fn config(&self) -> String {
        format!("[memory]\nurl = {:?}\n", self.url())
    }

    /// The first column of the rows of a query, as text.
    #[track_caller]
    pub(crate) fn query(&self, sql: &str) -> Vec<String> {
        let host = self.folder.path().display().to_string();
        let asked = self
            .program("psql")
            .args(["-h", &host, "-U", "zeph", "-d", "postgres", "-Atqc", sql])
            .output()
            .unwrap();
        assert!(
            asked.status.success(),
            "{}",
            String::from_utf8_lossy(&asked.stderr)
        );
        String::from_utf8(asked.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of the server. `cargo xtask postgres` installs it and puts it on the path.
    fn program(&self, name: &str) -> Command {
        #[allow(clippy::disallowed_methods, reason = "the test needs a server")]
        let mut command = Command::new(name);
        command.stdin(Stdio::null());
        command.current_dir(self.folder.path());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A temporary folder that every user may write to.
pub(super) fn folder_for_all(prefix: &str) -> TempDir {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}
