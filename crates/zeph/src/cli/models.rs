//! `zeph models …`: models that run in this process.

use std::fmt::Write as _;

use clap::Subcommand;

use super::args::GlobalArgs;
use super::{Exit, load_config, print, print_as_is};
use crate::models::{Manifest, ModelStore, Wanted, pull};
use crate::output::json_lines;

/// `zeph models …`
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Fetch a model: OWNER/REPO/FILE.gguf of the hub, a URL, or a GGUF file of this machine
    Pull {
        /// Which one
        #[arg(value_name = "MODEL")]
        which: String,
        /// The name it gets here
        #[arg(long)]
        name: Option<String>,
        /// The digest it must have
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
    },
    /// List the fetched models
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Where one is
    Path {
        /// Its name
        name: String,
    },
    /// Remove some
    Rm {
        /// Their names
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
        ModelsCommand::List { json: true } => {
            print_as_is(&json_lines(&store.list()?)?)?;
        }
        ModelsCommand::List { json: false } => print(&list(&store.list()?))?,
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

fn list(models: &[Manifest]) -> String {
    if models.is_empty() {
        return "no model was fetched: zeph models pull OWNER/REPO/FILE.gguf".to_owned();
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
