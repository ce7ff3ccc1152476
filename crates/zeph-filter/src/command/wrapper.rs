//! Wrappers: commands that run another command, which determines the output.

use super::normalize::program;
use super::split::is_assignment;

/// The command that a wrapper runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inner {
    /// The words of the command. A command that is not a wrapper is unchanged.
    Words(Vec<String>),
    /// A text for a shell.
    Text(String),
}

/// The arguments of a wrapper.
struct Wrapper {
    name: &'static str,
    /// The verbs of the wrapper. If any are listed, one must follow the name.
    verbs: &'static [&'static str],
    /// Options with a value in the next word.
    values: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
}

const fn wrapper(
    name: &'static str,
    verbs: &'static [&'static str],
    values: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        name,
        verbs,
        values,
        operands: 0,
    }
}

const fn after_one(name: &'static str, values: &'static [&'static str]) -> Wrapper {
    Wrapper {
        operands: 1,
        ..wrapper(name, &[], values)
    }
}

/// A letter in the list of values means a short option: `-x`.
const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", &[], &[]),
    wrapper("caffeinate", &[], &["-t", "-w"]),
    wrapper("catchsegv", &[], &[]),
    wrapper("chronic", &[], &[]),
    after_one("chrt", &["-T", "-P", "-D"]),
    wrapper("command", &[], &[]),
    wrapper("conda", &["run"], &["-n", "--name", "-p", "--prefix"]),
    wrapper("corepack", &[], &[]),
    wrapper(
        "coverage",
        &["run"],
        &["--source", "--rcfile", "--omit", "--include"],
    ),
    wrapper("dbus-run-session", &[], &["--config-file"]),
    wrapper("doas", &[], &["-u", "-C"]),
    wrapper("doppler", &["run"], &["-p", "--project", "-c", "--config"]),
    wrapper("dotenvx", &["run"], &["-f", "--env-file"]),
    wrapper("exec", &[], &["-a"]),
    wrapper("fakeroot", &[], &["-l", "-f", "-s", "-i", "-b"]),
    after_one("faketime", &["-f"]),
    after_one("flock", &["-w", "--timeout", "-E"]),
    wrapper("ionice", &[], &["-c", "-n", "--class", "--classdata"]),
    wrapper("mamba", &["run"], &["-n", "--name", "-p", "--prefix"]),
    wrapper("micromamba", &["run"], &["-n", "--name", "-p", "--prefix"]),
    wrapper("nice", &[], &["-n", "--adjustment"]),
    wrapper("nohup", &[], &[]),
    wrapper("op", &["run"], &["--env-file"]),
    wrapper("pdm", &["run"], &["-p", "--project"]),
    wrapper("pipenv", &["run"], &[]),
    wrapper(
        "poetry",
        &["run"],
        &["-C", "--directory", "-P", "--project"],
    ),
    wrapper("pyenv", &["exec"], &[]),
    wrapper("rbenv", &["exec"], &[]),
    wrapper("asdf", &["exec"], &[]),
    wrapper("bundle", &["exec"], &["--gemfile"]),
    Wrapper {
        operands: 1,
        ..wrapper("direnv", &["exec"], &[])
    },
    wrapper("mise", &["exec", "x"], &["-C", "--cd"]),
    Wrapper {
        operands: 1,
        ..wrapper("rustup", &["run"], &[])
    },
    wrapper("rye", &["run"], &[]),
    wrapper("setsid", &[], &[]),
    wrapper(
        "stdbuf",
        &[],
        &["-i", "-o", "-e", "--input", "--output", "--error"],
    ),
    wrapper(
        "sudo",
        &[],
        &[
            "-u", "-g", "-p", "-C", "-h", "-D", "-r", "-t", "-T", "-R", "-U", "--user", "--group",
            "--chdir",
        ],
    ),
    after_one("taskset", &[]),
    wrapper("time", &[], &["-f", "-o", "--format", "--output"]),
    after_one("timeout", &["-k", "-s", "--kill-after", "--signal"]),
    wrapper("gtimeout", &[], &["-k", "-s", "--kill-after", "--signal"]),
    wrapper("unbuffer", &[], &[]),
    wrapper(
        "uv",
        &["run"],
        &[
            "--with",
            "-p",
            "--python",
            "--project",
            "--directory",
            "--extra",
            "--group",
            "--package",
            "--env-file",
            "--with-requirements",
            "--index-url",
            "--only-group",
            "--no-group",
        ],
    ),
    wrapper("xcrun", &[], &["--sdk"]),
    wrapper(
        "xvfb-run",
        &[],
        &[
            "-e",
            "-f",
            "-n",
            "-p",
            "-s",
            "-w",
            "--error-file",
            "--server-args",
            "--server-num",
            "--wait",
        ],
    ),
];

/// Programs that run a program of a package.
const PACKAGE_RUNNERS: &[Wrapper] = &[
    wrapper("bun", &["x"], &[]),
    wrapper("bunx", &[], &["-p", "--package"]),
    wrapper(
        "npm",
        &["exec", "x"],
        &["-p", "--package", "-w", "--workspace", "--prefix"],
    ),
    wrapper(
        "npx",
        &[],
        &["-p", "--package", "-w", "--workspace", "--prefix"],
    ),
    wrapper("pipx", &["run"], &["--spec", "--python"]),
    wrapper(
        "pnpm",
        &["exec", "dlx"],
        &["-C", "--dir", "-F", "--filter", "--package"],
    ),
    wrapper("pnpx", &[], &["--package"]),
    wrapper("uvx", &[], &["--from", "--with", "-p", "--python"]),
    wrapper("yarn", &["exec", "dlx"], &["-p", "--package"]),
];

const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "sh", "zsh"];
/// The maximum number of nested wrappers.
const MAX_WRAPPERS: usize = 16;

/// Removes the wrappers around a command.
pub(super) fn unwrap(mut words: Vec<String>) -> Inner {
    for _ in 0..MAX_WRAPPERS {
        let assignments = words.iter().take_while(|word| is_assignment(word)).count();
        words.drain(..assignments);
        let Some(first) = words.first() else { break };
        let name = program(first).to_owned();
        let length = match name.as_str() {
            name if SHELLS.contains(&name) => match script(&words) {
                Some(text) => return Inner::Text(text),
                None => break,
            },
            "script" | "flock" | "su" | "nix-shell" | "npx" | "watch" => {
                match text_option(&name, &words) {
                    Some(text) => return Inner::Text(text),
                    None if name == "script" => {
                        operands(&words, 1, &["-T", "-o", "-O", "-I", "-B"]) + 1
                    }
                    None => wrapped(&name, &words),
                }
            }
            "env" => match environment(&words) {
                Ok(length) => length,
                Err(text) => return Inner::Text(text),
            },
            "command"
                if words
                    .get(1)
                    .is_some_and(|word| matches!(word.as_str(), "-v" | "-V")) =>
            {
                break;
            }
            "nix" => match words
                .iter()
                .position(|word| matches!(word.as_str(), "-c" | "--command"))
            {
                Some(at) => at + 1,
                None => break,
            },
            name => wrapped(name, &words),
        };
        // The command is not a wrapper.
        if length == 0 || length >= words.len() {
            break;
        }
        words.drain(..length);
        if PACKAGE_RUNNERS.iter().any(|runner| runner.name == name) {
            without_version(&mut words[0]);
        }
    }
    Inner::Words(words)
}

/// The number of words before the wrapped command; 0 if the command is not a wrapper.
fn wrapped(name: &str, words: &[String]) -> usize {
    let mut all = WRAPPERS.iter().chain(PACKAGE_RUNNERS);
    let Some(wrapper) = all.find(|wrapper| wrapper.name == name) else {
        return 0;
    };
    let mut at = operands(words, 1, wrapper.values);
    if !wrapper.verbs.is_empty() {
        let verb = words.get(at).map_or("", String::as_str);
        if !wrapper.verbs.contains(&verb) {
            return 0;
        }
        at = operands(words, at + 1, wrapper.values);
    }
    let operand_count = wrapper.operands + usize::from(name == "gtimeout");
    if operand_count > 0 {
        at = operands(words, at + operand_count, &[]);
    }
    at
}

/// The index after the options that begin at `at`.
fn operands(words: &[String], mut at: usize, values: &[&str]) -> usize {
    while let Some(word) = words.get(at) {
        if word == "--" {
            return at + 1;
        }
        if !word.starts_with('-') || word == "-" {
            break;
        }
        at += 1 + usize::from(values.contains(&word.as_str()));
    }
    at
}

/// The text in `bash -c TEXT`.
fn script(words: &[String]) -> Option<String> {
    let mut at = 1;
    let mut has_text = false;
    while let Some(word) = words.get(at) {
        if !word.starts_with(['-', '+']) || word.len() < 2 {
            break;
        }
        at += 1;
        if word.starts_with("--") {
            continue;
        }
        has_text |= word.contains('c');
        at += usize::from(word.ends_with(['o', 'O']));
    }
    words.get(at).filter(|_| has_text).cloned()
}

/// The text after an option of this wrapper.
fn text_option(name: &str, words: &[String]) -> Option<String> {
    if name == "watch" {
        let at = operands(words, 1, &["-n", "--interval"]);
        return (at < words.len()).then(|| words[at..].join(" "));
    }
    let takes_text = |word: &str| match name {
        "nix-shell" => matches!(word, "--run" | "--command"),
        "npx" => matches!(word, "-c" | "--call"),
        _ => {
            word == "--command"
                || word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
        }
    };
    let at = words.iter().skip(1).position(|word| takes_text(word))?;
    words.get(at + 2).cloned()
}

/// The number of words of `env` before the wrapped command, or the text of its `-S`.
fn environment(words: &[String]) -> Result<usize, String> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "-S" | "--split-string" => return Err(words[at + 1..].join(" ")),
            "-u" | "-C" | "--unset" | "--chdir" => at += 2,
            "--" => at += 1,
            word if word.starts_with('-') || is_assignment(word) => at += 1,
            _ => break,
        }
    }
    Ok(at)
}

/// Removes the version: `jest@29` becomes `jest`.
fn without_version(word: &mut String) {
    if let Some(at) = word.rfind('@').filter(|at| *at > 0) {
        word.truncate(at);
    }
}
