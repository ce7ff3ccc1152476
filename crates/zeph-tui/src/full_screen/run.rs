//! The event loop: keys, timers and signals on one side, turns of the agent on the other.

use std::io::{self, Stdout, stdout};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use tokio_util::sync::CancellationToken;
use zeph_core::{Reply, SessionSwitch, next_mode};
use zeph_tools::permission_mode::SessionMode;

use super::app::{Action, App, Turn};
use super::attention::Attention;
use super::channel::{Model, Shared, TuiChannel};
use super::completion::Completion;
use super::dialog::Dialog;
use super::draw::{Scene, draw};
use super::input::Input;
use super::key_reader::{KeyReader, TerminalInput};
use super::screen::{self, FullScreen};
use super::show::Chosen;
use super::signals::Signals;
use crate::terminal::external_editor::{Editing, finished};
use crate::terminal::signals::Handles;
use crate::terminal::{
    Converse, InteractiveOptions, SessionEnd, TerminalOptions, Words, branch_of, enter_full_screen,
    is_broken_off,
};
use crate::view::{Block, Resources, Severity};

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// The time between two frames while the activity indicator moves.
const MOTION: Duration = Duration::from_millis(100);

/// Reads the resources of the session with this id.
pub type ReadResources = Arc<dyn Fn(&str) -> Resources + Send + Sync>;

/// Holds a conversation on the full screen. Standard input and output have to be terminals.
///
/// # Errors
/// If the terminal cannot be used.
pub async fn run_full_screen(
    conversation: &mut impl Converse,
    channel: Arc<TuiChannel>,
    options: InteractiveOptions,
    resources: ReadResources,
) -> anyhow::Result<SessionEnd> {
    let _handles = Handles::signals();
    let session = conversation.agent().session().to_owned();
    let (mut ui, history_problem) = Ui::start(&channel, &options, resources, session)?;
    ui.show_session(conversation).await;
    for notice in options.notices.into_iter().chain(history_problem) {
        ui.message(Severity::Notice, notice);
    }
    let queue = |text| ui.shared.change(|model| model.queue.push(text));
    options.first_input.into_iter().for_each(queue);
    let end = loop {
        let text = match ui.take_queued() {
            Some(text) => text,
            None => match ui.next().await {
                Action::Submit(text) => text,
                Action::Leave(end) => break end,
                _ => continue,
            },
        };
        ui.begin_turn(&text);
        let start = Instant::now();
        let cancel = CancellationToken::new();
        let reply = {
            let mut turn = pin!(conversation.agent().handle(&text, &cancel));
            loop {
                let action = tokio::select! {
                    biased;
                    reply = &mut turn => break Ok(reply),
                    action = ui.next() => action,
                };
                match action {
                    Action::Submit(text) => ui.shared.change(|model| model.queue.push(text)),
                    Action::Interrupt => cancel.cancel(),
                    Action::Leave(end) => break Err(end),
                    _ => {}
                }
            }
        };
        ui.end_turn();
        if let Err(error) = conversation.save_choices().await {
            let text = ui.options.host.redacted(&format!("{error:#}")).into_owned();
            ui.message(Severity::Warning, text);
        }
        let took = channel.shared().turn_time(start);
        ui.attention.signal("the turn has ended", took);
        match reply {
            Err(end) => break end,
            Ok(Reply::Quit) => break SessionEnd::Left,
            Ok(Reply::Switch(SessionSwitch::ChooseSession)) => {
                match ui.choose_session(conversation).await {
                    Ok(Chosen::Session(id)) => {
                        let to = SessionSwitch::Session(id);
                        ui.switch(conversation, to, took).await;
                    }
                    Ok(Chosen::Nothing) => {
                        ui.show(&Reply::Text("the session stays the same".to_owned()), took);
                    }
                    Ok(Chosen::Leave(end)) => break end,
                    Err(error) => ui.show(&Reply::Failed(format!("{error:#}")), took),
                }
            }
            Ok(Reply::Switch(to)) => ui.switch(conversation, to, took).await,
            Ok(reply) => {
                ui.show(&reply, took);
                if is_broken_off(&reply) {
                    ui.return_queue();
                }
            }
        }
    };
    Ok(end)
}

/// The interface with its sources of events.
pub(super) struct Ui {
    pub(super) app: App,
    pub(super) attention: Attention,
    /// The text of the prompt that is open in the user's editor.
    pub(super) editing: Option<Editing>,
    /// The command of the user's editor.
    pub(super) external_editor: Option<String>,
    pub(super) project: PathBuf,
    pub(super) turn_began: Instant,
    pub(super) shared: Arc<Shared>,
    pub(super) options: TerminalOptions,
    /// It is never dropped, because it would then print an error about a terminal that is gone. That print panics.
    pub(super) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    pub(super) completion: Completion,
    pub(super) signals: Signals,
    pub(super) resources: ReadResources,
    pub(super) mode: SessionMode,
    /// The id of the session.
    pub(super) session: String,
    /// Something has changed since the last frame.
    pub(super) is_dirty: bool,
    /// The time of the next frame at the earliest.
    pub(super) next_frame: Instant,
    pub(super) reader: KeyReader,
    pub(super) _screen: FullScreen,
}

impl Ui {
    /// Opens the full screen. The second value is the reason if the history of inputs cannot be used.
    fn start(
        channel: &TuiChannel,
        options: &InteractiveOptions,
        resources: ReadResources,
        session: String,
    ) -> anyhow::Result<(Self, Option<String>)> {
        let shared = Arc::clone(channel.shared());
        let signals = Signals::new().context("signals cannot be received")?;
        let words = Words::new(options.project.clone(), Arc::clone(&options.models));
        let completion = Completion::start(words).context("the completion cannot be started")?;
        let (config, terminal_options) = (channel.config(), channel.options());
        let (input, history_problem) =
            Input::new(&options.history_file, config.keys, terminal_options.host);
        let screen = FullScreen::enter().context("the terminal cannot be used")?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))
            .context("the terminal cannot be used")?;
        let reader = KeyReader::start().context("keys cannot be read")?;
        shared.set_reader(Some(Arc::clone(reader.control())));
        shared.change(|model| {
            if !terminal_options.quiet {
                let (version, directory) = (env!("CARGO_PKG_VERSION"), options.project.display());
                let text = format!("zeph {version}  {}  {directory}", options.model);
                model.transcript.message(Severity::Remark, text);
            }
            options
                .model
                .clone_into(&mut model.transcript.status_mut().model);
        });
        let ui = Self {
            app: App::new(input),
            attention: Attention::new(config.clone()),
            editing: None,
            external_editor: options.external_editor.clone(),
            project: options.project.clone(),
            turn_began: Instant::now(),
            shared,
            options: terminal_options,
            terminal: ManuallyDrop::new(terminal),
            completion,
            signals,
            resources,
            mode: options.permissions.mode.clone(),
            session,
            is_dirty: true,
            next_frame: Instant::now(),
            reader,
            _screen: screen,
        };
        Ok((ui, history_problem))
    }

    /// Draws and handles inputs until the user acts. If the future is dropped, nothing is lost.
    pub(super) async fn next(&mut self) -> Action {
        loop {
            let now = Instant::now();
            if self.is_dirty && now >= self.next_frame && self.draw(now).is_err() {
                return Action::Leave(SessionEnd::Interrupted);
            }
            let wake = self.wake(Instant::now());
            let action = tokio::select! {
                biased;
                _ = self.signals.terminate.recv() => Some(Action::Leave(SessionEnd::Interrupted)),
                _ = self.signals.hangup.recv() => Some(Action::Leave(SessionEnd::Interrupted)),
                // In the user's editor, Ctrl-C belongs to it.
                _ = self.signals.interrupt.recv(), if self.editing.is_none() => {
                    self.app.interrupt(Instant::now())
                }
                edited = finished(&mut self.editing) => {
                    self.edited(edited);
                    return Action::Redraw;
                }
                input = self.reader.next() => self.input(input),
                Some(suggestions) = self.completion.next() => {
                    self.app.suggest(suggestions);
                    None
                }
                () = self.shared.changed() => None,
                _ = self.signals.resize.recv() => None,
                _ = self.signals.resume.recv() => {
                    self.resumed();
                    None
                }
                () = sleep_until(wake) => self.app.tick(Instant::now()),
            };
            self.is_dirty = true;
            match action {
                None => {}
                Some(Action::Answer(id, answer)) => self.shared.answer(id, answer),
                Some(Action::Complete(text, cursor)) => self.completion.request(&text, cursor),
                Some(Action::Redraw) => self.shared.change(|model| model.is_overwritten = true),
                Some(Action::Suspend) => self.suspend(),
                Some(Action::NextMode) => self.mode.set(next_mode(self.mode.get())),
                Some(Action::TakeBack) => self.take_back(),
                Some(Action::Edit) => self.edit(),
                Some(action) => return action,
            }
        }
    }

    fn input(&mut self, input: TerminalInput) -> Option<Action> {
        match input {
            TerminalInput::Closed => Some(Action::Leave(SessionEnd::Interrupted)),
            TerminalInput::Event(event, at) => {
                let model = self.shared.model();
                self.app.handle(event, at, &model.transcript)
            }
        }
    }

    /// The time at which something happens without an input; `None` if nothing does.
    fn wake(&self, now: Instant) -> Option<Instant> {
        let frame = self.is_dirty.then_some(self.next_frame);
        let motion = (self.app.turn != Turn::Idle).then(|| now + MOTION);
        let deadline = self.app.deadline(now);
        [frame, motion, deadline].into_iter().flatten().min()
    }

    fn draw(&mut self, now: Instant) -> io::Result<()> {
        let mut model = self.shared.model();
        let model = &mut *model;
        if model.is_lent {
            self.is_dirty = false;
            return Ok(());
        }
        if follow_question(&mut self.app, model) {
            let waited = self.turn_began.elapsed().saturating_sub(model.asked());
            self.attention
                .signal("a question waits for your decision", waited);
        }
        let state = match (&self.app.dialog, self.app.turn) {
            (Some(_), _) => "question",
            (None, Turn::Idle) => "ready",
            (None, _) => "working",
        };
        let title = model.transcript.status().title.as_deref();
        self.attention.show_title(state, title);
        if std::mem::take(&mut model.is_overwritten) {
            let size = self.terminal.size()?;
            self.terminal.resize(size.into())?;
        }
        model.transcript.status_mut().mode = Some(self.mode.get());
        let resources = (self.resources)(&self.session);
        let scene = Scene {
            all: &model.transcript,
            queue: &model.queue,
            resources: &resources,
            now,
            has_colour: self.options.stdout.colour,
        };
        self.terminal
            .draw(|frame| draw(frame, &mut self.app, &scene))?;
        self.is_dirty = false;
        // A slow terminal or a long text must not take all the time of this thread.
        self.next_frame = Instant::now() + FRAME.max(now.elapsed());
        Ok(())
    }

    fn suspend(&mut self) {
        self.reader.control().pause();
        // A terminal that is gone ends the loop elsewhere.
        let _ = screen::suspend();
        self.reader.control().resume();
        self.shared.change(|model| model.is_overwritten = true);
    }

    /// Shows the screen again after another program has stopped and continued this process.
    fn resumed(&mut self) {
        if !self.shared.model().is_lent {
            // A terminal that is gone ends the loop elsewhere.
            let _ = enter_full_screen();
            self.shared.change(|model| model.is_overwritten = true);
        }
    }

    fn begin_turn(&mut self, text: &str) {
        self.app.turn = Turn::Working;
        self.turn_began = Instant::now();
        let is_typed_command = text.trim_start().starts_with('!');
        self.shared.change(|model| {
            // The call shows a command.
            if !is_typed_command {
                model.push(Block::Prompt(text.to_owned()));
            }
        });
        self.is_dirty = true;
    }

    fn end_turn(&mut self) {
        self.app.turn = Turn::Idle;
        self.app.hint = None;
        let branch = branch_of(&self.project);
        self.shared.change(|model| {
            model.transcript.end_turn();
            model.transcript.status_mut().branch = branch;
        });
        self.is_dirty = true;
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        self.shared.set_reader(None);
        self.reader.discard();
    }
}

/// Opens the dialog of the first open question, and closes the one of an answered or withdrawn question. Returns whether
/// it opened one.
fn follow_question(app: &mut App, model: &Model) -> bool {
    let id = app.dialog.as_ref().map(|dialog| dialog.id);
    match model.questions.front() {
        Some(open) if id != Some(open.id) => {
            app.dialog = Some(Dialog::new(open.id, Arc::clone(&open.question)));
            return true;
        }
        Some(_) => {}
        None => app.dialog = None,
    }
    false
}

/// Sleeps until a time; forever without one.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
