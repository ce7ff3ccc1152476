//! Judges the variables of the table: before commands, and as operands of `make`.

use super::row::Kind;
use super::{Table, table};
use crate::judge::evaluate::{CommandContext, Decider, Input};
use crate::judge::shells::is_descriptor;
use crate::syntax::word::Word;

/// Characters with which a value of `make` can start a command.
const MAKE_TEXT: &[char] = &['`', ';', '|', '&', '<', '>', '\n'];

impl Decider<'_> {
    /// Judges `make NAME=VALUE`: `make` expands the value, and recipes pass it to a shell.
    pub(super) fn make_variable(&mut self, name: &str, value: &Word, around: &CommandContext) {
        let text = value.script();
        if text.contains(MAKE_TEXT) || text.contains("$(") || text.contains("${") {
            self.ask(format!(
                "the commands in the value of `{name}` for `make` are unknown"
            ));
        } else {
            self.assigned(name, value, around);
        }
        if name == ".SHELLFLAGS" {
            self.ask("`.SHELLFLAGS` changes how `make` runs its commands");
        }
    }

    /// Judges the value of an environment variable by the table.
    pub(crate) fn variable(&mut self, name: &str, word: &Word, around: &CommandContext) {
        let Ok(table) = table() else { return };
        let Some(variable) = table.variable(name) else {
            return;
        };
        let value = word.prefix();
        if word.known().is_none() {
            let accepted = matches!(variable.kind, Kind::GitValue | Kind::Name | Kind::File);
            let script = matches!(variable.kind, Kind::Script | Kind::Command);
            if !accepted && !variable.lenient && !script {
                self.ask(format!("the command in `{name}` is unknown before it runs"));
                return;
            }
        }
        let inside = CommandContext {
            input: Input::Data { download: false },
            ..around.clone()
        };
        match variable.kind {
            _ if word.known() == Some("") => {}
            // `less` removes these signs before the command.
            Kind::Script if name == "LESSOPEN" => {
                let command = value.trim_start_matches(['|', '-']);
                self.joined(name, &[word.after(value.len() - command.len())], &inside);
            }
            Kind::Script => self.joined(name, std::slice::from_ref(word), &inside),
            Kind::Command => {
                let inside = CommandContext {
                    input: Input::Closed,
                    ..around.clone()
                };
                match value.contains([' ', '\t']) {
                    true => self.joined(name, std::slice::from_ref(word), &inside),
                    false => self.simple(std::slice::from_ref(word), &inside),
                }
            }
            Kind::File if is_descriptor(value) || value == "-" => {
                self.ask(format!("the file that `{name}` names is unknown"));
            }
            Kind::Name => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_:=,.".contains(c);
                if !value.chars().all(plain) {
                    self.ask(format!("the code that `{name}` names is unknown"));
                }
            }
            Kind::Program | Kind::Loads => {
                self.ask(format!("`{name}` makes programs run commands or load code"));
            }
            Kind::Options => {
                let program = variable.program.as_deref().unwrap_or_default();
                self.variable_options(table, program, value, &inside);
            }
            Kind::GitKey => {
                let kind = table
                    .by_name
                    .get("git")
                    .and_then(|row| table.rows[*row].keys.kind(value));
                if kind.is_some() {
                    self.ask(format!(
                        "the command that git runs for `{value}` is unknown"
                    ));
                }
            }
            Kind::GitValue => {
                if let Some(script) = value.strip_prefix('!') {
                    self.joined(name, &[Word::literal(script)], &inside);
                }
            }
            _ => {}
        }
    }

    /// Judges the options of `program` in the value of a variable.
    fn variable_options(
        &mut self,
        table: &Table,
        program: &str,
        text: &str,
        around: &CommandContext,
    ) {
        let mut words: Vec<Word> = text.split_whitespace().map(Word::literal).collect();
        if let Some(first) = words.first_mut()
            && !first.prefix().starts_with('-')
            && !first.prefix().contains('=')
        {
            *first = first.after_text("-");
        }
        if let Some(index) = table.by_name.get(program) {
            self.options(&table.rows[*index], &words, around);
        }
    }
}
