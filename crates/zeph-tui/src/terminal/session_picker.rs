//! The list from which the user selects a session to resume.
//!
//! [`SessionPicker`] is pure: keys change it, and it returns the lines of the screen. [`pick`] is the loop around it on
//! the alternate screen of the terminal.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context as _, bail};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tokio::signal::unix::{SignalKind, signal};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::burst::{is_over, read};
use super::channel::TerminalOptions;
use super::decode::Decoder;
use super::restore;
use super::signals::leave_unless_handled;
use super::style::{BOLD, DIM, Style};
use crate::pipe::pipe;
use crate::sanitize::{pasted_words, visible};

/// The time between two checks of the size of the terminal.
const CHECK: Duration = Duration::from_millis(100);
/// The time after which an incomplete sequence of bytes is complete.
const PAUSE: Duration = Duration::from_millis(25);
/// Rows that are not entries: the heading, the search, the directory and the keys.
const OTHER_ROWS: usize = 4;
/// The width from which on a column shows the directories.
const MIN_WIDTH_WITH_DIRECTORY: usize = 76;
/// The maximum width of the column of directories.
const MAX_DIRECTORY_WIDTH: usize = 36;

/// A session that can be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickerEntry {
    /// Its id.
    pub id: String,
    /// The date and minute of its last message: `2026-11-26 14:03`.
    pub date: String,
    /// Its first words, or the title that the user chose.
    pub title: String,
    /// Its directory.
    pub directory: String,
    /// Whether this is the current directory.
    pub is_here: bool,
}

/// The emphasis of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStyle {
    /// The selected entry, or a heading.
    Strong,
    /// Any other entry, or the search.
    Plain,
    /// A hint.
    Dim,
}

/// One line of the screen. It is not wider than the screen, and has no control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerLine {
    /// The text.
    pub(crate) text: String,
    /// The emphasis.
    pub(crate) style: LineStyle,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Picked {
    /// The list is still open.
    Open,
    /// The session with this id.
    Session(String),
    /// No session.
    Cancelled,
}

/// The state of the list of sessions.
#[derive(Debug, Clone)]
pub struct SessionPicker {
    /// The sessions of this directory, then the others; the latest first.
    entries: Vec<PickerEntry>,
    query: String,
    /// Whether sessions of all directories are shown.
    has_all: bool,
    /// The indexes of the entries that match.
    matches: Vec<usize>,
    /// The selected place in `matches`.
    selected: usize,
    /// The first place in `matches` that is on the screen.
    top: usize,
    /// Entries on the screen.
    page: usize,
}

impl SessionPicker {
    /// A list of sessions, which are sorted by time. If none is of this directory, all are shown.
    pub fn new(mut entries: Vec<PickerEntry>) -> Self {
        entries.sort_by_key(|entry| !entry.is_here);
        for entry in &mut entries {
            entry.title = one_line(&entry.title);
            entry.directory = one_line(&entry.directory);
        }
        let has_all = entries.first().is_some_and(|entry| !entry.is_here);
        let mut picker = Self {
            entries,
            query: String::new(),
            has_all,
            matches: Vec::new(),
            selected: 0,
            top: 0,
            page: 1,
        };
        picker.filter();
        picker
    }

    /// Handles a key.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Picked {
        let last = self.matches.len().saturating_sub(1);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::Cancelled,
            KeyCode::Char('c' | 'd') if is_control => return Picked::Cancelled,
            KeyCode::Enter => {
                let entry = self.matches.get(self.selected).map(|at| &self.entries[*at]);
                return entry.map_or(Picked::Open, |entry| Picked::Session(entry.id.clone()));
            }
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('p') if is_control => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('n') if is_control => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.page),
            KeyCode::PageDown => self.selected = (self.selected + self.page).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Tab => {
                self.has_all = !self.has_all;
                self.filter();
            }
            KeyCode::Backspace => {
                self.query.pop();
                self.filter();
            }
            KeyCode::Char('u') if is_control => {
                self.query.clear();
                self.filter();
            }
            KeyCode::Char(c) if !is_control && !c.is_control() => {
                self.query.push(c);
                self.filter();
            }
            _ => {}
        }
        Picked::Open
    }

    /// Adds pasted text to the search, without its control characters.
    pub(crate) fn paste(&mut self, text: &str) {
        self.query.push_str(&pasted_words(text));
        self.filter();
    }

    /// The lines of a screen of this size, and the place of the cursor: column and row.
    pub(crate) fn lines(
        &mut self,
        width: usize,
        height: usize,
    ) -> (Vec<PickerLine>, (usize, usize)) {
        self.page = height.saturating_sub(OTHER_ROWS).max(1);
        self.top = self.top.min(self.selected);
        if self.selected >= self.top + self.page {
            self.top = self.selected + 1 - self.page;
        }
        let place = if self.has_all {
            "all directories"
        } else {
            "this directory"
        };
        let heading = format!("Sessions of {place}: {}", self.matches.len());
        let query = tail(&self.query, width.saturating_sub(3));
        let cursor = ((2 + query.width()).min(width.saturating_sub(1)), 1);
        let mut lines = vec![
            line(&heading, LineStyle::Strong, width),
            line(&format!("› {query}"), LineStyle::Plain, width),
        ];
        let shown = self
            .matches
            .iter()
            .enumerate()
            .skip(self.top)
            .take(self.page);
        for (place, at) in shown {
            let is_selected = place == self.selected;
            let text = self.entry_text(&self.entries[*at], is_selected, width);
            let style = if is_selected {
                LineStyle::Strong
            } else {
                LineStyle::Plain
            };
            lines.push(line(&text, style, width));
        }
        if self.matches.is_empty() {
            lines.push(line("  no session matches", LineStyle::Dim, width));
        }
        while lines.len() + 2 < height {
            lines.push(line("", LineStyle::Plain, width));
        }
        let selected = self.matches.get(self.selected).map(|at| &self.entries[*at]);
        let directory = selected.map_or("", |entry| entry.directory.as_str());
        lines.push(line(&tail(directory, width), LineStyle::Dim, width));
        let other = if self.has_all {
            "this directory"
        } else {
            "all directories"
        };
        let keys = match width {
            0..60 => format!("Enter resumes, Tab: {other}"),
            _ => format!("Enter resumes, Esc cancels, Tab shows {other}; type to search"),
        };
        lines.push(line(&keys, LineStyle::Dim, width));
        lines.truncate(height);
        (lines, cursor)
    }

    /// The date, the title, and on a wide screen the directory.
    fn entry_text(&self, entry: &PickerEntry, is_selected: bool, width: usize) -> String {
        let sign = if is_selected { "▸" } else { " " };
        // On a narrow screen, the year leaves the room to the title.
        let date = match width < MIN_WIDTH_WITH_DIRECTORY {
            true => entry.date.get(5..).unwrap_or(&entry.date),
            false => &entry.date,
        };
        let start = format!("{sign} {date}  ");
        if !self.has_all || width < MIN_WIDTH_WITH_DIRECTORY {
            return start + &entry.title;
        }
        let directory = tail(&entry.directory, MAX_DIRECTORY_WIDTH);
        let room = width.saturating_sub(start.width() + directory.width() + 2);
        let title = cut(&entry.title, room);
        let gap = " ".repeat(room.saturating_sub(title.width()) + 2);
        format!("{start}{title}{gap}{directory}")
    }

    /// Finds the matching entries, and selects the first one.
    fn filter(&mut self) {
        // Any letters of a path fit a short search, so directories contain the words unchanged.
        let (case, normal) = (CaseMatching::Smart, Normalization::Smart);
        let loose = Pattern::new(&self.query, case, normal, AtomKind::Fuzzy);
        let exact = Pattern::new(&self.query, case, normal, AtomKind::Substring);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut buffer = Vec::new();
        let mut found: Vec<(bool, u32, usize)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if !self.has_all && !entry.is_here {
                continue;
            }
            let text = format!("{} {}", entry.title, entry.date);
            let mut score = loose.score(Utf32Str::new(&text, &mut buffer), &mut matcher);
            if score.is_none() {
                let text = format!("{text} {}", entry.directory);
                score = exact.score(Utf32Str::new(&text, &mut buffer), &mut matcher);
            }
            found.extend(score.map(|score| (!entry.is_here, u32::MAX - score, at)));
        }
        found.sort_unstable();
        self.matches = found.into_iter().map(|(.., at)| at).collect();
        self.selected = 0;
        self.top = 0;
    }
}

fn line(text: &str, style: LineStyle, width: usize) -> PickerLine {
    PickerLine {
        text: cut(text, width),
        style,
    }
}

/// A text on one line, without characters that steer a terminal.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" "))
}

/// The start of a text that is at most `width` columns wide, with `…` for omitted text.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// The end of a text that is at most `width` columns wide, with `…` for omitted text.
fn tail(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut start = text.len();
    let mut used = 1;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        start = at;
    }
    match width {
        0 => String::new(),
        _ => format!("…{}", &text[start..]),
    }
}

/// Shows the list, and returns the id of the selected session. `None` if the user selects none, or after a signal
/// that another part of the program handles. Otherwise a signal ends the program.
///
/// # Errors
/// If the terminal cannot show the list.
pub async fn pick(
    mut picker: SessionPicker,
    terminal: TerminalOptions,
) -> anyhow::Result<Option<String>> {
    if terminal.dumb || !terminal.can_ask {
        bail!(
            "this terminal cannot show the list; name the session: `zeph sessions list` shows the ids"
        );
    }
    let mut terminated = signal(SignalKind::terminate()).context("signals cannot be received")?;
    let mut hung_up = signal(SignalKind::hangup()).context("signals cannot be received")?;
    let (stop, stops_when_dropped) = pipe().context("no pipe can be opened")?;
    let style = terminal.stdout;
    let work = tokio::task::spawn_blocking(move || run(&mut picker, style, &stop));
    tokio::pin!(work);
    let ended = tokio::select! {
        picked = &mut work => Some(picked),
        _ = terminated.recv() => None,
        _ = hung_up.recv() => None,
    };
    let picked = match ended {
        Some(picked) => picked,
        None => {
            drop(stops_when_dropped);
            let restored = work.await;
            leave_unless_handled();
            restored
        }
    };
    let picked = picked.context("the list of sessions failed")?;
    picked.context("the terminal cannot show the list of sessions")
}

/// The terminal in raw mode on its alternate screen, restored when dropped.
struct FullScreen(());

impl FullScreen {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self(());
        restore::note_alternate(true);
        execute!(io::stdout(), EnterAlternateScreen)?;
        Ok(screen)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        restore::note_alternate(false);
        let _ = disable_raw_mode();
    }
}

/// Draws the list and reads keys until the user decides or the other end of `stop` is closed.
///
/// It reads the terminal itself: the library loses a key that arrives together with a change of the size.
fn run(picker: &mut SessionPicker, style: Style, stop: &OwnedFd) -> io::Result<Option<String>> {
    let _screen = FullScreen::enter()?;
    let (stdin, mut decoder) = (io::stdin(), Decoder::default());
    let mut events = read_by_editor()?;
    loop {
        for event in events {
            match press(picker, &event) {
                Picked::Open => {}
                Picked::Session(id) => return Ok(Some(id)),
                Picked::Cancelled => return Ok(None),
            }
        }
        let drawn = size()?;
        draw(picker, style, drawn)?;
        events = loop {
            let wait = if decoder.is_pending() { PAUSE } else { CHECK };
            match read(&stdin, stop, Some(wait))? {
                Some(bytes) => break decoder.push(&bytes),
                None if is_over(&stdin, stop)? => return Ok(None),
                None if decoder.is_pending() => break decoder.pause().into_iter().collect(),
                None if size()? != drawn => break Vec::new(),
                None => {}
            }
        };
    }
}

/// The keys after the command that opened the list, which the line editor has read with it.
fn read_by_editor() -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    while crossterm::event::poll(Duration::ZERO)? {
        events.push(crossterm::event::read()?);
    }
    Ok(events)
}

fn press(picker: &mut SessionPicker, event: &Event) -> Picked {
    match event {
        // A key that is released is reported only by some terminals.
        Event::Key(key) if key.kind != KeyEventKind::Release => picker.press(*key),
        Event::Paste(text) => {
            picker.paste(text);
            Picked::Open
        }
        _ => Picked::Open,
    }
}

fn draw(picker: &mut SessionPicker, style: Style, (width, height): (u16, u16)) -> io::Result<()> {
    let (lines, (column, row)) = picker.lines(usize::from(width), usize::from(height));
    let mut out = io::stdout().lock();
    queue!(out, Hide)?;
    for (at, line) in (0..).zip(&lines) {
        let text = match line.style {
            LineStyle::Strong => style.paint(BOLD, &line.text),
            LineStyle::Plain => line.text.clone(),
            LineStyle::Dim => style.paint(DIM, &line.text),
        };
        queue!(
            out,
            MoveTo(0, at),
            Clear(ClearType::CurrentLine),
            Print(text)
        )?;
    }
    let place = |place| u16::try_from(place).unwrap_or(u16::MAX);
    queue!(out, MoveTo(place(column), place(row)), Show)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: usize, title: &str, directory: &str) -> PickerEntry {
        PickerEntry {
            id: id.to_string(),
            date: format!("2026-11-{:02} 14:03", id % 28 + 1),
            title: title.to_owned(),
            directory: directory.to_owned(),
            is_here: directory == "/here",
        }
    }

    fn picker() -> SessionPicker {
        SessionPicker::new(vec![
            entry(1, "fix the parser", "/there/project"),
            entry(2, "write the guide", "/here"),
            entry(3, "解析器を修正する\nとテスト", "/here"),
            entry(4, "a\x1b[31m parser\u{202e}", "/here"),
        ])
    }

    fn press(picker: &mut SessionPicker, code: KeyCode) -> Picked {
        picker.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn type_text(picker: &mut SessionPicker, text: &str) {
        for c in text.chars() {
            assert_eq!(press(picker, KeyCode::Char(c)), Picked::Open);
        }
    }

    /// Proves CLI-6: sessions of this directory come first, and a key shows those of all directories.
    #[test]
    fn sessions_of_this_directory_come_first() {
        let mut list = picker();
        assert_eq!(list.matches, [0, 1, 2]);
        press(&mut list, KeyCode::Tab);
        assert_eq!(list.matches, [0, 1, 2, 3]);
        press(&mut list, KeyCode::End);
        assert_eq!(
            press(&mut list, KeyCode::Enter),
            Picked::Session("1".to_owned())
        );
        // Without a session of this directory, the others are shown.
        let mut list = SessionPicker::new(vec![entry(7, "a", "/there")]);
        assert_eq!(
            press(&mut list, KeyCode::Enter),
            Picked::Session("7".to_owned())
        );
    }

    /// Proves CLI-6: typed text searches titles, dates and directories.
    #[test]
    fn typed_text_filters_the_list() {
        let mut list = picker();
        type_text(&mut list, "guide");
        assert_eq!(
            press(&mut list, KeyCode::Enter),
            Picked::Session("2".to_owned())
        );
        type_text(&mut list, "zzz");
        assert_eq!(press(&mut list, KeyCode::Enter), Picked::Open);
        let (lines, _) = list.lines(40, 12);
        assert!(
            lines
                .iter()
                .any(|line| line.text.contains("no session matches"))
        );
        list.press(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        type_text(&mut list, "修正");
        assert_eq!(
            press(&mut list, KeyCode::Enter),
            Picked::Session("3".to_owned())
        );
        assert_eq!(press(&mut list, KeyCode::Esc), Picked::Cancelled);
    }

    /// Proves CLI-6: the list fits any screen, and shows the selection, the date and the directory.
    #[test]
    fn lines_fit_any_screen() {
        let mut entries: Vec<_> = (0..100)
            .map(|id| entry(id, &format!("{id} {}", "漢字 title ".repeat(20)), "/here"))
            .collect();
        entries.push(entry(100, "other", &"/long".repeat(30)));
        for (width, height) in [(40, 12), (80, 24), (200, 60), (10, 5), (3, 2), (1, 1)] {
            let mut list = SessionPicker::new(entries.clone());
            press(&mut list, KeyCode::Tab);
            for _ in 0..50 {
                press(&mut list, KeyCode::Down);
            }
            let (lines, (column, row)) = list.lines(width, height);
            assert!(lines.len() <= height, "{width} {height}");
            assert!(
                lines.iter().all(|line| line.text.width() <= width),
                "{lines:?}"
            );
            assert!(column < width && row <= 1);
            if height > OTHER_ROWS {
                let selected = lines.iter().find(|line| line.text.starts_with('▸'));
                let selected = selected.map(|line| line.text.as_str()).unwrap_or_default();
                assert!(width < 20 || selected.contains("50 漢字"), "{lines:?}");
                assert!(lines.iter().any(|line| line.text == "/here" || width < 5));
            }
        }
    }

    /// Proves CLI-6: a title cannot steer the terminal, and takes one line.
    #[test]
    fn titles_are_safe_for_a_terminal() {
        let mut list = picker();
        let (lines, _) = list.lines(80, 24);
        let text: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        let text = text.join("\n");
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
        assert!(text.contains("解析器を修正する とテスト"), "{text}");
    }
}
