//! Loading of the configuration: layers are read, checked and merged into a [`Config`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Table;
use zeph_tools::gate::policy::PolicyEnforcer;
use zeph_tools::gate::{PathResolver, RuleSet};

use super::Config;
use super::check::{check, check_judge, check_read_rules};
use super::env::Environment;
use super::error::{ConfigError, ConfigErrors};
use super::layer::{FileLayer, Layer};
use super::limits::yield_to_limits;
use super::old_keys;
use super::origin::{Origin, Provenance};
use super::overrides::{FlagOverrides, from_environment};
use super::paths::{PROJECT_FILE, Paths, absolute, project_root, read};
use super::permissions::{compile, put_in_front};
use super::project_trust::Bounds;
use super::watch::{Stamp, Stamps};
use super::{patterns, policy};

/// The key of the policies that calls are judged by.
const POLICIES: &str = "tools.adversarial_policy.policies";

/// A configuration that was loaded and checked.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The effective values; all paths in it are absolute.
    pub(crate) config: Config,
    /// The origin of each value.
    pub(crate) provenance: Provenance,
    /// How many of the policies that calls are judged by are the user's; the others are the project's.
    pub(crate) own_policies: usize,
    /// The rules of permissions, compiled.
    pub(crate) rules: Arc<RuleSet>,
    /// The compiled rules of the policy; `None` if it is off.
    pub(crate) policy: Option<Arc<PolicyEnforcer>>,
    /// The base directories of paths in calls.
    pub(crate) places: Arc<PathResolver>,
    /// Problems that are not errors.
    pub(crate) warnings: Vec<String>,
    /// The paths of files and directories.
    pub(crate) paths: Paths,
    /// The stamps of the files just before they were read.
    pub(crate) stamps: Stamps,
}

/// Loads the configuration: flags over environment over project over user over defaults.
///
/// # Errors
/// All faults that were found. Nothing was run and nothing was written.
pub(crate) fn load(env: &Environment, flags: &FlagOverrides) -> Result<Loaded, ConfigErrors> {
    let paths = Paths::locate(env, flags.config.as_deref())?;
    load_from(paths, env, flags, Reading::First)
}

/// Loads the configuration again during a session.
///
/// # Errors
/// As [`load`]; also if the user's file is a pipe or the like, because its content has been consumed.
pub(crate) fn reload(env: &Environment, flags: &FlagOverrides) -> Result<Loaded, ConfigErrors> {
    let paths = Paths::locate(env, flags.config.as_deref())?;
    load_from(paths, env, flags, Reading::Again)
}

/// Which time the files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    First,
    Again,
}

fn load_from(
    mut paths: Paths,
    env: &Environment,
    flags: &FlagOverrides,
    reading: Reading,
) -> Result<Loaded, ConfigErrors> {
    let stamps = Stamps::of(&paths);
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let must_exist = flags.config.is_some();
    if reading == Reading::Again && stamps.user.stamp == Stamp::Special {
        let once = io::Error::other("it is not a regular file, so Zeph can read it only once");
        return Err(unreadable(&paths.user_file, &once).into());
    }
    let defaults = defaults()?;
    let mut layers = read_file(&paths.user_file, FileLayer::User, must_exist, &mut errors);
    let of_user = layers
        .get(POLICIES)
        .and_then(|list| Some(list.as_array()?.len()));
    if let Some(file) = paths.project_file.clone() {
        let mut project = read_file(&file, FileLayer::Project, true, &mut errors);
        project.replace_ollama(&mut errors);
        errors.extend(tighten(
            &defaults,
            &layers,
            &mut project,
            env,
            &file,
            &paths.user_file,
        ));
        errors.extend(put_in_front(&layers, &mut project));
        errors.extend(policy::put_in_front(&layers, &mut project));
        layers.merge(project);
    }
    layers.merge(from_environment(env, &mut errors, &mut warnings));
    layers.merge(flags.layer(&mut errors));
    layers.replace_ollama(&mut errors);
    ConfigErrors::check(errors)?;
    yield_to_limits(&mut layers, &defaults);
    warnings.extend(old_keys::notice(&layers.old));

    let Layer {
        table,
        mut provenance,
        ..
    } = layers;
    let mut config: Config = table
        .try_into()
        .map_err(|error| ConfigError::general(error.to_string().trim().replace('\n', " ")))?;
    if let Some(model) = &flags.model {
        choose_model(&mut config, &mut provenance, model);
    }
    let all = config.tools.adversarial_policy.policies.len();
    let own_policies = match provenance.of(POLICIES) {
        Origin::Project(_) => of_user.unwrap_or_default().min(all),
        _ => all,
    };
    let mut errors = check(&config, &provenance);
    errors.extend(check_judge(&config, &provenance, own_policies));
    errors.extend(check_read_rules(
        &config,
        &provenance,
        env.home().as_deref(),
    ));
    absolute_paths(&mut config, &provenance, env, &mut errors);
    let places = PathResolver::new(&env.cwd, env.home(), &config.tools.file.allowed_paths);
    let rules = compile(&config, &provenance, &places).unwrap_or_else(|faults| {
        errors.extend(faults);
        RuleSet::default()
    });
    let compiled = policy::compile(&config, &provenance, &places, env);
    let compiled = compiled.unwrap_or_else(|faults| {
        errors.extend(faults);
        None
    });
    ConfigErrors::check(errors)?;
    warnings.extend(patterns::warnings(&config, &provenance));
    let policy = &config.tools.adversarial_policy;
    if policy.enabled && policy.fail_open {
        warnings.push(format!(
            "calls that cannot be checked run: `tools.adversarial_policy.fail_open` is set ({})",
            provenance.of("tools.adversarial_policy.fail_open")
        ));
    }
    if let Some(path) = &config.memory.path {
        paths.database.clone_from(path);
    }
    if let Some(path) = &config.tools.audit.path {
        paths.audit_log.clone_from(path);
    }
    Ok(Loaded {
        config,
        provenance,
        own_policies,
        rules: Arc::new(rules),
        policy: compiled.map(Arc::new),
        places: Arc::new(places),
        warnings,
        paths,
        stamps,
    })
}

/// Checks one file alone, without environment and flags: as a project's file, against the user's,
/// if it is called so; as the user's file otherwise. Returns the warnings.
///
/// # Errors
/// All faults that were found.
pub(crate) fn check_file(
    env: &Environment,
    flags: &FlagOverrides,
    file: &Path,
) -> Result<Vec<String>, ConfigErrors> {
    let file = env.cwd.join(file);
    let mut env = env.clone();
    env.vars
        .retain(|name, _| !name.as_encoded_bytes().starts_with(b"ZEPH_"));
    let is_project = file.ends_with(PROJECT_FILE);
    let config = if is_project {
        flags.config.clone()
    } else {
        Some(file.clone())
    };
    let mut paths = Paths::locate(&env, config.as_deref())?;
    paths.project_file = None;
    if is_project {
        env.cwd = project_root(&file).to_owned();
        paths.project_file = Some(file);
    }
    let flags = FlagOverrides {
        config,
        ..FlagOverrides::default()
    };
    load_from(paths, &env, &flags, Reading::First).map(|loaded| loaded.warnings)
}

fn read_file(
    file: &Path,
    layer: FileLayer,
    must_exist: bool,
    errors: &mut Vec<ConfigError>,
) -> Layer {
    match read(file, layer == FileLayer::Project) {
        Ok(text) => Layer::from_toml(&text, file, layer, errors),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Layer::default(),
        Err(error) => {
            errors.push(unreadable(file, &error));
            Layer::default()
        }
    }
}

fn unreadable(file: &Path, error: &io::Error) -> ConfigError {
    let kind = error.kind();
    let error = ConfigError::general(format!("{} cannot be read: {error}", file.display()));
    error.help(match kind {
        io::ErrorKind::NotFound => "name a file that exists",
        _ => "correct it or remove it",
    })
}

/// Checks the project's layer against the configuration without it.
fn tighten(
    defaults: &Table,
    user: &Layer,
    project: &mut Layer,
    env: &Environment,
    file: &Path,
    user_file: &Path,
) -> Vec<ConfigError> {
    let mut base = Layer {
        table: defaults.clone(),
        ..Layer::default()
    };
    base.merge(user.clone());
    let home = env.home();
    let bounds = Bounds {
        base: &base,
        root: project_root(file),
        cwd: &env.cwd,
        home: home.as_deref(),
        user_file,
        resolve: &real_path,
    };
    bounds.enforce(project)
}

fn defaults() -> Result<Table, ConfigError> {
    Table::try_from(Config::default())
        .map_err(|error| ConfigError::general(format!("the defaults are not TOML: {error}")))
}

#[allow(
    clippy::disallowed_methods,
    reason = "what a project names is judged where its links lead, before any sandbox exists"
)]
fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

fn choose_model(config: &mut Config, provenance: &mut Provenance, model: &str) {
    if let Some(chosen) = config.llm.chosen_index() {
        config.llm.providers[chosen].model = model.to_owned();
        let key = format!("llm.providers[{chosen}].model");
        provenance.set(&key, Origin::Flag("--model".to_owned()));
    }
}

/// Relative paths start at the project's directory in its file, otherwise at the working directory.
fn absolute_paths(
    config: &mut Config,
    provenance: &Provenance,
    env: &Environment,
    errors: &mut Vec<ConfigError>,
) {
    let home = env.home();
    let mut mend = |path: &mut PathBuf, key: &str| {
        let origin = provenance.of(key);
        let base = match origin {
            Origin::Project(place) => project_root(&place.file),
            _ => &env.cwd,
        };
        match absolute(path, base, home.as_deref()) {
            Ok(whole) => *path = whole,
            Err(why) => errors.push(ConfigError::new(origin.clone(), format!("`{key}`: {why}"))),
        }
    };
    let filters = &mut config.tools.filters.filters_path;
    filters.take_if(|path| path.as_os_str().is_empty());
    if let Some(path) = filters {
        mend(path, "tools.filters.filters_path");
    }
    // An empty path means no path.
    config
        .memory
        .path
        .take_if(|path| path.as_os_str().is_empty());
    if let Some(path) = &mut config.memory.path {
        mend(path, "memory.path");
    }
    let log = &mut config.tools.audit.path;
    log.take_if(|path| path.as_os_str().is_empty());
    if let Some(path) = log {
        mend(path, "tools.audit.path");
    }
    for path in &mut config.tools.file.allowed_paths {
        mend(path, "tools.file.allowed_paths");
    }
    for path in &mut config.tools.shell.allowed_paths {
        mend(path, "tools.shell.allowed_paths");
    }
    for path in &mut config.tools.shell.sandbox.writable {
        mend(path, "tools.shell.sandbox.writable");
    }
    for (number, provider) in config.llm.providers.iter_mut().enumerate() {
        if let Some(path) = &mut provider.scenario {
            mend(path, &format!("llm.providers[{number}].scenario"));
        }
    }
}

#[cfg(test)]
mod tests;
