//! `cargo xtask postgres`: the tests of a store on a PostgreSQL server.
//!
//! The server is that of the distribution, which is installed if it is missing. It runs in a temporary directory, on its own
//! socket, and ends with the tests.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::features::Features;
use crate::project::Project;
use crate::test::{has_nextest, threads};

/// The user that runs the server if this runs as root, which the server refuses.
const NOBODY: u32 = 65534;
/// How long the server may take to start.
const START: Duration = Duration::from_secs(60);

/// Runs the tests of the store on a server, and those of the binary with one.
pub(crate) fn run(project: &Project) -> Result<()> {
    let programs = programs(project)?;
    install_pooler(project)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.display());
    let _path = project.sh.push_env("PATH", path);
    let server = Server::start(&programs, &FOR_TESTS)?;
    let _url = project.sh.push_env("ZEPH_TEST_POSTGRES", server.url());
    if has_nextest(project) {
        let tests = project.cargo("nextest run").args(Features::All.args());
        let tests = tests.arg("--test-threads").arg(threads().to_string());
        let chosen = "package(zeph-memory) | (package(zeph) & test(postgres::))";
        return Ok(tests.arg("-E").arg(chosen).run()?);
    }
    project
        .cargo("test -p zeph-memory --features postgres --lib --tests")
        .run()?;
    let binary = project.cargo("test -p zeph --features postgres --bins --tests -- postgres::");
    Ok(binary.run()?)
}

/// The folder of the programs of the server, which is installed if it is missing.
pub(crate) fn programs(project: &Project) -> Result<PathBuf> {
    if let Some(found) = installed() {
        return Ok(found);
    }
    install(project, "postgresql")?;
    installed().context("the package of the distribution has no `initdb`: install PostgreSQL")
}

/// Installs the pooler of the tests if it is missing.
fn install_pooler(project: &Project) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    match folders.any(|folder| folder.join("pgbouncer").exists()) {
        true => Ok(()),
        false => install(project, "pgbouncer"),
    }
}

fn install(project: &Project, package: &str) -> Result<()> {
    println!("{package} is not installed; installing the package of the distribution");
    let sh = &project.sh;
    let _quiet = sh.push_env("DEBIAN_FRONTEND", "noninteractive");
    xshell::cmd!(sh, "apt-get update -qq").run()?;
    xshell::cmd!(
        sh,
        "apt-get install -y -qq --no-install-recommends {package}"
    )
    .run()?;
    Ok(())
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
pub(crate) struct Server {
    folder: xshell::TempDir,
    programs: PathBuf,
    /// The settings of its command line.
    settings: Vec<String>,
    child: Child,
}

/// The settings of a server for tests, which need not survive a power cut.
const FOR_TESTS: [&str; 2] = ["listen_addresses=", "fsync=off"];

impl Server {
    /// Starts a server with these settings, on a socket in its folder.
    pub(crate) fn start(programs: &Path, settings: &[&str]) -> Result<Self> {
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
        let mut settings: Vec<String> = settings.iter().map(|&it| it.to_owned()).collect();
        settings.push("max_connections=200".to_owned());
        settings.push(format!("unix_socket_directories={}", place.display()));
        let child = spawn(programs, place, &settings)?;
        let mut server = Self {
            folder,
            programs: programs.to_owned(),
            settings,
            child,
        };
        server.wait_until_ready(false)?;
        Ok(server)
    }

    /// Ends the server as a crash does, and starts it again. It refuses to start while processes of the killed one are alive.
    pub(crate) fn crash_and_restart(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(&self.programs, self.folder.path(), &self.settings)?;
        self.wait_until_ready(true)
    }

    fn wait_until_ready(&mut self, is_restart: bool) -> Result<()> {
        let start = Instant::now();
        while !self.is_ready()? {
            if let Some(status) = self.child.try_wait()? {
                ensure!(is_restart, "the server ended: {status}");
                self.child = spawn(&self.programs, self.folder.path(), &self.settings)?;
            }
            ensure!(start.elapsed() < START, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn is_ready(&self) -> Result<bool> {
        let status = self.client("pg_isready").arg("-q").status()?;
        Ok(status.success())
    }

    /// A program that connects to the server.
    fn client(&self, name: &str) -> Command {
        let mut client = program(&self.programs.join(name), self.folder.path());
        client.arg("-h").arg(self.folder.path());
        let ports = self.settings.iter();
        if let Some(port) = ports.filter_map(|it| it.strip_prefix("port=")).next_back() {
            client.args(["-p", port]);
        }
        client
    }

    /// The lines that a query of the administrator returns on a database.
    pub(crate) fn query(&self, database: &str, sql: &str) -> Result<Vec<String>> {
        let asked = self
            .client("psql")
            .args([
                "-U",
                "postgres",
                "-d",
                database,
                "-v",
                "ON_ERROR_STOP=1",
                "-Atqc",
                sql,
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()?;
        let errors = String::from_utf8_lossy(&asked.stderr);
        ensure!(asked.status.success(), "psql: {errors}");
        let text = String::from_utf8(asked.stdout)?;
        Ok(text.lines().map(str::to_owned).collect())
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

fn spawn(programs: &Path, place: &Path, settings: &[String]) -> Result<Child> {
    let mut command = program(&programs.join("postgres"), place);
    command.arg("-D").arg(place.join("data"));
    for setting in settings {
        command.arg("-c").arg(setting);
    }
    Ok(command.spawn()?)
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
