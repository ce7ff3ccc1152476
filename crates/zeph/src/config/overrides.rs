//! The layers above the files: environment variables and flags.

use std::path::PathBuf;

use super::env::Environment;
use super::error::{ConfigError, nearest};
use super::layer::Layer;
use super::origin::Origin;
use super::schema_shape;

/// Variables that begin like settings and are none.
pub(crate) const OTHER_VARIABLES: &[(&str, &str)] = &[
    (
        "ZEPH_LOG",
        "The filter of more log records, for the log file and standard error, for example `zeph=debug`. Warnings and errors always go to the file.",
    ),
    (
        "ZEPH_CALL_ID",
        "Set by Zeph for the commands that it runs: the call that a command belongs to.",
    ),
];

/// The settings of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FlagOverrides {
    /// `--config FILE`: takes the place of the user's file, and must exist.
    pub(crate) config: Option<PathBuf>,
    /// `--provider NAME`: `llm.default`.
    pub(crate) provider: Option<String>,
    /// `--model NAME`: the model of the chosen provider. It has no effect if no provider is configured.
    pub(crate) model: Option<String>,
    /// `--mode MODE`: `tools.mode`.
    pub(crate) mode: Option<String>,
    /// `--set KEY=VALUE`, in this order: the setting, and its value as TOML or as plain text.
    pub(crate) set: Vec<(String, String)>,
}

impl FlagOverrides {
    /// Splits the argument of `--set`.
    ///
    /// # Errors
    /// If it contains no `=`.
    pub(crate) fn parse_set(argument: &str) -> Result<(String, String), String> {
        let (key, value) = argument
            .split_once('=')
            .ok_or("the form is KEY=VALUE, as in tools.shell.timeout=60")?;
        Ok((key.trim().to_owned(), value.to_owned()))
    }

    /// The layer of the flags; those with a name of their own are stronger than `--set`.
    pub(crate) fn layer(&self, errors: &mut Vec<ConfigError>) -> Layer {
        let set = self
            .set
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str(), format!("--set {key}")));
        let named = [
            ("llm.default", self.provider.as_deref(), "--provider"),
            ("tools.mode", self.mode.as_deref(), "--mode"),
        ];
        let named = named
            .into_iter()
            .filter_map(|(key, value, flag)| Some((key, value?, flag.to_owned())));
        let mut layer = Layer::default();
        for (key, value, flag) in set.chain(named) {
            if let Err(faults) = layer.set_text(key, value, &Origin::Flag(flag)) {
                errors.extend(faults);
            }
        }
        layer.replace_old_keys(errors);
        layer
    }
}

/// The environment variable of a setting: `ZEPH_TOOLS_SHELL_TIMEOUT` for `tools.shell.timeout`.
pub(crate) fn variable(key: &str) -> String {
    format!("ZEPH_{}", key.replace('.', "_").to_uppercase())
}

/// The layer of the environment. An unknown variable that looks like a setting is a warning: it may belong to another
/// version.
pub(crate) fn from_environment(
    env: &Environment,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Layer {
    let mut layer = Layer::default();
    let given = env
        .vars
        .iter()
        .filter(|(name, value)| name.as_encoded_bytes().starts_with(b"ZEPH_") && !value.is_empty());
    let mut settings: Option<Vec<(String, String, bool)>> = None;
    for (name, value) in given {
        // Computed on demand: most environments have no such variable.
        let settings = settings.get_or_insert_with(|| {
            schema_shape::accepted()
                .settings()
                .into_iter()
                .map(|(key, field)| (variable(&key), key, field.is_old))
                .collect()
        });
        let name = name.to_string_lossy().into_owned();
        if OTHER_VARIABLES.iter().any(|(other, _)| *other == name) {
            continue;
        }
        let Some((_, key, _)) = settings.iter().find(|(variable, ..)| *variable == name) else {
            let current = settings.iter().filter(|(.., is_old)| !is_old);
            let near = nearest(&name, current.map(|(variable, ..)| variable.as_str()));
            let near = near.map_or("", |(near, _)| near);
            warnings.push(format!(
                "the environment variable {} is unknown; the nearest known one is {near}",
                name.escape_debug()
            ));
            continue;
        };
        let origin = Origin::Environment(name);
        match value.to_str() {
            Some(text) => {
                if let Err(faults) = layer.set_text(key, text, &origin) {
                    errors.extend(faults);
                }
            }
            None => errors
                .push(ConfigError::new(origin, "its value is not UTF-8").help("set it in a file")),
        }
    }
    layer.replace_old_keys(errors);
    layer
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;
    use std::os::unix::ffi::OsStringExt as _;

    fn read(vars: &[(&str, &str)]) -> (String, Vec<String>, Vec<String>) {
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        let layer = from_environment(&Environment::of("/", vars), &mut errors, &mut warnings);
        let errors = errors.iter().map(ToString::to_string).collect();
        (layer.table.to_string(), errors, warnings)
    }

    /// Proves CFG-1, AGT-2.
    #[test]
    fn variables_set_their_keys() {
        let (table, errors, warnings) = read(&[
            ("ZEPH_AGENT_MAX_TOOL_ITERATIONS", "3"),
            ("ZEPH_TOOLS_SHELL_ENV_BLOCK", "A,B"),
            ("ZEPH_TOOLS_MODE", "plan"),
            ("ZEPH_MEMORY_PATH", ""),
            ("ZEPH_LOG", "debug"),
            ("ZEPH_CALL_ID", "c1"),
            ("ZEPHYR", "wind"),
        ]);
        assert_eq!(
            table,
            "[agent]\nmax_tool_iterations = 3\n\n[tools]\nmode = \"plan\"\n\n[tools.shell.env]\nblock = [\"A\", \"B\"]\n"
        );
        assert_eq!(
            (errors.len(), warnings.len()),
            (0, 0),
            "{errors:?} {warnings:?}"
        );
    }

    /// Proves CFG-1: the name of the variable is in the error.
    #[test]
    fn invalid_variable_is_named() {
        let (_, errors, warnings) = read(&[
            ("ZEPH_TOOLS_SHELL_TIMEOUT", "0"),
            ("ZEPH_TOOLS_SHEL_TIMEOUT", "1"),
        ]);
        assert_eq!(
            errors,
            [
                "environment variable ZEPH_TOOLS_SHELL_TIMEOUT: `tools.shell.timeout` must be an integer of at least 1, not 0"
            ]
        );
        assert_eq!(
            warnings,
            [
                "the environment variable ZEPH_TOOLS_SHEL_TIMEOUT is unknown; the nearest known one is ZEPH_TOOLS_SHELL_TIMEOUT"
            ]
        );
        let mut env = Environment::default();
        env.vars.insert(
            "ZEPH_LLM_DEFAULT".into(),
            std::ffi::OsString::from_vec(vec![0xff]),
        );
        let mut errors = Vec::new();
        from_environment(&env, &mut errors, &mut Vec::new());
        assert!(errors[0].to_string().contains("not UTF-8"), "{errors:?}");
    }

    /// Proves CFG-1: each setting has a separate variable.
    #[test]
    fn names_of_variables_are_unique() {
        let settings = schema_shape::root().settings();
        let names: BTreeSet<String> = settings.iter().map(|(key, _)| variable(key)).collect();
        assert_eq!(names.len(), settings.len());
        assert!(
            OTHER_VARIABLES
                .iter()
                .all(|(name, _)| !names.contains(*name))
        );
    }

    #[test]
    fn flags_set_their_keys() {
        let flags = FlagOverrides {
            provider: Some("local".to_owned()),
            mode: Some("plan".to_owned()),
            set: vec![
                FlagOverrides::parse_set("tools.mode = full").unwrap(),
                FlagOverrides::parse_set("llm.retry.max_attempts=1").unwrap(),
            ],
            ..FlagOverrides::default()
        };
        let mut errors = Vec::new();
        // A space after `=` belongs to the value, as in any shell.
        flags.layer(&mut errors);
        assert!(
            errors[0].to_string().starts_with("--set tools.mode: "),
            "{errors:?}"
        );
        let flags = FlagOverrides {
            set: flags.set[1..].to_vec(),
            ..flags
        };
        errors.clear();
        let layer = flags.layer(&mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(
            layer.table.to_string(),
            "[llm]\ndefault = \"local\"\n\n[llm.retry]\nmax_attempts = 1\n\n[tools]\nmode = \"plan\"\n"
        );
        assert_eq!(
            layer.provenance.of("tools.mode"),
            &Origin::Flag("--mode".to_owned())
        );
        let flags = FlagOverrides {
            mode: Some("none".to_owned()),
            ..FlagOverrides::default()
        };
        flags.layer(&mut errors);
        assert!(
            errors[0]
                .to_string()
                .starts_with("--mode: `tools.mode` must be one of"),
            "{errors:?}"
        );
        assert!(FlagOverrides::parse_set("novalue").is_err());
    }
}
