//! The line editor: reedline on its own thread.
//!
//! Reading a key cannot be interrupted, and a runtime waits for its blocking tasks. Therefore the editor is not such
//! a task, and an exit never waits for a key. A terminal without escape sequences edits its lines itself: for it, the
//! thread reads lines and writes only the prompt.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use reedline::{
    Color, DefaultHinter, EditCommand, Highlighter, HistoryItem, Prompt, PromptEditMode,
    PromptHistorySearch, PromptHistorySearchStatus, PromptViMode, Reedline, ReedlineMenu, Signal,
    StyledText,
};
use tokio::sync::oneshot;
use zeph_tools::permission_mode::SessionMode;

use super::complete::{ModelWords, Words};
use super::completion_menu::CompletionMenu;
use super::external_editor::{edit, failure};
use super::history::InputHistory;
use super::keyboard::{Keyboard, is_connected};
use super::prompt_keys::{self, EDIT, LineState, MENU, PromptKeys, is_continued};
use super::screen::terminal_size;
use crate::config::KeyBindings;
use crate::host::ViewHost;
use crate::view::SessionStatus;
use crate::view::render::status_line;

/// The input of the user at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// A submitted text.
    Text(String),
    /// Ctrl-C; `cleared` if there was text to discard.
    Interrupted {
        /// The line was not empty.
        cleared: bool,
    },
    /// Ctrl-D, or the terminal is closed.
    End,
    /// A key that acts without a text.
    Key(PromptKey),
    /// The user's editor has failed, with the message. The text of the prompt remains.
    NotEdited(String),
}

/// A key at the prompt that acts without a text. The text of the prompt remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptKey {
    /// Esc at an empty prompt.
    Escape,
    /// Ctrl-O.
    Expand,
    /// `?` at an empty prompt.
    Help,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-G without an editor.
    NoEditor,
}

/// A request to the thread of the editor.
enum Request {
    /// Reads an input. The prompt shows the text at first.
    Read(String, oneshot::Sender<io::Result<Input>>),
    /// Adds inputs to the history.
    Save(Vec<String>),
}

/// The state of the session, which the prompt shows.
pub(super) type StatusSource = Arc<dyn Fn() -> SessionStatus + Send + Sync>;

/// The prompt of a terminal without escape sequences.
const PLAIN_PROMPT: &str = "> ";
/// The prefix of inputs that the history does not store.
const UNSAVED_PREFIX: &str = " ";

/// Reads inputs.
pub(super) struct Editor {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    /// The requested input that has not arrived.
    pending: Option<oneshot::Receiver<io::Result<Input>>>,
    plain: bool,
}

/// The look of the editor.
#[derive(Clone)]
pub(super) struct Look {
    /// Whether it may use colours.
    pub(super) colour: bool,
    /// Whether the terminal understands no escape sequences.
    pub(super) plain: bool,
    /// The mode that the prompt shows.
    pub(super) mode: SessionMode,
    /// The rest of the state that the prompt shows.
    pub(super) status: StatusSource,
    /// The keys that edit the prompt.
    pub(super) keys: KeyBindings,
    /// The command of the user's editor.
    pub(super) external_editor: Option<String>,
}

impl Editor {
    /// Starts an editor with the history in `history_file`, from which the host removes secrets. The second value holds
    /// the reasons why a part cannot be used.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(
        project: PathBuf,
        models: Arc<dyn ModelWords>,
        (history_file, host): (&Path, &'static dyn ViewHost),
        keyboard: Keyboard,
        look: Look,
    ) -> io::Result<(Self, Vec<String>)> {
        let mut trouble = Vec::new();
        let history = InputHistory::open(history_file, host).map_err(|error| {
            let file = history_file.display();
            trouble.push(format!(
                "the input history is not stored, because {file} cannot be used: {error}"
            ));
        });
        let history = history.ok();
        let plain = look.plain;
        let (requests, receive) = mpsc::channel::<Request>();
        let thread = std::thread::Builder::new()
            .name("line editor".to_owned())
            .spawn(move || {
                let state = Arc::new(LineState::default());
                let mut editor = match look.plain {
                    true => None,
                    false => Some(build(
                        Words::new(project, models),
                        history,
                        &look,
                        Arc::clone(&state),
                    )),
                };
                while let Ok(request) = receive.recv() {
                    let (text, answer) = match request {
                        Request::Read(text, answer) => (text, answer),
                        Request::Save(texts) => {
                            if let Some(editor) = &mut editor {
                                save(editor, texts);
                            }
                            continue;
                        }
                    };
                    let _reading = keyboard.hold();
                    let _restored = Restore;
                    let prompt = StatusPrompt {
                        mode: look.mode.clone(),
                        status: (look.status)(),
                    };
                    let input = match &mut editor {
                        Some(editor) => {
                            let command = look.external_editor.as_deref();
                            read(editor, (&prompt, command), &state, text)
                        }
                        None => read_plain(),
                    };
                    // The receiver may be gone if the process is exiting.
                    let _ = answer.send(input);
                }
            })?;
        Ok((
            Self {
                requests: Some(requests),
                thread: Some(thread),
                pending: None,
                plain,
            },
            trouble,
        ))
    }

    /// Waits for an input; the prompt gets `text` first. If the future is dropped, the next call waits for the same
    /// input.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub(super) async fn read(&mut self, text: String) -> io::Result<Input> {
        if self.pending.is_none() {
            let (answer, receive) = oneshot::channel();
            let requests = self.requests.as_ref();
            let request = Request::Read(text, answer);
            if requests.is_some_and(|requests| requests.send(request).is_ok()) {
                self.pending = Some(receive);
            }
        }
        let input = match &mut self.pending {
            Some(pending) => pending.await,
            None => return Err(io::Error::other("the line editor has stopped")),
        };
        self.pending = None;
        input.unwrap_or_else(|_| Err(io::Error::other("the line editor has stopped")))
    }

    /// Adds inputs that the user typed during a turn to the history.
    pub(super) fn save(&self, texts: Vec<String>) {
        if let Some(requests) = &self.requests
            && !texts.is_empty()
        {
            // Without the thread, the next input fails.
            let _ = requests.send(Request::Save(texts));
        }
    }

    /// Whether Ctrl-C at the prompt is a signal and not a key.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Shows the prompt again for the pending input.
    pub(super) fn prompt_again(&self) {
        if self.pending.is_some() && self.plain {
            prompt_plain();
        }
    }

    /// Ends the editor while it is not reading, and waits until its history is written.
    pub(super) fn finish(mut self) {
        if self.pending.is_some() {
            return self.abandon();
        }
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Leaves the editor as it is, waiting for a key or not, with the terminal restored.
    pub(super) fn abandon(self) {
        drop(Restore);
    }
}

/// Restores the terminal when dropped, unless it is already restored.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        if crossterm::terminal::is_raw_mode_enabled().unwrap_or(false) {
            let _ = crossterm::terminal::disable_raw_mode();
            let mut out = io::stdout().lock();
            let _ = crossterm::execute!(
                out,
                crossterm::event::DisableBracketedPaste,
                crossterm::cursor::SetCursorStyle::DefaultUserShape,
                crossterm::cursor::Show,
            );
            let _ = out.write_all(b"\r\n").and_then(|()| out.flush());
        }
    }
}

fn build(
    words: Words,
    history: Option<InputHistory>,
    look: &Look,
    state: Arc<LineState>,
) -> Reedline {
    let has_editor = look.external_editor.is_some();
    let keys = PromptKeys::new(look.keys, has_editor, Arc::clone(&state));
    let editor = Reedline::create()
        .with_ansi_colors(look.colour)
        .use_bracketed_paste(true)
        .with_edit_mode(Box::new(keys))
        .with_completer(Box::new(words))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(
            CompletionMenu::new(MENU, look.mode.clone()),
        )))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_hinter(Box::new(DefaultHinter::default()))
        .with_highlighter(Box::new(Commands(state)))
        .with_history_exclusion_prefix(Some(UNSAVED_PREFIX.to_owned()));
    match history {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// Adds inputs to the history, as the editor does with an input of the prompt.
fn save(editor: &mut Reedline, texts: Vec<String>) {
    for text in texts {
        if !text.starts_with(UNSAVED_PREFIX) {
            let item = HistoryItem::from_command_line(text);
            let _ = editor.history_mut().save(item);
        }
    }
    // A history that cannot be written now is written at the next chance.
    let _ = editor.sync_history();
}

/// Reads an input. Ctrl-G opens the text in the user's editor `command`.
fn read(
    editor: &mut Reedline,
    (prompt, command): (&StatusPrompt, Option<&str>),
    state: &LineState,
    text: String,
) -> io::Result<Input> {
    if !is_connected() {
        return Ok(Input::End);
    }
    state.set("", 0);
    if !text.is_empty() {
        editor.run_edit_commands(&[EditCommand::InsertString(text)]);
    }
    let signal = loop {
        let signal = editor.read_line(prompt).map_err(io::Error::other)?;
        // A history that cannot be written now is written at the next chance.
        let _ = editor.sync_history();
        let is_edit = matches!(&signal, Signal::HostCommand(name) if name == EDIT);
        let Some(command) = command.filter(|_| is_edit) else {
            break signal;
        };
        match edit(command, editor.current_buffer_contents()) {
            Ok(text) => {
                let edited = [EditCommand::Clear, EditCommand::InsertString(text)];
                editor.run_edit_commands(&edited);
            }
            Err(error) => return Ok(Input::NotEdited(failure(command, &error))),
        }
    };
    Ok(match signal {
        Signal::HostCommand(command) => match prompt_keys::key(&command) {
            Some(key) => Input::Key(key),
            None => Input::Text(command),
        },
        Signal::Success(text) => Input::Text(text),
        Signal::CtrlC => Input::Interrupted {
            cleared: !state.is_empty(),
        },
        _ => Input::End,
    })
}

fn prompt_plain() {
    let mut out = io::stdout().lock();
    let _ = out
        .write_all(PLAIN_PROMPT.as_bytes())
        .and_then(|()| out.flush());
}

/// Reads a line that the terminal edits; a trailing backslash continues it.
fn read_plain() -> io::Result<Input> {
    if !is_connected() {
        return Ok(Input::End);
    }
    let mut text = String::new();
    loop {
        prompt_plain();
        if io::stdin().read_line(&mut text)? == 0 {
            return Ok(Input::End);
        }
        let line = text.strip_suffix('\n').unwrap_or(&text);
        if !is_continued(line) {
            return Ok(Input::Text(joined(line)));
        }
    }
}

/// Takes the backslashes away that continued a line.
fn joined(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let last = lines.len().saturating_sub(1);
    let lines: Vec<&str> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            if at < last && is_continued(line) {
                &line[..line.len() - 1]
            } else {
                line
            }
        })
        .collect();
    lines.join("\n")
}

/// Colours commands, and remembers the state of the text for the keys.
struct Commands(Arc<LineState>);

impl Highlighter for Commands {
    fn highlight(&self, line: &str, cursor: usize) -> StyledText {
        self.0.set(line, cursor);
        let colour = match line.chars().next() {
            Some('/') if !line.contains(char::is_whitespace) => Color::Cyan,
            Some('!') => Color::Yellow,
            _ => Color::Default,
        };
        let mut text = StyledText::new();
        text.push((colour.normal(), line.to_owned()));
        text
    }
}

/// The prompt: a line with the state of the session, then the permission mode.
struct StatusPrompt {
    mode: SessionMode,
    status: SessionStatus,
}

impl Prompt for StatusPrompt {
    fn render_prompt_left(&self) -> std::borrow::Cow<'_, str> {
        let width = terminal_size().columns.saturating_sub(1);
        let line = status_line(&self.status, 0, width).to_string();
        match line.is_empty() {
            true => line.into(),
            false => format!("{line}\n").into(),
        }
    }

    fn render_prompt_right(&self) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn get_prompt_color(&self) -> Color {
        Color::DarkGray
    }

    fn render_prompt_indicator(&self, mode: PromptEditMode) -> std::borrow::Cow<'_, str> {
        let sign = match mode {
            PromptEditMode::Vi(PromptViMode::Normal) => ':',
            PromptEditMode::Vi(PromptViMode::Visual) => 'v',
            _ => '›',
        };
        format!("{} {sign} ", self.mode.get().as_str()).into()
    }

    fn render_prompt_multiline_indicator(&self) -> std::borrow::Cow<'_, str> {
        "… ".into()
    }

    fn render_prompt_history_search_indicator(
        &self,
        search: PromptHistorySearch,
    ) -> std::borrow::Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing ",
        };
        format!("({found}found by {:?}) › ", search.term).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_lines_are_joined() {
        assert_eq!(
            joined("one\\\ntwo\nthree\\\\\nfour\\"),
            "one\ntwo\nthree\\\\\nfour\\"
        );
    }
}
