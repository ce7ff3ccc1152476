//! A conversation of the built binary with a real model: a question, a call, its result, a response.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::process::{Printed, ended, last_lines};

/// The time limit of a command of the binary.
const LIMIT: Duration = Duration::from_secs(90);
/// The text of the file that the model must report.
const TREASURE: &str = "purple elephant";

/// An API.
#[derive(Clone, Copy)]
pub(super) struct Api {
    pub(super) name: &'static str,
    /// The fields of the provider.
    provider: &'static str,
    /// Whether it is the API of the shim.
    shim: bool,
    /// Whether it supports embeddings; otherwise another API of the server provides them.
    embeds: bool,
}

/// All tested APIs.
pub(super) const APIS: [Api; 4] = [
    Api {
        name: "Chat Completions",
        provider: "type = \"openai\"",
        shim: false,
        embeds: true,
    },
    Api {
        name: "Responses",
        provider: "type = \"openai\"\napi = \"responses\"",
        shim: false,
        embeds: true,
    },
    Api {
        name: "Messages",
        provider: "type = \"claude\"",
        shim: false,
        embeds: false,
    },
    Api {
        name: "Ollama",
        provider: "type = \"ollama\"",
        shim: true,
        embeds: true,
    },
];

/// The built binary.
pub(super) struct Zeph {
    pub(super) program: PathBuf,
}

impl Zeph {
    /// Runs a whole conversation and returns the response of the model.
    pub(super) fn converse(&self, api: Api, server: &str, shim: &str) -> Result<String> {
        let place = xshell::Shell::new()?.create_temp_dir()?;
        let (home, project) = (place.path().join("home"), place.path().join("project"));
        std::fs::create_dir_all(home.join(".config/zeph"))?;
        std::fs::create_dir_all(&project)?;
        std::fs::write(project.join("treasure.txt"), format!("{TREASURE}\n"))?;
        let config = home.join(".config/zeph/config.toml");
        std::fs::write(&config, configuration(api, server, shim, 8192))?;
        let zeph = |arguments: &[&str]| self.run(&home, &project, arguments);

        let question = "What does the file treasure.txt say?";
        let printed = zeph(&["-p", question, "--yes", "--output-format", "json"])?;
        let result: Value = serde_json::from_str(&printed.stdout)
            .with_context(|| format!("{}{}", printed.stdout, last_lines(&printed.stderr)))?;
        let answer = result["text"].as_str().unwrap_or_default().to_owned();
        let calls = result["tool_calls"].as_array().map_or(0, Vec::len);
        let fits = printed.code == Some(0) && calls == 1 && answer.contains(TREASURE);
        ensure!(
            fits && result["tool_calls"][0]["tool"] == "read",
            "{result:#}\n{}",
            last_lines(&printed.stderr)
        );
        ensure!(
            !printed.stderr.contains("embeddings unavailable")
                && !printed.stderr.contains("there are no embeddings"),
            "{}",
            last_lines(&printed.stderr)
        );
        // The cost contains one embedding request, outside the conversation.
        let cost = zeph(&["-p", "/cost", "--continue"])?.stdout;
        ensure!(cost.contains("(smollm2:latest): 1 request, "), "{cost}");
        let again = zeph(&["-p", "What does it say?", "--continue", "--yes"])?;
        ensure!(again.code == Some(0), "{}", last_lines(&again.stderr));

        if !api.shim {
            std::fs::write(&config, configuration(api, server, shim, 200_000))?;
            too_long(&zeph(&["-p", &"word ".repeat(20_000)])?)?;
        }
        Ok(format!("read treasure.txt: {}", answer.trim()))
    }

    fn run(&self, home: &Path, project: &Path, arguments: &[&str]) -> Result<Printed> {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(project);
        command.env_clear().env("HOME", home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        ended(command, LIMIT)
    }
}

/// Checks that a request over the window of the server is reported as too long.
fn too_long(printed: &Printed) -> Result<()> {
    if printed.code == Some(0) || !printed.stderr.contains("longer than the window") {
        bail!(
            "a request that is too long: exit code {:?}, {}",
            printed.code,
            last_lines(&printed.stderr)
        );
    }
    Ok(())
}

/// The configuration for `api` with a window of this number of tokens.
fn configuration(api: Api, server: &str, shim: &str, window: usize) -> String {
    let url = if api.shim { shim } else { server };
    let provider = |name: &str, fields: &str, url: &str, embeds: bool| {
        let embeds = match embeds {
            true => "embedding_model = \"smollm2:latest\"\n",
            false => "",
        };
        format!(
            "[[llm.providers]]\nname = \"{name}\"\n{fields}\nmodel = \"smollm2\"\nbase_url = \"{url}\"\n\
             context_window = {window}\nmax_output_tokens = 96\n{embeds}"
        )
    };
    let vectors = if api.embeds { "live" } else { "vectors" };
    format!(
        "[agent]\nmax_tool_iterations = 3\n[agent.tool_filter]\nenabled = true\ntop_k = 100\n\
         [llm]\nembed_provider = \"{vectors}\"\n{}{}",
        provider("live", api.provider, url, api.embeds),
        provider("vectors", "type = \"openai\"", server, true),
    )
}
