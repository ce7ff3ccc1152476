//! The text above the live region: blocks of the conversation, in their order, each part once.
//!
//! A block is printed when its content is final. Text is printed line by line while it streams. A call is printed with
//! its result when it ends and every block before it is printed, so a result is always below its call.

use ratatui_core::text::Line;
use zeph_core::call_display::ResultKind;

use super::screen::DisplayMode;
use super::style::Style;
use crate::sanitize::{Sanitizer, clean};
use crate::view::render::{
    DIM, Detail, MarkdownStream, block_lines, call_result, call_title, to_ansi,
};
use crate::view::{Block, Call, Severity, Transcript};

/// Lines of a prompt that are printed. A longer one was pasted.
const MAX_PROMPT_LINES: usize = 20;

/// The form of the printed text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) style: Style,
    pub(super) mode: DisplayMode,
    /// Columns of a line.
    pub(super) width: usize,
}

impl Target {
    /// Whether Markdown is rendered.
    pub(super) fn is_rendered(self) -> bool {
        self.style.colour || self.style.animate
    }

    /// The amount of a result that is printed. One turn has no key for the rest.
    fn detail(self) -> Detail {
        match self.mode {
            DisplayMode::All => Detail::Excerpt,
            DisplayMode::Aside | DisplayMode::Quiet => Detail::Brief,
        }
    }

    /// Lines as text with line breaks.
    pub(super) fn text(self, lines: &[Line<'static>]) -> String {
        let lines = lines
            .iter()
            .map(|line| to_ansi(line, self.style.colour) + "\n");
        lines.collect()
    }
}

/// The kind of the last printed block. An empty line separates kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Text,
    Reasoning,
    Calls,
}

/// The printed part of the conversation.
#[derive(Debug, Default)]
pub(super) struct Commit {
    /// The first block that is not printed in full.
    next: usize,
    /// The title of that block is printed.
    has_title: bool,
    markdown: MarkdownStream,
    sanitizer: Sanitizer,
    section: Option<Section>,
    /// The printed text does not end with a line break.
    is_midline: bool,
}

impl Commit {
    /// The text to print next, which is taken out of the transcript. After a turn `is_over`, every block is final.
    pub(super) fn advance(
        &mut self,
        transcript: &mut Transcript,
        target: Target,
        is_over: bool,
    ) -> String {
        let mut out = String::new();
        while self.print(transcript, target, is_over, &mut out) {
            self.next += 1;
            self.has_title = false;
        }
        if is_over {
            self.end_line(&mut out);
        }
        out
    }

    /// The blocks that are not printed in full.
    pub(super) fn uncommitted<'t>(&self, transcript: &'t Transcript) -> &'t [Block] {
        transcript.blocks().get(self.next..).unwrap_or_default()
    }

    /// Whether the title of the first such block is printed.
    pub(super) fn has_title(&self) -> bool {
        self.has_title
    }

    /// The lines of the open text that may still change.
    pub(super) fn open_lines(&self, width: usize) -> Vec<Line<'static>> {
        self.markdown.open(width)
    }

    /// Prints the titles of all calls that run: a command gets the screen.
    pub(super) fn print_titles(&mut self, transcript: &mut Transcript, target: Target) -> String {
        let mut out = self.advance(transcript, target, false);
        for (at, block) in self.uncommitted(transcript).iter().enumerate() {
            match block {
                Block::Call(call) if at == 0 => self.print_title(call, target, &mut out),
                // The title of a later call is printed again, above its result.
                Block::Call(call) => {
                    self.begin_section(Section::Calls, &mut out);
                    out.push_str(&target.text(&[call_title(call, target.width)]));
                }
                _ => {}
            }
        }
        out
    }

    /// Ends the printed line, and separates the next block from a question.
    pub(super) fn after_question(&mut self) {
        self.section = Some(Section::Calls);
        self.is_midline = false;
    }

    /// Starts a new turn: the next block needs no empty line before it.
    pub(super) fn begin(&mut self) {
        self.section = None;
    }

    /// Prints the final part of the next block. Returns whether the whole block is printed.
    fn print(
        &mut self,
        transcript: &mut Transcript,
        target: Target,
        is_over: bool,
        out: &mut String,
    ) -> bool {
        let is_growing = !is_over && transcript.is_growing(self.next);
        let is_quiet = target.mode == DisplayMode::Quiet;
        let Some(block) = transcript.blocks().get(self.next) else {
            return false;
        };
        match block {
            Block::Text(_) => {
                if target.mode == DisplayMode::Aside && !self.is_aside(transcript) {
                    // It may be the response, which is printed elsewhere.
                    return is_over;
                }
                let more = transcript.take_text(self.next);
                if !is_quiet {
                    self.print_text(&more, is_growing, target, out);
                }
                !is_growing
            }
            Block::Reasoning(_) => {
                let is_shown =
                    !is_quiet && (target.mode == DisplayMode::All || target.style.terminal);
                if is_shown && !is_growing {
                    self.begin_section(Section::Reasoning, out);
                    let lines = block_lines(block, target.width, Detail::Excerpt);
                    out.push_str(&target.text(&lines));
                }
                !is_growing
            }
            Block::Call(call) if is_quiet => is_over || !call.is_running(),
            Block::Call(call) => self.print_call(call, target, is_over, out),
            Block::Prompt(_) => {
                if !is_quiet {
                    self.begin_section(Section::Text, out);
                    let lines = block_lines(block, target.width, Detail::Full);
                    out.push_str(&target.text(&beginning(lines)));
                    // The text of the model is apart from the prompt.
                    self.section = Some(Section::Calls);
                }
                true
            }
            Block::Message(severity, _) => {
                let is_shown = !is_quiet || matches!(severity, Severity::Warning | Severity::Error);
                if is_shown {
                    self.end_line(out);
                    let lines = block_lines(block, target.width, Detail::Full);
                    out.push_str(&target.text(&lines));
                }
                true
            }
            Block::Reply(text) => {
                self.end_line(out);
                out.push_str(&wrapped(clean(text).trim_end_matches('\n'), target));
                true
            }
        }
    }

    /// Whether the text at `next` is not the response, because the turn has continued after it.
    fn is_aside(&self, transcript: &Transcript) -> bool {
        let later = transcript.blocks().get(self.next + 1..).unwrap_or_default();
        let continues = |block: &Block| !matches!(block, Block::Message(..) | Block::Reply(_));
        later.iter().any(continues) || transcript.activity().is_some()
    }

    fn print_text(&mut self, more: &str, is_growing: bool, target: Target, out: &mut String) {
        if !target.is_rendered() {
            if !more.is_empty() {
                self.begin_section(Section::Text, out);
            }
            let start = out.len();
            match target.style.terminal {
                true => self.sanitizer.push(more, out),
                false => out.push_str(more),
            }
            if out.len() > start {
                self.is_midline = !out.ends_with('\n');
            }
            if !is_growing {
                self.sanitizer = Sanitizer::default();
                self.end_line(out);
            }
            return;
        }
        self.markdown.push(more);
        let mut lines = self.markdown.take_stable(target.width);
        if !is_growing {
            lines.extend(self.markdown.finish(target.width));
        }
        if !lines.is_empty() {
            self.begin_section(Section::Text, out);
            out.push_str(&target.text(&lines));
        }
    }

    /// Prints a call that has ended. Where nothing is painted in place, its title is printed at its start.
    fn print_call(&mut self, call: &Call, target: Target, is_over: bool, out: &mut String) -> bool {
        if call.is_running() && !is_over {
            if !target.style.animate {
                self.print_title(call, target, out);
            }
            return false;
        }
        let is_success = call.result.as_ref().is_some_and(|it| it.failure.is_none());
        let is_task = call.result_kind() == ResultKind::TaskList && is_success;
        if is_task && target.style.animate {
            return true;
        }
        self.print_title(call, target, out);
        if call.result.is_some() && !is_task {
            self.end_line(out);
            let lines = call_result(call, target.width, target.detail());
            out.push_str(&target.text(&lines));
        }
        true
    }

    fn print_title(&mut self, call: &Call, target: Target, out: &mut String) {
        if !self.has_title {
            self.begin_section(Section::Calls, out);
            out.push_str(&target.text(&[call_title(call, target.width)]));
            self.has_title = true;
        }
    }

    /// Separates different kinds of blocks by an empty line.
    fn begin_section(&mut self, section: Section, out: &mut String) {
        if self.section == Some(section) {
            return;
        }
        self.end_line(out);
        if self.section.is_some() {
            out.push('\n');
        }
        self.section = Some(section);
    }

    fn end_line(&mut self, out: &mut String) {
        if self.is_midline {
            out.push('\n');
            self.is_midline = false;
        }
    }
}

/// The first lines of a prompt, and the number of the others.
fn beginning(mut lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    let hidden = lines.len().saturating_sub(MAX_PROMPT_LINES);
    // A single hidden line takes as much room as the remark about it.
    if hidden > 1 {
        lines.truncate(MAX_PROMPT_LINES);
        lines.push(Line::styled(format!("  … {hidden} more lines"), DIM));
    }
    lines
}

/// Safe text, wrapped to the terminal.
fn wrapped(text: &str, target: Target) -> String {
    if !target.style.terminal {
        return format!("{text}\n");
    }
    let block = Block::Reply(text.to_owned());
    target.text(&block_lines(&block, target.width, Detail::Full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_long_prompt_is_printed() {
        let check = |count: usize, last: &str| {
            let lines = (1..=count).map(|at| Line::from(at.to_string()));
            let shown = beginning(lines.collect());
            assert_eq!(shown.last().map(ToString::to_string).as_deref(), Some(last));
        };
        check(1, "1");
        check(21, "21");
        check(22, "  … 2 more lines");
        check(24_391, "  … 24371 more lines");
    }
}
