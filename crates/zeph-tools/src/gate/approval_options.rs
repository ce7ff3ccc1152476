//! The options of a confirmation question: the parts of a call that it shows, and the grants that the user can
//! edit.

use std::sync::Arc;

use super::approvals::{covers, propose};
use super::command::PartKind;
use super::decision::{CallPart, DecidedBy, Decision, Effect};
use super::parsed_call::{CallSubject, subject_of};
use super::path_pattern::{escape, rooted};
use super::path_resolver::PathResolver;
use super::pattern::{Pattern, PatternKind, PatternScope};
use crate::call::ToolCall;
use crate::contract::confirmation::{
    ApprovalOptions, ApprovalProposal, DisplayPart, Grant, GrantEditor,
};
use crate::def::ToolDef;

/// Returns the parts of a command in the order of the decisions; empty for a call without a command.
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
                CallPart::UnknownWrite => "writes to a target that is unknown before it \
                    runs"
                    .to_owned(),
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
            "{verdict}: the rule `{}` ({}) may match",
            rule.written.pattern, rule.origin
        ),
        DecidedBy::Remembered => "allowed before".to_owned(),
        DecidedBy::ReadOnly => "allowed: only reads".to_owned(),
        DecidedBy::Mode(_) if effect == Effect::Allow => format!("{verdict} by the mode"),
        _ => verdict.to_owned(),
    }
}

/// A call that the user is asked about, and its asked parts.
struct PendingCall {
    call: ToolCall,
    def: ToolDef,
    places: Arc<PathResolver>,
    asked: Vec<CallPart>,
}

/// Returns the approval options for `call`, with the parts of `decision` that ask.
#[must_use]
pub fn approval_options(
    subject: &CallSubject<'_>,
    decision: &Decision<'_>,
    (call, def): (&ToolCall, &ToolDef),
    places: &Arc<PathResolver>,
) -> ApprovalOptions {
    let proposal = propose(subject, decision);
    let editor = matches!(proposal, ApprovalProposal::Grants(_)).then(|| {
        let asked = decision.pieces.iter();
        let asked = asked.filter(|judged| judged.effect == Effect::Ask);
        let pending: Arc<dyn GrantEditor> = Arc::new(PendingCall {
            call: call.clone(),
            def: def.clone(),
            places: Arc::clone(places),
            asked: asked.map(|judged| judged.piece).collect(),
        });
        pending
    });
    ApprovalOptions::new(proposal, editor)
}

impl GrantEditor for PendingCall {
    fn edited(&self, offered: &Grant, pattern: &str) -> Result<Grant, String> {
        let subject = subject_of(&self.call, &self.def, &self.places);
        let held = self.asked.iter().copied();
        let held = held.filter(|piece| covers(offered, &subject, *piece));
        let held: Vec<CallPart> = held.collect();
        let kind = match held.first().ok_or("there is nothing to edit")? {
            CallPart::Part(_) => PatternKind::Command,
            CallPart::Whole => PatternKind::Text,
            CallPart::Path(_) | CallPart::Redirection(_) | CallPart::UnknownWrite => {
                PatternKind::Path
            }
            CallPart::Url => PatternKind::Url,
        };
        let grant = Grant {
            tool: offered.tool.clone(),
            pattern: settled(kind, pattern.trim(), &self.places)?,
        };
        match held
            .into_iter()
            .find(|piece| !covers(&grant, &subject, *piece))
        {
            Some(left_out) => Err(format!(
                "the rule would not match `{}`, which needs confirmation",
                left_out.shown(&subject)
            )),
            None => Ok(grant),
        }
    }
}

/// Returns a pattern that has the same meaning in each working directory.
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
        return Err("the path of the working directory is not UTF-8".to_owned());
    };
    Ok(format!("{}/{whole}", escape(cwd.trim_end_matches('/'))))
}
