//! `cargo xtask postgres`: the tests of a store on a PostgreSQL server.
//!
//! The server is that of the distribution, which is installed if it is missing. It runs in a temporary directory, on its own
//! socket, and ends with the tests.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::optional_parts::PACKAGES;
use crate::project::Project;

/// The user that runs the server if this runs as root, which the server refuses.
const NOBODY: u32 = 65534;
/// How long the server may take to start.
const START: Duration = Duration::from_secs(60);

/// Runs the tests of the store on a server, and those of the binary with one.
pub(crate) fn run(project: &Project) -> Result<()> {
    let programs = programs(project)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.display());
    let _path = project.sh.push_env("PATH", path);
    let server = Server::start(&programs)?;
    let _url = project.sh.push_env("ZEPH_TEST_POSTGRES", server.url());
    let tests = match crate::test::has_nextest(project) {
        true => format!(
            "nextest run {PACKAGES} --test-threads {} -E",
            crate::test::threads()
        ),
        false => {
            let memory = "test -p zeph-memory --features postgres --lib --tests";
            project.cargo(memory).run()?;
            let binary = format!("test {PACKAGES} --lib --bins --tests -- postgres::");
            return Ok(project.cargo(&binary).run()?);
        }
    };
    let chosen = "package(zeph-memory) | (package(zeph) & test(postgres::))";
    Ok(project.cargo(&tests).arg(chosen).run()?)
}

/// The folder of the programs of the server, which is installed if it is missing.
fn programs(project: &Project) -> Result<PathBuf> {
    if let Some(found) = installed() {
        return Ok(found);
    }
    println!("PostgreSQL is not installed; installing the package of the distribution");
    let sh = &project.sh;
    let _quiet = sh.push_env("DEBIAN_FRONTEND", "noninteractive");
    xshell::cmd!(sh, "apt-get update -qq").run()?;
    xshell::cmd!(
        sh,
        "apt-get install -y -qq --no-install-recommends postgresql"
    )
    .run()?;
    installed().context("the package of the distribution has no `initdb`: install PostgreSQL")
}

/// The newest installed version.
fn installed() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok();
    let folders = versions.into_iter().flatten().flatten();
    let folders = folders.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = folders
        .chain(std::env::split_paths(&path))
        .filter(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
        .collect();
    found.sort_by_key(|folder| version(folder));
    found.pop()
}

/// The version in `…/15/bin`; 0 for another folder.
fn version(folder: &Path) -> u32 {
    let name = folder.parent().and_then(Path::file_name);
    name.and_then(|name| name.to_str()?.parse().ok())
        .unwrap_or(0)
}

/// A running server. It is stopped when dropped.
struct Server {
    folder: xshell::TempDir,
    child: Child,
}

impl Server {
    fn start(programs: &Path) -> Result<Self> {
        let folder = xshell::Shell::new()?.create_temp_dir()?;
        let place = folder.path();
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777))?;
        let data = place.join("data");
        let status = program(&programs.join("initdb"), place)
            .arg("-D")
            .arg(&data)
            .args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .status()?;
        ensure!(status.success(), "`initdb` failed: {status}");
        let child = program(&programs.join("postgres"), place)
            .arg("-D")
            .arg(&data)
            .args([
                "-c",
                "listen_addresses=",
                "-c",
                "fsync=off",
                "-c",
                "max_connections=200",
            ])
            .arg("-c")
            .arg(format!("unix_socket_directories={}", place.display()))
            .spawn()?;
        let mut server = Self { folder, child };
        let start = Instant::now();
        while !server.is_ready(programs)? {
            if let Some(status) = server.child.try_wait()? {
                bail!("the server ended: {status}");
            }
            ensure!(start.elapsed() < START, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn is_ready(&self, programs: &Path) -> Result<bool> {
        let mut ask = program(&programs.join("pg_isready"), self.folder.path());
        let status = ask.arg("-q").arg("-h").arg(self.folder.path()).status()?;
        Ok(status.success())
    }

    fn url(&self) -> String {
        let place = self.folder.path().display();
        format!("postgres://localhost/?host={place}&user=postgres")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(program: &Path, place: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The owner of a new folder of root is root.
    if place
        .metadata()
        .is_ok_and(|place| std::os::unix::fs::MetadataExt::uid(&place) == 0)
    {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
