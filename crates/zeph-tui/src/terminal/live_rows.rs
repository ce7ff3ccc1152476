//! The rows of the live region: open text, running calls, the task list, the activity, the typed input and the status.

use std::time::{Duration, Instant};

use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line, Span};
use zeph_tools::plural::pluralize;

use super::commit::Commit;
use super::live_region::{LiveRows, Size};
use super::typed_input::TypedInput;
use crate::sanitize::first_line;
use crate::view::render::{
    DIM, Detail, activity_line, block_lines, call_result, call_title, status_line, task_lines,
};
use crate::view::{Activity, Block, Call, Transcript};

/// Shorter operations show no activity.
const DELAY: Duration = Duration::from_millis(300);
/// Submitted inputs that are shown.
const MAX_QUEUED: usize = 3;
/// The sign before the typed input. It differs from the sign of the prompt.
const INPUT_SIGN: &str = "» ";
/// The state that the live region shows.
pub(super) struct LiveView<'v> {
    pub(super) transcript: &'v Transcript,
    pub(super) commit: &'v Commit,
    /// The typed input; `None` if no keys are read.
    pub(super) typed: Option<&'v TypedInput>,
    /// The time of the last event, during a turn.
    pub(super) last_event: Option<Instant>,
    /// The turn is being cancelled.
    pub(super) is_cancelling: bool,
    pub(super) size: Size,
    pub(super) now: Instant,
}

impl LiveView<'_> {
    /// The rows in their order. The last ones are the most important: a low terminal shows only these.
    pub(super) fn rows(&self) -> LiveRows {
        let mut rows = self.blocks();
        // The list may take half of the screen.
        let mut tasks = task_lines(self.transcript.tasks(), self.columns());
        tasks.truncate(self.size.rows / 2);
        if !self.is_all_done() {
            rows.extend(tasks);
        }
        rows.extend(self.activity());
        let mut cursor = None;
        if let Some(typed) = self.typed {
            let queued = typed.queued();
            let hidden = queued.len().saturating_sub(MAX_QUEUED);
            for text in queued.skip(hidden) {
                let text = first_line(text, self.columns());
                rows.push(Line::styled(format!("{INPUT_SIGN}{text} (queued)"), DIM));
            }
            rows.push(status_line(
                self.transcript.status(),
                self.running(),
                self.columns(),
            ));
            if !typed.line.is_empty() {
                let (text, column) = typed.line.drawn(self.columns());
                cursor = Some((rows.len(), column + INPUT_SIGN.chars().count()));
                rows.push(Line::from(vec![
                    Span::styled(INPUT_SIGN, Style::new().fg(Color::Cyan)),
                    Span::raw(text),
                ]));
            }
        }
        LiveRows { rows, cursor }
    }

    fn columns(&self) -> usize {
        self.size.columns
    }

    /// The number of calls that run.
    fn running(&self) -> usize {
        self.calls().filter(|call| call.is_running()).count()
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        let blocks = self.commit.uncommitted(self.transcript).iter();
        blocks.filter_map(|block| match block {
            Block::Call(call) => Some(&**call),
            _ => None,
        })
    }

    fn is_all_done(&self) -> bool {
        let mut tasks = self.transcript.tasks().iter();
        tasks.all(|task| task.status == zeph_memory::TaskStatus::Completed)
    }

    /// The blocks that are not printed yet.
    fn blocks(&self) -> Vec<Line<'static>> {
        let mut rows = self.commit.open_lines(self.columns());
        let mut has_title = self.commit.has_title();
        for block in self.commit.uncommitted(self.transcript) {
            match block {
                Block::Call(call) => {
                    if !std::mem::take(&mut has_title) {
                        rows.push(self.title(call));
                    }
                    if call.is_running() {
                        rows.extend(call_result(call, self.columns(), Detail::Excerpt));
                    }
                }
                Block::Message(..) | Block::Reply(_) | Block::Prompt(_) => {
                    rows.extend(block_lines(block, self.columns(), Detail::Excerpt));
                }
                // The open text is above. Reasoning is an activity.
                Block::Text(_) | Block::Reasoning(_) => {}
            }
        }
        rows
    }

    /// The title of a call. A call that runs has a spinner and its elapsed time.
    fn title(&self, call: &Call) -> Line<'static> {
        let elapsed = self.now.saturating_duration_since(call.started);
        if !call.is_running() || elapsed < DELAY {
            return call_title(call, self.columns());
        }
        let time = format!(" {:.1} s", elapsed.as_secs_f64());
        let mut title = call_title(call, self.columns().saturating_sub(time.len()));
        if let (Some(mark), Some(frame)) = (title.spans.first_mut(), self.frame(call.started)) {
            *mark = frame;
        }
        title.push_span(Span::styled(time, DIM));
        title
    }

    /// The current frame of a spinner.
    fn frame(&self, since: Instant) -> Option<Span<'static>> {
        let activity = Activity {
            label: String::new(),
            since,
            until: None,
        };
        activity_line(&activity, self.now, 80)
            .spans
            .into_iter()
            .next()
    }

    /// The current wait. Without a known one, a turn that shows nothing new is at work.
    fn activity(&self) -> Option<Line<'static>> {
        let quiet = |label: String, since| Activity {
            label,
            since,
            until: None,
        };
        let mut activity = match self.commit.uncommitted(self.transcript).last() {
            Some(Block::Reasoning(text)) => {
                let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
                let since = self.transcript.activity().map(|it| it.since);
                quiet(
                    format!("thinking ({})", pluralize(lines, "line")),
                    since.or(self.last_event)?,
                )
            }
            _ => match (self.transcript.activity(), self.last_event) {
                (Some(activity), _) => activity.clone(),
                (None, Some(last)) if self.running() == 0 => quiet("working".to_owned(), last),
                _ => return None,
            },
        };
        if self.is_cancelling {
            activity.label = "cancelling; Ctrl-C again leaves".to_owned();
        }
        let is_long = self.now.saturating_duration_since(activity.since) >= DELAY;
        let is_shown = is_long || activity.until.is_some() || self.is_cancelling;
        is_shown.then(|| activity_line(&activity, self.now, self.columns()))
    }
}
