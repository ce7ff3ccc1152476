//! The event loop: keys, timers and signals on one side, turns of the agent on the other.

use std::io::{self, Stdout, Write as _, stdout};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use zeph_core::{Reply, TurnEnd};
use zeph_tools::permission_mode::SessionMode;
use zeph_tools::plural::pluralize;

use super::app::{Action, App, Turn};
use super::channel::{Model, Shared, TuiChannel, TuiOptions};
use super::completion::Completion;
use super::dialog::Dialog;
use super::draw::{Scene, draw};
use super::input::Input;
use super::keys::{KeyReader, TerminalInput};
use super::screen::{self, FullScreen};
use crate::output::redact::redacted;
use crate::terminal::signals::Handles;
use crate::terminal::{
    Converse, InteractiveOptions, SessionEnd, Words, clipboard_sequence, cost_line, trouble,
};
use crate::view::{Block, Resources, Severity};

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// The time between two frames while the activity indicator moves.
const MOTION: Duration = Duration::from_millis(100);

/// Reads the resources of the session with this id.
pub(crate) type ReadResources = Arc<dyn Fn(&str) -> Resources + Send + Sync>;

/// Holds a conversation on the full screen. Standard input and output have to be terminals.
///
/// # Errors
/// If the terminal cannot be used.
pub(crate) async fn run(
    conversation: &mut impl Converse,
    channel: Arc<TuiChannel>,
    options: InteractiveOptions,
    resources: ReadResources,
) -> anyhow::Result<SessionEnd> {
    let _handles = Handles::signals();
    let session = conversation.agent().session().to_owned();
    let mut ui = Ui::start(&channel, &options, resources, session)?;
    ui.show_session(conversation).await;
    ui.app.queue.extend(options.first_input);
    let end = loop {
        let text = match ui.app.queue.pop_front() {
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
                    Action::Submit(text) => {
                        ui.app.queue.push_back(text);
                        ui.is_dirty = true;
                    }
                    Action::Interrupt => cancel.cancel(),
                    Action::Leave(end) => break Err(end),
                    _ => {}
                }
            }
        };
        ui.end_turn();
        let took = channel.shared().turn_time(start);
        match reply {
            Err(end) => break end,
            Ok(Reply::Quit) => break SessionEnd::Left,
            Ok(Reply::Switch(to)) => {
                let switched = conversation.switch(to).await;
                let is_other = conversation.agent().session() != ui.session;
                if is_other {
                    ui.session = conversation.agent().session().to_owned();
                    ui.show_session(conversation).await;
                }
                ui.show_model(conversation);
                let switched = switched.map_err(|error| format!("{error:#}"));
                ui.show(&switched.into(), took);
            }
            Ok(reply) => ui.show(&reply, took),
        }
    };
    Ok(end)
}

/// The interface with its sources of events.
struct Ui {
    app: App,
    shared: Arc<Shared>,
    options: TuiOptions,
    terminal: Terminal<CrosstermBackend<Stdout>>,
    completion: Completion,
    signals: Signals,
    resources: ReadResources,
    mode: SessionMode,
    /// The id of the session.
    session: String,
    /// Something has changed since the last frame.
    is_dirty: bool,
    /// The time of the next frame at the earliest.
    next_frame: Instant,
    reader: KeyReader,
    _screen: FullScreen,
}

impl Ui {
    fn start(
        channel: &TuiChannel,
        options: &InteractiveOptions,
        resources: ReadResources,
        session: String,
    ) -> anyhow::Result<Self> {
        let shared = Arc::clone(channel.shared());
        let signals = Signals::new().context("signals cannot be waited for")?;
        let words = Words::new(options.project.clone(), Arc::clone(&options.models));
        let completion = Completion::start(words).context("the completion cannot be started")?;
        let (input, history_problem) = Input::new(&options.history_file);
        let screen = FullScreen::enter().context("the terminal cannot be used")?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))
            .context("the terminal cannot be used")?;
        let reader = KeyReader::start().context("keys cannot be read")?;
        shared.set_reader(Some(Arc::clone(reader.control())));
        shared.change(|model| {
            if !channel.options().quiet {
                let (version, directory) = (env!("CARGO_PKG_VERSION"), options.project.display());
                let text = format!("zeph {version}  {}  {directory}", options.model);
                model.transcript.message(Severity::Remark, text);
            }
            for notice in options.notice.iter().chain(&history_problem) {
                model.transcript.message(Severity::Notice, notice.clone());
            }
            options
                .model
                .clone_into(&mut model.transcript.status_mut().model);
        });
        Ok(Self {
            app: App::new(input),
            shared,
            options: channel.options(),
            terminal,
            completion,
            signals,
            resources,
            mode: options.permissions.mode.clone(),
            session,
            is_dirty: true,
            next_frame: Instant::now(),
            reader,
            _screen: screen,
        })
    }

    /// Draws and handles inputs until the user acts. If the future is dropped, nothing is lost.
    async fn next(&mut self) -> Action {
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
                _ = self.signals.interrupt.recv() => self.app.interrupt(Instant::now()),
                input = self.reader.next() => self.input(input),
                Some(suggestions) = self.completion.next() => {
                    self.app.suggest(suggestions);
                    None
                }
                () = self.shared.changed() => None,
                _ = self.signals.resize.recv() => None,
                () = sleep_until(wake) => self.app.tick(Instant::now()),
            };
            self.is_dirty = true;
            match action {
                None => {}
                Some(Action::Answer(id, answer)) => self.shared.answer(id, answer),
                Some(Action::Complete(text, cursor)) => self.completion.request(&text, cursor),
                Some(Action::Redraw) => self.shared.change(|model| model.is_overwritten = true),
                Some(Action::Suspend) => {
                    self.suspend();
                }
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
        follow_question(&mut self.app, model);
        if std::mem::take(&mut model.is_overwritten) {
            let size = self.terminal.size()?;
            self.terminal.resize(size.into())?;
        }
        model.transcript.status_mut().mode = Some(self.mode.get());
        let resources = (self.resources)(&self.session);
        let scene = Scene {
            all: &model.transcript,
            resources: &resources,
            now,
            has_colour: self.options.colour,
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

    fn begin_turn(&mut self, text: &str) {
        self.app.turn = Turn::Working;
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
        self.shared.change(|model| model.transcript.end_turn());
        self.is_dirty = true;
    }

    /// Shows the result of an input.
    fn show(&mut self, reply: &Reply, took: Duration) {
        let quiet = self.options.quiet;
        self.shared.change(|model| match reply {
            Reply::Text(text) | Reply::Diff(text) => {
                model.push(Block::Reply(redacted(text).into_owned()));
            }
            Reply::Copy(text) => {
                let mut out = stdout().lock();
                // A terminal that is gone ends the loop elsewhere.
                let _ = out.write_all(clipboard_sequence(text).as_bytes());
                let length = pluralize(text.chars().count(), "character");
                let text = format!("{length} copied, if the terminal allows OSC 52");
                model.transcript.message(Severity::Remark, text);
            }
            Reply::Failed(reason) | Reply::Usage(reason) => {
                let text = redacted(reason).into_owned();
                model.transcript.message(Severity::Error, text);
            }
            Reply::Turn(outcome) => {
                if let Some(text) = trouble(outcome) {
                    let severity = match outcome.end {
                        TurnEnd::Error => Severity::Error,
                        _ => Severity::Notice,
                    };
                    let text = redacted(&text).into_owned();
                    model.transcript.message(severity, text);
                }
                if !quiet {
                    let text = cost_line(outcome.usage, outcome.cost, took);
                    model.transcript.message(Severity::Remark, text);
                }
            }
            Reply::Nothing | Reply::Ran | Reply::Switch(_) | Reply::Quit => {}
        });
    }

    /// Shows the stored conversation of the session.
    async fn show_session(&mut self, conversation: &impl Converse) {
        let events = conversation.stored_events().await;
        let now = Instant::now();
        let is_empty = self.shared.model().transcript.blocks().is_empty();
        self.app.blocks.reset();
        self.app.panel.toggled.clear();
        self.shared.change(|model| match events {
            Ok(events) => {
                let status = model.transcript.status().clone();
                if !is_empty && !events.is_empty() {
                    model.transcript = crate::view::Transcript::default();
                    model.transcript.status_mut().model = status.model;
                }
                for event in events {
                    model.transcript.apply(event, now);
                }
                model.transcript.end_turn();
            }
            Err(error) => {
                let text = format!("the stored conversation cannot be shown: {error:#}");
                model
                    .transcript
                    .message(Severity::Error, redacted(&text).into_owned());
            }
        });
    }

    fn show_model(&mut self, conversation: &impl Converse) {
        self.shared.change(|model| {
            conversation
                .model()
                .clone_into(&mut model.transcript.status_mut().model);
        });
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        self.shared.set_reader(None);
        self.reader.discard();
    }
}

/// Opens the dialog of the first open question, and closes the one of an answered or withdrawn question.
fn follow_question(app: &mut App, model: &Model) {
    let id = app.dialog.as_ref().map(|dialog| dialog.id);
    match model.questions.front() {
        Some(open) if id != Some(open.id) => {
            app.dialog = Some(Dialog::new(open.id, Arc::clone(&open.question)));
        }
        Some(_) => {}
        None => app.dialog = None,
    }
}

/// Sleeps until a time; forever without one.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    resize: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resize: signal(SignalKind::window_change())?,
        })
    }
}
