//! The answers to a permission question, with their keys, in both interfaces.

use zeph_tools::Confirmation;
use zeph_tools::gate::ApprovalProposal;

/// A decision of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call runs.
    Once,
    /// The call runs, and the offered calls run until the session ends.
    Session,
    /// The call runs, and the offered calls run in the future.
    Always,
    /// The call does not run.
    No,
    /// The call does not run, and the user gives the reason.
    NoBecause,
}

impl Answer {
    /// The letter that selects it as well.
    pub(crate) fn alias(self) -> Option<char> {
        match self {
            Self::Once => Some('y'),
            Self::No => Some('n'),
            Self::Session | Self::Always | Self::NoBecause => None,
        }
    }
}

/// An answer that a question offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerOption {
    /// The key that selects it.
    pub(crate) key: char,
    /// Its name.
    pub(crate) label: &'static str,
    /// The decision.
    pub(crate) answer: Answer,
}

/// The answers that a question offers, in their order.
pub(crate) fn options(question: &Confirmation) -> Vec<AnswerOption> {
    let option = |key, label, answer| AnswerOption { key, label, answer };
    let mut options = vec![option('1', "once", Answer::Once)];
    if has_session(question) {
        options.push(option('2', "this session", Answer::Session));
    }
    if has_always(question) {
        options.push(option('3', "always", Answer::Always));
    }
    options.push(option('4', "no", Answer::No));
    options.push(option('5', "no, and tell it why", Answer::NoBecause));
    options
}

/// The index of the option that is selected at first: "no".
pub(crate) fn default_option(options: &[AnswerOption]) -> usize {
    let no = options
        .iter()
        .position(|option| option.answer == Answer::No);
    no.unwrap_or(options.len().saturating_sub(1))
}

/// Whether approval for the session is possible.
fn has_session(question: &Confirmation) -> bool {
    !matches!(question.offer.proposal, ApprovalProposal::Nothing { .. })
}

/// Whether permanent approval is possible.
pub(super) fn has_always(question: &Confirmation) -> bool {
    let rules = matches!(question.offer.proposal, ApprovalProposal::Grants(_));
    rules && question.offer.project.is_some()
}
