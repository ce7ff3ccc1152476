//! The shells that a text is read for, and the constructs that they read differently.

use super::lexer::Cursor;

/// How a text is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As bash reads it.
    #[default]
    Bash,
    /// As bash reads it. A construct that other shells read differently is noted as a doubt.
    Shared,
    /// As a POSIX shell without the extensions of bash reads it.
    Posix,
}

/// Shells with a grammar of their own.
const FOREIGN: &[&str] = &["csh", "tcsh", "fish"];
/// Words that zsh reads before a command.
pub(crate) const MODIFIERS: &[&str] = &[
    "-",
    "end",
    "exec",
    "foreach",
    "nocorrect",
    "noglob",
    "repeat",
];

/// Whether the shell has a grammar of its own, and the text uses more than simple commands.
pub(crate) fn is_foreign(shell: &str, text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./:@+,-=|;&'".contains(&byte);
    FOREIGN.contains(&shell) && !text.bytes().all(is_plain)
}

impl Cursor<'_> {
    /// Whether the text is read without the extensions of bash.
    pub(crate) fn is_posix(&self) -> bool {
        self.budget.dialect() == Dialect::Posix
    }

    /// Notes a construct that only bash reads in this way.
    pub(crate) fn only_bash(&self, construct: &str) {
        if self.budget.dialect() == Dialect::Shared {
            self.budget.doubt(format!(
                "shells other than bash read {construct} differently"
            ));
        }
    }
}
