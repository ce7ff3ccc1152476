//! The pure decision whether a call may run, in this order:
//!
//! 1. If a rule denies a part of the call or the whole call, it is denied.
//! 2. In mode `plan`, a call that does more than read is denied.
//! 3. If a deny rule may match once the call runs, the user is asked, even if another rule allows the call.
//! 4. If the trust level does not allow the call without a question, the user is asked.
//! 5. The first matching rule decides each part. If no rule matches, a command that only reads is allowed; else the nature
//!    of the tool and the mode decide.
//! 6. The call is allowed if every part is allowed; else the user is asked. Mode `full` asks nothing, and in
//!    phase [`Phase::Autonomous`] a call that would be asked about runs.
//!
//! The blocklist and the policy come first, and no rule here changes their refusals.

use std::cell::OnceCell;

use super::command::CommandSubject;
use super::decision::{CallPart, DecidedBy, Decision, Effect, PieceDecision};
use super::parsed_call::CallSubject;
use super::read_only;
use super::rule::{Action, MatchMode, Rule, RuleSet, ToolRules};
use crate::call::Phase;
use crate::contract::call_targets::PathRole;
use crate::contract::confinement::SandboxSupport;
use crate::def::{Annotations, Risk};
use crate::permission_mode::Mode;
use crate::trust::TrustLevel;

/// The tool whose rules apply to the targets of redirections.
const WRITE: &str = "write";
/// The tool whose rules apply to the paths that a read-only command names.
const READ: &str = "read";

/// The nature of a command that only reads, for the trust level.
const READ_ONLY_COMMAND: Annotations = Annotations {
    risk: Risk::Medium,
    ..Annotations::READ
};

/// The conditions of a decision: mode, trust level, phase and OS sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionContext {
    /// The mode of the session.
    pub mode: Mode,
    /// The trust level of the origin of the call.
    pub trust: TrustLevel,
    /// The phase of the work.
    pub phase: Phase,
    /// The parts of the OS sandbox that this machine enforces.
    pub sandbox: SandboxSupport,
    /// Whether a command that only reads is judged like any other, because the sandbox refused an access to it.
    pub ignores_read_only: bool,
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
        read: rules.of(READ),
        reads_only: OnceCell::new(),
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
    let reads = judge.reads_only();
    let reads = reads && pieces.iter().all(|judged| judged.effect == Effect::Allow);
    if given.mode == Mode::Plan
        && !subject.nature.read_only
        && !is_own_state(&subject.nature)
        && !reads
    {
        return decided(Effect::Deny, DecidedBy::Mode(Mode::Plan), CallPart::Whole);
    }
    if let Some(judged) = find(&is_perhaps_denied) {
        // In the autonomous phase, no user is present to confirm the call.
        let effect = match given.phase {
            Phase::Autonomous => Effect::Deny,
            _ => Effect::Ask,
        };
        return decided(effect, judged.by, judged.piece);
    }
    let nature = match reads {
        true => READ_ONLY_COMMAND,
        false => subject.nature,
    };
    let asked = if !given.trust.allows(&nature) {
        Some((DecidedBy::Trust(given.trust), CallPart::Whole))
    } else {
        // A decision by a rule is reported before a question that has no rule.
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

/// Whether a tool changes nothing except the state of the session.
fn is_own_state(nature: &Annotations) -> bool {
    nature.risk == Risk::Safe && !nature.open_world
}

struct Judge<'a, 'r> {
    subject: &'a CallSubject<'a>,
    own: Option<&'r ToolRules>,
    write: Option<&'r ToolRules>,
    read: Option<&'r ToolRules>,
    /// Whether the command only reads, once it is known.
    reads_only: OnceCell<bool>,
    given: PermissionContext,
}

/// The rule of a tool that decides a part, with its index in the list.
pub(super) struct Found<'r> {
    pub(super) rule: Option<(usize, &'r Rule, MatchMode)>,
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
        let exact = self.exact_rule(command);
        // The index after the last rule that decided a part; `None` if a part has no certain decision.
        let mut open = Some(0);
        for (at, part) in command.parts.iter().enumerate() {
            let found = first(self.own, |rule| rule.fits_part(part));
            let place = found.rule.filter(|(_, _, fit)| *fit == MatchMode::Yes);
            open = open
                .zip(place)
                .map(|(open, (place, ..))| open.max(place + 1));
            let judged = self.judged(CallPart::Part(at), found);
            pieces.push(match (judged.by, exact) {
                (DecidedBy::Rule(_) | DecidedBy::Perhaps(_), _) | (_, None) => judged,
                (_, Some(rule)) => PieceDecision {
                    effect: Effect::Allow,
                    by: DecidedBy::Rule(rule),
                    ..judged
                },
            });
        }
        if command.parts.is_empty() || command.unresolved.is_some() {
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
        if let Some(rule) = exact {
            pieces.push(PieceDecision {
                piece: CallPart::Whole,
                effect: Effect::Allow,
                by: DecidedBy::Rule(rule),
            });
        } else if command.unknown.is_some() && self.given.mode != Mode::Full {
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

    /// The allow rule with the exact text of a command that cannot be determined. It replaces the confirmation.
    fn exact_rule(&self, command: &CommandSubject) -> Option<&'r Rule> {
        let own = self.own.filter(|_| command.can_be_allowed_exactly)?;
        let is_exact =
            |rule: &&Rule| rule.action() == Action::Allow && rule.is_exactly(&command.text);
        own.rules.iter().find(is_exact)
    }

    /// Compares the whole text of the command with the deny and ask rules. They have no effect if earlier rules
    /// decided every part. Allow rules apply to parts only.
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
            // A deny rule applies even after an ask rule of a project.
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
            None if mode == Mode::Full => (Effect::Allow, DecidedBy::Mode(mode)),
            None if matches!(mode, Mode::AutoEdit | Mode::Auto) && inside() => {
                (Effect::Allow, DecidedBy::Mode(mode))
            }
            // The sandbox refuses a write outside of the project.
            None if mode == Mode::Auto
                && piece == CallPart::UnknownWrite
                && self.given.sandbox.is_complete() =>
            {
                (Effect::Allow, DecidedBy::Mode(mode))
            }
            None if piece == CallPart::UnknownWrite => (Effect::Ask, DecidedBy::Unknown),
            None => (Effect::Ask, DecidedBy::Mode(mode)),
        };
        PieceDecision { piece, effect, by }
    }

    /// Whether the call is a command that only reads, and the sandbox can enforce that.
    fn reads_only(&self) -> bool {
        self.given.sandbox.is_complete()
            && !self.given.ignores_read_only
            && *self
                .reads_only
                .get_or_init(|| read_only::is_read_only(self.subject, self.read))
    }

    /// Decides by the nature of the tool and the mode, if no rule matches.
    fn unmatched(&self) -> (Effect, DecidedBy<'r>) {
        let nature = &self.subject.nature;
        let mode = self.given.mode;
        // An untrusted tool that declares itself read-only has a high risk.
        let reads = nature.read_only && !nature.open_world && nature.risk < Risk::High;
        let harmless = reads || is_own_state(nature);
        let listed = self.own.is_some_and(|own| own.listed);
        let edits_files = !nature.open_world && nature.risk <= Risk::Medium;
        if self.reads_only() {
            return (Effect::Allow, DecidedBy::ReadOnly);
        }
        let confined = self.subject.command.is_some() && self.given.sandbox.is_complete();
        match mode {
            Mode::Full => (Effect::Allow, DecidedBy::Mode(mode)),
            Mode::AutoEdit | Mode::Auto if harmless => (Effect::Allow, DecidedBy::Nature),
            Mode::AutoEdit | Mode::Auto if edits_files => (Effect::Allow, DecidedBy::Mode(mode)),
            Mode::Auto if confined => (Effect::Allow, DecidedBy::Mode(mode)),
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

/// Returns the first rule that matches. An earlier rule that may match takes precedence, and so does an ask rule
/// of a project; a deny rule takes precedence over an ask rule. A later rule that certainly denies overrides them
/// all.
pub(super) fn first<'r>(
    list: Option<&'r ToolRules>,
    fits: impl Fn(&Rule) -> MatchMode,
) -> Found<'r> {
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
