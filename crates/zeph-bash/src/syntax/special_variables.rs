//! Variables with a meaning for bash or for other programs.

/// Variables that decide which commands run, regardless of their value.
const TELLING: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "BASH_CMDS",
    "BASH_ALIASES",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PROMPT_COMMAND",
];

/// Whether a variable of this name decides which programs or libraries commands use.
pub(crate) fn decides_what_runs(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "PATH",
        "IFS",
        "HOME",
        "CDPATH",
        "SHELL",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "PYTHONPATH",
        "PERL5LIB",
        "RUBYLIB",
        "NODE_PATH",
        "GIT_EXEC_PATH",
        "XDG_CONFIG_HOME",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
    ];
    is_telling(name) || OTHERS.contains(&name)
}

/// Whether a variable of this name decides which commands run.
pub(crate) fn is_telling(name: &str) -> bool {
    TELLING.contains(&name)
}

/// Whether programs usually see a variable of this name: capital letters, or a proxy setting.
pub(crate) fn is_environment(name: &str) -> bool {
    let capital = |byte: u8| !byte.is_ascii_lowercase();
    (name.len() > 1 && name.bytes().all(capital)) || name.ends_with("_proxy")
}
