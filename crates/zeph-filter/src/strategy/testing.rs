//! Helpers for the tests of strategies.

use super::{Strategy, StrategyConstructor};
use crate::confidence::FilterConfidence;
use crate::line::{ExitInfo, Line, Sink};

/// The emitted texts.
#[derive(Debug, Default)]
pub(super) struct Texts(pub(super) Vec<String>);

impl Sink for Texts {
    fn keep(&mut self, line: Line<'_>) {
        self.0.push(line.text.to_owned());
    }

    fn say(&mut self, _number: u64, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// The output of `strategy` for `input`, joined to one text.
pub(super) fn run(
    mut strategy: Box<dyn Strategy>,
    input: &str,
    exit_code: Option<i32>,
) -> (String, FilterConfidence) {
    let mut out = Texts::default();
    let mut lines = 0;
    for (number, text) in (1..).zip(input.lines()) {
        strategy.line(Line { number, text }, &mut out);
        lines = number;
    }
    let confidence = strategy.finish(ExitInfo { exit_code, lines }, &mut out);
    (out.0.join("\n"), confidence)
}

/// The output for `text` of a strategy with the parameters `table`, with a final line break.
pub(super) fn collected(
    make: StrategyConstructor,
    table: &str,
    text: &str,
    exit_code: Option<i32>,
) -> (String, FilterConfidence) {
    let recipe = make(toml::from_str(table).unwrap()).unwrap();
    let (mut text, confidence) = run(recipe.start(), text, exit_code);
    if !text.is_empty() {
        text.push('\n');
    }
    (text, confidence)
}
