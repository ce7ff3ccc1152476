//! A dialog: a question with its options, and the keys that answer it.
//!
//! A key answers only if it arrives some time after the dialog was drawn, after a pause in typing, and alone. Other keys
//! belong to the prompt, so that typed text answers nothing and is not lost. The first selected option of a permission is "no".

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;
use serde_json::Map;
use zeph_core::{CheckInAnswer, UserAnswer};
use zeph_tools::gate::{ApprovalProposal, Grant};
use zeph_tools::layers::grants::GrantScope;
use zeph_tools::plural::pluralize;
use zeph_tools::question::{QuestionRequest, ServerAnswer};

use super::dialog_options::{Choice, DialogOption, question_options, scope_options};
use super::form::{Form, FormKey};
use super::input::{Field, FieldKey};
use super::question::{Answer, Question};
use crate::sanitize::visible;
use crate::terminal::server_question;
use crate::view::permission_answers;
use crate::view::render::{self, Detail};

/// The time after the first drawing in which no key counts.
const GUARD: Duration = Duration::from_millis(300);
/// The time without a further key after which a key counts.
const SETTLE: Duration = Duration::from_millis(300);
/// The time without a key after which typed text is over.
const PAUSE: Duration = Duration::from_millis(1000);
/// The time between a key and Enter below which both were pasted.
const PASTE: Duration = Duration::from_millis(15);

/// An open dialog.
#[derive(Debug)]
pub(super) struct Dialog {
    /// The id of the question.
    pub(super) id: u64,
    /// Rows of the question above the visible ones.
    pub(super) scroll: usize,
    question: Arc<Question>,
    stage: Stage,
    selected: usize,
    detail: Detail,
    /// The time of the first drawing.
    drawn: Option<Instant>,
    /// The last key of typed text.
    typed: Option<Instant>,
    /// A key that counts if no other follows.
    held: Option<(char, Instant)>,
    body: Option<Body>,
}

/// The rendered question.
#[derive(Debug)]
struct Body {
    width: u16,
    lines: Vec<Line<'static>>,
}

/// The part of a dialog that is shown.
#[derive(Debug)]
enum Stage {
    /// The options of the question.
    Options,
    /// The reason of a refusal.
    Reason(Field),
    /// The scope of the rules to store.
    Scope(Vec<Grant>),
    /// The pattern of one of the rules.
    Rule(Vec<Grant>, usize, Field, Option<String>),
    /// The form of a server.
    Form(Form),
}

/// The result of a key.
#[derive(Debug, PartialEq)]
pub(super) enum DialogKey {
    /// The dialog continues.
    Continued,
    /// The user decided.
    Answered(Answer),
    /// These characters belong to the prompt.
    Typed(String),
    /// The key belongs to the prompt.
    Foreign,
}

impl Dialog {
    /// A dialog that is not drawn yet.
    pub(super) fn new(id: u64, question: Arc<Question>) -> Self {
        let mut dialog = Self {
            id,
            scroll: 0,
            question,
            stage: Stage::Options,
            selected: 0,
            detail: Detail::Excerpt,
            drawn: None,
            typed: None,
            held: None,
            body: None,
        };
        dialog.select_default();
        dialog
    }

    /// Notes that the dialog is visible.
    pub(super) fn drawn(&mut self, now: Instant) {
        self.drawn.get_or_insert(now);
    }

    /// Whether a key at `now` counts.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        let waits = |since: Option<Instant>, time| {
            since.is_some_and(|since| now.saturating_duration_since(since) < time)
        };
        self.drawn.is_some() && !waits(self.drawn, GUARD) && !waits(self.typed, PAUSE)
    }

    /// The next time at which the dialog changes without a key.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        if let Some((_, at)) = self.held {
            return Some(at + SETTLE);
        }
        let guard = self.drawn.map(|drawn| drawn + GUARD);
        let pause = self.typed.map(|typed| typed + PAUSE);
        guard.max(pause).filter(|deadline| *deadline > now)
    }

    /// The title of the frame.
    pub(super) fn title(&self) -> &'static str {
        match &*self.question {
            Question::Confirm(..) => "Permission",
            Question::CheckIn(_) => "Check-in",
            Question::Server(_) => "Question of an MCP server",
        }
    }

    /// The lines of the question.
    pub(super) fn lines(&mut self, width: u16) -> &[Line<'static>] {
        if self.body.as_ref().is_none_or(|body| body.width != width) {
            let lines = self.render(usize::from(width));
            self.body = Some(Body { width, lines });
        }
        self.body.as_ref().map_or(&[], |body| &body.lines)
    }

    /// The label and the field that is edited.
    pub(super) fn field(&self) -> Option<(String, &Field)> {
        match &self.stage {
            Stage::Options | Stage::Scope(_) => None,
            Stage::Reason(field) => Some(("Reason".to_owned(), field)),
            Stage::Rule(grants, at, field, _) => {
                let tool = grants.get(*at).map(|grant| visible(&grant.tool));
                Some((tool.unwrap_or_default(), field))
            }
            Stage::Form(form) => Some(form.prompt()),
        }
    }

    /// The options, and the selected one. A field has no options.
    pub(super) fn options(&self) -> (Vec<DialogOption>, usize) {
        let options = match &self.stage {
            Stage::Options => question_options(&self.question),
            Stage::Scope(_) => scope_options(self.question.has_shared_rules()),
            Stage::Reason(_) | Stage::Rule(..) | Stage::Form(_) => Vec::new(),
        };
        (options, self.selected)
    }

    /// Handles a key that arrived at `at`. Ctrl-C is not passed to a dialog.
    pub(super) fn key(&mut self, key: KeyEvent, at: Instant) -> DialogKey {
        if key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL) {
            // It suspends the process.
            if self.held.take().is_some() {
                self.select_default();
            }
            return DialogKey::Foreign;
        }
        if !matches!(self.stage, Stage::Options | Stage::Scope(_)) {
            self.body = None;
            return self.edit(key);
        }
        let is_text = matches!(key.code, KeyCode::Char(_))
            && !key
                .modifiers
                .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if !self.is_open(at) {
            if is_text || key.code == KeyCode::Enter {
                self.typed = Some(at);
            }
            return DialogKey::Foreign;
        }
        match key.code {
            KeyCode::Char('o') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.body = None;
                self.detail = match self.detail {
                    Detail::Brief | Detail::Excerpt => Detail::Full,
                    Detail::Full => Detail::Excerpt,
                };
            }
            KeyCode::Char(character) if is_text => return self.character(character, at),
            KeyCode::Enter => {
                return match self.held.take() {
                    Some((held, since)) if at.saturating_duration_since(since) < PASTE => {
                        self.typed = Some(at);
                        DialogKey::Typed(held.to_string())
                    }
                    Some((held, _)) => self.choose_key(held),
                    None => self.choose(self.selected),
                };
            }
            KeyCode::Esc => {
                self.held = None;
                return self.choose_safe();
            }
            KeyCode::Left | KeyCode::Up => self.move_selection(false),
            KeyCode::Right | KeyCode::Down | KeyCode::Tab => self.move_selection(true),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(5),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(5),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            _ => {}
        }
        DialogKey::Continued
    }

    /// Handles pasted text, which never answers. Returns whether a field of the dialog took it.
    pub(super) fn paste(&mut self, text: &str, at: Instant) -> bool {
        self.body = None;
        match &mut self.stage {
            Stage::Options | Stage::Scope(_) => {
                self.typed = Some(at);
                return false;
            }
            Stage::Reason(field) | Stage::Rule(_, _, field, _) => field.paste(text),
            Stage::Form(form) => form.field().paste(text),
        }
        true
    }

    /// Acts on a key that no other key followed.
    pub(super) fn tick(&mut self, now: Instant) -> DialogKey {
        match self.held {
            Some((key, since)) if now.saturating_duration_since(since) >= SETTLE => {
                self.held = None;
                self.choose_key(key)
            }
            _ => DialogKey::Continued,
        }
    }

    fn character(&mut self, character: char, at: Instant) -> DialogKey {
        let held = self.held.take();
        let key = character.to_ascii_lowercase();
        let option = self
            .options()
            .0
            .iter()
            .position(|it| it.key == key || it.alias() == Some(key));
        match (held, option) {
            (None, Some(option)) => {
                self.selected = option;
                self.held = Some((character, at));
                DialogKey::Continued
            }
            (held, _) => {
                self.typed = Some(at);
                self.select_default();
                let held = held.map(|(held, _)| held);
                DialogKey::Typed(held.into_iter().chain([character]).collect())
            }
        }
    }

    fn choose_key(&mut self, key: char) -> DialogKey {
        let key = key.to_ascii_lowercase();
        let options = self.options().0;
        match options
            .iter()
            .position(|it| it.key == key || it.alias() == Some(key))
        {
            Some(at) => self.choose(at),
            None => DialogKey::Continued,
        }
    }

    /// The answer of Escape.
    fn choose_safe(&mut self) -> DialogKey {
        if matches!(self.stage, Stage::Scope(_)) {
            return self.stage(Stage::Options);
        }
        DialogKey::Answered(match &*self.question {
            Question::Confirm(..) => Answer::Confirm(UserAnswer::No(None)),
            Question::CheckIn(_) => Answer::CheckIn(CheckInAnswer::Stop),
            Question::Server(_) => Answer::Server(ServerAnswer::Cancel),
        })
    }

    fn choose(&mut self, at: usize) -> DialogKey {
        let Some(option) = self.options().0.into_iter().nth(at) else {
            return DialogKey::Continued;
        };
        let confirm = |answer| DialogKey::Answered(Answer::Confirm(answer));
        let server = |answer| DialogKey::Answered(Answer::Server(answer));
        match option.choice {
            Choice::Permission(permission_answers::Answer::Once) => confirm(UserAnswer::Once),
            Choice::Permission(permission_answers::Answer::Session) => confirm(UserAnswer::Session),
            Choice::Permission(permission_answers::Answer::No) => confirm(UserAnswer::No(None)),
            Choice::Permission(permission_answers::Answer::NoBecause) => {
                self.stage(Stage::Reason(Field::new("")))
            }
            Choice::Permission(permission_answers::Answer::Always) => match &*self.question {
                Question::Confirm(question, _) => match &question.offer.proposal {
                    ApprovalProposal::Grants(grants) => self.stage(Stage::Scope(grants.clone())),
                    _ => DialogKey::Continued,
                },
                _ => DialogKey::Continued,
            },
            Choice::CheckIn(answer) => DialogKey::Answered(Answer::CheckIn(answer)),
            Choice::Accept => match &*self.question {
                Question::Server(question) => match &question.request {
                    QuestionRequest::Form(fields) => match Form::new(fields) {
                        Ok(form) => self.stage(Stage::Form(form)),
                        Err(values) => server(ServerAnswer::Accept(values)),
                    },
                    _ => server(ServerAnswer::Accept(Map::new())),
                },
                _ => DialogKey::Continued,
            },
            Choice::Decline => server(ServerAnswer::Decline),
            Choice::Cancel => server(ServerAnswer::Cancel),
            Choice::Project => match (&self.stage, &*self.question) {
                (Stage::Scope(grants), Question::Confirm(question, _)) => {
                    match &question.offer.project {
                        Some(project) => confirm(UserAnswer::Always(
                            grants.clone(),
                            GrantScope::Project(project.clone()),
                        )),
                        None => DialogKey::Continued,
                    }
                }
                _ => DialogKey::Continued,
            },
            Choice::Everywhere => match &self.stage {
                Stage::Scope(grants) => {
                    confirm(UserAnswer::Always(grants.clone(), GrantScope::Global))
                }
                _ => DialogKey::Continued,
            },
            Choice::EditRules => match &self.stage {
                Stage::Scope(grants) => self.edit_rule(grants.clone(), 0),
                _ => DialogKey::Continued,
            },
            Choice::Back => self.stage(Stage::Options),
        }
    }

    /// Opens the field of a rule, or returns to the scope after the last one.
    fn edit_rule(&mut self, grants: Vec<Grant>, at: usize) -> DialogKey {
        match grants.get(at) {
            Some(grant) => {
                let field = Field::new(&grant.pattern);
                self.stage(Stage::Rule(grants, at, field, None))
            }
            None => self.stage(Stage::Scope(grants)),
        }
    }

    /// Handles a key in a field.
    fn edit(&mut self, key: KeyEvent) -> DialogKey {
        match &mut self.stage {
            Stage::Options | Stage::Scope(_) => DialogKey::Continued,
            Stage::Reason(field) => match field.key(key) {
                FieldKey::Edited => DialogKey::Continued,
                FieldKey::Cancelled => self.stage(Stage::Options),
                FieldKey::Done => {
                    let text = field.text().trim().to_owned();
                    let reason = (!text.is_empty()).then_some(text);
                    DialogKey::Answered(Answer::Confirm(UserAnswer::No(reason)))
                }
            },
            Stage::Form(form) => match form.key(key) {
                FormKey::Edited => DialogKey::Continued,
                FormKey::Cancelled => DialogKey::Answered(Answer::Server(ServerAnswer::Cancel)),
                FormKey::Done(values) => {
                    DialogKey::Answered(Answer::Server(ServerAnswer::Accept(values)))
                }
            },
            Stage::Rule(grants, at, field, error) => {
                let (key, at) = (field.key(key), *at);
                match key {
                    FieldKey::Edited => return DialogKey::Continued,
                    FieldKey::Cancelled => {}
                    FieldKey::Done => {
                        let Question::Confirm(question, _) = &*self.question else {
                            return DialogKey::Continued;
                        };
                        match (question.offer.edited(at, &field.text()), grants.get_mut(at)) {
                            (Ok(edited), Some(grant)) => *grant = edited,
                            (Err(reason), _) => {
                                *error = Some(reason);
                                return DialogKey::Continued;
                            }
                            (Ok(_), None) => {}
                        }
                    }
                }
                let grants = std::mem::take(grants);
                self.edit_rule(grants, at + 1)
            }
        }
    }

    fn stage(&mut self, stage: Stage) -> DialogKey {
        self.stage = stage;
        self.body = None;
        self.scroll = 0;
        self.select_default();
        DialogKey::Continued
    }

    /// Selects the safe option: "no" of a permission, "back" of its scope.
    fn select_default(&mut self) {
        let (options, _) = self.options();
        let safe = options.iter().position(DialogOption::is_default);
        self.selected = safe.unwrap_or(0);
    }

    fn move_selection(&mut self, is_forward: bool) {
        self.held = None;
        let count = self.options().0.len().max(1);
        let step = if is_forward { 1 } else { count - 1 };
        self.selected = (self.selected + step) % count;
    }

    fn render(&self, width: usize) -> Vec<Line<'static>> {
        let mut lines = match &*self.question {
            Question::Confirm(question, params) => {
                render::question_lines(question, params, width, self.detail)
            }
            Question::CheckIn(question) => {
                let rounds = pluralize(question.iterations, "round");
                plain(
                    &format!("? {rounds} of tool calls so far. Continue?"),
                    width,
                )
            }
            Question::Server(question) => plain(&server_question(question), width),
        };
        let more = match &self.stage {
            Stage::Options => String::new(),
            Stage::Reason(_) => "Enter sends the reason, Esc goes back".to_owned(),
            Stage::Scope(grants) => {
                let rules: Vec<String> = grants.iter().map(render::grant).collect();
                format!("Rules to store:\n  {}", rules.join("\n  "))
            }
            Stage::Rule(_, _, _, error) => {
                let error = error
                    .as_ref()
                    .map(|error| format!("\ninvalid: {}", visible(error)));
                let error = error.unwrap_or_default();
                format!("Enter accepts the rule, Esc restores the old one{error}")
            }
            Stage::Form(form) => form.description(),
        };
        if !more.is_empty() {
            // The stage replaces long questions from the top.
            lines.push(Line::default());
            lines.extend(plain(&more, width));
        }
        lines
    }
}

/// Safe text, wrapped.
fn plain(text: &str, width: usize) -> Vec<Line<'static>> {
    let wrapped = textwrap::wrap(text.trim_end(), width.max(1)).into_iter();
    wrapped.map(|line| Line::from(line.into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use zeph_core::CheckIn;
    use zeph_tools::Confirmation;
    use zeph_tools::question::ServerQuestion;

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn permission() -> Question {
        let mut question = Confirmation {
            tool: "bash".to_owned(),
            subject: "make".to_owned(),
            reason: "no rule allows it".to_owned(),
            ..Confirmation::default()
        };
        question.offer.proposal = ApprovalProposal::Grants(vec![Grant {
            tool: "bash".to_owned(),
            pattern: "make".to_owned(),
        }]);
        question.offer.project = Some("/p".into());
        Question::Confirm(Box::new(question), json!({ "command": "make" }))
    }

    fn dialog(question: Question, now: Instant) -> Dialog {
        let mut dialog = Dialog::new(1, Arc::new(question));
        dialog.drawn(now);
        dialog
    }

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::from(code)
    }

    fn character(character: char) -> KeyEvent {
        key(KeyCode::Char(character))
    }

    fn answer(answer: UserAnswer) -> DialogKey {
        DialogKey::Answered(Answer::Confirm(answer))
    }

    /// Proves PERM-2: a key that was pressed before the dialog could be read does not answer it.
    #[test]
    fn early_keys_are_ignored() {
        let start = Instant::now();
        let mut undrawn = Dialog::new(1, Arc::new(permission()));
        assert_eq!(
            undrawn.key(character('1'), start + GUARD),
            DialogKey::Foreign
        );
        let mut dialog = dialog(permission(), start);
        let mut at = start;
        for typed in "yes 1".chars() {
            at += 299 * MILLI;
            assert_eq!(dialog.key(character(typed), at), DialogKey::Foreign);
        }
        at += 10 * MILLI;
        assert_eq!(dialog.key(key(KeyCode::Enter), at), DialogKey::Foreign);
        at += PAUSE;
        assert_eq!(dialog.key(character('1'), at), DialogKey::Continued);
        assert_eq!(dialog.tick(at + 299 * MILLI), DialogKey::Continued);
        assert_eq!(dialog.deadline(at), Some(at + SETTLE));
        assert_eq!(dialog.tick(at + SETTLE), answer(UserAnswer::Once));
    }

    /// Proves PERM-2: typed and pasted text answers nothing and is not lost.
    #[test]
    fn text_goes_to_the_prompt() {
        let start = Instant::now();
        let mut dialog = dialog(permission(), start);
        let at = start + GUARD;
        assert_eq!(dialog.key(character('y'), at), DialogKey::Continued);
        let typed = dialog.key(character('e'), at + 100 * MILLI);
        assert_eq!(typed, DialogKey::Typed("ye".to_owned()));
        assert_eq!(
            dialog.key(character('1'), at + 200 * MILLI),
            DialogKey::Foreign
        );
        let at = at + 2 * PAUSE;
        assert_eq!(
            dialog.key(character('x'), at),
            DialogKey::Typed("x".to_owned())
        );
        let at = at + 2 * PAUSE;
        assert!(!dialog.paste("1", at));
        assert_eq!(dialog.key(key(KeyCode::Enter), at), DialogKey::Foreign);
        let at = at + 2 * PAUSE;
        assert_eq!(dialog.key(character('1'), at), DialogKey::Continued);
        let pasted = dialog.key(key(KeyCode::Enter), at + MILLI);
        assert_eq!(pasted, DialogKey::Typed("1".to_owned()));
    }

    /// Proves CLI-4d: Ctrl-Z suspends while a dialog or its field is open, and answers nothing.
    #[test]
    fn ctrl_z_is_not_a_key_of_the_dialog() {
        let ctrl_z = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL);
        let start = Instant::now();
        let mut dialog = dialog(permission(), start);
        let at = start + GUARD;
        assert_eq!(dialog.key(character('1'), at), DialogKey::Continued);
        assert_eq!(dialog.key(ctrl_z, at + MILLI), DialogKey::Foreign);
        let at = at + SETTLE;
        assert_eq!(dialog.tick(at), DialogKey::Continued);
        assert_eq!(dialog.key(character('5'), at), DialogKey::Continued);
        let at = at + SETTLE;
        assert_eq!(dialog.tick(at), DialogKey::Continued);
        assert!(dialog.field().is_some());
        assert_eq!(dialog.key(ctrl_z, at), DialogKey::Foreign);
    }

    #[test]
    fn default_answer_is_not_yes() {
        let start = Instant::now();
        let check = |question: Question, expect| {
            let mut dialog = dialog(question, start);
            assert_eq!(dialog.key(key(KeyCode::Enter), start + GUARD), expect);
        };
        check(permission(), answer(UserAnswer::No(None)));
        let server = ServerQuestion {
            server: "s".to_owned(),
            message: String::new(),
            request: QuestionRequest::Url {
                url: "https://e.org".to_owned(),
            },
        };
        let declined = DialogKey::Answered(Answer::Server(ServerAnswer::Decline));
        check(Question::Server(Box::new(server)), declined);
    }

    /// Proves PERM-7: the scope and the rules of a permanent approval are chosen in the dialog.
    #[test]
    fn keys_have_their_answers() {
        let start = Instant::now();
        let at = start + GUARD;
        let check = |keys: &[KeyCode], expect: DialogKey| {
            let mut dialog = dialog(permission(), start);
            let mut at = at;
            let mut last = DialogKey::Continued;
            for code in keys {
                assert_eq!(last, DialogKey::Continued, "{keys:?}");
                last = dialog.key(key(*code), at);
                at += SETTLE;
                if last == DialogKey::Continued {
                    last = dialog.tick(at);
                }
            }
            assert_eq!(last, expect, "{keys:?}");
        };
        let c = KeyCode::Char;
        let grants = |pattern: &str| {
            vec![Grant {
                tool: "bash".to_owned(),
                pattern: pattern.to_owned(),
            }]
        };
        check(&[c('y')], answer(UserAnswer::Once));
        check(&[c('2')], answer(UserAnswer::Session));
        check(&[c('N')], answer(UserAnswer::No(None)));
        check(&[KeyCode::Esc], answer(UserAnswer::No(None)));
        check(&[KeyCode::Left, KeyCode::Enter], DialogKey::Continued);
        check(
            &[c('3'), c('g')],
            answer(UserAnswer::Always(grants("make"), GrantScope::Global)),
        );
        check(
            &[c('3'), c('p')],
            answer(UserAnswer::Always(
                grants("make"),
                GrantScope::Project("/p".into()),
            )),
        );
        check(&[c('3'), KeyCode::Enter], DialogKey::Continued);
        check(
            &[c('5'), c('n'), c('o'), KeyCode::Enter],
            answer(UserAnswer::No(Some("no".to_owned()))),
        );
    }

    #[test]
    fn check_in_continues_or_stops() {
        let start = Instant::now();
        let question = || {
            Question::CheckIn(CheckIn {
                iterations: 2,
                more: 3,
            })
        };
        let check = |code, expect| {
            let mut dialog = dialog(question(), start);
            let mut key = dialog.key(key(code), start + GUARD);
            if key == DialogKey::Continued {
                key = dialog.tick(start + GUARD + SETTLE);
            }
            assert_eq!(key, DialogKey::Answered(Answer::CheckIn(expect)));
        };
        check(KeyCode::Enter, CheckInAnswer::More);
        check(KeyCode::Char('a'), CheckInAnswer::UntilDone);
        check(KeyCode::Char('n'), CheckInAnswer::Stop);
        check(KeyCode::Esc, CheckInAnswer::Stop);
    }

    #[test]
    fn question_is_shown_completely() {
        let mut dialog = dialog(permission(), Instant::now());
        for width in [0, 1, 20, 200] {
            assert!(!dialog.lines(width).is_empty());
        }
        let text: String = dialog.lines(80).iter().map(ToString::to_string).collect();
        assert!(
            text.contains("make") && text.contains("no rule allows it"),
            "{text}"
        );
        let value = Value::Null;
        let empty = Question::Confirm(Box::default(), value);
        assert!(!self::dialog(empty, Instant::now()).lines(10).is_empty());
    }
}
