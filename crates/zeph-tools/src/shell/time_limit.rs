//! Time limits of commands: a default, and a longer one for commands that build, test, install or download.
//!
//! The table of these commands is data: `long_commands.toml`.

use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use zeph_bash::{Part, Word, file_name, visit};

use super::config::ShellConfig;

/// The time limit of commands in the table, unless `timeout` is longer.
const LONG_SECS: u64 = 600;

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongCommand {
    /// File names of programs.
    names: Vec<String>,
    /// Sequences of words in the arguments; empty means any arguments.
    #[serde(default)]
    arguments: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    command: Vec<LongCommand>,
}

// A test proves that the table can be read.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("long_commands.toml")).unwrap_or_default());

/// The origin of a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitSource {
    /// The parameter `timeout_secs`.
    Call,
    /// `[tools.shell] timeout`.
    Default,
    /// The table of long commands.
    Long,
    /// `[acp] terminal_timeout_secs`.
    Editor,
}

/// The time limit of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeLimit {
    secs: u64,
    source: LimitSource,
    max: u64,
}

impl TimeLimit {
    /// The limit of a command in a terminal of an editor: `of_editor`, or a shorter `limit` of the command.
    pub(super) fn in_editor(limit: Option<Self>, of_editor: Duration) -> Self {
        let secs = of_editor.as_secs().max(1);
        match limit {
            Some(limit) if limit.secs < secs || limit.max <= secs => Self {
                max: limit.max.min(secs),
                ..limit
            },
            _ => Self {
                secs,
                source: LimitSource::Editor,
                max: secs,
            },
        }
    }

    pub(super) fn duration(self) -> Duration {
        Duration::from_secs(self.secs)
    }

    /// The message about a command that reached this limit.
    pub(super) fn message(self) -> String {
        let Self { secs, source, max } = self;
        let source = match source {
            LimitSource::Call => "its `timeout_secs`",
            LimitSource::Default => "`[tools.shell] timeout`",
            LimitSource::Long => "the limit for builds, tests, installs and downloads",
            LimitSource::Editor => "`[acp] terminal_timeout_secs`",
        };
        let fix = match secs < max {
            _ if self.source == LimitSource::Editor => {
                "the user can raise it; `background` has no limit".to_owned()
            }
            true => format!("set `timeout_secs`, up to {max}"),
            false => "the user can raise `[tools.shell] max_timeout`; `background` has no limit"
                .to_owned(),
        };
        format!("the command ran longer than {secs} s ({source}) and was stopped; {fix}")
    }
}

/// The time limits of a configuration, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeLimits {
    default: u64,
    /// The limit of commands that build, test, install or download.
    pub(crate) long: u64,
    pub(super) max: u64,
}

impl TimeLimits {
    /// The limits of `config`.
    pub(crate) fn new(config: &ShellConfig) -> Self {
        let max = config.max_timeout.max(1);
        let default = config.timeout.clamp(1, max);
        Self {
            default,
            long: LONG_SECS.max(default).min(max),
            max,
        }
    }

    /// The limit of a call that sets `secs`.
    pub(super) fn of_call(self, secs: u64) -> TimeLimit {
        self.limit(secs, LimitSource::Call)
    }

    /// The limit of a call of `command` that sets none.
    pub(super) fn of_command(self, command: &str) -> TimeLimit {
        match is_long(command) {
            true => self.limit(self.long, LimitSource::Long),
            false => self.limit(self.default, LimitSource::Default),
        }
    }

    /// The description of `timeout_secs` for the model.
    pub(super) fn description(self) -> String {
        let Self { default, long, max } = self;
        format!("default {default}, builds and downloads {long}, max {max}")
    }

    fn limit(self, secs: u64, source: LimitSource) -> TimeLimit {
        TimeLimit {
            secs,
            source,
            max: self.max,
        }
    }
}

/// Whether a simple command of `command`, at any depth, is in the table. Unresolved words match nothing.
fn is_long(command: &str) -> bool {
    let mut found = false;
    let _ = visit(command, &mut |part| {
        if let Part::Command { words, .. } = part {
            found = found || matches(words);
        }
    });
    found
}

fn matches(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else {
        return false;
    };
    let Some(name) = name.known().map(file_name) else {
        return false;
    };
    TABLE.command.iter().any(|row| {
        row.names.iter().any(|known| known == name)
            && (row.arguments.is_empty()
                || row.arguments.iter().any(|given| contains(arguments, given)))
    })
}

/// Whether `arguments` contain the words of `sequence`, next to each other.
fn contains(arguments: &[Word], sequence: &str) -> bool {
    let sequence: Vec<&str> = sequence.split(' ').collect();
    arguments.windows(sequence.len()).any(|window| {
        let pairs = window.iter().zip(&sequence);
        pairs
            .into_iter()
            .all(|(word, part)| word.known() == Some(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves D-36, SH-3.
    #[test]
    fn table_has_rows_with_unique_names() {
        let mut names: Vec<&str> = TABLE
            .command
            .iter()
            .flat_map(|row| row.names.iter().map(String::as_str))
            .collect();
        assert!(names.len() > 100, "{}", names.len());
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }

    /// Proves D-36, SH-3: at any depth, after wrappers, by path, with options before the subcommand.
    #[test]
    fn commands_that_take_long_are_found() {
        for command in [
            "cargo build",
            "cargo +nightly -q test --workspace",
            "cd x && cargo nextest run 2>&1 | tail -5",
            "bash -c 'make -j4 all'",
            "env A=1 timeout 500 npm ci",
            "(cd web; pnpm run build) || echo failed",
            "for f in a b; do pip install $f; done",
            "if true; then ./gradlew check; fi",
            "/usr/bin/git -C dir clone https://example.org/x",
            "docker --context x compose build",
            "python3 -m pytest -q",
            "cmake --build build --parallel",
            "A=1 go test ./...",
            "terraform plan",
            "x() { ninja; }; x",
            "c\"arg\"o test",
        ] {
            assert!(is_long(command), "{command}");
        }
        for command in [
            "ls",
            "cargo --version",
            "cargo fmt --check",
            "git status",
            "echo cargo build",
            "git log --grep 'git push'",
            "npm view react",
            "docker ps",
            "cmake -S . -B build",
            "python3 script.py",
            "$X build",
            "if",
            "",
        ] {
            assert!(!is_long(command), "{command}");
        }
    }

    /// Proves D-36, SH-3.
    #[test]
    fn limits_follow_the_configuration() {
        let check = |timeout, max_timeout, expect: (u64, u64, u64)| {
            let config = ShellConfig {
                timeout,
                max_timeout,
                ..ShellConfig::default()
            };
            let limits = TimeLimits::new(&config);
            assert_eq!((limits.default, limits.long, limits.max), expect);
        };
        check(30, 600, (30, 600, 600));
        check(60, 600, (60, 600, 600));
        check(900, 1200, (900, 900, 1200));
        check(30, 1200, (30, 600, 1200));
        check(30, 5, (5, 5, 5));
    }

    /// Proves ACP-4.
    #[test]
    fn shorter_limit_applies_in_a_terminal_of_an_editor() {
        let limits = TimeLimits::new(&ShellConfig::default());
        let check = |limit: Option<TimeLimit>, secs, expect| {
            let limit = TimeLimit::in_editor(limit, Duration::from_secs(secs));
            assert_eq!((limit.secs, limit.source), expect, "{limit:?}");
        };
        check(None, 120, (120, LimitSource::Editor));
        check(None, 0, (1, LimitSource::Editor));
        check(Some(limits.of_call(119)), 120, (119, LimitSource::Call));
        check(Some(limits.of_call(120)), 120, (120, LimitSource::Editor));
        check(Some(limits.of_call(121)), 120, (120, LimitSource::Editor));
        check(
            Some(limits.of_command("ls")),
            120,
            (30, LimitSource::Default),
        );
        check(
            Some(limits.of_command("make")),
            120,
            (120, LimitSource::Editor),
        );
        let limit = TimeLimit::in_editor(Some(limits.of_call(5)), Duration::from_secs(120));
        assert_eq!(
            limit.message(),
            "the command ran longer than 5 s (its `timeout_secs`) and was stopped; set `timeout_secs`, up to 120"
        );
        let limit = TimeLimit::in_editor(None, Duration::from_secs(120));
        assert_eq!(
            limit.message(),
            "the command ran longer than 120 s (`[acp] terminal_timeout_secs`) and was stopped; \
             the user can raise it; `background` has no limit"
        );
    }

    /// Proves D-36, SH-3.
    #[test]
    fn message_names_the_limit_and_the_fix() {
        let limits = TimeLimits::new(&ShellConfig::default());
        assert_eq!(
            limits.of_command("sleep 60").message(),
            "the command ran longer than 30 s (`[tools.shell] timeout`) and was stopped; set `timeout_secs`, up to 600"
        );
        assert_eq!(
            limits.of_command("make").message(),
            "the command ran longer than 600 s (the limit for builds, tests, installs and downloads) and was stopped; \
             the user can raise `[tools.shell] max_timeout`; `background` has no limit"
        );
        assert_eq!(
            limits.of_call(5).message(),
            "the command ran longer than 5 s (its `timeout_secs`) and was stopped; set `timeout_secs`, up to 600"
        );
    }
}
