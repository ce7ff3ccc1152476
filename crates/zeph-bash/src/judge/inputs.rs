//! Redirections: files that are written or read, and the standard input of a command.

use super::destructive_targets::is_block_device;
use super::evaluate::{CommandContext, Decider, Input};
use super::visit::Part;
use super::word_list::Role;
use crate::syntax::ast::{Construct, Redirect};
use crate::syntax::word::Word;

impl Decider<'_> {
    /// Judges a redirection, and updates the input in `around`.
    pub(super) fn redirect(&mut self, redirect: &Redirect, around: &mut CommandContext) {
        if redirect.is_input() {
            around.writer = None;
        }
        match redirect {
            Redirect::Output { target, .. } => {
                self.redirections += 1;
                self.each_reading(std::slice::from_ref(target), false, |decider, reading| {
                    reading.words.iter().for_each(|word| decider.written(word));
                });
            }
            Redirect::Input(word) => {
                let inherited = around.input.clone();
                let downloads = around.downloads;
                let mut input = None;
                self.each_reading(std::slice::from_ref(word), false, |decider, reading| {
                    for word in &reading.words {
                        let read = decider.source(word, &inherited, downloads);
                        input = Some(match input.take() {
                            Some(before) if before != read => Input::Data { download: false },
                            _ => read,
                        });
                    }
                });
                around.input = input.unwrap_or(Input::Data { download: false });
            }
            Redirect::Elsewhere(inner) => {
                let mut elsewhere = around.clone();
                self.redirect(inner, &mut elsewhere);
                if let Input::Text(text) = elsewhere.input {
                    around.descriptors.push(text);
                }
            }
            Redirect::Duplicate => {}
            Redirect::HereDocument(word) => {
                self.name_alternatives(word);
                around.input = self.text_input(word, around.downloads);
            }
            Redirect::HereString(word) => {
                if !self.policy.admits(Construct::HereString) {
                    self.block_construct(Construct::HereString);
                }
                self.name_alternatives(word);
                around.input = self.text_input(word, around.downloads);
            }
        }
    }

    /// The input from a here-document or here-string.
    fn text_input(&self, word: &Word, downloads: bool) -> Input {
        let readings = self.readings(std::slice::from_ref(word), false);
        let word = match readings.as_slice() {
            [one] => one.words.first().unwrap_or(word),
            _ => word,
        };
        match word.known() {
            None if downloads => Input::Data { download: true },
            _ => Input::Text(word.script()),
        }
    }

    /// Records a file that a redirection opens for writing.
    fn written(&mut self, word: &Word) {
        self.name(Role::Target, std::slice::from_ref(word));
        if let Some(visit) = &mut self.visit {
            let places = match self.later {
                0 => self.places.now(),
                _ => &[None],
            };
            visit(Part::Redirection {
                target: word,
                places,
            });
        }
        self.output(word);
    }

    /// Records a file that a redirection opens for reading, and returns the input from it.
    fn source(&mut self, word: &Word, inherited: &Input, downloads: bool) -> Input {
        self.name(Role::Argument, std::slice::from_ref(word));
        if let Some(visit) = &mut self.visit {
            visit(Part::Source(word));
        }
        let device = word
            .pattern()
            .is_some_and(|path| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/"));
        self.network_device(word);
        match word.known() {
            Some("/dev/null") => Input::Closed,
            Some(path) if self.places.is_input(path) => inherited.clone(),
            _ => Input::Data {
                download: device || (word.substituted && downloads),
            },
        }
    }

    /// Records that a redirection may write from any directory.
    pub(super) fn written_anywhere(&mut self) {
        if let Some(visit) = &mut self.visit {
            visit(Part::Redirection {
                target: &Word::unknown(""),
                places: &[None],
            });
        }
    }

    /// Judges a file that is written.
    pub(super) fn output(&mut self, word: &Word) {
        if let Some(visit) = &mut self.visit {
            visit(Part::Output(word));
        }
        match word.known() {
            Some(path) if is_block_device(path) => {
                self.block(format!("writing to the device `{path}`"));
            }
            None if word.prefix().starts_with("/dev/") => {
                self.ask(format!(
                    "the device `{}` is unknown before it runs",
                    word.shown()
                ));
            }
            _ => {}
        }
        self.network_device(word);
    }

    fn network_device(&mut self, word: &Word) {
        let network = ["/dev/tcp/", "/dev/udp/"];
        if !self.policy.admits_network() && network.iter().any(|dev| word.prefix().starts_with(dev))
        {
            self.block(format!(
                "`{}`: `[tools.shell] allow_network` is false",
                word.shown()
            ));
        }
    }
}
