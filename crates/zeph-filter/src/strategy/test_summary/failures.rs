//! Failures of one test run: each is shown once, in full or in brief, and failures without details are shown
//! last.

use std::collections::HashSet;

use super::js_failure::Failure;
use super::{Limits, Line, OwnedLine, Sink};

/// Bytes of names and of buffered lines.
const MAX_BYTES: usize = 1024 * 1024;

/// The failures of a run that are known so far.
#[derive(Debug)]
pub(super) struct Failures {
    limits: Limits,
    /// The failure that receives the current lines.
    current: Option<Failure>,
    /// True while the current lines belong to a failure that was already shown.
    skipping: bool,
    /// The names of the shown failures.
    told: HashSet<String>,
    told_bytes: usize,
    /// Named failures with the lines of their names. Their details may follow later.
    named: Vec<(String, Vec<OwnedLine>)>,
    named_bytes: usize,
    count: usize,
}

impl Failures {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            current: None,
            skipping: false,
            told: HashSet::default(),
            told_bytes: 0,
            named: Vec::new(),
            named_bytes: 0,
            count: 0,
        }
    }

    /// Returns true if the run has a failure.
    pub(super) fn any(&self) -> bool {
        self.count > 0 || !self.named.is_empty()
    }

    /// Returns true if the current lines belong to a failure.
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some() || self.skipping
    }

    /// Skips the lines of the failure `name` if it was already shown, and returns whether it was.
    pub(super) fn pass_over(&mut self, name: &str, out: &mut dyn Sink) -> bool {
        self.end(out);
        self.skipping = self.told.contains(name);
        self.skipping
    }

    /// Begins the failure `name`.
    pub(super) fn begin(&mut self, name: &str, out: &mut dyn Sink) {
        self.end(out);
        self.told_bytes += name.len() + 32;
        if self.told_bytes > MAX_BYTES {
            self.told.clear();
            self.told_bytes = 0;
        }
        self.told.insert(name.to_owned());
        self.count += 1;
        let brief = self.count > self.limits.max_failures;
        self.current = Some(Failure::new(brief, self.limits.truncate_stack_trace));
    }

    /// Processes the next line of the open failure.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if let Some(current) = &mut self.current {
            current.line(line, out);
        }
    }

    /// Ends the open failure.
    pub(super) fn end(&mut self, out: &mut dyn Sink) {
        self.skipping = false;
        if let Some(mut current) = self.current.take() {
            current.finish(out);
        }
    }

    /// Records the name of a failure without its details.
    pub(super) fn name(&mut self, name: &str, line: Line<'_>, out: &mut dyn Sink) {
        self.named_bytes += 2 * line.text.len() + 64;
        self.named.push((name.to_owned(), vec![line.into()]));
        if self.named_bytes > MAX_BYTES {
            self.tell_named(out);
        }
    }

    /// Appends a line to the failure that was named last.
    pub(super) fn name_more(&mut self, line: Line<'_>) {
        if let Some((_, lines)) = self.named.last_mut()
            && lines.len() < 12
        {
            self.named_bytes += line.text.len() + 32;
            lines.push(line.into());
        }
    }

    /// Shows the failures that have a name but no details.
    pub(super) fn tell_named(&mut self, out: &mut dyn Sink) {
        self.named_bytes = 0;
        if self.named.is_empty() {
            return;
        }
        // A failure may be named without its file or its group, so the end of the name is compared.
        let ends: HashSet<&str> = self.told.iter().flat_map(|name| ends(name)).collect();
        for (name, lines) in std::mem::take(&mut self.named) {
            if ends.contains(name.as_str()) {
                continue;
            }
            self.count += 1;
            for line in lines {
                out.keep(line.line());
            }
        }
    }

    /// Ends the run.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        self.end(out);
        self.tell_named(out);
        self.told.clear();
        self.told_bytes = 0;
    }
}

/// The name itself, then the name without its first group, and so on.
fn ends(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(name);
    std::iter::from_fn(move || {
        let this = rest?;
        let next = [" > ", " › ", "\n"]
            .iter()
            .filter_map(|mark| this.find(mark).map(|at| at + mark.len()))
            .min();
        rest = next.map(|at| &this[at..]);
        Some(this)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_suffixes_are_names() {
        let all: Vec<&str> = ends("a.ts > b > c").collect();
        assert_eq!(all, ["a.ts > b > c", "b > c", "c"]);
    }
}
