//! `zeph config get` and `zeph config set`: one setting.

use std::io::Write;

use anyhow::bail;
use serde::Serialize as _;
use toml::Value;
use toml_edit::DocumentMut;
use toml_edit::ser::ValueSerializer;

use super::user_file::UserFile;
use crate::assemble::withhold;
use crate::config::{
    self, ConfigErrors, Environment, FlagOverrides, Setting, set_value, setting, stronger_source,
    typed_setting,
};

/// Prints the effective value of a key: a string as it is, other values as TOML.
///
/// # Errors
/// [`ConfigErrors`] for an unknown key; the key has no value.
pub(super) fn get(
    env: &Environment,
    flags: &FlagOverrides,
    key: &str,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let loaded = config::load(env, flags)?;
    withhold(&loaded, env);
    match setting(&loaded.config, key)? {
        Setting::Unset => bail!("`{key}` is not set"),
        Setting::Value(Value::String(text)) => writeln!(out, "{text}")?,
        Setting::Value(Value::Table(table)) => write!(out, "{}", toml::to_string(&table)?)?,
        Setting::Value(value) => writeln!(out, "{value}")?,
    }
    Ok(())
}

/// Sets a key in the user's file, and names the file. A stronger source that sets the key too is reported,
/// and so is an error of another source.
///
/// # Errors
/// [`ConfigErrors`] for an unknown key or an invalid value; failures of reading and writing. Nothing is written then.
pub(super) fn set(
    env: &Environment,
    flags: &FlagOverrides,
    (key, text): (&str, &str),
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let (path, value) = typed_setting(key, text)?;
    let file = UserFile::read(env, flags)?;
    let name = file.name();
    let mut document: DocumentMut = file.text.parse().map_err(|error: toml_edit::TomlError| {
        anyhow::anyhow!("{name}: this is not TOML: {error}")
    })?;
    let written = value.serialize(ValueSerializer::new())?;
    let shown = written.to_string();
    if !set_value(&mut document, &path, written) {
        bail!("{name} has another kind of value at `{key}`; `zeph config edit` opens the file");
    }
    file.replace(env, flags, &document.to_string())?;
    writeln!(out, "set {key} = {} in {name}", shown.trim())?;
    match config::load(env, flags) {
        Ok(loaded) => {
            if let Some((key, origin)) = stronger_source(&loaded.provenance, &path, &value) {
                writeln!(
                    err,
                    "warning: {origin} sets `{key}` too, and takes precedence"
                )?;
            }
        }
        // The new file is valid, so another source is not.
        Err(errors) => writeln!(
            err,
            "warning: the key is set, but another source of the configuration has an error:\n{errors}"
        )?,
    }
    Ok(())
}

/// Whether an error is a fault of the configuration.
pub(super) fn is_fault(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<ConfigErrors>())
}
