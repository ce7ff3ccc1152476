//! Commands that run other commands: where the inner command begins.

use super::blocklist::name_of;
use super::decide::{Around, Decider};
use super::word::Word;

/// How a command that runs another one takes its arguments. An option that is missing here makes
/// it unclear where the inner command begins, and the whole is asked about.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Letters of options without a value.
    pub(super) flags: &'static str,
    /// Letters of options with a value.
    pub(super) values: &'static str,
    pub(super) long_flags: &'static [&'static str],
    pub(super) long_values: &'static [&'static str],
    /// How many operands stand before the inner command.
    pub(super) operands: usize,
    /// The letter of an option whose value is a text for a shell.
    pub(super) script: &'static str,
}

pub(super) const fn plain(
    name: &'static str,
    flags: &'static str,
    values: &'static str,
) -> Wrapper {
    Wrapper {
        name,
        flags,
        values,
        long_flags: &[],
        long_values: &[],
        operands: 0,
        script: "",
    }
}

const WRAPPERS: &[Wrapper] = &[
    plain("nohup", "", ""),
    plain("command", "p", ""),
    plain("builtin", "", ""),
    plain("exec", "cl", "a"),
    plain("busybox", "", ""),
    plain("toybox", "", ""),
    plain("coproc", "", ""),
    plain("then", "", ""),
    Wrapper {
        long_values: &["adjustment"],
        ..plain("nice", "0123456789", "n")
    },
    Wrapper {
        long_flags: &["ignore"],
        long_values: &["class", "classdata"],
        ..plain("ionice", "t", "cn")
    },
    Wrapper {
        long_values: &["input", "output", "error"],
        ..plain("stdbuf", "", "ioe")
    },
    Wrapper {
        long_flags: &["ctty", "fork", "wait"],
        ..plain("setsid", "cfw", "")
    },
    Wrapper {
        long_flags: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        operands: 1,
        ..plain("timeout", "fpv", "ks")
    },
    Wrapper {
        operands: 1,
        long_flags: &["skip-chdir"],
        long_values: &["groups", "userspec"],
        ..plain("chroot", "", "")
    },
    Wrapper {
        long_flags: &["append", "portability", "verbose", "quiet"],
        long_values: &["format", "output"],
        ..plain("time", "apvq", "fo")
    },
    Wrapper {
        long_flags: &[
            "close",
            "exclusive",
            "shared",
            "nonblock",
            "nb",
            "no-fork",
            "unlock",
            "verbose",
        ],
        long_values: &["timeout", "wait", "conflict-exit-code"],
        operands: 1,
        script: "c",
        ..plain("flock", "xesnuoFv", "wE")
    },
    Wrapper {
        long_flags: &["append", "flush", "quiet", "return", "force"],
        long_values: &[
            "echo",
            "log-io",
            "log-out",
            "log-in",
            "log-timing",
            "logging-format",
            "output-limit",
        ],
        operands: 1,
        script: "c",
        ..plain("script", "aefqr", "EBOITmo")
    },
    Wrapper {
        operands: 1,
        long_flags: &["all-tasks", "cpu-list"],
        ..plain("taskset", "ac", "")
    },
    Wrapper {
        operands: 1,
        ..plain("chrt", "abfiordm", "TPD")
    },
    Wrapper {
        operands: 1,
        long_flags: &["addr-no-randomize"],
        ..plain("setarch", "BLRFISTXZ3v", "p")
    },
    plain("linux64", "RFISTXZ3v", ""),
    plain("linux32", "RFISTXZ3v", ""),
    plain("fakeroot", "hu", "lfsib"),
    plain("dbus-run-session", "", ""),
    plain("catchsegv", "", ""),
    plain("caffeinate", "disum", "tw"),
    plain("unbuffer", "p", ""),
    plain("rlwrap", "", ""),
    plain("winpty", "", ""),
    plain("chronic", "ev", ""),
    plain("ts", "", ""),
    plain("doas", "Lns", "aCu"),
    Wrapper {
        operands: 1,
        script: "c",
        ..plain("sg", "", "")
    },
];

/// Commands that run others behind options that are not all known here: any later word that is
/// blocked as a command asks.
const LOOSE: &[&str] = &[
    "unshare",
    "nsenter",
    "systemd-run",
    "setpriv",
    "capsh",
    "runuser",
    "numactl",
    "prlimit",
    "strace",
    "ltrace",
    "gdb",
    "lldb",
    "valgrind",
    "perf",
    "hyperfine",
    "entr",
    "xvfb-run",
    "uv",
    "poetry",
    "pipenv",
    "bundle",
    "direnv",
    "nix-shell",
    "nix",
    "proot",
    "bwrap",
    "firejail",
    "softlimit",
    "daemonize",
    "start-stop-daemon",
    "screen",
    "tmux",
    "dotenv",
    "ld.so",
    "mise",
    "watchexec",
    "tsp",
    "cgexec",
    "faketime",
    "sshpass",
    "expect",
];

/// Whether a command with this name runs one that it is given.
pub(super) fn runs_others(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "env", "xargs", "parallel", "watch", "trap", "alias", "ssh", "eval", "source", ".", "sudo",
        "sudoedit", "su", "pkexec", "run0", "npx", "bunx", "pnpx", "uvx", "pipx",
    ];
    OTHERS.contains(&name)
        || LOOSE.contains(&name)
        || WRAPPERS.iter().any(|wrapper| wrapper.name == name)
        || name.starts_with("ld-linux")
        || name.starts_with("ld-musl")
}

/// Whether a command with this name runs one of its arguments, of which it is not known here which.
pub(in crate::shell) fn runs_any(name: &str) -> bool {
    const READ: &[&str] = &[
        "env", "xargs", "parallel", "watch", "trap", "alias", "eval", "source", ".", "find", "fd",
        "fdfind", "git",
    ];
    let name = name_of(name);
    !READ.contains(&name) && !WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// Whether `command` with these arguments only says what a name stands for: `-v` in front of the name.
pub(super) fn only_looks_up(arguments: &[Word]) -> bool {
    let options = arguments.iter().take_while(|word| {
        let is_option = word.prefix().starts_with('-');
        is_option && word.known().is_some_and(|word| word != "--")
    });
    let mut options = options.map(Word::prefix);
    options.any(|option| option.contains(['v', 'V']))
}

impl Decider<'_> {
    /// Judges the command that `name` runs.
    pub(super) fn wrapped(&mut self, name: &str, words: &[Word], around: &Around) {
        let arguments = &words[1..];
        match name {
            "env" => self.env(arguments, around),
            "xargs" => self.xargs(arguments, around),
            "parallel" => self.parallel(arguments, around),
            "find" | "fd" | "fdfind" => self.find(name, arguments, around),
            "watch" => {
                let at = self.skip_options(
                    &Wrapper {
                        long_flags: &[
                            "beep",
                            "color",
                            "no-color",
                            "differences",
                            "errexit",
                            "chgexit",
                            "precise",
                            "no-title",
                            "no-wrap",
                            "exec",
                        ],
                        long_values: &["interval", "equexit"],
                        ..plain("watch", "bcCdegptwx", "nq")
                    },
                    arguments,
                    around,
                );
                self.joined(name, &arguments[at..], around);
            }
            "trap" => {
                let first = arguments.iter().find(|word| word.known() != Some("--"));
                if let Some(word) = first.filter(|word| !word.prefix().starts_with('-')) {
                    self.later += 1;
                    self.joined(name, std::slice::from_ref(word), around);
                    self.later -= 1;
                }
            }
            "alias" => {
                self.later += 1;
                for word in arguments {
                    if let Some(at) = word.prefix().find('=') {
                        self.joined(name, &[word.after(at + 1)], around);
                    }
                }
                self.later -= 1;
            }
            "command" if only_looks_up(arguments) => {}
            "exec" => self.exec(words, around),
            "ssh" => {
                for word in arguments {
                    if word.prefix().to_ascii_lowercase().contains("command=") {
                        self.ask("a command that `ssh` starts on this machine");
                    }
                }
            }
            "tar" | "bsdtar" | "gtar" => {
                for word in arguments {
                    if word.prefix().contains("exec=") || word.prefix().starts_with("--to-command")
                    {
                        self.ask("a command that `tar` starts");
                    }
                }
            }
            _ if LOOSE.contains(&name)
                || name.starts_with("ld-linux")
                || name.starts_with("ld-musl") =>
            {
                self.loose(name, arguments, around);
            }
            _ => {
                if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
                    self.inner(wrapper, arguments, around);
                }
            }
        }
    }

    fn inner(&mut self, wrapper: &Wrapper, arguments: &[Word], around: &Around) {
        let mut at = self.skip_options(wrapper, arguments, around);
        for operand in arguments[at..].iter().take(wrapper.operands) {
            if operand.known().is_none() && operand.prefix().is_empty() {
                self.ask(format!(
                    "where the command of `{}` begins cannot be known",
                    wrapper.name
                ));
            }
        }
        at = (at + wrapper.operands).min(arguments.len());
        if !wrapper.script.is_empty() {
            // `flock FILE -c TEXT`
            at += self.skip_options(wrapper, &arguments[at..], around);
        }
        self.simple(&arguments[at..], around);
    }

    /// Where the operands begin.
    pub(super) fn skip_options(
        &mut self,
        wrapper: &Wrapper,
        words: &[Word],
        around: &Around,
    ) -> usize {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = word.prefix();
            if word.known() == Some("--") {
                return at + 1;
            }
            if word.known().is_none() && text.is_empty() {
                return at;
            }
            if !text.starts_with('-') || text == "-" {
                return at;
            }
            at += 1;
            if let Some(long) = text.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                if !wrapper.script.is_empty() && (name == "command") {
                    match value {
                        Some(_) => self.joined(wrapper.name, &[word.after(10)], around),
                        None => self.joined(
                            wrapper.name,
                            &words[at.min(words.len())..][..usize::from(at < words.len())],
                            around,
                        ),
                    }
                    at += usize::from(value.is_none());
                } else if wrapper.long_values.contains(&name) {
                    at += usize::from(value.is_none());
                } else if !wrapper.long_flags.contains(&name) {
                    // It may be the beginning of a longer name.
                    self.unclear(wrapper.name, text);
                }
                continue;
            }
            for (place, letter) in text[1..].char_indices() {
                let rest = 1 + place + letter.len_utf8();
                if wrapper.script.contains(letter) {
                    if rest < text.len() {
                        self.joined(wrapper.name, &[word.after(rest)], around);
                    } else if let Some(next) = words.get(at) {
                        self.joined(wrapper.name, std::slice::from_ref(next), around);
                        at += 1;
                    }
                    break;
                }
                if wrapper.values.contains(letter) {
                    at += usize::from(rest == text.len());
                    break;
                }
                if !wrapper.flags.contains(letter) {
                    self.unclear(wrapper.name, text);
                    break;
                }
            }
        }
        at.min(words.len())
    }

    fn unclear(&mut self, name: &str, option: &str) {
        self.ask(format!(
            "where the command of `{name} {option}` begins cannot be known"
        ));
    }
}
