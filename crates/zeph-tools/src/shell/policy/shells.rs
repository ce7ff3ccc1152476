//! What reaches a shell or an interpreter as data: `-c` texts, here-documents, pipes.

use super::blocklist::name_of;
use super::decide::{Around, Decider, Input};
use super::word::Word;

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "yash", "posh", "oksh",
    "loksh", "csh", "tcsh", "fish",
];
/// Commands that give what they read to a shell.
const READERS: &[&str] = &["at", "batch"];
const DOWNLOADS: &[&str] = &[
    "curl", "wget", "aria2c", "fetch", "http", "https", "httpie", "xh", "lynx", "w3m", "nc",
    "ncat", "netcat", "socat", "ftp", "lftp", "scp", "ssh", "telnet",
];

/// An interpreter: the options that take a program's text, and those that name what to run.
struct Interpreter {
    name: &'static str,
    /// Letters that take the text of a program.
    text: &'static str,
    /// Long options that do.
    long: &'static [&'static str],
    /// Letters that name a module or a file to run instead of a script.
    names: &'static str,
    /// Other letters that take a value.
    values: &'static str,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        name: "python",
        text: "c",
        long: &[],
        names: "m",
        values: "WX",
    },
    Interpreter {
        name: "pypy",
        text: "c",
        long: &[],
        names: "m",
        values: "WX",
    },
    Interpreter {
        name: "perl",
        text: "eE",
        long: &[],
        names: "",
        values: "IMmF",
    },
    Interpreter {
        name: "ruby",
        text: "e",
        long: &[],
        names: "S",
        values: "ICrE",
    },
    Interpreter {
        name: "node",
        text: "ep",
        long: &["eval", "print"],
        names: "",
        values: "rC",
    },
    Interpreter {
        name: "php",
        text: "rBRE",
        long: &["run"],
        names: "fS",
        values: "dcz",
    },
    Interpreter {
        name: "lua",
        text: "e",
        long: &[],
        names: "",
        values: "l",
    },
    Interpreter {
        name: "tclsh",
        text: "",
        long: &[],
        names: "",
        values: "",
    },
    Interpreter {
        name: "Rscript",
        text: "e",
        long: &[],
        names: "",
        values: "",
    },
    Interpreter {
        name: "osascript",
        text: "e",
        long: &[],
        names: "",
        values: "l",
    },
    Interpreter {
        name: "pwsh",
        text: "c",
        long: &[],
        names: "f",
        values: "",
    },
];

/// Whether a word is the name of something that loads from the network.
pub(super) fn is_download(word: &str) -> bool {
    DOWNLOADS.contains(&name_of(word))
}

/// The interpreter with this name: `python3.12` is `python`.
fn interpreter(name: &str) -> Option<&'static Interpreter> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let plain = if plain == "nodejs" || plain == "luajit" {
        &plain[..plain.len() - if plain == "nodejs" { 2 } else { 3 }]
    } else {
        plain
    };
    INTERPRETERS.iter().find(|known| known.name == plain)
}

/// Whether a command with this name is a shell or an interpreter, so that what it runs is no command.
pub(super) fn is_interpreter(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "deno",
        "bun",
        "awk",
        "gawk",
        "mawk",
        "nawk",
        "sed",
        "gsed",
        "ed",
        "ex",
        "vi",
        "vim",
        "nvim",
        "emacs",
        "gdb",
        "lldb",
        "sqlite3",
        "psql",
        "mysql",
        "duckdb",
        "m4",
        "nu",
        "xonsh",
        "elvish",
        "powershell",
        "ipython",
        "jython",
        "micropython",
        "tsx",
        "ts-node",
        "java",
        "jshell",
        "groovy",
        "scala",
        "kotlin",
        "dotnet",
        "mono",
        "dart",
        "swift",
        "julia",
        "R",
        "octave",
        "guile",
        "racket",
        "sbcl",
        "clisp",
        "elixir",
        "iex",
        "erl",
        "escript",
        "ghci",
        "runghc",
        "runhaskell",
        "ocaml",
        "wish",
        "dc",
        "qjs",
        "mariadb",
        "mongosh",
    ];
    SHELLS.contains(&name)
        || READERS.contains(&name)
        || interpreter(name).is_some()
        || OTHERS.contains(&name)
}

/// Whether a command with this name takes programs or scripts as arguments or input, in which
/// files may be named.
pub(super) fn takes_programs(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "awk", "gawk", "mawk", "nawk", "sed", "gsed", "ed", "ex", "vi", "vim", "nvim", "emacs",
        "jq", "sqlite3", "psql", "mysql", "duckdb", "deno", "bun", "gdb", "lldb", "m4", "bc",
        "make",
    ];
    interpreter(name).is_some() || OTHERS.contains(&name)
}

/// Whether a text that `by` is given runs in another shell than this one.
pub(super) fn runs_apart(by: &str) -> bool {
    !matches!(
        by,
        "eval"
            | "trap"
            | "alias"
            | "mapfile"
            | "readarray"
            | "compgen"
            | "complete"
            | "PROMPT_COMMAND"
            | "BASH_ALIASES"
            | "PS4"
    )
}

/// Files that stand for standard input or another open file.
fn is_descriptor(path: &str) -> bool {
    path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/")
}

/// What an interpreter or a shell is told to run.
enum Program<'w> {
    /// This text.
    Text(&'w Word),
    /// What it reads from standard input.
    Input,
    /// A file or a module.
    File(&'w Word),
    /// Nothing: `--version`.
    Nothing,
}

impl Decider<'_> {
    /// Judges what shells and interpreters are given as data.
    pub(super) fn scripts(&mut self, name: &str, words: &[Word], around: &Around) {
        let arguments = &words[1..];
        if SHELLS.contains(&name) {
            let program = shell_program(arguments);
            self.program(name, &program, true, around);
        } else if READERS.contains(&name) || (name == "crontab" && has_dash(arguments)) {
            self.program(name, &Program::Input, true, around);
        } else if let Some(interpreter) = interpreter(name) {
            let program = interpreter_program(interpreter, arguments);
            self.program(name, &program, false, around);
        } else if matches!(name, "deno" | "bun")
            && arguments
                .iter()
                .any(|word| matches!(word.known(), Some("eval" | "-e" | "--eval")))
        {
            self.ask(format!("what the text for `{name}` does cannot be read"));
        } else if matches!(name, "awk" | "gawk" | "mawk" | "nawk") {
            self.awk(name, arguments);
        }
    }

    fn program(&mut self, name: &str, program: &Program<'_>, is_shell: bool, around: &Around) {
        match program {
            Program::Nothing => {}
            Program::Text(word) => match word.known() {
                None if around.downloads => self.block("a download that reaches a shell"),
                _ if is_shell => self.script(name, &word.script(), around),
                Some(_) => self.ask(format!("what the text for `{name}` does cannot be read")),
                None => self.ask(format!(
                    "the text for `{name}` cannot be known before it runs"
                )),
            },
            Program::File(word) => match word.known() {
                Some(path) if is_descriptor(path) => {
                    self.program(name, &Program::Input, is_shell, around);
                }
                Some(_) => {}
                None if around.downloads => self.block("a download that reaches a shell"),
                None => self.ask(format!("which script `{name}` runs cannot be known")),
            },
            Program::Input => match &around.input {
                Input::Closed => {}
                Input::Text(text) if is_shell => self.script(name, text, around),
                Input::Data { download: true } => {
                    self.block(format!("a download that `{name}` runs"));
                }
                Input::Text(_) | Input::Data { .. } => {
                    self.ask(format!("what `{name}` reads and runs cannot be known"));
                }
            },
        }
    }

    /// A program of awk may start commands.
    fn awk(&mut self, name: &str, arguments: &[Word]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.prefix() {
                "-f" | "--file" => return,
                "-v" | "-F" | "--assign" | "--field-separator" => {
                    words.next();
                }
                option if option.starts_with('-') && option.len() > 1 && option != "--" => {
                    if matches!(option, "-e" | "--source") || option.starts_with("--source=") {
                        self.ask(format!("what the program for `{name}` does cannot be read"));
                    }
                }
                "--" => {}
                _ => {
                    if word.known().is_none_or(awk_starts_commands) {
                        self.ask(format!(
                            "what the program for `{name}` starts cannot be known"
                        ));
                    }
                    return;
                }
            }
        }
    }
}

/// Whether a program of awk has `system`, `getline` or a pipe.
fn awk_starts_commands(program: &str) -> bool {
    if program.contains("system") || program.contains("getline") || program.contains('@') {
        return true;
    }
    let bytes = program.as_bytes();
    program.match_indices('|').any(|(at, _)| {
        let double = bytes.get(at + 1) == Some(&b'|') || (at > 0 && bytes[at - 1] == b'|');
        !double && !in_pattern(program, at)
    })
}

/// Whether the place lies in `/…/` without anything in it that could end a statement.
fn in_pattern(program: &str, at: usize) -> bool {
    let ends = |c: char| c == '/' || c.is_whitespace() || "\";{}".contains(c);
    let before = program[..at].rfind(ends).map(|at| program.as_bytes()[at]);
    let after = program[at..]
        .find(ends)
        .map(|after| program.as_bytes()[at + after]);
    before == Some(b'/') && after == Some(b'/')
}

fn has_dash(words: &[Word]) -> bool {
    words.iter().any(|word| word.known() == Some("-"))
}

fn shell_program(words: &[Word]) -> Program<'_> {
    let mut command = false;
    let mut input = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some(text) = word.known() else {
            return if command {
                Program::Text(word)
            } else {
                Program::File(word)
            };
        };
        at += 1;
        match text {
            "-" | "--" => break,
            "--version" | "--help" => return Program::Nothing,
            "--rcfile" | "--init-file" => at += 1,
            _ if text.starts_with("--") => {}
            _ if text.starts_with(['-', '+']) => {
                for letter in text[1..].chars() {
                    match letter {
                        'c' => command = true,
                        's' => input = true,
                        'o' | 'O' => at += 1,
                        _ => {}
                    }
                }
            }
            _ => {
                at -= 1;
                break;
            }
        }
    }
    match words.get(at) {
        Some(word) if command => Program::Text(word),
        Some(word) if !input => Program::File(word),
        _ => Program::Input,
    }
}

fn interpreter_program<'w>(interpreter: &Interpreter, words: &'w [Word]) -> Program<'w> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.known() else {
            return Program::File(word);
        };
        if text == "-" {
            return Program::Input;
        }
        if text == "--" {
            return words.get(at).map_or(Program::Input, Program::File);
        }
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            if matches!(name, "version" | "help" | "test" | "check") {
                return Program::Nothing;
            }
            if interpreter.long.contains(&name) {
                return Program::Text(word);
            }
            continue;
        }
        let Some(letters) = text.strip_prefix('-') else {
            return Program::File(word);
        };
        for (place, letter) in letters.char_indices() {
            let rest = &letters[place + letter.len_utf8()..];
            if interpreter.text.contains(letter) {
                return Program::Text(words.get(at).unwrap_or(word));
            }
            if interpreter.names.contains(letter) {
                return Program::Nothing;
            }
            if interpreter.values.contains(letter) {
                at += usize::from(rest.is_empty());
                break;
            }
            let version =
                letter == 'v' && interpreter.name != "python" && interpreter.name != "pypy";
            if (version || letter == 'V' || letter == 'h') && letters.len() == 1 {
                return Program::Nothing;
            }
        }
    }
    Program::Input
}
