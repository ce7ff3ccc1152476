//! `zeph doctor --report`: the information that a maintainer needs, without secrets and without the path of the home directory.

use std::fmt::Write as _;
use std::path::Path;

use super::{Exit, GlobalArgs, Verdict, checks, line, print};
use crate::assemble::withhold_environment;
use crate::config::{Environment, load};
use crate::output::redact::redacted;

/// Features of the build.
const FEATURES: &[(&str, bool)] = &[
    ("syntax", cfg!(feature = "syntax")),
    ("tui", cfg!(feature = "tui")),
    ("secret-service", cfg!(feature = "secret-service")),
    ("candle", cfg!(feature = "candle")),
    ("otel", cfg!(feature = "otel")),
    ("postgres", cfg!(feature = "postgres")),
];
/// Variables that change how Zeph looks. Their values are no secrets.
const VARIABLES: &[&str] = &[
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LC_ALL",
    "ZEPH_LOG",
];

/// Prints the report; the exit code is 1 if a check failed.
pub(crate) async fn run(global: &GlobalArgs) -> anyhow::Result<Exit> {
    let env = Environment::of_process()?;
    // An error in the configuration may quote a value of the environment.
    withhold_environment(&env);
    let mut text = String::from(
        "Zeph report, without keys and conversations. Read it before you send it.\n\n",
    );
    let _ = writeln!(text, "version: {}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "system: {}", system());
    let features = FEATURES.iter().filter(|(_, is_on)| *is_on);
    let features: Vec<&str> = features.map(|(name, _)| *name).collect();
    let _ = writeln!(text, "features: {}", features.join(", "));
    for name in VARIABLES {
        if let Some(value) = env.var(name) {
            let _ = writeln!(text, "{name}: {}", value.to_string_lossy());
        }
    }
    text.push_str("\nkeys that are set:\n");
    match load(&env, &global.overrides()) {
        Ok(loaded) => {
            for (key, origin) in loaded.provenance.set_keys() {
                let _ = writeln!(text, "  {key}  # from {origin}");
            }
        }
        Err(errors) => {
            let _ = writeln!(text, "  the configuration is invalid: {errors}");
        }
    }
    text.push_str("\nchecks:\n");
    let checks = checks(global).await;
    for check in &checks {
        let _ = writeln!(text, "  {}", line(check));
    }
    let text = redacted(&text).into_owned();
    print(shortened(&text, env.home().as_deref()).trim_end())?;
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

/// The operating system, its version and the processor.
fn system() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        name.machine().to_string_lossy()
    )
}

/// The text with `~` for the home directory.
fn shortened(text: &str, home: Option<&Path>) -> String {
    match home.and_then(Path::to_str).filter(|home| home.len() > 1) {
        Some(home) => text.replace(home, "~"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report names every feature of the package.
    #[test]
    fn features_are_those_of_the_package() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let mut declared: Vec<&str> = manifest["features"]
            .as_table()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|name| *name != "default")
            .collect();
        let mut reported: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
        declared.sort_unstable();
        reported.sort_unstable();
        assert_eq!(reported, declared);
    }
}
