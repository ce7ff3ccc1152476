//! Commands that run others with arguments that the table cannot describe: `exec`, `env`, `xargs`, `parallel`,
//! and programs with unlisted options.

use super::evaluate::{CommandContext, Decider, Input, Verdict};
use super::programs;
use super::wrappers::{Wrapper, plain};
use crate::syntax::reading::parse;
use crate::syntax::word::Word;

/// Whether an option of `env` is `--split-string` or an abbreviation of it.
fn is_split_string(name: &str) -> bool {
    name.len() > 2 && "--split-string".starts_with(name)
}

impl Decider<'_> {
    pub(super) fn exec(&mut self, words: &[Word], around: &CommandContext) {
        let wrapper = plain("exec", "cl", "a");
        let at = self.skip_options(&wrapper, &words[1..]) + 1;
        let Some(command) = words.get(at) else { return };
        if !command.known().is_some_and(|path| path.contains('/')) {
            self.block("the file that `exec` runs is unknown before it runs");
        }
        self.simple(&words[at..], around);
    }

    pub(super) fn env(&mut self, arguments: &[Word], around: &CommandContext) {
        let wrapper = Wrapper {
            long_flags: &[
                "ignore-environment",
                "null",
                "debug",
                "list-signal-handling",
                "block-signal",
                "default-signal",
                "ignore-signal",
            ],
            long_values: &["unset", "chdir", "argv0"],
            ..plain("env", "i0v", "uCa")
        };
        let mut at = 0;
        let mut removes = false;
        loop {
            let before = at;
            // `-S` splits its value into words.
            if let Some(word) = arguments.get(at) {
                let text = word.prefix();
                let short = text.starts_with('-') && !text.starts_with("--");
                let split = match text.split_once('=') {
                    _ if short => text.find('S').map(|at| at + 1),
                    Some((name, _)) if is_split_string(name) => Some(name.len() + 1),
                    None if is_split_string(text) => Some(text.len()),
                    _ => None,
                };
                if let Some(from) = split {
                    let from = Some(from).filter(|from| *from < text.len());
                    let mut words = Vec::new();
                    words.extend(from.map(|from| word.after(from)));
                    words.extend_from_slice(&arguments[at + 1..]);
                    self.ask("the command in the text for `env -S` is unknown before it runs");
                    self.joined("env -S", &words, around);
                    return;
                }
            }
            // One option at a time; none is left if the value of the last option is missing.
            let next = arguments.get(at..=at).unwrap_or_default();
            at += self.skip_options(&wrapper, next);
            if at > before {
                // The value of the option, if it has one.
                let option = arguments[before].prefix();
                removes |= option != "--";
                let takes = matches!(option, "--unset" | "--chdir" | "--argv0")
                    || (!option.starts_with("--")
                        && option.len() > 1
                        && option.ends_with(['u', 'C', 'a']));
                at += usize::from(takes);
                if option == "--" {
                    break;
                }
                continue;
            }
            if arguments
                .get(at)
                .is_some_and(|word| word.known() == Some("-"))
            {
                at += 1;
                removes = true;
                continue;
            }
            break;
        }
        let before = self.places.values.clone();
        if removes {
            // `-i` and `-u` remove variables.
            self.places.values.make_all_volatile();
        }
        let rest = arguments.get(at..).unwrap_or_default();
        let assignments = rest
            .iter()
            .take_while(|word| word.prefix().contains('='))
            .count();
        for word in &rest[..assignments] {
            if let Some((name, _)) = word.prefix().split_once('=') {
                self.assigned(name, &word.after(name.len() + 1), around);
            }
        }
        self.simple(&rest[assignments..], around);
        self.places.values = before;
    }

    pub(super) fn xargs(&mut self, arguments: &[Word], around: &CommandContext) {
        let wrapper = Wrapper {
            long_flags: &[
                "null",
                "interactive",
                "no-run-if-empty",
                "verbose",
                "exit",
                "show-limits",
                "open-tty",
                "eof",
                "replace",
                "max-lines",
            ],
            long_values: &[
                "arg-file",
                "delimiter",
                "max-args",
                "max-procs",
                "max-chars",
                "process-slot-var",
            ],
            ..plain("xargs", "0oprtxie", "adEILnPsJRS")
        };
        let at = self.skip_options(&wrapper, arguments);
        let mut replace = None;
        for (index, word) in arguments[..at].iter().enumerate() {
            let text = word.prefix();
            if let Some(value) = text.strip_prefix("--replace") {
                replace = Some(value.strip_prefix('=').unwrap_or("{}").to_owned());
            } else if let Some(value) = text.strip_prefix("-i") {
                replace = Some(if value.is_empty() { "{}" } else { value }.to_owned());
            } else if text.starts_with('-')
                && !text.starts_with("--")
                && let Some(place) = text.find(['I', 'J'])
            {
                let value = &text[place + 1..];
                let next = arguments.get(index + 1).map(Word::prefix);
                replace = Some(
                    if value.is_empty() {
                        next.unwrap_or("{}")
                    } else {
                        value
                    }
                    .to_owned(),
                );
            }
        }
        let mut inner: Vec<Word> = match &replace {
            Some(replace) => arguments[at..]
                .iter()
                .map(|word| word.with_unknown(replace))
                .collect(),
            None => arguments[at..].to_vec(),
        };
        if inner.is_empty() {
            return;
        }
        if replace.is_none() {
            // Any number of words can follow. The first can be the value of an option.
            inner.extend([Word::unknown(""), Word::unknown("")]);
        }
        if programs::takes_options(&inner) {
            self.ask("the arguments from standard input may be options that run a command");
        }
        // `xargs` reads the arguments from standard input.
        let inside = CommandContext {
            input: Input::Closed,
            ..around.clone()
        };
        self.simple(&inner, &inside);
    }

    pub(super) fn parallel(&mut self, arguments: &[Word], around: &CommandContext) {
        let end = arguments
            .iter()
            .position(|word| word.prefix().starts_with(":::"))
            .unwrap_or(arguments.len());
        let start = arguments[..end]
            .iter()
            .position(|word| !word.prefix().starts_with('-'))
            .unwrap_or(end);
        if start > 0 || start == end {
            self.ask("the commands that `parallel` runs are unknown before it runs");
        }
        // `parallel` gives its words to a shell, and adds arguments from other sources.
        self.joined("parallel", &arguments[start..end], around);
        self.loose("parallel", arguments, around);
        let mut inner = arguments[start..end].to_vec();
        inner.push(Word::unknown(""));
        self.simple(&inner, around);
    }

    /// Requires confirmation if a later word would be blocked as a command. The first word that is not an
    /// option is judged as a command.
    pub(super) fn loose(&mut self, name: &str, arguments: &[Word], around: &CommandContext) {
        let blocked = arguments.iter().enumerate().find(|(at, word)| {
            word.known().is_some() && self.policy.entry(&arguments[*at..]).is_some()
        });
        if let Some((_, word)) = blocked {
            self.ask(format!(
                "`{name}` may run `{}`, which is unknown before it runs",
                word.shown()
            ));
        }
        let first = arguments.iter().position(|word| {
            !word.prefix().starts_with('-') && !matches!(word.prefix(), "run" | "exec")
        });
        for at in first.into_iter().chain(
            arguments
                .iter()
                .position(|word| word.known() == Some("--"))
                .map(|at| at + 1),
        ) {
            if arguments.get(at).is_some_and(|word| word.known().is_some()) {
                self.simple(&arguments[at..], around);
            }
        }
        let text = arguments.iter().filter_map(Word::known).find(|text| {
            text.contains([' ', ';', '|', '&', '\n']) && self.would_block(text, around)
        });
        if let Some(text) = text {
            self.ask(format!("`{name}` may run `{text}`"));
        }
        let data = arguments.iter().any(|word| {
            word.known()
                .is_some_and(|text| text.contains("sh -c") || text == "-c")
        });
        if data {
            self.ask(format!(
                "the commands in the text for `{name}` are unknown before it runs"
            ));
        }
    }
    /// Whether a shell would run a blocked command if it gets `text`.
    fn would_block(&mut self, text: &str, around: &CommandContext) -> bool {
        if parse(text).is_err() {
            return false;
        }
        let word = [Word::literal(text)];
        let verdict = self.aside(|decider| decider.joined("sh", &word, around));
        matches!(verdict, Verdict::Block { .. })
    }

    /// Returns the verdict of `judge` alone. Visitors and the word list do not see its parts.
    pub(super) fn aside(&mut self, judge: impl FnOnce(&mut Self)) -> Verdict {
        let before = std::mem::replace(&mut self.verdict, Verdict::Allow);
        let (visit, named) = (self.visit.take(), self.named.take());
        let reads = self.reads.take();
        let (places, later) = (self.places.clone(), self.later);
        judge(self);
        (self.visit, self.named) = (visit, named);
        self.reads = reads;
        (self.places, self.later) = (places, later);
        std::mem::replace(&mut self.verdict, before)
    }
}
