//! The task list as one block.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use zeph_memory::{Task, TaskStatus};

use super::styled_text::{BOLD, CYAN, DIM, GREEN, StyledText, safe};
use super::wrap::{Hanging, wrap};
use crate::sanitize::visible;

/// Tasks that are shown. Completed tasks at the start are hidden first.
const MAX_TASKS: usize = 20;

/// The title with the progress, and one task per line or more. Without tasks, nothing is shown.
pub(crate) fn task_lines(tasks: &[Task], width: usize) -> Vec<Line<'static>> {
    if tasks.is_empty() {
        return Vec::new();
    }
    let done = tasks
        .iter()
        .filter(|task| task.status == TaskStatus::Completed)
        .count();
    let mut lines = vec![Line::from(vec![
        Span::styled("Tasks", BOLD),
        Span::styled(format!(" {done}/{}", tasks.len()), DIM),
    ])];
    let completed = tasks
        .iter()
        .take_while(|task| task.status == TaskStatus::Completed)
        .count();
    let skipped = completed.min(tasks.len().saturating_sub(MAX_TASKS));
    if skipped > 0 {
        lines.push(Line::styled(format!("  … {skipped} completed"), DIM));
    }
    let shown = &tasks[skipped..];
    for task in shown.iter().take(MAX_TASKS) {
        lines.extend(task_line(task, width));
    }
    let hidden = shown.len().saturating_sub(MAX_TASKS);
    if hidden > 0 {
        lines.push(Line::styled(format!("  … {hidden} more"), DIM));
    }
    lines
}

fn task_line(task: &Task, width: usize) -> Vec<Line<'static>> {
    let (mark, mark_style, style) = match task.status {
        TaskStatus::Pending => ("☐", DIM, Style::new()),
        TaskStatus::InProgress => ("▶", CYAN, BOLD),
        TaskStatus::Completed => ("✔", GREEN, DIM),
    };
    let content = safe(&visible(&task.content)).replace('\n', " ");
    let hanging = Hanging {
        first: vec![
            Span::raw("  "),
            Span::styled(mark, mark_style),
            Span::raw(" "),
        ],
        rest: vec![Span::raw("    ")],
    };
    wrap(&StyledText::new(&content, style), width, &hanging)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(content: &str, status: TaskStatus) -> Task {
        Task {
            id: "task_1".to_owned(),
            content: content.to_owned(),
            status,
            created_at: 0,
            updated_at: 0,
        }
    }

    fn shown(tasks: &[Task], width: usize) -> Vec<String> {
        task_lines(tasks, width)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Proves CLI-4c: the task list is one block with a mark for each state.
    #[test]
    fn tasks_are_one_block_with_marks() {
        let tasks = [
            task("read the code", TaskStatus::Completed),
            task("write the long test", TaskStatus::InProgress),
            task("run\nit\u{202e}", TaskStatus::Pending),
        ];
        let expect = [
            "Tasks 1/3",
            "  ✔ read the code",
            "  ▶ write the long",
            "    test",
            "  ☐ run it\\u{202e}",
        ];
        assert_eq!(shown(&tasks, 21), expect);
        assert_eq!(shown(&[], 20), [""; 0]);
    }

    #[test]
    fn long_list_hides_completed_tasks_first() {
        let mut tasks = vec![task("old", TaskStatus::Completed); 25];
        tasks.extend(vec![task("new", TaskStatus::Pending); 22]);
        let lines = shown(&tasks, 80);
        assert_eq!(lines[1], "  … 25 completed");
        assert_eq!(lines.last().map(String::as_str), Some("  … 2 more"));
        assert_eq!(lines.len(), 23);
    }
}
