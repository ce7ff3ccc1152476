//! Completion of arguments that depend on this machine: sessions, providers, models, tools, settings.
//!
//! The script of `zeph completions` runs the program with [`VARIABLE`] for each completion.

use std::future::Future;

use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use zeph_tools::permission_mode::Mode;

use super::{Exit, help};
use crate::assemble::{ServerModels, chosen_config, known_tools, open_store};
use crate::config::{Environment, FlagOverrides, Loaded, load, setting_names};
use crate::models::ModelStore;
use crate::output::sanitize::visible;

/// The variable that requests a completion; its value is the shell.
const VARIABLE: &str = "_ZEPH_COMPLETE";
/// The maximum number of sessions that a completion lists.
const MAX_SESSIONS: u32 = 50;
/// The maximum number of characters of a description.
const MAX_CHARS: usize = 60;

/// The kind of the values of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sessions,
    Providers,
    /// The configured providers, and those that `zeph login` adds.
    Logins,
    Models,
    DownloadedModels,
    Tools,
    Settings,
    /// The permission modes.
    Modes,
}

/// Every argument with such values: the command, the argument, the kind.
const ARGUMENTS: &[(&str, &str, Kind)] = &[
    ("", "provider", Kind::Providers),
    ("", "model", Kind::Models),
    ("", "mode", Kind::Modes),
    ("", "resume", Kind::Sessions),
    ("run", "resume", Kind::Sessions),
    ("tools show", "name", Kind::Tools),
    ("tools call", "name", Kind::Tools),
    ("tools call", "session", Kind::Sessions),
    ("tools run", "session", Kind::Sessions),
    ("sessions show", "id", Kind::Sessions),
    ("sessions export", "id", Kind::Sessions),
    ("sessions rm", "ids", Kind::Sessions),
    ("overflow get", "session", Kind::Sessions),
    ("overflow list", "session", Kind::Sessions),
    ("audit query", "session", Kind::Sessions),
    ("audit query", "tool", Kind::Tools),
    ("policy explain", "tool", Kind::Tools),
    ("policy replay", "session", Kind::Sessions),
    ("undo", "session", Kind::Sessions),
    ("login", "target", Kind::Logins),
    ("logout", "target", Kind::Logins),
    ("models path", "name", Kind::DownloadedModels),
    ("models rm", "names", Kind::DownloadedModels),
    ("config get", "key", Kind::Settings),
    ("config set", "key", Kind::Settings),
];

/// The exit code if a shell requested a completion, which is then on standard output.
pub(super) fn respond() -> Option<Exit> {
    let directory = std::env::current_dir().ok();
    let request = CompleteEnv::with_factory(|| with_candidates(help::command())).var(VARIABLE);
    match request.try_complete(std::env::args_os(), directory.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(Exit::Done),
        Err(_) => Some(Exit::Usage),
    }
}

/// The script of a shell.
///
/// # Errors
/// The shell has no script.
pub(super) fn script(shell: clap_complete::Shell) -> anyhow::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    let completer =
        completer.ok_or_else(|| anyhow::anyhow!("there is no completion for {shell}"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "zeph", "zeph", "zeph", &mut script)?;
    Ok(script)
}

/// The command line with candidates for each argument in [`ARGUMENTS`].
fn with_candidates(command: Command) -> Command {
    ARGUMENTS
        .iter()
        .fold(command, |command, (path, argument, kind)| {
            let names: Vec<&str> = path.split_whitespace().collect();
            at(command, &names, argument, *kind)
        })
}

fn at(command: Command, path: &[&str], argument: &str, kind: Kind) -> Command {
    match path.split_first() {
        Some((first, rest)) if command.find_subcommand(first).is_some() => {
            command.mut_subcommand(first, |nested| at(nested, rest, argument, kind))
        }
        // The order of positional arguments must not change.
        None => command.mut_args(|known| match known.get_id() == argument {
            true => known.add(ArgValueCandidates::new(move || candidates(kind))),
            false => known,
        }),
        _ => command,
    }
}

/// The values of a kind on this machine. A failure lists nothing: a completion has no place for errors.
fn candidates(kind: Kind) -> Vec<CompletionCandidate> {
    let Ok(env) = Environment::of_process() else {
        return Vec::new();
    };
    let Ok(loaded) = load(&env, &FlagOverrides::default()) else {
        return Vec::new();
    };
    let values = match kind {
        Kind::Sessions => sessions(&loaded, &env).unwrap_or_default(),
        Kind::Providers => providers(&loaded),
        Kind::Logins => {
            let vendors =
                ["anthropic", "openai", "local"].map(|name| (name.to_owned(), String::new()));
            vendors.into_iter().chain(providers(&loaded)).collect()
        }
        Kind::Models => models(&loaded, &env).unwrap_or_default(),
        Kind::DownloadedModels => downloaded(&loaded),
        Kind::Tools => tools(&loaded, &env),
        Kind::Settings => plain(setting_names()),
        Kind::Modes => {
            let names = Mode::ALL.map(|mode| mode.as_str().to_owned());
            plain(names.into())
        }
    };
    values.into_iter().map(candidate).collect()
}

/// A candidate; its text may come from a model or a server.
fn candidate((value, about): (String, String)) -> CompletionCandidate {
    let about: String = visible(&about)
        .replace('\n', " ")
        .chars()
        .take(MAX_CHARS)
        .collect();
    let help = (!about.is_empty()).then(|| about.into());
    CompletionCandidate::new(visible(&value)).help(help)
}

type Values = Vec<(String, String)>;

fn plain(values: Vec<String>) -> Values {
    values
        .into_iter()
        .map(|value| (value, String::new()))
        .collect()
}

/// The sessions of this directory, the latest first. The database is not created.
fn sessions(loaded: &Loaded, env: &Environment) -> Option<Values> {
    if loaded.config.memory.url.is_none() && !loaded.paths.database.exists() {
        return None;
    }
    let sessions = wait(async {
        let store = open_store(loaded).await.ok()?;
        let listed = store.list_conversations(Some(&env.cwd), MAX_SESSIONS);
        let sessions = listed.await.ok();
        let _ = store.close().await;
        sessions
    })??;
    Some(
        sessions
            .into_iter()
            .map(|session| (session.id, session.title.unwrap_or_default()))
            .collect(),
    )
}

fn providers(loaded: &Loaded) -> Values {
    let providers = loaded.config.llm.providers.iter();
    providers
        .map(|config| (config.name.clone(), config.model.clone()))
        .collect()
}

/// The models of the server of the provider that gets requests.
fn models(loaded: &Loaded, env: &Environment) -> Option<Values> {
    let current = chosen_config(loaded, env, None).ok()?;
    let models = wait(async {
        let servers = ServerModels::new(loaded, env, &current);
        servers.current_listing().await.ok()
    })??;
    Some(plain(models.into_iter().map(|model| model.name).collect()))
}

fn downloaded(loaded: &Loaded) -> Values {
    let models = ModelStore::of(&loaded.paths.data_dir)
        .list()
        .unwrap_or_default();
    plain(models.into_iter().map(|model| model.name).collect())
}

fn tools(loaded: &Loaded, env: &Environment) -> Values {
    let Ok((tools, ..)) = known_tools(loaded, env) else {
        return Vec::new();
    };
    tools
        .into_iter()
        .map(|tool| (tool.id.to_string(), tool.description.to_string()))
        .collect()
}

/// Runs a future on a runtime of its own.
fn wait<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Some(runtime.enable_all().build().ok()?.block_on(future))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-2: each argument of the table exists.
    #[test]
    fn every_completed_argument_exists() {
        let mut command = help::command();
        command.build();
        for (path, argument, _) in ARGUMENTS {
            let mut found = &command;
            for name in path.split_whitespace() {
                found = found
                    .find_subcommand(name)
                    .unwrap_or_else(|| panic!("{path}"));
            }
            let mut arguments = found.get_arguments();
            assert!(
                arguments.any(|known| known.get_id() == *argument),
                "{path}: {argument}"
            );
        }
    }
}
