//! What a question shows of a call beside its arguments, and what can be made of what it offers.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::approvals::{ApprovalProposal, Grant, covers, propose};
use super::command::PartKind;
use super::decision::{CallPart, DecidedBy, Decision, Effect};
use super::parsed_call::{CallSubject, subject_of};
use super::path_pattern::{escape, rooted};
use super::path_resolver::PathResolver;
use super::pattern::{Pattern, PatternKind, PatternScope};
use crate::call::ToolCall;
use crate::def::ToolDef;

/// A piece of a call as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayPart {
    /// What it is: a part of the command, `writes PATH`.
    pub text: String,
    /// In how many other commands it is nested.
    pub depth: usize,
    /// Whether it is asked about.
    pub asked: bool,
    /// What it is judged as: `asked`, `allowed by the rule …`.
    pub judged: String,
}

/// The pieces of a command in the order in which they are judged; none of a call without one.
#[must_use]
pub fn shown_pieces(subject: &CallSubject<'_>, decision: &Decision<'_>) -> Vec<DisplayPart> {
    let Some(command) = &subject.command else {
        return Vec::new();
    };
    let pieces = decision.pieces.iter();
    let pieces = pieces.filter(|judged| judged.piece != CallPart::Whole);
    pieces
        .map(|judged| {
            let part = match judged.piece {
                CallPart::Part(at) => command.parts.get(at),
                _ => None,
            };
            let text = match judged.piece {
                CallPart::Redirection(at) => {
                    command.writes.get(at).map_or_else(String::new, |path| {
                        format!("writes {}", path.absolute().display())
                    })
                }
                CallPart::UnknownWrite => "writes where it turns out when it runs".to_owned(),
                piece => piece.shown(subject),
            };
            let kind = match part.map(|part| part.kind) {
                Some(PartKind::Wrapper) => ", runs another command",
                Some(PartKind::Interpreter) => ", an interpreter",
                _ => "",
            };
            DisplayPart {
                text,
                depth: part.map_or(0, |part| part.depth),
                asked: judged.effect == Effect::Ask,
                judged: format!("{}{kind}", said(judged.effect, judged.by)),
            }
        })
        .collect()
}

fn said(effect: Effect, by: DecidedBy<'_>) -> String {
    let verdict = match effect {
        Effect::Allow => "allowed",
        Effect::Ask => "asked",
        Effect::Deny => "denied",
    };
    match by {
        DecidedBy::Rule(rule) => format!(
            "{verdict} by the rule `{}` ({})",
            rule.written.pattern, rule.origin
        ),
        DecidedBy::Perhaps(rule) => format!(
            "{verdict}: the rule `{}` ({}) may be about it",
            rule.written.pattern, rule.origin
        ),
        DecidedBy::Remembered => "allowed before".to_owned(),
        DecidedBy::Mode(_) if effect == Effect::Allow => format!("{verdict} by the mode"),
        _ => verdict.to_owned(),
    }
}

/// What a question offers beside "once", and the means to change it.
#[derive(Clone, Default)]
pub struct ApprovalOptions {
    /// What it is.
    pub proposal: ApprovalProposal,
    /// The directory of the project that rules can be kept for; `None` where none can be kept.
    pub project: Option<PathBuf>,
    about: Option<Arc<PendingCall>>,
}

/// A call that is asked about.
struct PendingCall {
    call: ToolCall,
    def: ToolDef,
    places: Arc<PathResolver>,
    asked: Vec<CallPart>,
}

impl ApprovalOptions {
    /// What to offer for `call`, about which `decision` was made.
    #[must_use]
    pub fn new(
        subject: &CallSubject<'_>,
        decision: &Decision<'_>,
        (call, def): (&ToolCall, &ToolDef),
        places: &Arc<PathResolver>,
    ) -> Self {
        let proposal = propose(subject, decision);
        let about = matches!(proposal, ApprovalProposal::Grants(_)).then(|| {
            let asked = decision.pieces.iter();
            let asked = asked.filter(|judged| judged.effect == Effect::Ask);
            Arc::new(PendingCall {
                call: call.clone(),
                def: def.clone(),
                places: Arc::clone(places),
                asked: asked.map(|judged| judged.piece).collect(),
            })
        });
        Self {
            proposal,
            project: None,
            about,
        }
    }

    /// Nothing, for this reason.
    #[must_use]
    pub fn nothing(why: &str) -> Self {
        Self {
            proposal: ApprovalProposal::Nothing {
                why: why.to_owned(),
            },
            ..Self::default()
        }
    }

    /// The same where rules can be kept for this project.
    #[must_use]
    pub fn for_project(self, project: Option<PathBuf>) -> Self {
        Self { project, ..self }
    }

    /// The grant that stands at `at` of the proposal with another pattern, as it would be kept: a
    /// relative path begins at the working directory and is made absolute.
    ///
    /// # Errors
    /// Why it cannot be: it is no pattern, or leaves out what the call does.
    pub fn edited(&self, at: usize, pattern: &str) -> Result<Grant, String> {
        let none = || "there is nothing to edit".to_owned();
        let (Some(about), ApprovalProposal::Grants(grants)) = (&self.about, &self.proposal) else {
            return Err(none());
        };
        let offered = grants.get(at).ok_or_else(none)?;
        let subject = subject_of(&about.call, &about.def, &about.places);
        let held = about.asked.iter().copied();
        let held = held.filter(|piece| covers(offered, &subject, *piece));
        let held: Vec<CallPart> = held.collect();
        let kind = match held.first().ok_or_else(none)? {
            CallPart::Part(_) => PatternKind::Command,
            CallPart::Whole => PatternKind::Text,
            CallPart::Path(_) | CallPart::Redirection(_) | CallPart::UnknownWrite => {
                PatternKind::Path
            }
            CallPart::Url => PatternKind::Url,
        };
        let grant = Grant {
            tool: offered.tool.clone(),
            pattern: settled(kind, pattern.trim(), &about.places)?,
        };
        match held
            .into_iter()
            .find(|piece| !covers(&grant, &subject, *piece))
        {
            Some(left_out) => Err(format!(
                "it would not cover `{}`, which is asked about",
                left_out.shown(&subject)
            )),
            None => Ok(grant),
        }
    }
}

/// A pattern that means the same wherever the program is started.
fn settled(kind: PatternKind, pattern: &str, places: &PathResolver) -> Result<String, String> {
    let compiled = Pattern::new(kind, pattern, places).map_err(|error| error.to_string())?;
    if kind != PatternKind::Path || compiled.is_catch_all() {
        return Ok(pattern.to_owned());
    }
    let (whole, reach) = rooted(pattern, places).map_err(|error| error.to_string())?;
    if reach != PatternScope::Relative {
        return Ok(whole);
    }
    let Some(cwd) = places.real_cwd().to_str() else {
        return Err("the working directory is no UTF-8".to_owned());
    };
    Ok(format!("{}/{whole}", escape(cwd.trim_end_matches('/'))))
}

impl fmt::Debug for ApprovalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Offer").field(&self.proposal).finish()
    }
}

impl PartialEq for ApprovalOptions {
    fn eq(&self, other: &Self) -> bool {
        (&self.proposal, &self.project) == (&other.proposal, &other.project)
    }
}

impl Eq for ApprovalOptions {}
