//! `zeph login` and `zeph logout`: the keys of providers, and the dialog of the first start.

mod dialog;
mod edit;
mod key_test;
mod local;
mod target;

use std::io::{self, IsTerminal as _, Read as _};

use anyhow::{Context as _, bail};
use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};
use zeph_llm::ProviderConfig;
use zeph_tui::ask::ask_hidden;

use super::args::GlobalArgs;
use super::user_file::UserFile;
use super::{Exit, load_config, print, usage};
use crate::config::{Environment, Loaded};
use crate::keys::KeyStore;
use crate::output::sanitize::visible;
use crate::output::stderr_line;
pub(super) use dialog::first_start;
use key_test::{Tested, test};
use target::{Target, target};

/// The maximum number of bytes of a piped key.
const MAX_KEY_BYTES: u64 = 16 * 1024;

/// The options of `zeph login`.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Provider: anthropic, openai, local, a configured name, or the URL of a server with OpenAI's API
    #[arg(value_name = "PROVIDER")]
    target: Option<String>,
    /// Name of the new provider in the configuration
    #[arg(long, value_name = "NAME", requires = "target")]
    name: Option<String>,
}

/// The options of `zeph logout`.
#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// Provider: anthropic, openai, a configured name, or the URL of a server
    #[arg(value_name = "PROVIDER")]
    target: Option<String>,
}

/// Stores the key of a provider, and adds the provider to the configuration.
///
/// # Errors
/// The provider is unknown, the key is refused, or a file cannot be written.
pub(crate) async fn login(global: &GlobalArgs, args: LoginArgs) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let Some(wanted) = &args.target else {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(usage(
                "name the provider: zeph login anthropic < FILE, zeph login openai < FILE, or zeph login URL < FILE",
            ));
        }
        return Ok(match first_start(global, &loaded, &env).await? {
            true => Exit::Done,
            false => Exit::Failed,
        });
    };
    let model = global.model.as_deref();
    let mut target = match wanted.as_str() {
        "local" | "ollama" if !target::is_configured(&loaded, wanted) => {
            let Some(server) = local::detect(&loaded, &env)
                .await
                .into_iter()
                .find(|it| it.is_usable())
            else {
                bail!(
                    "no server with a model responds on this machine; searched: {}",
                    loaded.config.llm.local_servers.join(", ")
                );
            };
            Target::new(server.config)
        }
        wanted => target(wanted, &loaded, &env, model)?,
    };
    if let Some(name) = args.name {
        let of_provider = &target.config.name;
        if target.is_configured && *of_provider != name {
            return Err(usage(format!(
                "the server of this provider is configured as {of_provider:?}; leave out --name, or rename it in the configuration"
            )));
        }
        if !target.is_configured && target::is_configured(&loaded, &name) {
            return Err(usage(format!(
                "--name {name:?}: another provider has this name; choose a new one"
            )));
        }
        target.config.name = name;
    }
    if let Some(model) = model {
        target.config.model = model.to_owned();
    }
    let key = read_key(&target.config).await?;
    match store(global, &loaded, &env, target, key).await? {
        true => Ok(Exit::Done),
        false => bail!("nothing was stored: the server lists no models; name one with --model"),
    }
}

/// Removes the key of a provider.
///
/// # Errors
/// The provider is unknown, or the key cannot be removed.
pub(crate) fn logout(global: &GlobalArgs, args: &LogoutArgs) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let keys = KeyStore::in_folder(&loaded.paths.data_dir);
    let servers = keys.servers().context("the stored keys cannot be read")?;
    let server = match (&args.target, servers.as_slice()) {
        (Some(provider), _) => {
            let config = target(provider, &loaded, &env, None)?.config;
            config
                .key_server()
                .with_context(|| format!("the provider {provider:?} has no server"))?
        }
        (None, []) => bail!("no key is stored"),
        (None, [only]) => only.clone(),
        (None, several) => {
            return Err(usage(format!(
                "several keys are stored; name a provider or one of these servers: {}",
                several.join(", ")
            )));
        }
    };
    if !keys.remove(&server).context("the key cannot be removed")? {
        bail!("no key of {server} is stored");
    }
    print(&visible(&format!("removed the key of {server}")))?;
    Ok(Exit::Done)
}

/// Reads the key: without echo from a terminal, otherwise from standard input. `None` if the line is empty.
async fn read_key(config: &ProviderConfig) -> anyhow::Result<Option<SecretString>> {
    let key = if io::stdin().is_terminal() {
        let empty = match config.key_env() {
            Some(_) => "",
            None => "; Enter for none",
        };
        let prompt = format!("Key for {} (not shown{empty}): ", server_name(config));
        ask_hidden(&prompt).await?.unwrap_or_default()
    } else {
        let mut bytes = Vec::new();
        let mut input = io::stdin().lock().take(MAX_KEY_BYTES);
        input
            .read_to_end(&mut bytes)
            .context("standard input cannot be read")?;
        let text = String::from_utf8(bytes).map_err(|_| usage("the key is not UTF-8"))?;
        SecretString::from(text)
    };
    let trimmed = key.expose_secret().trim();
    if trimmed.is_empty() {
        return match config.key_env() {
            Some(_) => Err(usage("the key is empty")),
            None => Ok(None),
        };
    }
    if !trimmed.chars().all(|c| c.is_ascii_graphic()) {
        return Err(usage("the key is not one word of printable characters"));
    }
    Ok(Some(SecretString::from(trimmed.to_owned())))
}

/// The server of a provider for a prompt.
fn server_name(config: &ProviderConfig) -> String {
    visible(&config.key_server().unwrap_or_else(|| config.name.clone()))
}

/// Tests the key, stores it, and adds the provider to the configuration. Returns false, and stores nothing, if the
/// provider needs a model.
///
/// # Errors
/// The server refuses the key or does not respond; nothing is stored then. A file cannot be written.
async fn store(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
    mut target: Target,
    key: Option<SecretString>,
) -> anyhow::Result<bool> {
    let tested = test(&target.config, loaded, key.clone()).await?;
    match &tested {
        Tested::Models(models) => stderr_line(&format!(
            "{} responds: {}",
            server_name(&target.config),
            zeph_tools::plural::pluralize(models.len(), "model")
        )),
        Tested::NoList => stderr_line(&format!(
            "{} lists no models, so the key was not tested",
            server_name(&target.config)
        )),
    }
    if !target.is_configured && !tested.choose_model(&mut target.config) {
        return Ok(false);
    }
    if let Some(key) = key {
        let server = target.config.key_server();
        let server = server.context("the provider has no server that takes a key")?;
        let keys = KeyStore::in_folder(&loaded.paths.data_dir);
        let place = keys
            .save(&server, &key)
            .context("the key cannot be stored")?;
        stderr_line(&visible(&format!("stored the key of {server} in {place}")));
    }
    if !target.is_configured {
        add_to_configuration(global, loaded, env, &target.config)?;
    }
    Ok(true)
}

/// Adds the provider to the user's file.
fn add_to_configuration(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
    config: &ProviderConfig,
) -> anyhow::Result<()> {
    let flags = global.overrides();
    let file = UserFile::read(env, &flags)?;
    let new = edit::with_provider(&file.text, config)
        .map_err(|error| anyhow::anyhow!("{}: {error}", file.name()))?;
    file.replace(env, &flags, &new)?;
    let model = visible(&config.model);
    stderr_line(&format!(
        "added the provider {:?} with the model {model} to {}",
        config.name,
        file.name()
    ));
    if let Some(chosen) = loaded.config.llm.chosen() {
        stderr_line(&format!(
            "{} stays the default; zeph config set llm.default {} changes this",
            visible(&chosen.name),
            config.name
        ));
    }
    Ok(())
}
