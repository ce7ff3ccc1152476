//! Runners of several packages (`pnpm -r`, turbo, lerna): each line begins with the name of its package, and
//! lines of packages are interleaved.
//!
//! Each package has its own parser.

use std::collections::BTreeMap;

use super::{Detect, ExitInfo, FilterConfidence, Limits, Line, Sink, Strategy};

/// Packages that have their own parser. Lines of further packages are unchanged.
const MAX_SOURCES: usize = 64;
/// Bytes of a name.
const MAX_NAME_BYTES: usize = 100;

struct Workspaces {
    limits: Limits,
    /// Indices into `sources` by name.
    names: BTreeMap<String, usize>,
    sources: Vec<Detect>,
    /// The last name and its index.
    last: (String, usize),
    /// Buffer for a line with its name.
    named: String,
}

/// Returns true if only such a runner prints this line.
pub(super) fn recognizes(text: &str) -> bool {
    text.starts_with("Scope: ") && text.ends_with(" workspace projects")
        || text.starts_with("• Packages in scope: ")
        || text.starts_with("lerna notice ")
        || text.starts_with("lerna info ")
        || announced(text).is_some()
}

pub(super) fn start(limits: Limits) -> Box<dyn Strategy> {
    Box::new(Workspaces {
        limits,
        names: BTreeMap::new(),
        sources: Vec::new(),
        last: (String::new(), 0),
        named: String::new(),
    })
}

/// Parses `packages/a test` from `packages/a test$ jest`, the first line of a script in pnpm.
fn announced(text: &str) -> Option<&str> {
    let (name, _) = text.split_once("$ ")?;
    let (path, script) = name.split_once(' ')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    (path.contains('/') && !script.is_empty() && script.chars().all(plain)).then_some(name)
}

/// Splits a line after the name and its separator: `@x/a:test: ok`.
fn split(text: &str) -> Option<(&str, &str)> {
    let (at, behind) = match text.find(": ") {
        Some(at) => (at, at + 2),
        None => (text.strip_suffix(':')?.len(), text.len()),
    };
    let name = &text[..at];
    let path = name.split_once(' ').map_or(name, |(path, _)| path);
    let named = path.starts_with('@') || path.contains(['/', ':']);
    let plain = |c: char| c.is_ascii_alphanumeric() || "@/_-.: ".contains(c);
    let fits = named
        && name.len() <= MAX_NAME_BYTES
        && name.matches(' ').count() <= 1
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || "@.".contains(c))
        && name.chars().all(plain)
        && !name.ends_with(|c: char| c.is_ascii_digit() && is_position(name));
    fits.then(|| text.split_at(behind))
}

/// Returns true if the name ends in a line number: `src/a.ts:12:5`.
fn is_position(name: &str) -> bool {
    let (_, last) = name.rsplit_once(':').unwrap_or(("", ""));
    !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())
}

impl Workspaces {
    /// Splits a line after its name. Most lines have the name of the previous line.
    fn split<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str)> {
        let (last, _) = &self.last;
        match last.ends_with(": ") && text.starts_with(last.as_str()) {
            true => Some(text.split_at(last.len())),
            false => split(text),
        }
    }

    /// The index of the parser for a name; `None` if there are too many names.
    fn source(&mut self, name: &str) -> Option<usize> {
        if self.last.0 == name {
            return Some(self.last.1);
        }
        let at = match self.names.get(name) {
            Some(at) => *at,
            None if self.sources.len() == MAX_SOURCES => return None,
            None => {
                self.sources.push(Detect::new(self.limits));
                let at = self.sources.len() - 1;
                self.names.insert(name.to_owned(), at);
                at
            }
        };
        self.last.0.clear();
        self.last.0.push_str(name);
        self.last.1 = at;
        Some(at)
    }
}

/// A sink that adds the name of the package to each line.
struct Named<'n> {
    name: &'n str,
    named: &'n mut String,
    out: &'n mut dyn Sink,
}

impl Named<'_> {
    fn name(&mut self, text: &str) {
        self.named.clear();
        self.named.push_str(self.name);
        self.named.push_str(text);
    }
}

impl Sink for Named<'_> {
    fn keep(&mut self, line: Line<'_>) {
        self.name(line.text);
        let text = self.named.as_str();
        self.out.keep(Line { text, ..line });
    }

    fn say(&mut self, number: u64, text: &str) {
        self.name(text);
        self.out.say(number, self.named);
    }
}

impl Strategy for Workspaces {
    fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let Some((name, rest)) = self.split(line.text) else {
            if !line.text.is_empty() {
                out.keep(line);
            }
            return;
        };
        let Some(at) = self.source(name) else {
            out.keep(line);
            return;
        };
        let line = Line { text: rest, ..line };
        let named = &mut self.named;
        self.sources[at].line(line, &mut Named { name, named, out });
    }

    fn finish(&mut self, _end: ExitInfo, out: &mut dyn Sink) -> FilterConfidence {
        let mut confidence = None;
        for (name, at) in std::mem::take(&mut self.names) {
            let name = &name;
            let source = &mut self.sources[at];
            let found = source.understands();
            // The exit code of each package is unknown.
            let named = &mut self.named;
            let understood = source.finish(ExitInfo::default(), &mut Named { name, named, out });
            if found {
                confidence = confidence.max(Some(understood));
            }
        }
        confidence.unwrap_or(FilterConfidence::Fallback)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::run;
    use super::*;

    #[test]
    fn package_prefix_of_a_line_is_split() {
        let check = |text: &str, expect| assert_eq!(split(text), expect, "{text}");
        check("packages/a test: ok", Some(("packages/a test: ", "ok")));
        check("packages/a test:", Some(("packages/a test:", "")));
        check("@x/a:test: ok", Some(("@x/a:test: ", "ok")));
        check("@x/a: ok: yes", Some(("@x/a: ", "ok: yes")));
        check("src/a.ts:12:5: error", None);
        check("error: no", None);
        check("lerna info run: x", None);
        assert_eq!(
            announced("packages/a test$ jest -i"),
            Some("packages/a test")
        );
    }

    /// Proves OUT-7.
    #[test]
    fn each_package_is_parsed_separately() {
        let mut printed = "Scope: 2 of 3 workspace projects\n".to_owned();
        for line in ["", "  ✓ a", "  ✓ b", "", "  2 passing (3ms)", ""] {
            printed += &format!("packages/a test: {line}\npackages/b test: step {line}\n");
        }
        let limits = Limits {
            max_failures: 10,
            truncate_stack_trace: 50,
        };
        let (told, confidence) = run(start(limits), &printed, Some(0));
        assert_eq!(confidence, FilterConfidence::Full, "{told}");
        assert!(
            told.contains("packages/a test:   2 passing (3ms)"),
            "{told}"
        );
        assert!(!told.contains("packages/a test:   ✓ a"), "{told}");
        assert!(told.contains("packages/b test: step   ✓ a"), "{told}");
    }
}
