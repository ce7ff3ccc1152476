//! The options of a dialog.

use zeph_core::CheckInAnswer;
use zeph_tools::question::QuestionRequest;

use super::question::Question;
use crate::view::permission_answers::{Answer, options};

/// An option of the current stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DialogOption {
    /// The key that selects it.
    pub(super) key: char,
    /// Its name.
    pub(super) label: String,
    /// The decision.
    pub(super) choice: Choice,
}

/// A decision in a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Permission(Answer),
    CheckIn(CheckInAnswer),
    Accept,
    Decline,
    Cancel,
    Project,
    Everywhere,
    EditRules,
    Back,
}

impl DialogOption {
    fn new(key: char, label: &str, choice: Choice) -> Self {
        Self {
            key,
            label: label.to_owned(),
            choice,
        }
    }

    /// The letter that selects the option as well.
    pub(super) fn alias(&self) -> Option<char> {
        match self.choice {
            Choice::Permission(answer) => answer.alias(),
            _ => None,
        }
    }

    /// Whether the option is selected at first: "no" of a permission, "back" of its scope.
    pub(super) fn is_default(&self) -> bool {
        matches!(
            self.choice,
            Choice::Permission(Answer::No)
                | Choice::CheckIn(CheckInAnswer::More)
                | Choice::Decline
                | Choice::Back
        )
    }
}

/// The options of a question.
pub(super) fn question_options(question: &Question) -> Vec<DialogOption> {
    let option = DialogOption::new;
    match question {
        Question::Confirm(question, _) => {
            let options = options(question).into_iter();
            let options = options.map(|it| option(it.key, it.label, Choice::Permission(it.answer)));
            options.collect()
        }
        Question::CheckIn(question) => {
            let more = format!("{} more", question.more);
            vec![
                option('m', &more, Choice::CheckIn(CheckInAnswer::More)),
                option('a', "until done", Choice::CheckIn(CheckInAnswer::UntilDone)),
                option('n', "stop", Choice::CheckIn(CheckInAnswer::Stop)),
            ]
        }
        Question::Server(question) => {
            let accept = match question.request {
                QuestionRequest::Form(_) => "fill in",
                QuestionRequest::Url { .. } => "open",
                QuestionRequest::Decision { .. } => "allow",
            };
            vec![
                option('y', accept, Choice::Accept),
                option('n', "decline", Choice::Decline),
                option('c', "cancel", Choice::Cancel),
            ]
        }
    }
}

/// The options for the scope of a permanent approval, which other machines use too if its store is shared.
pub(super) fn scope_options(is_shared: bool) -> Vec<DialogOption> {
    let (project, everywhere) = match is_shared {
        true => (
            "in this project, on all machines",
            "everywhere, on all machines",
        ),
        false => ("in this project", "everywhere"),
    };
    vec![
        DialogOption::new('p', project, Choice::Project),
        DialogOption::new('g', everywhere, Choice::Everywhere),
        DialogOption::new('e', "edit", Choice::EditRules),
        DialogOption::new('b', "back", Choice::Back),
    ]
}
