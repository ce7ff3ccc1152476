//! `zeph config`: shows, checks and writes the configuration.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::args::GlobalArgs;
use super::config_migrate::{Options, migrate};
use super::{Exit, config_editor, config_value, print};
use crate::assemble::withhold;
use crate::config::{self, Environment, FlagOverrides, Paths, json_schema, reference, template};

/// `zeph config …`
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write the user's configuration file, with every key and its default
    Init {
        /// Replace an existing file; the old file is stored as .bak
        #[arg(long)]
        force: bool,
        /// Print the file instead of writing it
        #[arg(long)]
        print: bool,
    },
    /// Print the effective values
    Show {
        /// Print the source of each value
        #[arg(long)]
        origin: bool,
    },
    /// Print the effective value of a key
    Get {
        /// Key, such as tools.shell.timeout, or section, such as tools.shell
        key: String,
    },
    /// Set a key in the user's file; comments are preserved
    Set {
        /// Key, such as tools.shell.timeout
        key: String,
        /// Value: TOML, a plain string, or strings separated by commas
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Open the user's file in $VISUAL or $EDITOR; an invalid text is not stored
    Edit,
    /// Print the paths of all files
    Path,
    /// Print the JSON Schema of the configuration
    Schema,
    /// Check a file or the whole configuration
    Check {
        /// File; a file called .zeph/config.toml is checked as a project's file
        file: Option<PathBuf>,
    },
    /// Replace the old keys of a file; the old file is stored as .bak
    Migrate {
        /// Change the project's file, .zeph/config.toml, instead of the user's file
        #[arg(long)]
        project: bool,
        /// Print the changes without writing the file
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the reference of all keys as Markdown
    #[command(hide = true)]
    Reference,
}

/// Runs `zeph config …`.
///
/// # Errors
/// [`config::ConfigErrors`] if the configuration is wrong; errors of reading and writing.
pub(crate) fn run(global: &GlobalArgs, command: ConfigCommand) -> anyhow::Result<Exit> {
    let env = Environment::of_process().context("the working directory cannot be found")?;
    let mut err: Box<dyn Write> = if global.quiet {
        Box::new(io::sink())
    } else {
        Box::new(io::stderr())
    };
    let mut out = Vec::new();
    let done = execute(
        &command,
        &env,
        &global.overrides(),
        global.yes,
        &mut out,
        &mut err,
    );
    if !out.is_empty() {
        print(&String::from_utf8_lossy(&out))?;
    }
    done?;
    Ok(Exit::Done)
}

/// Runs the command. Its output goes to `out`, its warnings go to `err`.
fn execute(
    command: &ConfigCommand,
    env: &Environment,
    flags: &FlagOverrides,
    yes: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Init { print: true, .. } => out.write_all(template().as_bytes())?,
        ConfigCommand::Init { force, .. } => init(env, flags, *force, out)?,
        ConfigCommand::Show { origin } => {
            let loaded = config::load(env, flags)?;
            withhold(&loaded, env);
            warn(&loaded.warnings, err)?;
            let origins = origin.then_some(&loaded.provenance);
            out.write_all(config::effective(&loaded.config, origins).as_bytes())?;
        }
        ConfigCommand::Get { key } => config_value::get(env, flags, key, out)?,
        ConfigCommand::Set { key, value } => config_value::set(env, flags, (key, value), out, err)?,
        ConfigCommand::Edit => config_editor::edit(env, flags)?,
        ConfigCommand::Path => path(env, flags, out)?,
        ConfigCommand::Schema => writeln!(out, "{:#}", json_schema())?,
        ConfigCommand::Check { file: Some(file) } => {
            warn(&config::check_file(env, flags, file)?, err)?;
            writeln!(out, "ok")?;
        }
        ConfigCommand::Check { file: None } => {
            let loaded = config::load(env, flags)?;
            warn(&loaded.warnings, err)?;
            writeln!(out, "ok")?;
        }
        ConfigCommand::Migrate { project, dry_run } => {
            let options = Options {
                project: *project,
                dry_run: *dry_run,
                yes,
            };
            migrate(env, flags, options)?;
        }
        ConfigCommand::Reference => out.write_all(reference().as_bytes())?,
    }
    out.flush()?;
    Ok(())
}

fn warn(warnings: &[String], err: &mut dyn Write) -> io::Result<()> {
    warnings
        .iter()
        .try_for_each(|warning| writeln!(err, "warning: {warning}"))
}

fn init(
    env: &Environment,
    flags: &FlagOverrides,
    force: bool,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // The file only has to be found; it need not be right.
    let file = Paths::locate(env, flags.config.as_deref())
        .map_err(config::ConfigErrors::from)?
        .user_file;
    let backup = free_backup(&file);
    let exists = fs::symlink_metadata(&file).is_ok();
    if exists && !force {
        bail!(
            "{} exists\n  help: `--force` writes a new one and keeps it as `.bak`; `--print` only prints",
            file.display()
        );
    }
    write_file(&file, &backup, exists)
        .with_context(|| format!("{} cannot be written", file.display()))?;
    if exists {
        writeln!(out, "kept the old file as {}", backup.display())?;
    }
    writeln!(out, "wrote {}", file.display())?;
    Ok(())
}

/// The first name for a backup that is not taken: `.bak`, `.bak.1`, …
pub(super) fn free_backup(file: &Path) -> PathBuf {
    let first = file.with_added_extension("bak");
    let later = (1_u32..).map(|number| first.with_added_extension(number.to_string()));
    std::iter::once(first.clone())
        .chain(later)
        .find(|name| fs::symlink_metadata(name).is_err())
        .unwrap_or(first)
}

/// Writes the template atomically under its name, with mode 0600.
fn write_file(file: &Path, backup: &Path, exists: bool) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    // Temporary files have mode 0600.
    let mut temporary = tempfile::NamedTempFile::new_in(directory)?;
    temporary.write_all(template().as_bytes())?;
    temporary.as_file().sync_all()?;
    if exists {
        fs::rename(file, backup)?;
    }
    // A file that was created meanwhile is not replaced.
    temporary
        .persist_noclobber(file)
        .map_err(|error| error.error)?;
    Ok(())
}

/// Prints the paths. It also works with an invalid configuration, since the user needs the paths to fix it.
fn path(env: &Environment, flags: &FlagOverrides, out: &mut dyn Write) -> anyhow::Result<()> {
    let located =
        Paths::locate(env, flags.config.as_deref()).map_err(config::ConfigErrors::from)?;
    let (paths, is_known) = match config::load(env, flags) {
        Ok(loaded) => (loaded.paths, true),
        Err(_) => (located, false),
    };
    let mut line = |what: &str, path: &Path| {
        let state = if fs::symlink_metadata(path).is_ok() {
            "exists"
        } else {
            "missing"
        };
        writeln!(out, "{what:13} {} ({state})", path.display())
    };
    line("user file", &paths.user_file)?;
    if let Some(file) = &paths.project_file {
        line("project file", file)?;
    }
    line("data", &paths.data_dir)?;
    if is_known {
        line("database", &paths.database)?;
    } else {
        let why = "unknown: the configuration has errors; see `zeph config check`";
        writeln!(out, "{:13} {why}", "database")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    struct Home {
        temp: tempfile::TempDir,
        env: Environment,
    }

    impl Home {
        fn new(vars: &[(&str, &str)]) -> Self {
            let temp = tempfile::tempdir().unwrap();
            let mut env = Environment::of(temp.path(), vars);
            env.vars.insert("HOME".into(), temp.path().into());
            Self { temp, env }
        }

        fn run(&self, command: ConfigCommand) -> anyhow::Result<(String, String)> {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            execute(
                &command,
                &self.env,
                &FlagOverrides::default(),
                true,
                &mut out,
                &mut err,
            )?;
            let text = |bytes| {
                String::from_utf8(bytes)
                    .unwrap()
                    .replace(self.temp.path().to_str().unwrap(), "~")
            };
            Ok((text(out), text(err)))
        }

        fn file(&self) -> PathBuf {
            self.temp.path().join(".config/zeph/config.toml")
        }
    }

    const INIT: ConfigCommand = ConfigCommand::Init {
        force: false,
        print: false,
    };

    /// Proves CLI-2, CFG-3.
    #[test]
    fn init_writes_once_and_backs_up_the_replaced_file() {
        let home = Home::new(&[]);
        let (out, _) = home.run(INIT).unwrap();
        assert_eq!(out, "wrote ~/.config/zeph/config.toml\n");
        assert_eq!(fs::read_to_string(home.file()).unwrap(), template());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home.file()), 0o600);
        assert_eq!(mode(home.file().parent().unwrap()), 0o700);

        fs::write(home.file(), "# mine").unwrap();
        let error = home.run(INIT).unwrap_err();
        assert!(error.downcast_ref::<config::ConfigErrors>().is_none());
        assert!(
            error
                .to_string()
                .contains("config.toml exists\n  help: `--force`"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(home.file()).unwrap(), "# mine");

        let (out, _) = home
            .run(ConfigCommand::Init {
                force: true,
                print: false,
            })
            .unwrap();
        assert!(
            out.starts_with("kept the old file as ~/.config/zeph/config.toml.bak\n"),
            "{out}"
        );
        assert_eq!(fs::read_to_string(home.file()).unwrap(), template());
        let backup = home.file().with_extension("toml.bak");
        assert_eq!(fs::read_to_string(backup).unwrap(), "# mine");
        let left = fs::read_dir(home.file().parent().unwrap()).unwrap().count();
        assert_eq!(left, 2, "no temporary file is left");

        // The first backup outlives a second one.
        let again = ConfigCommand::Init {
            force: true,
            print: false,
        };
        let (out, _) = home.run(again).unwrap();
        assert!(out.contains("config.toml.bak.1\n"), "{out}");
        let backup = home.file().with_extension("toml.bak");
        assert_eq!(fs::read_to_string(backup).unwrap(), "# mine");
    }

    /// Proves CLI-2, CFG-3.
    #[test]
    fn print_and_schema_touch_no_file() {
        let home = Home::new(&[]);
        let (out, _) = home
            .run(ConfigCommand::Init {
                force: false,
                print: true,
            })
            .unwrap();
        assert_eq!(out, template());
        let (out, _) = home.run(ConfigCommand::Schema).unwrap();
        let schema: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(fs::read_dir(home.temp.path()).unwrap().count(), 0);
    }

    /// Proves CLI-2, CFG-2.
    #[test]
    fn show_lists_values_and_origins() {
        let home = Home::new(&[("ZEPH_TOOLS_MODE", "plan"), ("ZEPH_TOLS_MODE", "plan")]);
        let (out, err) = home.run(ConfigCommand::Show { origin: true }).unwrap();
        assert!(
            out.contains("mode = \"plan\"  # from environment ZEPH_TOOLS_MODE\n"),
            "{out}"
        );
        assert!(
            err.starts_with("warning: the environment variable ZEPH_TOLS_MODE"),
            "{err}"
        );
        let (out, _) = home.run(ConfigCommand::Show { origin: false }).unwrap();
        assert!(
            out.contains("mode = \"plan\"\n") && !out.contains("# from"),
            "{out}"
        );
    }

    /// Proves CLI-2, CLI-3.
    #[test]
    fn check_says_ok_or_exits_with_2() {
        let home = Home::new(&[]);
        assert_eq!(
            home.run(ConfigCommand::Check { file: None }).unwrap().0,
            "ok\n"
        );
        fs::write(home.temp.path().join("bad.toml"), "[agnt]").unwrap();
        let bad = || ConfigCommand::Check {
            file: Some("bad.toml".into()),
        };
        let error = home.run(bad()).unwrap_err();
        assert!(
            error.downcast_ref::<config::ConfigErrors>().is_some(),
            "exit code 2"
        );
        assert!(
            error.to_string().contains("bad.toml:1:2: `agnt`"),
            "{error}"
        );
        fs::write(home.temp.path().join("bad.toml"), "[agent]").unwrap();
        assert_eq!(home.run(bad()).unwrap().0, "ok\n");
    }

    /// Proves CLI-2, CFG-5.
    #[test]
    fn path_lists_files_even_with_errors() {
        let home = Home::new(&[]);
        let (out, _) = home.run(ConfigCommand::Path).unwrap();
        assert_eq!(
            out,
            "user file     ~/.config/zeph/config.toml (missing)\n\
             data          ~/.local/share/zeph (missing)\n\
             database      ~/.local/share/zeph/zeph.db (missing)\n"
        );
        home.run(INIT).unwrap();
        fs::write(home.file(), "broken").unwrap();
        let (out, _) = home.run(ConfigCommand::Path).unwrap();
        assert!(
            out.starts_with("user file     ~/.config/zeph/config.toml (exists)\n"),
            "{out}"
        );
        assert!(
            out.ends_with(
                "database      unknown: the configuration has errors; see `zeph config check`\n"
            ),
            "{out}"
        );
    }
}
