//! The `package_notes` strategy: it joins the deprecation notes of a package manager into one line of package
//! names.

use std::sync::Arc;

use super::{FilterConfidence, Strategy, StrategyFactory, no_params};
use crate::line::{ExitInfo, Line, Sink};

/// Characters of a line of names.
const WIDTH: usize = 160;

#[derive(Debug)]
struct Notes;

pub(super) fn make(table: toml::Table) -> Result<Arc<dyn StrategyFactory>, String> {
    no_params(&table)?;
    Ok(Arc::new(Notes))
}

impl StrategyFactory for Notes {
    fn start(&self) -> Box<dyn Strategy> {
        Box::new(Collect::default())
    }

    fn judges_lines_alone(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct Collect {
    /// The prefix of the notes, then the names.
    names: String,
    number: u64,
}

/// Parses prefix and name from `npm warn deprecated glob@7.2.3: no longer supported`.
fn deprecated(text: &str) -> Option<(&'static str, &str)> {
    const STARTS: &[(&str, &str)] = &[
        ("npm warn deprecated ", "npm warn deprecated"),
        ("npm WARN deprecated ", "npm WARN deprecated"),
        ("warning ", "warning deprecated"),
        (" WARN  deprecated ", "WARN deprecated"),
        ("WARN deprecated ", "WARN deprecated"),
    ];
    let (start, said) = STARTS.iter().find(|(start, _)| text.starts_with(start))?;
    let rest = &text[start.len()..];
    let (path, reason) = rest.split_once(": ").unwrap_or((rest, ""));
    // A path of packages: `a > b > glob@7.2.3`.
    let name = path.rsplit(" > ").next().unwrap_or(path);
    let is_name = name.rfind('@').is_some_and(|at| at > 0) && !name.contains([' ', '"']);
    let is_warning = *start == "warning ";
    let is_note =
        is_name && !reason.is_empty() && !(is_warning && reason.starts_with("No license"));
    is_note.then_some((said, name))
}

impl Collect {
    fn tell(&mut self, out: &mut dyn Sink) {
        if !self.names.is_empty() {
            out.say(self.number, &self.names);
            self.names.clear();
        }
    }
}

impl Strategy for Collect {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let Some((said, name)) = deprecated(line.text) else {
            out.keep(line);
            return;
        };
        if !self.names.starts_with(said) || self.names.len() + name.len() > WIDTH {
            self.tell(out);
            self.names.push_str(said);
        }
        self.names.push(' ');
        self.names.push_str(name);
        self.number = line.number;
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        self.tell(out);
        // Output without notes needs no change.
        FilterConfidence::Full
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::run;
    use super::*;

    #[test]
    fn deprecated_names_are_listed_in_one_line() {
        let printed = "npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory.\n\
            npm warn deprecated @scope/glob@7.2.3: Glob versions prior to v9 are no longer supported\n\
            warning \" > a@1\" has unmet peer dependency \"b@1\".\n\
            added 12 packages";
        assert_eq!(
            run(Notes.start(), printed, Some(0)).0,
            "warning \" > a@1\" has unmet peer dependency \"b@1\".\nadded 12 packages\n\
             npm warn deprecated inflight@1.0.6 @scope/glob@7.2.3"
        );
    }
}
