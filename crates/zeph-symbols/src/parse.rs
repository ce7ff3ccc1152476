//! Parsing with a limit of time.

use std::ops::ControlFlow;

use tree_sitter::{Language, ParseOptions, ParseState, Parser, Tree};

/// Parses `text`; `None` if `is_late` says so before the end.
pub(crate) fn parse(language: &Language, text: &[u8], is_late: impl Fn() -> bool) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(language).ok()?;
    let mut progress = |_: &ParseState| match is_late() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut rest = |at: usize, _| text.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options))
}
