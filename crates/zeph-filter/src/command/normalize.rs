//! Normalization of a command: without the path of the program, and without options before the subcommand.

/// Options of a program before its subcommand.
struct Global {
    name: &'static str,
    /// Options with a value in the next word. Both are removed; other options move after the subcommand.
    values: &'static [&'static str],
}

const GLOBALS: &[Global] = &[
    Global {
        name: "brew",
        values: &[],
    },
    Global {
        name: "cargo",
        values: &["--config", "-Z", "-C", "--color"],
    },
    Global {
        name: "docker",
        values: &[
            "--config",
            "-c",
            "--context",
            "-H",
            "--host",
            "-l",
            "--log-level",
        ],
    },
    Global {
        name: "dotnet",
        values: &[],
    },
    Global {
        name: "gh",
        values: &["-R", "--repo"],
    },
    Global {
        name: "git",
        values: &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
        ],
    },
    Global {
        name: "go",
        values: &["-C"],
    },
    Global {
        name: "helm",
        values: &["-n", "--namespace", "--kube-context", "--kubeconfig"],
    },
    Global {
        name: "kubectl",
        values: &[
            "-n",
            "--namespace",
            "--context",
            "--kubeconfig",
            "--cluster",
            "--user",
            "-s",
            "--server",
        ],
    },
    Global {
        name: "npm",
        values: &["-C", "--prefix", "-w", "--workspace"],
    },
    Global {
        name: "oc",
        values: &["-n", "--namespace", "--context", "--kubeconfig"],
    },
    Global {
        name: "pip",
        values: &["--python", "--proxy", "--cache-dir", "--log"],
    },
    Global {
        name: "pnpm",
        values: &["-C", "--dir", "-F", "--filter"],
    },
    Global {
        name: "podman",
        values: &["--connection", "-c", "--log-level"],
    },
    Global {
        name: "terraform",
        values: &[],
    },
    Global {
        name: "tofu",
        values: &[],
    },
    Global {
        name: "uv",
        values: &["--directory", "--project", "--color"],
    },
    Global {
        name: "yarn",
        values: &["--cwd"],
    },
];

/// Programs of packages that `yarn NAME` and `pnpm NAME` run.
const TOOLS: &[&str] = &[
    "ava",
    "biome",
    "cypress",
    "eslint",
    "jest",
    "mocha",
    "next",
    "nx",
    "oxlint",
    "playwright",
    "prettier",
    "rollup",
    "stylelint",
    "tap",
    "ts-node",
    "tsc",
    "tsx",
    "turbo",
    "vite",
    "vitest",
    "vue-tsc",
    "webpack",
];

/// The name of the called program.
pub(super) fn program(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = [".exe", ".cmd", ".bat"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    let versioned = |base: &str| {
        name.strip_prefix(base).is_some_and(|rest| {
            !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit() || c == '.')
        })
    };
    match name {
        "gradlew" => "gradle",
        "mvnw" => "mvn",
        "gmake" => "make",
        "nodejs" => "node",
        "py.test" | "pytest-3" => "pytest",
        _ if versioned("pip") => "pip",
        _ if versioned("python") || name == "pypy3" => "python",
        "" => word,
        _ => name,
    }
}

/// Normalizes the words of a command for rules.
pub(super) fn normalize(mut words: Vec<String>) -> Vec<String> {
    // Each round removes a prefix: `python -m coverage run -m pytest`.
    while let Some(first) = words.first() {
        let name = program(first).to_owned();
        words[0].clone_from(&name);
        let off = match name.as_str() {
            "python" => module(&words),
            "coverage" if words.get(1).is_some_and(|word| word == "run") => {
                words.iter().position(|word| word == "-m").map(|at| at + 1)
            }
            "node" => words
                .iter()
                .skip(1)
                .position(|word| !word.starts_with('-'))
                .and_then(|at| {
                    words[at + 1]
                        .contains("node_modules/.bin/")
                        .then_some(at + 1)
                }),
            "docker-compose" => {
                words.splice(..1, ["docker".to_owned(), "compose".to_owned()]);
                None
            }
            "cargo-nextest" => {
                words[0] = "cargo".to_owned();
                None
            }
            _ => None,
        };
        if let Some(off) = off.filter(|off| *off < words.len()) {
            words.drain(..off);
            continue;
        }
        if words[0] == "cargo" && words.get(1).is_some_and(|word| word.starts_with('+')) {
            words.remove(1);
        }
        subcommand_first(&mut words);
        if words[0] == "docker" && words.get(1).is_some_and(|word| word == "compose") {
            compose(&mut words);
        }
        if matches!(words[0].as_str(), "yarn" | "pnpm") {
            let workspace = words.get(1).is_some_and(|word| word == "workspace");
            let at = if workspace { 3 } else { 1 };
            if words
                .get(at)
                .is_some_and(|word| TOOLS.contains(&word.as_str()))
            {
                words.drain(..at);
                continue;
            }
        }
        break;
    }
    words
}

/// The index of the module in `python -m MODULE`.
fn module(words: &[String]) -> Option<usize> {
    let mut at = 1;
    loop {
        match words.get(at)?.as_str() {
            "-X" | "-W" => at += 2,
            "-m" => return Some(at + 1),
            // Combined options such as `-Im`.
            word if word.starts_with('-') && !word.starts_with("--") && word.ends_with('m') => {
                return Some(at + 1);
            }
            word if word.starts_with('-') && !word.contains('c') => at += 1,
            _ => return None,
        }
    }
}

/// Moves the options after the subcommand.
fn subcommand_first(words: &mut Vec<String>) {
    let Some(global) = GLOBALS.iter().find(|global| global.name == words[0]) else {
        return;
    };
    let Some((flags, at)) = options(words, 1, global.values) else {
        return;
    };
    words.drain(1..at);
    // Options of git before its subcommand only affect the directory and the pager. Options of `pnpm` before a
    // tool only select packages.
    let is_tool = words
        .get(1)
        .is_some_and(|word| TOOLS.contains(&word.as_str()));
    if global.name != "git" && !is_tool {
        words.splice(2..2, flags);
    }
}

/// Normalizes `docker compose -f FILE up`.
fn compose(words: &mut Vec<String>) {
    let values = [
        "-f",
        "--file",
        "-p",
        "--project-name",
        "--profile",
        "--env-file",
        "--project-directory",
    ];
    if let Some((flags, at)) = options(words, 2, &values) {
        words.drain(2..at);
        words.splice(3..3, flags);
    }
}

/// The options without values from `from` on, and the index of the subcommand after them.
fn options(words: &[String], from: usize, values: &[&str]) -> Option<(Vec<String>, usize)> {
    let mut at = from;
    let mut flags = Vec::new();
    loop {
        let word = words.get(at)?;
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if !word.starts_with('-') {
            return (at > from).then_some((flags, at));
        }
        if values.contains(&name) {
            at += 1 + usize::from(name.len() == word.len());
        } else {
            // The option of `terraform -chdir=DIR plan`.
            if !word.starts_with("-chdir=") {
                flags.push(word.clone());
            }
            at += 1;
        }
    }
}
