//! The filters of output: the built-in rules, and those of the user's file.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use zeph_memory::{FilterGain, Store};
use zeph_tools::filter::{FilterWarning, Filters, MAX_FILE, Rule, RuleBook, parse_rules};

use crate::config::Loaded;

/// The filters that the configuration asks for, and what of the user's rules is not used.
pub(crate) fn filters(loaded: &Loaded) -> (Filters, Vec<FilterWarning>) {
    if !loaded.config.tools.filters.enabled {
        return (Filters::off(), Vec::new());
    }
    let (rules, warnings) = user_rules(loaded);
    (Filters::new(RuleBook::new(rules)), warnings)
}

/// What the filters did so far, in a line.
pub(crate) fn filter_status(filters: &Filters) -> String {
    let rules = filters.metrics().by_rule();
    let (before, after) = rules.values().fold((0, 0), |(before, after), rule| {
        (before + rule.bytes_before, after + rule.bytes_after)
    });
    format!(
        "{} F/P/B (understood, cut, not understood); {} of {} kB read",
        filters.metrics().levels(),
        after.div_ceil(1000),
        before.div_ceil(1000)
    )
}

/// Adds what `filters` did to the sums. What fails is not worth more than a line in the log.
pub(crate) async fn keep_gain(store: &Store, filters: &Filters) {
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
            tracing::debug!(%error, rule = %gain.rule, "what a filter saved was not noted");
        }
    }
}

/// The file of the user's rules; it need not exist unless it was named.
fn rules_file(loaded: &Loaded) -> PathBuf {
    let named = loaded.config.tools.filters.filters_path.clone();
    named.unwrap_or_else(|| loaded.paths.user_file.with_file_name("filters.toml"))
}

/// The rules of the user's file, and what of them is not used.
pub(crate) fn user_rules(loaded: &Loaded) -> (Vec<Rule>, Vec<FilterWarning>) {
    let path = rules_file(loaded);
    let file = path.display().to_string();
    match read_rules_file(&path) {
        Ok(text) => parse_rules(&file, &text),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && loaded.config.tools.filters.filters_path.is_none() =>
        {
            (Vec::new(), Vec::new())
        }
        Err(error) => {
            let reason = format!("it cannot be read: {error}");
            (Vec::new(), vec![FilterWarning::File { file, reason }])
        }
    }
}

/// The text of a file; one byte more than it may have of one that is too large.
pub(crate) fn read_rules_file(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}
