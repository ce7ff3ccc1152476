//! The channel between the agent and the user at the terminal.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::layers::grants::GrantScope;
use zeph_tools::question::{QuestionRequest, ServerAnswer, ServerQuestion};
use zeph_tools::user_terminal::UserTerminal;

use super::check_in_dialog;
use super::confirm_dialog;
use super::keyboard::{Keyboard, Pressed, Show, is_connected};
use super::lend::{LendableScreen, OutputEnd, TerminalLender};
use super::markdown::Markdown;
use super::restore::{self, LEAVE_PASTES, MARK_PASTES};
use super::screen::{DisplayMode, Screen};
use super::server_dialog;
use super::spinner::{WithSpinner, animate};
use super::style::{Style, TerminalEnv};
use crate::browser;
use crate::config::Environment;
use crate::output::redact::redacted;
use crate::output::sanitize::clean;

/// The properties of the terminal, and the options of the command line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TerminalOptions {
    /// How standard output is written to.
    pub(crate) stdout: Style,
    /// How standard error is written to.
    pub(crate) stderr: Style,
    /// Someone sits at standard input and reads standard error.
    pub(crate) can_ask: bool,
    /// `--quiet`: errors alone.
    pub(crate) quiet: bool,
    /// `--yes`: every question is answered with "once".
    pub(crate) assume_yes: bool,
    /// The terminal understands no escape sequences.
    pub(crate) dumb: bool,
}

impl TerminalOptions {
    /// Detects the properties of this process's streams and environment.
    pub(crate) fn detect(quiet: bool, assume_yes: bool) -> Self {
        let env = Environment::of_process().unwrap_or_default();
        let var = |name: &str| {
            env.var(name)
                .map(|value| value.to_string_lossy().into_owned())
        };
        let env = TerminalEnv {
            no_color: var("NO_COLOR"),
            term: var("TERM"),
        };
        let (stdout, stderr) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        restore::note();
        Self {
            dumb: env.is_dumb(),
            stdout: Style::decide(stdout, &env, quiet),
            stderr: Style::decide(stderr, &env, quiet),
            can_ask: stderr && io::stdin().is_terminal(),
            quiet,
            assume_yes,
        }
    }
}

/// Shows events and asks questions on the terminal; the streams need not be terminals.
pub(crate) struct TerminalChannel {
    options: TerminalOptions,
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

impl WithSpinner for Shared {
    fn spin(&self, wait: u64) -> bool {
        self.screen().spin(wait)
    }
}

impl TerminalChannel {
    /// A channel for a conversation: everything goes to standard output, text as it streams.
    pub(crate) fn interactive(options: TerminalOptions) -> Self {
        let screen = Screen::new(Box::new(io::stdout()), options.stdout, DisplayMode::All);
        Self::new(options, screen, Box::new(io::stdout()))
    }

    /// A channel for one turn: the response goes to standard output with [`TerminalChannel::finish_answer`],
    /// everything else to standard error.
    pub(crate) fn one_shot(options: TerminalOptions) -> Self {
        let amount = if options.quiet {
            DisplayMode::Quiet
        } else {
            DisplayMode::Aside
        };
        let screen = Screen::new(Box::new(io::stderr()), options.stderr, amount);
        Self::new(options, screen, Box::new(io::stdout()))
    }

    fn new(options: TerminalOptions, screen: Screen, answer: Box<dyn Write + Send>) -> Self {
        Self {
            options,
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
    pub(crate) fn finish_answer(&self, text: &str) -> io::Result<()> {
        self.screen().end_turn();
        let text = text.trim_end_matches('\n');
        if text.is_empty() {
            return Ok(());
        }
        let style = self.options.stdout;
        let shown = if style.colour {
            let mut out = String::new();
            let mut markdown = Markdown::default();
            markdown.push(text, &mut out);
            markdown.finish(&mut out);
            out
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

    /// Shows why the turn failed, on the stream of everything except the response.
    pub(crate) fn error(&self, text: &str) {
        let mut screen = self.screen();
        screen.end_turn();
        screen.error(&redacted(text));
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

    /// Opens a question: notices wait until the returned guard is dropped.
    fn open_question(&self) -> Asking {
        self.hold_notices();
        Asking {
            shared: Arc::clone(&self.shared),
            keyboard: self.keyboard.clone(),
            marks_pastes: !self.options.dumb,
            answer: "cancelled",
        }
    }

    /// A function that shows the parts of the question `text` with the line `keys`.
    fn question_view(
        &self,
        text: String,
        keys: &str,
    ) -> impl Fn(Show<'_>) + Send + 'static + use<> {
        let (shared, marks_pastes) = (Arc::clone(&self.shared), !self.options.dumb);
        let keys = format!("\n{keys}");
        move |show| {
            let mut screen = shared.screen();
            match show {
                Show::Question => {
                    if marks_pastes {
                        restore::note_pastes(true);
                        screen.steer(MARK_PASTES);
                    }
                    screen.ask(&text);
                }
                Show::Keys => screen.ask_more(&keys),
                Show::Reason => screen.ask_reason(),
                Show::Text(text) => screen.ask_more(text),
            }
        }
    }

    /// The locked screen.
    pub(super) fn screen(&self) -> MutexGuard<'_, Screen> {
        self.shared.screen()
    }

    /// The right to read keys.
    pub(super) fn keyboard(&self) -> &Keyboard {
        &self.keyboard
    }

    /// The options of the terminal.
    pub(crate) fn options(&self) -> TerminalOptions {
        self.options
    }
}

/// Ends the question on the screen, even if the turn is cancelled meanwhile.
struct Asking {
    shared: Arc<Shared>,
    keyboard: Keyboard,
    marks_pastes: bool,
    answer: &'static str,
}

impl Drop for Asking {
    fn drop(&mut self) {
        // Wait until an abandoned dialog has restored the mode of the terminal.
        drop(self.keyboard.hold());
        let mut screen = self.shared.screen();
        if self.marks_pastes {
            screen.steer(LEAVE_PASTES);
            restore::note_pastes(false);
        }
        screen.answered(self.answer);
        drop(screen);
        self.shared.release();
    }
}

#[async_trait]
impl Channel for TerminalChannel {
    fn emit(&self, event: LoopbackEvent) {
        let notice = match &event {
            LoopbackEvent::Notice(text) => Some(text.clone()),
            LoopbackEvent::Retrying(retry) => Some(retry.to_string()),
            _ => None,
        };
        if let Some(text) = notice
            && let Some(held) = &mut *self.shared.held()
        {
            held.push(text);
            return;
        }
        let wait = self.screen().event(event);
        if let Some(wait) = wait
            && self.screen().style().animate
        {
            animate(&self.shared, wait);
        }
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
                "  {tool} asks ({}): allowed by --yes",
                question.reason
            ));
            return UserAnswer::Once;
        }
        if !self.can_ask() {
            return UserAnswer::No(None);
        }
        let text = confirm_dialog::question(question, params, self.screen().style());
        let mut asking = self.open_question();
        let show = self.question_view(text, &confirm_dialog::keys(question));
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
        asking.answer = said;
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
        let mut asking = self.open_question();
        let show = self.question_view(text, &check_in_dialog::keys(question));
        let answer = self
            .keyboard
            .read(move |terminal, stop| check_in_dialog::dialog(terminal, stop, show));
        let answer = answer.await.unwrap_or(CheckInAnswer::Stop);
        asking.answer = answer.as_str();
        answer
    }

    async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer {
        // `--yes` approves calls; it fills in no forms and opens no addresses.
        if self.options.assume_yes || !self.can_ask() {
            return ServerAnswer::Decline;
        }
        let text = server_dialog::question(question, self.screen().style());
        let mut asking = self.open_question();
        let show = self.question_view(text, &server_dialog::keys(question));
        let (asked, plain) = (question.clone(), self.options.dumb);
        let answer = self.keyboard.read(move |terminal, stop| {
            server_dialog::dialog(terminal, stop, (&asked, plain), show)
        });
        let answer = answer.await.unwrap_or(ServerAnswer::Cancel);
        if let (ServerAnswer::Accept(_), QuestionRequest::Url { url }) =
            (&answer, &question.request)
        {
            let env = Environment::of_process().unwrap_or_default();
            if let Err(error) = browser::open(url, &env) {
                let said =
                    format!("the browser cannot be started ({error}); open the address yourself");
                self.emit(LoopbackEvent::Notice(said));
            }
        }
        asking.answer = match answer {
            ServerAnswer::Accept(_) => "accepted",
            ServerAnswer::Decline => "declined",
            ServerAnswer::Cancel => "cancelled",
        };
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
            TerminalChannel::new(options, screen, Box::new(out.clone())),
            err,
            out,
        )
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
    fn the_answer_is_alone_on_standard_output() {
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
            "I will look.\n\n● bash make\n  │ a\n  │ bb\n  │ c\n  ⎿ done, 3 lines\nwatch out\n"
        );
    }

    #[test]
    fn what_is_noticed_while_the_person_types_is_shown_afterwards() {
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
    fn quiet_shows_errors_alone() {
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
    fn a_conversation_is_shown_as_it_happens() {
        let options = TerminalOptions {
            stderr: COLOUR,
            ..TerminalOptions::default()
        };
        let (channel, shown, _) = channel(options, DisplayMode::All);
        text(&channel, "Let me **lo");
        assert_eq!(clean(&shown.text()), "Let me ");
        text(&channel, "ok** there");
        call(&channel, "1", &[], "one line");
        text(&channel, "# Done\nwell");
        channel.screen().end_turn();
        assert_eq!(
            clean(&shown.text()),
            "Let me look there\n\n● bash make\n  ⎿ one line\n\nDone\nwell\n"
        );
        assert!(shown.text().contains("\x1b[1mlook\x1b[0m"));
    }

    #[test]
    fn without_colour_text_is_as_it_is_but_for_controls() {
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

    #[test]
    fn long_output_is_counted() {
        let (channel, shown, _) = channel(TerminalOptions::default(), DisplayMode::All);
        let lines: String = (0..25).map(|n| format!("line {n}\n")).collect();
        call(&channel, "1", &[&lines], &lines);
        let shown = shown.text();
        assert!(
            shown.contains("  │ line 19\n  │ … (5 more lines)\n  ⎿ done, 25 lines\n"),
            "{shown}"
        );
        assert!(!shown.contains("line 20"));
    }

    #[test]
    fn failures_are_told() {
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
        assert_eq!(shown.text(), "● read x\n  ⎿ x does not exist\n");
    }

    /// Proves CLI-3: a broken pipe is quiet, and nothing is written to it again.
    #[test]
    fn a_broken_pipe_is_left_alone() {
        let writes = Arc::new(Mutex::new(0));
        let broken = || Box::new(Broken(Arc::clone(&writes)));
        let screen = Screen::new(broken(), Style::default(), DisplayMode::All);
        let channel = TerminalChannel::new(TerminalOptions::default(), screen, broken());
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
            reason: "no rule allows it".to_owned(),
            ..Confirmation::default()
        }
    }

    /// Proves CLI-2b for `--yes`: no question is shown, and the output says so.
    #[tokio::test]
    async fn yes_is_assumed_and_said() {
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
            "  bash asks (no rule allows it): allowed by --yes\n"
        );
    }

    /// Proves PERM-2 without a user: the call is refused.
    #[tokio::test]
    async fn nobody_to_ask_is_a_no() {
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
    async fn the_spinner_comes_and_goes() {
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
        let before = shown.text();
        assert!(before.ends_with("\r\x1b[2Khello\n"), "{before:?}");
        assert!(!channel.screen().spin(1));
        assert_eq!(shown.text(), before);
    }
}
