//! What bash evaluates a second time, so that quoted text becomes a command after all: variables
//! that name programs or hold scripts, subscripts in calculations, builtins that call back.

use super::evaluate::{CommandContext, Decider};
use super::setters::is_setter;
use super::word::{Atom, Word};

/// Variables that decide which commands run, whatever their value.
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
/// The pieces of a text, and of the texts nested in it, that bash could evaluate a second time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvalFlags {
    /// A name with a subscript that contains a substitution, as in `'a[$(date)]'`: plain text
    /// until bash calculates with it.
    pub subscript: bool,
    /// A construct that calculates, or takes names of variables.
    pub calculates: bool,
    /// Parts of such a subscript in the values of variables, from which it could be assembled.
    pub fragments: Fragments,
}

/// Literal parts of the values of variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fragments {
    /// A `[`.
    bracket: bool,
    /// A substitution.
    code: bool,
    /// A `$` at the end.
    dollar: bool,
    /// A `(` or `{` at the beginning.
    opening: bool,
}

impl Fragments {
    /// A `[` alone.
    pub(super) const BRACKET: Self = Self {
        bracket: true,
        code: false,
        dollar: false,
        opening: false,
    };
}

impl EvalFlags {
    /// The signs of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            subscript: self.subscript || other.subscript,
            calculates: self.calculates || other.calculates,
            fragments: Fragments {
                bracket: self.fragments.bracket || other.fragments.bracket,
                code: self.fragments.code || other.fragments.code,
                dollar: self.fragments.dollar || other.fragments.dollar,
                opening: self.fragments.opening || other.fragments.opening,
            },
        }
    }

    /// Whether bash could run a substitution of a subscript when it calculates.
    #[must_use]
    pub fn evaluates_again(self) -> bool {
        let Fragments {
            bracket,
            code,
            dollar,
            opening,
        } = self.fragments;
        self.calculates && (self.subscript || bracket && (code || dollar && opening))
    }
}

/// The literal parts of a value from which a subscript could be assembled.
pub(super) fn fragments(atoms: &[Atom]) -> Fragments {
    let literal = |atom: &Atom| match atom {
        Atom::Char(character, _) => Some(*character),
        _ => None,
    };
    let text: String = atoms.iter().filter_map(literal).collect();
    Fragments {
        bracket: text.contains('['),
        code: ["$(", "${", "`", "<(", ">("]
            .iter()
            .any(|code| text.contains(code)),
        dollar: text.ends_with('$'),
        opening: text.starts_with(['(', '{']),
    }
}

/// Whether a variable of this name decides which programs or libraries commands use.
pub(super) fn decides_what_runs(name: &str) -> bool {
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
pub(super) fn is_telling(name: &str) -> bool {
    TELLING.contains(&name)
}

/// Whether a variable is named as those are that programs see: in capitals, or as proxies.
pub(super) fn is_environment(name: &str) -> bool {
    let capital = |byte: u8| !byte.is_ascii_lowercase();
    (name.len() > 1 && name.bytes().all(capital)) || name.ends_with("_proxy")
}

/// Whether a text has a name with a subscript in which a substitution stands.
pub(super) fn has_subscript(text: impl Iterator<Item = char>) -> bool {
    let (mut before, mut inside) = (' ', false);
    for character in text {
        inside |= character == '[' && (before.is_ascii_alphanumeric() || before == '_');
        let opens = before == '$' && matches!(character, '(' | '{')
            || matches!(before, '<' | '>') && character == '(';
        if inside && (character == '`' || opens) {
            return true;
        }
        before = character;
    }
    false
}

/// The same of a word.
pub(super) fn atoms_have_subscript(atoms: &[Atom]) -> bool {
    atoms
        .iter()
        .any(|atom| atom.is('[') || *atom == Atom::Char('[', true))
        && has_subscript(atoms.iter().filter_map(|atom| match atom {
            Atom::Char(character, _) => Some(*character),
            _ => None,
        }))
}

/// Whether a prompt, which is expanded before it is shown, may hold a command.
fn is_code(prompt: &str) -> bool {
    let octal = prompt.as_bytes().windows(2);
    // `+=` may complete a sign at the end.
    prompt.contains("$(")
        || prompt.ends_with(['$', '\\', '@'])
        || prompt.contains(['`', '['])
        || prompt.contains("@P")
        || octal
            .into_iter()
            .any(|two| two[0] == b'\\' && two[1].is_ascii_digit())
}

impl Decider<'_> {
    /// A variable is given a value.
    pub(super) fn assigned(&mut self, name: &str, value: &Word, around: &CommandContext) {
        match (name, value.known()) {
            ("BASH_ENV" | "ENV", _) => {
                self.ask(format!("`{name}` names a script that shells run first"));
            }
            // `cd` then looks for directories elsewhere.
            ("CDPATH", _) => self.later += 1,
            ("BASH_CMDS", Some(path)) => {
                self.simple(&[Word::literal(path)], around);
                self.ask("`BASH_CMDS` gives another program the name of a command");
            }
            ("PS0" | "PS1" | "PS2" | "PS4", Some(prompt)) if !is_code(prompt) => {}
            ("PROMPT_COMMAND" | "BASH_ALIASES", Some(_)) => {
                self.joined(name, std::slice::from_ref(value), around);
            }
            _ if is_telling(name) => {
                self.ask(format!("what `{name}` makes bash run cannot be known"));
            }
            _ if name.starts_with("BASH_FUNC_") => {
                self.ask(format!("`{name}` is a function that bash takes over"));
            }
            _ => self.variable(name, value, around),
        }
    }

    /// Builtins that set variables, call back, or run what is no command word.
    pub(super) fn evaluates(&mut self, name: &str, words: &[Word], around: &CommandContext) {
        let arguments = &words[1..];
        if is_setter(name) {
            self.signs.calculates = true;
            self.sets(name, arguments, around);
        }
        match name {
            "test" | "[" => self.signs.calculates = true,
            "hash" | "enable" | "mapfile" | "readarray" | "compgen" | "complete" => {
                self.calls_back(name, arguments, around);
            }
            // `cd` then goes by variables, by links, or in what was another process.
            "shopt" => {
                self.may_wander(arguments, &["cdable_vars", "lastpipe"]);
                if arguments
                    .iter()
                    .any(|word| matches!(word.known(), None | Some("lastpipe")))
                {
                    self.places.values.make_all_volatile();
                }
            }
            "set" => {
                self.may_wander(arguments, &["-P", "physical"]);
                self.set_options(arguments);
            }
            "shift" => self.forget_positional(),
            "jobs" => {
                let is_one = |word: &Word| {
                    let text = word.prefix();
                    text.starts_with('-') && text.contains('x')
                };
                if let Some(at) = arguments.iter().position(is_one) {
                    let rest = &arguments[at + 1..];
                    let ends = rest.first().and_then(Word::known) == Some("--");
                    self.simple(&rest[usize::from(ends)..], around);
                }
            }
            "fc" if !arguments.iter().any(|word| word.known() == Some("-l")) => {
                self.ask("what `fc` runs again cannot be known");
            }
            _ => {}
        }
    }

    /// An option by which `cd` leads elsewhere than it says.
    fn may_wander(&mut self, arguments: &[Word], options: &[&str]) {
        let is_one = |word: &Word| match word.known() {
            Some(text) => options.contains(&text) || (text.starts_with('-') && text.contains('P')),
            None => true,
        };
        if arguments.iter().any(is_one) {
            self.later += 1;
        }
    }

    /// Options whose value is a command or a path: `hash -p`, `mapfile -C`, `compgen -C`.
    fn calls_back(&mut self, by: &str, arguments: &[Word], around: &CommandContext) {
        let letter = match by {
            "hash" => 'p',
            "enable" => 'f',
            _ => 'C',
        };
        for (at, word) in arguments.iter().enumerate() {
            let text = word.prefix();
            if !text.starts_with('-') {
                continue;
            }
            if by == "compgen" || by == "complete" {
                let expands = text.contains('W')
                    && arguments
                        .iter()
                        .any(|word| word.prefix().contains(['$', '`']));
                if expands {
                    self.ask(format!("what `{by} -W` expands cannot be known"));
                }
            }
            let Some(place) = text.find(letter) else {
                continue;
            };
            let value = if place + 1 < text.len() {
                Some(word.after(place + 1))
            } else {
                arguments.get(at + 1).cloned()
            };
            let Some(value) = value else { continue };
            match by {
                "hash" => {
                    self.simple(std::slice::from_ref(&value), around);
                    self.ask("`hash -p` gives another program the name of a command");
                    for name in arguments.iter().filter_map(Word::known) {
                        self.hashes.insert(name.to_owned(), value.clone());
                    }
                }
                "enable" => self.ask("what `enable -f` loads cannot be known"),
                _ => self.joined(by, &[value], around),
            }
        }
    }
}
