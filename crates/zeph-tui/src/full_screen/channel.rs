//! The channel of the full screen: events go into the screen model, questions become dialogs.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use zeph_core::{Channel, CheckIn, CheckInAnswer, LoopbackEvent, UserAnswer};
use zeph_tools::Confirmation;
use zeph_tools::question::{QuestionRequest, ServerAnswer, ServerQuestion};
use zeph_tools::user_terminal::UserTerminal;

use super::key_reader::ReaderControl;
use super::question::{Answer, Question};
use crate::config::TerminalConfig;
use crate::sanitize::first_line;
use crate::terminal::{
    Keyboard, LendableScreen, OutputEnd, Queue, TerminalLender, TerminalOptions, enter_full_screen,
    is_connected, leave_full_screen,
};
use crate::view::{Block, Severity, Transcript};

/// Shows events and asks questions on the full screen.
pub struct TuiChannel {
    options: TerminalOptions,
    config: TerminalConfig,
    shared: Arc<Shared>,
}

/// The model, shared between the channel and the event loop.
pub(super) struct Shared {
    model: Mutex<Model>,
    changed: Notify,
    reader: Mutex<Option<Arc<ReaderControl>>>,
}

/// The data that the screen shows.
#[derive(Default)]
pub(super) struct Model {
    pub(super) transcript: Transcript,
    /// The open questions. Only the first one is shown.
    pub(super) questions: VecDeque<OpenQuestion>,
    next_question: u64,
    /// The inputs that the user submitted during the turn.
    pub(super) queue: Queue,
    /// The time in which questions of this turn waited for the user.
    asked: Duration,
    /// A command has the terminal.
    pub(super) is_lent: bool,
    /// The screen must be drawn completely.
    pub(super) is_overwritten: bool,
}

/// A question that waits for its answer.
pub(super) struct OpenQuestion {
    pub(super) id: u64,
    pub(super) question: Arc<Question>,
    answer: oneshot::Sender<Answer>,
}

impl Shared {
    /// The locked model.
    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the model has changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Changes the model, and draws it.
    pub(super) fn change(&self, change: impl FnOnce(&mut Model)) {
        change(&mut self.model());
        self.changed.notify_one();
    }

    /// Answers the open question with this id. An answer to a withdrawn question has no effect.
    pub(super) fn answer(&self, id: u64, answer: Answer) {
        self.change(|model| {
            let at = model.questions.iter().position(|open| open.id == id);
            if let Some(open) = at.and_then(|at| model.questions.remove(at)) {
                // The receiver is gone if the turn was cancelled meanwhile.
                let _ = open.answer.send(answer);
            }
        });
    }

    /// The time since `begin`, without the time in which questions waited for the user. The next turn counts from zero.
    pub(super) fn turn_time(&self, begin: Instant) -> Duration {
        let asked = std::mem::take(&mut self.model().asked);
        begin.elapsed().saturating_sub(asked)
    }

    /// Notes the reader of keys, which pauses while the terminal is lent.
    pub(super) fn set_reader(&self, reader: Option<Arc<ReaderControl>>) {
        *self.reader() = reader;
    }

    fn reader(&self) -> MutexGuard<'_, Option<Arc<ReaderControl>>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LendableScreen for Shared {
    fn lend(&self) {
        self.change(|model| model.is_lent = true);
        if let Some(reader) = &*self.reader() {
            reader.pause();
        }
        leave_full_screen();
    }

    fn take_back(&self, end: &OutputEnd) {
        let mut out = std::io::stdout().lock();
        // A terminal that is gone ends the session elsewhere.
        let _ = out
            .write_all(end.reset().as_bytes())
            .and_then(|()| out.flush());
        drop(out);
        let _ = enter_full_screen();
        if let Some(reader) = &*self.reader() {
            reader.resume();
        }
        self.change(|model| {
            model.is_lent = false;
            model.is_overwritten = true;
        });
    }
}

impl TuiChannel {
    /// Creates a channel that has no screen yet.
    pub fn new(options: TerminalOptions, config: TerminalConfig) -> Self {
        Self {
            options,
            config,
            shared: Arc::new(Shared {
                model: Mutex::default(),
                changed: Notify::new(),
                reader: Mutex::default(),
            }),
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The options of the terminal.
    pub(super) fn options(&self) -> TerminalOptions {
        self.options
    }

    /// `[terminal]`.
    pub(super) fn config(&self) -> &TerminalConfig {
        &self.config
    }

    /// Shows a question and waits for its answer; `None` if the interface ends. Dropping the future withdraws the question.
    async fn ask(&self, question: Question) -> Option<Answer> {
        let (answer, receiver) = oneshot::channel();
        let mut id = 0;
        self.shared.change(|model| {
            id = model.next_question;
            model.next_question += 1;
            model.questions.push_back(OpenQuestion {
                id,
                question: Arc::new(question),
                answer,
            });
        });
        let _withdrawn = Withdraw(&self.shared, id, Instant::now());
        receiver.await.ok()
    }
}

/// Removes a question that no caller waits for, and counts the time in which it was open.
struct Withdraw<'a>(&'a Shared, u64, Instant);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let Self(shared, id, since) = self;
        shared.change(|model| {
            model.questions.retain(|open| open.id != *id);
            model.asked += since.elapsed();
        });
    }
}

#[async_trait]
impl Channel for TuiChannel {
    fn emit(&self, event: LoopbackEvent) {
        let now = Instant::now();
        self.shared
            .change(|model| model.transcript.apply(event, now));
    }

    fn can_ask(&self) -> bool {
        self.options.assume_yes || is_connected()
    }

    fn shows_questions(&self) -> bool {
        !self.options.assume_yes
    }

    async fn confirm(&self, _call: &str, question: &Confirmation, params: &Value) -> UserAnswer {
        if self.options.assume_yes {
            let (tool, reason) = (
                first_line(&question.tool, 60),
                question.reason.trim_end_matches('.'),
            );
            let text = format!("{tool} needs confirmation ({reason}): allowed by --yes");
            self.shared
                .change(|model| model.transcript.message(Severity::Remark, text));
            return UserAnswer::Once;
        }
        if !self.can_ask() {
            return UserAnswer::No(None);
        }
        let question = Question::Confirm(Box::new(question.clone()), params.clone());
        match self.ask(question).await {
            Some(Answer::Confirm(answer)) => answer,
            _ => UserAnswer::No(None),
        }
    }

    fn user_terminal(&self) -> Option<Arc<dyn UserTerminal>> {
        is_connected().then(|| {
            let screen = Arc::clone(&self.shared);
            Arc::new(TerminalLender::new(screen, Keyboard::default())) as _
        })
    }

    fn take_prompt(&self) -> Option<String> {
        self.shared.model().queue.take_prompt()
    }

    fn return_prompt(&self, text: String) {
        self.shared.change(|model| model.queue.push_front(text));
    }

    async fn check_in(&self, question: &CheckIn) -> CheckInAnswer {
        match self.ask(Question::CheckIn(*question)).await {
            Some(Answer::CheckIn(answer)) => answer,
            _ => CheckInAnswer::Stop,
        }
    }

    async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer {
        // `--yes` approves calls; it fills in no forms and opens no addresses.
        if self.options.assume_yes || !self.can_ask() {
            return ServerAnswer::Decline;
        }
        let asked = Question::Server(Box::new(question.clone()));
        let answer = match self.ask(asked).await {
            Some(Answer::Server(answer)) => answer,
            _ => ServerAnswer::Cancel,
        };
        if let (ServerAnswer::Accept(_), QuestionRequest::Url { url }) =
            (&answer, &question.request)
            && let Err(error) = self.options.host.open_url(url)
        {
            let text =
                format!("the browser cannot be started ({error}); open the address manually");
            self.emit(LoopbackEvent::Notice(text));
        }
        answer
    }
}

impl Model {
    /// The time in which questions of this turn waited for the user, without the open ones.
    pub(super) fn asked(&self) -> Duration {
        self.asked
    }

    /// Adds a block of the interface itself.
    pub(super) fn push(&mut self, block: Block) {
        self.transcript.push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(assume_yes: bool) -> TuiChannel {
        let options = TerminalOptions {
            assume_yes,
            ..TerminalOptions::default()
        };
        TuiChannel::new(options, TerminalConfig::default())
    }

    const CHECK_IN: CheckIn = CheckIn {
        iterations: 1,
        more: 1,
    };

    /// Proves CLI-4b: the time of a turn has no part in which the user was asked.
    #[tokio::test]
    async fn time_of_a_question_is_not_part_of_the_turn() {
        let channel = channel(false);
        let begin = Instant::now();
        {
            let mut ask = std::pin::pin!(channel.check_in(&CHECK_IN));
            assert!(futures_util::poll!(&mut ask).is_pending());
            while begin.elapsed() < Duration::from_millis(20) {
                std::thread::yield_now();
            }
        }
        let took = channel.shared().turn_time(begin);
        assert!(
            took + Duration::from_millis(19) <= begin.elapsed(),
            "{took:?}"
        );
        assert_eq!(channel.shared().model().asked, Duration::ZERO);
    }

    #[tokio::test]
    async fn answer_reaches_only_its_question() {
        let channel = channel(false);
        let shared = Arc::clone(channel.shared());
        let ask = channel.check_in(&CHECK_IN);
        let answer = async {
            let id = shared.model().questions[0].id;
            shared.answer(id + 1, Answer::CheckIn(CheckInAnswer::UntilDone));
            assert_eq!(shared.model().questions.len(), 1);
            shared.answer(id, Answer::CheckIn(CheckInAnswer::More));
        };
        let (answered, ()) = tokio::join!(ask, answer);
        assert_eq!(answered, CheckInAnswer::More);
        assert!(shared.model().questions.is_empty());
    }

    #[tokio::test]
    async fn cancelled_question_is_withdrawn() {
        let channel = channel(false);
        let ask = channel.check_in(&CHECK_IN);
        tokio::select! {
            biased;
            _ = ask => panic!("no one answers"),
            () = tokio::task::yield_now() => {}
        }
        assert!(channel.shared().model().questions.is_empty());
    }

    /// Proves PERM-2 without a terminal: the call is refused, and no form is filled in.
    #[tokio::test]
    async fn decision_without_a_terminal_is_no() {
        let question = Confirmation::default();
        let refused = channel(false).confirm("1", &question, &Value::Null).await;
        assert_eq!(refused, UserAnswer::No(None));
        let allowed = channel(true).confirm("1", &question, &Value::Null).await;
        assert_eq!(allowed, UserAnswer::Once);
        let asked = ServerQuestion {
            server: "s".to_owned(),
            message: String::new(),
            request: QuestionRequest::Form(Vec::new()),
        };
        assert_eq!(
            channel(true).ask_for_server(&asked).await,
            ServerAnswer::Decline
        );
    }
}
