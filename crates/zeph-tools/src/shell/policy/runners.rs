//! Commands that run others in ways of their own: `exec`, `env`, `xargs`, `parallel`, `find`, and those whose
//! options are not all known.

use super::decide::{Around, Decider, Input};
use super::word::Word;
use super::wrappers::{Wrapper, plain};

/// Whether an option of `env` is `--split-string`, which may be cut short.
fn is_split_string(name: &str) -> bool {
    name.len() > 2 && "--split-string".starts_with(name)
}

/// Whether a command stands behind this word of `find` or `fd`, or in it.
pub(super) fn executes(name: &str, word: &Word) -> bool {
    let text = word.prefix();
    match name {
        "find" => matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir"),
        _ if text.starts_with("--") => text.starts_with("--exec"),
        _ => text.starts_with('-') && text.contains(['x', 'X']),
    }
}

/// What of the command stands in such a word itself.
fn attached(name: &str, word: &Word) -> Option<Word> {
    let text = word.prefix();
    let from = match text.strip_prefix("--") {
        _ if name == "find" => return None,
        Some(_) => text.find('=')? + 1,
        None => text.find(['x', 'X'])? + 1,
    };
    (from < text.len()).then(|| word.after(from))
}

impl Decider<'_> {
    pub(super) fn exec(&mut self, words: &[Word], around: &Around) {
        let wrapper = plain("exec", "cl", "a");
        let at = self.skip_options(&wrapper, &words[1..], around) + 1;
        let Some(command) = words.get(at) else { return };
        if !command.known().is_some_and(|path| path.contains('/')) {
            self.block("`exec` of anything but a literal file");
        }
        self.simple(&words[at..], around);
    }

    pub(super) fn env(&mut self, arguments: &[Word], around: &Around) {
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
                    self.ask("what `env -S` makes of its text cannot be known");
                    self.joined("env -S", &words, around);
                    return;
                }
            }
            // One at a time; none is left where the value of the last option is missing.
            let next = arguments.get(at..=at).unwrap_or_default();
            at += self.skip_options(&wrapper, next, around);
            if at > before {
                // The value of the option, if it has one.
                let option = arguments[before].prefix();
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
                continue;
            }
            break;
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
    }

    pub(super) fn xargs(&mut self, arguments: &[Word], around: &Around) {
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
        let at = self.skip_options(&wrapper, arguments, around);
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
            inner.push(Word::unknown(""));
        }
        // Standard input is what the arguments are made of.
        let inside = Around {
            input: Input::Closed,
            ..around.clone()
        };
        self.simple(&inner, &inside);
    }

    pub(super) fn parallel(&mut self, arguments: &[Word], around: &Around) {
        let end = arguments
            .iter()
            .position(|word| word.prefix().starts_with(":::"))
            .unwrap_or(arguments.len());
        let start = arguments[..end]
            .iter()
            .position(|word| !word.prefix().starts_with('-'))
            .unwrap_or(end);
        if start > 0 || start == end {
            self.ask("what `parallel` runs cannot be known");
        }
        // Its words are a text for a shell, its arguments come from elsewhere.
        self.joined("parallel", &arguments[start..end], around);
        self.loose("parallel", arguments, around);
        let mut inner = arguments[start..end].to_vec();
        inner.push(Word::unknown(""));
        self.simple(&inner, around);
    }

    pub(super) fn find(&mut self, name: &str, arguments: &[Word], around: &Around) {
        const TESTS: &[&str] = &[
            "-depth",
            "-maxdepth",
            "-xdev",
            "-mount",
            "-follow",
            "-delete",
            "-print",
            "-L",
            "-H",
            "-P",
            "-noleaf",
            "-ignore_readdir_race",
            "-type",
        ];
        let paths: Vec<&Word> = arguments
            .iter()
            .skip_while(|word| matches!(word.known(), Some("-L" | "-H" | "-P")))
            .take_while(|word| !word.prefix().starts_with(['-', '(', '!']))
            .collect();
        let mut all = true;
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            at += 1;
            let remove = |found: &Word, all: bool| {
                // What a test has chosen is not the directory itself.
                let place = if all {
                    found.clone()
                } else {
                    Word::literal("./found")
                };
                vec![Word::literal("rm"), Word::literal("-r"), place]
            };
            match word.known() {
                _ if executes(name, word) => {
                    let length = arguments[at..]
                        .iter()
                        .position(|word| word.known() == Some(";"))
                        .unwrap_or(arguments.len() - at);
                    // `--exec=rm`, `-xrm`: the command begins in the word itself.
                    let attached = attached(name, word);
                    let first = attached.iter().chain(&arguments[at..at + length]);
                    let inner: Vec<Word> = first.cloned().collect();
                    let command = inner.first().and_then(Word::known);
                    let runs_found = command.is_some_and(|text| text.contains("{}"));
                    at += length;
                    let places: Vec<Word> = if all {
                        paths.iter().map(|w| (*w).clone()).collect()
                    } else {
                        vec![Word::literal("./found")]
                    };
                    for place in places {
                        let inner: Vec<Word> = inner
                            .iter()
                            .map(|word| match word.known() {
                                Some("{}") => place.clone(),
                                // In the text for a shell or in a command word.
                                _ => word.with_unknown("{}"),
                            })
                            .collect();
                        if runs_found {
                            self.ask("a file that was found is run as a command");
                        } else {
                            self.simple(&inner, around);
                        }
                    }
                    if paths.is_empty() && all {
                        self.simple(&inner, around);
                    }
                }
                Some("-delete") => {
                    for path in &paths {
                        self.simple(&remove(path, all), around);
                    }
                }
                Some("-fprint" | "-fprintf" | "-fls" | "-fprint0") => {
                    if let Some(file) = arguments.get(at) {
                        self.output(file);
                    }
                }
                Some(text) if text.starts_with('-') && !TESTS.contains(&text) => all = false,
                Some(_) => {}
                // A test that is not known yet chooses something, or does not.
                None => {}
            }
        }
    }

    /// Any later word that would be blocked as a command asks; the first that is no option is
    /// judged as one.
    pub(super) fn loose(&mut self, name: &str, arguments: &[Word], around: &Around) {
        let blocked = arguments.iter().enumerate().find(|(at, word)| {
            word.known().is_some() && self.policy.entry(&arguments[*at..]).is_some()
        });
        if let Some((_, word)) = blocked {
            self.ask(format!(
                "whether `{name}` runs `{}` cannot be known",
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
        let data = arguments.iter().any(|word| {
            word.known()
                .is_some_and(|text| text.contains("sh -c") || text == "-c")
        });
        if data {
            self.ask(format!("what the text for `{name}` runs cannot be known"));
        }
    }
}
