//! The displayed parts of a turn, and the layout of the next part below them.

mod exclusive;

use std::collections::HashMap;
use std::io::Write;

use serde_json::Value;
use zeph_core::LoopbackEvent;
use zeph_llm::Retry;

use super::markdown::Markdown;
use super::reasoning::Reasoning;
use super::spinner::{ERASE, Spinner};
use super::style::{DIM, RED, Style, YELLOW};
use super::tool_lines;
use crate::output::sanitize::{Sanitizer, clean};

/// Lines of a command's output that are shown while it runs.
const LIVE_LINES: usize = 20;
/// The maximum number of bytes of a buffered output line.
const LIVE_BYTES: usize = 16 * 1024;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisplayMode {
    /// Everything, the model's text as it streams.
    All,
    /// The model's text after it is clear that it is not the response.
    Aside,
    /// Errors and questions.
    Quiet,
}

/// The last thing shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Nothing,
    Text,
    Reasoning,
    Calls,
}

/// A running call.
#[derive(Debug)]
struct Running {
    tool: String,
    /// The line of output that has not ended.
    partial: String,
    lines: usize,
    /// The user saw its output directly.
    had_terminal: bool,
}

/// An output stream that the user reads.
pub(super) struct Screen {
    out: Box<dyn Write + Send>,
    broken: bool,
    style: Style,
    amount: DisplayMode,
    section: Section,
    /// The cursor is after text, not at the start of a line.
    midline: bool,
    markdown: Markdown,
    sanitizer: Sanitizer,
    /// The model's text while it may be the response.
    aside: String,
    running: HashMap<String, Running>,
    /// Whether a question or a command has the screen. Nothing else moves then.
    is_exclusive: bool,
    reasoning: Reasoning,
    pub(super) spinner: Spinner,
}

impl Screen {
    pub(super) fn new(out: Box<dyn Write + Send>, style: Style, amount: DisplayMode) -> Self {
        Self {
            out,
            broken: false,
            style,
            amount,
            section: Section::Nothing,
            midline: false,
            markdown: Markdown::default(),
            sanitizer: Sanitizer::default(),
            aside: String::new(),
            running: HashMap::new(),
            is_exclusive: false,
            reasoning: Reasoning::default(),
            spinner: Spinner::default(),
        }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Shows an event, and returns the number of the wait that it starts.
    pub(super) fn event(&mut self, event: LoopbackEvent) -> Option<u64> {
        match event {
            LoopbackEvent::Requesting { .. } => {
                self.end_text();
                Some(self.spinner.start("waiting for the model".to_owned()))
            }
            LoopbackEvent::SummingUp => {
                self.end_text();
                Some(self.spinner.start("summing up older messages".to_owned()))
            }
            LoopbackEvent::Text(text) => {
                self.text(&text);
                None
            }
            LoopbackEvent::Reasoning(text) => {
                self.reasoning(&text);
                None
            }
            LoopbackEvent::ToolStarted { id, tool, params } => {
                Some(self.started(id, tool, &params))
            }
            LoopbackEvent::ToolOutput {
                id,
                text,
                skipped_lines,
                ..
            } => {
                self.output(&id, &text, skipped_lines);
                None
            }
            LoopbackEvent::ToolFinished {
                id,
                failure,
                display,
                duration_ms,
                filter,
                ..
            } => {
                self.finished(&id, failure.is_some(), &display, duration_ms);
                if let Some(told) = filter.and_then(|filter| filter.notice()) {
                    self.notice(&told);
                }
                None
            }
            LoopbackEvent::Notice(text) => {
                self.notice(&text);
                None
            }
            LoopbackEvent::Retrying(retry) => self.retrying(&retry),
            LoopbackEvent::Warning(text) => {
                self.warning(&text);
                None
            }
            LoopbackEvent::Error(text) => {
                self.error(&text);
                None
            }
            LoopbackEvent::Rollback { changes, .. } => {
                self.notice(&format!("The command was rolled back: {changes}."));
                None
            }
            // The question, the end of the turn and the prompt line show these, or the terminal does not show them.
            LoopbackEvent::Permission { .. }
            | LoopbackEvent::Terminal { .. }
            | LoopbackEvent::Usage(_)
            | LoopbackEvent::Context { .. }
            | LoopbackEvent::Prompt(_)
            | LoopbackEvent::Title(_)
            | LoopbackEvent::Tasks(_)
            | LoopbackEvent::Mode(_) => None,
        }
    }

    /// Shows a failed request. On an animated terminal, one line reports all attempts, unless text precedes it.
    fn retrying(&mut self, retry: &Retry) -> Option<u64> {
        if self.style.animate && !self.midline && self.amount != DisplayMode::Quiet {
            let label = format!("attempt {}: {}", retry.attempt, clean(&retry.reason));
            let wait = self.spinner.count_down(label, retry.wait);
            self.spin(wait);
            return Some(wait);
        }
        self.notice(&retry.to_string());
        None
    }

    fn text(&mut self, text: &str) {
        match self.amount {
            DisplayMode::All => {
                self.spinner.stop();
                self.end_reasoning();
                self.begin(Section::Text);
                self.render(text);
            }
            DisplayMode::Aside => self.aside.push_str(text),
            DisplayMode::Quiet => {}
        }
    }

    fn render(&mut self, text: &str) {
        let mut out = String::new();
        if self.style.colour {
            self.markdown.push(text, &mut out);
        } else if self.style.terminal {
            self.sanitizer.push(text, &mut out);
        } else {
            out.push_str(text);
        }
        self.write(&out);
    }

    /// Collects reasoning. The spinner shows that it grows, and one line replaces it when it ends.
    fn reasoning(&mut self, text: &str) {
        let is_shown = match self.amount {
            DisplayMode::All => true,
            DisplayMode::Aside => self.style.terminal,
            DisplayMode::Quiet => false,
        };
        if is_shown {
            self.reasoning.push(text);
            self.spinner.relabel(self.reasoning.label());
        }
    }

    /// Shows the line of the reasoning that has ended.
    fn end_reasoning(&mut self) {
        if let Some(line) = self.reasoning.take() {
            self.begin(Section::Reasoning);
            let line = self.style.paint(DIM, &line);
            self.write(&line);
            self.write("\n");
        }
    }

    fn started(&mut self, id: String, tool: String, params: &Value) -> u64 {
        self.end_text();
        if self.amount != DisplayMode::Quiet {
            self.begin(Section::Calls);
            let line = tool_lines::started(&tool, params, self.style);
            self.write(&line);
        }
        let wait = self.spinner.start(clean(&tool));
        self.running.insert(
            id,
            Running {
                tool,
                partial: String::new(),
                lines: 0,
                had_terminal: false,
            },
        );
        wait
    }

    fn output(&mut self, id: &str, text: &str, skipped_lines: u64) {
        let Some(running) = self.running.get_mut(id) else {
            return;
        };
        running.lines += usize::try_from(skipped_lines).unwrap_or(usize::MAX);
        let mut shown = String::new();
        for piece in text.split_inclusive('\n') {
            let room = LIVE_BYTES.saturating_sub(running.partial.len());
            let cut = piece.len() > room;
            let end = (0..=piece.len().min(room))
                .rev()
                .find(|end| piece.is_char_boundary(*end));
            running.partial.push_str(&piece[..end.unwrap_or(0)]);
            if !piece.ends_with('\n') {
                continue;
            }
            let line = std::mem::take(&mut running.partial);
            running.lines += 1;
            if running.lines <= LIVE_LINES {
                let line = if cut {
                    line.as_str()
                } else {
                    line.trim_end_matches('\n')
                };
                shown.push_str(&tool_lines::output_line(line, self.style));
            }
        }
        if self.amount != DisplayMode::Quiet && !shown.is_empty() {
            self.begin(Section::Calls);
            self.write(&shown);
        }
    }

    fn finished(&mut self, id: &str, failed: bool, display: &str, duration_ms: u64) {
        let (mut lines, mut had_terminal) = (0, false);
        if let Some(mut running) = self.running.remove(id) {
            if !running.partial.is_empty() {
                running.lines += 1;
                if self.amount != DisplayMode::Quiet && running.lines <= LIVE_LINES {
                    let line = tool_lines::output_line(&running.partial, self.style);
                    self.begin(Section::Calls);
                    self.write(&line);
                }
            }
            (lines, had_terminal) = (running.lines, running.had_terminal);
        }
        match self.running.values().next() {
            Some(other) => {
                let label = clean(&other.tool);
                self.spinner.relabel(label);
            }
            None => self.spinner.stop(),
        }
        if self.amount == DisplayMode::Quiet {
            return;
        }
        if had_terminal {
            let shown = tool_lines::finished_at_terminal(failed, display, self.style);
            self.end_line();
            return self.write(&shown);
        }
        self.begin(Section::Calls);
        let mut shown = String::new();
        if lines > LIVE_LINES {
            shown.push_str(&tool_lines::more_lines(lines - LIVE_LINES, self.style));
        }
        shown.push_str(&tool_lines::finished(
            failed,
            display,
            lines,
            duration_ms,
            self.style,
        ));
        self.write(&shown);
    }

    /// Shows a notice to the user.
    pub(super) fn notice(&mut self, text: &str) {
        if let Some(shown) = self.noticed(text) {
            self.line(&shown);
        }
    }

    /// The notice as displayed; `None` if notices are not shown.
    pub(super) fn noticed(&self, text: &str) -> Option<String> {
        (self.amount != DisplayMode::Quiet).then(|| self.style.paint(YELLOW, &clean(text)))
    }

    /// Shows a remark of little weight.
    pub(super) fn remark(&mut self, text: &str) {
        if self.amount != DisplayMode::Quiet {
            self.line(&self.style.paint(DIM, &clean(text)));
        }
    }

    /// Shows a warning, even in quiet mode.
    fn warning(&mut self, text: &str) {
        let text = format!("{} {}", self.style.paint(YELLOW, "warning:"), clean(text));
        self.line(&text);
    }

    /// Shows a failure, however quiet it is to be.
    pub(super) fn error(&mut self, text: &str) {
        let text = format!("{} {}", self.style.paint(RED, "error:"), clean(text));
        self.line(&text);
    }

    /// Shows the result of a command of the user.
    pub(super) fn say(&mut self, text: &str) {
        self.line(&clean(text));
    }

    fn line(&mut self, text: &str) {
        // Streamed text continues below the line.
        self.end_line();
        self.write(text.trim_end_matches('\n'));
        self.write("\n");
    }

    /// Ends the line of a prompt that the terminal shows.
    pub(super) fn end_prompt(&mut self) {
        self.raw("\n");
    }

    /// Writes a sequence that a reader does not see.
    pub(super) fn steer(&mut self, sequence: &str) {
        self.raw(sequence);
    }

    /// The turn is over: nothing is waited for, and the cursor is at a line's beginning.
    pub(super) fn end_turn(&mut self) {
        self.spinner.stop();
        self.aside.clear();
        self.end_text();
        self.running.clear();
        self.section = Section::Nothing;
    }

    /// Draws the spinner; `false` if the wait has ended.
    pub(super) fn spin(&mut self, wait: u64) -> bool {
        if self.broken || !self.spinner.is_current(wait) {
            // No later output may come to erase a drawn line.
            self.write("");
            return false;
        }
        let may_draw = self.style.animate && !self.is_exclusive && !self.midline;
        if may_draw
            && self.amount != DisplayMode::Quiet
            && let Some(line) = self.spinner.draw(columns())
        {
            let line = format!("{ERASE}{}", self.style.paint(DIM, &line));
            self.raw(&line);
        }
        true
    }

    /// Ends the model's text, and shows its buffered part.
    fn end_text(&mut self) {
        self.end_reasoning();
        let aside = std::mem::take(&mut self.aside);
        if !aside.trim().is_empty() {
            self.begin(Section::Text);
            self.render(&aside);
        }
        self.end_line();
        self.sanitizer = Sanitizer::default();
    }

    fn end_line(&mut self) {
        let mut rest = String::new();
        self.markdown.finish(&mut rest);
        self.write(&rest);
        if self.midline {
            self.write("\n");
        }
    }

    /// Writes an empty line between different sections.
    fn begin(&mut self, section: Section) {
        if self.section == section {
            return;
        }
        let first = self.section == Section::Nothing;
        self.end_line();
        if !first {
            self.write("\n");
        }
        self.section = section;
    }

    /// Writes below the current output, after erasing the spinner.
    fn write(&mut self, text: &str) {
        if self.spinner.take_drawn() {
            self.raw(ERASE);
        }
        if !text.is_empty() {
            self.raw(text);
            self.midline = !text.ends_with('\n');
        }
    }

    /// Writes to the stream. A failure only stops the output.
    fn raw(&mut self, text: &str) {
        if !self.broken {
            let written = self
                .out
                .write_all(text.as_bytes())
                .and_then(|()| self.out.flush());
            self.broken = written.is_err();
        }
    }
}

/// The terminal's width.
pub(super) fn columns() -> usize {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .map_or(80, |size| usize::from(size.ws_col))
        .max(20)
}
