//! The decision about a call: its effect, its cause, and the rules that would allow the call.

use super::parsed_call::{CallSubject, SubjectPath};
use super::pattern::Pattern;
use super::rule::{Action, Rule};
use crate::contract::confinement::SandboxProfile;
use crate::permission_mode::Mode;
use crate::trust::TrustLevel;

/// The effect of a decision on a call or on a part of it, in increasing strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The call may run.
    Allow,
    /// The user has to approve the call first.
    Ask,
    /// The call does not run.
    Deny,
}

/// A part of a call that rules are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallPart {
    /// The whole call: the whole command, or the arguments.
    Whole,
    /// A part of the command, by index.
    Part(usize),
    /// A path, by index in [`CallSubject::paths`].
    Path(usize),
    /// The target of a redirection, by index in [`super::CommandSubject::writes`].
    Redirection(usize),
    /// A target of a redirection that cannot be known.
    UnknownWrite,
    /// The URL.
    Url,
}

/// The cause of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy<'r> {
    /// A rule that matches.
    Rule(&'r Rule),
    /// A rule that may match; the part that decides it is unknown before the call runs.
    Perhaps(&'r Rule),
    /// The tool has rules, and none of them matches.
    NoRule,
    /// The nature of the tool: it reads, or it changes only the state of the session.
    Nature,
    /// The command only reads, and the OS sandbox enforces that.
    ReadOnly,
    /// The mode of the session.
    Mode(Mode),
    /// The trust level of the origin of the call.
    Trust(TrustLevel),
    /// A part of the command that cannot be known.
    Unknown,
    /// The autonomous mode: no user is present to ask.
    Autonomous,
    /// An earlier approval by the user that covers this call.
    Remembered,
}

/// The decision about a part of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PieceDecision<'r> {
    /// The part.
    pub piece: CallPart,
    /// The effect.
    pub effect: Effect,
    /// The cause.
    pub by: DecidedBy<'r>,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<'r> {
    /// The effect.
    pub effect: Effect,
    /// The cause.
    pub by: DecidedBy<'r>,
    /// The part that decided, if one did.
    pub piece: CallPart,
    /// The decision about each part, in the order of the call.
    pub pieces: Vec<PieceDecision<'r>>,
}

impl<'r> Decision<'r> {
    /// Returns the rule that decided, or the first rule that allowed a part.
    #[must_use]
    pub fn rule(&self) -> Option<&'r Rule> {
        let of = |by: DecidedBy<'r>| match by {
            DecidedBy::Rule(rule) | DecidedBy::Perhaps(rule) => Some(rule),
            _ => None,
        };
        of(self.by).or_else(|| {
            (self.effect == Effect::Allow)
                .then(|| self.pieces.iter().find_map(|judged| of(judged.by)))
                .flatten()
        })
    }

    /// Returns the rule that decided, for the audit trail: `tools.permissions.bash[2] (FILE:12) deny "rm *"`.
    #[must_use]
    pub fn policy_match(&self) -> Option<String> {
        let rule = self.rule()?;
        Some(format!(
            "{} ({}) {} {:?}",
            rule.origin.key,
            rule.origin,
            rule.action().as_str(),
            rule.written.pattern
        ))
    }

    /// Returns the sandbox in which the command of an allowed call runs.
    #[must_use]
    pub fn sandbox_profile(&self) -> SandboxProfile {
        let is_by = |by: DecidedBy<'_>| self.pieces.iter().any(|judged| judged.by == by);
        if self.effect != Effect::Allow {
            SandboxProfile::Configured
        } else if is_by(DecidedBy::ReadOnly) {
            SandboxProfile::ReadOnly
        } else if is_by(DecidedBy::Mode(Mode::Auto)) {
            SandboxProfile::Unconfirmed
        } else {
            SandboxProfile::Configured
        }
    }

    /// Whether an allow rule with the exact text of the command replaces the confirmation of the shell.
    /// `can_be_allowed_exactly` states whether the verdict of the shell admits that.
    #[must_use]
    pub fn replaces_confirmation(&self, can_be_allowed_exactly: bool) -> bool {
        let is_exact = |judged: &PieceDecision<'_>| {
            judged.piece == CallPart::Whole
                && matches!(judged.by, DecidedBy::Rule(rule) if rule.action() == Action::Allow)
        };
        self.effect == Effect::Allow && can_be_allowed_exactly && self.pieces.iter().any(is_exact)
    }

    /// Returns a sentence with the reason for the question or the refusal.
    #[must_use]
    pub fn reason(&self, subject: &CallSubject<'_>) -> String {
        let what = self.piece.shown(subject);
        let about = match self.piece {
            CallPart::Whole | CallPart::Url => String::new(),
            _ if subject.command.is_none() && subject.paths.len() < 2 => String::new(),
            _ => format!(" (`{what}`)"),
        };
        match self.by {
            DecidedBy::Rule(rule) => format!(
                "the rule `{}` of {} ({}) says {}{about}",
                rule.written.pattern,
                rule.origin.key,
                rule.origin,
                rule.action().as_str()
            ),
            DecidedBy::Perhaps(rule) => format!(
                "the rule `{}` of {} ({}) says {}, and whether it matches is unknown before the \
                 call runs{about}",
                rule.written.pattern,
                rule.origin.key,
                rule.origin,
                rule.action().as_str()
            ),
            DecidedBy::NoRule => format!("no rule of tools.permissions matches{about}"),
            DecidedBy::Unknown => {
                let unknown = subject
                    .command
                    .as_ref()
                    .and_then(|command| command.unknown.as_deref());
                match unknown {
                    Some(unknown) => format!("a part is unknown before it runs: {unknown}"),
                    None => "the target that it writes to is unknown before it runs".to_owned(),
                }
            }
            DecidedBy::Trust(TrustLevel::Untrusted) => {
                "the call comes from an untrusted source, and it is not read-only and \
                 local"
                    .to_owned()
            }
            DecidedBy::Trust(_) => {
                "the call comes from a source that is not fully trusted, and it \
                does more than read"
                    .to_owned()
            }
            DecidedBy::Mode(Mode::Plan) if self.effect == Effect::Deny => {
                "plan mode allows only read-only tools and read-only commands; the user can switch \
                 with /mode ask or --mode ask"
                    .to_owned()
            }
            DecidedBy::Mode(_)
            | DecidedBy::ReadOnly
            | DecidedBy::Nature
            | DecidedBy::Autonomous
            | DecidedBy::Remembered => {
                let nature = &subject.nature;
                match self.piece {
                    CallPart::Redirection(_) | CallPart::UnknownWrite => {
                        format!("it writes{about}")
                    }
                    _ if nature.read_only => "the call accesses the network".to_owned(),
                    _ if !nature.open_world && nature.risk <= crate::def::Risk::Medium => {
                        "it changes files".to_owned()
                    }
                    _ if subject.command.is_none() => {
                        "the tool can run programs or change data outside of the project".to_owned()
                    }
                    _ => "the command can change anything that you can change".to_owned(),
                }
            }
        }
    }

    /// Returns the rules that would let the call run: one for each part that asks. Empty if the call is denied or
    /// if no rule can allow it.
    #[must_use]
    pub fn would_allow(&self, subject: &CallSubject<'_>) -> Vec<(String, String)> {
        let exact = subject
            .command
            .as_ref()
            .filter(|it| it.can_be_allowed_exactly);
        let is_replaceable = |judged: &PieceDecision<'_>| {
            exact.is_some() && judged.piece == CallPart::Whole && judged.by == DecidedBy::Unknown
        };
        let mut pieces = self.pieces.iter();
        if self.effect != Effect::Ask
            || matches!(self.by, DecidedBy::Trust(_))
            || pieces.any(|judged| no_rule_allows(judged) && !is_replaceable(judged))
        {
            return Vec::new();
        }
        // A rule about the whole command has no effect if earlier rules decide every part.
        let whole = |judged: &PieceDecision<'_>| {
            judged.piece == CallPart::Whole
                && judged.effect == Effect::Ask
                && subject.command.is_some()
        };
        let all_parts = exact.is_none() && self.pieces.iter().any(whole);
        let is_part = |judged: &PieceDecision<'_>| matches!(judged.piece, CallPart::Part(_));
        let asked = self.pieces.iter().filter(|judged| {
            let is_covered = exact.is_some() && is_part(judged);
            !whole(judged)
                && !is_covered
                && (judged.effect == Effect::Ask || (all_parts && is_part(judged)))
        });
        let mut rules: Vec<(String, String)> = Vec::new();
        if let Some(command) = exact {
            let pattern = escape_text(command.text.trim());
            if Pattern::of_words(&pattern, subject.places()).is_err() {
                return rules;
            }
            rules.push((subject.tool.to_owned(), pattern));
        }
        for judged in asked {
            let Some(rule) = judged.piece.rule(subject) else {
                return Vec::new();
            };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }
}

/// Whether a part is asked about regardless of the rules.
fn no_rule_allows(judged: &PieceDecision<'_>) -> bool {
    judged.effect == Effect::Ask && matches!(judged.by, DecidedBy::Perhaps(_) | DecidedBy::Unknown)
}

impl CallPart {
    /// Returns the text of the part for the user.
    #[must_use]
    pub fn shown(self, subject: &CallSubject<'_>) -> String {
        let command = subject.command.as_ref();
        match self {
            Self::Whole => command.map_or_else(
                || super::parsed_call::canonical_json(subject.params),
                |command| command.text.clone(),
            ),
            Self::Part(at) => command
                .and_then(|command| command.parts.get(at))
                .map(|part| part.text.clone())
                .unwrap_or_default(),
            Self::Path(at) => subject
                .paths
                .get(at)
                .map(|path| path.given.clone())
                .unwrap_or_default(),
            Self::Redirection(at) => command
                .and_then(|command| command.writes.get(at))
                .map(|path| format!("> {}", path.given))
                .unwrap_or_default(),
            Self::UnknownWrite => "> …".to_owned(),
            Self::Url => subject
                .url
                .as_ref()
                .map(|url| url.given.clone())
                .unwrap_or_default(),
        }
    }

    /// Returns the tool and the pattern of a rule that is only about this part.
    fn rule(self, subject: &CallSubject<'_>) -> Option<(String, String)> {
        let own = subject.tool.to_owned();
        let command = subject.command.as_ref();
        let path = |path: &SubjectPath| {
            let forms = path.forms(subject.places());
            let text = forms.canonical_relative.clone();
            let absolute = || Some(forms.canonical.as_ref()?.to_str()?.to_owned());
            Some(super::path_pattern::escape(&text.or_else(absolute)?))
        };
        match self {
            Self::Whole if command.is_some() => None,
            Self::Whole => Some((
                own,
                escape_text(&super::parsed_call::canonical_json(subject.params)),
            )),
            Self::Part(at) => {
                let part = command?.parts.get(at).filter(|part| part.known)?;
                let assigned = part.assignments.iter().map(|(name, value)| {
                    format!("{name}={}", value.as_deref().unwrap_or_default())
                });
                let words = assigned.chain(part.words.iter().cloned());
                let words: Vec<String> = words.map(|word| escape_word(&word)).collect();
                let pattern = words.join(" ");
                let compiled = Pattern::of_words(&pattern, subject.places()).ok()?;
                // Some words cannot be expressed by a pattern.
                compiled.matches(&part.strict).then_some((own, pattern))
            }
            Self::Path(at) => Some((own, path(subject.paths.get(at)?)?)),
            Self::Redirection(at) => Some(("write".to_owned(), path(command?.writes.get(at)?)?)),
            Self::UnknownWrite => None,
            Self::Url => {
                let url = subject.url.as_ref()?.normal.as_deref()?;
                Some((own, escape_text(url)))
            }
        }
    }
}

/// Escapes the characters that are special in patterns of commands.
pub(super) fn escape_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Escapes a word of a command, with its blanks: an escaped blank does not separate words.
pub(super) fn escape_word(word: &str) -> String {
    escape_text(word).replace(char::is_whitespace, "\\ ")
}

/// Formats rules as entries of a configuration file.
#[must_use]
pub fn as_toml(rules: &[(String, String)]) -> String {
    let quote = |text: &str| {
        if text.contains('\'') || text.contains(char::is_control) {
            // The escapes of JSON are a subset of those of TOML.
            serde_json::Value::String(text.to_owned()).to_string()
        } else {
            format!("'{text}'")
        }
    };
    let mut text = String::new();
    for (tool, pattern) in rules {
        text.push_str(&format!(
            "[[tools.permissions.{tool}]]\npattern = {}\naction = \"{}\"\n",
            quote(pattern),
            Action::Allow.as_str()
        ));
    }
    text
}
