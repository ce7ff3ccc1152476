//! The typed tree of a command: the commands that bash runs, at every depth.

use super::eval_flags::EvalFlags;
use super::word::Word;

/// Commands that run in sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The pipelines in order.
    pub pipelines: Vec<Pipeline>,
    /// For a whole text: its signs of double evaluation.
    pub signs: EvalFlags,
    /// For a whole text: the first construct with an uncertain meaning.
    pub doubt: Option<String>,
}

/// Commands that `|` or `|&` joins; usually one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pipeline {
    /// The commands from left to right.
    pub commands: Vec<Command>,
    /// The connector after the pipeline.
    pub then: Connector,
}

/// The connector between a pipeline and the next one.
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
    /// The kind of the command.
    pub kind: Kind,
    /// The redirections in order.
    pub redirects: Vec<Redirect>,
    /// The substitutions in its own words and redirections.
    pub substitutions: Vec<Substitution>,
    /// Words that are not arguments: of `for … in`, `case`, `[[ … ]]` and arrays.
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
    /// `{ … }`, loops, conditionals, `case`: the lists of all branches in the order of the text.
    Compound(Shape, Vec<List>),
    /// `name() …`.
    Function {
        /// Its name.
        name: String,
        /// The command that runs when the function is called.
        body: Box<Command>,
    },
    /// `[[ … ]]` and `(( … ))`: only the substitutions in it run.
    Expression,
}

/// The order in which the lists of a compound command run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// `{ … }`: its list runs once.
    Group,
    /// `if`, `case`: each list runs at most once.
    Branches,
    /// `while`, `until`, `for ((…))`: the lists run repeatedly.
    Loop,
    /// `for`, `select`: the list runs for values of a variable.
    Each {
        /// The variable.
        name: String,
        /// Whether the words of the command are all values of the variable.
        listed: bool,
    },
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The value, if it is known. The value of an array is not.
    pub value: Option<String>,
    /// The value, including its unresolved parts.
    pub word: Word,
    /// Whether the value is only a part of the variable's value: after `+=` or a subscript.
    pub partial: bool,
}

impl Assignment {
    /// An assignment of an unknown value.
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
        /// Whether standard output is redirected to the file.
        stdout: bool,
        /// Whether the output is appended: `>>`.
        append: bool,
    },
    /// `2>&1`.
    Duplicate,
    /// `<<`: the text.
    HereDocument(Word),
    /// `<<<`.
    HereString(Word),
    /// One of these for a descriptor other than standard input: `3<file`.
    Elsewhere(Box<Redirect>),
}

impl Redirect {
    /// Whether it replaces standard input.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Input(_) | Self::HereDocument(_) | Self::HereString(_)
        )
    }
}

/// A list of commands in a word.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Substitution {
    /// The syntax of the substitution.
    pub construct: Construct,
    /// The commands that it runs.
    pub body: List,
}

/// A construct of the shell that `blocked_constructs` refuses by name.
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
    /// `$((…))` and `((…))` that set variables. Never refused by name.
    Arithmetic,
}

impl Construct {
    /// The constructs that the configuration can name.
    pub const ALL: [Self; 5] = [
        Self::CommandSubstitution,
        Self::Backticks,
        Self::ProcessSubstitution,
        Self::HereString,
        Self::Eval,
    ];

    /// The name in the configuration.
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

    /// Returns an equivalent without the construct, for the message that refuses it.
    #[must_use]
    pub fn replacement(self) -> &'static str {
        match self {
            Self::CommandSubstitution | Self::Backticks | Self::Arithmetic => {
                "run the inner command in a call of its own, and write its output into the next one"
            }
            Self::ProcessSubstitution => "write the output to a file, and name the file",
            Self::HereString => "use a pipe (`printf '%s\\n' TEXT | …`) or a here-document",
            Self::Eval => "write the command itself",
        }
    }

    /// Returns the description of the construct, for the message that refuses it.
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
