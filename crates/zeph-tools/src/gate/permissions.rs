//! Decides whether a call may run: pure. The order of a decision:
//!
//! 1. a piece of the call that a rule denies, or the whole that one denies: it is denied;
//! 2. mode `plan`: what does not only read is denied;
//! 3. a deny rule that may turn out to match: asked, whatever allows it;
//! 4. trust: what the level does not let run unasked is asked;
//! 5. each piece: the first rule that matches; where none does, the tool's nature and the mode;
//! 6. allowed if every piece is, else asked; mode `full` asks nothing, and in phase
//!    [`Phase::Autonomous`] what would be asked runs.
//!
//! The blocklist and the policy come before, and no rule here changes what they refuse.

use super::call_targets::PathRole;
use super::command::CommandSubject;
use super::decision::{CallPart, DecidedBy, Decision, Effect, PieceDecision};
use super::parsed_call::CallSubject;
use super::rule::{Action, MatchMode, Rule, RuleSet, ToolRules};
use crate::call::Phase;
use crate::def::{Annotations, Risk};
use crate::permission_mode::Mode;
use crate::trust::TrustLevel;

/// The tool whose rules hold for what redirections write to.
const WRITE: &str = "write";

/// What holds when a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionContext {
    /// How freely the agent acts.
    pub mode: Mode,
    /// How far the origin of the call is trusted.
    pub trust: TrustLevel,
    /// The phase of the work.
    pub phase: Phase,
}

/// Decides about a call.
#[must_use]
pub fn decide<'r>(
    subject: &CallSubject<'_>,
    rules: &'r RuleSet,
    given: PermissionContext,
) -> Decision<'r> {
    let own = rules.of(subject.tool);
    let judge = Judge {
        subject,
        own,
        write: rules.of(WRITE),
        given,
    };
    let pieces = judge.pieces();
    let decided = |effect, by, piece| Decision {
        effect,
        by,
        piece,
        pieces: pieces.clone(),
    };
    let find =
        |wanted: &dyn Fn(&PieceDecision<'_>) -> bool| pieces.iter().find(|judged| wanted(judged));
    if let Some(judged) = find(&|judged| judged.effect == Effect::Deny) {
        return decided(Effect::Deny, judged.by, judged.piece);
    }
    if given.mode == Mode::Plan && !subject.nature.read_only && !is_own_state(&subject.nature) {
        return decided(Effect::Deny, DecidedBy::Mode(Mode::Plan), CallPart::Whole);
    }
    if let Some(judged) = find(&is_perhaps_denied) {
        // Nobody is there who could say that it is not denied.
        let effect = match given.phase {
            Phase::Autonomous => Effect::Deny,
            _ => Effect::Ask,
        };
        return decided(effect, judged.by, judged.piece);
    }
    let asked = if !given.trust.allows(&subject.nature) {
        Some((DecidedBy::Trust(given.trust), CallPart::Whole))
    } else {
        // What a rule says is told before what only no rule allows.
        let by_rule = |judged: &PieceDecision<'_>| {
            matches!(judged.by, DecidedBy::Rule(_) | DecidedBy::Perhaps(_))
        };
        find(&|judged| judged.effect == Effect::Ask && by_rule(judged))
            .or_else(|| find(&|judged| judged.effect == Effect::Ask))
            .map(|judged| (judged.by, judged.piece))
    };
    match asked {
        Some(_) if given.phase == Phase::Autonomous => {
            decided(Effect::Allow, DecidedBy::Autonomous, CallPart::Whole)
        }
        Some((by, piece)) => decided(Effect::Ask, by, piece),
        None => {
            let first = pieces.first().map_or(DecidedBy::Nature, |judged| judged.by);
            decided(Effect::Allow, first, CallPart::Whole)
        }
    }
}

fn is_perhaps_denied(judged: &PieceDecision<'_>) -> bool {
    matches!(judged.by, DecidedBy::Perhaps(rule) if rule.action() == Action::Deny)
}

/// Whether a tool changes nothing but the session's own state.
fn is_own_state(nature: &Annotations) -> bool {
    nature.risk == Risk::Safe && !nature.open_world
}

struct Judge<'a, 'r> {
    subject: &'a CallSubject<'a>,
    own: Option<&'r ToolRules>,
    write: Option<&'r ToolRules>,
    given: PermissionContext,
}

/// What the rules of a tool say about a piece, and at which place in the list.
struct Found<'r> {
    rule: Option<(usize, &'r Rule, MatchMode)>,
}

impl<'r> Judge<'_, 'r> {
    fn pieces(&self) -> Vec<PieceDecision<'r>> {
        let subject = self.subject;
        if let Some(command) = &subject.command {
            return self.command(command);
        }
        if let Some(url) = &subject.url {
            let found = first(self.own, |rule| rule.fits_url(url));
            return vec![self.judged(CallPart::Url, found)];
        }
        if !subject.paths.is_empty() {
            return self.paths();
        }
        let found = first(self.own, |rule| match rule.is_catch_all() {
            true => MatchMode::Yes,
            false => rule.fits_text(subject.arguments()),
        });
        vec![self.judged(CallPart::Whole, found)]
    }

    fn paths(&self) -> Vec<PieceDecision<'r>> {
        let places = self.subject.places();
        let paths = self.subject.paths.iter().enumerate();
        paths
            .map(|(at, path)| {
                let found = first(self.own, |rule| match rule.is_catch_all() {
                    true => MatchMode::Yes,
                    false => rule.fits_path(path.forms(places)),
                });
                self.judged(CallPart::Path(at), found)
            })
            .collect()
    }

    fn command(&self, command: &CommandSubject) -> Vec<PieceDecision<'r>> {
        let mut pieces = Vec::with_capacity(command.parts.len() + command.writes.len() + 1);
        // The first place in the list that no part was decided before.
        let mut open = Some(0);
        for (at, part) in command.parts.iter().enumerate() {
            let found = first(self.own, |rule| rule.fits_part(part));
            let place = found.rule.filter(|(_, _, fit)| *fit == MatchMode::Yes);
            open = open
                .zip(place)
                .map(|(open, (place, ..))| open.max(place + 1));
            pieces.push(self.judged(CallPart::Part(at), found));
        }
        if command.parts.is_empty() || command.unknown.is_some() {
            open = None;
        }
        pieces.extend(self.whole(command, open));
        let places = self.subject.places();
        for (at, path) in command.writes.iter().enumerate() {
            let found = first(self.write, |rule| match rule.is_catch_all() {
                true => MatchMode::Yes,
                false => rule.fits_path(path.forms(places)),
            });
            let inside = || path.role == PathRole::Write && path.forms(places).inside;
            pieces.push(self.written(CallPart::Redirection(at), found, inside));
        }
        if command.unknown_writes {
            let found = first(self.write, |rule| match rule.action() {
                Action::Deny => MatchMode::Maybe,
                _ => MatchMode::No,
            });
            pieces.push(self.written(CallPart::UnknownWrite, found, || false));
        }
        if command.unknown.is_some() && self.given.mode != Mode::Full {
            pieces.push(PieceDecision {
                piece: CallPart::Whole,
                effect: Effect::Ask,
                by: DecidedBy::Unknown,
            });
        } else if pieces.is_empty() {
            pieces.push(self.judged(CallPart::Whole, Found { rule: None }));
        }
        pieces
    }

    /// What deny and ask rules say about the command as it is written. They yield to rules that
    /// stand before them and decided every part; an allow rule is about parts alone.
    fn whole(
        &self,
        command: &CommandSubject,
        decided_by: Option<usize>,
    ) -> Option<PieceDecision<'r>> {
        let mut held = None;
        for (at, rule) in self.own?.rules.iter().enumerate() {
            if rule.action() == Action::Allow || rule.fits_text(&command.whole) != MatchMode::Yes {
                continue;
            }
            // What is denied is denied behind a project's question as well.
            if rule.action() == Action::Deny {
                held = Some((at, rule));
                break;
            }
            held = held.or(Some((at, rule)));
            if !rule.only_tightens {
                break;
            }
        }
        let (at, rule) = held?;
        if decided_by.is_some_and(|before| before <= at) {
            return None;
        }
        let effect = match rule.action() {
            Action::Deny => Effect::Deny,
            _ if self.given.mode == Mode::Full => return None,
            _ => Effect::Ask,
        };
        Some(PieceDecision {
            piece: CallPart::Whole,
            effect,
            by: DecidedBy::Rule(rule),
        })
    }

    fn judged(&self, piece: CallPart, found: Found<'r>) -> PieceDecision<'r> {
        let (effect, by) = match found.by_rule(self.given.mode) {
            Some(decided) => decided,
            None => self.unmatched(),
        };
        PieceDecision { piece, effect, by }
    }

    fn written(
        &self,
        piece: CallPart,
        found: Found<'r>,
        inside: impl Fn() -> bool,
    ) -> PieceDecision<'r> {
        let mode = self.given.mode;
        let (effect, by) = match found.by_rule(mode) {
            Some(decided) => decided,
            None if mode == Mode::Full || (mode == Mode::AutoEdit && inside()) => {
                (Effect::Allow, DecidedBy::Mode(mode))
            }
            None if piece == CallPart::UnknownWrite => (Effect::Ask, DecidedBy::Unknown),
            None => (Effect::Ask, DecidedBy::Mode(mode)),
        };
        PieceDecision { piece, effect, by }
    }

    /// By the nature of the tool and the mode, where no rule matches.
    fn unmatched(&self) -> (Effect, DecidedBy<'r>) {
        let nature = &self.subject.nature;
        let mode = self.given.mode;
        // A tool that says of itself that it only reads, and is not believed, has a high risk.
        let reads = nature.read_only && !nature.open_world && nature.risk < Risk::High;
        let harmless = reads || is_own_state(nature);
        let listed = self.own.is_some_and(|own| own.listed);
        let edits_files = !nature.open_world && nature.risk <= Risk::Medium;
        match mode {
            Mode::Full => (Effect::Allow, DecidedBy::Mode(mode)),
            Mode::AutoEdit if harmless => (Effect::Allow, DecidedBy::Nature),
            Mode::AutoEdit if edits_files => (Effect::Allow, DecidedBy::Mode(mode)),
            _ if listed => (Effect::Ask, DecidedBy::NoRule),
            _ if harmless => (Effect::Allow, DecidedBy::Nature),
            _ => (Effect::Ask, DecidedBy::Mode(mode)),
        }
    }
}

impl<'r> Found<'r> {
    fn by_rule(&self, mode: Mode) -> Option<(Effect, DecidedBy<'r>)> {
        let (_, rule, fit) = self.rule?;
        Some(match (rule.action(), fit) {
            (Action::Allow, _) => (Effect::Allow, DecidedBy::Rule(rule)),
            (Action::Deny, MatchMode::Yes) => (Effect::Deny, DecidedBy::Rule(rule)),
            (Action::Deny, _) => (Effect::Ask, DecidedBy::Perhaps(rule)),
            (Action::Ask, _) if mode == Mode::Full => (Effect::Allow, DecidedBy::Mode(mode)),
            (Action::Ask, MatchMode::Yes) => (Effect::Ask, DecidedBy::Rule(rule)),
            (Action::Ask, _) => (Effect::Ask, DecidedBy::Perhaps(rule)),
        })
    }
}

/// The first rule that matches. One before it that may match counts instead, and so does a
/// project's question, a deny rule more than an ask rule, unless what follows denies for sure.
fn first<'r>(list: Option<&'r ToolRules>, fits: impl Fn(&Rule) -> MatchMode) -> Found<'r> {
    let mut held: Option<(usize, &Rule, MatchMode)> = None;
    for (at, rule) in list.into_iter().flat_map(|list| &list.rules).enumerate() {
        let fit = fits(rule);
        let found = Some((at, rule, fit));
        let holds_back =
            fit == MatchMode::Maybe || (rule.only_tightens && rule.action() == Action::Ask);
        match (fit, rule.action()) {
            (MatchMode::No, _) => {}
            (MatchMode::Yes, Action::Deny) => return Found { rule: found },
            (_, Action::Deny) => {
                held = held
                    .filter(|(_, rule, _)| rule.action() == Action::Deny)
                    .or(found);
            }
            _ if holds_back => held = held.or(found),
            _ => {
                return Found {
                    rule: held.or(found),
                };
            }
        }
    }
    Found { rule: held }
}
