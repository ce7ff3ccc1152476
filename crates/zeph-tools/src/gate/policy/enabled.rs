//! The compiled rules of the policy, and the decision by them.

use std::borrow::Cow;
use std::cell::OnceCell;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder, SetMatches};

use super::config::{AuthorizationConfig, OneOrMore, PolicyConfig, PolicyEffect, PolicyRule};
use super::decision::{Matched, PolicyDecision, Trace};
use super::paths::{ReferencedPaths, of, strings};
use super::{AUTHORIZATION_RULES, DEFAULT_EFFECT, POLICY_RULES, PolicyEnv, PolicyError};
use crate::gate::glob::{HOLE, Text, fold};
use crate::gate::parsed_call::{CallSubject, canonical_json};
use crate::gate::pattern::{Pattern, PatternKind};
use crate::gate::rule::{MatchMode, RuleOrigin, path_fit};

use crate::trust::TrustLevel;

/// The maximum number of characters of an expression.
const MAX_CHARS: usize = 1024;
/// The maximum memory of a compiled expression in bytes.
const EXPRESSION_BYTES: usize = 1 << 20;
/// The prefix of the ids of tools of MCP servers, which are not known in advance.
const FOREIGN: &str = "mcp_";

/// The compiled rules for all calls.
#[derive(Debug, Clone)]
pub struct PolicyEnforcer {
    rules: Vec<CompiledRule>,
    /// The expressions of all rules, so that a text is searched once for all of them.
    expressions: RegexSet,
    default_effect: PolicyEffect,
    default_origin: RuleOrigin,
}

/// A compiled rule.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    written: PolicyRule,
    origin: RuleOrigin,
    effect: PolicyEffect,
    /// The key that holds the tools, and each tool with its pattern.
    tools_key: String,
    tools: Vec<(String, Pattern)>,
    paths: Vec<(String, Pattern)>,
    arguments: Option<Regex>,
    /// The index of the expression in the set of all rules; `None` if the rule is compared alone.
    expression: Option<usize>,
    /// Whether all its variables are set.
    has_environment: bool,
}

impl PolicyEnforcer {
    /// Compiles the enabled rules: those of the policy, then those of the authorization. Returns `None` if
    /// neither section is enabled.
    ///
    /// # Errors
    /// Every invalid rule, enabled or not.
    pub fn new(
        policy: &PolicyConfig,
        authorization: &AuthorizationConfig,
        around: PolicyEnv<'_>,
    ) -> Result<Option<Self>, Vec<PolicyError>> {
        let mut errors = Vec::new();
        let mut rules = Vec::new();
        let lists = [
            (POLICY_RULES, policy.enabled, &policy.rules),
            (
                AUTHORIZATION_RULES,
                authorization.enabled,
                &authorization.rules,
            ),
        ];
        for (key, enabled, list) in lists {
            for (at, rule) in list.iter().enumerate() {
                match CompiledRule::new(rule, format!("{key}[{at}]"), around) {
                    Ok(rule) if enabled => rules.push(rule),
                    Ok(_) => {}
                    Err(error) => errors.push(error),
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let enabled = policy.enabled || authorization.enabled;
        let expressions = all_expressions(&mut rules);
        Ok(enabled.then(|| Self {
            rules,
            expressions,
            default_effect: policy.default_effect,
            default_origin: (around.origin)(DEFAULT_EFFECT),
        }))
    }

    /// Returns the rules in the order of evaluation.
    #[must_use]
    pub fn rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// Reports the tools of rules that are not in `known` and cannot be tools of an MCP server: such a rule never
    /// matches a call.
    #[must_use]
    pub fn names_not_in(&self, known: &[&str]) -> Vec<PolicyError> {
        let mut foreign = Vec::new();
        fold(FOREIGN, &mut foreign);
        foreign.push(HOLE);
        let foreign = Text::from(foreign);
        let mut errors = Vec::new();
        for rule in &self.rules {
            for (written, pattern) in &rule.tools {
                let is_known = pattern.may_match(&foreign)
                    || known.iter().any(|id| pattern.matches(&Text::of(id)));
                if !is_known {
                    errors.push(PolicyError {
                        key: rule.tools_key.clone(),
                        fault: format!("names {written:?}, and there is no such tool"),
                        help: match crate::registry::nearest(written, known.iter().copied(), 1)
                            .pop()
                        {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => "`zeph tools list` names them".to_owned(),
                        },
                    });
                }
            }
        }
        errors
    }

    /// Decides about a call by the first matching rule, or by the default.
    #[must_use]
    pub fn decide(&self, subject: &CallSubject<'_>, trust: TrustLevel) -> PolicyDecision<'_> {
        let call = Call {
            expressions: Some(&self.expressions),
            ..Call::new(subject)
        };
        for rule in &self.rules {
            let holds = match (rule.effect, rule.written.trust_level) {
                (_, None) => true,
                (PolicyEffect::Allow, Some(least)) => trust >= least,
                (PolicyEffect::Deny, Some(most)) => trust <= most,
            };
            if !holds || !rule.has_environment {
                continue;
            }
            if let Some(mut matched) = rule.matched(&call) {
                if rule.written.trust_level.is_some() {
                    matched.push(Matched::Trust(trust.as_str()));
                }
                if !rule.written.env.is_empty() {
                    matched.push(Matched::Environment(rule.written.env.0.clone()));
                }
                return PolicyDecision {
                    effect: rule.effect,
                    trace: Trace {
                        origin: &rule.origin,
                        matched,
                    },
                };
            }
        }
        PolicyDecision {
            effect: self.default_effect,
            trace: Trace {
                origin: &self.default_origin,
                matched: Vec::new(),
            },
        }
    }
}

/// A call with cached derived values.
struct Call<'c> {
    subject: &'c CallSubject<'c>,
    tool: Text,
    mentions: OnceCell<ReferencedPaths>,
    json: OnceCell<String>,
    texts: OnceCell<Vec<Cow<'c, str>>>,
    /// The expressions of all rules, if all rules are evaluated.
    expressions: Option<&'c RegexSet>,
    found_in_json: OnceCell<SetMatches>,
    found_in_texts: OnceCell<Vec<bool>>,
}

impl<'c> Call<'c> {
    fn new(subject: &'c CallSubject<'c>) -> Self {
        Self {
            tool: Text::of(subject.tool),
            subject,
            mentions: OnceCell::new(),
            json: OnceCell::new(),
            texts: OnceCell::new(),
            expressions: None,
            found_in_json: OnceCell::new(),
            found_in_texts: OnceCell::new(),
        }
    }

    /// Whether the arguments as JSON match an expression.
    fn json_has(&self, rule: &CompiledRule, expression: &Regex) -> bool {
        match (self.expressions, rule.expression) {
            (Some(all), Some(number)) => self
                .found_in_json
                .get_or_init(|| all.matches(self.json()))
                .matched(number),
            _ => expression.is_match(self.json()),
        }
    }

    /// Whether one of [`Self::texts`] matches an expression.
    fn texts_have(&self, rule: &CompiledRule, expression: &Regex) -> bool {
        let (Some(all), Some(number)) = (self.expressions, rule.expression) else {
            return self.texts().iter().any(|text| expression.is_match(text));
        };
        let found = self.found_in_texts.get_or_init(|| {
            let mut found = vec![false; all.len()];
            for text in self.texts() {
                for number in &all.matches(text) {
                    found[number] = true;
                }
            }
            found
        });
        found.get(number).copied().unwrap_or(true)
    }

    /// Returns all strings of the arguments, and the parts of the command with and without their assignments.
    fn texts(&self) -> &[Cow<'c, str>] {
        self.texts.get_or_init(|| {
            let mut texts: Vec<Cow<'c, str>> = Vec::new();
            strings(self.subject.params, &mut |text| texts.push(text.into()));
            let command = self.subject.command.iter();
            for part in command.flat_map(|command| &command.parts) {
                if !part.assignments.is_empty() {
                    texts.push(part.words.join(" ").into());
                }
                texts.push(part.text.as_str().into());
            }
            texts
        })
    }

    fn mentions(&self) -> &ReferencedPaths {
        self.mentions.get_or_init(|| of(self.subject))
    }

    fn json(&self) -> &str {
        self.json
            .get_or_init(|| canonical_json(self.subject.params))
    }
}

impl CompiledRule {
    fn new(rule: &PolicyRule, key: String, around: PolicyEnv<'_>) -> Result<Self, PolicyError> {
        let wrong = |name: &str, fault: &str, help: &str| PolicyError {
            key: match name {
                "" => key.clone(),
                name => format!("{key}.{name}"),
            },
            fault: fault.to_owned(),
            help: help.to_owned(),
        };
        if !rule.capabilities.is_empty() {
            let help = "remove it: it would match nothing";
            return Err(wrong("capabilities", "is reserved for later", help));
        }
        let effect = match (rule.effect, rule.action) {
            (Some(effect), None) | (None, Some(effect)) => effect,
            (Some(_), Some(_)) => {
                let fault = "is another name of `effect`, and both are set";
                return Err(wrong("action", fault, "keep `effect`"));
            }
            (None, None) => {
                let help = "add effect = \"deny\" or \"allow\"";
                return Err(wrong("", "has no `effect`", help));
            }
        };
        let (tools_name, tools) = match (rule.tools.is_empty(), rule.tool.is_empty()) {
            (false, true) => ("tools", &rule.tools),
            (true, false) => ("tool", &rule.tool),
            (false, false) => {
                let fault = "is another name of `tools`, and both are set";
                return Err(wrong("tool", fault, "keep `tools`"));
            }
            (true, true) => {
                let help = "add tools = [\"*\"] for all, or their ids";
                return Err(wrong("", "names no tools", help));
            }
        };
        let globs = |name: &str, list: &OneOrMore, kind: PatternKind| {
            let compiled = list.0.iter().map(|text| {
                Pattern::new(kind, text, around.places)
                    .map(|pattern| (text.clone(), pattern))
                    .map_err(|error| {
                        let fault = format!("has the glob {text:?}: {error}");
                        wrong(
                            name,
                            &fault,
                            "fix this rule: an invalid rule protects nothing",
                        )
                    })
            });
            compiled.collect::<Result<Vec<_>, _>>()
        };
        let names = rule.env.0.iter();
        if let Some(name) = names.clone().find(|name| !is_variable(name)) {
            let fault = format!("has {name:?}, which is not the name of a variable");
            return Err(wrong("env", &fault, "name variables, without `$` and `=`"));
        }
        let arguments = match &rule.args_match {
            None => None,
            Some(text) => Some(expression(text).map_err(|fault| {
                let help = "fix this rule: an invalid rule protects nothing";
                wrong("args_match", &fault, help)
            })?),
        };
        Ok(Self {
            effect,
            tools: globs(tools_name, tools, PatternKind::Text)?,
            tools_key: format!("{key}.{tools_name}"),
            paths: globs("paths", &rule.paths, PatternKind::Path)?,
            arguments,
            expression: None,
            has_environment: names.clone().all(|name| (around.is_set)(name)),
            origin: (around.origin)(&key),
            written: rule.clone(),
        })
    }

    /// Returns the rule as configured.
    #[must_use]
    pub fn written(&self) -> &PolicyRule {
        &self.written
    }

    /// Returns the effect on the calls that it matches.
    #[must_use]
    pub fn effect(&self) -> PolicyEffect {
        self.effect
    }

    /// Returns the origin in the configuration.
    #[must_use]
    pub fn origin(&self) -> &RuleOrigin {
        &self.origin
    }

    /// Whether it matches a call, by its tools, paths and arguments.
    #[must_use]
    pub fn is_about(&self, subject: &CallSubject<'_>) -> bool {
        self.matched(&Call::new(subject)).is_some()
    }

    fn matched(&self, call: &Call<'_>) -> Option<Vec<Matched>> {
        let mut tools = self.tools.iter();
        let (written, _) = tools.find(|(_, pattern)| pattern.matches(&call.tool))?;
        let arguments = match &self.arguments {
            Some(expression) if !self.finds(expression, call) => return None,
            Some(expression) => Some(Matched::Arguments(expression.as_str().to_owned())),
            None => None,
        };
        let paths = match self.effect {
            _ if self.paths.is_empty() => None,
            PolicyEffect::Deny => Some(self.any_path(call)?),
            PolicyEffect::Allow => Some(self.every_path(call)?),
        };
        let tool = Matched::Tool(written.clone());
        Some(
            [Some(tool), arguments, paths]
                .into_iter()
                .flatten()
                .collect(),
        )
    }

    /// Whether the arguments match the expression. A deny rule also matches texts that are escaped in JSON or
    /// quoted in a command.
    fn finds(&self, expression: &Regex, call: &Call<'_>) -> bool {
        call.json_has(self, expression)
            || (self.effect == PolicyEffect::Deny && call.texts_have(self, expression))
    }

    fn any_path(&self, call: &Call<'_>) -> Option<Matched> {
        let places = call.subject.places();
        let mentions = call.mentions();
        let named = call.subject.paths.iter();
        let mentioned = mentions.paths.iter().map(|mention| &mention.path);
        for path in named.chain(mentioned) {
            let forms = path.forms(places);
            let mut globs = self.paths.iter();
            if let Some((glob, _)) =
                globs.find(|(_, glob)| path_fit(glob, forms, false) != MatchMode::No)
            {
                return Some(Matched::Path(path.given.clone(), glob.clone()));
            }
        }
        mentions.unknown.clone().map(Matched::Unknown)
    }

    fn every_path(&self, call: &Call<'_>) -> Option<Matched> {
        let places = call.subject.places();
        let mentions = call.mentions();
        if mentions.unknown.is_some() || mentions.pattern.is_some() {
            return None;
        }
        let named = call.subject.paths.iter();
        let mentioned = mentions.paths.iter().filter(|mention| mention.certain);
        let mut given = Vec::new();
        for path in named.chain(mentioned.map(|mention| &mention.path)) {
            let forms = path.forms(places);
            let mut globs = self.paths.iter();
            if !globs.any(|(_, glob)| path_fit(glob, forms, true) == MatchMode::Yes) {
                return None;
            }
            given.push(path.given.clone());
        }
        (!given.is_empty()).then_some(Matched::Paths(given))
    }
}

/// Compiles the expressions of all rules to one set and assigns the indexes. If the set is too large, each rule
/// is compared alone.
fn all_expressions(rules: &mut [CompiledRule]) -> RegexSet {
    let with = rules.iter_mut().filter(|rule| rule.arguments.is_some());
    let with: Vec<&mut CompiledRule> = with.collect();
    let texts = with.iter().filter_map(|rule| rule.arguments.as_ref());
    let set = RegexSetBuilder::new(texts.map(Regex::as_str))
        .size_limit(EXPRESSION_BYTES.saturating_mul(with.len()))
        .build();
    let Ok(set) = set else {
        return RegexSet::empty();
    };
    for (number, rule) in with.into_iter().enumerate() {
        rule.expression = Some(number);
    }
    set
}

fn expression(text: &str) -> Result<Regex, String> {
    let length = text.chars().count();
    if text.is_empty() {
        return Err("is empty; remove it to match all arguments".to_owned());
    }
    if length > MAX_CHARS {
        return Err(format!("has {length} characters, more than {MAX_CHARS}"));
    }
    let built = RegexBuilder::new(text).size_limit(EXPRESSION_BYTES).build();
    built.map_err(|error| {
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default();
        let reason = last.trim_start_matches("error: ");
        format!("has the expression {text:?}: {reason}")
    })
}

fn is_variable(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(all(test, feature = "shell"))]
#[path = "tests.rs"]
mod tests;
