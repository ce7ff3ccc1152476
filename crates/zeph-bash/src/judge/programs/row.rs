//! Row format of the program table, and its compiled form.
//!
//! A row describes the options of a program, or of a program with a subcommand (`git grep`). The lists of
//! options name the kind of their values. `-x` is a short option, `--name` a long one. The suffix `?` marks
//! a value in the same word only, `!` an option without a value, and `*` a prefix.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The kind of a text in the arguments of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The path of a program that runs.
    Command,
    /// Text for a shell.
    Script,
    /// Text in the language of the program.
    Program,
    /// A file with a script; standard input counts as data.
    File,
    /// A file that is loaded in addition to the script.
    Library,
    /// A name. Any other text may be code.
    Name,
    /// Code, or a setting, that cannot be inspected.
    Loads,
    /// A file that is written.
    Output,
    /// The program writes to its operands.
    InPlace,
    /// `KEY=VALUE`, judged by the key.
    Setting,
    /// `NAME=VALUE` of an environment variable.
    Assign,
    /// A long option without its dashes.
    Long,
    /// The words after it are a command.
    RestAfter,
    /// The words after it belong to the script.
    Ends,
    /// The program prints information and exits.
    Nothing,
    /// Options of another program, separated by blanks.
    Options,
    /// A key of git's configuration.
    GitKey,
    /// A value of git's configuration.
    GitValue,
    /// A value without effect on the commands that run.
    Plain,
}

impl Kind {
    /// Whether a value of this kind may start a command.
    pub(super) fn runs(self) -> bool {
        matches!(
            self,
            Self::Command
                | Self::Script
                | Self::Program
                | Self::Loads
                | Self::Setting
                | Self::Long
                | Self::RestAfter
        )
    }
}

/// Whether an option takes a value, and from which word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    /// It takes none.
    Flag,
    /// A value from the same word or the next one.
    Value,
    /// A value from the same word only.
    Attached,
}

/// A known option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opt {
    pub(crate) arity: Arity,
    pub(crate) kind: Option<Kind>,
    /// Whether the words after it belong to the script.
    pub(super) ends: bool,
}

/// How the operands form a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rest {
    /// They are its words.
    Command,
    /// They are joined and given to a shell.
    Script,
}

/// The cases in which a program reads its script from standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromInput {
    /// Without an operand and a script.
    Alone,
    /// In every case.
    Always,
}

/// The language of a program's scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Language {
    /// It is not inspected.
    #[default]
    Other,
    /// `awk`.
    Awk,
    /// `sed`.
    Sed,
    /// `ex`, the language of `vi`.
    Ex,
    /// A shell.
    Shell,
}

/// A row as the table stores it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Written {
    pub(super) names: Vec<String>,
    flags: String,
    values: String,
    optional: String,
    long_flags: Vec<String>,
    long_values: Vec<String>,
    long_optional: Vec<String>,
    command: Vec<String>,
    script: Vec<String>,
    program: Vec<String>,
    file: Vec<String>,
    library: Vec<String>,
    name: Vec<String>,
    loads: Vec<String>,
    output: Vec<String>,
    in_place: Vec<String>,
    setting: Vec<String>,
    assign: Vec<String>,
    long: Vec<String>,
    rest_after: Vec<String>,
    nothing: Vec<String>,
    ends: Vec<String>,
    one_dash: bool,
    first_is_bundle: bool,
    stops: bool,
    dashes_end: bool,
    versions: bool,
    interpreter: bool,
    programs: bool,
    asks: bool,
    loose: bool,
    unresolved: bool,
    pairs: bool,
    assigns: bool,
    transports: bool,
    /// Its outputs are programs that it builds.
    builds: bool,
    before: usize,
    optional_before: usize,
    rest: Option<Rest>,
    operand: Option<Kind>,
    operands: Option<Kind>,
    plus: Option<Kind>,
    input: Option<FromInput>,
    language: Language,
    triggers: Vec<String>,
    harmless: Vec<String>,
    keys: BTreeMap<Kind, Vec<String>>,
    keys_else: Option<Kind>,
    keys_of: Option<String>,
    reads: bool,
    offered: bool,
}

/// A row with indexes for look-ups.
#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a property of the row in the table"
)]
pub(crate) struct Row {
    pub(crate) names: Vec<String>,
    pub(super) short: BTreeMap<char, Opt>,
    /// Short options of two letters.
    pub(super) pairs_of_letters: Vec<(String, Opt)>,
    /// Long options, without dashes.
    pub(super) long: BTreeMap<String, Opt>,
    /// Options that only have to start with the text.
    pub(super) prefixes: Vec<(String, Opt)>,
    pub(super) one_dash: bool,
    pub(super) first_is_bundle: bool,
    pub(super) stops: bool,
    pub(super) dashes_end: bool,
    pub(super) versions: bool,
    pub(crate) interpreter: bool,
    pub(super) programs: bool,
    pub(super) asks: bool,
    pub(crate) loose: bool,
    pub(super) unresolved: bool,
    pub(super) pairs: bool,
    pub(super) assigns: bool,
    pub(super) transports: bool,
    pub(super) builds: bool,
    pub(super) before: usize,
    pub(super) optional_before: usize,
    pub(crate) rest: Option<Rest>,
    pub(super) operand: Option<Kind>,
    pub(super) operands: Option<Kind>,
    pub(super) plus: Option<Kind>,
    pub(super) input: Option<FromInput>,
    pub(super) language: Language,
    pub(super) triggers: Vec<String>,
    pub(super) harmless: Vec<String>,
    pub(super) keys: Keys,
    /// The command only reads.
    pub(super) reads: bool,
    /// One approval can allow all calls with the listed options.
    pub(super) offered: bool,
    /// Long options are recognized only in full.
    pub(super) exact: bool,
}

/// Keys of settings with the kinds of their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    pub(super) globs: Vec<(String, Kind)>,
    /// The kind of a key without an entry.
    pub(super) other: Option<Kind>,
}

impl Keys {
    /// The kind of the value of `key`.
    pub(super) fn kind(&self, key: &str) -> Option<Kind> {
        let key = key.to_ascii_lowercase();
        let found = self.globs.iter().find(|(glob, _)| matches(glob, &key));
        found.map(|(_, kind)| *kind).or(self.other)
    }
}

/// Whether `text` matches a glob in which `*` is any text.
pub(super) fn matches(glob: &str, text: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(text) = text.strip_prefix(first) else {
        return false;
    };
    match rest.split_once('*') {
        None => text.ends_with(rest),
        _ => (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .any(|at| matches(rest, &text[at..])),
    }
}

impl Written {
    /// Builds the row for look-ups, with the shared lists of keys.
    pub(super) fn compile(self, shared: &BTreeMap<String, Keys>) -> Result<Row, String> {
        let mut row = Row {
            short: BTreeMap::new(),
            pairs_of_letters: Vec::new(),
            long: BTreeMap::new(),
            prefixes: Vec::new(),
            one_dash: self.one_dash,
            first_is_bundle: self.first_is_bundle,
            stops: self.stops,
            dashes_end: self.dashes_end,
            versions: self.versions,
            interpreter: self.interpreter,
            programs: self.programs || self.interpreter,
            asks: self.asks,
            loose: self.loose,
            unresolved: self.unresolved,
            pairs: self.pairs,
            assigns: self.assigns,
            transports: self.transports,
            builds: self.builds,
            before: self.before,
            optional_before: self.optional_before,
            rest: self.rest,
            operand: self.operand,
            operands: self.operands,
            plus: self.plus,
            input: self.input,
            language: self.language,
            triggers: self.triggers,
            harmless: self.harmless,
            keys: keys(&self.keys, self.keys_else),
            names: self.names,
            reads: self.reads,
            offered: self.offered,
            exact: false,
        };
        if let Some(name) = &self.keys_of {
            let keys = shared
                .get(name)
                .ok_or_else(|| format!("no keys {name:?}"))?;
            row.keys = keys.clone();
        }
        for (letters, arity) in [
            (&self.flags, Arity::Flag),
            (&self.values, Arity::Value),
            (&self.optional, Arity::Attached),
        ] {
            row.short
                .extend(letters.chars().map(|letter| (letter, plain(arity))));
        }
        for (names, arity) in [
            (&self.long_flags, Arity::Flag),
            (&self.long_values, Arity::Value),
            (&self.long_optional, Arity::Attached),
        ] {
            let names = names.iter().map(|name| name.trim_start_matches('-'));
            row.long
                .extend(names.map(|name| (name.to_owned(), plain(arity))));
        }
        let lists = [
            (Kind::Command, &self.command),
            (Kind::Script, &self.script),
            (Kind::Program, &self.program),
            (Kind::File, &self.file),
            (Kind::Library, &self.library),
            (Kind::Name, &self.name),
            (Kind::Loads, &self.loads),
            (Kind::Output, &self.output),
            (Kind::InPlace, &self.in_place),
            (Kind::Setting, &self.setting),
            (Kind::Assign, &self.assign),
            (Kind::Long, &self.long),
            (Kind::RestAfter, &self.rest_after),
            (Kind::Nothing, &self.nothing),
        ];
        for (kind, options) in lists {
            for option in options {
                let arity = match (option.chars().last(), kind) {
                    (Some('!'), _) | (_, Kind::RestAfter | Kind::Nothing) => Arity::Flag,
                    (Some('?'), _) => Arity::Attached,
                    _ => Arity::Value,
                };
                let opt = Opt {
                    arity,
                    kind: Some(kind),
                    ends: self.ends.contains(option),
                };
                row.add(option, opt)?;
            }
        }
        for option in &self.ends {
            if !lists.iter().any(|(_, options)| options.contains(option)) {
                let opt = Opt {
                    arity: Arity::Value,
                    kind: Some(Kind::Ends),
                    ends: true,
                };
                row.add(option, opt)?;
            }
        }
        Ok(row)
    }
}

fn plain(arity: Arity) -> Opt {
    Opt {
        arity,
        kind: None,
        ends: false,
    }
}

pub(super) fn keys(globs: &BTreeMap<Kind, Vec<String>>, other: Option<Kind>) -> Keys {
    let globs = globs
        .iter()
        .flat_map(|(kind, globs)| globs.iter().map(|glob| (glob.clone(), *kind)));
    Keys {
        globs: globs.collect(),
        other,
    }
}

impl Row {
    fn add(&mut self, written: &str, opt: Opt) -> Result<(), String> {
        let option = written.trim_end_matches(['!', '?']);
        if let Some(prefix) = option.strip_suffix('*') {
            let prefix = prefix.trim_start_matches('-').to_owned();
            self.prefixes.push((prefix, opt));
        } else if let Some(long) = option.strip_prefix("--") {
            self.long.insert(long.to_owned(), opt);
        } else if let Some(letters) = option.strip_prefix('-') {
            let mut characters = letters.chars();
            match (characters.next(), characters.next()) {
                (Some(_), _) if self.one_dash => {
                    self.long.insert(letters.to_owned(), opt);
                }
                (Some(letter), None) => {
                    self.short.insert(letter, opt);
                }
                (Some(_), Some(_)) => self.pairs_of_letters.push((letters.to_owned(), opt)),
                (None, _) => return Err(format!("{written:?} is not an option")),
            }
        } else {
            return Err(format!("{written:?} is not an option"));
        }
        Ok(())
    }

    /// The last word of the row's name: the subcommand, if it has one.
    pub(super) fn shown(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Whether an option of the row may start a command or load code.
    pub(super) fn has_runs(&self) -> bool {
        self.options().any(|opt| opt.kind.is_some_and(Kind::runs))
    }

    /// Whether an option of the row may start a command.
    pub(super) fn starts(&self) -> bool {
        self.options().any(|opt| {
            opt.kind
                .is_some_and(|kind| kind.runs() && kind != Kind::Loads)
        })
    }

    fn options(&self) -> impl Iterator<Item = &Opt> {
        let prefixes = self.prefixes.iter().map(|(_, opt)| opt);
        self.long
            .values()
            .chain(self.short.values())
            .chain(prefixes)
    }
}
