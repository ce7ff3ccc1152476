//! The typed tree of a command: what bash would run, at every depth.

use super::eval_flags::EvalFlags;
use super::word::Word;

/// Commands one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// Its pipelines in order.
    pub pipelines: Vec<Pipeline>,
    /// Of a whole text: what in it could be evaluated a second time.
    pub signs: EvalFlags,
    /// Of a whole text: the first construct whose meaning is not certain.
    pub doubt: Option<String>,
}

/// Commands joined by `|` or `|&`; mostly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// From left to right.
    pub commands: Vec<Command>,
    /// What follows it.
    pub then: Connector,
}

/// What joins a pipeline with the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connector {
    /// `;`, a line break, or the end.
    Next,
    /// `&`: it runs in the background.
    Background,
    /// `&&`: the next one runs after a success.
    And,
    /// `||`: the next one runs after a failure.
    Or,
}

/// A command with its redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it is.
    pub kind: Kind,
    /// In order.
    pub redirects: Vec<Redirect>,
    /// What is substituted into its own words and redirections.
    pub substitutions: Vec<Substitution>,
    /// Words that are no arguments: of `for … in`, `case`, `[[ … ]]` and arrays.
    pub others: Vec<Word>,
}

/// The kinds of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Assignments and words.
    Simple {
        /// `NAME=value` before the command word.
        assignments: Vec<Assignment>,
        /// The command word and its arguments, after expansion of braces.
        words: Vec<Word>,
    },
    /// `( … )`, `coproc …`.
    Subshell(List),
    /// `{ … }`, loops, conditionals, `case`: the lists of all branches in order of the text.
    Compound(Shape, Vec<List>),
    /// `name() …`.
    Function {
        /// Its name.
        name: String,
        /// What it runs when called.
        body: Box<Command>,
    },
    /// `[[ … ]]` and `(( … ))`: only what is substituted into it runs.
    Expression,
}

/// In which order the lists of a compound command run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// `{ … }`: its list runs once.
    Group,
    /// `if`, `case`: each list runs at most once.
    Branches,
    /// `while`, `until`, `for ((…))`: the lists run again and again.
    Loop,
    /// `for`, `select`: the list runs for values of a variable.
    Each {
        /// The variable.
        name: String,
        /// Whether the command's words are all values that it gets.
        listed: bool,
    },
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value, if it is known; that of an array is not.
    pub value: Option<String>,
    /// Its value with the parts that are not resolved.
    pub word: Word,
    /// Whether the value is a part of the variable's: after `+=` or a subscript.
    pub partial: bool,
}

impl Assignment {
    /// An assignment of a value that is not known.
    #[must_use]
    pub fn unknown(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: None,
            word: Word::unknown(""),
            partial: false,
        }
    }
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirect {
    /// `<`, `<>`, `<&3`.
    Input(Word),
    /// `>`, `>>`, `>|`, `&>`, `&>>`, and `>&` onto a file.
    Output {
        /// The file.
        target: Word,
        /// Whether standard output goes there.
        stdout: bool,
    },
    /// `2>&1`.
    Duplicate,
    /// `<<`: the text.
    HereDocument(Word),
    /// `<<<`.
    HereString(Word),
    /// One of these for another descriptor than standard input: `3<file`.
    Elsewhere(Box<Redirect>),
}

/// What runs inside a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// How it is written.
    pub construct: Construct,
    /// What it runs.
    pub body: List,
}

/// A construct of the shell that `allow_constructs` admits by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Construct {
    /// `$(…)`.
    CommandSubstitution,
    /// `` `…` ``.
    Backticks,
    /// `<(…)`, `>(…)`.
    ProcessSubstitution,
    /// `<<< word`.
    HereString,
    /// `eval …`.
    Eval,
    /// `$((…))` and `((…))` that set variables; always admitted.
    Arithmetic,
}

impl Construct {
    /// Those that the configuration can name.
    pub const ALL: [Self; 5] = [
        Self::CommandSubstitution,
        Self::Backticks,
        Self::ProcessSubstitution,
        Self::HereString,
        Self::Eval,
    ];

    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CommandSubstitution => "command_substitution",
            Self::Backticks => "backticks",
            Self::ProcessSubstitution => "process_substitution",
            Self::HereString => "here_string",
            Self::Eval => "eval",
            Self::Arithmetic => "arithmetic",
        }
    }

    /// How it is called when it is refused.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::CommandSubstitution => "command substitution `$(…)`",
            Self::Backticks => "command substitution with backticks",
            Self::ProcessSubstitution => "process substitution `<(…)`",
            Self::HereString => "a here-string `<<<`",
            Self::Eval => "`eval`",
            Self::Arithmetic => "arithmetic",
        }
    }
}
