//! A PgBouncer of one test in transaction mode, between the binary and a server.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::Postgres;
use super::postgres::{NOBODY, folder_for_all};

/// A running pooler. It is stopped when dropped.
pub(crate) struct Pooler {
    folder: TempDir,
    child: Child,
}

impl Pooler {
    /// Starts a pooler that shares `connections` connections of each role and database of `server`.
    pub(crate) fn start(server: &Postgres, roles: &[&str], connections: u32) -> Self {
        let folder = folder_for_all("zeph-pooler-");
        let path = folder.path().display();
        let users: String = roles
            .iter()
            .map(|role| format!("\"{role}\" \"\"\n"))
            .collect();
        std::fs::write(folder.path().join("users.txt"), users).unwrap();
        let config = format!(
            "[databases]\n* = host={server}\n[pgbouncer]\nunix_socket_dir = {path}\nlisten_port = 6432\n\
             auth_type = trust\nauth_file = {path}/users.txt\nlogfile = {path}/log\npool_mode = transaction\n\
             default_pool_size = {connections}\n",
            server = server.folder().display(),
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, config).unwrap();
        #[allow(clippy::disallowed_methods, reason = "the test needs a pooler")]
        let mut command = Command::new("pgbouncer");
        command
            .arg("-q")
            .arg(&file)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let child = command
            .spawn()
            .expect("pgbouncer is missing: `cargo xtask postgres` installs it");
        let socket = folder.path().join(".s.PGSQL.6432");
        super::wait_for("the pooler", || socket.exists().then_some(()));
        Self { folder, child }
    }

    /// The value of `[memory] url` for a role.
    pub(crate) fn url(&self, role: &str) -> String {
        format!(
            "postgres://{role}@localhost:6432/postgres?host={}&statement-cache-capacity=0",
            self.folder.path().display()
        )
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
