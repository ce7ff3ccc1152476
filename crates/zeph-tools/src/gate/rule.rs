//! The rules of `[tools.permissions]`, compiled, with the places where they were written.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call_targets::ToolTarget;
use super::command::CommandPart;
use super::parsed_call::{CallSubject, PathForms, SubjectUrl};
use super::path_resolver::PathResolver;
use super::pattern::{Pattern, PatternError, PatternKind, PatternScope};
use crate::gate::glob::Text;

/// What becomes of what a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It may run.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

impl Action {
    /// Its name in the configuration.
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
    /// What it is about, without case: the command of `bash` (`*`: any text), each path of a file tool (`*` stops at `/`, `**` does not), the URL of a web tool, else the arguments as JSON.
    pub pattern: String,
    /// What becomes of it.
    pub action: Action,
    /// Examples that it must match, for `zeph policy test`: commands, paths, URLs, arguments.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Examples that it must not match.
    #[serde(default, rename = "not_match", skip_serializing_if = "Vec::is_empty")]
    pub not_matches: Vec<String>,
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOrigin {
    /// The key, as in `tools.permissions.bash[0]`.
    pub key: String,
    /// The file and the line, or the flag or variable that it came with.
    pub place: Place,
}

/// A file with a line, or something else that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, from 1.
    Line(Arc<Path>, usize),
    /// Words: "flag --set tools.permissions.bash".
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

/// A rule that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: the pattern {pattern:?} cannot be used: {error}", .origin.key)]
pub struct RuleError {
    /// Where it was written.
    pub origin: RuleOrigin,
    /// The pattern as written.
    pub pattern: String,
    /// What is wrong with it.
    pub error: PatternError,
}

/// A compiled rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// As it was written.
    pub written: PermissionRule,
    /// Where.
    pub origin: RuleOrigin,
    /// Whether it comes from a project: what it asks about is denied all the same where a rule behind
    /// it denies.
    pub only_tightens: bool,
    kind: PatternKind,
    pattern: Pattern,
}

/// Whether a rule is about something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchMode {
    /// It is not.
    No,
    /// It could turn out to be.
    Maybe,
    /// It is.
    Yes,
}

impl ToolTarget {
    /// What its patterns are compared with.
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
    /// When its pattern is none.
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

    /// What its pattern is compared with.
    #[must_use]
    pub fn kind(&self) -> PatternKind {
        self.kind
    }

    /// The same, from a project.
    #[must_use]
    pub fn of_project(self) -> Self {
        Self {
            only_tightens: true,
            ..self
        }
    }

    /// What becomes of what it matches.
    #[must_use]
    pub fn action(&self) -> Action {
        self.written.action
    }

    /// Whether it matches everything.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.pattern.is_catch_all()
    }

    /// Whether it is about a call: to allow, about every piece of it; else one piece is enough.
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

    /// Whether it is about a part of a command. An allow rule must match it whatever turns out, just
    /// as it stands; the others match it under any name.
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

    /// Whether it is about a text that is known.
    pub(super) fn fits_text(&self, text: &Text) -> MatchMode {
        yes(self.pattern.matches(text))
    }

    /// Whether it is about a path. An allow rule is where it really lies, the others also where it
    /// seems to. A rule about something below a directory that is taken as a whole may be.
    pub(super) fn fits_path(&self, path: &PathForms) -> MatchMode {
        if self.is_catch_all() {
            return MatchMode::Yes;
        }
        path_fit(&self.pattern, path, self.action() == Action::Allow)
    }

    /// Whether it is about a URL. An allow rule is about what will be asked for.
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

/// Whether a pattern is about a path. To allow (`allows`) it has to be where the path really lies; a
/// pattern of something below a directory that is taken as a whole may be.
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
    /// In order; the first that matches decides.
    pub rules: Vec<Rule>,
    /// Whether `[tools.permissions]` lists the tool: what no rule matches is then asked about.
    pub listed: bool,
}

impl ToolRules {
    /// Whether nothing that the tool is called with can run: it has a rule that denies everything,
    /// and none before it that lets anything run.
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
    /// Those of `tools`, by the tool's own id.
    #[must_use]
    pub fn new(tools: BTreeMap<String, ToolRules>) -> Self {
        Self { tools }
    }

    /// The rules of a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Option<&ToolRules> {
        self.tools.get(tool)
    }

    /// Whether a tool is kept from the model, since its rules can only deny it.
    #[must_use]
    pub fn hides(&self, tool: &str) -> bool {
        self.of(tool).is_some_and(ToolRules::only_deny)
    }

    /// All rules with their tools, each tool's in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Rule)> {
        let tools = self.tools.iter();
        tools.flat_map(|(tool, list)| list.rules.iter().map(move |rule| (tool.as_str(), rule)))
    }
}
