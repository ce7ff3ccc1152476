//! Judges the options, operands and variables of the table.

use super::languages::{Effect, effect};
use super::row::{FromInput, Kind, Language, Rest, Row};
use super::table;
use super::walk::{Argument, walk};
use crate::judge::evaluate::{CommandContext, Decider, Input};
use crate::judge::shells::is_descriptor;
use crate::syntax::word::Word;

/// Facts about a command that its arguments have shown so far.
#[derive(Default)]
pub(super) struct Seen {
    /// Scripts in the language of the program.
    texts: Vec<Word>,
    /// A script, or a file with a script, is among the arguments.
    scripted: bool,
    /// The program prints information and exits.
    nothing: bool,
    operands: Vec<usize>,
    /// The first unlisted option.
    unknown: Option<usize>,
    /// The first unresolved word.
    hole: Option<usize>,
    /// The first option with an unresolved name.
    partial: Option<usize>,
}

impl Row {
    /// The kind of a setting's value; `None` if the key is unresolved.
    pub(super) fn setting_kind(&self, setting: &Word) -> Option<Kind> {
        let text = setting.prefix();
        let end = text.find(['=', ' ', '\t']);
        if end.is_none() && setting.known().is_none() {
            return None;
        }
        let key = &text[..end.unwrap_or(text.len())];
        // A setting without a value is the name of a file.
        let file = end.is_none() && self.keys.other.is_some();
        match file {
            true => Some(Kind::Library),
            false => Some(self.keys.kind(key.trim()).unwrap_or(Kind::Plain)),
        }
    }
}

impl Decider<'_> {
    /// Judges a command by the table.
    pub(crate) fn by_table(&mut self, name: &str, arguments: &[Word], around: &CommandContext) {
        let table = match table() {
            Ok(table) => table,
            Err(error) => {
                self.block(format!("the table of programs cannot be read: {error}"));
                return;
            }
        };
        if table.hides_subcommand(name, arguments) {
            self.ask(format!(
                "the subcommand of `{name}` is unknown before it runs"
            ));
        }
        let rows = table.rows(name, arguments);
        for (index, (row, from)) in rows.iter().enumerate() {
            // The options of the program end at the start of its subcommand.
            let end = rows
                .get(index + 1)
                .map_or(arguments.len(), |(_, next)| next - 1);
            let arguments = arguments.get(*from..end).unwrap_or_default();
            self.row(row, arguments, around);
        }
    }

    fn row(&mut self, row: &Row, arguments: &[Word], around: &CommandContext) {
        let seen = self.options(row, arguments, around);
        let reads = match row.input {
            Some(FromInput::Always) => true,
            Some(FromInput::Alone) => !seen.scripted && seen.operands.is_empty(),
            None => false,
        };
        if reads && !seen.nothing {
            self.script_from_input(row, around);
        }
        self.unresolved(row, &seen, arguments, around);
        if row.rest.is_some() {
            self.rest(row, &seen, arguments, around);
        }
    }

    /// Judges the options and operands of a program.
    pub(super) fn options(
        &mut self,
        row: &Row,
        arguments: &[Word],
        around: &CommandContext,
    ) -> Seen {
        let name = row.shown();
        if row.asks {
            self.ask(format!("`{name}` runs programs that its settings name"));
        }
        let found = walk(row, arguments);
        let mut seen = Seen::default();
        // Scripts of a tool read its data.
        let inside = match row.rest {
            Some(_) => around.clone(),
            None => CommandContext {
                input: Input::Data { download: false },
                ..around.clone()
            },
        };
        for item in found {
            match item {
                Argument::Operand(at) => seen.operands.push(at),
                Argument::Unknown(at) => seen.unknown = seen.unknown.or(Some(at)),
                Argument::Partial(at) => seen.partial = seen.partial.or(Some(at)),
                Argument::Hole(at) => {
                    seen.hole = seen.hole.or(Some(at));
                    seen.operands.push(at);
                }
                Argument::Option { opt, value, next } => match opt.kind {
                    Some(Kind::Nothing) => seen.nothing = true,
                    Some(Kind::RestAfter) => {
                        self.simple(arguments.get(next..).unwrap_or_default(), around);
                        seen.scripted = true;
                    }
                    Some(Kind::Ends) => seen.scripted = true,
                    Some(Kind::Program) => {
                        seen.scripted = true;
                        seen.texts.extend(value);
                    }
                    Some(Kind::Long) => {
                        let word = value.map(|value| value.after_text("--"));
                        self.row(row, word.as_slice(), around);
                        seen.scripted |= row.operand.is_some();
                    }
                    Some(kind) => {
                        seen.scripted |= kind == Kind::File;
                        let around = if kind == Kind::File || kind == Kind::Library {
                            around
                        } else {
                            &inside
                        };
                        self.value(row, kind, value.as_ref(), around);
                    }
                    None => {}
                },
            }
        }
        self.operands(row, &mut seen, arguments, around);
        self.language_texts(row, &seen.texts, around);
        seen
    }

    fn operands(
        &mut self,
        row: &Row,
        seen: &mut Seen,
        arguments: &[Word],
        around: &CommandContext,
    ) {
        let words: Vec<&Word> = seen.operands.iter().map(|at| &arguments[*at]).collect();
        if let Some(kind) = row.operand.filter(|_| !seen.scripted) {
            // BSD programs take an empty word as the value of the option before it.
            let empty = words
                .iter()
                .take_while(|word| word.known() == Some(""))
                .count();
            for word in words.iter().take(empty + 1) {
                match kind {
                    Kind::Program => seen.texts.push((*word).clone()),
                    _ => self.value(row, kind, Some(word), around),
                }
            }
        }
        if let Some(kind) = row.operands {
            for word in words.iter().skip(row.before) {
                match kind {
                    Kind::Program => seen.texts.push((*word).clone()),
                    _ => self.value(row, kind, Some(word), around),
                }
            }
        }
        if row.pairs
            && let [key, value, ..] = words[..]
        {
            match key.known() {
                Some(key) => {
                    let kind = row.keys.kind(key).unwrap_or(Kind::Plain);
                    self.keyed(row, kind, key, value, around);
                }
                None => self.ask(format!("the key that `{}` sets is unknown", row.shown())),
            }
        }
        for word in &words {
            let text = word.prefix();
            if row.transports && (text.starts_with("ext::") || text.starts_with("fd::")) {
                self.ask(format!("`{text}` is a command that git runs"));
            }
            if row.assigns
                && let Some((variable, _)) = text.split_once('=')
            {
                let value = word.after(variable.len() + 1);
                self.make_variable(
                    variable.trim_end_matches([':', '+', '?', '!']),
                    &value,
                    around,
                );
            }
        }
    }

    fn language_texts(&mut self, row: &Row, texts: &[Word], around: &CommandContext) {
        if row.language == Language::Sed && texts.len() > 1 {
            // Several scripts are the lines of one script.
            let joined: Vec<String> = texts.iter().map(Word::script).collect();
            self.text(row, &Word::literal(joined.join("\n")), around);
        } else {
            for text in texts {
                self.text(row, text, around);
            }
        }
    }

    fn text(&mut self, row: &Row, text: &Word, around: &CommandContext) {
        let name = row.shown();
        match effect(row, text) {
            Effect::Harmless => {}
            Effect::Shell(text) => self.joined(name, &[text], around),
            Effect::Unknown if text.known().is_none() && around.downloads => {
                self.block("a download that reaches an interpreter");
            }
            Effect::Unknown => {
                self.ask(format!(
                    "the commands that the text for `{name}` starts are unknown"
                ));
            }
        }
    }

    fn script_from_input(&mut self, row: &Row, around: &CommandContext) {
        let name = row.shown();
        match &around.input {
            Input::Closed => {}
            Input::Text(text) => self.text(row, &Word::literal(text), around),
            Input::Data { download: true } => self.block(format!("a download that `{name}` runs")),
            Input::Data { download: false } => {
                self.ask(format!("the script that `{name}` reads is unknown"));
            }
        }
    }

    fn value(&mut self, row: &Row, kind: Kind, value: Option<&Word>, around: &CommandContext) {
        let name = row.shown();
        let Some(value) = value else {
            match kind {
                Kind::InPlace => self.output(&Word::unknown("")),
                Kind::Script | Kind::Command => {
                    self.ask(format!("`{name}` runs a program that its settings name"));
                }
                Kind::Loads => self.ask(format!(
                    "an option makes `{name}` run programs or load code"
                )),
                _ => {}
            }
            return;
        };
        match kind {
            Kind::Command => {
                let around = CommandContext {
                    input: Input::Closed,
                    ..around.clone()
                };
                match value.known() {
                    Some("") => {}
                    Some(text) if text.contains([' ', '\t']) => {
                        self.joined(name, std::slice::from_ref(value), &around);
                    }
                    _ => self.simple(std::slice::from_ref(value), &around),
                }
            }
            Kind::Script => self.joined(name, std::slice::from_ref(value), around),
            Kind::Program => self.text(row, value, around),
            Kind::File | Kind::Library => match value.known() {
                Some(path) if path == "-" || is_descriptor(path) => {
                    self.script_from_input(row, around)
                }
                Some(_) => {
                    for text in self.written_texts(name, Some(value)) {
                        self.text(row, &Word::literal(text), around);
                    }
                }
                None if around.downloads => self.block("a download that reaches an interpreter"),
                None => self.ask(format!("the script that `{name}` runs is unknown")),
            },
            Kind::Name => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_:=,.-/".contains(c);
                if !value.known().is_some_and(|text| text.chars().all(plain)) {
                    self.ask(format!("the text for `{name}` may be code"));
                }
            }
            Kind::Loads => self.ask(format!(
                "an option makes `{name}` run programs or load code"
            )),
            Kind::Output => match value.prefix() {
                "-" if value.known().is_some() => {}
                text if text.starts_with(['|', '!']) => {
                    self.joined(name, &[value.after(1)], around);
                }
                _ => {
                    self.output(value);
                    if !row.builds {
                        self.file_written(value, None, false);
                    }
                }
            },
            Kind::InPlace => self.output(&Word::unknown("")),
            Kind::Setting => self.setting(row, value, around),
            Kind::Assign => {
                if let Some((variable, _)) = value.prefix().split_once('=') {
                    self.assigned(variable, &value.after(variable.len() + 1), around);
                }
            }
            Kind::Options | Kind::GitKey | Kind::GitValue | Kind::Plain => {}
            Kind::Long | Kind::RestAfter | Kind::Ends | Kind::Nothing => {}
        }
    }

    fn setting(&mut self, row: &Row, setting: &Word, around: &CommandContext) {
        let name = row.shown();
        let text = setting.prefix();
        let end = text.find(['=', ' ', '\t']);
        let Some(kind) = row.setting_kind(setting) else {
            self.ask(format!("the setting for `{name}` is unknown"));
            return;
        };
        let value = setting.after(end.map_or(text.len(), |at| at + 1));
        let value = value.after(
            value.prefix().len() - value.prefix().trim_start_matches(['=', ' ', '\t']).len(),
        );
        let key = &text[..end.unwrap_or(text.len())];
        self.keyed(row, kind, key, &value, around);
    }

    /// The value of a key. Git runs aliases as its own subcommands, and values after `!` in a shell.
    fn keyed(&mut self, row: &Row, kind: Kind, key: &str, value: &Word, around: &CommandContext) {
        let name = row.shown();
        let is_git = name.starts_with("git");
        let alias = is_git && key.to_ascii_lowercase().starts_with("alias.");
        if kind.runs() && is_git && value.prefix().starts_with('!') {
            self.joined(name, &[value.after(1)], around);
            self.ask("the words that follow the alias of git are unknown");
        } else if alias {
            self.joined(name, &[Word::literal("git"), value.clone()], around);
        } else {
            self.value(row, kind, Some(value), around);
        }
    }

    /// Judges unresolved words that may be options.
    fn unresolved(&mut self, row: &Row, seen: &Seen, arguments: &[Word], around: &CommandContext) {
        let name = row.shown();
        if seen.partial.is_some() && (row.has_runs() || row.rest.is_some()) {
            self.ask(format!("an option of `{name}` is unknown before it runs"));
        }
        let Some(hole) = seen.hole else { return };
        if row.unresolved {
            self.ask(format!(
                "a word for `{name}` may be an option that runs a command"
            ));
        }
        if row.has_runs() {
            self.loose(name, &arguments[hole..], around);
        }
    }

    /// Judges the command that the operands form.
    fn rest(&mut self, row: &Row, seen: &Seen, arguments: &[Word], around: &CommandContext) {
        let name = row.shown();
        let without_options = row.short.is_empty() && row.long.is_empty();
        if row.loose && (seen.unknown.is_some() || without_options) {
            self.loose(name, arguments, around);
            if without_options {
                return;
            }
        } else if let Some(at) = seen.unknown {
            let option = arguments[at].shown();
            self.ask(format!(
                "the start of the command of `{name} {option}` is unknown"
            ));
        }
        let last = row.before.min(seen.operands.len());
        let first = row.before.saturating_sub(row.optional_before).min(last);
        if seen
            .hole
            .is_some_and(|hole| seen.operands.get(last).is_none_or(|at| hole < *at))
        {
            self.ask(format!("the start of the command of `{name}` is unknown"));
        }
        for start in first..=last {
            let Some(at) = seen.operands.get(start) else {
                continue;
            };
            match row.rest {
                Some(Rest::Script) => self.joined(name, &arguments[*at..], around),
                _ => self.simple(&arguments[*at..], around),
            }
        }
    }
}
