//! Approvals for more than one call: the grants that a question may offer, and the calls that a grant covers.
//!
//! A grant is a tool and a pattern. It turns "ask" into "allow" and changes nothing else: a denied call stays
//! denied, and a call for a source that is not fully trusted is asked about each time. For a command, a grant
//! covers single simple commands. It never covers a command that runs another one (`sudo`, `xargs`, an
//! interpreter), that sets variables, or that has a part unknown before it runs. It never covers the target of a
//! redirection, which is a separate `write`.
//!
//! A pattern with wildcards covers other options only if they are known to be harmless.
//!
//! The literal part of a pattern is case-sensitive, because the user approved text in one case.

use std::path::Path;

use super::decision::{
    CallPart, DecidedBy, Decision, Effect, PieceDecision, escape_text, escape_word,
};
use super::glob::Text;
use super::parsed_call::{CallSubject, SubjectPath, canonical_json};
use super::path_pattern::escape;
use super::path_resolver::PathResolver;
use super::pattern::{MAX_CHARS, Pattern, PatternKind};
use super::rule::{Action, MatchMode, PermissionRule, Place, Rule, RuleOrigin};
use super::{CachedPathResolver, CommandPart, PartKind};
use crate::contract::confirmation::{ApprovalProposal, Grant};

/// The tool that holds grants for the targets of redirections.
const WRITE: &str = "write";

/// Returns the approvals to offer for a call that is asked about.
#[must_use]
pub fn propose(subject: &CallSubject<'_>, decision: &Decision<'_>) -> ApprovalProposal {
    if let Some(why) = always_asks(decision) {
        return ApprovalProposal::Nothing { why };
    }
    match grants(subject, decision) {
        Ok(grants) => ApprovalProposal::Grants(grants),
        Err(why) => ApprovalProposal::ThisCall { why },
    }
}

/// Allows the asked parts that `grants` cover, or all of them if the user approved `this_call`.
/// Returns the new decision and the used grants. An approval of the call uses none.
#[must_use]
pub fn apply<'r>(
    subject: &CallSubject<'_>,
    mut decision: Decision<'r>,
    grants: &[Grant],
    this_call: bool,
) -> (Decision<'r>, Vec<Grant>) {
    let mut used: Vec<Grant> = Vec::new();
    if always_asks(&decision).is_some() || (grants.is_empty() && !this_call) {
        return (decision, used);
    }
    // A rule that asks about a part also asks about the whole command if the command begins with the part.
    let mut settled: Vec<DecidedBy<'_>> = Vec::new();
    let whole = |judged: &PieceDecision<'_>| judged.piece == CallPart::Whole;
    let (parts, wholes): (Vec<_>, Vec<_>) = decision
        .pieces
        .iter_mut()
        .partition(|judged| !whole(judged));
    for judged in parts.into_iter().chain(wholes) {
        if judged.effect != Effect::Ask {
            continue;
        }
        let perhaps = matches!(judged.by, DecidedBy::Perhaps(_));
        let grant = grants
            .iter()
            .find(|grant| !this_call && !perhaps && covers(grant, subject, judged.piece));
        let with_a_part = whole(judged)
            && matches!(judged.by, DecidedBy::Rule(_))
            && settled.contains(&judged.by);
        if grant.is_none() && !this_call && !with_a_part {
            continue;
        }
        settled.push(judged.by);
        judged.effect = Effect::Allow;
        judged.by = DecidedBy::Remembered;
        used.extend(grant.filter(|grant| !used.contains(grant)).cloned());
    }
    let asked = decision
        .pieces
        .iter()
        .find(|judged| judged.effect == Effect::Ask);
    match asked {
        Some(judged) => (decision.by, decision.piece) = (judged.by, judged.piece),
        None => {
            decision.effect = Effect::Allow;
            decision.by = DecidedBy::Remembered;
            decision.piece = CallPart::Whole;
        }
    }
    (decision, used)
}

/// Returns the reason why approvals do not apply to a call; `None` if they do.
fn always_asks(decision: &Decision<'_>) -> Option<String> {
    let why = match decision.by {
        _ if decision.effect != Effect::Ask => "the call needs no confirmation",
        DecidedBy::Trust(_) => "calls for untrusted sources are confirmed every time",
        DecidedBy::Perhaps(rule) if rule.action() == Action::Deny => {
            "whether a rule denies it is unknown before it runs"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

fn grants(subject: &CallSubject<'_>, decision: &Decision<'_>) -> Result<Vec<Grant>, String> {
    let mut grants: Vec<Grant> = Vec::new();
    for judged in &decision.pieces {
        if judged.effect != Effect::Ask {
            continue;
        }
        let with_a_part = judged.piece == CallPart::Whole
            && decision.pieces.iter().any(|part| {
                part.piece != CallPart::Whole && part.by == judged.by && part.effect == Effect::Ask
            });
        if with_a_part && matches!(judged.by, DecidedBy::Rule(_)) {
            continue;
        }
        if matches!(judged.by, DecidedBy::Perhaps(_)) {
            return Err("whether a rule matches it is unknown before it runs".to_owned());
        }
        let grant = grant_for(subject, judged.piece)?;
        if grant.pattern.chars().count() > MAX_CHARS {
            return Err(format!(
                "the rule would have more than {MAX_CHARS} characters"
            ));
        }
        if !covers(&grant, subject, judged.piece) {
            return Err("no rule can express exactly this call".to_owned());
        }
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }
    match grants.is_empty() {
        true => Err("no rule can express exactly this call".to_owned()),
        false => Ok(grants),
    }
}

fn grant_for(subject: &CallSubject<'_>, piece: CallPart) -> Result<Grant, String> {
    let own = |pattern| Grant {
        tool: subject.tool.to_owned(),
        pattern,
    };
    let command = subject.command.as_ref();
    let gone = || "no rule can express exactly this call".to_owned();
    match piece {
        CallPart::Whole => match command {
            None => Ok(own(escape_text(&canonical_json(subject.params)))),
            Some(command) => Err(match &command.unknown {
                Some(unknown) => format!("a part is unknown before it runs: {unknown}"),
                None => "the question is about the whole command".to_owned(),
            }),
        },
        CallPart::Part(at) => {
            let part = command.and_then(|command| command.parts.get(at));
            let part = part.ok_or_else(gone)?;
            stands_alone(part)?;
            Ok(own(part_pattern(part)))
        }
        CallPart::Path(_) if subject.paths.len() > 1 => Err(
            "the call has several paths, and rules for each would also allow other \
             combinations"
                .to_owned(),
        ),
        CallPart::Path(at) => {
            let path = subject.paths.get(at).ok_or_else(gone)?;
            Ok(own(path_pattern(path, subject.places())?))
        }
        CallPart::Redirection(at) => {
            let path = command.and_then(|command| command.writes.get(at));
            Ok(Grant {
                tool: WRITE.to_owned(),
                pattern: path_pattern(path.ok_or_else(gone)?, subject.places())?,
            })
        }
        CallPart::UnknownWrite => Err("the target that it writes to is unknown before it \
            runs"
            .to_owned()),
        CallPart::Url => {
            let url = subject.url.as_ref().and_then(|url| url.normal.as_deref());
            Ok(own(url_pattern(url.ok_or("it is not a URL")?)))
        }
    }
}

/// Checks that a part of a command runs no other command and sets no variable, and that all of it is known.
fn stands_alone(part: &CommandPart) -> Result<(), String> {
    let name = program(part);
    match part.kind {
        PartKind::Interpreter => {
            return Err(format!(
                "`{name}` runs arbitrary commands, so no rule can be offered"
            ));
        }
        PartKind::Wrapper => return Err(format!("`{name}` runs another command")),
        PartKind::Assignment => {
            return Err("it sets a variable for the commands after \
            it"
            .to_owned());
        }
        PartKind::Simple => {}
    }
    if !part.known {
        return Err(format!(
            "the arguments of `{name}` are unknown before it runs"
        ));
    }
    if let Some((variable, _)) = part.assignments.first() {
        return Err(format!("`{variable}=` can change what `{name}` runs"));
    }
    if part.text.chars().any(char::is_control) {
        return Err("it contains line breaks".to_owned());
    }
    Ok(())
}

/// Returns the file name of the program that a part runs.
fn program(part: &CommandPart) -> &str {
    let word = part.words.first().map_or("", String::as_str);
    word.rsplit('/').next().unwrap_or(word)
}

fn part_pattern(part: &CommandPart) -> String {
    if part.offered > 0 && part.unlisted.is_empty() {
        return format!("{} *", part.words[..part.offered].join(" "));
    }
    let words: Vec<String> = part.words.iter().map(|word| escape_word(word)).collect();
    words.join(" ")
}

/// Whether a pattern shows each option of a part that is not known to be harmless: the word of the option
/// precedes the first wildcard.
fn shows_options(pattern: &str, part: &CommandPart) -> bool {
    let shown = literal_words(pattern);
    part.unlisted.iter().all(|at| *at < shown)
}

/// Returns the number of words before the first wildcard of a pattern.
fn literal_words(pattern: &str) -> usize {
    let (mut words, mut inside) = (0, false);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' | '?' => return words,
            ' ' => {
                words += usize::from(inside);
                inside = false;
                continue;
            }
            '\\' => {
                characters.next();
            }
            _ => {}
        }
        inside = true;
    }
    words + usize::from(inside)
}

fn path_pattern(path: &SubjectPath, places: &CachedPathResolver<'_>) -> Result<String, String> {
    let canonical = path.forms(places).canonical.as_deref();
    let text = canonical.and_then(Path::to_str);
    text.map(escape)
        .ok_or_else(|| "the path cannot be resolved".to_owned())
}

/// Returns a pattern for all of a host, or the exact text of a URL that contains a user or a password.
fn url_pattern(url: &str) -> String {
    let host = url.find("://").map(|at| at + 3).and_then(|start| {
        let end = url[start..].find('/').map(|at| start + at)?;
        (!url[start..end].contains('@')).then_some(&url[..end])
    });
    match host {
        Some(host) => format!("{}/*", escape_text(host)),
        None => escape_text(url),
    }
}

/// Whether a grant lets a part of a call run.
#[must_use]
pub fn covers(grant: &Grant, subject: &CallSubject<'_>, piece: CallPart) -> bool {
    let places = subject.places();
    let command = subject.command.as_ref();
    let own = grant.tool == subject.tool;
    match piece {
        CallPart::Part(at) => command
            .and_then(|command| command.parts.get(at))
            .is_some_and(|part| {
                own && stands_alone(part).is_ok()
                    && shows_options(&grant.pattern, part)
                    && shares_case(&grant.pattern, &part.text, TEXT)
                    && Pattern::of_words(&grant.pattern, places)
                        .is_ok_and(|pattern| pattern.matches(&part.strict))
            }),
        CallPart::Redirection(at) => command
            .and_then(|command| command.writes.get(at))
            .is_some_and(|path| grant.tool == WRITE && covers_path(grant, path, places)),
        CallPart::Path(at) if subject.paths.len() == 1 => subject
            .paths
            .get(at)
            .is_some_and(|path| own && covers_path(grant, path, places)),
        CallPart::Url => subject
            .url
            .as_ref()
            .and_then(|url| url.normal_text.as_ref())
            .is_some_and(|url| own && matches(PatternKind::Url, grant, url, places)),
        CallPart::Whole if command.is_none() => {
            own && shares_case(&grant.pattern, &canonical_json(subject.params), TEXT)
                && matches(PatternKind::Text, grant, subject.arguments(), places)
        }
        CallPart::Path(_) | CallPart::Whole | CallPart::UnknownWrite => false,
    }
}

fn matches(kind: PatternKind, grant: &Grant, text: &Text, places: &PathResolver) -> bool {
    Pattern::new(kind, &grant.pattern, places).is_ok_and(|pattern| pattern.matches(text))
}

fn covers_path(grant: &Grant, path: &SubjectPath, places: &CachedPathResolver<'_>) -> bool {
    let canonical = path.forms(places).canonical.as_deref();
    let Some(text) = canonical.and_then(Path::to_str) else {
        return false;
    };
    let absolute = grant.pattern.starts_with('/');
    if absolute && !shares_case(&grant.pattern, text, PATH) {
        return false;
    }
    let written = PermissionRule {
        pattern: grant.pattern.clone(),
        action: Action::Allow,
        matches: Vec::new(),
        not_matches: Vec::new(),
    };
    let origin = RuleOrigin {
        key: String::new(),
        place: Place::Said(String::new()),
    };
    Rule::new(PatternKind::Path, written, origin, places)
        .is_ok_and(|rule| rule.fits_path(path.forms(places)) == MatchMode::Yes)
}

/// The special characters in patterns of commands and arguments.
const TEXT: &[char] = &['*', '?'];
/// The special characters in patterns of paths.
const PATH: &[char] = &['*', '?', '[', ']', '{', '}'];

/// Whether a text begins with the literal prefix of a pattern. A pattern without special characters must equal
/// the text.
fn shares_case(pattern: &str, text: &str, special: &[char]) -> bool {
    let mut literal = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => literal.extend(characters.next()),
            other if special.contains(&other) => {
                return text.starts_with(literal.trim_end_matches([' ', '/']));
            }
            other => literal.push(other),
        }
    }
    text == literal
}

#[cfg(test)]
#[cfg(all(feature = "shell", feature = "web"))]
mod tests;
