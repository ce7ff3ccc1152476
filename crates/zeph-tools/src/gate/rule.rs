//! The compiled rules of `[tools.permissions]`, with their origins in the configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::CommandPart;
use super::parsed_call::{CallSubject, PathForms, SubjectUrl};
use super::path_resolver::PathResolver;
use super::pattern::{Pattern, PatternError, PatternKind, PatternScope};
use crate::contract::call_targets::ToolTarget;
use crate::gate::glob::Text;

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It may run.
    Allow,
    /// The user is asked.
    Ask,
    /// It does not run.
    Deny,
}

impl Action {
    /// Returns the name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule of `[[tools.permissions.TOOL]]`; the first of a tool's rules that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionRule {
    /// Its target, without case: the command of `bash` (`*`: any text), each path of a file tool (`*` stops at `/`, `**` does not), the URL of a web tool, else the arguments as JSON.
    pub pattern: String,
    /// The decision about the call.
    pub action: Action,
    /// Examples that it must match, for `zeph policy test`: commands, paths, URLs, arguments.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Examples that it must not match.
    #[serde(default, rename = "not_match", skip_serializing_if = "Vec::is_empty")]
    pub not_matches: Vec<String>,
}

/// The origin of a rule in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOrigin {
    /// The key, as in `tools.permissions.bash[0]`.
    pub key: String,
    /// The file and the line, or the flag or variable that set it.
    pub place: Place,
}

/// A line of a file, or another source of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, from 1.
    Line(Arc<Path>, usize),
    /// A description: "flag --set tools.permissions.bash".
    Said(String),
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Place::Said(words) => f.write_str(words),
        }
    }
}

/// An error of a rule that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: the pattern {pattern:?} cannot be used: {error}", .origin.key)]
#[non_exhaustive]
pub struct RuleError {
    /// The origin of the rule.
    pub origin: RuleOrigin,
    /// The pattern as written.
    pub pattern: String,
    /// The fault of the pattern.
    pub error: PatternError,
}

/// A compiled rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The rule as configured.
    pub written: PermissionRule,
    /// The origin.
    pub origin: RuleOrigin,
    /// Whether it comes from a project: a later rule that denies overrides its question.
    pub only_tightens: bool,
    kind: PatternKind,
    pattern: Pattern,
}

/// The result of a comparison of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchMode {
    /// It does not match.
    No,
    /// It may match once the call runs.
    Maybe,
    /// It matches.
    Yes,
}

impl ToolTarget {
    /// Returns the kind of text that its patterns are compared with.
    #[must_use]
    pub fn pattern_kind(&self) -> PatternKind {
        match self {
            Self::Command { .. } => PatternKind::Command,
            Self::Arguments => PatternKind::Text,
            Self::Paths(_) => PatternKind::Path,
            Self::Url(_) => PatternKind::Url,
        }
    }
}

impl Rule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// [`RuleError`] if the pattern is invalid.
    pub fn new(
        kind: PatternKind,
        written: PermissionRule,
        origin: RuleOrigin,
        places: &PathResolver,
    ) -> Result<Self, RuleError> {
        let pattern = match (kind, written.action) {
            (PatternKind::Command, Action::Allow) => Pattern::of_words(&written.pattern, places),
            _ => Pattern::new(kind, &written.pattern, places),
        };
        match pattern {
            Ok(pattern) => Ok(Self {
                written,
                origin,
                only_tightens: false,
                kind,
                pattern,
            }),
            Err(error) => Err(RuleError {
                origin,
                pattern: written.pattern,
                error,
            }),
        }
    }

    /// Returns the kind of text that the pattern is compared with.
    #[must_use]
    pub fn kind(&self) -> PatternKind {
        self.kind
    }

    /// Marks the rule as one of a project.
    #[must_use]
    pub fn of_project(self) -> Self {
        Self {
            only_tightens: true,
            ..self
        }
    }

    /// Returns the effect of the rule.
    #[must_use]
    pub fn action(&self) -> Action {
        self.written.action
    }

    /// Whether it matches everything.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.pattern.is_catch_all()
    }

    /// Whether its pattern is exactly `text`, without wildcards. Case counts.
    pub(super) fn is_exactly(&self, text: &str) -> bool {
        let mut literal = String::with_capacity(self.written.pattern.len());
        let mut rest = self.written.pattern.trim().chars();
        while let Some(next) = rest.next() {
            match next {
                '*' | '?' => return false,
                '\\' => literal.extend(rest.next()),
                plain => literal.push(plain),
            }
        }
        literal == text.trim()
    }

    /// Whether it matches a call: an allow rule must match every part, another rule at least one part.
    #[must_use]
    pub fn is_about(&self, subject: &CallSubject<'_>) -> bool {
        let places = subject.places();
        let fits: Vec<MatchMode> = if let Some(command) = &subject.command {
            let whole = (self.action() != Action::Allow).then(|| self.fits_text(&command.whole));
            let parts = command.parts.iter().map(|part| self.fits_part(part));
            parts.chain(whole).collect()
        } else if let Some(url) = &subject.url {
            vec![self.fits_url(url)]
        } else if subject.paths.is_empty() {
            vec![self.fits_text(subject.arguments())]
        } else {
            let paths = subject.paths.iter();
            paths
                .map(|path| self.fits_path(path.forms(places)))
                .collect()
        };
        match self.action() {
            Action::Allow => !fits.is_empty() && fits.iter().all(|fit| *fit == MatchMode::Yes),
            _ => fits.contains(&MatchMode::Yes),
        }
    }

    /// Compares it with a part of a command. An allow rule must match the exact text for all possible values.
    /// Other rules also match alternative names.
    pub(super) fn fits_part(&self, part: &CommandPart) -> MatchMode {
        if self.is_catch_all() {
            return MatchMode::Yes;
        }
        if self.action() == Action::Allow {
            return yes(self.pattern.matches(&part.strict));
        }
        let matches = |text: &Text| self.pattern.matches(text);
        if part.loose.iter().any(matches) {
            MatchMode::Yes
        } else if (!part.known && part.loose.iter().any(|text| self.pattern.may_match(text)))
            || part.perhaps.iter().any(|text| self.pattern.may_match(text))
        {
            MatchMode::Maybe
        } else {
            MatchMode::No
        }
    }

    /// Compares it with a known text.
    pub(super) fn fits_text(&self, text: &Text) -> MatchMode {
        yes(self.pattern.matches(text))
    }

    /// Compares it with a path. An allow rule must match the real path. Other rules may also match the given
    /// path. A rule for a path below a directory may match if the call includes all contents of the directory.
    pub(super) fn fits_path(&self, path: &PathForms) -> MatchMode {
        if self.is_catch_all() {
            return MatchMode::Yes;
        }
        path_fit(&self.pattern, path, self.action() == Action::Allow)
    }

    /// Compares it with a URL. An allow rule must match the URL of the request.
    pub(super) fn fits_url(&self, url: &SubjectUrl) -> MatchMode {
        if self.action() == Action::Allow {
            return match &url.normal_text {
                Some(text) => yes(self.pattern.matches(text)),
                None => yes(self.is_catch_all()),
            };
        }
        yes(url.texts.iter().any(|text| self.pattern.matches(text)))
    }
}

/// Compares a pattern with a path. With `allows`, it must match the real path. A pattern for a path below a
/// directory may match if the call includes all contents of the directory.
pub(super) fn path_fit(pattern: &Pattern, path: &PathForms, allows: bool) -> MatchMode {
    let reach = pattern.reach();
    let mut fit = MatchMode::No;
    for form in &path.texts {
        let comparable = match reach {
            PatternScope::Absolute => !form.relative,
            PatternScope::Relative => form.relative,
            PatternScope::Any | PatternScope::Everything => true,
        };
        if !comparable || (allows && !form.real) {
            continue;
        }
        if pattern.matches(&form.text) {
            return MatchMode::Yes;
        }
        let below = form.below.as_ref().filter(|_| !allows);
        if below.is_some_and(|below| pattern.may_match(below)) {
            fit = MatchMode::Maybe;
        }
    }
    fit
}

fn yes(fits: bool) -> MatchMode {
    if fits { MatchMode::Yes } else { MatchMode::No }
}

/// The rules of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// The rules in order; the first that matches decides.
    pub rules: Vec<Rule>,
    /// Whether `[tools.permissions]` lists the tool: a call that no rule matches is then asked about.
    pub listed: bool,
}

impl ToolRules {
    /// Whether no call of the tool can run: a rule denies everything, and no earlier rule allows a call.
    #[must_use]
    pub fn only_deny(&self) -> bool {
        self.rules
            .iter()
            .filter(|rule| rule.action() != Action::Ask || !rule.only_tightens)
            .take_while(|rule| rule.action() == Action::Deny)
            .any(Rule::is_catch_all)
    }
}

/// The rules of all tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    tools: BTreeMap<String, ToolRules>,
}

impl RuleSet {
    /// Creates a set of the rules in `tools`, by tool id.
    #[must_use]
    pub fn new(tools: BTreeMap<String, ToolRules>) -> Self {
        Self { tools }
    }

    /// Returns the rules of a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Option<&ToolRules> {
        self.tools.get(tool)
    }

    /// Whether a tool is hidden from the model because its rules deny every call.
    #[must_use]
    pub fn hides(&self, tool: &str) -> bool {
        self.of(tool).is_some_and(ToolRules::only_deny)
    }

    /// Iterates over all rules with their tools, in the order of each tool.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Rule)> {
        let tools = self.tools.iter();
        tools.flat_map(|(tool, list)| list.rules.iter().map(move |rule| (tool.as_str(), rule)))
    }
}
