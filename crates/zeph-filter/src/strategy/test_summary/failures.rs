//! The failures of one run: each is told once, at length or in brief, and those that were only named
//! are told in the end.

use foldhash::HashSet;

use super::js_failure::Failure;
use super::{Limits, Line, OwnedLine, Sink};
use crate::find::Find as _;

/// Bytes of names and of lines that are held.
const MAX_BYTES: usize = 1024 * 1024;

/// What is known of the failures of a run.
#[derive(Debug)]
pub(super) struct Failures {
    limits: Limits,
    /// The one whose lines come.
    current: Option<Failure>,
    /// The lines that come belong to one that was told already.
    skipping: bool,
    /// The names of those that were told.
    told: HashSet<String>,
    told_bytes: usize,
    /// Failures that were named, and what came with their names; they may be told at length later.
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

    /// Whether there was any.
    pub(super) fn any(&self) -> bool {
        self.count > 0 || !self.named.is_empty()
    }

    /// Whether the lines that come belong to a failure.
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some() || self.skipping
    }

    /// Passes over the lines of `name` where it was told already; whether it was.
    pub(super) fn pass_over(&mut self, name: &str, out: &mut dyn Sink) -> bool {
        self.end(out);
        self.skipping = self.told.contains(name);
        self.skipping
    }

    /// Begins with `name`.
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

    /// The next line of the failure that is open.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if let Some(current) = &mut self.current {
            current.line(line, out);
        }
    }

    /// The failure that is open ends.
    pub(super) fn end(&mut self, out: &mut dyn Sink) {
        self.skipping = false;
        if let Some(mut current) = self.current.take() {
            current.finish(out);
        }
    }

    /// A failure is named, without what it says.
    pub(super) fn name(&mut self, name: &str, line: Line<'_>, out: &mut dyn Sink) {
        self.named_bytes += 2 * line.text.len() + 64;
        self.named.push((name.to_owned(), vec![line.into()]));
        if self.named_bytes > MAX_BYTES {
            self.tell_named(out);
        }
    }

    /// A line that says more of the failure that was named last.
    pub(super) fn name_more(&mut self, line: Line<'_>) {
        if let Some((_, lines)) = self.named.last_mut()
            && lines.len() < 12
        {
            self.named_bytes += line.text.len() + 32;
            lines.push(line.into());
        }
    }

    /// Tells those that were named alone.
    pub(super) fn tell_named(&mut self, out: &mut dyn Sink) {
        self.named_bytes = 0;
        if self.named.is_empty() {
            return;
        }
        // Where they are named without their file or their group, the end of the name counts.
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

    /// The run has ended.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        self.end(out);
        self.tell_named(out);
        self.told.clear();
        self.told_bytes = 0;
    }
}

/// The name, and what is left of it when groups are taken off its front.
fn ends(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(name);
    std::iter::from_fn(move || {
        let this = rest?;
        let next = [" > ", " › ", "\n"]
            .iter()
            .filter_map(|mark| this.place_of(mark).map(|at| at + mark.len()))
            .min();
        rest = next.map(|at| &this[at..]);
        Some(this)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_in_names() {
        let all: Vec<&str> = ends("a.ts > b > c").collect();
        assert_eq!(all, ["a.ts > b > c", "b > c", "c"]);
    }
}
