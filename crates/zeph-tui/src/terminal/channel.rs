//! The channel between the agent and the user at the terminal.

mod dialogs;

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::layers::grants::GrantScope;
use zeph_tools::question::{QuestionRequest, ServerAnswer, ServerQuestion};
use zeph_tools::user_terminal::UserTerminal;

use super::check_in_dialog;
use super::key_press::KeyPress;
use super::keyboard::{Keyboard, Pressed, is_connected};
use super::lend::{LendableScreen, OutputEnd, TerminalLender};
use super::notify;
use super::restore;
use super::screen::{DisplayMode, Screen, terminal_size};
use super::server_dialog;
use super::style::{Style, TerminalEnv};
use crate::config::TerminalConfig;
use crate::host::ViewHost;
use crate::sanitize::clean;
use crate::view::render::{render_markdown, to_ansi};

/// The time between two looks at the live region.
const TICK: Duration = Duration::from_millis(33);
/// The keys of a turn.
const TURN_KEYS: &str = "\
Enter      sends the text at the next step of the turn, or after it
Up         returns the last sent text to the prompt
Esc        interrupts the turn; Ctrl-C too, and a second Ctrl-C leaves
Shift-Tab  changes the mode
Ctrl-O     shows the last shortened result in full
Ctrl-G     opens the typed text in $VISUAL or $EDITOR
Ctrl-Z     suspends";

/// The properties of the terminal, and the options of the command line.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(test, derive(Default))]
pub struct TerminalOptions {
    /// The program that runs the view.
    pub host: &'static dyn ViewHost,
    /// How standard output is written to.
    pub stdout: Style,
    /// How standard error is written to.
    pub stderr: Style,
    /// Someone sits at standard input and reads standard error.
    pub can_ask: bool,
    /// `--quiet`: errors alone.
    pub quiet: bool,
    /// `--yes`: every question is answered with "once".
    pub assume_yes: bool,
    /// The terminal understands no escape sequences.
    pub dumb: bool,
    /// The terminal is a window of tmux.
    pub is_in_tmux: bool,
}

impl TerminalOptions {
    /// Detects the properties of this process's streams, with its environment in `env`.
    pub fn detect(
        host: &'static dyn ViewHost,
        env: &TerminalEnv,
        quiet: bool,
        assume_yes: bool,
    ) -> Self {
        let (stdout, stderr) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        restore::note();
        Self {
            host,
            dumb: env.is_dumb(),
            is_in_tmux: env.is_in_tmux,
            stdout: Style::decide(stdout, env, quiet),
            stderr: Style::decide(stderr, env, quiet),
            can_ask: stderr && io::stdin().is_terminal(),
            quiet,
            assume_yes,
        }
    }
}

/// Shows events and asks questions on the terminal; the streams need not be terminals.
pub struct TerminalChannel {
    options: TerminalOptions,
    config: TerminalConfig,
    shared: Arc<Shared>,
    answer: Mutex<Box<dyn Write + Send>>,
    keyboard: Keyboard,
}

pub(super) struct Shared {
    screen: Mutex<Screen>,
    /// The notices that wait while the user types; `None` otherwise.
    held: Mutex<Option<Vec<String>>>,
}

impl Shared {
    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a key that was typed during a turn.
    pub(super) fn press(&self, key: KeyPress) {
        let mut screen = self.screen();
        match key {
            KeyPress::Ctrl('o') => screen.expand(),
            KeyPress::Char('?') if screen.typed().line.is_empty() => screen.say(TURN_KEYS),
            key => screen.press(key),
        }
    }

    /// The typed text, for the user's editor, which gets the screen.
    pub(super) fn begin_editing(&self) -> String {
        let mut screen = self.screen();
        screen.suspend();
        screen.typed().line.text()
    }

    /// Replaces the typed text by the one of the user's editor.
    pub(super) fn end_editing(&self, text: &str) {
        let mut screen = self.screen();
        screen.typed().line.take();
        screen.press(KeyPress::Paste(text.to_owned()));
    }

    /// Writes a sequence that the user does not see.
    pub(super) fn steer(&self, sequence: &str) {
        self.screen().steer(sequence);
    }

    fn release(&self) {
        let held = self.held().take();
        for text in held.into_iter().flatten() {
            self.screen().notice(&text);
        }
    }
}

impl LendableScreen for Shared {
    fn lend(&self) {
        self.held().get_or_insert_default();
        self.screen().lend();
    }

    fn take_back(&self, end: &OutputEnd) {
        self.screen().take_back(&end.reset(), end.is_midline());
        self.release();
    }
}

/// Refreshes an animated screen at regular intervals until nothing moves. Without a runtime nothing is refreshed.
fn animate(shared: &Arc<Shared>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let mut screen = shared.screen();
    if !screen.style().animate || std::mem::replace(&mut screen.has_ticker, true) {
        return;
    }
    drop(screen);
    let shared = Arc::downgrade(shared);
    runtime.spawn(async move {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let shared = shared.upgrade();
            if !shared.is_some_and(|shared| shared.screen().tick(Instant::now())) {
                return;
            }
        }
    });
}

impl TerminalChannel {
    /// Creates a channel for a conversation: all output goes to standard output, and text streams.
    pub fn interactive(options: TerminalOptions, config: TerminalConfig) -> Self {
        let screen = Screen::new(Box::new(io::stdout()), options.stdout, DisplayMode::All);
        let config = TerminalConfig {
            title: config.title && options.stdout.animate,
            ..config
        };
        if config.title {
            restore::note_title();
        }
        Self::new(options, config, screen, Box::new(io::stdout()))
    }

    /// A channel for one turn: the response goes to standard output with [`TerminalChannel::finish_answer`],
    /// everything else to standard error.
    pub fn one_shot(options: TerminalOptions) -> Self {
        let amount = if options.quiet {
            DisplayMode::Quiet
        } else {
            DisplayMode::Aside
        };
        let screen = Screen::new(Box::new(io::stderr()), options.stderr, amount);
        let config = TerminalConfig {
            title: false,
            ..TerminalConfig::default()
        };
        Self::new(options, config, screen, Box::new(io::stdout()))
    }

    fn new(
        options: TerminalOptions,
        config: TerminalConfig,
        screen: Screen,
        answer: Box<dyn Write + Send>,
    ) -> Self {
        Self {
            options,
            config,
            shared: Arc::new(Shared {
                screen: Mutex::new(screen),
                held: Mutex::default(),
            }),
            answer: Mutex::new(answer),
            keyboard: Keyboard::default(),
        }
    }

    /// Prints the response of a one-shot turn: unchanged and with one newline at its end, or, on a coloured terminal,
    /// rendered. An empty response prints nothing.
    ///
    /// # Errors
    /// Errors of writing; a closed pipe is not an error.
    pub fn finish_answer(&self, text: &str) -> io::Result<()> {
        self.screen().end_turn();
        let text = text.trim_end_matches('\n');
        if text.is_empty() {
            return Ok(());
        }
        let style = self.options.stdout;
        let shown = if style.colour {
            let lines = render_markdown(text, terminal_size().columns);
            let lines = lines.iter().map(|line| to_ansi(line, true) + "\n");
            lines.collect()
        } else if style.terminal {
            format!("{}\n", clean(text))
        } else {
            format!("{text}\n")
        };
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        match answer
            .write_all(shown.as_bytes())
            .and_then(|()| answer.flush())
        {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Prints the reason of a failed turn to the stream for everything except the response.
    pub fn error(&self, text: &str) {
        let mut screen = self.screen();
        screen.end_turn();
        screen.error(&self.options.host.redacted(text));
    }

    /// Starts to show a turn. If it reads keys, typed keys reach the input line.
    pub(super) fn begin_turn(&self, reads_keys: bool) {
        self.screen().begin_turn(reads_keys);
        self.set_title("working");
        animate(&self.shared);
    }

    /// Shows the end of a turn that took `time` without the time in which the user was asked. Returns the time that the
    /// turn itself took.
    pub(super) fn end_turn(&self, time: Duration) -> Duration {
        let asked = self.screen().end_turn();
        let took = time.saturating_sub(asked);
        self.set_title("ready");
        self.signal("the turn has ended", took);
        took
    }

    /// Shows the state of the session in the title of the window.
    pub(super) fn set_title(&self, text: &str) {
        if self.config.title {
            let mut screen = self.screen();
            let text = match &screen.status().title {
                Some(title) => format!("{text}: {title}"),
                None => text.to_owned(),
            };
            screen.steer(&notify::title(&text));
        }
    }

    /// Signals an event to a user who waited for `waited`, and may look elsewhere.
    fn signal(&self, text: &str, waited: Duration) {
        let mut screen = self.screen();
        if screen.style().animate {
            screen.steer(&notify::signal(&self.config, text, waited));
        }
    }

    /// Queues notices (such as the end of a background job) while the user types, so that they do not interrupt the
    /// line.
    pub(super) fn hold_notices(&self) {
        self.shared.held().get_or_insert_default();
    }

    /// Shows the queued notices after the user has finished typing.
    pub(super) fn release_notices(&self) {
        self.shared.release();
    }

    /// The locked screen.
    pub(super) fn screen(&self) -> MutexGuard<'_, Screen> {
        self.shared.screen()
    }

    /// The part that other threads use.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The right to read keys.
    pub(super) fn keyboard(&self) -> &Keyboard {
        &self.keyboard
    }

    /// `[terminal]`.
    pub(super) fn config(&self) -> &TerminalConfig {
        &self.config
    }

    /// The options of the terminal.
    pub fn options(&self) -> TerminalOptions {
        self.options
    }
}

#[async_trait]
impl Channel for TerminalChannel {
    fn emit(&self, event: LoopbackEvent) {
        if let LoopbackEvent::Notice(text) = &event
            && let Some(held) = &mut *self.shared.held()
        {
            held.push(text.clone());
            return;
        }
        let is_title = matches!(event, LoopbackEvent::Title(_));
        self.screen().event(event, Instant::now());
        if is_title {
            self.set_title("working");
        }
        animate(&self.shared);
    }

    fn take_prompt(&self) -> Option<String> {
        self.screen().typed().take_prompt()
    }

    fn return_prompt(&self, text: String) {
        self.screen().typed().return_prompt(text);
    }

    fn can_ask(&self) -> bool {
        self.options.assume_yes || (self.options.can_ask && is_connected())
    }

    fn shows_questions(&self) -> bool {
        !self.options.assume_yes
    }

    async fn confirm(&self, _call: &str, question: &Confirmation, params: &Value) -> UserAnswer {
        if self.options.assume_yes {
            let tool = &question.tool;
            self.screen().remark(&format!(
                "  {tool} needs confirmation ({}): allowed by --yes",
                question.reason.trim_end_matches('.')
            ));
            return UserAnswer::Once;
        }
        if !self.can_ask() {
            return UserAnswer::No(None);
        }
        let asking = self.open_question();
        let show = self.call_view(question, params);
        let plain = self.options.dumb;
        let pressed = self.keyboard.ask(question.clone(), plain, show).await;
        let (said, answer) = match pressed {
            Pressed::Once => ("once", UserAnswer::Once),
            Pressed::Session => ("this session", UserAnswer::Session),
            Pressed::Always(grants, scope) => {
                let said = match scope {
                    GrantScope::Project(_) => "always, in this project",
                    GrantScope::Global => "always, everywhere",
                };
                (said, UserAnswer::Always(grants, scope))
            }
            Pressed::No(told) => ("no", UserAnswer::No(told)),
        };
        self.close_question(asking, said);
        answer
    }

    fn user_terminal(&self) -> Option<Arc<dyn UserTerminal>> {
        (self.options.can_ask && is_connected()).then(|| {
            let screen = Arc::clone(&self.shared);
            Arc::new(TerminalLender::new(screen, self.keyboard.clone())) as _
        })
    }

    async fn check_in(&self, question: &CheckIn) -> CheckInAnswer {
        let text = check_in_dialog::question(question, self.screen().style());
        let asking = self.open_question();
        let show = self.question_view(text, &check_in_dialog::keys(question));
        let answer = self
            .keyboard
            .read(move |terminal, stop| check_in_dialog::dialog(terminal, stop, show));
        let answer = answer.await.unwrap_or(CheckInAnswer::Stop);
        self.close_question(asking, answer.as_str());
        answer
    }

    async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer {
        // `--yes` approves calls; it fills in no forms and opens no addresses.
        if self.options.assume_yes || !self.can_ask() {
            return ServerAnswer::Decline;
        }
        let text = server_dialog::question(question, self.screen().style());
        let asking = self.open_question();
        let show = self.question_view(text, &server_dialog::keys(question));
        let (asked, plain) = (question.clone(), self.options.dumb);
        let answer = self.keyboard.read(move |terminal, stop| {
            server_dialog::dialog(terminal, stop, (&asked, plain), show)
        });
        let answer = answer.await.unwrap_or(ServerAnswer::Cancel);
        if let (ServerAnswer::Accept(_), QuestionRequest::Url { url }) =
            (&answer, &question.request)
            && let Err(error) = self.options.host.open_url(url)
        {
            let text =
                format!("the browser cannot be started ({error}); open the address manually");
            self.emit(LoopbackEvent::Notice(text));
        }
        let said = match answer {
            ServerAnswer::Accept(_) => "accepted",
            ServerAnswer::Decline => "declined",
            ServerAnswer::Cancel => "cancelled",
        };
        self.close_question(asking, said);
        answer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_tools::{OutputStream, Risk, ToolErrorCategory};

    use super::*;

    /// A writer that stores its output.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A closed pipe.
    struct Broken(Arc<Mutex<usize>>);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            *self.0.lock().unwrap() += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const PLAIN: Style = Style {
        terminal: true,
        colour: false,
        animate: false,
    };
    const COLOUR: Style = Style {
        terminal: true,
        colour: true,
        animate: false,
    };

    fn channel(options: TerminalOptions, amount: DisplayMode) -> (TerminalChannel, Kept, Kept) {
        let (err, out) = (Kept::default(), Kept::default());
        let screen = Screen::new(Box::new(err.clone()), options.stderr, amount);
        (
            TerminalChannel::new(
                options,
                TerminalConfig::default(),
                screen,
                Box::new(out.clone()),
            ),
            err,
            out,
        )
    }

    /// Proves CLI-4b: a command that gets the screen is below the titles of all calls of its batch.
    #[test]
    fn titles_of_a_batch_are_above_a_lent_screen() {
        let options = TerminalOptions {
            stderr: Style {
                animate: true,
                ..PLAIN
            },
            ..TerminalOptions::default()
        };
        let (channel, err, _) = channel(options, DisplayMode::All);
        for (id, command) in [("1", "make"), ("2", "test")] {
            channel.emit(LoopbackEvent::ToolStarted {
                id: id.to_owned(),
                tool: "bash".to_owned(),
                params: json!({ "command": command }),
            });
        }
        channel.shared().lend();
        let text = err.text();
        let above = text.rsplit("\x1b[J").next().unwrap();
        assert!(
            above.contains("$ make\n") && above.contains("$ test\n"),
            "{text:?}"
        );
    }

    fn call(channel: &TerminalChannel, id: &str, output: &[&str], display: &str) {
        channel.emit(LoopbackEvent::ToolStarted {
            id: id.to_owned(),
            tool: "bash".to_owned(),
            params: json!({"command": "make"}),
        });
        for text in output {
            channel.emit(LoopbackEvent::ToolOutput {
                id: id.to_owned(),
                stream: OutputStream::Stdout,
                text: (*text).to_owned(),
                skipped_lines: 0,
            });
        }
        channel.emit(LoopbackEvent::ToolFinished {
            id: id.to_owned(),
            tool: "bash".to_owned(),
            failure: None,
            display: display.to_owned(),
            filter: None,
            locations: Vec::new(),
            changes: Vec::new(),
            duration_ms: 3,
        });
    }

    fn text(channel: &TerminalChannel, text: &str) {
        channel.emit(LoopbackEvent::Text(text.to_owned()));
    }

    /// Proves CLI-2b in text mode: only the response is on standard output, unchanged.
    #[test]
    fn only_the_response_is_on_standard_output() {
        let (channel, err, out) = channel(TerminalOptions::default(), DisplayMode::Aside);
        channel.emit(LoopbackEvent::Requesting { iteration: 1 });
        text(&channel, "I will ");
        text(&channel, "look.");
        call(&channel, "1", &["a\n", "b", "b\nc"], "a\nbb\nc");
        channel.emit(LoopbackEvent::Notice("watch out".to_owned()));
        channel.emit(LoopbackEvent::Requesting { iteration: 2 });
        text(&channel, "The *answer*\x1b[1m");
        channel.finish_answer("The *answer*\x1b[1m\n\n").unwrap();
        assert_eq!(out.text(), "The *answer*\x1b[1m\n");
        assert_eq!(
            err.text(),
            "I will look.\n\n● $ make\n  ⎿ a\n    bb\n    c\nwatch out\n"
        );
    }

    #[test]
    fn notices_during_typing_are_shown_afterwards() {
        let (channel, err, _) = channel(TerminalOptions::default(), DisplayMode::Aside);
        channel.hold_notices();
        channel.emit(LoopbackEvent::Notice("job-1 ended".to_owned()));
        assert_eq!(err.text(), "");
        channel.release_notices();
        assert_eq!(err.text(), "job-1 ended\n");
        channel.emit(LoopbackEvent::Notice("job-2 ended".to_owned()));
        assert_eq!(err.text(), "job-1 ended\njob-2 ended\n");
    }

    /// Proves CLI-3 for `--quiet`.
    #[test]
    fn quiet_mode_shows_only_errors() {
        let options = TerminalOptions {
            quiet: true,
            ..TerminalOptions::default()
        };
        let (channel, err, out) = channel(options, DisplayMode::Quiet);
        text(&channel, "I will look.");
        call(&channel, "1", &["a\n"], "a");
        channel.emit(LoopbackEvent::Notice("watch out".to_owned()));
        channel.screen().remark("cost");
        channel.error("it broke");
        channel.finish_answer("yes").unwrap();
        assert_eq!(
            (err.text().as_str(), out.text().as_str()),
            ("error: it broke\n", "yes\n")
        );
    }

    /// Proves CLI-4 for an interactive turn.
    #[test]
    fn conversation_is_shown_as_it_happens() {
        let options = TerminalOptions {
            stderr: COLOUR,
            ..TerminalOptions::default()
        };
        let (channel, shown, _) = channel(options, DisplayMode::All);
        text(&channel, "Let me **lo");
        text(&channel, "ok** there\n\nNow\n");
        assert_eq!(clean(&shown.text()).trim_end(), "Let me look there");
        call(&channel, "1", &[], "one line");
        text(&channel, "# Done\n\nwell");
        channel.screen().end_turn();
        let all = clean(&shown.text());
        let expect = "Now\n\n● $ make\n  ⎿ one line\n\n# Done\n\nwell\n";
        assert!(all.ends_with(expect), "{all}");
        assert!(shown.text().contains("\x1b[1mlook\x1b[0m"));
    }

    #[test]
    fn plain_text_has_only_controls_removed() {
        let options = TerminalOptions {
            stderr: PLAIN,
            stdout: PLAIN,
            ..TerminalOptions::default()
        };
        let (channel, shown, out) = channel(options, DisplayMode::All);
        text(&channel, "**a** \x1b[");
        text(&channel, "31mb\x1b[0m\n");
        channel.finish_answer("**a** \x1b[31mb").unwrap();
        assert_eq!(shown.text(), "**a** b\n");
        assert_eq!(out.text(), "**a** b\n");
    }

    /// Proves CLI-4b: a long result shows its end and its errors.
    #[test]
    fn long_result_shows_its_end_and_errors() {
        let (channel, shown, _) = channel(TerminalOptions::default(), DisplayMode::All);
        let lines: String = (0..50).map(|n| format!("line {n}\n")).collect();
        let lines = lines.replace("line 9\n", "error: line 9\n");
        call(&channel, "1", &[&lines], &lines);
        let shown = shown.text();
        for words in ["50 lines", "error: line 9", "line 49", "Ctrl-O"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("line 0\n"), "{shown}");
    }

    /// Proves CLI-4b: the results of a batch are below their calls, in the order of the calls.
    #[test]
    fn results_of_a_batch_are_below_their_calls() {
        let (channel, shown, _) = channel(TerminalOptions::default(), DisplayMode::All);
        let finished = |id: &str| LoopbackEvent::ToolFinished {
            id: id.to_owned(),
            tool: "read".to_owned(),
            failure: None,
            display: format!("of {id}"),
            filter: None,
            locations: Vec::new(),
            changes: Vec::new(),
            duration_ms: 0,
        };
        for id in ["a", "b"] {
            channel.emit(LoopbackEvent::ToolStarted {
                id: id.to_owned(),
                tool: "read".to_owned(),
                params: json!({"path": id}),
            });
        }
        channel.emit(finished("b"));
        channel.emit(finished("a"));
        let expect = "● Read a\n  ⎿ of a\n● Read b\n  ⎿ of b\n";
        assert_eq!(shown.text(), expect);
    }

    #[test]
    fn failures_are_shown() {
        let (channel, shown, _) = channel(TerminalOptions::default(), DisplayMode::All);
        channel.emit(LoopbackEvent::ToolStarted {
            id: "1".to_owned(),
            tool: "read".to_owned(),
            params: json!({"path": "x"}),
        });
        channel.emit(LoopbackEvent::ToolFinished {
            id: "1".to_owned(),
            tool: "read".to_owned(),
            failure: Some(ToolErrorCategory::PermanentFailure),
            display: "x does not exist".to_owned(),
            filter: None,
            locations: Vec::new(),
            changes: Vec::new(),
            duration_ms: 0,
        });
        assert_eq!(shown.text(), "● Read x\n  ⎿ x does not exist\n");
    }

    /// Proves CLI-3: a broken pipe is quiet, and nothing is written to it again.
    #[test]
    fn broken_pipe_is_not_written_again() {
        let writes = Arc::new(Mutex::new(0));
        let broken = || Box::new(Broken(Arc::clone(&writes)));
        let screen = Screen::new(broken(), Style::default(), DisplayMode::All);
        let channel = TerminalChannel::new(
            TerminalOptions::default(),
            TerminalConfig::default(),
            screen,
            broken(),
        );
        text(&channel, "a\n");
        call(&channel, "1", &["b\n"], "b");
        assert_eq!(*writes.lock().unwrap(), 1);
        channel.finish_answer("answer").unwrap();
        assert_eq!(*writes.lock().unwrap(), 2);
    }

    fn confirmation() -> Confirmation {
        Confirmation {
            tool: "bash".to_owned(),
            subject: "make".to_owned(),
            risk: Risk::High,
            reason: "no rule allows it.".to_owned(),
            ..Confirmation::default()
        }
    }

    /// Proves CLI-2b for `--yes`: no question is shown, and the output says so.
    #[tokio::test]
    async fn assumed_yes_is_shown() {
        let options = TerminalOptions {
            assume_yes: true,
            ..TerminalOptions::default()
        };
        let (channel, shown, _) = channel(options, DisplayMode::Aside);
        assert!(channel.can_ask());
        let answer = channel
            .confirm("1", &confirmation(), &json!({"command": "make"}))
            .await;
        assert_eq!(answer, UserAnswer::Once);
        assert_eq!(
            shown.text(),
            "  bash needs confirmation (no rule allows it): allowed by --yes\n"
        );
    }

    /// Proves PERM-2 without a user: the call is refused.
    #[tokio::test]
    async fn confirmation_without_a_user_is_refused() {
        let (channel, shown, _) = channel(TerminalOptions::default(), DisplayMode::Aside);
        assert!(!channel.can_ask());
        let answer = channel.confirm("1", &confirmation(), &json!({})).await;
        assert_eq!(
            (answer, shown.text()),
            (UserAnswer::No(None), String::new())
        );
    }

    /// Proves CLI-4 for the spinner: it is drawn with the time during a long operation, and erased before other
    /// output.
    #[tokio::test]
    async fn spinner_is_drawn_and_erased() {
        let style = Style {
            animate: true,
            ..PLAIN
        };
        let options = TerminalOptions {
            stderr: style,
            ..TerminalOptions::default()
        };
        let (channel, shown, _) = channel(options, DisplayMode::All);
        let start = std::time::Instant::now();
        channel.emit(LoopbackEvent::Requesting { iteration: 1 });
        let drawn = async {
            while !shown.text().contains("waiting for the model 0.") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), drawn)
            .await
            .unwrap();
        assert!(start.elapsed() >= std::time::Duration::from_millis(300));
        text(&channel, "hello\n");
        channel.screen().end_turn();
        let mut screen = vt100::Parser::new(24.try_into().unwrap(), 80.try_into().unwrap(), 0);
        screen.process(shown.text().as_bytes());
        assert_eq!(screen.screen().contents(), "hello");
    }
}
