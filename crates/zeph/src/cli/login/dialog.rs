//! The dialog of the first start: a server on this machine, or a vendor with its key.

use zeph_llm::{ProviderConfig, ProviderKind};
use zeph_tui::ask::ask_line;

use super::local::{LocalServer, detect};
use super::target::{Target, target};
use super::{read_key, store};
use crate::assemble::vendor;
use crate::cli::args::GlobalArgs;
use crate::cli::with_causes;
use crate::config::{Environment, Loaded};
use crate::output::sanitize::visible;
use crate::output::stderr_line;

/// An entry of the list.
enum Choice {
    Local(Box<LocalServer>),
    Vendor(ProviderKind),
    /// A server whose URL the user types.
    Url,
}

impl Choice {
    fn label(&self) -> String {
        match self {
            Self::Local(server) => server.label(),
            Self::Vendor(ProviderKind::Claude) => "Anthropic (with a key)".to_owned(),
            Self::Vendor(_) => "OpenAI (with a key)".to_owned(),
            Self::Url => "another server with OpenAI's API (URL, with or without a key)".to_owned(),
        }
    }
}

/// Lets the user choose a provider, and stores the choice. Returns false if the user leaves the dialog.
///
/// # Errors
/// The terminal cannot be read, or a file cannot be written.
pub(in crate::cli) async fn first_start(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
) -> anyhow::Result<bool> {
    stderr_line("Zeph needs a model. Choose a provider; `zeph login` shows this list again.");
    let found = detect(loaded, env).await;
    let (usable, other): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|server| server.is_usable() || server.needs_key);
    for server in other {
        stderr_line(&format!("  –  {}", server.label()));
    }
    let local = usable
        .into_iter()
        .map(|server| Choice::Local(Box::new(server)));
    let vendors = [ProviderKind::Claude, ProviderKind::Openai].map(Choice::Vendor);
    let choices: Vec<Choice> = local.chain(vendors).chain([Choice::Url]).collect();
    for (at, choice) in choices.iter().enumerate() {
        stderr_line(&format!("  {}  {}", at + 1, choice.label()));
    }
    loop {
        let Some(line) = ask_line("Number (Enter for 1, q to leave): ").await? else {
            return Ok(false);
        };
        let number: usize = match line.trim() {
            "" => 1,
            "q" | "quit" | "exit" => return Ok(false),
            text => text.parse().unwrap_or(0),
        };
        let Some(choice) = number.checked_sub(1).and_then(|at| choices.get(at)) else {
            stderr_line(&format!(
                "  type a number from 1 to {}, or q",
                choices.len()
            ));
            continue;
        };
        match choose(global, loaded, env, choice).await {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => stderr_line(&format!("  {}", with_causes(&error))),
        }
    }
}

/// Asks for the missing parts of a choice, and stores it. Returns false if a part is missing.
async fn choose(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
    choice: &Choice,
) -> anyhow::Result<bool> {
    let model = global.model.as_deref();
    let target = match choice {
        Choice::Local(server) => Target::new(server.config.clone()),
        Choice::Vendor(kind) => match vendor(*kind, env, model) {
            Some(config) => target(config.name.as_str(), loaded, env, model)?,
            None => return Ok(false),
        },
        Choice::Url => {
            let Some(url) = ask_line("URL of the server: ").await? else {
                return Ok(false);
            };
            target(url.trim(), loaded, env, model)?
        }
    };
    let mut config = target.config;
    if let Some(model) = model {
        config.model = model.to_owned();
    }
    let needs_key = !matches!(choice, Choice::Local(server) if !server.needs_key);
    let key = match needs_key {
        true => read_key(&config).await?,
        false => None,
    };
    let target = |config: ProviderConfig| Target {
        config,
        is_configured: target.is_configured,
    };
    if store(global, loaded, env, target(config.clone()), key.clone()).await? {
        return Ok(true);
    }
    let Some(model) = ask_line("Name of the model: ").await? else {
        return Ok(false);
    };
    config.model = visible(model.trim());
    store(global, loaded, env, target(config), key).await
}
