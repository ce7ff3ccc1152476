//! Scripts for shells, judged in each way in which the shell may read them.

use super::effects::Effects;
use super::evaluate::{CommandContext, Decider};
use super::shells::runs_apart;
use crate::syntax::ast::List;
use crate::syntax::dialect::{Dialect, is_foreign};
use crate::syntax::reading::read;
use crate::syntax::word::UNRESOLVED;

/// The maximum nesting depth of scripts for shells.
const MAX_SCRIPTS: usize = 16;
/// The maximum number of bytes of scripts for shells that are parsed for one command.
const MAX_SCRIPT_BYTES: usize = 256 * 1024;

impl Decider<'_> {
    /// Judges a script for a shell.
    pub(super) fn script(&mut self, by: &str, text: &str, around: &CommandContext) {
        self.read_script(by, text, around, true);
    }

    /// Judges a script for a shell. With `asks`, an unresolved part requires confirmation.
    pub(super) fn read_script(
        &mut self,
        by: &str,
        text: &str,
        around: &CommandContext,
        asks: bool,
    ) {
        self.script_bytes += text.len() + 1;
        if around.scripts >= MAX_SCRIPTS || self.script_bytes > MAX_SCRIPT_BYTES {
            self.block("too many nested shells");
            return;
        }
        let unresolved = text.contains(UNRESOLVED);
        let unknown = || format!("the commands that `{by}` runs are unknown before it runs");
        if unresolved && asks {
            self.ask_for_text(by, unknown(), around);
        }
        let dialect = match by {
            _ if !runs_apart(by) => Dialect::Bash,
            "bash" | "rbash" => Dialect::Bash,
            _ => Dialect::Shared,
        };
        match read(text, dialect) {
            Ok(reading) => {
                self.text_of_shell(by, &reading.list, around);
                if let Some(why) = reading.list.doubt {
                    // A POSIX shell may read a blocked command in the same text.
                    if let Ok(other) = read(text, Dialect::Posix) {
                        self.text_of_shell(by, &other.list, around);
                    }
                    self.ask(why);
                }
                if is_foreign(by, text) {
                    self.ask(format!("`{by}` parses such a text differently"));
                }
            }
            Err(_) if unresolved => self.ask_for_text(by, unknown(), around),
            Err(error) => self.block(format!("the text for `{by}` cannot be parsed: {error}")),
        }
    }

    /// Judges the commands of a script that another shell runs.
    fn text_of_shell(&mut self, by: &str, list: &List, around: &CommandContext) {
        self.signs = self.signs.or(list.signs);
        let inside = CommandContext {
            scripts: around.scripts + 1,
            ..around.clone()
        };
        let places = self.places.clone();
        let apart = runs_apart(by);
        if apart {
            self.places.values = places.values.in_child();
        }
        self.list(list, &inside);
        if self.places.now() != places.now() && !apart {
            self.later += 1;
        }
        let values = std::mem::replace(&mut self.places, places).values;
        match by {
            _ if apart => {}
            "eval" => self.places.values = values,
            _ => {
                self.places.values.may_change(&Effects::of(list));
                self.functions_may_run();
            }
        }
    }
}
