//! The confirmation question: the parts of a call that it shows, and the approvals that it offers.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::def::Risk;
use crate::preview::Preview;

/// A confirmation question to the user before a call runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// The tool.
    pub tool: String,
    /// The target of the call: the command, the path, the arguments.
    pub subject: String,
    /// The risk.
    pub risk: Risk,
    /// The reason for the question.
    pub reason: String,
    /// A hint how to let it run if no user is present.
    pub hint: String,
    /// The digest of the tool and the shown arguments; a decision applies only to these.
    pub digest: [u8; 32],
    /// The parts of its command, with their decisions.
    pub pieces: Vec<DisplayPart>,
    /// The preview of its changes, if available.
    pub preview: Option<Preview>,
    /// The options for an approval of more than this call.
    pub offer: ApprovalOptions,
}

/// A part of a call as the confirmation question shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayPart {
    /// The text: a part of the command, or `writes PATH`.
    pub text: String,
    /// The number of commands that it is nested in.
    pub depth: usize,
    /// Whether the user is asked about this part.
    pub asked: bool,
    /// The decision and its cause: `asked`, `allowed by the rule …`.
    pub judged: String,
}

/// A tool and a pattern that may run without a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The id of the tool.
    pub tool: String,
    /// The pattern of the arguments, as in the rules of the tool; `\ ` is a blank inside a word.
    pub pattern: String,
}

/// The approvals that a question can offer in addition to "once".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalProposal {
    /// One grant for each part that is asked about, for the session or permanently.
    Grants(Vec<Grant>),
    /// Exactly this call, for the session.
    ThisCall {
        /// The reason why no grant is offered.
        why: String,
    },
    /// No approval.
    Nothing {
        /// The reason.
        why: String,
    },
}

impl Default for ApprovalProposal {
    fn default() -> Self {
        Self::Nothing { why: String::new() }
    }
}

/// An editor of the offered grants.
pub trait GrantEditor: Send + Sync {
    /// Returns `offered` with another pattern. A relative path begins at the working directory and is made absolute.
    ///
    /// # Errors
    /// The reason, if the text is not a pattern or does not cover the call.
    fn edited(&self, offered: &Grant, pattern: &str) -> Result<Grant, String>;
}

/// The options of a question in addition to "once", and the means to edit them.
#[derive(Clone, Default)]
pub struct ApprovalOptions {
    /// The proposed grants.
    pub proposal: ApprovalProposal,
    /// The project that rules can be saved for; `None` if rules cannot be saved.
    pub project: Option<PathBuf>,
    /// The store of saved rules if they apply on other machines too.
    pub shared_place: Option<String>,
    editor: Option<Arc<dyn GrantEditor>>,
}

impl ApprovalOptions {
    /// Creates options with this proposal; `editor` can change its grants.
    #[must_use]
    pub fn new(proposal: ApprovalProposal, editor: Option<Arc<dyn GrantEditor>>) -> Self {
        Self {
            proposal,
            project: None,
            shared_place: None,
            editor,
        }
    }

    /// Creates empty options, with the reason.
    #[must_use]
    pub fn nothing(why: &str) -> Self {
        let why = why.to_owned();
        Self::new(ApprovalProposal::Nothing { why }, None)
    }

    /// Sets the project that rules can be saved for.
    #[must_use]
    pub fn for_project(self, project: Option<PathBuf>) -> Self {
        Self { project, ..self }
    }

    /// Sets the store of saved rules if other machines use it too.
    #[must_use]
    pub fn shared_in(self, shared_place: Option<String>) -> Self {
        Self {
            shared_place,
            ..self
        }
    }

    /// Returns the grant at index `at` of the proposal with another pattern.
    ///
    /// # Errors
    /// The reason, if the grant does not exist, or the text is not a pattern or does not cover the call.
    pub fn edited(&self, at: usize, pattern: &str) -> Result<Grant, String> {
        let none = || "there is nothing to edit".to_owned();
        let (Some(editor), ApprovalProposal::Grants(grants)) = (&self.editor, &self.proposal)
        else {
            return Err(none());
        };
        editor.edited(grants.get(at).ok_or_else(none)?, pattern)
    }
}

impl fmt::Debug for ApprovalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApprovalOptions")
            .field(&self.proposal)
            .finish()
    }
}

impl PartialEq for ApprovalOptions {
    fn eq(&self, other: &Self) -> bool {
        self.proposal == other.proposal
            && self.project == other.project
            && self.shared_place == other.shared_place
    }
}

impl Eq for ApprovalOptions {}
