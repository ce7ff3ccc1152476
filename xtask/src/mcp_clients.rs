//! `cargo xtask mcp-clients`: official MCP clients against `zeph mcp serve` on this machine.
//!
//! The official conformance suite and the official Python client are installed from npm and from pip's package index into
//! the target folder. If they cannot be installed, the command fails. All steps have deadlines, and the server is ended.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::packages::{INSTALL, install};
use crate::process::{Server, ended, last_lines, within};
use crate::project::Project;

/// The time limit until the server prints its address.
const START: Duration = Duration::from_secs(20);
/// The time limit of each client.
const CLIENT: Duration = Duration::from_secs(60);
/// The path of the endpoint.
const PATH: &str = "/mcp";

pub(crate) fn run(project: &Project) -> Result<()> {
    let scripts = project.root.join("xtask/mcp_clients");
    let folder = project.target_dir()?.join("mcp-clients");
    let python = installed(&scripts, &folder).context("the clients cannot be installed")?;
    project.cargo("build -p zeph --bin zeph").run()?;
    let program = project.target_dir()?.join("debug/zeph");

    let home = folder.join("home");
    let work = folder.join("project");
    for place in [&home, &work] {
        if place.exists() {
            std::fs::remove_dir_all(place)?;
        }
        std::fs::create_dir_all(place)?;
    }
    std::fs::write(work.join("a.txt"), "hello\n")?;
    let hermetic = |command: &mut Command| {
        command.env("HOME", &home);
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZEPH_LOG"] {
            command.env_remove(name);
        }
    };
    let mut command = Command::new(&program);
    command.args(["mcp", "serve", "--http", "127.0.0.1:0", "-C"]);
    command.arg(&work);
    hermetic(&mut command);
    let server = Server::start("zeph mcp serve", command, START)?;
    let url = format!("{}{PATH}", server.address.trim_end_matches(PATH));

    let mut suite = Command::new(&python);
    suite
        .arg(scripts.join("conformance.py"))
        .arg("run")
        .arg(folder.join("npm"))
        .arg(&url);
    run_client("the conformance suite", suite)?;
    let mut client = Command::new(&python);
    client
        .arg(scripts.join("python_client.py"))
        .arg(&program)
        .arg(&url)
        .arg(&work);
    hermetic(&mut client);
    run_client("the official Python client", client)
}

/// Runs a client, and prints its output.
fn run_client(name: &str, command: Command) -> Result<()> {
    let start = Instant::now();
    let printed = ended(command, CLIENT).with_context(|| name.to_owned())?;
    println!("{}", printed.stdout.trim());
    let error = last_lines(&printed.stderr);
    anyhow::ensure!(printed.code == Some(0), "{name} failed: {error}");
    println!("{name}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Installs the pinned packages, unless they are installed. Returns the Python of the environment.
fn installed(scripts: &Path, folder: &Path) -> Result<PathBuf> {
    let suite = scripts.join("conformance.py");
    let pins = std::fs::read_to_string(&suite)?;
    install(folder, &scripts.join("requirements.txt"), &pins, |python| {
        let mut command = Command::new(python);
        command.arg(&suite).arg("install").arg(folder.join("npm"));
        within(command, INSTALL).map(drop)
    })
}
