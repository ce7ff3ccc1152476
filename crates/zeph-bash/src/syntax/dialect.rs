//! Shell dialects, and the constructs that shells read differently.

use super::lexer::Cursor;

/// The shell grammar in which a text is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The grammar of bash.
    #[default]
    Bash,
    /// The grammar of bash. A construct that other shells read differently is recorded as a doubt.
    Shared,
    /// The grammar of a POSIX shell without the extensions of bash.
    Posix,
}

/// Shells with a different grammar.
const FOREIGN: &[&str] = &["csh", "tcsh", "fish"];
/// Words that zsh accepts before a command.
pub(crate) const MODIFIERS: &[&str] = &[
    "-",
    "end",
    "exec",
    "foreach",
    "nocorrect",
    "noglob",
    "repeat",
];

/// Whether the shell has a different grammar, and the text uses more than simple commands.
pub(crate) fn is_foreign(shell: &str, text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./:@+,-=|;&'".contains(&byte);
    FOREIGN.contains(&shell) && !text.bytes().all(is_plain)
}

impl Cursor<'_> {
    /// Whether the text is read without the extensions of bash.
    pub(crate) fn is_posix(&self) -> bool {
        self.budget.dialect() == Dialect::Posix
    }

    /// Records a construct that only bash reads in this way.
    pub(crate) fn only_bash(&self, construct: &str) {
        if self.budget.dialect() == Dialect::Shared {
            self.budget.doubt(format!(
                "shells other than bash read {construct} differently"
            ));
        }
    }
}
