//! `zeph models …`: models that run in this process, and the models of servers.

use std::fmt::Write as _;

use clap::Subcommand;
use serde_json::{Value, json};
use zeph_llm::ProviderConfig;

use super::args::GlobalArgs;
use super::model_lines::model_lines;
use super::{Exit, load_config, print, print_as_is};
use crate::assemble::{Listing, ServerModels, chosen_config};
use crate::models::{Manifest, ModelStore, Wanted, pull};
use crate::output::{json_lines, stderr_line};

/// `zeph models …`
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Download or copy a model
    Pull {
        /// Model: OWNER/REPO/FILE.gguf of the hub, a URL, or the path of a GGUF file
        #[arg(value_name = "MODEL")]
        which: String,
        /// Name of the stored model
        #[arg(long)]
        name: Option<String>,
        /// Required SHA-256 digest of the file
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
    },
    /// List the stored models and the models of the configured servers
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the path of a stored model
    Path {
        /// Name of the model
        name: String,
    },
    /// Remove stored models
    Rm {
        /// Names of the models
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, command: ModelsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let store = ModelStore::of(&loaded.paths.data_dir);
    match command {
        ModelsCommand::Pull {
            which,
            name,
            sha256,
        } => {
            let wanted = Wanted {
                model: which,
                name,
                sha256,
            };
            let retry = loaded.config.llm.retry;
            let model = pull(&store, &env, &retry, wanted, global.quiet).await?;
            print(&list(&[model]))?;
        }
        ModelsCommand::List { json } => {
            let fetched = store.list()?;
            let current = chosen_config(&loaded, &env, global.model.as_deref()).ok();
            let servers = current.map(|current| ServerModels::new(&loaded, &env, &current));
            let listed = match &servers {
                Some(servers) => servers.list().await,
                None => Vec::new(),
            };
            let current = servers.as_ref().map(ServerModels::current);
            if json {
                print_as_is(&json_lines(&all_as_json(
                    &fetched,
                    &listed,
                    current.as_ref(),
                )?)?)?;
            } else {
                print(&all_as_text(&fetched, &listed, current.as_ref()))?;
            }
        }
        ModelsCommand::Path { name } => {
            print(&store.find(&name)?.0.display().to_string())?;
        }
        ModelsCommand::Rm { names } => {
            for name in names {
                store.remove(&name)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The model of this provider that gets requests.
fn current_of<'a>(config: &ProviderConfig, current: Option<&'a ProviderConfig>) -> Option<&'a str> {
    let current = current.filter(|current| current.name == config.name)?;
    Some(&current.model)
}

fn all_as_text(
    fetched: &[Manifest],
    listed: &[(&ProviderConfig, Listing)],
    current: Option<&ProviderConfig>,
) -> String {
    let mut text = list(fetched);
    for (config, listing) in listed {
        let _ = write!(text, "\n{} ({})", config.name, config.kind.as_str());
        for line in model_lines(listing, current_of(config, current), usize::MAX) {
            let _ = write!(text, "\n{line}");
        }
    }
    text
}

/// The fetched models as their records, and each model of a server as an object. A server without a list is reported
/// on standard error.
fn all_as_json(
    fetched: &[Manifest],
    listed: &[(&ProviderConfig, Listing)],
    current: Option<&ProviderConfig>,
) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for model in fetched {
        all.push(serde_json::to_value(model)?);
    }
    for (config, listing) in listed {
        match listing {
            Err(why) => stderr_line(&format!(
                "warning: the models of {:?} are unknown: {why}",
                config.name
            )),
            Ok(models) => all.extend(models.iter().map(|model| {
                json!({
                    "name": model.name,
                    "provider": config.name,
                    "context_window": model.context_window,
                    "current": current_of(config, current) == Some(model.name.as_str()),
                })
            })),
        }
    }
    Ok(all)
}

fn list(models: &[Manifest]) -> String {
    if models.is_empty() {
        return "no model was downloaded: run zeph models pull OWNER/REPO/FILE.gguf".to_owned();
    }
    let mut text = String::new();
    for model in models {
        let _ = writeln!(
            text,
            "{:<24} {:<10} {:>7.1} MB  {}  {}  {}",
            model.name,
            model.purpose.as_str(),
            model.bytes as f64 / 1e6,
            model.license.as_deref().unwrap_or("-"),
            model.fetched.get(..10).unwrap_or_default(),
            model.source,
        );
    }
    text.trim_end().to_owned()
}
