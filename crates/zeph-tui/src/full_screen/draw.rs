//! Drawing: the state of the interface and the screen model as a frame.

use std::time::Instant;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block as Border, Borders, Clear, Widget as _};
use unicode_width::UnicodeWidthStr as _;

use super::app::{App, Areas, MIN_WIDE_COLUMNS};
use super::draw_dialog::dialog;
use super::help::help;
use super::panels::{call_rows, resource_lines, running_calls};
use super::search::found_in;
use crate::sanitize::first_line;
use crate::terminal::{LineStyle, Queue};
use crate::view::render::{DIM, activity_line, status_line, task_lines};
use crate::view::{Resources, Transcript};

/// Rows of the prompt at most.
const MAX_INPUT_ROWS: u16 = 10;
/// Suggestions that are shown.
const MAX_SUGGESTIONS: u16 = 8;
/// Queued inputs that are shown.
const MAX_QUEUED: usize = 2;
/// Rows of the terminal from which a line separates the prompt.
const MIN_RULED_ROWS: u16 = 10;
/// Rows of the main area below which a dialog covers the complete terminal.
const MIN_DIALOG_ROWS: u16 = 9;
/// Columns of the panels next to the conversation.
const PANEL_COLUMNS: (u16, u16) = (36, 60);

pub(super) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(super) const QUESTION: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);

/// The values of a frame that are not part of the interface.
pub(super) struct Scene<'a> {
    /// The screen model.
    pub(super) all: &'a Transcript,
    /// The inputs that wait for the end of the turn.
    pub(super) queue: &'a Queue,
    /// The snapshot of the resources.
    pub(super) resources: &'a Resources,
    /// The time.
    pub(super) now: Instant,
    /// Whether colours are used.
    pub(super) has_colour: bool,
}

/// Draws a frame, and notes the positions for clicks. No size is too small.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App, scene: &Scene<'_>) {
    let area = frame.area();
    app.areas = Areas {
        size: (area.width, area.height),
        ..Areas::default()
    };
    let buffer = frame.buffer_mut();
    if app.picker.is_some() {
        picker(area, buffer, app);
    } else if !area.is_empty() {
        screen(area, buffer, app, scene);
    }
    if !scene.has_colour {
        for cell in &mut buffer.content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}

/// The list of sessions.
fn picker(area: Rect, buffer: &mut Buffer, app: &mut App) {
    let Some(picker) = &mut app.picker else {
        return;
    };
    let (rows, (column, row)) = picker.lines(area.width.into(), area.height.into());
    for (line, place) in rows.into_iter().zip(area.rows()) {
        let style = match line.style {
            LineStyle::Strong => Style::new().add_modifier(Modifier::BOLD),
            LineStyle::Plain => Style::new(),
            LineStyle::Dim => DIM,
        };
        Line::styled(line.text, style).render(place, buffer);
    }
    let place = |at| u16::try_from(at).unwrap_or(u16::MAX);
    if let Some(cell) = buffer.cell_mut((place(column), place(row))) {
        cell.set_style(REVERSED);
    }
}

fn screen(area: Rect, buffer: &mut Buffer, app: &mut App, scene: &Scene<'_>) {
    let notes = notes(app, scene, area.width);
    let has_rule = area.height >= MIN_RULED_ROWS;
    let input_width = area.width.saturating_sub(2);
    let input_rows = app.input.rows(input_width).clamp(1, MAX_INPUT_ROWS);
    let input_rows = input_rows.min((area.height / 3).max(1));
    let [main, notes_area, rule, input, status] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(u16::try_from(notes.len()).unwrap_or(0).min(area.height / 4)),
        Constraint::Length(u16::from(has_rule)),
        Constraint::Length(input_rows),
        Constraint::Length(u16::from(area.height > 1)),
    ])
    .areas(area);
    body(main, buffer, app, scene);
    for (line, row) in notes.iter().zip(notes_area.rows()) {
        line.render(row, buffer);
    }
    for row in rule.rows() {
        Line::styled("─".repeat(usize::from(row.width)), DIM).render(row, buffer);
    }
    prompt(input, buffer, app, scene);
    status_bar(status, buffer, app, scene);
    popup(main.union(notes_area).union(rule), buffer, app);
    if app.dialog.is_some() {
        let place = match main.height < MIN_DIALOG_ROWS {
            // The status bar remains.
            true => area.resize((area.width, area.height.saturating_sub(status.height)).into()),
            false => main,
        };
        dialog(place, buffer, app, scene.now);
    }
    if app.has_help {
        help(area, buffer);
    }
}

/// The conversation and the panels.
fn body(area: Rect, buffer: &mut Buffer, app: &mut App, scene: &Scene<'_>) {
    let (is_wide, has_panel) = (area.width >= MIN_WIDE_COLUMNS, app.has_panel(area.width));
    match (is_wide, has_panel) {
        (true, true) => {
            let columns = (area.width / 3).clamp(PANEL_COLUMNS.0, PANEL_COLUMNS.1);
            let [left, right] =
                Layout::horizontal([Constraint::Fill(1), Constraint::Length(columns)]).areas(area);
            conversation(left, buffer, app, scene);
            side_panels(right, buffer, app, scene);
        }
        (false, true) => panel_page(area, buffer, app, scene),
        (_, false) => conversation(area, buffer, app, scene),
    }
}

fn conversation(area: Rect, buffer: &mut Buffer, app: &mut App, scene: &Scene<'_>) {
    app.areas.conversation = area;
    let rows = app.blocks.visible(scene.all, area.width, area.height);
    let mut is_first = app.blocks.selected();
    for (row, place) in rows.iter().zip(area.rows()) {
        (&row.line).render(place, buffer);
        if is_first == Some(row.block) {
            buffer.set_style(place, REVERSED);
            is_first = None;
        }
        if let Some(search) = &app.search {
            highlight(place, buffer, search.query());
        }
    }
    app.areas.rows = rows.into_iter().map(|row| row.block).collect();
    if app.blocks.is_scrolled() {
        corner(area, buffer, " End ↓ ");
    }
}

/// A mark in the last row of an area.
pub(super) fn corner(area: Rect, buffer: &mut Buffer, text: &str) {
    let columns = u16::try_from(text.width()).unwrap_or(0);
    if area.width > columns && area.height > 0 {
        let place = Position::new(area.right() - columns, area.bottom() - 1);
        buffer.set_string(place.x, place.y, text, REVERSED);
    }
}

/// Reverses the matches in a row. It reads the row as it is shown.
fn highlight(row: Rect, buffer: &mut Buffer, query: &str) {
    let mut text = String::new();
    let mut columns = Vec::new();
    for x in row.left()..row.right() {
        let symbol = buffer[(x, row.y)].symbol();
        text.push_str(symbol);
        columns.extend(symbol.chars().map(|_| x));
    }
    for (start, end) in found_in(&text, query) {
        for x in &columns[start..end] {
            buffer[(*x, row.y)].set_style(REVERSED);
        }
    }
}

/// The panels next to the conversation.
fn side_panels(area: Rect, buffer: &mut Buffer, app: &mut App, scene: &Scene<'_>) {
    app.areas.panel = area;
    let width = usize::from(area.width.saturating_sub(2));
    let resources = resource_lines(scene.all.status(), scene.resources);
    let tasks = task_rows(scene, width);
    let rows = |lines: &[Line<'_>]| {
        u16::try_from(lines.len())
            .unwrap_or(u16::MAX)
            .saturating_add(1)
    };
    let resource_rows = rows(&resources).min(area.height / 2);
    let task_rows = rows(&tasks).min(area.height / 3);
    let [tools, tasks_area, resources_area] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(task_rows),
        Constraint::Length(resource_rows),
    ])
    .areas(area);
    let inner = section(tools, buffer, "Tools");
    let calls = call_rows(scene.all, &app.panel.toggled, width);
    app.areas.calls = inner;
    // The newest calls are at the end.
    let skipped = calls.len().saturating_sub(usize::from(inner.height));
    let visible = &calls[skipped..];
    for ((_, line), row) in visible.iter().zip(inner.rows()) {
        line.render(row, buffer);
    }
    app.areas.call_rows = visible.iter().map(|(block, _)| *block).collect();
    let inner = section(tasks_area, buffer, "Tasks");
    lines(&tasks, inner, buffer);
    let inner = section(resources_area, buffer, "Resources");
    lines(&resources, inner, buffer);
}

/// The title of a panel; returns the area of its content.
fn section(area: Rect, buffer: &mut Buffer, title: &str) -> Rect {
    let border = Border::new()
        .borders(Borders::LEFT | Borders::TOP)
        .border_style(DIM)
        .title(Span::styled(
            format!(" {title} "),
            Style::new().add_modifier(Modifier::BOLD),
        ));
    let inner = border.inner(area);
    border.render(area, buffer);
    inner
}

pub(super) fn lines(all: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (line, row) in all.iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

/// The tasks without their title, which the panel has.
fn task_rows(scene: &Scene<'_>, width: usize) -> Vec<Line<'static>> {
    let mut tasks = task_lines(scene.all.tasks(), width);
    if tasks.is_empty() {
        tasks.push(Line::styled("none", DIM));
    }
    tasks
}

/// The panels in place of the conversation, as one page.
fn panel_page(area: Rect, buffer: &mut Buffer, app: &mut App, scene: &Scene<'_>) {
    app.areas.panel = area;
    let width = usize::from(area.width);
    let title = |text: &str| {
        let rest = width.saturating_sub(text.len() + 4);
        (
            None,
            Line::styled(format!("── {text} {}", "─".repeat(rest)), DIM),
        )
    };
    let plain = |line| (None, line);
    let mut rows = vec![title("Resources")];
    rows.extend(
        resource_lines(scene.all.status(), scene.resources)
            .into_iter()
            .map(plain),
    );
    rows.push(title("Tasks"));
    rows.extend(task_rows(scene, width).into_iter().map(plain));
    rows.push(title("Tools"));
    let calls = call_rows(scene.all, &app.panel.toggled, width);
    rows.extend(calls.into_iter().map(|(block, line)| (Some(block), line)));
    let hidden = rows.len().saturating_sub(usize::from(area.height));
    app.panel.scroll = app.panel.scroll.min(hidden);
    let visible = &rows[app.panel.scroll..];
    for ((_, line), row) in visible.iter().zip(area.rows()) {
        line.render(row, buffer);
    }
    app.areas.calls = area;
    // No block has this number.
    let blocks = visible.iter().map(|(block, _)| block.unwrap_or(usize::MAX));
    app.areas.call_rows = blocks.collect();
    if app.panel.scroll < hidden {
        corner(area, buffer, " more ↓ ");
    }
}

/// The rows above the prompt: the activity and the queued inputs.
fn notes(app: &App, scene: &Scene<'_>, width: u16) -> Vec<Line<'static>> {
    let mut notes = Vec::new();
    let width = usize::from(width);
    if let Some(activity) = scene
        .all
        .activity()
        .filter(|_| app.turn != super::app::Turn::Idle)
    {
        notes.push(activity_line(activity, scene.now, width));
    }
    for queued in scene.queue.texts().take(MAX_QUEUED) {
        let text = first_line(queued, width.saturating_sub(8).max(1));
        notes.push(Line::styled(format!("queued: {text}"), DIM));
    }
    let hidden = scene.queue.texts().len().saturating_sub(MAX_QUEUED);
    if hidden > 0 {
        notes.push(Line::styled(format!("queued: {hidden} more"), DIM));
    }
    notes
}

fn prompt(area: Rect, buffer: &mut Buffer, app: &App, scene: &Scene<'_>) {
    let [mark, text] = Layout::horizontal([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    let style = match (scene.all.status().mode, &app.dialog) {
        (_, Some(_)) => DIM,
        _ => Style::new().fg(Color::Cyan),
    };
    let sign = if app.input.has_commands() {
        ": "
    } else {
        "› "
    };
    Span::styled(sign, style).render(mark, buffer);
    app.input.area().render(text, buffer);
}

fn status_bar(area: Rect, buffer: &mut Buffer, app: &App, scene: &Scene<'_>) {
    if area.is_empty() {
        return;
    }
    let width = usize::from(area.width);
    if let Some(search) = &app.search {
        let found = match search.position() {
            Some((at, count)) => format!("{at} of {count}"),
            None if search.query().is_empty() => "Enter: older, Down: newer, Esc: close".to_owned(),
            None => "not found".to_owned(),
        };
        let query = crate::sanitize::visible(search.query());
        return Line::styled(format!("search: {query}▏ {found}"), QUESTION).render(area, buffer);
    }
    if app.dialog.is_some() {
        let text = format!("{:width$}", "a question waits for your decision");
        return Line::styled(text, REVERSED).render(area, buffer);
    }
    if let Some(hint) = app.hint {
        return Line::styled(hint, QUESTION).render(area, buffer);
    }
    let help = " ? keys";
    let room = width.saturating_sub(help.len());
    let line = status_line(scene.all.status(), running_calls(scene.all), room);
    let used = line.width();
    line.render(area, buffer);
    if width >= used + help.len() {
        let x = area
            .right()
            .saturating_sub(u16::try_from(help.len()).unwrap_or(0));
        buffer.set_stringn(x, area.y, help, help.len(), DIM);
    }
}

/// The suggestions, at the lower end of the area above the prompt.
fn popup(area: Rect, buffer: &mut Buffer, app: &App) {
    let Some(popup) = &app.popup else { return };
    let rows = u16::try_from(popup.all.len()).unwrap_or(u16::MAX);
    let rows = rows.min(MAX_SUGGESTIONS).min(area.height);
    let place = Rect {
        y: area.bottom() - rows,
        height: rows,
        ..area
    };
    let skipped = (popup.selected + 1).saturating_sub(usize::from(rows));
    Clear.render(place, buffer);
    let shown = popup.all.iter().enumerate().skip(skipped);
    for ((at, suggestion), row) in shown.zip(place.rows()) {
        let style = if at == popup.selected {
            REVERSED
        } else {
            Style::new()
        };
        let line = Line::from(vec![
            Span::styled(format!(" {} ", suggestion.value), style),
            Span::styled(format!(" {}", suggestion.description), DIM),
        ]);
        line.render(row, buffer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;
    use zeph_tools::Confirmation;

    use super::*;
    use crate::config::KeyBindings;
    use crate::full_screen::app::Turn;
    use crate::full_screen::completion::{Popup, Suggestion, Suggestions};
    use crate::full_screen::dialog::Dialog;
    use crate::full_screen::draw_dialog::{dialog, footer};
    use crate::full_screen::input::Input;
    use crate::full_screen::question::Question;
    use crate::host::BareHost;
    use crate::view::Block;

    fn app() -> App {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history.txt");
        App::new(Input::new(&file, KeyBindings::Emacs, &BareHost).0)
    }

    fn full(app: &mut App) -> Transcript {
        let mut all = Transcript::default();
        let now = Instant::now();
        for at in 0..30 {
            all.push(Block::Text(format!(
                "# Title {at}\nsome *text* of the model"
            )));
            all.apply(
                zeph_core::LoopbackEvent::ToolStarted {
                    id: at.to_string(),
                    tool: "bash".to_owned(),
                    params: json!({ "command": "echo x" }),
                },
                now,
            );
        }
        all.apply(zeph_core::LoopbackEvent::Requesting { iteration: 1 }, now);
        app.turn = Turn::Working;
        all
    }

    fn drawn(app: &mut App, all: &Transcript, width: u16, height: u16, has_colour: bool) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut queue = Queue::default();
        for text in ["one", "two", "three"] {
            queue.push(text.to_owned());
        }
        let scene = Scene {
            all,
            queue: &queue,
            resources: &Resources::default(),
            now: Instant::now(),
            has_colour,
        };
        terminal.draw(|frame| draw(frame, app, &scene)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn text(buffer: &Buffer) -> String {
        let width = usize::from(buffer.area.width.max(1));
        let rows = buffer.content.chunks(width);
        let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
        rows.collect::<Vec<_>>().join("\n")
    }

    fn permission(command: &str) -> Dialog {
        let question = Confirmation {
            tool: "bash".to_owned(),
            subject: command.to_owned(),
            ..Confirmation::default()
        };
        let question = Question::Confirm(Box::new(question), json!({ "command": command }));
        Dialog::new(1, Arc::new(question))
    }

    /// Proves CLI-5: no size of the terminal is too small for any part of the screen.
    #[test]
    fn every_size_is_drawn() {
        let mut app = app();
        let all = full(&mut app);
        app.popup = Popup::new(Suggestions {
            text: "/".to_owned(),
            all: (0..20)
                .map(|at| Suggestion {
                    value: format!("/{at}"),
                    description: "d".to_owned(),
                    span: (0, 1),
                    append_whitespace: true,
                })
                .collect(),
        });
        let sizes = [0, 1, 2, 3, 5, 9, 12, 24, 40, 60, 99, 100, 200];
        for width in sizes {
            for height in sizes {
                for variant in 0..4 {
                    app.has_help = variant == 1;
                    app.dialog = (variant == 2).then(|| permission("rm -r x\nls"));
                    app.panel.is_toggled = variant == 3;
                    drawn(&mut app, &all, width, height, true);
                }
            }
        }
    }

    #[test]
    fn panels_are_next_to_the_conversation_or_cover_it() {
        let mut app = app();
        let all = full(&mut app);
        let wide = text(&drawn(&mut app, &all, 120, 40, true));
        for word in ["Tools", "Tasks", "Resources", "Title 29"] {
            assert!(wide.contains(word), "{word:?} is not in:\n{wide}");
        }
        let narrow = text(&drawn(&mut app, &all, 80, 24, true));
        assert!(
            narrow.contains("Title 29") && !narrow.contains("Resources"),
            "{narrow}"
        );
        app.panel.is_toggled = true;
        let narrow = text(&drawn(&mut app, &all, 40, 12, true));
        assert!(
            narrow.contains("Resources") && !narrow.contains("Title 29"),
            "{narrow}"
        );
    }

    /// Proves CLI-3 for `NO_COLOR`.
    #[test]
    fn colourless_style_uses_only_modifiers() {
        let mut app = app();
        let all = full(&mut app);
        app.dialog = Some(permission("ls"));
        let buffer = drawn(&mut app, &all, 100, 30, false);
        assert!(
            buffer
                .content
                .iter()
                .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
        );
    }

    /// Proves CLI-5: foreign text never reaches the terminal raw.
    #[test]
    fn no_control_character_is_drawn() {
        let mut app = app();
        let mut all = Transcript::default();
        let hostile = "a\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{202e}b\r\u{0}";
        all.push(Block::Text(hostile.to_owned()));
        all.push(Block::Prompt(hostile.to_owned()));
        all.push(Block::Reply(hostile.to_owned()));
        all.status_mut().model = hostile.to_owned();
        app.input.paste(hostile);
        app.dialog = Some(permission(hostile));
        for (width, height) in [(100, 30), (40, 12)] {
            let buffer = drawn(&mut app, &all, width, height, true);
            for cell in &buffer.content {
                let is_safe = |c: char| !c.is_control() && c != '\u{202e}';
                assert!(cell.symbol().chars().all(is_safe), "{:?}", cell.symbol());
            }
        }
    }

    #[test]
    fn dialog_shows_keys_only_when_they_are_accepted() {
        let mut app = app();
        let all = Transcript::default();
        app.dialog = Some(permission("ls"));
        let first = text(&drawn(&mut app, &all, 80, 24, true));
        assert!(
            !first.contains("[1] once") && first.contains("a question waits"),
            "{first}"
        );
        let dialog = app.dialog.as_mut().unwrap();
        let later = dialog.deadline(Instant::now()).unwrap();
        assert!(dialog.is_open(later));
        let rows = footer(dialog, 20, true);
        let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
        assert_eq!(rows, ["[1] once  [4] no", "[5] no, and tell it why"]);
    }

    #[test]
    fn low_screen_shows_the_selected_option() {
        let mut app = app();
        let mut question = permission("ls");
        question.drawn(Instant::now());
        let open = question.deadline(Instant::now()).unwrap();
        app.dialog = Some(question);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 3));
        let area = buffer.area;
        dialog(area, &mut buffer, &mut app, open);
        let shown = text(&buffer);
        assert!(shown.contains("[4] no"), "{shown}");
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 3));
        let area = buffer.area;
        dialog(area, &mut buffer, &mut app, open);
        let shown = text(&buffer);
        assert!(
            shown.contains("[4] no") && !shown.contains("once"),
            "{shown}"
        );
    }
}
