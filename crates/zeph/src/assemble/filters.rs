//! The filters of output: the built-in rules, those of a trusted project, and those of the user's
//! file. Every entry point loads them here.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeph_memory::{FilterGain, Store};
use zeph_tools::filter::{FilterPipeline, FilterWarning, Rule, RuleOverride, RuleSet, parse_rules};

use super::trust::{Pins, ProjectRules, Standing, read_text};
use crate::config::{Environment, Loaded};
use crate::output::sanitize::clean;
use crate::output::stderr_line_unless;

/// The filters of the configuration. Rules in files that are not used are reported: in the log file, and unless `quiet` is
/// set, on standard error.
pub(crate) fn filters(loaded: &Loaded, env: &Environment, quiet: bool) -> FilterPipeline {
    if !loaded.config.tools.filters.enabled {
        return FilterPipeline::off();
    }
    let added = UserRules::load(loaded, env);
    for line in added.not_used() {
        stderr_line_unless(quiet, &format!("warning: {line}"));
    }
    FilterPipeline::new(added.book())
}

/// The rules that are not built in.
#[derive(Debug, Default)]
pub(crate) struct UserRules {
    /// Of the user's file.
    pub(crate) user: Vec<Rule>,
    /// Of the project's file, if it is trusted.
    pub(crate) project: Vec<Rule>,
    /// Parts of the files that cannot be used.
    pub(crate) warnings: Vec<FilterWarning>,
    /// That the project's are not trusted.
    pub(crate) untrusted: Option<String>,
    /// The changes of rules by the configuration.
    overrides: BTreeMap<String, RuleOverride>,
}

impl UserRules {
    /// Reads the files.
    pub(crate) fn load(loaded: &Loaded, env: &Environment) -> Self {
        let project_file = ProjectRules::find(env);
        let mut added = Self::default();
        (added.user, added.warnings) = user_rules(loaded, project_file.as_deref());
        if let Some(file) = project_file {
            added.add_project(file, &Pins::in_folder(&loaded.paths.data_dir));
        }
        added
            .overrides
            .clone_from(&loaded.config.tools.filters.rules);
        let (_, warnings) = added.rules().with_overrides(&added.overrides);
        added.warnings.extend(warnings);
        added
    }

    fn add_project(&mut self, file: PathBuf, pins: &Pins) {
        let name = file.display().to_string();
        let rules = match ProjectRules::read(file) {
            Ok(rules) => rules,
            Err(error) => return self.warnings.push(unreadable(name, &error)),
        };
        let why = match pins.standing(&rules) {
            Standing::Trusted => {
                let (rules, warnings) = parse_rules(&name, &rules.text);
                self.project = rules;
                self.warnings.extend(warnings);
                return;
            }
            Standing::New => "they are not trusted".to_owned(),
            Standing::Changed(_) => "they changed after you trusted them".to_owned(),
            Standing::Unknown(error) => {
                format!("their trust record cannot be read: {error}")
            }
        };
        self.untrusted = Some(format!(
            "the filter rules of this project, in {name}, are not used: {why}; `zeph filter trust` \
             shows and approves them"
        ));
    }

    /// The user's rules first, then the project's; a rule of the user takes the place of one of the
    /// same name of the project, and each of these that of a built-in one.
    pub(crate) fn book(self) -> RuleSet {
        self.rules().with_overrides(&self.overrides).0
    }

    /// All rules as the files have them.
    fn rules(&self) -> RuleSet {
        let is_free = |rule: &&Rule| self.user.iter().all(|own| own.name != rule.name);
        let of_project = self.project.iter().filter(is_free);
        RuleSet::new(self.user.iter().chain(of_project).cloned().collect())
    }

    /// The reasons why parts of the rules are not used, one text each, for a terminal.
    pub(crate) fn not_used(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(ToString::to_string);
        let texts = warnings.chain(self.untrusted.clone());
        texts.map(|text| clean(&text)).collect()
    }
}

/// The statistics of the filters in one line.
pub(crate) fn filter_status(filters: &FilterPipeline) -> String {
    let rules = filters.metrics().by_rule();
    let (before, after) = rules.values().fold((0, 0), |(before, after), rule| {
        (before + rule.bytes_before, after + rule.bytes_after)
    });
    let [full, partial, fallback] = filters.metrics().levels();
    format!(
        "{} of {} kB of output sent; {full} understood, {partial} truncated, {fallback} not",
        after.div_ceil(1000),
        before.div_ceil(1000)
    )
}

/// Adds the statistics of `filters` to the stored sums. A failure is only logged.
pub(crate) async fn keep_gain(store: &Store, filters: &FilterPipeline) {
    for (rule, counted) in filters.metrics().by_rule() {
        let gain = FilterGain {
            rule,
            full: counted.full,
            partial: counted.partial,
            fallback: counted.fallback,
            bytes_before: counted.bytes_before,
            bytes_after: counted.bytes_after,
            reruns: counted.reruns,
            recalls: counted.recalls,
        };
        if let Err(error) = store.add_filter_gain(&gain).await {
            tracing::debug!(%error, rule = %gain.rule, "filter statistics were not saved");
        }
    }
}

/// The file of the user's rules; it need not exist unless it was named.
fn rules_file(loaded: &Loaded) -> PathBuf {
    let named = loaded.config.tools.filters.filters_path.clone();
    named.unwrap_or_else(|| loaded.paths.user_file.with_file_name("filters.toml"))
}

/// The rules of the user's file, and the warnings about unused parts. A project's file is not the user's, even if the
/// configuration points to it.
fn user_rules(loaded: &Loaded, project: Option<&Path>) -> (Vec<Rule>, Vec<FilterWarning>) {
    let path = rules_file(loaded);
    if project.is_some_and(|project| ProjectRules::is_file(project, &path)) {
        return (Vec::new(), Vec::new());
    }
    let name = path.display().to_string();
    match read_rules_file(&path) {
        Ok(text) => parse_rules(&name, &text),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && loaded.config.tools.filters.filters_path.is_none() =>
        {
            (Vec::new(), Vec::new())
        }
        Err(error) => (Vec::new(), vec![unreadable(name, &error)]),
    }
}

fn unreadable(file: String, error: &io::Error) -> FilterWarning {
    let reason = error.to_string();
    FilterWarning::File { file, reason }
}

/// The text of a file of rules that the user named.
///
/// # Errors
/// An error of the system, or the file is not a regular file, is too large, or is not UTF-8.
pub(crate) fn read_rules_file(path: &Path) -> io::Result<String> {
    read_text(path, OFlags::empty())
}
